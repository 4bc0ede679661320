//! Clusters drawn with replacement.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use std::num::NonZeroUsize;

use numpy::{Element, PyArray1, PyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::{borrow, chunk, into_array, run, scheme, threads};
use crate::bootstrap::{self, Totals};
use crate::collapsed::{self, Classes};
use crate::integers::{self, IntTotals};
use crate::scheme::Scheme;

/// Replicate totals of the multinomial cluster bootstrap.
///
/// Replicate r draws G clusters with replacement, or as many as there are in each stratum, and
/// returns sum over g of count[r, g] * totals[g]. Its draws depend on `seed` and `first + r` alone.
///
/// Parameters
/// ----------
/// totals : float64 array, shape (G, K), C-contiguous
///     Finite sums of each cluster, in any units.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
/// strata : uint32 array, shape (G,), optional
///     Stratum of each cluster, 0 to S - 1 without gaps, in any order.
/// n_threads : int
///     Threads to use; the result does not depend on it.
///
/// Returns
/// -------
/// float64 array, shape (R, K)
///     In the units of `totals`.
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
#[pyo3(signature = (totals, n_resamples, seed, *, first=0, strata=None, n_threads=1))]
pub fn bootstrap_totals<'py>(
    totals: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    first: u64,
    strata: Option<&Bound<'py, PyAny>>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = totals.py();
    let run_on = threads(n_threads)?;
    let array = borrow::<f64, numpy::Ix2>("totals", "float64 array of shape (G, K)", totals)?;
    let values = array.as_slice()?;
    let &[n_clusters, n_columns] = array.shape() else {
        return Err(PyValueError::new_err("`totals` must have two axes"));
    };
    let totals = py.detach(|| Totals::new(values, n_clusters, n_columns))?;
    let scheme = scheme(n_clusters, strata)?;
    let rows_per_chunk = chunk(values.len(), run_on.n_threads);
    let out = run(py, first, n_resamples, n_columns, rows_per_chunk, |number, rows| {
        bootstrap::totals(&totals, &scheme, seed, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, n_columns), out)
}

/// Multiplicities of the clusters in the multinomial cluster bootstrap.
///
/// The counts that `bootstrap_totals` multiplies with, for the same `seed`, `first` and `strata`.
///
/// Parameters
/// ----------
/// n_clusters : int
///     Number G of clusters, at least 1.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
/// strata : uint32 array, shape (G,), optional
///     Stratum of each cluster, 0 to S - 1 without gaps, in any order.
///
/// Returns
/// -------
/// uint32 array, shape (R, G)
///     Times each cluster was drawn; a row sums to G, and within a stratum to its number of
///     clusters.
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
#[pyo3(signature = (n_clusters, n_resamples, seed, *, first=0, strata=None))]
pub fn bootstrap_counts<'py>(
    py: Python<'py>,
    n_clusters: usize,
    n_resamples: usize,
    seed: u64,
    first: u64,
    strata: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let scheme = scheme(n_clusters, strata)?;
    let rows_per_chunk = chunk(n_clusters, NonZeroUsize::MIN);
    let out = run(py, first, n_resamples, n_clusters, rows_per_chunk, |number, rows| {
        bootstrap::counts(&scheme, seed, number, rows)
    })?;
    into_array(py, (n_resamples, n_clusters), out)
}

/// Replicate totals of the multinomial cluster bootstrap, for integers.
///
/// The draws are those of `bootstrap_totals`, and the sums are exact: the same integers as
/// `bootstrap_counts(...) @ totals`.
///
/// Parameters
/// ----------
/// totals : int8, uint8, int16, int32 or int64 array, shape (G, K), C-contiguous
///     Integer sums of each cluster, in any units. A column of which all values lie within 255
///     of each other is summed fastest.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
/// strata : uint32 array, shape (G,), optional
///     Stratum of each cluster, 0 to S - 1 without gaps, in any order.
/// n_threads : int
///     Threads to use; the result does not depend on it.
///
/// Returns
/// -------
/// int64 array, shape (R, K)
///     In the units of `totals`.
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
#[pyo3(signature = (totals, n_resamples, seed, *, first=0, strata=None, n_threads=1))]
pub fn bootstrap_totals_int<'py>(
    totals: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    first: u64,
    strata: Option<&Bound<'py, PyAny>>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let py = totals.py();
    let run_on = threads(n_threads)?;
    let (scheme, shape, totals) = integers(totals, strata)?;
    let rows_per_chunk = chunk(shape[0].saturating_mul(shape[1]), run_on.n_threads);
    let out = run(py, first, n_resamples, shape[1], rows_per_chunk, |number, rows| {
        integers::totals(&totals, &scheme, seed, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, shape[1]), out)
}

