//! The log-density of the posterior in the coordinates that are sampled, with its gradient.

use std::collections::HashMap;

use nuts_rs::{CpuLogpFunc, CpuMathError, HasDims, LogpError, rand};

use super::cells::Cells;
use super::crossed::Crossed;
use super::nodes::Nodes;
use super::part::Part;
use crate::cpu::Cpu;
use crate::error::{Error, Result, check_some, check_values};
use crate::stream::Stream;

/// How the likelihood is computed.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one a chain")]
pub enum Likelihood {
    /// Cell by cell.
    Cells(Cells),
    /// Cells that cross one part with everything else.
    Crossed(Crossed),
    /// With the effects of the last part integrated out.
    Nodes(Nodes),
}

/// The coefficients of the fixed columns.
///
/// What is sampled is the sum `b` of the coefficients and of the mean effects of the parts in the
/// directions that the columns span, `b ~ N(0, diag(variances) + sum of s[t]^2 A[t] A[t]')`, as
/// `centre + basis z`.
#[derive(Debug, Clone)]
pub struct Fixed {
    rows: Vec<f64>,
    centre: Vec<f64>,
    basis: Vec<f64>,
    variances: Vec<f64>,
    /// For each part, `A[t]` by rows, and its number of columns.
    directions: Vec<(Vec<f64>, usize)>,
}

impl Fixed {
    /// Reads `rows`, the distinct rows of fixed columns, as (rows, p), `basis` as (p, p), and
    /// `directions` as (p, any number) for each part.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Empty`] or [`Error::NotFinite`].
    pub fn new(
        rows: &[f64],
        centre: &[f64],
        basis: &[f64],
        variances: &[f64],
        directions: &[&[f64]],
    ) -> Result<Self> {
        let p = centre.len();
        check_some("the number of fixed columns", p)?;
        check_values("rows", rows, &[rows.len() / p, p])?;
        check_values("centre", centre, &[p])?;
        check_values("basis", basis, &[p, p])?;
        check_values("variances", variances, &[p])?;
        let directions = directions
            .iter()
            .map(|&values| {
                let width = values.len() / p;
                check_values("directions", values, &[p, width])?;
                Ok((values.to_vec(), width))
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            rows: rows.to_vec(),
            centre: centre.to_vec(),
            basis: basis.to_vec(),
            variances: variances.to_vec(),
            directions,
        })
    }

    fn p(&self) -> usize {
        self.centre.len()
    }

    /// The Cholesky factor of the variance of `b`, lower triangle by rows.
    fn factor(&self, s: &[f64]) -> Option<Vec<f64>> {
        let p = self.p();
        let mut v = vec![0.0; p * p];
        for (j, variance) in self.variances.iter().enumerate() {
            v[j * p + j] = *variance;
        }
        for ((a, width), s) in self.directions.iter().zip(s) {
            if *width == 0 {
                continue;
            }
            for j in 0..p {
                for k in 0..=j {
                    let (one, other) =
                        (&a[j * width..(j + 1) * width], &a[k * width..(k + 1) * width]);
                    let mut dot = 0.0;
                    for (x, y) in one.iter().zip(other) {
                        dot += x * y;
                    }
                    v[j * p + k] += s * s * dot;
                }
            }
        }
        for j in 0..p {
            for k in 0..=j {
                let mut rest = v[j * p + k];
                for l in 0..k {
                    rest -= v[j * p + l] * v[k * p + l];
                }
                if j == k {
                    if rest.is_nan() || rest <= 0.0 {
                        return None;
                    }
                    v[j * p + j] = rest.sqrt();
                } else {
                    v[j * p + k] = rest / v[k * p + k];
                }
            }
        }
        Some(v)
    }

    /// The log-density of `b`, with its derivatives by `b` set and those by `s` added.
    fn log_density(&self, s: &[f64], b: &[f64], by_b: &mut [f64], by_s: &mut [f64]) -> Option<f64> {
        let p = self.p();
        let factor = self.factor(s)?;
        let mut solved = b.to_vec();
        forward(&factor, &mut solved);
        let mut density = 0.0;
        for (j, x) in solved.iter().enumerate() {
            density -= 0.5 * x * x + factor[j * p + j].ln();
        }
        backward(&factor, &mut solved);
        for (by_b, x) in by_b.iter_mut().zip(&solved) {
            *by_b = -x;
        }
        let mut column = vec![0.0; p];
        for (((a, width), s), by_s) in self.directions.iter().zip(s).zip(by_s) {
            for direction in 0..*width {
                let mut along = 0.0;
                for j in 0..p {
                    column[j] = a[j * width + direction];
                    along += column[j] * solved[j];
                }
                forward(&factor, &mut column);
                let mut norm = 0.0;
                for x in &column {
                    norm += x * x;
                }
                *by_s += s * (along * along - norm);
            }
        }
        Some(density)
    }
}

