//! Minus the log-likelihood of a generalised mixed model by the Laplace approximation, and its
//! exact gradient.
//!
//! With the most likely effects `v` of given parameters, minus the penalised log-likelihood `g`
//! there and its curvature `H`, it is `g + log det(H) / 2`. A parameter moves it directly, and by
//! way of `v`. With `s = H^-1 d(log det(H) / 2) / dv`, the latter is `-s' d^2 g / dv dparameter`, so
//! that one solution serves all parameters. The derivatives of the log determinant need `H^-1` on
//! the pattern of its factor only.

use super::cells::{Bounds, Outcome};
use super::dense::dot;
use super::effects::{Effects, Factors};
use super::modes::{Given, Modes};
use super::optimise::Objective;
use super::quadrature::{self, Rule};
use crate::cpu::Cpu;

/// The longest steps in a coefficient and in an entry of a factor.
const LONGEST: f64 = 2.0;
const LONGEST_OF_FACTORS: f64 = 0.5;

/// A generalised mixed model. Its parameters are the first threshold, the logarithms of the
/// distances of the others, the coefficients, then the lower triangle of each factor, row by row.
#[derive(Debug, Clone)]
pub struct Generalised {
    /// Regressors, (cells, coefficients) row by row.
    pub x: Vec<f64>,
    /// Coefficients.
    pub n_coefficients: usize,
    /// Outcomes.
    pub outcome: Outcome,
    /// Random part.
    pub effects: Effects,
    /// Nodes of the quadrature; none for the Laplace approximation.
    pub rule: Option<Rule>,
    /// Instructions to use.
    pub cpu: Cpu,
    /// The effects at the last parameters.
    pub modes: Modes,
    /// Factors of the covariance matrices at the last parameters.
    pub factors: Factors,
    bounds: Bounds,
    offset: Vec<f64>,
    covariance: Vec<f64>,
    /// The inverse of the curvature on the pattern of its factor, at the last parameters.
    pub inverse: Vec<f64>,
    variance: Vec<f64>,
    kept: Vec<f64>,
}

/// Thresholds from the first and the logarithms of their distances.
#[must_use]
pub fn thresholds(parameters: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::with_capacity(parameters.len());
    for &parameter in parameters {
        out.push(out.last().map_or(parameter, |last| last + libm::exp(parameter)));
    }
    out
}

/// Fills the factors from their lower triangles, row by row.
#[must_use]
pub fn unpack(parameters: &[f64], effects: &Effects) -> Factors {
    let mut rest = parameters.iter();
    (effects.parts.iter())
        .map(|part| {
            let mut factor = vec![0.0; part.width * part.width];
            for (r, row) in factor.chunks_mut(part.width).enumerate() {
                for (value, &parameter) in row[..=r].iter_mut().zip(rest.by_ref()) {
                    *value = parameter;
                }
            }
            factor
        })
        .collect()
}

/// The lower triangles of the factors, row by row.
pub fn pack(factors: &Factors, effects: &Effects, out: &mut [f64]) {
    let mut out = out.iter_mut();
    for (factor, part) in factors.iter().zip(&effects.parts) {
        for (r, row) in factor.chunks(part.width).enumerate() {
            for (&value, out) in row[..=r].iter().zip(out.by_ref()) {
                *out = value;
            }
        }
    }
}

impl Generalised {
    /// A model at effects of 0.
    #[must_use]
    pub fn new(
        (x, n_coefficients): (Vec<f64>, usize),
        outcome: Outcome,
        effects: Effects,
        rule: Option<Rule>,
        cpu: Cpu,
    ) -> Self {
        let n_cells = outcome.n_cells();
        Self {
            x,
            n_coefficients,
            rule,
            cpu,
            modes: Modes::new(&effects, n_cells),
            factors: (effects.parts.iter()).map(|part| vec![0.0; part.width.pow(2)]).collect(),
            bounds: Bounds::default(),
            offset: vec![0.0; n_cells],
            covariance: vec![0.0; effects.pattern.n_blocks],
            inverse: vec![0.0; effects.pattern.rows.len()],
            variance: vec![0.0; n_cells],
            kept: Vec::new(),
            outcome,
            effects,
        }
    }

    /// The cell whose fixed part of the linear predictor is largest, in size, at the last parameters.
    #[must_use]
    pub fn farthest(&self) -> (usize, f64) {
        let sizes = self.offset.iter().map(|offset| offset.abs()).enumerate();
        sizes.fold((0, 0.0), |largest, next| if next.1 > largest.1 { next } else { largest })
    }

    /// Factors by one step of the EM algorithm.
    #[must_use]
    pub fn averaged(&self) -> Factors {
        self.effects.averaged(&self.factors, &self.modes.u, &self.covariance)
    }

