//! The cluster bootstrap of integer totals.

use std::num::{NonZeroU8, NonZeroUsize};

use crate::bootstrap::{self, Totals, check_matrix, check_scheme};
use crate::bytes::Bytes;
use crate::error::{Error, Result};
use crate::parallel::{self, Run, Split, count_rows};
use crate::scheme::{Draws, Scheme};
use crate::stream::check_range;

/// Integers up to which a float represents all.
const MOST_EXACT: u64 = 1 << 53;

/// Per-cluster integer totals, laid out for the draws of a scheme.
///
/// The sums are exact, so the layout changes the time and not the result.
#[derive(Debug, Clone)]
pub struct IntTotals {
    n_columns: NonZeroUsize,
    layout: Layout,
}

#[derive(Debug, Clone)]
enum Layout {
    /// Distance of each value from the smallest of its column, and what a replicate of the smallest
    /// alone sums to.
    Bytes {
        bytes: Bytes,
        bases: Vec<i64>,
    },
    /// The values themselves, where no sum exceeds the integers that floats represent.
    Floats(Vec<f64>),
    Wide(Vec<i64>),
}

impl IntTotals {
    /// Reads `values` as (clusters, columns), row by row.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::TooManyRows`], [`Error::Shape`], or [`Error::SumTooLarge`] when a
    /// replicate might not fit in 64 bits.
    pub fn new<T>(values: &[T], n_columns: usize, scheme: &Scheme) -> Result<Self>
    where
        T: Copy + Into<i64>,
    {
        let n_clusters = scheme.n_clusters();
        let columns = check_matrix(n_clusters, n_columns)?;
        let expected = n_clusters.saturating_mul(n_columns);
        if values.len() != expected {
            return Err(Error::Shape { name: "totals", expected, actual: values.len() });
        }
        let mut ranges = vec![(i64::MAX, i64::MIN); n_columns];
        for row in values.chunks_exact(n_columns) {
            for ((low, high), &value) in ranges.iter_mut().zip(row) {
                let value = value.into();
                *low = value.min(*low);
                *high = value.max(*high);
            }
        }
        let draws = i64::try_from(n_clusters).unwrap_or(i64::MAX);
        let mut exact = true;
        for &end in ranges.iter().flat_map(|(low, high)| [low, high]) {
            let sum =
                end.checked_mul(draws).ok_or(Error::SumTooLarge { value: end, n_clusters })?;
            exact &= sum.unsigned_abs() <= MOST_EXACT;
        }
        let largest = ranges.iter().map(|(low, high)| high.abs_diff(*low)).max().unwrap_or(0);
        let layout = if let Ok(largest) = u8::try_from(largest) {
            let byte = |cluster: usize, column: usize| {
                let value = values[cluster * n_columns + column].into() - ranges[column].0;
                u8::try_from(value).unwrap_or(u8::MAX)
            };
            let largest = NonZeroU8::new(largest).unwrap_or(NonZeroU8::MIN);
            let bytes = Bytes::new(scheme, n_columns, largest, byte);
            Layout::Bytes { bytes, bases: ranges.iter().map(|(low, _)| low * draws).collect() }
        } else if exact {
            Layout::Floats(values.iter().map(|&value| to_float(value.into())).collect())
        } else {
            Layout::Wide(values.iter().map(|&value| value.into()).collect())
        };
        Ok(Self { n_columns: columns, layout })
    }
}

/// An integer of at most [`MOST_EXACT`] in size.
#[expect(clippy::cast_precision_loss, reason = "it is exact")]
fn to_float(value: i64) -> f64 {
    value as f64
}

/// The integer that a float of at most [`MOST_EXACT`] in size is.
#[expect(clippy::cast_possible_truncation, reason = "it is exact")]
fn to_integer(value: f64) -> i64 {
    value as i64
}

