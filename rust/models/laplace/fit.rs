//! From a start to a maximum, with variances of zero on the way.

use super::optimise::{Ended, Point, Search};
use super::{Data, Ending, Fit, Response, generalised, linear};
use crate::cpu::Cpu;
use crate::error::{Error, Result};

/// Fall in the value that ends a search; a Newton step follows.
const TOLERANCE: f64 = 1e-10;

/// A diagonal entry of a factor below this may be 0.
const SMALL: f64 = 1e-3;

/// Fall in the value that no decision hangs on.
const NOTHING: f64 = 1e-8;

/// A diagonal entry that is tried against 0, and one to begin again with.
const TRIED: f64 = 0.05;
const AGAIN: f64 = 0.3;

/// The largest derivative, in units of the square root of the Hessian, at a maximum: it leaves less
/// than 1e-8 of log-likelihood.
const STEEP: f64 = 1e-4;

/// Fits a model. `tick` is called now and then, and may stop the fit.
///
/// # Errors
/// Those of [`Data::check`], [`Error::Dependent`], [`Error::NoLikelihood`], and those of `tick`.
pub fn fit(data: Data, cpu: Cpu, tick: &mut dyn FnMut() -> Result<()>) -> Result<Fit> {
    data.check()?;
    let data = data.sorted();
    match data.response {
        Response::Gaussian { .. } => linear::fit(data, tick),
        _ => generalised::fit(data, cpu, tick),
    }
}

/// Moves to a minimum; diagonal entries of factors that end at 0 are held there.
fn settle(
    search: &mut Search<'_>,
    point: &mut Point,
    diagonal: &[usize],
) -> Result<(Ended, Vec<f64>)> {
    let mut tried: Vec<usize> = Vec::new();
    loop {
        let (ended, hessian) = search.minimise(point, TOLERANCE)?;
        let small: Vec<usize> = (search.free.iter().copied())
            .filter(|parameter| diagonal.contains(parameter))
            .filter(|&parameter| point.at[parameter].abs() < SMALL)
            .collect();
        if small.is_empty() {
            return Ok((ended, hessian));
        }
        let mut at = point.at.clone();
        for &parameter in &small {
            at[parameter] = 0.0;
        }
        let held = search.evaluate(at);
        if held.value.is_nan() || held.value > point.value + NOTHING {
            // Leaves the objective at the point.
            *point = search.evaluate(point.at.clone());
            return Ok((ended, hessian));
        }
        *point = held;
        // The gradient is 0 at a deviation of 0 even where the likelihood rises from there.
        for parameter in small {
            let mut at = point.at.clone();
            at[parameter] = TRIED;
            let rises = search.evaluate(at).value < point.value - NOTHING;
            if rises && !tried.contains(&parameter) {
                tried.push(parameter);
                let mut at = point.at.clone();
                at[parameter] = AGAIN;
                *point = search.evaluate(at);
            } else {
                search.free.retain(|&free| free != parameter);
            }
        }
        *point = search.evaluate(point.at.clone());
    }
}

/// A maximum of a likelihood.
pub(super) struct Maximum {
    /// The point, minus the log-likelihood, and its gradient.
    pub point: Point,
    /// Parameters of the Hessian.
    pub free: Vec<usize>,
    /// The Hessian; none where it is not positive definite.
    pub hessian: Option<Vec<f64>>,
    /// For each grouping whether its covariance matrix is singular.
    pub singular: Vec<bool>,
    /// Entries of the factors of singular groupings, which are held in the Hessian.
    pub held: Vec<usize>,
    /// The largest derivative in units of the square root of the Hessian.
    pub gradient: f64,
    /// Evaluations so far.
    pub evaluations: usize,
    ended: Ended,
}

/// Moves from a point to a maximum. `entries` are, for each grouping, the parameters of its factor,
/// and those of them on the diagonal.
pub(super) fn maximise(
    mut search: Search<'_>,
    mut point: Point,
    entries: &[(Vec<usize>, Vec<usize>)],
) -> Result<Maximum> {
    let diagonal: Vec<usize> = entries.iter().flat_map(|(_, diagonal)| diagonal.clone()).collect();
    let (ended, approximate) = settle(&mut search, &mut point, &diagonal)?;
    let singular: Vec<bool> = (entries.iter())
        .map(|(_, diagonal)| diagonal.iter().any(|&parameter| point.at[parameter] == 0.0))
        .collect();
    let held: Vec<usize> = (entries.iter().zip(&singular))
        .filter(|&(_, &singular)| singular)
        .flat_map(|((entries, _), _)| entries.clone())
        .collect();
    let before = search.free.clone();
    search.free.retain(|parameter| !held.contains(parameter));
    let mut approximate = part_of(&approximate, &before, &search.free);
    let (point, hessian, gradient) = search.polish(point, &mut approximate)?;
    let (free, evaluations) = (search.free, search.evaluations);
    Ok(Maximum { point, free, hessian, singular, held, gradient, evaluations, ended })
}

/// The rows and columns of a matrix over some parameters that belong to fewer of them.
fn part_of(matrix: &[f64], before: &[usize], after: &[usize]) -> Vec<f64> {
    let kept: Vec<usize> = (0..before.len()).filter(|&i| after.contains(&before[i])).collect();
    kept.iter().flat_map(|i| kept.iter().map(move |j| matrix[i * before.len() + j])).collect()
}

impl Maximum {
    /// How a fit ended, with coefficients on their way to infinity or not.
    pub(super) fn ending(&self, separated: bool) -> Ending {
        match self.ended {
            _ if separated => Ending::Separated,
            _ if self.hessian.is_none() => Ending::Flat,
            _ if self.gradient < STEEP => Ending::Converged,
            Ended::Tired => Ending::Tired,
            Ended::Converged | Ended::Stuck => Ending::Stuck,
        }
    }
}

/// An error where the likelihood has no value at the start.
pub(super) fn check_start(point: &Point) -> Result<()> {
    if point.value.is_finite() { Ok(()) } else { Err(Error::NoLikelihood) }
}
