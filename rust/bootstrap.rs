//! The multinomial cluster bootstrap: whole clusters drawn with replacement, within strata if there
//! are any.

use std::num::{NonZeroU32, NonZeroUsize};

use crate::error::{Error, Result, check_rows, check_some, check_values};
use crate::parallel::{self, Split, count_rows};
use crate::stream::{Stream, check_range};
use crate::sum::{self, Weighted};

/// Which clusters stand in for which: all for all, or only those of the same stratum.
#[derive(Debug, Clone)]
pub struct Scheme {
    n_clusters: usize,
    /// Clusters in each stratum, in the order of the codes.
    sizes: Vec<NonZeroU32>,
    /// Clusters ordered by stratum, then by number; empty for a single stratum, where position and
    /// cluster are the same.
    members: Vec<u32>,
}

impl Scheme {
    /// G draws from all G clusters.
    ///
    /// # Errors
    /// [`Error::Empty`] without clusters, [`Error::TooManyRows`] past 32 bits.
    pub fn plain(n_clusters: usize) -> Result<Self> {
        let size = NonZeroU32::new(check_rows(n_clusters)?)
            .ok_or(Error::Empty { what: "the number of clusters" })?;
        Ok(Self { n_clusters, sizes: vec![size], members: Vec::new() })
    }

    /// As many draws within each stratum as it has clusters; `codes` holds the stratum 0..S-1 of
    /// each cluster, in any order.
    ///
    /// The strata draw one after the other, in the order of their codes. One stratum draws as
    /// [`Self::plain`] does.
    ///
    /// # Errors
    /// As [`Self::plain`], and [`Error::StrataGap`] for a code without a cluster.
    pub fn stratified(codes: &[u32]) -> Result<Self> {
        let plain = Self::plain(codes.len())?;
        let largest = codes.iter().copied().max().unwrap_or(0);
        // S codes without a gap need S clusters, so the counter never has to be longer than the
        // clusters allow, and a gap is then among the codes it counts.
        let mut counter = vec![0_u32; codes.len().min((largest as usize).saturating_add(1))];
        for &code in codes {
            if let Some(size) = counter.get_mut(code as usize) {
                *size += 1;
            }
        }
        let mut sizes = Vec::with_capacity(counter.len());
        for (&size, code) in counter.iter().zip(0..) {
            sizes.push(NonZeroU32::new(size).ok_or(Error::StrataGap { code, largest })?);
        }
        if sizes.len() == 1 {
            return Ok(plain);
        }
        let mut members: Vec<u32> = (0..).take(codes.len()).collect();
        members.sort_by_key(|&cluster| codes[cluster as usize]);
        Ok(Self { sizes, members, ..plain })
    }

    /// Clusters in all strata.
    #[must_use]
    pub fn n_clusters(&self) -> usize {
        self.n_clusters
    }

    /// Writes how often each cluster is drawn.
    fn draw(&self, mut stream: Stream, counts: &mut [u32]) {
        counts.fill(0);
        if let &[size] = self.sizes.as_slice() {
            stream.each_below(size, size.get(), |cluster| counts[cluster as usize] += 1);
            return;
        }
        let mut rest = self.members.as_slice();
        for &size in &self.sizes {
            let (stratum, others) = rest.split_at(size.get() as usize);
            stream.each_below(size, size.get(), |position| {
                counts[stratum[position as usize] as usize] += 1;
            });
            rest = others;
        }
    }
}

/// Per-cluster totals, one row of K finite sums a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Totals<'a> {
    values: &'a [f64],
    n_clusters: usize,
    n_columns: NonZeroUsize,
}

impl<'a> Totals<'a> {
    /// Reads `values` as (clusters, columns), row by row.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::TooManyRows`], [`Error::Shape`] or [`Error::NotFinite`].
    pub fn new(values: &'a [f64], n_clusters: usize, n_columns: usize) -> Result<Self> {
        check_some("the number of clusters", n_clusters)?;
        let columns =
            NonZeroUsize::new(n_columns).ok_or(Error::Empty { what: "the number of columns" })?;
        check_rows(n_clusters)?;
        check_values("totals", values, &[n_clusters, n_columns])?;
        Ok(Self { values, n_clusters, n_columns: columns })
    }
}

