//! Permutations of labels within clusters, drawn at random or enumerated.
//!
//! A cluster's totals come in blocks of columns, one block a label. A permutation moves whole
//! blocks within the cluster, so that everything summed into a block (models, repetitions, judges)
//! moves together.

use std::num::{NonZeroU16, NonZeroUsize};
use std::ops::RangeInclusive;

use crate::cpu::Cpu;
use crate::error::{Error, Result, check_rows, check_some, check_values};
use crate::flips::each_sign;
use crate::parallel::{self, Run, Split, count_rows};
use crate::stream::{Stream, check_range};
use crate::sum;

/// Numbers of labels for which all permutations have a 16-bit code.
const LABELS: RangeInclusive<u8> = 2..=8;

/// The permutations of 0..L in lexicographic order; a permutation's code is its place in that
/// order, so code 0 changes nothing.
#[derive(Debug, Clone)]
pub struct Permutations {
    n_labels: u8,
    /// L!.
    count: NonZeroU16,
    /// Source of each label under each permutation: all permutations of label 0, then all of label
    /// 1, and so on, because sums are made label by label.
    table: Vec<u8>,
}

impl Permutations {
    /// All permutations of `n_labels` labels.
    ///
    /// # Errors
    /// [`Error::Labels`] outside 2..=8.
    pub fn new(n_labels: usize) -> Result<Self> {
        let few = u8::try_from(n_labels)
            .ok()
            .filter(|few| LABELS.contains(few))
            .ok_or(Error::Labels { n_labels })?;
        let mut current: Vec<u8> = (0..few).collect();
        let mut all = current.clone();
        let mut count = NonZeroU16::MIN;
        while next_permutation(&mut current) {
            all.extend_from_slice(&current);
            count = count.saturating_add(1);
        }
        let table =
            (0..n_labels).flat_map(|label| all.iter().skip(label).step_by(n_labels)).copied();
        Ok(Self { n_labels: few, count, table: table.collect() })
    }

    /// Source of `label` under each permutation, by code.
    fn sources(&self, label: usize) -> &[u8] {
        let count = usize::from(self.count.get());
        &self.table[label * count..][..count]
    }

    /// How many there are: L!.
    #[must_use]
    pub fn count(&self) -> NonZeroU16 {
        self.count
    }

    /// One uniform code a cluster; with two labels, the sign bits of `flips`.
    fn draw(&self, mut stream: Stream, codes: &mut [u16]) {
        if self.n_labels > 2 {
            stream.indices(self.count, codes);
            return;
        }
        each_sign(&mut stream, codes.iter_mut(), |code, negative| *code = u16::from(negative));
    }
}

/// Per-cluster totals in blocks, (clusters, labels, columns) row by row, all finite.
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    values: &'a [f64],
    n_clusters: usize,
    n_columns: usize,
    /// Values of one cluster, and of one replicate: labels times columns.
    width: NonZeroUsize,
    permutations: Permutations,
}

impl<'a> Blocks<'a> {
    /// Reads `values` as (clusters, labels, columns).
    ///
    /// # Errors
    /// [`Error::Labels`], [`Error::Empty`], [`Error::TooManyRows`], [`Error::Shape`] or
    /// [`Error::NotFinite`].
    pub fn new(
        values: &'a [f64],
        n_clusters: usize,
        n_labels: usize,
        n_columns: usize,
    ) -> Result<Self> {
        let permutations = Permutations::new(n_labels)?;
        check_some("the number of clusters", n_clusters)?;
        check_rows(n_clusters.saturating_mul(n_labels))?;
        let width = NonZeroUsize::new(n_labels.saturating_mul(n_columns))
            .ok_or(Error::Empty { what: "the number of columns" })?;
        check_values("blocks", values, &[n_clusters, n_labels, n_columns])?;
        Ok(Self { values, n_clusters, n_columns, width, permutations })
    }

    /// Values in one replicate: labels times columns.
    #[must_use]
    pub fn width(&self) -> NonZeroUsize {
        self.width
    }

