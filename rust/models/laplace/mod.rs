//! Mixed models with normal random effects, by the Laplace approximation.
//!
//! Cells have a linear predictor `x'b + sum over groupings z'u`, with `u` the effects of a level,
//! normal with covariance matrix `L L'`. Binomial: `logit P(success)` is the predictor; ordinal:
//! `logit P(level <= j)` is a threshold less the predictor; Gaussian: the predictor is the mean, and
//! the likelihood is exact.

pub mod cells;
pub mod curvature;
pub mod dense;
pub mod effects;
pub mod factor;
pub mod fit;
pub mod gaussian;
pub mod generalised;
pub mod linear;
pub mod modes;
pub mod objective;
pub mod optimise;
pub mod pattern;
pub mod quadrature;
pub mod report;
pub mod scaling;

use crate::error::{Error, Result, check_finite, check_rows, check_some, check_values};

pub use fit::fit;
pub use pattern::Part;
pub use quadrature::Rule;

/// What was observed.
#[derive(Debug, Clone)]
pub enum Response {
    /// Successes and trials of each cell.
    Binomial {
        /// Successes.
        successes: Vec<f64>,
        /// Trials.
        trials: Vec<f64>,
    },
    /// An ordered level of each cell.
    Ordinal {
        /// The level, from 0.
        level: Vec<u32>,
        /// Rows of the cell.
        rows: Vec<f64>,
        /// Levels, each of some cell.
        n_levels: usize,
    },
    /// A number of each row.
    Gaussian {
        /// The number.
        y: Vec<f64>,
        /// Whether the variances maximise the restricted likelihood.
        reml: bool,
    },
}

/// A model and its data.
#[derive(Debug, Clone)]
pub struct Data {
    /// What was observed.
    pub response: Response,
    /// Regressors, (cells, coefficients) row by row.
    pub x: Vec<f64>,
    /// Coefficients.
    pub n_coefficients: usize,
    /// Random effects.
    pub parts: Vec<Part>,
    /// Nodes of an adaptive quadrature, for one grouping with one effect; none for the Laplace
    /// approximation.
    pub rule: Option<Rule>,
}

/// How a fit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// At a maximum.
    Converged,
    /// Where no step raised the likelihood, though its gradient is not 0.
    Stuck,
    /// After too many steps.
    Tired,
    /// Where the likelihood is flat, or not curved down in all directions.
    Flat,
    /// With coefficients, or deviations, on their way to infinity.
    Separated,
}

/// Estimates, on the scale of the data that came.
#[derive(Debug, Clone)]
pub struct Fit {
    /// Thresholds, of an ordinal outcome.
    pub thresholds: Vec<f64>,
    /// Coefficients.
    pub coefficients: Vec<f64>,
    /// For each grouping the factor of its covariance matrix, row by row.
    pub factors: Vec<Vec<f64>>,
    /// Residual standard deviation, of a Gaussian outcome.
    pub sigma: Option<f64>,
    /// For each grouping the modes of its effects, (levels, width).
    pub modes: Vec<Vec<f64>>,
    /// For each grouping the conditional covariances of its effects, (levels, width, width).
    pub mode_variances: Vec<Vec<f64>>,
    /// Covariance of thresholds, coefficients, lower triangles of the factors row by row, and the
    /// residual standard deviation; NaN for the factors of singular groupings.
    pub covariance: Vec<f64>,
    /// The log-likelihood.
    pub log_likelihood: f64,
    /// How the fit ended.
    pub ending: Ending,
    /// The largest derivative in units of the square root of the Hessian.
    pub gradient: f64,
    /// For each grouping whether its covariance matrix is singular.
    pub singular: Vec<bool>,
    /// Evaluations of the likelihood and its gradient.
    pub evaluations: usize,
}

impl Data {
    /// Cells.
    #[must_use]
    pub fn n_cells(&self) -> usize {
        match &self.response {
            Response::Binomial { trials, .. } => trials.len(),
            Response::Ordinal { rows, .. } => rows.len(),
            Response::Gaussian { y, .. } => y.len(),
        }
    }

