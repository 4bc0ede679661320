//! Fits of binomial and ordinal outcomes.

use super::cells::Outcome;
use super::dense::{cholesky, dot, inverse, sandwich};
use super::effects::Effects;
use super::fit::{check_start, maximise};
use super::objective::{Generalised, pack, thresholds, unpack};
use super::optimise::{Objective, Search};
use super::report::{Scale, blank, embed, entries, signs};
use super::scaling::{Regressors, level_multipliers};
use super::{Data, Fit, Response};
use crate::cpu::Cpu;
use crate::error::Result;

/// Fall in the value that ends the search without random effects, which is but a start.
const ROUGH: f64 = 1e-3;

/// Deviations to start from: of a single effect, and of each of several.
const ALONE: f64 = 0.7;
const TOGETHER: f64 = 0.5;

/// Steps of the EM algorithm from there.
const AVERAGINGS: usize = 2;

/// An entry of a factor, or with a standard error of more than `UNKNOWN` a fixed part of a linear
/// predictor, that only answers that are predicted for certain lead to.
const INFINITE: f64 = 20.0;
const UNKNOWN: f64 = 5.0;

/// As `INFINITE`, where the likelihood is flat besides.
const LARGE: f64 = 10.0;

/// The outcome as the cells take it, and the thresholds of equal predictors.
fn outcome_of(response: Response) -> (Outcome, Vec<f64>) {
    match response {
        Response::Ordinal { level, rows, n_levels } => {
            let mut counts = vec![0.0; n_levels];
            for (&level, rows) in level.iter().zip(&rows) {
                counts[level as usize] += rows;
            }
            let total: f64 = counts.iter().sum();
            let mut below = 0.0;
            let logits: Vec<f64> = (counts[..n_levels - 1].iter())
                .map(|count| {
                    below += count;
                    libm::log(below / (total - below))
                })
                .collect();
            let start = (0..logits.len())
                .map(|j| if j == 0 { logits[0] } else { libm::log(logits[j] - logits[j - 1]) })
                .collect();
            (Outcome::Ordinal { level, rows, n_levels }, start)
        }
        Response::Binomial { successes, trials } => {
            (Outcome::Binomial { successes, trials }, Vec::new())
        }
        Response::Gaussian { y, .. } => {
            // Not reached: such fits are exact, and made elsewhere.
            let trials = vec![1.0; y.len()];
            (Outcome::Binomial { successes: y, trials }, Vec::new())
        }
    }
}

/// Fits the model of checked data.
pub(super) fn fit(data: Data, cpu: Cpu, tick: &mut dyn FnMut() -> Result<()>) -> Result<Fit> {
    let n_cells = data.n_cells();
    let (outcome, start) = outcome_of(data.response);
    let n_thresholds = outcome.n_thresholds();
    let p = data.n_coefficients;
    let regressors = Regressors::new(&data.x, p, outcome.rows(), n_thresholds > 0)?;
    let mut parts = data.parts;
    let multipliers = parts.iter_mut().map(level_multipliers).collect::<Result<_>>()?;
    let scale = Scale { multipliers };
    let entries = entries(&parts, n_thresholds + p);
    let effects = Effects::new(parts, n_cells)?;
    let x = (regressors.x.clone(), p);
    let mut model = Generalised::new(x, outcome, effects, data.rule, cpu);
    let size = model.size();
    let fixed = n_thresholds + p;

    let (at, evaluations) = begin(&mut model, &start, &entries, tick)?;
    let free = (0..size).collect();
    let mut search = Search { objective: &mut model, free, evaluations, tick };
    let point = search.evaluate(at);
    check_start(&point)?;
    let maximum = maximise(search, point, &entries)?;
    let (point, free) = (&maximum.point, &maximum.free);

    let deviations = unpack(&point.at[fixed..], &model.effects);
    let signs = signs(&deviations, &model.effects.parts);
    let jacobian = jacobian(&point.at, n_thresholds, &regressors, &scale.of_entries(&signs));
    let (farthest, offset) = model.farthest();
    let mut unknown = true;
    let mut covariance = vec![f64::NAN; size * size];
    if let Some(mut hessian) = maximum.hessian.clone()
        && cholesky(&mut hessian, free.len())
    {
        let found = embed(&inverse(&hessian, free.len()), free, size);
        let row = &model.x[farthest * p..(farthest + 1) * p];
        let variance: f64 = (row.iter().zip(found[n_thresholds * size..].chunks(size)))
            .map(|(x, of)| x * dot(row, &of[n_thresholds..fixed]))
            .sum();
        unknown = variance > UNKNOWN * UNKNOWN;
        covariance = sandwich(&jacobian, &found, size);
        blank(&mut covariance, size, &maximum.held);
    }
    let mut natural = point.at.clone();
    natural[..n_thresholds].copy_from_slice(&thresholds(&point.at[..n_thresholds]));
    // Everything but the logarithms of distances is linear.
    let linear = |row: usize| -> f64 {
        (n_thresholds..size).map(|k| jacobian[row * size + k] * natural[k]).sum()
    };
    let found: Vec<f64> = (0..size)
        .map(|row| {
            let own = if row < n_thresholds { natural[row] } else { 0.0 };
            own + linear(row)
        })
        .collect();
    let entry = point.at[fixed..].iter().fold(0.0, |largest, at| f64::max(largest, at.abs()));
    let separated = (offset > INFINITE && unknown)
        || entry > INFINITE
        || (maximum.hessian.is_none() && f64::max(offset, entry) > LARGE);
    Ok(Fit {
        thresholds: found[..n_thresholds].to_vec(),
        coefficients: found[n_thresholds..fixed].to_vec(),
        factors: unpack(&found[fixed..], &model.effects),
        sigma: None,
        modes: scale.modes(&model.effects, &model.modes.u),
        mode_variances: {
            let inverse = curvature_inverse(&model);
            scale.variances(&model.effects, &model.factors, (&inverse, 1.0))
        },
        covariance,
        log_likelihood: -point.value,
        ending: maximum.ending(separated),
        gradient: maximum.gradient,
        singular: maximum.singular,
        evaluations: maximum.evaluations,
    })
}

