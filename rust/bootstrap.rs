//! The multinomial cluster bootstrap: whole clusters drawn with replacement, within strata if there
//! are any.

use std::num::NonZeroUsize;

use crate::cpu::Cpu;
use crate::error::{Error, Result, check_rows, check_some, check_values};
use crate::parallel::{self, Run, Split, count_rows};
use crate::products::{self, LANES, Value};
use crate::scheme::{Draws, Scheme};
use crate::stream::check_range;

/// Per-cluster totals, one row of K finite sums a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Totals<'a, T = f64> {
    values: &'a [T],
    n_clusters: usize,
    n_columns: NonZeroUsize,
}

impl<'a> Totals<'a> {
    /// Reads `values` as (clusters, columns), row by row.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::TooManyRows`], [`Error::Shape`] or [`Error::NotFinite`].
    pub fn new(values: &'a [f64], n_clusters: usize, n_columns: usize) -> Result<Self> {
        let columns = check_matrix(n_clusters, n_columns)?;
        check_values("totals", values, &[n_clusters, n_columns])?;
        Ok(Self { values, n_clusters, n_columns: columns })
    }
}

impl<'a, T> Totals<'a, T> {
    /// All values, row by row.
    pub(crate) fn values(&self) -> &'a [T] {
        self.values
    }

    /// Rows.
    pub(crate) fn n_clusters(&self) -> usize {
        self.n_clusters
    }

    /// Values in a row.
    pub(crate) fn n_columns(&self) -> NonZeroUsize {
        self.n_columns
    }

    /// Totals of checked shape and values.
    pub(crate) fn trusted(values: &'a [T], n_columns: NonZeroUsize) -> Self {
        Self { values, n_clusters: values.len() / n_columns, n_columns }
    }
}

/// Checks the axes of a matrix and returns its number of columns.
pub(crate) fn check_matrix(n_clusters: usize, n_columns: usize) -> Result<NonZeroUsize> {
    check_some("the number of clusters", n_clusters)?;
    check_rows(n_clusters)?;
    NonZeroUsize::new(n_columns).ok_or(Error::Empty { what: "the number of columns" })
}

/// Checks that a scheme is for so many clusters.
pub(crate) fn check_scheme(scheme: &Scheme, n_clusters: usize) -> Result<()> {
    if scheme.n_clusters() == n_clusters {
        return Ok(());
    }
    Err(Error::Shape { name: "strata", expected: n_clusters, actual: scheme.n_clusters() })
}

/// Multiplicities of the clusters in the replicates `first`, `first + 1`, ...: fills `out`, (R, G)
/// row by row.
///
/// # Errors
/// [`Error::Empty`], [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
pub fn counts(scheme: &Scheme, seed: u64, first: u64, out: &mut [u32]) -> Result<()> {
    check_range(first, count_rows(out, scheme.n_clusters())?)?;
    let cpu = Cpu::detect();
    let mut draws = Draws::new(cpu);
    for (row, index) in out.chunks_exact_mut(scheme.n_clusters()).zip(first..) {
        draws.start(scheme, cpu, seed, index);
        scheme.count(&mut draws, row);
    }
    Ok(())
}

/// Replicate totals of the replicates `first`, `first + 1`, ...: fills `out`, (R, K) row by row.
///
/// A row is the sum over the clusters, in ascending order, of multiplicity times totals. The order
/// makes it a function of the multiplicities alone: the same clusters drawn always give the same
/// floats.
///
/// # Errors
/// [`Error::Shape`] when scheme and totals differ in clusters, [`Error::Empty`],
/// [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
pub fn totals(
    totals: &Totals,
    scheme: &Scheme,
    seed: u64,
    first: u64,
    run: Run,
    out: &mut [f64],
) -> Result<()> {
    converted(totals, scheme, seed, first, run, |sum| sum, out)
}