    /// Adds `X' e` to the gradient of the coefficients.
    fn add_regressors(&self, e: &[f64], gradient: &mut [f64]) {
        if self.n_coefficients > 0 {
            for (row, &e) in self.x.chunks(self.n_coefficients).zip(e) {
                for (gradient, &x) in gradient.iter_mut().zip(row) {
                    *gradient += x * e;
                }
            }
        }
    }

    /// Turns the gradient in the thresholds into that in their parameters.
    fn chain(parameters: &[f64], gradient: &mut [f64]) {
        let mut above = 0.0;
        for (gradient, &parameter) in gradient.iter_mut().zip(parameters).skip(1).rev() {
            above += *gradient;
            *gradient = above * libm::exp(parameter);
        }
        if let Some(first) = gradient.first_mut() {
            *first += above;
        }
    }

    /// The gradient at the effects that were found.
    fn differentiate(
        &mut self,
        parameters: &[f64],
        direct: quadrature::Direct,
        gradient: &mut [f64],
    ) {
        let (thresholds, rest) = gradient.split_at_mut(self.outcome.n_thresholds());
        let (coefficients, deviations) = rest.split_at_mut(self.n_coefficients);
        let modes = &self.modes;
        let mut by_factor = direct.factors;
        self.effects.covariances(
            &self.factors,
            (&modes.blocks, &self.inverse),
            &mut self.covariance,
            &mut by_factor,
        );
        self.effects.variances(&self.covariance, &mut self.variance);
        // Half the derivative of the log determinant in the linear predictor of each cell.
        let mut e: Vec<f64> = (modes.cells.slope.iter().zip(&self.variance))
            .map(|(slope, variance)| 0.5 * slope * variance)
            .collect();
        let mut collected = vec![0.0; self.effects.pattern.size];
        self.effects.collect(&e, &mut collected);
        let mut s = vec![0.0; self.effects.pattern.size];
        self.effects.scale_back(&self.factors, &collected, &mut s);
        for (s, direct) in s.iter_mut().zip(&direct.effects) {
            *s += direct;
        }
        modes.factor.solve(&self.effects.pattern, &mut s);
        let mut spread = vec![0.0; self.effects.pattern.size];
        self.effects.scale(&self.factors, &s, &mut spread);
        let mut moved = vec![0.0; e.len()];
        self.effects.add_to(&spread, &mut moved);
        for variance in &mut self.variance {
            *variance *= 0.5;
        }
        self.outcome.add_curved(&self.bounds, &modes.eta, (&self.variance, &moved), thresholds);
        for (at, cell) in direct.thresholds.iter().zip(&mut *thresholds) {
            *cell += at;
        }
        Self::chain(&parameters[..thresholds.len()], thresholds);
        for ((e, weight), moved) in e.iter_mut().zip(&modes.cells.weight).zip(&moved) {
            *e -= weight * moved;
        }
        self.effects.collect(&e, &mut collected);
        self.effects.add_outer(&collected, &modes.v, &mut by_factor);
        self.effects.add_outer(&modes.score, &s, &mut by_factor);
        pack(&by_factor, &self.effects, deviations);
        for (e, direct) in e.iter_mut().zip(&direct.predictor) {
            *e += direct;
        }
        self.add_regressors(&e, coefficients);
    }
}

impl Objective for Generalised {
    fn longest(&self, parameter: usize, _: f64) -> f64 {
        let fixed = self.outcome.n_thresholds() + self.n_coefficients;
        if parameter < fixed { LONGEST } else { LONGEST_OF_FACTORS }
    }

    fn keep(&mut self) {
        self.kept.clone_from(&self.modes.v);
    }

    fn recall(&mut self, mirrored: bool) {
        for (v, kept) in self.modes.v.iter_mut().zip(&self.kept) {
            *v = if mirrored { 2.0 * kept - *v } else { *kept };
        }
    }

    fn size(&self) -> usize {
        let triangles = self.effects.parts.iter().map(|part| part.width * (part.width + 1) / 2);
        self.outcome.n_thresholds() + self.n_coefficients + triangles.sum::<usize>()
    }