    /// Checks that arrangements `first` to `first + n_resamples - 1` exist.
    ///
    /// # Errors
    /// [`Error::TooManyArrangements`] when they do not, [`Error::UncountableArrangements`] when 64
    /// bits cannot number them all.
    pub fn check_arrangements(&self, first: u64, n_resamples: usize) -> Result<()> {
        let (n_clusters, n_labels) = (self.n_clusters, usize::from(self.permutations.n_labels));
        let available = u32::try_from(n_clusters)
            .ok()
            .and_then(|power| u64::from(self.permutations.count.get()).checked_pow(power))
            .ok_or(Error::UncountableArrangements { n_clusters, n_labels })?;
        let end = u64::try_from(n_resamples).ok().and_then(|n| first.checked_add(n));
        match end {
            Some(end) if end <= available => Ok(()),
            _ => Err(Error::TooManyArrangements { first, n_resamples, available }),
        }
    }

    /// Codes of arrangement `number`: its digits in base L!, cluster 0 the least significant.
    fn arrange(&self, mut number: u64, codes: &mut [u16]) {
        let base = u64::from(self.permutations.count.get());
        for code in codes {
            *code = to_code(number % base);
            number /= base;
        }
    }

    /// Sums the replicates from `first` on, for which `write_codes(number, codes)` gives each
    /// cluster's permutation.
    fn fill(
        &self,
        first: u64,
        run: Run,
        out: &mut [f64],
        write_codes: impl Fn(u64, &mut [u16]) + Sync,
    ) {
        let &Self { values, n_clusters, n_columns, width, ref permutations } = self;
        let n_labels = usize::from(permutations.n_labels);
        let (block, batch) = sum::plan(n_clusters, width.get());
        let split = Split { row_len: width, batch, n_threads: run.n_threads };
        let scratch =
            || (vec![0_u16; n_clusters * batch.get()], Vec::with_capacity(block * n_labels));
        let width = width.get();
        parallel::fill(out, split, scratch, |(codes, sources), start, rows| {
            let mut numbers = (first..).skip(start);
            for rows in rows.chunks_mut(width * batch.get()) {
                for (codes, number) in codes
                    .chunks_exact_mut(n_clusters)
                    .zip(numbers.by_ref().take(rows.len() / width))
                {
                    write_codes(number, codes);
                }
                rows.fill(0.0);
                for begin in (0..n_clusters).step_by(block) {
                    let end = n_clusters.min(begin + block);
                    let values = &values[begin * width..end * width];
                    for (codes, row) in
                        codes.chunks_exact(n_clusters).zip(rows.chunks_exact_mut(width))
                    {
                        list_sources(permutations, &codes[begin..end], sources);
                        for (sources, sums) in
                            sources.chunks_exact(end - begin).zip(row.chunks_exact_mut(n_columns))
                        {
                            sum::add_rows(values, sources, sums);
                        }
                    }
                }
            }
        });
    }
}

/// Permutation codes of the replicates `first`, `first + 1`, ...: fills `out`, (R, G) row by row.
///
/// # Errors
/// [`Error::Empty`], [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
pub fn codes(
    permutations: &Permutations,
    n_clusters: usize,
    seed: u64,
    first: u64,
    out: &mut [u16],
) -> Result<()> {
    check_some("the number of clusters", n_clusters)?;
    check_rows(n_clusters)?;
    check_range(first, count_rows(out, n_clusters)?)?;
    let cpu = Cpu::detect();
    for (row, index) in out.chunks_exact_mut(n_clusters).zip(first..) {
        permutations.draw(Stream::new(cpu, seed, index), row);
    }
    Ok(())
}

/// Totals after a random permutation within each cluster, for the replicates `first`, `first + 1`,
/// ...: fills `out`, (R, L, K).
///
/// Block `l` of a replicate is the sum over the clusters, in ascending order, of the cluster's
/// block `permutation[l]`.
///
/// # Errors
/// [`Error::Empty`], [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
pub fn blocks(blocks: &Blocks, seed: u64, first: u64, run: Run, out: &mut [f64]) -> Result<()> {
    let cpu = run.cpu;
    check_range(first, count_rows(out, blocks.width.get())?)?;
    blocks.fill(first, run, out, |index, codes| {
        blocks.permutations.draw(Stream::new(cpu, seed, index), codes);
    });
    Ok(())
}