/// As [`totals`], of other numbers and with each sum converted.
pub(crate) fn converted<T: Value, U: Send>(
    totals: &Totals<'_, T>,
    scheme: &Scheme,
    seed: u64,
    first: u64,
    run: Run,
    convert: impl Fn(T) -> U + Sync,
    out: &mut [U],
) -> Result<()> {
    let &Totals { values, n_clusters, n_columns } = totals;
    check_scheme(scheme, n_clusters)?;
    check_range(first, count_rows(out, n_columns.get())?)?;
    let scratch = || Batch {
        draws: (0..LANES).map(|_| Draws::new(run.cpu)).collect(),
        counts: vec![[0; LANES]; scheme.longest()],
        sums: vec![[T::default(); LANES]; n_columns.get()],
    };
    parallel::fill(out, Split::lanes(n_columns, run), scratch, |batch, start, rows| {
        let mut indices = (first..).skip(start);
        for rows in rows.chunks_mut(n_columns.get() * LANES) {
            let n = rows.len() / n_columns;
            batch.sum(values, scheme, run.cpu, seed, indices.by_ref().take(n));
            products::write_lanes(&batch.sums, &convert, rows);
        }
    });
    Ok(())
}

/// Replicates that are drawn and summed together.
struct Batch<T> {
    draws: Vec<Draws>,
    /// Multiplicities of the clusters of a stretch.
    ///
    /// They would overflow if a cluster were drawn more than 65,535 times in one replicate, which
    /// only a stratum of more clusters allows, with a chance below 10 to the -280,000.
    counts: Vec<[u16; LANES]>,
    sums: Vec<[T; LANES]>,
}

