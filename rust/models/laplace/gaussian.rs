//! The linear mixed model, by maximum likelihood or by REML, and its exact gradient.
//!
//! The factors are those of the covariance matrices over the residual variance. With them given,
//! coefficients and effects solve a penalised least squares problem, whose sum of squares gives the
//! residual variance (Bates, Maechler, Bolker and Walker 2015, "Fitting linear mixed-effects models
//! using lme4", Journal of Statistical Software 67(1):1-48, doi 10.18637/jss.v067.i01). The rows are
//! read once for cross products, and then for residuals alone.

use super::dense::{cholesky, dot, inverse, log_determinant, real, solve, sum};
use super::effects::{Effects, Factors};
use super::factor::Factor;
use super::objective::{pack, unpack};
use super::optimise::Objective;

/// The longest step in an entry of a relative factor, where it is not longer itself.
const LONGEST: f64 = 2.0;

/// A linear mixed model with orthogonal regressors, its outcome already without their least squares
/// fit. Its parameters are the lower triangles of the relative factors, row by row.
#[derive(Debug, Clone)]
pub struct Linear {
    n_rows: f64,
    n_coefficients: usize,
    reml: bool,
    /// Random part.
    pub effects: Effects,
    x: Vec<f64>,
    y: Vec<f64>,
    blocks: Vec<f64>,
    /// `Z'x` of each regressor.
    zx: Vec<Vec<f64>>,
    zy: Vec<f64>,
    /// The residual variance, where it is held; else it is what fits best.
    pub held: Option<f64>,
    /// State at the last parameters.
    pub solution: Solution,
    factor: Factor,
}

/// The best fit at some relative factors.
#[derive(Debug, Clone, Default)]
pub struct Solution {
    /// Relative factors.
    pub factors: Factors,
    /// Coefficients of the regressors.
    pub coefficients: Vec<f64>,
    /// Inverse of the information of the coefficients over the residual variance.
    pub covariance: Vec<f64>,
    /// Standardised effects times the residual standard deviation.
    pub v: Vec<f64>,
    /// Inverse of the curvature on the pattern of its factor.
    pub inverse: Vec<f64>,
    /// The conditional covariances of the effects over the residual variance, in blocks.
    pub blocks: Vec<f64>,
    /// The penalised sum of squares.
    pub squares: f64,
    /// `Z'` times the residuals.
    left: Vec<f64>,
    /// Derivatives of the sum of squares.
    pub squares_gradient: Vec<f64>,
}

impl Linear {
    /// Takes the cross products.
    #[must_use]
    pub fn new(
        (x, n_coefficients): (&[f64], usize),
        y: &[f64],
        effects: Effects,
        reml: bool,
    ) -> Self {
        let n_rows = y.len();
        let mut blocks = vec![0.0; effects.pattern.n_blocks];
        effects.blocks(&vec![1.0; n_rows], &mut blocks);
        let collected = |values: &[f64]| {
            let mut out = vec![0.0; effects.pattern.size];
            effects.collect(values, &mut out);
            out
        };
        let column =
            |k: usize| -> Vec<f64> { (0..n_rows).map(|i| x[i * n_coefficients + k]).collect() };
        let zx = (0..n_coefficients).map(|k| collected(&column(k))).collect();
        let zy = collected(y);
        Self {
            n_rows: real(n_rows),
            n_coefficients,
            reml,
            blocks,
            zx,
            zy,
            x: x.to_vec(),
            y: y.to_vec(),
            held: None,
            solution: Solution::default(),
            factor: Factor::new(&effects.pattern),
            effects,
        }
    }

    /// Rows less the coefficients, where these are integrated out.
    #[must_use]
    pub fn degrees(&self) -> f64 {
        if self.reml { self.n_rows - real(self.n_coefficients) } else { self.n_rows }
    }

    /// The residual variance that fits best.
    #[must_use]
    pub fn variance(&self) -> f64 {
        self.solution.squares / self.degrees()
    }

    /// Relative factors by one step of the EM algorithm.
    #[must_use]
    pub fn averaged(&self) -> Factors {
        let (solution, sigma) = (&self.solution, self.variance().sqrt());
        let mut u = vec![0.0; solution.v.len()];
        self.effects.scale(&solution.factors, &solution.v, &mut u);
        for u in &mut u {
            *u /= sigma;
        }
        self.effects.averaged(&solution.factors, &u, &solution.blocks)
    }