/// As [`bootstrap::totals`], exactly; `scheme` is the one that the totals are laid out for.
///
/// # Errors
/// [`Error::Shape`] for a scheme of other clusters, [`Error::Empty`], [`Error::PartialReplicate`]
/// or [`Error::ReplicateRange`].
pub fn totals(
    totals: &IntTotals,
    scheme: &Scheme,
    seed: u64,
    first: u64,
    run: Run,
    out: &mut [i64],
) -> Result<()> {
    let n_columns = totals.n_columns;
    check_range(first, count_rows(out, n_columns.get())?)?;
    let (bytes, bases) = match &totals.layout {
        Layout::Floats(values) => {
            let totals = Totals::trusted(values, n_columns);
            return bootstrap::converted(&totals, scheme, seed, first, run, to_integer, out);
        }
        Layout::Wide(values) => {
            let totals = Totals::trusted(values, n_columns);
            return bootstrap::converted(&totals, scheme, seed, first, run, |sum| sum, out);
        }
        Layout::Bytes { bytes, bases } => (bytes, bases),
    };
    check_scheme(scheme, bytes.n_rows())?;
    let scratch = || (Draws::new(run.cpu), vec![0_u64; n_columns.get()]);
    parallel::fill(out, Split::single(n_columns, run), scratch, |(draws, sums), start, rows| {
        let indices = (first..).skip(start);
        for (row, index) in rows.chunks_exact_mut(n_columns.get()).zip(indices) {
            draws.start(scheme, run.cpu, seed, index);
            sums.fill(0);
            bytes.add_drawn(run.cpu, scheme, draws, sums);
            for ((place, &sum), &base) in row.iter_mut().zip(&*sums).zip(bases) {
                *place = base.wrapping_add_unsigned(sum);
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::runs;

    #[test]
    fn totals_are_those_of_the_float_kernel() {
        for (n_clusters, n_columns, low, spread) in [
            (1, 1, 0, 2),
            (40, 36, 0, 2),
            (250, 60, -2, 5),
            (300, 70, -100, 200),
            (90, 3, -5_000, 10_000),
            (2_500, 5, 0, 3),
        ] {
            let values: Vec<i32> =
                (0..n_clusters * n_columns).map(|i| low + i * 7919 % 10_007 % spread).collect();
            let floats: Vec<f64> = values.iter().map(|&value| value.into()).collect();
            let k = usize::try_from(n_columns).expect("columns");
            let g = values.len() / k;
            let codes: Vec<u32> = (0..2).cycle().take(g).collect();
            for scheme in [Scheme::plain(g), Scheme::stratified(&codes)] {
                let scheme = scheme.expect("a valid scheme");
                let data = IntTotals::new(&values, k, &scheme).expect("small totals");
                let mut expected = vec![0.0; 21 * k];
                let real = Totals::new(&floats, g, k).expect("finite totals");
                assert_eq!(
                    bootstrap::totals(&real, &scheme, 4, 9, runs()[1], &mut expected),
                    Ok(())
                );
                for run in runs() {
                    let mut out = vec![0; 21 * k];
                    assert_eq!(totals(&data, &scheme, 4, 9, run, &mut out), Ok(()));
                    #[expect(clippy::cast_precision_loss, reason = "the sums are small")]
                    let floats: Vec<f64> = out.iter().map(|&sum| sum as f64).collect();
                    assert_eq!(floats, expected, "{n_clusters} x {n_columns}");
                }
                let mut chunked = vec![0; 21 * k];
                for (rows, first) in chunked.chunks_mut(4 * k).zip((9..).step_by(4)) {
                    assert_eq!(totals(&data, &scheme, 4, first, runs()[2], rows), Ok(()));
                }
                let mut once = vec![0; 21 * k];
                assert_eq!(totals(&data, &scheme, 4, 9, runs()[0], &mut once), Ok(()));
                assert_eq!(chunked, once);
            }
        }
    }

    #[test]
    fn the_largest_integers_are_summed_exactly() {
        let scheme = Scheme::plain(2).expect("two clusters");
        for value in [i64::MAX / 2, i64::MIN / 2, (1 << 52) + 1, 1 << 52, 1] {
            // The other column keeps the values from fitting in bytes.
            let data = IntTotals::new(&[value, 0, value, 300], 2, &scheme).expect("they fit");
            let mut out = [0; 6];
            assert_eq!(totals(&data, &scheme, 1, 0, runs()[1], &mut out), Ok(()));
            assert!(out.chunks(2).all(|row| row[0] == 2 * value && row[1] % 300 == 0));
            let data = IntTotals::new(&[value, value], 1, &scheme).expect("they fit");
            let mut out = [0; 3];
            assert_eq!(totals(&data, &scheme, 1, 0, runs()[1], &mut out), Ok(()));
            assert_eq!(out, [2 * value; 3]);
        }
        assert_eq!(
            IntTotals::new(&[i64::MAX / 2 + 1, 0], 1, &scheme).err(),
            Some(Error::SumTooLarge { value: i64::MAX / 2 + 1, n_clusters: 2 })
        );
        assert_eq!(
            IntTotals::new(&[1_i64], 1, &scheme).err(),
            Some(Error::Shape { name: "totals", expected: 2, actual: 1 })
        );
        let data = IntTotals::new(&[1_u8, 2], 1, &scheme).expect("they fit");
        let other = Scheme::plain(3).expect("three clusters");
        assert_eq!(
            totals(&data, &other, 1, 0, runs()[1], &mut [0]),
            Err(Error::Shape { name: "strata", expected: 2, actual: 3 })
        );
    }
}
