//! Fits of Gaussian outcomes.

use super::dense::{cholesky, inverse, real, sandwich};
use super::effects::Effects;
use super::fit::{check_start, maximise};
use super::gaussian::Linear;
use super::objective::{pack, unpack};
use super::optimise::{Objective, Point, Search};
use super::report::{Scale, blank, embed, entries, signs};
use super::scaling::{Regressors, level_multipliers};
use super::{Data, Fit, Response};
use crate::error::{Error, Result};

/// Relative deviations to start from.
const START: f64 = 1.0;

/// Steps of the EM algorithm from there.
const AVERAGINGS: usize = 3;

/// Share of the sum of squares that is rounding.
const ROUNDING: f64 = 1e-20;

/// A deviation, in residual deviations, that only an outcome without residuals leads to.
const INFINITE: f64 = 1e5;

/// Takes the least squares fit out of the outcome, and returns its coefficients.
pub(super) fn residuals(x: &Regressors, y: &mut [f64]) -> Vec<f64> {
    let p = x.size;
    let mut coefficients = vec![0.0; p];
    // Twice, so that what rounding left of the first pass goes.
    for _ in 0..2 {
        for (k, coefficient) in coefficients.iter_mut().enumerate() {
            let n = real(y.len());
            let share =
                y.iter().zip(x.x.iter().skip(k).step_by(p)).map(|(y, x)| y * x).sum::<f64>();
            *coefficient += share / n;
            for (y, x) in y.iter_mut().zip(x.x.iter().skip(k).step_by(p)) {
                *y -= share / n * x;
            }
        }
    }
    coefficients
}

/// Fits the model of checked data.
pub(super) fn fit(data: Data, tick: &mut dyn FnMut() -> Result<()>) -> Result<Fit> {
    let n_cells = data.n_cells();
    let Response::Gaussian { mut y, reml } = data.response else {
        return Err(Error::NoLikelihood);
    };
    let p = data.n_coefficients;
    if n_cells <= p {
        return Err(Error::TooFewRows { n_rows: n_cells, n_coefficients: p });
    }
    let regressors = Regressors::new(&data.x, p, &vec![1.0; n_cells], false)?;
    let all: f64 = y.iter().map(|y| y * y).sum();
    let ols = residuals(&regressors, &mut y);
    let left: f64 = y.iter().map(|y| y * y).sum();
    if left <= ROUNDING * all {
        return Err(Error::NoResidual);
    }
    let mut parts = data.parts;
    let multipliers = parts.iter_mut().map(level_multipliers).collect::<Result<_>>()?;
    let scale = Scale { multipliers };
    let entries = entries(&parts, 0);
    let effects = Effects::new(parts, n_cells)?;
    let mut model = Linear::new((&regressors.x, p), &y, effects, reml);
    let size = model.size();

    let mut at = vec![0.0; size];
    for &parameter in entries.iter().flat_map(|(_, diagonal)| diagonal) {
        at[parameter] = START;
    }
    for _ in 0..AVERAGINGS {
        if model.evaluate(&at, &mut vec![0.0; size]).is_finite() {
            pack(&model.averaged(), &model.effects, &mut at);
        }
    }
    let free = (0..size).collect();
    let mut search = Search { objective: &mut model, free, evaluations: AVERAGINGS, tick };
    let point = search.evaluate(at);
    check_start(&point)?;
    let maximum = maximise(search, point, &entries)?;
    let (point, free, held) = (&maximum.point, &maximum.free, &maximum.held);

    let sigma = model.variance().sqrt();
    let (of_deviations, more) = if maximum.hessian.is_some() {
        deviations(&mut model, point, free, sigma, tick)?
    } else {
        (None, 0)
    };
    let signs = signs(&model.solution.factors, &model.effects.parts);
    let scales = scale.of_entries(&signs);
    let covariance =
        covariance(&model, &regressors, &point.at, (free, held), of_deviations, (sigma, &scales));
    let found: Vec<f64> =
        point.at.iter().zip(&scales).map(|(at, scale)| sigma * at * scale).collect();
    let back = regressors.back();
    let coefficients = (0..p)
        .map(|j| (0..p).map(|k| back[j * p + k] * (ols[k] + model.solution.coefficients[k])).sum())
        .collect();
    let mut u = model.solution.v.clone();
    model.effects.scale(&model.solution.factors, &model.solution.v, &mut u);
    let constant = if reml { 0.5 * regressors.log_determinant() } else { 0.0 };
    let infinite = point.at.iter().any(|at| at.abs() > INFINITE);
    Ok(Fit {
        thresholds: Vec::new(),
        coefficients,
        factors: unpack(&found, &model.effects),
        sigma: Some(sigma),
        modes: scale.modes(&model.effects, &u),
        mode_variances: scale.variances(
            &model.effects,
            &model.solution.factors,
            (&model.solution.inverse, sigma * sigma),
        ),
        covariance,
        log_likelihood: -point.value - constant,
        ending: maximum.ending(infinite),
        gradient: maximum.gradient,
        singular: maximum.singular,
        evaluations: maximum.evaluations + more,
    })
}