/// Parameters to start from, and the evaluations that they took: the maximum without random effects,
/// then some steps of the EM algorithm for the factors.
fn begin(
    model: &mut Generalised,
    thresholds: &[f64],
    entries: &[(Vec<usize>, Vec<usize>)],
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<(Vec<f64>, usize)> {
    let size = model.size();
    let fixed = thresholds.len() + model.n_coefficients;
    let mut at = vec![0.0; size];
    at[..thresholds.len()].copy_from_slice(thresholds);
    let free = (0..fixed).collect();
    let mut search = Search { objective: model, free, evaluations: 0, tick };
    let mut point = search.evaluate(at);
    check_start(&point)?;
    search.minimise(&mut point, ROUGH)?;
    let mut evaluations = search.evaluations;
    let mut at = point.at;
    for (_, diagonal) in entries {
        for &parameter in diagonal {
            at[parameter] = if diagonal.len() == 1 { ALONE } else { TOGETHER };
        }
    }
    for _ in 0..AVERAGINGS {
        tick()?;
        evaluations += 1;
        if model.evaluate(&at, &mut vec![0.0; size]).is_finite() {
            pack(&model.averaged(), &model.effects, &mut at[fixed..]);
        }
    }
    Ok((at, evaluations))
}

/// The inverse of the curvature at the modes; a quadrature leaves another in the model.
fn curvature_inverse(model: &Generalised) -> Vec<f64> {
    let mut out = vec![0.0; model.inverse.len()];
    model.modes.factor.inverse(&model.effects.pattern, &mut out);
    out
}

/// The derivatives of what is reported in the parameters.
fn jacobian(at: &[f64], n_thresholds: usize, regressors: &Regressors, entries: &[f64]) -> Vec<f64> {
    let (size, p) = (at.len(), regressors.size);
    let mut out = vec![0.0; size * size];
    let back = regressors.back();
    for row in 0..n_thresholds {
        out[row * size] = 1.0;
        for k in 1..=row {
            out[row * size + k] = libm::exp(at[k]);
        }
        for k in 0..p {
            // The means that were taken out of the regressors.
            out[row * size + n_thresholds + k] =
                (0..p).map(|j| regressors.means[j] * back[j * p + k]).sum();
        }
    }
    for j in 0..p {
        let row = (n_thresholds + j) * size + n_thresholds;
        out[row..row + p].copy_from_slice(&back[j * p..(j + 1) * p]);
    }
    for (parameter, &entry) in (n_thresholds + p..).zip(entries) {
        out[parameter * size + parameter] = entry;
    }
    out
}