/// Solves `L x = b` in place.
fn forward(factor: &[f64], b: &mut [f64]) {
    let p = b.len();
    for j in 0..p {
        let mut rest = b[j];
        for k in 0..j {
            rest -= factor[j * p + k] * b[k];
        }
        b[j] = rest / factor[j * p + j];
    }
}

/// Solves `L' x = b` in place.
fn backward(factor: &[f64], b: &mut [f64]) {
    let p = b.len();
    for j in (0..p).rev() {
        let mut rest = b[j];
        for k in j + 1..p {
            rest -= factor[k * p + j] * b[k];
        }
        b[j] = rest / factor[j * p + j];
    }
}

/// The posterior. A position is the coordinates of the fixed coefficients, the standard deviations
/// of all parts, each with either sign, and the coordinates of the effects of each part that is not
/// integrated out.
#[derive(Debug, Clone)]
pub struct Posterior {
    cpu: Cpu,
    likelihood: Likelihood,
    fixed: Fixed,
    parts: Vec<Part>,
    /// Scales of the half-normal priors of the standard deviations.
    scales: Vec<f64>,
    /// The linear predictors of the distinct fixed rows, then the effects of each part; and the
    /// derivatives by them.
    tables: Vec<Vec<f64>>,
    slopes: Vec<Vec<f64>>,
}

impl Posterior {
    /// Puts the pieces together; their sizes have to agree.
    ///
    /// # Errors
    /// [`Error::Shape`] when they do not, [`Error::NotFinite`].
    pub fn new(
        cpu: Cpu,
        likelihood: Likelihood,
        fixed: Fixed,
        parts: Vec<Part>,
        scales: &[f64],
    ) -> Result<Self> {
        let integrated = usize::from(matches!(likelihood, Likelihood::Nodes(_)));
        check_values("scales", scales, &[parts.len() + integrated])?;
        for part in &parts {
            if part.n_shares() != scales.len() {
                let (expected, actual) = (scales.len(), part.n_shares());
                return Err(Error::Shape { name: "shares", expected, actual });
            }
        }
        if fixed.directions.len() != parts.len() {
            let (expected, actual) = (parts.len(), fixed.directions.len());
            return Err(Error::Shape { name: "directions", expected, actual });
        }
        let mut tables = vec![vec![0.0; fixed.rows.len() / fixed.p()]];
        tables.extend(parts.iter().map(|part| vec![0.0; part.n_levels()]));
        let slopes = tables.clone();
        Ok(Self { cpu, likelihood, fixed, parts, scales: scales.to_vec(), tables, slopes })
    }

    /// Coordinates of a position.
    #[must_use]
    pub fn n_coordinates(&self) -> usize {
        let free: usize = self.parts.iter().map(Part::n_free).sum();
        self.n_head() + free
    }

    /// Coordinates of a position before those of the effects.
    #[must_use]
    pub fn n_head(&self) -> usize {
        self.fixed.p() + self.scales.len()
    }

    /// Levels of the part that is integrated out, 0 without one.
    #[must_use]
    pub fn n_integrated(&self) -> usize {
        match &self.likelihood {
            Likelihood::Nodes(nodes) => nodes.n_levels(),
            _ => 0,
        }
    }

    /// Fills the tables at a position; the log-density of the effects.
    fn place(&mut self, position: &[f64]) -> (Vec<f64>, f64) {
        let p = self.fixed.p();
        let mut b = self.fixed.centre.clone();
        for (b, row) in b.iter_mut().zip(self.fixed.basis.chunks_exact(p)) {
            for (basis, z) in row.iter().zip(position) {
                *b += basis * z;
            }
        }
        for (sum, row) in self.tables[0].iter_mut().zip(self.fixed.rows.chunks_exact(p)) {
            *sum = 0.0;
            for (x, b) in row.iter().zip(&b) {
                *sum += x * b;
            }
        }
        let (s, mut rest) = position[p..].split_at(self.scales.len());
        let mut density = 0.0;
        for (part, effects) in self.parts.iter_mut().zip(&mut self.tables[1..]) {
            let (z, others) = rest.split_at(part.n_free());
            density += part.place(s, z, effects);
            rest = others;
        }
        (b, density)
    }

