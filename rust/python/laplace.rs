//! Mixed models by the Laplace approximation.

use numpy::{PyArray1, PyArray2, PyArray3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyList};

use super::{borrow, into_array};
use crate::cpu::Cpu;
use crate::error::Error;
use crate::models::laplace::{self, Data, Ending, Fit, Part, Response, Rule};

/// A copy of an array of one axis.
fn vector<T: numpy::Element + Copy>(
    name: &str,
    expected: &str,
    argument: &Bound<'_, PyAny>,
) -> PyResult<Vec<T>> {
    Ok(borrow::<T, numpy::Ix1>(name, expected, argument)?.as_slice()?.to_vec())
}

/// A copy of an array of two axes, and the length of the second.
fn matrix(name: &str, expected: &str, argument: &Bound<'_, PyAny>) -> PyResult<(Vec<f64>, usize)> {
    let array = borrow::<f64, numpy::Ix2>(name, expected, argument)?;
    let columns = array.as_array().ncols();
    Ok((array.as_slice()?.to_vec(), columns))
}

/// The response of a family.
fn response_of(
    family: &str,
    y: &Bound<'_, PyAny>,
    counts: &Bound<'_, PyAny>,
    (n_levels, reml): (usize, bool),
) -> PyResult<Response> {
    let floats = "float64 array of shape (n,)";
    let counts = vector("counts", floats, counts)?;
    match family {
        "binomial" => Ok(Response::Binomial { successes: vector("y", floats, y)?, trials: counts }),
        "ordinal" => {
            let level = vector("y", "uint32 array of shape (n,)", y)?;
            Ok(Response::Ordinal { level, rows: counts, n_levels })
        }
        "gaussian" => Ok(Response::Gaussian { y: vector("y", floats, y)?, reml }),
        _ => Err(PyValueError::new_err(format!(
            "`family` must be \"binomial\", \"ordinal\" or \"gaussian\", got {family:?}"
        ))),
    }
}

/// Random effects from (codes, multipliers or None, levels).
fn part_of(part: &Bound<'_, PyAny>) -> PyResult<Part> {
    let (codes, z, n_levels): (Bound<'_, PyAny>, Bound<'_, PyAny>, usize) = part.extract()?;
    let codes = vector("codes", "uint32 array of shape (n,)", &codes)?;
    let (z, width) = if z.is_none() {
        (Vec::new(), 1)
    } else {
        matrix("z", "float64 array of shape (n, q)", &z)?
    };
    Ok(Part { codes, z, width, n_levels })
}

/// The fit as a dictionary of arrays.
fn into_dict<'py>(
    py: Python<'py>,
    fit: Fit,
    parts: &[(usize, usize)],
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let ending = match fit.ending {
        Ending::Converged => "converged",
        Ending::Stuck => "stuck",
        Ending::Tired => "tired",
        Ending::Flat => "flat",
        Ending::Separated => "separated",
    };
    let size = fit.covariance.len().isqrt();
    let (factors, modes, variances) = (PyList::empty(py), PyList::empty(py), PyList::empty(py));
    let found = fit.factors.into_iter().zip(fit.modes).zip(fit.mode_variances);
    for (((factor, mode), variance), &(n_levels, width)) in found.zip(parts) {
        let factor: Bound<'py, PyArray2<f64>> = into_array(py, (width, width), factor)?;
        let mode: Bound<'py, PyArray2<f64>> = into_array(py, (n_levels, width), mode)?;
        let variance: Bound<'py, PyArray3<f64>> =
            into_array(py, (n_levels, width, width), variance)?;
        factors.append(factor)?;
        modes.append(mode)?;
        variances.append(variance)?;
    }
    let covariance: Bound<'py, PyArray2<f64>> = into_array(py, (size, size), fit.covariance)?;
    out.set_item("thresholds", PyArray1::from_vec(py, fit.thresholds))?;
    out.set_item("coefficients", PyArray1::from_vec(py, fit.coefficients))?;
    out.set_item("factors", factors)?;
    out.set_item("sigma", fit.sigma)?;
    out.set_item("modes", modes)?;
    out.set_item("mode_variances", variances)?;
    out.set_item("vcov", covariance)?;
    out.set_item("loglik", fit.log_likelihood)?;
    out.set_item("ending", ending)?;
    out.set_item("gradient", fit.gradient)?;
    out.set_item("singular", fit.singular)?;
    out.set_item("evaluations", fit.evaluations)?;
    Ok(out)
}

/// Fits a mixed model by the Laplace approximation, or by adaptive quadrature.
///
/// Parameters
/// ----------
/// family : {"binomial", "ordinal", "gaussian"}
/// y : array, shape (n,)
///     Successes or outcomes, float64; of "ordinal" levels from 0, uint32.
/// counts : float64 array, shape (n,)
///     Trials, or rows, of each cell; not read for "gaussian".
/// x : float64 array, shape (n, p), C-contiguous
///     Regressors of full column rank.
/// parts : list of (uint32 array of shape (n,), float64 array of shape (n, q) or None, int)
///     For each grouping the level of each cell, what multiplies its effects (None for an intercept
///     alone), and the number of levels.
/// n_levels : int
///     Levels of an ordinal outcome.
/// nodes, log_weights : float64 arrays of the same length, or None
///     Nodes for a standard normal variable, and logarithms of weights that sum to 1; None for the
///     Laplace approximation.
/// reml : bool
///     Whether the variances of "gaussian" maximise the restricted likelihood.
///
/// Returns
/// -------
/// dict
///     The fields of a fit.
///
/// Raises
/// ------
/// TypeError
///     For an array of another type or number of axes.
/// ValueError
///     For values or sizes that do not fit together.
#[pyfunction]
#[pyo3(signature = (family, y, counts, x, parts, *, n_levels, nodes, log_weights, reml))]
#[expect(clippy::too_many_arguments, reason = "they are the fields of a matrix")]
pub fn fit_laplace<'py>(
    py: Python<'py>,
    family: &str,
    y: &Bound<'py, PyAny>,
    counts: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    parts: &Bound<'py, PyList>,
    n_levels: usize,
    nodes: Option<&Bound<'py, PyAny>>,
    log_weights: Option<&Bound<'py, PyAny>>,
    reml: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let response = response_of(family, y, counts, (n_levels, reml))?;
    let (x, n_coefficients) = matrix("x", "float64 array of shape (n, p)", x)?;
    let parts = parts.iter().map(|part| part_of(&part)).collect::<PyResult<Vec<Part>>>()?;
    let rule = match (nodes, log_weights) {
        (Some(nodes), Some(log_weights)) => {
            let nodes = vector("nodes", "float64 array of shape (k,)", nodes)?;
            let log_weights = vector("log_weights", "float64 array of shape (k,)", log_weights)?;
            Some(Rule { nodes, log_weights })
        }
        _ => None,
    };
    let shapes: Vec<(usize, usize)> = parts.iter().map(|p| (p.n_levels, p.width)).collect();
    let data = Data { response, x, n_coefficients, parts, rule };
    let mut signal = None;
    let fit = py.detach(|| {
        laplace::fit(data, Cpu::detect(), &mut || {
            let heard = Python::attach(|py| {
                py.check_signals()?;
                Ok(())
            });
            heard.map_err(|error| {
                signal = Some(error);
                Error::Interrupted
            })
        })
    });
    match (signal, fit) {
        (Some(error), _) => Err(error),
        (None, fit) => into_dict(py, fit?, &shapes),
    }
}