    /// Checks sizes and ranges, so that nothing later can be out of bounds.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Shape`], [`Error::NotFinite`], [`Error::Range`] or
    /// [`Error::TooManyRows`].
    pub fn check(&self) -> Result<()> {
        let n_cells = self.n_cells();
        check_some("the number of cells", n_cells)?;
        check_rows(n_cells)?;
        check_values("x", &self.x, &[n_cells, self.n_coefficients])?;
        match &self.response {
            Response::Binomial { successes, trials } => {
                check_values("y", successes, &[n_cells])?;
                check_finite("counts", trials, &[n_cells])?;
                check_positive(trials)?;
                let outside = |(&y, &m): (&f64, &f64)| y < 0.0 || y > m;
                if let Some(at) = successes.iter().zip(trials).position(outside) {
                    let expected = format!("within 0 and the {} trials", trials[at]);
                    let value = successes[at].to_string();
                    return Err(Error::Range { name: "y", expected, value, at });
                }
            }
            Response::Ordinal { level, rows, n_levels } => {
                if level.len() != n_cells {
                    let (expected, actual) = (n_cells, level.len());
                    return Err(Error::Shape { name: "y", expected, actual });
                }
                check_finite("counts", rows, &[n_cells])?;
                check_positive(rows)?;
                check_codes("y", level, *n_levels)?;
                let mut seen = vec![false; *n_levels];
                for &level in level {
                    seen[level as usize] = true;
                }
                if *n_levels < 2 || seen.contains(&false) {
                    return Err(Error::Levels { n_levels: *n_levels });
                }
            }
            Response::Gaussian { y, .. } => check_finite("y", y, &[n_cells])?,
        }
        for part in &self.parts {
            check_some("the number of levels", part.n_levels)?;
            check_some("the number of effects of a level", part.width)?;
            if part.codes.len() != n_cells {
                let (expected, actual) = (n_cells, part.codes.len());
                return Err(Error::Shape { name: "codes", expected, actual });
            }
            check_codes("codes", &part.codes, part.n_levels)?;
            if part.width > 1 || !part.z.is_empty() {
                check_values("z", &part.z, &[n_cells, part.width])?;
            }
        }
        if let Some(rule) = &self.rule {
            let [part] = &self.parts[..] else { return Err(Error::Quadrature) };
            if part.width != 1 || matches!(self.response, Response::Gaussian { .. }) {
                return Err(Error::Quadrature);
            }
            check_some("the number of nodes", rule.nodes.len())?;
            check_finite("nodes", &rule.nodes, &[rule.nodes.len()])?;
            check_values("log_weights", &rule.log_weights, &[rule.nodes.len()])?;
        }
        Ok(())
    }
}

/// Values in another order, `width` at a time.
fn reordered<T: Copy>(values: &[T], order: &[usize], width: usize) -> Vec<T> {
    order.iter().flat_map(|&at| values[at * width..(at + 1) * width].iter().copied()).collect()
}

impl Data {
    /// Puts cells with the same levels side by side, in the order of the levels.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        let codes = |cell: usize| self.parts.iter().map(move |part| part.codes[cell]);
        let mut order: Vec<usize> = (0..self.n_cells()).collect();
        if order.is_sorted_by(|&a, &b| codes(a).le(codes(b))) {
            return self;
        }
        order.sort_by(|&a, &b| codes(a).cmp(codes(b)));
        match &mut self.response {
            Response::Binomial { successes: y, trials: m } => {
                (*y, *m) = (reordered(y, &order, 1), reordered(m, &order, 1));
            }
            Response::Ordinal { level, rows, .. } => {
                (*level, *rows) = (reordered(level, &order, 1), reordered(rows, &order, 1));
            }
            Response::Gaussian { y, .. } => *y = reordered(y, &order, 1),
        }
        self.x = reordered(&self.x, &order, self.n_coefficients);
        for part in &mut self.parts {
            part.codes = reordered(&part.codes, &order, 1);
            if !part.z.is_empty() {
                part.z = reordered(&part.z, &order, part.width);
            }
        }
        self
    }
}

/// Checks that each cell has rows.
fn check_positive(counts: &[f64]) -> Result<()> {
    let Some(at) = counts.iter().position(|&count| count <= 0.0) else { return Ok(()) };
    let (expected, value) = ("above 0".into(), counts[at].to_string());
    Err(Error::Range { name: "counts", expected, value, at })
}

/// Checks that codes are below the number of levels.
fn check_codes(name: &'static str, codes: &[u32], n_levels: usize) -> Result<()> {
    let Some(at) = codes.iter().position(|&code| code as usize >= n_levels) else {
        return Ok(());
    };
    let expected = format!("below the {n_levels} levels");
    Err(Error::Range { name, expected, value: codes[at].to_string(), at })
}