    /// The log-density at a position, up to a constant, and its gradient; `None` where a number is
    /// too large for a float.
    pub fn log_density(&mut self, position: &[f64], gradient: &mut [f64]) -> Option<f64> {
        let p = self.fixed.p();
        let (b, mut density) = self.place(position);
        let s = &position[p..p + self.scales.len()];
        gradient.fill(0.0);
        let (by_fixed, others) = gradient.split_at_mut(p);
        let (by_s, mut by_effects) = others.split_at_mut(s.len());
        let mut by_b = vec![0.0; p];
        density += self.fixed.log_density(s, &b, &mut by_b, by_s)?;
        for ((by_s, s), scale) in by_s.iter_mut().zip(s).zip(&self.scales) {
            density -= 0.5 * (s / scale) * (s / scale);
            *by_s -= s / (scale * scale);
        }
        for slopes in &mut self.slopes {
            slopes.fill(0.0);
        }
        let (tables, slopes) = (&self.tables, &mut self.slopes);
        density += match &mut self.likelihood {
            Likelihood::Cells(cells) => cells.log_likelihood(self.cpu, tables, slopes),
            Likelihood::Crossed(cells) => cells.log_likelihood(self.cpu, tables, slopes)?,
            Likelihood::Nodes(nodes) => {
                let last = s.len() - 1;
                let (sum, slope) = nodes.log_likelihood(self.cpu, tables, s[last], slopes)?;
                by_s[last] += slope;
                sum
            }
        };
        for (slope, row) in slopes[0].iter().zip(self.fixed.rows.chunks_exact(p)) {
            for (by_b, x) in by_b.iter_mut().zip(row) {
                *by_b += slope * x;
            }
        }
        for (by_b, row) in by_b.iter().zip(self.fixed.basis.chunks_exact(p)) {
            for (by_z, basis) in by_fixed.iter_mut().zip(row) {
                *by_z += by_b * basis;
            }
        }
        for (part, slopes) in self.parts.iter().zip(&mut slopes[1..]) {
            let (by_z, others) = by_effects.split_at_mut(part.n_free());
            part.pull_back(s, slopes, by_z, by_s);
            by_effects = others;
        }
        let finite = density.is_finite() && gradient.iter().all(|x| x.is_finite());
        finite.then_some(density)
    }

    /// Draws the effects that were integrated out, given the rest.
    pub fn draw_integrated(&mut self, position: &[f64], stream: &mut Stream, out: &mut [f64]) {
        self.place(position);
        let s = position[self.n_head() - 1];
        if let Likelihood::Nodes(nodes) = &mut self.likelihood {
            nodes.draw(self.cpu, &self.tables, s, stream, out);
        }
    }
}

/// A number too large for a float: the trajectory ends there, as a divergence.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the log-density at this position exceeds the range of floats")]
pub struct Overflow;

impl LogpError for Overflow {
    fn is_recoverable(&self) -> bool {
        true
    }
}

impl HasDims for Posterior {
    fn dim_sizes(&self) -> HashMap<String, u64> {
        HashMap::from([("unconstrained_parameter".to_owned(), self.n_coordinates() as u64)])
    }
}

impl CpuLogpFunc for Posterior {
    type LogpError = Overflow;
    type FlowParameters = ();
    /// Nothing is derived from a position here.
    type ExpandedVector = Vec<f64>;

    fn dim(&self) -> usize {
        self.n_coordinates()
    }

    fn logp(
        &mut self,
        position: &[f64],
        gradient: &mut [f64],
    ) -> std::result::Result<f64, Self::LogpError> {
        self.log_density(position, gradient).ok_or(Overflow)
    }

    fn expand_vector<R: rand::Rng + ?Sized>(
        &mut self,
        _rng: &mut R,
        _position: &[f64],
    ) -> std::result::Result<Self::ExpandedVector, CpuMathError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::nuts::part::Layout;

    /// Central differences are off by the third derivative times the square of the step, and by
    /// rounding.
    const SLOPE: f64 = 1e-6;
    const STEP: f64 = 1e-5;
    /// Nodes and weights of the quadrature with three nodes, for a standard normal variable.
    const NODES: [f64; 3] = [-1.732_050_807_568_877_2, 0.0, 1.732_050_807_568_877_2];

