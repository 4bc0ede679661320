//! Draws on two levels, nested or crossed.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use std::num::NonZeroUsize;

use numpy::{PyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::{borrow, chunk, into_array, run, run_pair, scheme, threads};
use crate::crossed::{self, Pairs};
use crate::error::check_some;
use crate::nested::{self, Cells};
use crate::scheme::Scheme;

/// Sums of cell means in the bootstrap of clusters and, within each, repetitions.
///
/// Replicate r draws clusters as `bootstrap_counts` does. Then each cell of each drawn cluster draws
/// as many of its repetitions as it has, with replacement, anew for every time the cluster was
/// drawn.
///
/// Parameters
/// ----------
/// values : float64 array, shape (N,), C-contiguous
///     Finite values of the repetitions, cell by cell, in any units.
/// offsets : int64 array, shape (G * K + 1,)
///     Cell (g, k) has `values[offsets[g * K + k]:offsets[g * K + k + 1]]`, at most 65,535; it
///     may have none.
/// n_columns : int
///     Number K of cells in a cluster, at least 1.
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
/// sums : float64 array, shape (R, K)
///     Sum, over the drawn clusters that have the cell, of the mean of its drawn repetitions; in
///     the units of `values`.
/// counts : uint32 array, shape (R, K)
///     Number of those clusters, repeated ones counted each time.
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
#[pyo3(
    signature = (values, offsets, n_columns, n_resamples, seed, *, first=0, strata=None, n_threads=1)
)]
#[expect(clippy::too_many_arguments, reason = "they are the arguments in Python")]
#[expect(clippy::type_complexity, reason = "two arrays")]
pub fn nested_totals<'py>(
    values: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    n_columns: usize,
    n_resamples: usize,
    seed: u64,
    first: u64,
    strata: Option<&Bound<'py, PyAny>>,
    n_threads: usize,
) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<u32>>)> {
    let py = values.py();
    let run_on = threads(n_threads)?;
    let values = borrow::<f64, numpy::Ix1>("values", "float64 array of shape (N,)", values)?;
    let offsets =
        borrow::<i64, numpy::Ix1>("offsets", "int64 array of shape (G * K + 1,)", offsets)?;
    let (values, offsets) = (values.as_slice()?, offsets.as_slice()?);
    check_some("`n_columns`", n_columns)?;
    let scheme = scheme(offsets.len().saturating_sub(1) / n_columns, strata)?;
    let cells = py.detach(|| Cells::new(values, offsets, n_columns, &scheme))?;
    let rows_per_chunk = chunk(offsets.len() + 8 * values.len(), run_on.n_threads);
    let (sums, counts) =
        run_pair(py, first, n_resamples, n_columns, rows_per_chunk, |number, sums, counts| {
            nested::totals(&cells, &scheme, seed, number, run_on, sums, counts)
        })?;
    let shape = (n_resamples, n_columns);
    Ok((into_array(py, shape, sums)?, into_array(py, shape, counts)?))
}

/// Replicate totals of the bootstrap of two crossed classifications.
///
/// Replicate r draws G1 members of the first classification and, independently, G2 of the second,
/// with replacement, and returns sum over i and j of first[r, i] * second[r, j] * totals[i, j].
///
/// Parameters
/// ----------
/// totals : float64 array, shape (G1, G2, K), C-contiguous
///     Finite sums of each pair, 0 for a pair that does not occur, in any units.
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
#[pyo3(signature = (totals, n_resamples, seed, *, first=0, n_threads=1))]
pub fn crossed_totals<'py>(
    totals: &Bound<'py, PyAny>,
    n_resamples: usize,
    seed: u64,
    first: u64,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = totals.py();
    let run_on = threads(n_threads)?;
    let array = borrow::<f64, numpy::Ix3>("totals", "float64 array of shape (G1, G2, K)", totals)?;
    let values = array.as_slice()?;
    let &[rows, columns, n_columns] = array.shape() else {
        return Err(PyValueError::new_err("`totals` must have three axes"));
    };
    let pairs = py.detach(|| Pairs::new(values, [rows, columns], n_columns))?;
    let rows_per_chunk = chunk(values.len(), run_on.n_threads);
    let out = run(py, first, n_resamples, n_columns, rows_per_chunk, |number, rows| {
        crossed::totals(&pairs, seed, number, run_on, rows)
    })?;
    into_array(py, (n_resamples, n_columns), out)
}

/// Multiplicities in the bootstrap of two crossed classifications.
///
/// The counts whose products `crossed_totals` multiplies with, for the same `seed` and `first`.
///
/// Parameters
/// ----------
/// n_first, n_second : int
///     Members G1 and G2 of the classifications, at least 1.
/// n_resamples : int
///     Number R of replicates, at least 1.
/// seed : int
///     From 0 to 2**64 - 1.
/// first : int
///     Number of the first replicate.
///
/// Returns
/// -------
/// first_counts : uint32 array, shape (R, G1)
///     A row sums to G1.
/// second_counts : uint32 array, shape (R, G2)
///     A row sums to G2.
///
/// Raises
/// ------
/// ValueError
///     For values outside the ranges above.
/// OverflowError
///     For an integer that is negative or exceeds 64 bits.
/// MemoryError
///     If the result does not fit.
#[pyfunction]
#[pyo3(signature = (n_first, n_second, n_resamples, seed, *, first=0))]
#[expect(clippy::type_complexity, reason = "two arrays")]
pub fn crossed_counts(
    py: Python<'_>,
    n_first: usize,
    n_second: usize,
    n_resamples: usize,
    seed: u64,
    first: u64,
) -> PyResult<(Bound<'_, PyArray2<u32>>, Bound<'_, PyArray2<u32>>)> {
    let schemes = [Scheme::plain(n_first)?, Scheme::plain(n_second)?];
    let width = n_first.saturating_add(n_second);
    let rows_per_chunk = chunk(width, NonZeroUsize::MIN);
    let both = run(py, first, n_resamples, width, rows_per_chunk, |number, rows| {
        crossed::counts(schemes.each_ref(), seed, number, rows)
    })?;
    let part = |from: usize, n: usize| -> Vec<u32> {
        both.chunks_exact(width).flat_map(|row| &row[from..from + n]).copied().collect()
    };
    Ok((
        into_array(py, (n_resamples, n_first), part(0, n_first))?,
        into_array(py, (n_resamples, n_second), part(n_first, n_second))?,
    ))
}
