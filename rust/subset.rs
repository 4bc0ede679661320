//! Subsets of the clusters, drawn without replacement.

use std::num::NonZeroUsize;

use crate::bootstrap::Totals;
use crate::cpu::Cpu;
use crate::error::{Error, Result, check_rows, check_some};
use crate::parallel::{self, Run, Split, count_rows};
use crate::stream::{Stream, check_range};

/// How many of how many clusters are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Subsets {
    n_clusters: u32,
    size: u32,
}

impl Subsets {
    /// Subsets of `size` of `n_clusters` clusters.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::SubsetSize`] or [`Error::TooManyRows`].
    pub fn new(n_clusters: usize, size: usize) -> Result<Self> {
        check_some("the number of clusters", n_clusters)?;
        check_some("`size`", size)?;
        if size > n_clusters {
            return Err(Error::SubsetSize { size, n_clusters });
        }
        Ok(Self { n_clusters: check_rows(n_clusters)?, size: check_rows(size)? })
    }

    /// Marks the clusters of one subset: the first steps of a shuffle (Durstenfeld 1964,
    /// "Algorithm 235: random permutation", CACM 7(7):420, doi 10.1145/364520.364540).
    fn draw(self, mut stream: Stream, order: &mut Vec<u32>, chosen: &mut [u8]) {
        order.clear();
        order.extend(0..self.n_clusters);
        chosen.fill(0);
        for (place, left) in (0_usize..).zip((1..=self.n_clusters).rev()).take(self.size as usize) {
            let other = place + below(&mut stream, left);
            order.swap(place, other);
            chosen[order[place] as usize] = 1;
        }
    }
}

/// A uniform integer below `n`, which is not 0.
///
/// The high part of the product with a word, after rejecting the few words that would favour some
/// results (Lemire 2019, "Fast random integer generation in an interval", ACM TOMACS 29(1):3, doi
/// 10.1145/3230636).
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the high part is below a 32-bit bound")]
fn below(stream: &mut Stream, n: u32) -> usize {
    let bound = u64::from(n);
    loop {
        let product = u128::from(stream.word()) * u128::from(bound);
        let low = product as u64;
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return (product >> 64) as usize;
        }
    }
}

/// Marks of the clusters in the subsets `first`, `first + 1`, ...: fills `out`, (R, G) row by row,
/// with 1 for those drawn and 0 for the others.
///
/// # Errors
/// [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
pub fn masks(subsets: Subsets, seed: u64, first: u64, out: &mut [u8]) -> Result<()> {
    let n_clusters = subsets.n_clusters as usize;
    check_range(first, count_rows(out, n_clusters)?)?;
    let cpu = Cpu::detect();
    let mut order = Vec::with_capacity(n_clusters);
    for (row, index) in out.chunks_exact_mut(n_clusters).zip(first..) {
        subsets.draw(Stream::new(cpu, seed, index), &mut order, row);
    }
    Ok(())
}

/// Totals of the subsets `first`, `first + 1`, ... of `size` clusters: fills `out`, (R, K) row by
/// row. A row is the sum over the drawn clusters in ascending order.
///
/// # Errors
/// As [`Subsets::new`], and [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
pub fn totals(
    totals: &Totals,
    size: usize,
    seed: u64,
    first: u64,
    run: Run,
    out: &mut [f64],
) -> Result<()> {
    let (n_clusters, n_columns) = (totals.n_clusters(), totals.n_columns());
    let subsets = Subsets::new(n_clusters, size)?;
    check_range(first, count_rows(out, n_columns.get())?)?;
    let scratch = || (Vec::with_capacity(n_clusters), vec![0; n_clusters]);
    parallel::fill(out, Split::single(n_columns, run), scratch, |(order, chosen), start, rows| {
        let indices = (first..).skip(start);
        for (row, index) in rows.chunks_exact_mut(n_columns.get()).zip(indices) {
            subsets.draw(Stream::new(run.cpu, seed, index), order, chosen);
            add(totals.values(), n_columns, chosen, row);
        }
    });
    Ok(())
}