    /// Two coefficients; five levels crossed with three, `n` trials a cell.
    fn posterior(cpu: Cpu, n: f64, kind: usize) -> Posterior {
        let sizes = [2, 5, 3];
        let mut codes = vec![Vec::new(); 3];
        let mut y = Vec::new();
        for cell in 0..30_u32 {
            for (codes, code) in codes.iter_mut().zip([cell % 2, cell / 6, cell / 2 % 3]) {
                codes.push(code);
            }
            y.push(if cell % 7 < 3 { n } else { 0.0 });
        }
        let counts = vec![n; 30];
        let likelihood = if kind == 0 {
            let codes = vec![0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2];
            Likelihood::Crossed(Crossed::new(&y, &counts, &codes, &sizes, 1).expect("sizes"))
        } else {
            let cells = Cells::new(&y, &counts, &codes.concat(), &sizes).expect("sizes");
            let groups: Vec<u32> = (0..30).map(|cell| cell / 2).collect();
            let log_weights = NODES.map(|x: f64| {
                let weight: f64 = if x == 0.0 { 2.0 / 3.0 } else { 1.0 / 6.0 };
                weight.ln() + 0.5 * x * x
            });
            match kind {
                1 => Likelihood::Cells(cells),
                _ => Likelihood::Nodes(
                    Nodes::new(&cells, &sizes, &groups, 15, &NODES, &log_weights).expect("sizes"),
                ),
            }
        };
        let n_parts = if kind > 1 { 3 } else { 2 };
        let parts = [5_u32, 3]
            .into_iter()
            .enumerate()
            .map(|(part, n_levels)| {
                let free: Vec<u32> = (1..n_levels).collect();
                let at: Vec<u32> = (0..n_levels).collect();
                let size = f64::from(n_levels);
                let mut normals = vec![size.powf(-0.5); n_levels as usize];
                normals[0] += 1.0;
                let norm = normals.iter().map(|x| x * x).sum::<f64>().sqrt();
                for x in &mut normals {
                    *x /= norm;
                }
                let mut shares = vec![0.0; n_parts];
                shares[part] = 1.0;
                Part::new(Layout {
                    n_levels: n_levels as usize,
                    free: &free,
                    bounds: &[0, n_levels],
                    at: &at,
                    normals: &normals,
                    information: &vec![1.3; free.len()],
                    pull: &vec![0.4; free.len()],
                    shares: &shares,
                })
                .expect("sizes")
            })
            .collect();
        let directions: [&[f64]; 2] = [&[5_f64.powf(-0.5), 0.0], &[3_f64.powf(-0.5), 0.0]];
        let fixed = Fixed::new(
            &[1.0, -0.5, 1.0, 0.5],
            &[0.2, -0.1],
            &[0.3, 0.1, 0.0, 0.4],
            &[6.25, 4.0],
            &directions,
        )
        .expect("sizes");
        let scales = vec![1.5; n_parts];
        Posterior::new(cpu, likelihood, fixed, parts, &scales).expect("sizes")
    }

    fn position(size: usize) -> Vec<f64> {
        let cycle = [0.3, -0.8, 0.9, 1.1, -0.6, 0.2, 0.7];
        cycle.into_iter().cycle().take(size).collect()
    }

    #[test]
    fn processors_give_the_same_bits() {
        for kind in 0..3 {
            for n in [1.0, 3.0, 40.0] {
                let values = [Cpu::plain(), Cpu::detect()].map(|cpu| {
                    let mut posterior = posterior(cpu, n, kind);
                    let position = position(posterior.n_coordinates());
                    let mut gradient = vec![0.0; position.len()];
                    let value = posterior.log_density(&position, &mut gradient).expect("finite");
                    gradient.push(value);
                    gradient.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
                });
                assert_eq!(values[0], values[1]);
            }
        }
    }

    #[test]
    fn gradients_are_slopes() {
        for kind in 0..2 {
            let mut posterior = posterior(Cpu::detect(), 3.0, kind);
            let at = position(posterior.n_coordinates());
            let mut gradient = vec![0.0; at.len()];
            posterior.log_density(&at, &mut gradient).expect("finite");
            let mut unused = gradient.clone();
            for (j, slope) in gradient.iter().enumerate() {
                let mut value = |step: f64| {
                    let mut at = at.clone();
                    at[j] += step;
                    posterior.log_density(&at, &mut unused).expect("finite")
                };
                let difference = (value(STEP) - value(-STEP)) / (2.0 * STEP);
                assert!((difference - slope).abs() < SLOPE, "{kind} {j}: {difference} {slope}");
            }
        }
    }

    #[test]
    fn what_no_float_holds_is_no_density() {
        for kind in [0, 2] {
            let mut posterior = posterior(Cpu::detect(), 1.0, kind);
            let mut position = position(posterior.n_coordinates());
            position[0] = 1e6;
            let mut gradient = vec![0.0; position.len()];
            assert_eq!(posterior.log_density(&position, &mut gradient), None);
            position[0] = f64::NAN;
            assert_eq!(posterior.log_density(&position, &mut gradient), None);
        }
    }
}