/// As [`blocks`], for the arrangements number `first`, `first + 1`, ... of all (L!)^G, of which
/// number 0 moves nothing.
///
/// The digits of an arrangement's number in base L! are the permutation codes, with cluster 0 the
/// least significant.
///
/// # Errors
/// [`Error::Empty`], [`Error::PartialReplicate`], [`Error::TooManyArrangements`] or
/// [`Error::UncountableArrangements`].
pub fn enumerate(blocks: &Blocks, first: u64, run: Run, out: &mut [f64]) -> Result<()> {
    blocks.check_arrangements(first, count_rows(out, blocks.width.get())?)?;
    blocks.fill(first, run, out, |number, codes| blocks.arrange(number, codes));
    Ok(())
}

/// Lists, label by label, the rows that end up there: row `cluster * L + source` of the (clusters *
/// L, columns) matrix.
fn list_sources(permutations: &Permutations, codes: &[u16], sources: &mut Vec<u32>) {
    let stride = u32::from(permutations.n_labels);
    sources.clear();
    for label in 0..usize::from(permutations.n_labels) {
        let source = permutations.sources(label);
        let mut row = 0;
        sources.extend(codes.iter().map(|&code| {
            let listed = row + u32::from(source[usize::from(code)]);
            row += stride;
            listed
        }));
    }
}

/// Moves to the lexicographically next permutation; false after the last.
fn next_permutation(labels: &mut [u8]) -> bool {
    let Some(pivot) = labels.windows(2).rposition(|pair| pair[0] < pair[1]) else {
        return false;
    };
    let (head, tail) = labels.split_at_mut(pivot + 1);
    // The tail descends, and its first label exceeds the pivot.
    if let Some(larger) = tail.iter().rposition(|&label| label > head[pivot]) {
        std::mem::swap(&mut head[pivot], &mut tail[larger]);
    }
    tail.reverse();
    true
}