    fn evaluate(&mut self, parameters: &[f64], gradient: &mut [f64]) -> f64 {
        let (first, rest) = parameters.split_at(self.outcome.n_thresholds());
        let (coefficients, deviations) = rest.split_at(self.n_coefficients);
        self.outcome.bound(&thresholds(first), &mut self.bounds);
        self.factors = unpack(deviations, &self.effects);
        if self.n_coefficients > 0 {
            for (offset, row) in self.offset.iter_mut().zip(self.x.chunks(self.n_coefficients)) {
                *offset = dot(row, coefficients);
            }
        }
        let given = Given {
            outcome: &self.outcome,
            bounds: &self.bounds,
            effects: &self.effects,
            factors: &self.factors,
            offset: &self.offset,
            cpu: self.cpu,
        };
        gradient.fill(0.0);
        let Some(value) = self.modes.search(&given) else {
            gradient.fill(f64::NAN);
            return f64::NAN;
        };
        let pattern = &self.effects.pattern;
        self.modes.factor.inverse(pattern, &mut self.inverse);
        let (value, direct) = if let Some(rule) = &self.rule {
            quadrature::integrate(&given, &self.modes, rule, &mut self.inverse)
        } else {
            let value = value + 0.5 * self.modes.factor.log_determinant(pattern);
            (value, quadrature::Direct::at_modes(&given, &self.modes))
        };
        self.differentiate(parameters, direct, gradient);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::super::dense::real;
    use super::super::pattern::Part;
    use super::*;

    /// Numbers in (-1, 1) without a pattern.
    fn number(i: u32) -> f64 {
        f64::from((i * 7919 + 13) % 1009) / 504.5 - 1.0
    }

    fn parts(n: u32, sloped: bool) -> Vec<Part> {
        let first = if sloped {
            let z = (0..n).flat_map(|i| [1.0, number(3 * i)]).collect();
            Part { codes: (0..n).map(|i| i % 7).collect(), z, width: 2, n_levels: 7 }
        } else {
            Part { codes: (0..n).map(|i| i % 7).collect(), z: Vec::new(), width: 1, n_levels: 7 }
        };
        let second =
            Part { codes: (0..n).map(|i| i % 4).collect(), z: Vec::new(), width: 1, n_levels: 4 };
        vec![first, second]
    }

    fn model(ordinal: bool, parts: Vec<Part>, rule: Option<Rule>) -> Generalised {
        let n = 60;
        let rows: Vec<f64> = (0..n).map(|i| f64::from(i % 3 + 1)).collect();
        let outcome = if ordinal {
            Outcome::Ordinal { level: (0..n).map(|i| i * 5 % 4).collect(), rows, n_levels: 4 }
        } else {
            let successes = (0..n).map(|i| f64::from((i * 7 % 5).min(i % 3 + 1))).collect();
            Outcome::Binomial { successes, trials: rows }
        };
        let x = (0..2 * n).map(number).collect();
        let effects = Effects::new(parts, 60).expect("small");
        Generalised::new((x, 2), outcome, effects, rule, Cpu::plain())
    }

    fn check(mut model: Generalised) {
        let size = model.size();
        let n_thresholds = model.outcome.n_thresholds();
        let at: Vec<f64> = (0..size)
            .map(|k| if k < n_thresholds { -0.4 } else { 0.8 - 0.2 * real(k - n_thresholds) })
            .collect();
        let mut gradient = vec![0.0; size];
        let value = model.evaluate(&at, &mut gradient);
        let mut unused = vec![0.0; size];
        for k in 0..size {
            let mut value_at = |step: f64| {
                let mut moved = at.clone();
                moved[k] += step;
                model.evaluate(&moved, &mut unused)
            };
            let near = value_at(1e-3) - value_at(-1e-3);
            let far = value_at(2e-3) - value_at(-2e-3);
            let slope = (8.0 * near - far) / 12e-3;
            assert!(
                (slope - gradient[k]).abs() < 1e-8 * (1.0 + slope.abs()),
                "parameter {k} of {size}: {slope} {}",
                gradient[k]
            );
        }
        let again = model.evaluate(&at, &mut unused);
        assert!((again - value).abs() < 1e-11 * value.abs());
    }

    #[test]
    fn the_gradient_is_that_of_the_value() {
        for ordinal in [false, true] {
            for sloped in [false, true] {
                check(model(ordinal, parts(60, sloped), None));
            }
            check(model(ordinal, Vec::new(), None));
        }
    }

    #[test]
    fn the_gradient_of_a_quadrature_is_that_of_the_value() {
        // Not the nodes of a rule: the gradient has to be right for any.
        let rule = Rule { nodes: vec![-1.5, 0.1, 1.3], log_weights: vec![-1.2, -0.5, -1.6] };
        for ordinal in [false, true] {
            let mut part = parts(60, false).swap_remove(0);
            check(model(ordinal, vec![part.clone()], Some(rule.clone())));
            part.z = (0..60).map(|i| 1.0 + number(i)).collect();
            check(model(ordinal, vec![part], Some(rule.clone())));
        }
    }

    #[test]
    fn thresholds_rise() {
        assert_eq!(thresholds(&[1.0, 0.0, f64::ln(2.0)]), [1.0, 2.0, 4.0]);
        assert!(thresholds(&[]).is_empty());
    }
}
