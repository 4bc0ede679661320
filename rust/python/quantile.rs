//! Quantiles of replicates.

// The docstrings here are read in Python and follow its conventions.
#![allow(clippy::doc_markdown)]

use numpy::{PyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::{borrow, chunk, into_array, run, threads};
use crate::error::check_some;
use crate::quantile::{self, Ends};

/// Two quantiles of the finite values of each column.
///
/// With n finite values, the quantile of p lies at rank p (n + 1), counted from 1, rounded to nine
/// decimals and kept within 1 and n; between ranks it is interpolated (type 6).
///
/// Parameters
/// ----------
/// replicates : float64 array, shape (R, E), C-contiguous
///     Values, in any units; NaN and infinities are left out.
/// low, high : float64 array, shape (E,)
///     Probabilities of the two quantiles of each column. Where either is not finite, or no value
///     is, both quantiles are NaN.
/// n_threads : int
///     Threads to use; the result does not depend on it.
///
/// Returns
/// -------
/// float64 array, shape (2, E)
///     Low and high quantiles, in the units of `replicates`.
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
#[pyo3(signature = (replicates, low, high, *, n_threads=1))]
pub fn quantile_pairs<'py>(
    replicates: &Bound<'py, PyAny>,
    low: &Bound<'py, PyAny>,
    high: &Bound<'py, PyAny>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = replicates.py();
    let run_on = threads(n_threads)?;
    let expected = "float64 array of shape (R, E)";
    let array = borrow::<f64, numpy::Ix2>("replicates", expected, replicates)?;
    let &[n_rows, n_columns] = array.shape() else {
        return Err(PyValueError::new_err("`replicates` must have two axes"));
    };
    check_some("the number of columns", n_columns)?;
    let low = borrow::<f64, numpy::Ix1>("low", "float64 array of shape (E,)", low)?;
    let high = borrow::<f64, numpy::Ix1>("high", "float64 array of shape (E,)", high)?;
    if low.len() != n_columns {
        return Err(PyValueError::new_err(format!(
            "`low` must hold {n_columns} values, got {}",
            low.len()
        )));
    }
    let ends = Ends::new(array.as_slice()?, low.as_slice()?, high.as_slice()?)?;
    // A value costs as much as some additions.
    let columns_per_chunk = chunk(n_rows.saturating_mul(16), run_on.n_threads);
    let pairs = run(py, 0, n_columns, 2, columns_per_chunk, |first, rows| {
        quantile::pairs(&ends, usize::try_from(first).unwrap_or(usize::MAX), run_on, rows)
    })?;
    let ends = (0..2).flat_map(|end| pairs.iter().skip(end).step_by(2)).copied().collect();
    into_array(py, (2, n_columns), ends)
}