/// A code, which is below 8! and so fits in 16 bits.
fn to_code(value: impl TryInto<u16>) -> u16 {
    value.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn threads(n: usize) -> Run {
        Run::on(NonZeroUsize::new(n).expect("tests use threads"))
    }

    /// Fractions that no sum represents exactly, so that another order of summation would show.
    fn fractions(size: usize) -> Vec<f64> {
        (0_u32..).take(size).map(|i| f64::from(i * 7919 % 1009) / 1009.0 - 0.3).collect()
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    /// Sums straight from the definition.
    fn sums(values: &[f64], codes: &[u16], list: &Permutations, n_columns: usize) -> Vec<f64> {
        let n_labels = usize::from(list.n_labels);
        let mut out = vec![0.0; n_labels * n_columns];
        for (cluster, &code) in codes.iter().enumerate() {
            for label in 0..n_labels {
                let source = usize::from(list.sources(label)[usize::from(code)]);
                for column in 0..n_columns {
                    out[label * n_columns + column] +=
                        values[(cluster * n_labels + source) * n_columns + column];
                }
            }
        }
        out
    }

    #[test]
    fn permutations_are_in_lexicographic_order() {
        let list = Permutations::new(3).expect("three labels");
        assert_eq!(list.sources(0), [0, 0, 1, 1, 2, 2]);
        assert_eq!(list.sources(1), [1, 2, 0, 2, 0, 1]);
        assert_eq!(list.sources(2), [2, 1, 2, 0, 1, 0]);
    }

    #[test]
    fn every_number_of_labels_has_all_its_permutations() {
        let mut factorial = 1;
        for n_labels in 2..=8 {
            let list = Permutations::new(n_labels).expect("two to eight labels");
            factorial *= n_labels;
            assert_eq!(usize::from(list.count().get()), factorial);
            let all: Vec<Vec<u8>> = (0..factorial)
                .map(|code| (0..n_labels).map(|label| list.sources(label)[code]).collect())
                .collect();
            assert!(all.is_sorted());
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), factorial);
            for mut permutation in all {
                permutation.sort_unstable();
                assert!(permutation.iter().copied().eq((0..).take(n_labels)));
            }
        }
    }

    #[test]
    fn codes_keep_their_values() {
        let mut out = [0; 6];
        let list = Permutations::new(4).expect("four labels");
        assert_eq!(codes(&list, 6, 1, 0, &mut out), Ok(()));
        assert_eq!(out, [17, 6, 23, 1, 13, 4]);
    }

    /// Chi-square statistics against the 0.9999 quantiles for L! - 1 degrees of freedom.
    #[test]
    fn codes_are_uniform() {
        for (n_labels, quantile) in [(2, 15.14), (3, 25.74), (4, 57.08), (5, 184.3)] {
            let list = Permutations::new(n_labels).expect("two to five labels");
            let mut out = vec![0; 40 * 2_000];
            assert_eq!(codes(&list, 40, 17, 0, &mut out), Ok(()));
            let mut cells = vec![0_u32; usize::from(list.count().get())];
            for &code in &out {
                cells[usize::from(code)] += 1;
            }
            let expected = 80_000.0 / f64::from(list.count().get());
            let chi_square: f64 =
                cells.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
            assert!(chi_square < quantile, "{n_labels} labels: {chi_square}");
        }
    }

    #[test]
    fn blocks_follow_the_codes() {
        // The third case has several blocks of rows, so that replicates take turns.
        for (n_clusters, n_labels, n_columns) in
            [(2, 2, 1), (30, 3, 5), (900, 4, 20), (3, 8, 2), (40, 2, 12)]
        {
            let values = fractions(n_clusters * n_labels * n_columns);
            let data = Blocks::new(&values, n_clusters, n_labels, n_columns).expect("finite");
            let list = Permutations::new(n_labels).expect("two to eight labels");
            let width = n_labels * n_columns;
            let (mut drawn, mut out) = (vec![0; 11 * n_clusters], vec![-1.0; 11 * width]);
            assert_eq!(codes(&list, n_clusters, 3, 5, &mut drawn), Ok(()));
            assert_eq!(blocks(&data, 3, 5, threads(1), &mut out), Ok(()));
            for (codes, row) in drawn.chunks(n_clusters).zip(out.chunks(width)) {
                assert_eq!(bits(row), bits(&sums(&values, codes, &list, n_columns)));
            }
        }
    }

    #[test]
    fn threads_and_chunks_change_no_bit() {
        for n_clusters in [10, 2_000] {
            let values = fractions(n_clusters * 3 * 6);
            let data = Blocks::new(&values, n_clusters, 3, 6).expect("finite");
            let mut once = vec![0.0; 101 * 18];
            assert_eq!(blocks(&data, 7, 0, threads(1), &mut once), Ok(()));
            for n_threads in [2, 3, 7] {
                let mut out = vec![0.0; 101 * 18];
                assert_eq!(blocks(&data, 7, 0, threads(n_threads), &mut out), Ok(()));
                assert_eq!(bits(&out), bits(&once));
            }
            let mut chunked = vec![0.0; 101 * 18];
            for (chunk, first) in chunked.chunks_mut(13 * 18).zip((0..).step_by(13)) {
                assert_eq!(blocks(&data, 7, first, threads(2), chunk), Ok(()));
            }
            assert_eq!(bits(&chunked), bits(&once));
        }
    }

    #[test]
    fn enumeration_meets_each_arrangement_once() {
        // Powers of ten make every arrangement's sums different, and exact.
        for (n_clusters, n_labels, n_all) in [(5, 2, 32), (3, 3, 216), (2, 4, 576)] {
            let mut power = 1.0;
            let values: Vec<f64> = (0..n_clusters * n_labels)
                .map(|_| {
                    power *= 10.0;
                    power
                })
                .collect();
            let data = Blocks::new(&values, n_clusters, n_labels, 1).expect("finite");
            let mut out = vec![0.0; n_all * n_labels];
            assert_eq!(enumerate(&data, 0, threads(2), &mut out), Ok(()));
            let distinct: HashSet<Vec<u64>> = out.chunks(n_labels).map(bits).collect();
            assert_eq!(distinct.len(), n_all);

            let list = Permutations::new(n_labels).expect("labels");
            assert_eq!(
                bits(&out[..n_labels]),
                bits(&sums(&values, &vec![0; n_clusters], &list, 1))
            );
            let mut codes = vec![0; n_clusters];
            codes[0] = 1;
            assert_eq!(bits(&out[n_labels..][..n_labels]), bits(&sums(&values, &codes, &list, 1)));

            let mut later = vec![0.0; 7 * n_labels];
            assert_eq!(enumerate(&data, 20, threads(1), &mut later), Ok(()));
            assert_eq!(bits(&later), bits(&out[20 * n_labels..27 * n_labels]));
        }
    }

    #[test]
    fn arrangements_are_counted() {
        let values = fractions(64 * 2);
        let data = Blocks::new(&values[..6], 3, 2, 1).expect("finite");
        assert_eq!(data.check_arrangements(0, 8), Ok(()));
        assert_eq!(
            enumerate(&data, 7, threads(1), &mut [0.0; 4]),
            Err(Error::TooManyArrangements { first: 7, n_resamples: 2, available: 8 })
        );
        assert_eq!(
            data.check_arrangements(u64::MAX, 1),
            Err(Error::TooManyArrangements { first: u64::MAX, n_resamples: 1, available: 8 })
        );
        let data = Blocks::new(&values[..126], 63, 2, 1).expect("finite");
        assert_eq!(data.check_arrangements((1 << 63) - 1, 1), Ok(()));
        let data = Blocks::new(&values, 64, 2, 1).expect("finite");
        assert_eq!(
            enumerate(&data, 0, threads(1), &mut [0.0; 2]),
            Err(Error::UncountableArrangements { n_clusters: 64, n_labels: 2 })
        );
    }

    #[test]
    fn invalid_input_is_refused() {
        for n_labels in [0, 1, 9, usize::MAX] {
            assert_eq!(Permutations::new(n_labels).err(), Some(Error::Labels { n_labels }));
            assert_eq!(Blocks::new(&[], 1, n_labels, 1).err(), Some(Error::Labels { n_labels }));
        }
        let no_clusters = Error::Empty { what: "the number of clusters" };
        assert_eq!(Blocks::new(&[], 0, 2, 1).err(), Some(no_clusters.clone()));
        assert_eq!(
            Blocks::new(&[], 1, 2, 0).err(),
            Some(Error::Empty { what: "the number of columns" })
        );
        assert_eq!(
            Blocks::new(&[0.0; 5], 1, 2, 3).err(),
            Some(Error::Shape { name: "blocks", expected: 6, actual: 5 })
        );
        assert_eq!(
            Blocks::new(&[0.0, 1.0, 2.0, f64::INFINITY], 2, 2, 1).err(),
            Some(Error::NotFinite { name: "blocks", value: "inf".into(), at: vec![1, 1, 0] })
        );
        assert!(matches!(Blocks::new(&[], usize::MAX, 2, 1), Err(Error::TooManyRows { .. })));
        let list = Permutations::new(2).expect("two labels");
        assert_eq!(codes(&list, 0, 0, 0, &mut [0]), Err(no_clusters));
        assert_eq!(
            codes(&list, 2, 0, u64::MAX, &mut [0; 4]),
            Err(Error::ReplicateRange { first: u64::MAX, n_resamples: 2 })
        );
        let data = Blocks::new(&[0.0; 4], 2, 2, 1).expect("finite");
        assert_eq!(
            blocks(&data, 0, 0, threads(1), &mut [0.0; 3]),
            Err(Error::PartialReplicate { row_len: 2, actual: 3 })
        );
    }
}
