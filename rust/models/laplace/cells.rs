//! Log-likelihood of cells and its derivatives in the linear predictor.
//!
//! With `F` the logistic function and `f = F (1 - F)` its density, a cell of an ordered outcome
//! between two thresholds has the chance `F(a) - F(b) = F(a) (1 - F(b)) (1 - exp(b - a))`, with `a`
//! the upper and `b` the lower threshold less the linear predictor. The last factor does not depend
//! on the predictor, so that the score is `F(a) + F(b) - 1`, the weight `f(a) + f(b)`.

use crate::cpu::{Cpu, on_cpu};

/// Stands for an infinite threshold: the logistic function is 0 or 1 there.
const FAR: f64 = 1e4;

/// Adding it rounds to an integer, which is then in the last bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// The logarithm of 2, in two parts: the first has zeros at its end, so that whole multiples of it are
/// exact.
const LOG_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];

/// Outcomes of the cells.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Successes and trials.
    Binomial {
        /// Successes.
        successes: Vec<f64>,
        /// Trials.
        trials: Vec<f64>,
    },
    /// An ordered level that all rows of a cell have.
    Ordinal {
        /// The level.
        level: Vec<u32>,
        /// Rows.
        rows: Vec<f64>,
        /// Levels.
        n_levels: usize,
    },
}

/// Thresholds as the cells meet them.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// Upper threshold of each cell.
    upper: Vec<f64>,
    /// Lower threshold of each cell.
    lower: Vec<f64>,
    /// For each level the derivative of its constant in the distance of its thresholds.
    kappa: Vec<f64>,
    /// What the constants add to the log-likelihood.
    constant: f64,
}

/// Log-likelihood of each cell and its derivatives.
#[derive(Debug, Clone)]
pub struct Derivatives {
    /// Log-likelihood, but for constants of the level.
    pub value: Vec<f64>,
    /// First derivative in the linear predictor.
    pub score: Vec<f64>,
    /// Minus the second derivative.
    pub weight: Vec<f64>,
    /// Derivative of the weight.
    pub slope: Vec<f64>,
}

impl Derivatives {
    /// Zeros.
    #[must_use]
    pub fn new(n_cells: usize) -> Self {
        let zeros = vec![0.0; n_cells];
        Self { value: zeros.clone(), score: zeros.clone(), weight: zeros.clone(), slope: zeros }
    }
}

/// `exp(x)` of `x <= 0`, to one unit in the last place; 0 is never reached.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn exp(x: f64) -> f64 {
    let x = if x > -708.0 { x } else { -708.0 };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let power = shifted - ROUND;
    let r = (x - power * LOG_2[0]) - power * LOG_2[1];
    let mut series = 1.0 / 6_227_020_800.0;
    for factorial in [
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40_320.0,
        5_040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
        1.0,
        1.0,
    ] {
        series = series * r + 1.0 / factorial;
    }
    series * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0_f64.to_bits()))
}

/// `log(1 + t)` of `t` from 0 to 1.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn log_of_more(t: f64) -> f64 {
    let s = t / (2.0 + t);
    let square = s * s;
    let mut series = 1.0 / 35.0;
    for odd in
        [33.0, 31.0, 29.0, 27.0, 25.0, 23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0]
    {
        series = series * square + 1.0 / odd;
    }
    2.0 * (s + s * square * series)
}

/// The logistic function at a point.
#[derive(Debug, Clone, Copy)]
struct Logistic {
    /// `F(x)`.
    value: f64,
    /// `1 - F(x)`.
    other: f64,
    /// `exp(-|x|)`.
    small: f64,
}

impl Logistic {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled for the features of its caller"
    )]
    fn at(x: f64) -> Self {
        let small = exp(-x.abs());
        let large = 1.0 / (1.0 + small);
        let (value, other) = if x >= 0.0 { (large, small * large) } else { (small * large, large) };
        Self { value, other, small }
    }

    /// `f(x)`.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled for the features of its caller"
    )]
    fn density(self) -> f64 {
        self.value * self.other
    }

    /// `f'(x)`.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled for the features of its caller"
    )]
    fn slope(self) -> f64 {
        self.density() * (self.other - self.value)
    }
}