/// Multiplicities of the clusters in the replicates `first`, `first + 1`, ...: fills `out`, (R, G)
/// row by row.
///
/// # Errors
/// [`Error::Empty`], [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
pub fn counts(scheme: &Scheme, seed: u64, first: u64, out: &mut [u32]) -> Result<()> {
    check_range(first, count_rows(out, scheme.n_clusters)?)?;
    for (row, index) in out.chunks_exact_mut(scheme.n_clusters).zip(first..) {
        scheme.draw(Stream::new(seed, index), row);
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
    n_threads: NonZeroUsize,
    out: &mut [f64],
) -> Result<()> {
    let &Totals { values, n_clusters, n_columns } = totals;
    if scheme.n_clusters != n_clusters {
        return Err(Error::Shape {
            name: "strata",
            expected: n_clusters,
            actual: scheme.n_clusters,
        });
    }
    let width = n_columns.get();
    check_range(first, count_rows(out, width)?)?;
    let (block, batch) = sum::plan(n_clusters, width);
    let split = Split { row_len: n_columns, batch, n_threads };
    let scratch = || (vec![0_u32; n_clusters * batch.get()], vec![Weighted::default(); block]);
    parallel::fill(out, split, scratch, |(counts, drawn), start, rows| {
        let mut indices = (first..).skip(start);
        for rows in rows.chunks_mut(width * batch.get()) {
            for (counts, index) in
                counts.chunks_exact_mut(n_clusters).zip(indices.by_ref().take(rows.len() / width))
            {
                scheme.draw(Stream::new(seed, index), counts);
            }
            rows.fill(0.0);
            for begin in (0..n_clusters).step_by(block) {
                let end = n_clusters.min(begin + block);
                let values = &values[begin * width..end * width];
                for (counts, row) in
                    counts.chunks_exact(n_clusters).zip(rows.chunks_exact_mut(width))
                {
                    let n_drawn = list_drawn(&counts[begin..end], drawn);
                    sum::add_rows(values, &drawn[..n_drawn], row);
                }
            }
        }
    });
    Ok(())
}

/// Lists the clusters that were drawn and returns how many they are.
///
/// Adding a finite row zero times changes no sum, so leaving those out is a matter of speed; for
/// the same reason there is no branch, which would be mispredicted for every third cluster.
fn list_drawn(counts: &[u32], drawn: &mut [Weighted]) -> usize {
    let mut n_drawn = 0;
    for (&count, row) in counts.iter().zip(0..) {
        drawn[n_drawn] = Weighted { row, weight: f64::from(count) };
        n_drawn += usize::from(count > 0);
    }
    n_drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).expect("tests use threads")
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
        assert_eq!(out, [1, 1, 1, 3, 0, 0, 0, 0, 3, 0, 0, 3]);
    }

    #[test]
    fn one_stratum_is_the_plain_scheme() {
        let plain = Scheme::plain(50).expect("fifty clusters");
        let stratified = Scheme::stratified(&[0; 50]).expect("one stratum");
        let (mut a, mut b) = (vec![0; 500], vec![1; 500]);
        assert_eq!(counts(&plain, 3, 4, &mut a), Ok(()));
        assert_eq!(counts(&stratified, 3, 4, &mut b), Ok(()));
        assert_eq!(a, b);
    }

    #[test]
    fn strata_keep_their_sizes() {
        let codes: Vec<u32> = (0..90).map(|g| [2, 0, 1, 2, 2, 3][g % 6]).collect();
        let scheme = Scheme::stratified(&codes).expect("four strata");
        let mut out = vec![0; 90 * 40];
        assert_eq!(counts(&scheme, 8, 0, &mut out), Ok(()));
        for row in out.chunks(90) {
            let mut sizes = [0; 4];
            for (&code, &count) in codes.iter().zip(row) {
                sizes[code as usize] += count;
            }
            assert_eq!(sizes, [15, 15, 45, 15]);
        }
        assert!(out.iter().any(|&count| count != 1));
    }

    /// Every cluster of a stratum is drawn equally often; 0.9999 quantile of chi-square with 29
    /// degrees of freedom, and the counts of one draw of 30 vary as 30 independent draws do.
    #[test]
    fn clusters_are_drawn_uniformly() {
        let codes: Vec<u32> = (0..60).map(|g| g % 2).collect();
        let scheme = Scheme::stratified(&codes).expect("two strata");
        let mut out = vec![0; 60 * 5_000];
        assert_eq!(counts(&scheme, 11, 0, &mut out), Ok(()));
        let mut cells = [0_u32; 60];
        for row in out.chunks(60) {
            for (cell, &count) in cells.iter_mut().zip(row) {
                *cell += count;
            }
        }
        for stratum in 0..2 {
            let chi_square: f64 = cells
                .iter()
                .skip(stratum)
                .step_by(2)
                .map(|&cell| (f64::from(cell) - 5_000.0).powi(2) / 5_000.0)
                .sum();
            assert!(chi_square < 66.2, "stratum {stratum}: {chi_square}");
        }
    }

    #[test]
    fn totals_are_counts_times_totals() {
        // The largest case has several blocks, so that replicates take turns.
        for (n_clusters, n_columns) in [(2_u32, 1_u32), (37, 5), (40, 22), (3_000, 36), (20, 1_500)]
        {
            let (g, k) = (n_clusters as usize, n_columns as usize);
            let values = fractions(n_clusters * n_columns);
            let data = Totals::new(&values, g, k).expect("finite totals");
            let codes: Vec<u32> = (0..n_clusters).map(|cluster| cluster % 2).collect();
            for scheme in [Scheme::plain(g), Scheme::stratified(&codes)] {
                let scheme = scheme.expect("a valid scheme");
                let (mut drawn, mut out) = (vec![0; 11 * g], vec![-1.0; 11 * k]);
                assert_eq!(counts(&scheme, 6, 2, &mut drawn), Ok(()));
                assert_eq!(totals(&data, &scheme, 6, 2, threads(1), &mut out), Ok(()));
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
        for (n_clusters, n_columns) in [(60_u32, 7_u32), (2_000, 30)] {
            let (g, k) = (n_clusters as usize, n_columns as usize);
            let values = fractions(n_clusters * n_columns);
            let data = Totals::new(&values, g, k).expect("finite totals");
            let scheme = Scheme::plain(g).expect("clusters");
            let mut once = vec![0.0; 101 * k];
            assert_eq!(totals(&data, &scheme, 7, 0, threads(1), &mut once), Ok(()));
            for n_threads in [2, 3, 7] {
                let mut out = vec![0.0; 101 * k];
                assert_eq!(totals(&data, &scheme, 7, 0, threads(n_threads), &mut out), Ok(()));
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