impl<T: Value> Batch<T> {
    /// Sums the replicates of the given numbers, of which there are no more than lanes.
    fn sum(
        &mut self,
        values: &[T],
        scheme: &Scheme,
        cpu: Cpu,
        seed: u64,
        indices: impl Iterator<Item = u64>,
    ) {
        let width = self.sums.len();
        let mut n = 0;
        for (draws, index) in self.draws.iter_mut().zip(indices) {
            draws.start(scheme, cpu, seed, index);
            n += 1;
        }
        let draws = &mut self.draws[..n];
        self.sums.fill([T::default(); LANES]);
        for stretch in scheme.stretches() {
            let begin = stretch.positions.start;
            let counts = &mut self.counts[..stretch.positions.len()];
            counts.fill([0; LANES]);
            for (lane, draws) in draws.iter_mut().enumerate() {
                scheme.each_block(draws, stretch.blocks.clone(), begin, |start, indices| {
                    if scheme.in_order() {
                        let counts = &mut counts[start - begin..];
                        for &index in indices {
                            let count = &mut counts[usize::from(index)][lane];
                            *count = count.wrapping_add(1);
                        }
                    } else {
                        for &index in indices {
                            let cluster = scheme.cluster(start + usize::from(index));
                            let count = &mut counts[cluster][lane];
                            *count = count.wrapping_add(1);
                        }
                    }
                });
            }
            let values = &values[begin * width..stretch.positions.end * width];
            products::add(cpu, counts, values, &mut self.sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::runs;

    fn threads(n: usize) -> Run {
        Run::on(NonZeroUsize::new(n).expect("tests use threads"))
    }

    /// Fractions that no sum represents exactly, so that another order of summation would show.
    fn fractions(size: u32) -> Vec<f64> {
        (0..size).map(|i| f64::from(i * 7919 % 1009) / 1009.0 - 0.3).collect()
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn counts_keep_their_values() {
        let mut out = [9; 12];
        assert_eq!(counts(&Scheme::plain(6).expect("six clusters"), 1, 0, &mut out), Ok(()));
        assert_eq!(out, [1, 2, 0, 1, 1, 1, 0, 2, 1, 1, 0, 2]);
    }

    #[test]
    fn totals_are_counts_times_totals() {
        // The last case but one has many columns for the cache, the last has blocks.
        for (n_clusters, n_columns) in
            [(2_u32, 1_u32), (37, 5), (40, 22), (3_000, 7), (20, 1_500), (2_049, 3)]
        {
            let (g, k) = (n_clusters as usize, n_columns as usize);
            let values = fractions(n_clusters * n_columns);
            let data = Totals::new(&values, g, k).expect("finite totals");
            let codes: Vec<u32> = (0..n_clusters).map(|cluster| cluster % 2).collect();
            for scheme in [Scheme::plain(g), Scheme::stratified(&codes)] {
                let scheme = scheme.expect("a valid scheme");
                let (mut drawn, mut out) = (vec![0; 11 * g], vec![-1.0; 11 * k]);
                assert_eq!(counts(&scheme, 6, 2, &mut drawn), Ok(()));
                assert_eq!(totals(&data, &scheme, 6, 2, runs()[0], &mut out), Ok(()));
                for (drawn, row) in drawn.chunks(g).zip(out.chunks(k)) {
                    for (column, &sum) in row.iter().enumerate() {
                        let expected = (0..g).fold(0.0, |sum, cluster| {
                            sum + f64::from(drawn[cluster]) * values[cluster * k + column]
                        });
                        assert_eq!(sum.to_bits(), expected.to_bits());
                    }
                }
            }
        }
    }

    #[test]
    fn threads_and_chunks_change_no_bit() {
        for (n_clusters, n_columns) in [(60_u32, 7_u32), (2_000, 3), (2_500, 2)] {
            let (g, k) = (n_clusters as usize, n_columns as usize);
            let values = fractions(n_clusters * n_columns);
            let data = Totals::new(&values, g, k).expect("finite totals");
            let scheme = Scheme::plain(g).expect("clusters");
            let mut once = vec![0.0; 101 * k];
            assert_eq!(totals(&data, &scheme, 7, 0, threads(1), &mut once), Ok(()));
            for run in runs() {
                let mut out = vec![0.0; 101 * k];
                assert_eq!(totals(&data, &scheme, 7, 0, run, &mut out), Ok(()));
                assert_eq!(bits(&out), bits(&once));
            }
            let mut chunked = vec![0.0; 101 * k];
            for (chunk, first) in chunked.chunks_mut(13 * k).zip((0..).step_by(13)) {
                assert_eq!(totals(&data, &scheme, 7, first, threads(2), chunk), Ok(()));
            }
            assert_eq!(bits(&chunked), bits(&once));
        }
    }

    #[test]
    fn the_last_replicate_number_can_be_used() {
        let data = Totals::new(&[1.0, 2.0], 2, 1).expect("finite totals");
        let scheme = Scheme::plain(2).expect("clusters");
        let mut out = [0.0; 5];
        assert_eq!(totals(&data, &scheme, 7, u64::MAX - 5, threads(2), &mut out), Ok(()));
        assert_eq!(
            totals(&data, &scheme, 7, u64::MAX - 4, threads(2), &mut out),
            Err(Error::ReplicateRange { first: u64::MAX - 4, n_resamples: 5 })
        );
        assert_eq!(counts(&scheme, 7, u64::MAX - 2, &mut [0; 4]), Ok(()));
        assert_eq!(
            counts(&scheme, 7, u64::MAX, &mut [0; 4]),
            Err(Error::ReplicateRange { first: u64::MAX, n_resamples: 2 })
        );
    }

    #[test]
    fn invalid_input_is_refused() {
        let no_clusters = Error::Empty { what: "the number of clusters" };
        assert_eq!(Scheme::plain(0).err(), Some(no_clusters.clone()));
        assert_eq!(Scheme::stratified(&[]).err(), Some(no_clusters.clone()));
        assert_eq!(Totals::new(&[], 0, 3).err(), Some(no_clusters));
        assert_eq!(
            Totals::new(&[], 3, 0).err(),
            Some(Error::Empty { what: "the number of columns" })
        );
        assert_eq!(
            Totals::new(&[0.0; 5], 3, 2).err(),
            Some(Error::Shape { name: "totals", expected: 6, actual: 5 })
        );
        assert_eq!(
            Totals::new(&[0.0, 1.0, f64::NAN, 1.0], 2, 2).err(),
            Some(Error::NotFinite { name: "totals", value: "NaN".into(), at: vec![1, 0] })
        );
        assert_eq!(
            Scheme::stratified(&[0, 2, 2]).err(),
            Some(Error::StrataGap { code: 1, largest: 2 })
        );
        assert_eq!(
            Scheme::stratified(&[u32::MAX, 0]).err(),
            Some(Error::StrataGap { code: 1, largest: u32::MAX })
        );
        let data = Totals::new(&[1.0, 2.0], 2, 1).expect("finite totals");
        let scheme = Scheme::plain(3).expect("clusters");
        assert_eq!(
            totals(&data, &scheme, 0, 0, threads(1), &mut [0.0]),
            Err(Error::Shape { name: "strata", expected: 2, actual: 3 })
        );
        assert_eq!(
            counts(&scheme, 0, 0, &mut [0; 4]),
            Err(Error::PartialReplicate { row_len: 3, actual: 4 })
        );
        assert_eq!(counts(&scheme, 0, 0, &mut []), Err(Error::Empty { what: "`n_resamples`" }));
    }
}
