//! The most likely effects at given parameters, by Newton's method.

use super::cells::{Bounds, Derivatives, Outcome};
use super::dense::{dot, sum};
use super::effects::{Effects, Factors};
use super::factor::Factor;
use crate::cpu::Cpu;

/// Newton steps before the search is given up.
const MAX_STEPS: usize = 200;

/// Halvings of a step.
const MAX_HALVINGS: usize = 40;

/// Squared length of a Newton step, in conditional standard deviations, below which it is the
/// last: the next one would be as long as its square.
const LAST: f64 = 1e-9;

/// Change of all linear predictors with which a whole step cannot but raise the penalised
/// log-likelihood, as no weight changes by much.
const SAFE: f64 = 0.5;

/// Share of the penalised log-likelihood that is rounding.
const ROUNDING: f64 = 1e-13;

/// The effects, and all that is known of the cells there.
#[derive(Debug, Clone)]
pub struct Modes {
    /// Standardised effects, in the order of elimination.
    pub v: Vec<f64>,
    /// Effects `u = L v`.
    pub u: Vec<f64>,
    /// Linear predictors.
    pub eta: Vec<f64>,
    /// Log-likelihood of the cells.
    pub cells: Derivatives,
    /// `Z'` times the scores.
    pub score: Vec<f64>,
    /// Blocks of `Z'WZ`.
    pub blocks: Vec<f64>,
    /// Factor of the curvature `H`.
    pub factor: Factor,
    before: Vec<f64>,
    from: Vec<f64>,
    slope: Vec<f64>,
    step: Vec<f64>,
}

/// What stays the same while the effects are searched.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Outcomes.
    pub outcome: &'a Outcome,
    /// Thresholds.
    pub bounds: &'a Bounds,
    /// Random part.
    pub effects: &'a Effects,
    /// Factors of the covariance matrices.
    pub factors: &'a Factors,
    /// Fixed part of the linear predictor.
    pub offset: &'a [f64],
    /// Instructions to use.
    pub cpu: Cpu,
}

impl Modes {
    /// Effects of 0.
    #[must_use]
    pub fn new(effects: &Effects, n_cells: usize) -> Self {
        let zeros = vec![0.0; effects.pattern.size];
        Self {
            v: zeros.clone(),
            u: zeros.clone(),
            eta: vec![0.0; n_cells],
            cells: Derivatives::new(n_cells),
            score: zeros.clone(),
            blocks: vec![0.0; effects.pattern.n_blocks],
            factor: Factor::new(&effects.pattern),
            before: vec![0.0; n_cells],
            from: zeros.clone(),
            slope: zeros.clone(),
            step: zeros,
        }
    }

    /// Moves the linear predictors to the effects `v`.
    fn predict(&mut self, given: &Given<'_>) {
        given.effects.scale(given.factors, &self.v, &mut self.u);
        self.eta.copy_from_slice(given.offset);
        given.effects.add_to(&self.u, &mut self.eta);
    }

    /// Minus the penalised log-likelihood at the effects `v`, with all derivatives.
    fn penalised(&mut self, given: &Given<'_>) -> f64 {
        self.predict(given);
        given.outcome.evaluate(given.cpu, given.bounds, &self.eta, &mut self.cells);
        let constant = given.outcome.constant(given.bounds);
        0.5 * dot(&self.v, &self.v) - sum(&self.cells.value) - constant
    }

    /// Score and curvature at the effects; false where the curvature cannot be factorised.
    fn curvature(&mut self, given: &Given<'_>) -> bool {
        given.effects.collect(&self.cells.score, &mut self.score);
        given.effects.blocks(&self.cells.weight, &mut self.blocks);
        given.effects.curvature(given.factors, &self.blocks, &mut self.factor);
        self.factor.factorise(&given.effects.pattern)
    }

    /// Moves to the most likely effects, from those of the last call, and returns minus the
    /// penalised log-likelihood there; none where the search fails.
    pub fn search(&mut self, given: &Given<'_>) -> Option<f64> {
        let none = given.factors.iter().flatten().all(|&value| value == 0.0);
        if none || self.v.iter().any(|v| !v.is_finite()) {
            self.v.fill(0.0);
        }
        self.predict(given);
        given.outcome.differentiate(given.cpu, given.bounds, &self.eta, &mut self.cells);
        let mut value = None;
        for _ in 0..MAX_STEPS {
            if !self.curvature(given) {
                return None;
            }
            let squared = self.newton(given);
            if !squared.is_finite() {
                return None;
            }
            if squared == 0.0 {
                return Some(value.unwrap_or_else(|| self.penalised(given)));
            }
            if squared < LAST {
                self.advance(1.0);
                let value = self.penalised(given);
                return self.curvature(given).then_some(value);
            }
            self.advance(1.0);
            self.before.copy_from_slice(&self.eta);
            self.predict(given);
            let moved = self.eta.iter().zip(&self.before).map(|(after, before)| after - before);
            if moved.fold(0.0, |largest, moved: f64| f64::max(largest, moved.abs())) < SAFE {
                given.outcome.differentiate(given.cpu, given.bounds, &self.eta, &mut self.cells);
                value = None;
                continue;
            }
            self.advance(0.0);
            let before = value.unwrap_or_else(|| self.penalised(given));
            value = Some(self.descend(given, before, squared)?);
        }
        None
    }

    /// Fills the Newton step, and returns its squared length.
    fn newton(&mut self, given: &Given<'_>) -> f64 {
        self.from.copy_from_slice(&self.v);
        given.effects.scale_back(given.factors, &self.score, &mut self.step);
        for (step, &v) in self.step.iter_mut().zip(&self.v) {
            *step -= v;
        }
        self.slope.copy_from_slice(&self.step);
        self.factor.solve(&given.effects.pattern, &mut self.step);
        dot(&self.slope, &self.step)
    }

    /// Goes a share of the step.
    fn advance(&mut self, length: f64) {
        for ((v, &from), &step) in self.v.iter_mut().zip(&self.from).zip(&self.step) {
            *v = from + length * step;
        }
    }

    /// Goes so far along the step that the penalised log-likelihood rises; none where it never does.
    fn descend(&mut self, given: &Given<'_>, before: f64, squared: f64) -> Option<f64> {
        let slack = ROUNDING * (1.0 + before.abs());
        let mut length = 1.0;
        for _ in 0..MAX_HALVINGS {
            self.advance(length);
            let next = self.penalised(given);
            if next <= before - 1e-4 * length * squared + slack {
                return Some(next);
            }
            length *= 0.5;
        }
        None
    }
}