/// Integer totals of whichever type, with their scheme and shape.
fn integers<'py>(
    totals: &Bound<'py, PyAny>,
    strata: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Scheme, [usize; 2], IntTotals)> {
    if totals.cast::<PyArray2<u8>>().is_ok() {
        lay_out::<u8>(totals, strata)
    } else if totals.cast::<PyArray2<i8>>().is_ok() {
        lay_out::<i8>(totals, strata)
    } else if totals.cast::<PyArray2<i16>>().is_ok() {
        lay_out::<i16>(totals, strata)
    } else if totals.cast::<PyArray2<i32>>().is_ok() {
        lay_out::<i32>(totals, strata)
    } else {
        lay_out::<i64>(totals, strata)
    }
}

fn lay_out<T: Element + Copy + Into<i64> + Sync>(
    totals: &Bound<'_, PyAny>,
    strata: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Scheme, [usize; 2], IntTotals)> {
    let expected = "int8, uint8, int16, int32 or int64 array of shape (G, K)";
    let array = borrow::<T, numpy::Ix2>("totals", expected, totals)?;
    let values = array.as_slice()?;
    let &[n_clusters, n_columns] = array.shape() else {
        return Err(PyValueError::new_err("`totals` must have two axes"));
    };
    let scheme = scheme(n_clusters, strata)?;
    let totals = totals.py().detach(|| IntTotals::new(values, n_columns, &scheme))?;
    Ok((scheme, [n_clusters, n_columns], totals))
}

/// Replicate totals of the cluster bootstrap from the distinct rows.
///
/// Replicate r draws how many of the G clusters belong to each class of equal clusters, from the
/// multinomial distribution, and returns sum over d of count[r, d] * totals[d].
///
/// Parameters
/// ----------
/// totals : float64 array, shape (D, K), C-contiguous
///     Finite sums of a cluster of each class, in any units.
/// multiplicities : uint32 or uint64 array, shape (D,)
///     Clusters in each class; they sum to G, from 1 to 2**32 - 1.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
/// n_threads : int
///     Threads to use; the result does not depend on it.
///
/// Returns
/// -------
/// float64 array, shape (R, K)
///     In the units of `totals`.
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
#[pyo3(signature = (totals, multiplicities, n_resamples, seed, *, first=0, n_threads=1))]
pub fn bootstrap_collapsed<'py>(
    totals: &Bound<'py, PyAny>,
    multiplicities: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = totals.py();
    let run_on = threads(n_threads)?;
    let array = borrow::<f64, numpy::Ix2>("totals", "float64 array of shape (D, K)", totals)?;
    let &[n_classes, n_columns] = array.shape() else {
        return Err(PyValueError::new_err("`totals` must have two axes"));
    };
    let totals = Totals::new(array.as_slice()?, n_classes, n_columns)?;
    let classes = classes(multiplicities)?;
    // A class costs as much as some tens of additions.
    let rows_per_chunk = chunk(n_classes.saturating_mul(n_columns + 64), run_on.n_threads);
    let out = run(py, first, n_resamples, n_columns, rows_per_chunk, |number, rows| {
        collapsed::totals(&totals, &classes, seed, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, n_columns), out)
}

/// The classes of clusters.
fn classes(multiplicities: &Bound<'_, PyAny>) -> PyResult<Classes> {
    let expected = "uint32 or uint64 array of shape (D,)";
    if multiplicities.cast::<PyArray1<u32>>().is_ok() {
        let array = borrow::<u32, numpy::Ix1>("multiplicities", expected, multiplicities)?;
        return Ok(Classes::new(array.as_slice()?)?);
    }
    let array = borrow::<u64, numpy::Ix1>("multiplicities", expected, multiplicities)?;
    Ok(Classes::new(array.as_slice()?)?)
}

/// Times each class is drawn in the cluster bootstrap from the distinct rows.
///
/// The counts that `bootstrap_collapsed` multiplies with, for the same `seed` and `first`.
///
/// Parameters
/// ----------
/// multiplicities : uint32 or uint64 array, shape (D,)
///     Clusters in each class; they sum to G, from 1 to 2**32 - 1.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
///
/// Returns
/// -------
/// uint32 array, shape (R, D)
///     A row sums to G.
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
#[pyo3(signature = (multiplicities, n_resamples, seed, *, first=0))]
pub fn collapsed_counts<'py>(
    multiplicities: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    first: u64,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let py = multiplicities.py();
    let classes = classes(multiplicities)?;
    let rows_per_chunk = chunk(classes.len().saturating_mul(64), NonZeroUsize::MIN);
    let out = run(py, first, n_resamples, classes.len(), rows_per_chunk, |number, rows| {
        collapsed::counts(&classes, seed, number, rows)
    })?;
    into_array(py, (n_resamples, classes.len()), out)
}