/// Sums the rows that are marked. A product instead of a branch, as which rows are marked cannot be
/// predicted; adding 0 changes no sum.
fn add(values: &[f64], n_columns: NonZeroUsize, chosen: &[u8], sums: &mut [f64]) {
    sums.fill(0.0);
    for (row, &mark) in values.chunks_exact(n_columns.get()).zip(chosen) {
        let weight = f64::from(mark);
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += weight * value;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn on(n_threads: usize) -> Run {
        Run::on(NonZeroUsize::new(n_threads).expect("tests use threads"))
    }

    fn draw(n_clusters: usize, size: usize, first: u64, n_resamples: usize) -> Vec<u8> {
        let subsets = Subsets::new(n_clusters, size).expect("a size that fits");
        let mut out = vec![9; n_clusters * n_resamples];
        assert_eq!(masks(subsets, 3, first, &mut out), Ok(()));
        out
    }

    #[test]
    fn every_subset_has_its_size() {
        for (n_clusters, size) in [(1, 1), (7, 2), (7, 7), (300, 150)] {
            for row in draw(n_clusters, size, 0, 20).chunks(n_clusters) {
                assert!(row.iter().all(|&mark| mark <= 1));
                assert_eq!(row.iter().map(|&mark| usize::from(mark)).sum::<usize>(), size);
            }
        }
    }

    #[test]
    fn marks_keep_their_values() {
        let rows = [[0, 1, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0], [1, 0, 0, 0, 1, 0]];
        assert_eq!(draw(6, 2, 0, 3), rows.concat());
    }

    /// Chi-square of all 35 subsets of three of seven, below the 0.9999 quantile for 34 degrees of
    /// freedom.
    #[test]
    fn subsets_are_uniform() {
        let mut cells: HashMap<Vec<u8>, u32> = HashMap::new();
        for row in draw(7, 3, 0, 70_000).chunks(7) {
            *cells.entry(row.to_vec()).or_default() += 1;
        }
        assert_eq!(cells.len(), 35);
        let chi_square: f64 =
            cells.values().map(|&c| (f64::from(c) - 2_000.0).powi(2) / 2_000.0).sum();
        assert!(chi_square < 74.0, "{chi_square}");
    }

    #[test]
    fn totals_follow_the_marks() {
        for (n_clusters, n_columns, size) in [(1, 1, 1), (30, 2, 7), (400, 3, 399)] {
            let values: Vec<f64> = (0_u32..)
                .take(n_clusters * n_columns)
                .map(|i| f64::from(i * 7919 % 1009) / 1009.0 - 0.3)
                .collect();
            let data = Totals::new(&values, n_clusters, n_columns).expect("finite");
            let mut out = vec![-1.0; 11 * n_columns];
            assert_eq!(totals(&data, size, 3, 5, on(1), &mut out), Ok(()));
            let marks = draw(n_clusters, size, 5, 11);
            for (row, marks) in out.chunks(n_columns).zip(marks.chunks(n_clusters)) {
                for (column, sum) in row.iter().enumerate() {
                    let mut expected = 0.0;
                    for (cluster, _) in marks.iter().enumerate().filter(|(_, mark)| **mark == 1) {
                        expected += values[cluster * n_columns + column];
                    }
                    assert_eq!(sum.to_bits(), f64::to_bits(expected));
                }
            }
            let mut parts = vec![-1.0; 11 * n_columns];
            let (one, two) = parts.split_at_mut(4 * n_columns);
            assert_eq!(totals(&data, size, 3, 5, on(2), one), Ok(()));
            assert_eq!(totals(&data, size, 3, 9, on(3), two), Ok(()));
            assert_eq!(parts, out);
        }
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!(
            Subsets::new(3, 4).map(|_| ()),
            Err(Error::SubsetSize { size: 4, n_clusters: 3 })
        );
        assert_eq!(Subsets::new(3, 0).map(|_| ()), Err(Error::Empty { what: "`size`" }));
        assert_eq!(
            Subsets::new(0, 1).map(|_| ()),
            Err(Error::Empty { what: "the number of clusters" })
        );
    }
}