    /// `Z'w - Z'Z u` for effects `u = L v`.
    fn remainder(&self, factors: &Factors, zw: &[f64], v: &[f64]) -> Vec<f64> {
        let mut u = vec![0.0; v.len()];
        self.effects.scale(factors, v, &mut u);
        let mut out = vec![0.0; v.len()];
        self.effects.multiply(&self.blocks, &u, &mut out);
        out.iter().zip(zw).map(|(known, all)| all - known).collect()
    }

    /// The penalised sum of squares, and `Z'` times the residuals. By row: a difference of cross products
    /// would lose the digits of small residuals.
    fn residual(&self, factors: &Factors, coefficients: &[f64], v: &[f64]) -> (f64, Vec<f64>) {
        let mut u = vec![0.0; v.len()];
        self.effects.scale(factors, v, &mut u);
        let mut fitted = vec![0.0; self.y.len()];
        self.effects.add_to(&u, &mut fitted);
        let p = self.n_coefficients;
        let residuals: Vec<f64> = (self.y.iter().zip(&fitted).enumerate())
            .map(|(row, (y, fitted))| {
                y - fitted - dot(&self.x[row * p..(row + 1) * p], coefficients)
            })
            .collect();
        let mut left = vec![0.0; v.len()];
        self.effects.collect(&residuals, &mut left);
        let squares: Vec<f64> = residuals.iter().map(|residual| residual * residual).collect();
        (sum(&squares) + dot(v, v), left)
    }

    /// Solves the least squares problem; none where it cannot be.
    fn solve(&mut self, factors: &Factors) -> Option<(f64, Vec<Vec<f64>>)> {
        let (pattern, p) = (&self.effects.pattern, self.n_coefficients);
        self.effects.curvature(factors, &self.blocks, &mut self.factor);
        if !self.factor.factorise(pattern) {
            return None;
        }
        let mut log_det = self.factor.log_determinant(pattern);
        let back = |values: &[f64]| {
            let mut out = vec![0.0; pattern.size];
            self.effects.scale_back(factors, values, &mut out);
            out
        };
        let solved = |values: &[f64]| {
            let mut out = values.to_vec();
            self.factor.solve(pattern, &mut out);
            out
        };
        let right: Vec<Vec<f64>> = self.zx.iter().map(|zx| back(zx)).collect();
        let columns: Vec<Vec<f64>> = right.iter().map(|right| solved(right)).collect();
        let of_y = solved(&back(&self.zy));
        let mut information = vec![0.0; p * p];
        let mut coefficients = vec![0.0; p];
        for k in 0..p {
            for l in 0..p {
                let crossed = if k == l { self.n_rows } else { 0.0 };
                information[k * p + l] = crossed - dot(&right[k], &columns[l]);
            }
            coefficients[k] = -dot(&right[k], &of_y);
        }
        if !cholesky(&mut information, p) {
            return None;
        }
        solve(&information, p, &mut coefficients);
        let mut v = of_y;
        for (column, &coefficient) in columns.iter().zip(&coefficients) {
            for (v, &column) in v.iter_mut().zip(column) {
                *v -= coefficient * column;
            }
        }
        let (squares, left) = self.residual(factors, &coefficients, &v);
        if self.reml {
            log_det += log_determinant(&information, p);
        }
        let solution = &mut self.solution;
        solution.covariance = inverse(&information, p);
        (solution.coefficients, solution.v) = (coefficients, v);
        (solution.squares, solution.left) = (squares, left);
        solution.factors.clone_from(factors);
        Some((log_det, columns))
    }

