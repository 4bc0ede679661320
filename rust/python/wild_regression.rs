//! The wild cluster bootstrap of a regression.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use numpy::{PyArray2, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::weights::kind_of;
use super::{borrow, chunk, into_array, run, threads};
use crate::models::wild::{Parts, Scores, Weights, statistics};

/// Sums by cluster, borrowed from Python.
struct Input<'py> {
    scores: PyReadonlyArray3<'py, f64>,
    left: PyReadonlyArray2<'py, f64>,
}

impl<'py> Input<'py> {
    fn new(scores: &Bound<'py, PyAny>, left: &Bound<'py, PyAny>) -> PyResult<Self> {
        let scores =
            borrow::<f64, numpy::Ix3>("scores", "float64 array of shape (G, P, 1 + K)", scores)?;
        let left = borrow::<f64, numpy::Ix2>("left", "float64 array of shape (G, K)", left)?;
        Ok(Self { scores, left })
    }

    fn read(&self, py: Python<'_>) -> PyResult<Scores<'_>> {
        let (values, left) = (self.scores.as_slice()?, self.left.as_slice()?);
        let (&[n_clusters, n_parts, width], &[n_left, rank]) =
            (self.scores.shape(), self.left.shape())
        else {
            return Err(PyValueError::new_err("`scores` must have three axes, `left` two"));
        };
        let parts = match n_parts {
            1 => Parts::One,
            2 => Parts::Two,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "`scores` must have one or two parts, got {n_parts}"
                )));
            }
        };
        if (n_left, rank.saturating_add(1)) != (n_clusters, width) {
            return Err(PyValueError::new_err(format!(
                "`left` must have shape (G, K) for `scores` of shape (G, P, 1 + K), \
                 got {n_left} x {rank} and {n_clusters} x {n_parts} x {width}"
            )));
        }
        Ok(py.detach(|| Scores::new(values, left, n_clusters, parts, rank))?)
    }
}

/// Fills the replicates.
fn replicates<'py>(
    py: Python<'py>,
    scores: &Scores,
    weights: Weights,
    first: u64,
    n_resamples: usize,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let run_on = threads(n_threads)?;
    let row_len = scores.row_len().get();
    let rows_per_chunk = chunk(scores.additions(), run_on.n_threads);
    let out = run(py, first, n_resamples, row_len, rows_per_chunk, |number, rows| {
        statistics(scores, weights, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, row_len), out)
}

/// Replicates of a coefficient and its variance in the wild cluster bootstrap.
///
/// Replicate r weighs cluster g with w[g], those of `wild_weights` for the same `seed` and `first`.
/// Part p of it has the sum of w[g] * scores[g, p, 0], and the scores
/// w[g] * scores[g, p, 0] - left[g] @ (w @ scores[:, p, 1:]) of the clusters.
///
/// Parameters
/// ----------
/// scores : float64 array, shape (G, P, 1 + K), C-contiguous, P 1 or 2
///     For each cluster and part, the score and the row of the right factor.
/// left : float64 array, shape (G, K), C-contiguous
///     The left factor.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// kind : {"rademacher", "webb", "mammen"}
///     The distribution of the weights.
/// first : int
///     Number of the first replicate.
/// n_threads : int
///     Threads to use; the result does not depend on it.
///
/// Returns
/// -------
/// float64 array, shape (R, 2), of two parts (R, 5)
///     The sum of each part; then the sum over the clusters of the squares of the scores of the first
///     part and, of two, of their products and of the squares of the second.
///
/// Raises
/// ------
/// TypeError
///     For an array of another type or number of axes.
/// ValueError
///     For an array that is not contiguous, or for values outside the ranges above.
/// OverflowError
///     For an integer that is negative or exceeds 64 bits.
/// MemoryError
///     If the result does not fit.
#[pyfunction]
#[pyo3(signature = (scores, left, n_resamples, seed, *, kind, first=0, n_threads=1))]
pub fn wild_regression<'py>(
    scores: &Bound<'py, PyAny>,
    left: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    kind: &str,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = scores.py();
    let weights = Weights::Drawn { kind: kind_of(kind)?, seed };
    let input = Input::new(scores, left)?;
    replicates(py, &input.read(py)?, weights, first, n_resamples, n_threads)
}

/// As `wild_regression`, for the signs number `first` to `first + n_resamples - 1` of all 2**G.
///
/// Cluster g is negated where bit g of the number is set, so number 0 changes nothing.
///
/// Raises
/// ------
/// TypeError
///     For an array of another type or number of axes.
/// ValueError
///     For an array that is not contiguous, for signs past the last, or for more than 63 clusters.
/// OverflowError
///     For an integer that is negative or exceeds 64 bits.
/// MemoryError
///     If the result does not fit.
#[pyfunction]
#[pyo3(signature = (scores, left, n_resamples, *, first=0, n_threads=1))]
pub fn enumerate_wild_regression<'py>(
    scores: &Bound<'py, PyAny>,
    left: &Bound<'py, PyAny>,
    n_resamples: usize,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = scores.py();
    let input = Input::new(scores, left)?;
    replicates(py, &input.read(py)?, Weights::Signs, first, n_resamples, n_threads)
}

/// As `wild_regression`, for weights that are given.
///
/// Parameters
/// ----------
/// weights : float64 array, shape (R, G), C-contiguous
///     The weights of the clusters in each replicate.
///
/// Raises
/// ------
/// TypeError
///     For an array of another type or number of axes.
/// ValueError
///     For an array that is not contiguous, or for values outside the ranges above.
/// MemoryError
///     If the result does not fit.
#[pyfunction]
#[pyo3(signature = (scores, left, weights, *, n_threads=1))]
pub fn weighted_wild_regression<'py>(
    scores: &Bound<'py, PyAny>,
    left: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = scores.py();
    let input = Input::new(scores, left)?;
    let scores = input.read(py)?;
    let weights = borrow::<f64, numpy::Ix2>("weights", "float64 array of shape (R, G)", weights)?;
    let &[n_resamples, n_clusters] = weights.shape() else {
        return Err(PyValueError::new_err("`weights` must have two axes"));
    };
    if n_clusters != scores.n_clusters() {
        return Err(PyValueError::new_err(format!(
            "`weights` must have a column for each of the {} clusters, got {n_clusters}",
            scores.n_clusters()
        )));
    }
    let given = Weights::Given(weights.as_slice()?);
    replicates(py, &scores, given, 0, n_resamples, n_threads)
}