/// The covariance of the relative factors and the logarithm of the residual deviation, and the
/// evaluations that it took; none where their Hessian is not positive definite.
fn deviations(
    model: &mut Linear,
    point: &Point,
    free: &[usize],
    sigma: f64,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<(Option<Vec<f64>>, usize)> {
    let d = free.len();
    let (squares, slope) = (model.solution.squares, model.solution.squares_gradient.clone());
    model.held = Some(sigma * sigma);
    let mut search = Search { objective: model, free: free.to_vec(), evaluations: 0, tick };
    let start = search.evaluate(point.at.clone());
    let steps: Vec<f64> = free.iter().map(|&k| 1e-4 * f64::max(1.0, point.at[k].abs())).collect();
    let inner = search.hessian(&start, &steps, true)?;
    let more = search.evaluations + 1;
    model.held = None;
    model.evaluate(&point.at, &mut vec![0.0; point.at.len()]);
    let whole = d + 1;
    let mut all = vec![0.0; whole * whole];
    for i in 0..d {
        all[i * whole..i * whole + d].copy_from_slice(&inner[i * d..(i + 1) * d]);
        let crossed = -slope[free[i]] / (sigma * sigma);
        all[i * whole + d] = crossed;
        all[d * whole + i] = crossed;
    }
    all[d * whole + d] = 2.0 * squares / (sigma * sigma);
    Ok((cholesky(&mut all, whole).then(|| inverse(&all, whole)), more))
}

/// The covariance of coefficients, factors and the residual deviation. That of the coefficients is
/// with the variances held, as is usual for linear models.
fn covariance(
    model: &Linear,
    regressors: &Regressors,
    at: &[f64],
    (free, held): (&[usize], &[usize]),
    of_deviations: Option<Vec<f64>>,
    (sigma, scales): (f64, &[f64]),
) -> Vec<f64> {
    let (p, d) = (regressors.size, at.len());
    let size = p + d + 1;
    let mut out = vec![f64::NAN; size * size];
    for i in 0..p {
        out[i * size..(i + 1) * size].fill(0.0);
        (p..size).for_each(|j| out[j * size + i] = 0.0);
    }
    let fixed = sandwich(&regressors.back(), &model.solution.covariance, p);
    for i in 0..p {
        for j in 0..p {
            out[i * size + j] = sigma * sigma * fixed[i * p + j];
        }
    }
    if let Some(found) = of_deviations {
        let which: Vec<usize> = free.iter().copied().chain([d]).collect();
        let whole = d + 1;
        let mut jacobian = vec![0.0; whole * whole];
        for k in 0..d {
            jacobian[k * whole + k] = sigma * scales[k];
            jacobian[k * whole + d] = sigma * at[k] * scales[k];
        }
        jacobian[d * whole + d] = sigma;
        let found = sandwich(&jacobian, &embed(&found, &which, whole), whole);
        for (i, row) in found.chunks(whole).enumerate() {
            let place = (p + i) * size + p;
            out[place..place + whole].copy_from_slice(row);
        }
    }
    let held: Vec<usize> = held.iter().map(|entry| p + entry).collect();
    blank(&mut out, size, &held);
    out
}