    /// Derivatives of the penalised sum of squares, and of half the log determinants.
    fn differentiate(&mut self, factors: &Factors, columns: &[Vec<f64>]) -> (Factors, Factors) {
        let zeros = || -> Factors { factors.iter().map(|f| vec![0.0; f.len()]).collect() };
        let (mut of_squares, mut of_logs) = (zeros(), zeros());
        self.solution.inverse.resize(self.factor.values.len(), 0.0);
        self.factor.inverse(&self.effects.pattern, &mut self.solution.inverse);
        self.solution.blocks.resize(self.blocks.len(), 0.0);
        self.effects.covariances(
            factors,
            (&self.blocks, &self.solution.inverse),
            &mut self.solution.blocks,
            &mut of_logs,
        );
        let left: Vec<f64> = self.solution.left.iter().map(|left| -2.0 * left).collect();
        self.effects.add_outer(&left, &self.solution.v, &mut of_squares);
        if self.reml {
            let p = self.n_coefficients;
            for k in 0..p {
                let mut mixed = vec![0.0; self.effects.pattern.size];
                for (l, column) in columns.iter().enumerate() {
                    let weight = -self.solution.covariance[k * p + l];
                    for (mixed, &column) in mixed.iter_mut().zip(column) {
                        *mixed += weight * column;
                    }
                }
                let left = self.remainder(factors, &self.zx[k], &columns[k]);
                self.effects.add_outer(&left, &mixed, &mut of_logs);
            }
        }
        (of_squares, of_logs)
    }
}

impl Objective for Linear {
    fn size(&self) -> usize {
        self.effects.parts.iter().map(|part| part.width * (part.width + 1) / 2).sum()
    }

    fn longest(&self, _: usize, value: f64) -> f64 {
        f64::max(LONGEST, value.abs())
    }

    fn evaluate(&mut self, parameters: &[f64], gradient: &mut [f64]) -> f64 {
        let factors = unpack(parameters, &self.effects);
        let found = self.solve(&factors).filter(|_| self.solution.squares > 0.0);
        let Some((log_det, columns)) = found else {
            gradient.fill(f64::NAN);
            return f64::NAN;
        };
        let (of_squares, of_logs) = self.differentiate(&factors, &columns);
        let variance = self.held.unwrap_or_else(|| self.variance());
        let mut squares_gradient = vec![0.0; gradient.len()];
        pack(&of_squares, &self.effects, &mut squares_gradient);
        pack(&of_logs, &self.effects, gradient);
        for (gradient, squares) in gradient.iter_mut().zip(&squares_gradient) {
            *gradient += 0.5 * squares / variance;
        }
        self.solution.squares_gradient = squares_gradient;
        let log = libm::log(2.0 * std::f64::consts::PI * variance);
        0.5 * (self.degrees() * log + self.solution.squares / variance + log_det)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Part;
    use super::super::scaling::Regressors;
    use super::*;

    #[test]
    fn the_gradient_is_that_of_the_value() {
        let number = |i: u32| f64::from((i * 7919 + 13) % 1009) / 504.5 - 1.0;
        let n = 60_u32;
        let z = (0..n).flat_map(|i| [1.0, number(3 * i)]).collect();
        let first = Part { codes: (0..n).map(|i| i % 7).collect(), z, width: 2, n_levels: 7 };
        let codes = (0..n).map(|i| i % 4).collect();
        let second = Part { codes, z: Vec::new(), width: 1, n_levels: 4 };
        let x: Vec<f64> = (0..2 * n).map(number).collect();
        let x = Regressors::new(&x, 2, &[1.0; 60], false).expect("independent");
        let mut y: Vec<f64> = (0..n).map(|i| number(11 * i + 5) + number(i % 7)).collect();
        super::super::linear::residuals(&x, &mut y);
        for reml in [true, false] {
            for held in [None, Some(0.3)] {
                let effects = Effects::new(vec![first.clone(), second.clone()], 60).expect("small");
                let mut model = Linear::new((&x.x, 2), &y, effects, reml);
                model.held = held;
                let at = [0.9, -0.3, 0.6, 0.5];
                let (mut gradient, mut unused) = ([0.0; 4], [0.0; 4]);
                model.evaluate(&at, &mut gradient);
                for k in 0..4 {
                    let mut value_at = |step: f64| {
                        let mut moved = at;
                        moved[k] += step;
                        model.evaluate(&moved, &mut unused)
                    };
                    let near = value_at(1e-3) - value_at(-1e-3);
                    let far = value_at(2e-3) - value_at(-2e-3);
                    let slope = (8.0 * near - far) / 12e-3;
                    assert!((slope - gradient[k]).abs() < 1e-9, "{k}: {slope} {}", gradient[k]);
                }
            }
        }
    }
}