/// The smaller of a number and 0.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn negative(x: f64) -> f64 {
    if x < 0.0 { x } else { 0.0 }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn binomial_cells<const VALUES: bool>(
    successes: &[f64],
    trials: &[f64],
    eta: &[f64],
    out: &mut Derivatives,
) {
    let results =
        (out.value.iter_mut().zip(&mut out.score)).zip(out.weight.iter_mut().zip(&mut out.slope));
    let cells = successes.iter().zip(trials).zip(eta);
    for (((value, score), (weight, slope)), ((&y, &m), &eta)) in results.zip(cells) {
        let logistic = Logistic::at(eta);
        if VALUES {
            // y eta - m log(1 + exp(eta)), without a difference of large numbers.
            let softplus = log_of_more(logistic.small);
            *value = y * negative(eta) - (m - y) * negative(-eta).abs() - m * softplus;
        }
        *score = y * logistic.other - (m - y) * logistic.value;
        *weight = m * logistic.density();
        *slope = m * logistic.slope();
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn ordinal_cells<const VALUES: bool>(
    rows: &[f64],
    bounds: &Bounds,
    eta: &[f64],
    out: &mut Derivatives,
) {
    let results =
        (out.value.iter_mut().zip(&mut out.score)).zip(out.weight.iter_mut().zip(&mut out.slope));
    let cells = (bounds.upper.iter().zip(&bounds.lower)).zip(rows.iter().zip(eta));
    for (((value, score), (weight, slope)), ((&upper, &lower), (&m, &eta))) in results.zip(cells) {
        let (a, b) = (upper - eta, lower - eta);
        let (above, below) = (Logistic::at(a), Logistic::at(b));
        if VALUES {
            let logs = log_of_more(above.small) + log_of_more(below.small);
            *value = m * (negative(a) + negative(-b) - logs);
        }
        *score = m * (below.value - above.other);
        *weight = m * (above.density() + below.density());
        *slope = -m * (above.slope() + below.slope());
    }
}

fn binomial_plain<const VALUES: bool>(
    successes: &[f64],
    trials: &[f64],
    eta: &[f64],
    out: &mut Derivatives,
) {
    binomial_cells::<VALUES>(successes, trials, eta, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn binomial_wide<const VALUES: bool>(
    successes: &[f64],
    trials: &[f64],
    eta: &[f64],
    out: &mut Derivatives,
) {
    binomial_cells::<VALUES>(successes, trials, eta, out);
}

fn ordinal_plain<const VALUES: bool>(
    rows: &[f64],
    bounds: &Bounds,
    eta: &[f64],
    out: &mut Derivatives,
) {
    ordinal_cells::<VALUES>(rows, bounds, eta, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn ordinal_wide<const VALUES: bool>(
    rows: &[f64],
    bounds: &Bounds,
    eta: &[f64],
    out: &mut Derivatives,
) {
    ordinal_cells::<VALUES>(rows, bounds, eta, out);
}

impl Outcome {
    /// Cells.
    #[must_use]
    pub fn n_cells(&self) -> usize {
        match self {
            Self::Binomial { trials, .. } => trials.len(),
            Self::Ordinal { rows, .. } => rows.len(),
        }
    }

    /// Rows of each cell.
    #[must_use]
    pub fn rows(&self) -> &[f64] {
        match self {
            Self::Binomial { trials, .. } => trials,
            Self::Ordinal { rows, .. } => rows,
        }
    }

    /// Thresholds.
    #[must_use]
    pub fn n_thresholds(&self) -> usize {
        match self {
            Self::Binomial { .. } => 0,
            Self::Ordinal { n_levels, .. } => n_levels - 1,
        }
    }

    /// Lays the thresholds out by cell.
    pub fn bound(&self, thresholds: &[f64], bounds: &mut Bounds) {
        let Self::Ordinal { level, rows, n_levels } = self else { return };
        let last = n_levels - 1;
        let upper = |level: usize| if level < last { thresholds[level] } else { FAR };
        let lower = |level: usize| if level > 0 { thresholds[level - 1] } else { -FAR };
        let mut logs = vec![0.0; *n_levels];
        bounds.kappa = vec![0.0; *n_levels];
        for level in 1..last {
            let distance = thresholds[level] - thresholds[level - 1];
            logs[level] = libm::log(-libm::expm1(-distance));
            bounds.kappa[level] = 1.0 / libm::expm1(distance);
        }
        bounds.upper = level.iter().map(|&level| upper(level as usize)).collect();
        bounds.lower = level.iter().map(|&level| lower(level as usize)).collect();
        bounds.constant =
            level.iter().zip(rows).map(|(&level, rows)| rows * logs[level as usize]).sum();
    }

    /// What the levels add to the sum of the values of the cells.
    #[must_use]
    pub fn constant(&self, bounds: &Bounds) -> f64 {
        match self {
            Self::Binomial { .. } => 0.0,
            Self::Ordinal { .. } => bounds.constant,
        }
    }

    /// Log-likelihood and derivatives of all cells.
    pub fn evaluate(&self, cpu: Cpu, bounds: &Bounds, eta: &[f64], out: &mut Derivatives) {
        self.fill::<true>(cpu, bounds, eta, out);
    }

    /// The derivatives alone.
    pub fn differentiate(&self, cpu: Cpu, bounds: &Bounds, eta: &[f64], out: &mut Derivatives) {
        self.fill::<false>(cpu, bounds, eta, out);
    }

    fn fill<const VALUES: bool>(
        &self,
        cpu: Cpu,
        bounds: &Bounds,
        eta: &[f64],
        out: &mut Derivatives,
    ) {
        match self {
            Self::Binomial { successes, trials } => {
                let (plain, wide) = (binomial_plain::<VALUES>, binomial_wide::<VALUES>);
                on_cpu!(cpu, plain, wide, (successes, trials, eta, out));
            }
            Self::Ordinal { rows, .. } => {
                let (plain, wide) = (ordinal_plain::<VALUES>, ordinal_wide::<VALUES>);
                on_cpu!(cpu, plain, wide, (rows, bounds, eta, out));
            }
        }
    }

    /// Adds to `gradient`, that of the thresholds, minus the derivatives of the log-likelihood of
    /// the cells, each times a weight.
    pub fn add_scores(&self, bounds: &Bounds, eta: &[f64], weight: &[f64], gradient: &mut [f64]) {
        let Self::Ordinal { level, rows, n_levels } = self else { return };
        for (cell, &level) in level.iter().enumerate() {
            let (level, rows) = (level as usize, rows[cell] * weight[cell]);
            if level + 1 < *n_levels {
                let above = Logistic::at(bounds.upper[cell] - eta[cell]);
                gradient[level] -= rows * (above.other + bounds.kappa[level]);
            }
            if level > 0 {
                let below = Logistic::at(bounds.lower[cell] - eta[cell]);
                gradient[level - 1] += rows * (below.value + bounds.kappa[level]);
            }
        }
    }

    /// Adds to `gradient`, that of the thresholds, what comes of the weights, each times `half`, and
    /// of the scores, each times `moved`.
    pub fn add_curved(
        &self,
        bounds: &Bounds,
        eta: &[f64],
        (half, moved): (&[f64], &[f64]),
        gradient: &mut [f64],
    ) {
        let Self::Ordinal { level, rows, n_levels } = self else { return };
        for (cell, &level) in level.iter().enumerate() {
            let (level, rows) = (level as usize, rows[cell]);
            let part = |x: f64| {
                let logistic = Logistic::at(x);
                rows * (half[cell] * logistic.slope() + moved[cell] * logistic.density())
            };
            if level + 1 < *n_levels {
                gradient[level] += part(bounds.upper[cell] - eta[cell]);
            }
            if level > 0 {
                gradient[level - 1] += part(bounds.lower[cell] - eta[cell]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_and_logarithms_are_those_of_the_library() {
        for i in 0..20_000 {
            let x = -f64::from(i) * 0.035;
            let (ours, theirs) = (exp(x), libm::exp(x));
            assert!((ours - theirs).abs() <= 5e-16 * theirs, "exp({x}): {ours} {theirs}");
            let t = theirs;
            let (ours, theirs) = (log_of_more(t), libm::log1p(t));
            assert!((ours - theirs).abs() <= 5e-16 * theirs, "log1p({t}): {ours} {theirs}");
        }
    }

    #[test]
    fn registers_do_not_matter() {
        let eta: Vec<f64> = (0..103).map(|i| f64::from(i) * 0.3 - 15.0).collect();
        let trials: Vec<f64> = (0..103).map(|i| f64::from(i % 5 + 1)).collect();
        let successes: Vec<f64> = (0..103).map(|i| f64::from(i % 2)).collect();
        let level = (0..103).map(|i| i % 4).collect();
        let binomial = Outcome::Binomial { successes, trials: trials.clone() };
        let ordinal = Outcome::Ordinal { level, rows: trials, n_levels: 4 };
        for outcome in [binomial, ordinal] {
            let mut bounds = Bounds::default();
            outcome.bound(&[-1.0, 0.5, 2.0], &mut bounds);
            let (mut plain, mut wide) = (Derivatives::new(103), Derivatives::new(103));
            outcome.evaluate(Cpu::plain(), &bounds, &eta, &mut plain);
            outcome.evaluate(Cpu::detect(), &bounds, &eta, &mut wide);
            assert_eq!(plain.value, wide.value);
            assert_eq!(plain.slope, wide.slope);
            // Each derivative is that of the one before.
            let step = 1e-5;
            let moved = |by: f64| {
                let mut out = Derivatives::new(103);
                let eta: Vec<f64> = eta.iter().map(|eta| eta + by).collect();
                outcome.evaluate(Cpu::plain(), &bounds, &eta, &mut out);
                out
            };
            let (up, down) = (moved(step), moved(-step));
            for cell in 0..103 {
                let slope = |f: &Vec<f64>, g: &Vec<f64>| (f[cell] - g[cell]) / (2.0 * step);
                assert!((slope(&up.value, &down.value) - plain.score[cell]).abs() < 1e-7);
                assert!((slope(&up.score, &down.score) + plain.weight[cell]).abs() < 1e-8);
                assert!((slope(&up.weight, &down.weight) - plain.slope[cell]).abs() < 1e-8);
            }
        }
    }

    #[test]
    fn chances_of_the_levels_sum_to_one() {
        let level = (0..4).collect();
        let outcome = Outcome::Ordinal { level, rows: vec![1.0; 4], n_levels: 4 };
        let thresholds = [-1.0, 0.5, 2.0];
        let mut bounds = Bounds::default();
        outcome.bound(&thresholds, &mut bounds);
        let mut out = Derivatives::new(4);
        outcome.evaluate(Cpu::plain(), &bounds, &[0.3; 4], &mut out);
        let gaps = [0.0, -f64::exp_m1(-1.5), -f64::exp_m1(-1.5), 0.0];
        let chance =
            |i: usize| f64::exp(out.value[i]) * if i.is_multiple_of(3) { 1.0 } else { gaps[i] };
        let total: f64 = (0..4).map(chance).sum();
        assert!((total - 1.0).abs() < 1e-15);
        assert!((chance(0) - 1.0 / (1.0 + f64::exp(1.3))).abs() < 1e-15);
    }
}
