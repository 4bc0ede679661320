//! Adaptive Gauss-Hermite quadrature over the effects of one grouping.
//!
//! The integral over the effect `v` of a level is taken at nodes `v_k = mode + x_k / sqrt(H)`, with
//! `H` the curvature at the mode: it is the sum of `w_k exp(l_k - v_k^2 / 2 + x_k^2 / 2) / sqrt(H)`,
//! with `l_k` the log-likelihood of the cells of the level, and weights `w_k` that sum to 1. One
//! node is the Laplace approximation. The gradient is that of this sum, nodes moving with the mode
//! and the curvature (Liu and Pierce 1994, "A note on Gauss-Hermite quadrature", Biometrika
//! 81(3):624-629).

use super::cells::Derivatives;
use super::dense::dot;
use super::effects::Factors;
use super::modes::{Given, Modes};

/// Nodes for a standard normal variable.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The nodes.
    pub nodes: Vec<f64>,
    /// Logarithms of the weights, which sum to 1.
    pub log_weights: Vec<f64>,
}

/// Derivatives of minus the log-likelihood that do not go by way of the curvature or the modes.
#[derive(Debug, Clone)]
pub struct Direct {
    /// In the linear predictor of each cell.
    pub predictor: Vec<f64>,
    /// In the standardised effects: 0 at modes, other than 0 for nodes around them.
    pub effects: Vec<f64>,
    /// In the factors.
    pub factors: Factors,
    /// In the thresholds.
    pub thresholds: Vec<f64>,
}

impl Direct {
    /// Those of the penalised log-likelihood.
    #[must_use]
    pub fn at_modes(given: &Given<'_>, modes: &Modes) -> Self {
        let mut thresholds = vec![0.0; given.outcome.n_thresholds()];
        let ones = vec![1.0; modes.eta.len()];
        given.outcome.add_scores(given.bounds, &modes.eta, &ones, &mut thresholds);
        let mut factors = zeros(given);
        let negative: Vec<f64> = modes.score.iter().map(|score| -score).collect();
        given.effects.add_outer(&negative, &modes.v, &mut factors);
        let predictor = modes.cells.score.iter().map(|score| -score).collect();
        Self { predictor, effects: Vec::new(), factors, thresholds }
    }
}

/// A gradient in the factors.
fn zeros(given: &Given<'_>) -> Factors {
    given.factors.iter().map(|factor| vec![0.0; factor.len()]).collect()
}

/// The cells at one node of every level.
struct AtNode<'a> {
    given: &'a Given<'a>,
    u: Vec<f64>,
    eta: Vec<f64>,
    cells: Derivatives,
    score: Vec<f64>,
    value: Vec<f64>,
}

impl AtNode<'_> {
    /// Moves all effects to `v`.
    fn move_to(&mut self, v: &[f64]) {
        let effects = self.given.effects;
        effects.scale(self.given.factors, v, &mut self.u);
        self.eta.copy_from_slice(self.given.offset);
        effects.add_to(&self.u, &mut self.eta);
        let outcome = self.given.outcome;
        outcome.evaluate(self.given.cpu, self.given.bounds, &self.eta, &mut self.cells);
        effects.collect(&self.cells.score, &mut self.score);
        effects.totals(&self.cells.value, &mut self.value);
    }
}

/// Minus the log-likelihood and its direct derivatives. `inverse`, on entry the inverse of the
/// curvature, leaves as twice the derivative of minus the log-likelihood in the curvature.
pub fn integrate(
    given: &Given<'_>,
    modes: &Modes,
    rule: &Rule,
    inverse: &mut [f64],
) -> (f64, Direct) {
    let n_levels = modes.v.len();
    let mut at = AtNode {
        given,
        u: modes.u.clone(),
        eta: modes.eta.clone(),
        cells: modes.cells.clone(),
        score: modes.score.clone(),
        value: vec![0.0; n_levels],
    };
    // Each node is visited twice, as there may be too many cells to keep what was found.
    let roots: Vec<f64> = inverse.iter().map(|inverse| inverse.sqrt()).collect();
    let place = |node: f64| -> Vec<f64> {
        modes.v.iter().zip(&roots).map(|(mode, root)| mode + node * root).collect()
    };
    let deviation = given.factors[0][0];
    let n_nodes = rule.nodes.len();
    let mut logs = vec![0.0; n_levels * n_nodes];
    let mut slopes = vec![0.0; n_levels * n_nodes];
    for (k, (&node, &log_weight)) in rule.nodes.iter().zip(&rule.log_weights).enumerate() {
        let v = place(node);
        at.move_to(&v);
        for (level, &v) in v.iter().enumerate() {
            logs[level * n_nodes + k] =
                at.value[level] - 0.5 * v * v + 0.5 * node * node + log_weight;
            slopes[level * n_nodes + k] = deviation * at.score[level] - v;
        }
    }
    let mut value = -given.outcome.constant(given.bounds);
    let mut by_effect = vec![0.0; n_levels];
    for level in 0..n_levels {
        let range = level * n_nodes..(level + 1) * n_nodes;
        let (logs, slopes) = (&mut logs[range.clone()], &slopes[range]);
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for log in logs.iter_mut() {
            *log = libm::exp(*log - largest);
        }
        let total: f64 = logs.iter().sum();
        value -= largest + libm::log(total) + libm::log(roots[level]);
        for share in logs.iter_mut() {
            *share /= total;
        }
        by_effect[level] = -dot(logs, slopes);
        let spread: f64 =
            (logs.iter().zip(slopes).zip(&rule.nodes)).map(|((p, slope), x)| p * slope * x).sum();
        // d v_k / d H is -x_k H^(-3/2) / 2, and d log sqrt(H) / d H is 1 / (2 H).
        let root = roots[level];
        inverse[level] = spread * root.powi(3) + root * root;
    }
    let mut direct = Direct {
        predictor: vec![0.0; modes.eta.len()],
        effects: by_effect,
        factors: zeros(given),
        thresholds: vec![0.0; given.outcome.n_thresholds()],
    };
    let mut weight = vec![0.0; modes.eta.len()];
    for (k, &node) in rule.nodes.iter().enumerate() {
        let v = place(node);
        at.move_to(&v);
        given.effects.of_levels(|level| logs[level * n_nodes + k], &mut weight);
        for ((sum, score), weight) in direct.predictor.iter_mut().zip(&at.cells.score).zip(&weight)
        {
            *sum -= weight * score;
        }
        for (level, &v) in v.iter().enumerate() {
            direct.factors[0][0] -= logs[level * n_nodes + k] * at.score[level] * v;
        }
        given.outcome.add_scores(given.bounds, &at.eta, &weight, &mut direct.thresholds);
    }
    (value, direct)
}
