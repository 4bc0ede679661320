//! The bootstrap of two levels: clusters with replacement, then within each drawn cluster the
//! repetitions of each cell with replacement, anew for every draw.

use std::num::{NonZeroU8, NonZeroU16, NonZeroUsize};

use crate::binomial::Chance;
use crate::bootstrap::{check_matrix, check_scheme};
use crate::bytes::Bytes;
use crate::cpu::Cpu;
use crate::error::{Error, Result, check_finite};
use crate::parallel::{self, Run, Split, count_rows};
use crate::scheme::{Draws, Scheme};
use crate::stream::check_range;

/// Draws of a repetition that take as long as a binomial draw, about.
const DRAWS_PER_GROUP: usize = 16;

/// Repetitions in cells of clusters and columns, laid out for the draws of a scheme.
#[derive(Debug, Clone)]
pub struct Cells<'a> {
    values: &'a [f64],
    offsets: &'a [i64],
    n_clusters: usize,
    n_columns: NonZeroUsize,
    /// Whether every cell has a repetition.
    full: bool,
    binary: Option<Binary>,
}

impl<'a> Cells<'a> {
    /// Cell (g, k) has the values `offsets[g * K + k]..offsets[g * K + k + 1]`; it may have none.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::TooManyRows`], [`Error::Shape`], [`Error::Offsets`],
    /// [`Error::NotFinite`], or [`Error::TooManyRepetitions`] past 16 bits.
    pub fn new(
        values: &'a [f64],
        offsets: &'a [i64],
        n_columns: usize,
        scheme: &Scheme,
    ) -> Result<Self> {
        let n_clusters = scheme.n_clusters();
        let columns = check_matrix(n_clusters, n_columns)?;
        let expected = n_clusters.checked_mul(n_columns).and_then(|size| size.checked_add(1));
        if expected != Some(offsets.len()) {
            let (expected, actual) = (expected.unwrap_or(usize::MAX), offsets.len());
            return Err(Error::Shape { name: "offsets", expected, actual });
        }
        check_offsets(offsets, values.len())?;
        check_finite("values", values, &[values.len()])?;
        let mut cells = Self {
            values,
            offsets,
            n_clusters,
            n_columns: columns,
            full: offsets.windows(2).all(|ends| ends[0] < ends[1]),
            binary: None,
        };
        #[expect(clippy::float_cmp, reason = "only the exact values count")]
        if values.iter().all(|&value| value == 0.0 || value == 1.0) {
            cells.binary = Binary::new(&cells, scheme);
        }
        Ok(cells)
    }

    /// Repetitions of a cell.
    #[inline]
    fn cell(&self, number: usize) -> &'a [f64] {
        let bounds = [self.offsets[number], self.offsets[number + 1]];
        let [start, end] = bounds.map(|bound| usize::try_from(bound).unwrap_or(0));
        &self.values[start..end]
    }

    /// Draws and adds one replicate, cluster by cluster and draw by draw.
    fn add_drawn(&self, scheme: &Scheme, scratch: &mut Scratch) {
        let Scratch { draws, row, counts, drawn, .. } = scratch;
        scheme.count(draws, counts);
        let width = self.n_columns.get();
        for (cluster, &count) in counts.iter().enumerate() {
            let mut column = 0;
            while count > 0 && column < width {
                // Cells of as many repetitions draw together.
                let first = cluster * width + column;
                let n = self.cell(first).len();
                let same =
                    (first..(cluster + 1) * width).take_while(|&cell| self.cell(cell).len() == n);
                let columns = column..column + same.count();
                column = columns.end;
                let Some(bound) = u16::try_from(n).ok().and_then(NonZeroU16::new) else { continue };
                drawn.clear();
                drawn.resize(if n > 1 { n * columns.len() * count as usize } else { 0 }, 0);
                draws.stream.indices(bound, drawn);
                let row = &mut row[columns.clone()];
                for copy in 0..count as usize {
                    for (place, mean) in row.iter_mut().enumerate() {
                        let values = self.cell(first + place);
                        mean.count += 1;
                        if let &[value] = values {
                            mean.sum += value;
                            continue;
                        }
                        let start = (copy * columns.len() + place) * n;
                        let sum = drawn[start..start + n]
                            .iter()
                            .fold(0.0, |sum, &index| sum + values[usize::from(index)]);
                        mean.sum += sum / f64::from(bound.get());
                    }
                }
            }
        }
    }
}

/// Checks that offsets go from 0 to the number of values without a step back, and not too far at
/// once.
fn check_offsets(offsets: &[i64], n_values: usize) -> Result<()> {
    let last = offsets.last().and_then(|&last| usize::try_from(last).ok());
    if offsets.first() != Some(&0) || last != Some(n_values) {
        return Err(Error::Offsets { n_values });
    }
    for (cell, (&start, &end)) in offsets.iter().zip(&offsets[1..]).enumerate() {
        if end < start {
            return Err(Error::Offsets { n_values });
        }
        if end - start > i64::from(u16::MAX) {
            return Err(Error::TooManyRepetitions { cell, limit: u16::MAX });
        }
    }
    Ok(())
}

/// Sum of means of the drawn cells of a column, and their number.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

/// Cells of zeros and ones, grouped by column, repetitions and ones.
///
/// Given which cells are drawn, the ones among the repetitions of a drawn cell of n repetitions and
/// s ones are a binomial number of n trials of chance s/n, independent of all others. So those of
/// m drawn cells with the same n and s are a binomial number of n m trials.
#[derive(Debug, Clone)]
struct Binary {
    /// In the order of the columns, then of n, then of s; without the cells of zeros alone.
    groups: Vec<Group>,
    /// One column of bytes for each group, which marks its cells; if some cells are empty, then one
    /// for each column, which marks those that are not.
    marks: Bytes,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    column: usize,
    n: u32,
    /// Draws ones are binomial unless all are ones.
    chance: Option<Chance>,
}

impl Binary {
    /// None where draw by draw is about as fast.
    fn new(cells: &Cells, scheme: &Scheme) -> Option<Self> {
        let width = cells.n_columns.get();
        let key = |cell: usize| {
            let values = cells.cell(cell);
            let ones = values.iter().filter(|&&value| value > 0.0).count();
            (cell % width, values.len(), ones)
        };
        let keys: Vec<_> = (0..cells.n_clusters * width).map(key).collect();
        let mut distinct: Vec<_> = keys.iter().copied().filter(|&(_, _, ones)| ones > 0).collect();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len().saturating_mul(DRAWS_PER_GROUP) > cells.values.len() {
            return None;
        }
        let most_trials = distinct.iter().map(|&(_, n, _)| n).max().unwrap_or(1);
        u32::try_from(cells.n_clusters.checked_mul(most_trials)?).ok()?;
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let groups: Vec<_> = distinct
            .iter()
            .map(|&(column, n, ones)| Group {
                column,
                n: number(n),
                chance: (ones < n).then(|| Chance::new(number(ones), number(n))),
            })
            .collect();
        let n_marks = groups.len() + if cells.full { 0 } else { width };
        let mark = |cluster: usize, mark: usize| {
            let marked = distinct.get(mark).map_or_else(
                || keys[cluster * width + mark - groups.len()].1 > 0,
                |&group| keys[cluster * width + group.0] == group,
            );
            u8::from(marked)
        };
        let marks = Bytes::new(scheme, n_marks, NonZeroU8::MIN, mark);
        Some(Self { groups, marks })
    }

    /// Draws and adds one replicate.
    #[inline]
    fn add_drawn(&self, cpu: Cpu, scheme: &Scheme, scratch: &mut Scratch) {
        let Scratch { draws, row, marks, .. } = scratch;
        marks.fill(0);
        self.marks.add_drawn(cpu, scheme, draws, marks);
        let (drawn, present) = marks.split_at(self.groups.len());
        for (group, &times) in self.groups.iter().zip(drawn) {
            // The number of trials has been found to fit.
            let trials = group.n * u32::try_from(times).unwrap_or(0);
            let ones = group.chance.map_or(trials, |chance| chance.draw(&mut draws.stream, trials));
            row[group.column].sum += f64::from(ones) / f64::from(group.n);
        }
        for (place, mean) in row.iter_mut().enumerate() {
            mean.count = present
                .get(place)
                .map_or(scheme.n_draws(), |&count| u32::try_from(count).unwrap_or(u32::MAX));
        }
    }
}

/// What a thread needs.
struct Scratch {
    draws: Draws,
    row: Vec<Mean>,
    counts: Vec<u32>,
    drawn: Vec<u16>,
    marks: Vec<u64>,
}

/// Sums over the drawn clusters that have a cell of the mean of its drawn repetitions, and the
/// number of those clusters, in the replicates `first`, `first + 1`, ...: fills `sums` and
/// `counts`, both (R, K) row by row.
///
/// The clusters are those of [`crate::bootstrap::counts`]. Whether the cells hold zeros and ones
/// only, which are drawn by the group, depends on the data alone.
///
/// # Errors
/// [`Error::Shape`] when scheme or outputs differ from the cells, [`Error::Empty`],
/// [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
pub fn totals(
    cells: &Cells,
    scheme: &Scheme,
    seed: u64,
    first: u64,
    run: Run,
    sums: &mut [f64],
    counts: &mut [u32],
) -> Result<()> {
    check_scheme(scheme, cells.n_clusters)?;
    let width = cells.n_columns;
    check_range(first, count_rows(sums, width.get())?)?;
    if sums.len() != counts.len() {
        return Err(Error::Shape { name: "counts", expected: sums.len(), actual: counts.len() });
    }
    let scratch = || Scratch {
        draws: Draws::new(run.cpu),
        row: vec![Mean::default(); width.get()],
        counts: vec![0; if cells.binary.is_some() { 0 } else { cells.n_clusters }],
        drawn: Vec::new(),
        marks: vec![0; cells.binary.as_ref().map_or(0, |binary| binary.marks.n_columns())],
    };
    let split = Split::single(width, run);
    parallel::fill_pair(sums, counts, split, scratch, |scratch, start, sums, counts| {
        let rows = sums.chunks_exact_mut(width.get()).zip(counts.chunks_exact_mut(width.get()));
        for ((sums, counts), index) in rows.zip((first..).skip(start)) {
            scratch.draws.start(scheme, run.cpu, seed, index);
            scratch.row.fill(Mean::default());
            if let Some(binary) = &cells.binary {
                binary.add_drawn(run.cpu, scheme, scratch);
            } else {
                cells.add_drawn(scheme, scratch);
            }
            for ((sum, count), mean) in sums.iter_mut().zip(counts).zip(&scratch.row) {
                *sum = mean.sum;
                *count = mean.count;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap;
    use crate::parallel::runs;

    /// Offsets of cells of the given sizes.
    fn offsets(sizes: impl IntoIterator<Item = i64>) -> Vec<i64> {
        let mut end = 0;
        let ends = sizes.into_iter().map(|size| {
            end += size;
            end
        });
        std::iter::once(0).chain(ends).collect()
    }

    fn size(offsets: &[i64]) -> usize {
        usize::try_from(offsets[offsets.len() - 1]).expect("sizes are positive")
    }

    fn ones(n: usize) -> Vec<f64> {
        (0..n).map(|i| f64::from(u8::from(i * 7919 % 101 < 40))).collect()
    }

    /// Replicates by the kernel, (R, K) each.
    fn replicates(cells: &Cells, scheme: &Scheme, r: usize, run: Run) -> (Vec<f64>, Vec<u32>) {
        let size = r * cells.n_columns.get();
        let (mut sums, mut counts) = (vec![-1.0; size], vec![9; size]);
        assert_eq!(totals(cells, scheme, 6, 3, run, &mut sums, &mut counts), Ok(()));
        (sums, counts)
    }

    #[test]
    fn counts_are_those_of_the_clusters_that_have_the_cell() {
        let (g, k) = (200_usize, 3_usize);
        let offsets = offsets((0..600).map(|i| [2, 0, 3, 1][i * 31 % 7 % 4]));
        for binary in [true, false] {
            let mut values = ones(size(&offsets));
            if !binary {
                values[0] = 0.5;
            }
            let codes: Vec<u32> = (0..2).cycle().take(g).collect();
            for scheme in [Scheme::plain(g), Scheme::stratified(&codes)] {
                let scheme = scheme.expect("a valid scheme");
                let cells = Cells::new(&values, &offsets, k, &scheme).expect("finite");
                assert_eq!(cells.binary.is_some(), binary);
                let mut drawn = vec![0; 9 * g];
                assert_eq!(bootstrap::counts(&scheme, 6, 3, &mut drawn), Ok(()));
                let (sums, counts) = replicates(&cells, &scheme, 9, runs()[1]);
                for run in runs() {
                    assert_eq!(replicates(&cells, &scheme, 9, run), (sums.clone(), counts.clone()));
                }
                for (drawn, counts) in drawn.chunks(g).zip(counts.chunks(k)) {
                    for (column, &count) in counts.iter().enumerate() {
                        let expected: u32 = (0..g)
                            .filter(|cluster| !cells.cell(cluster * k + column).is_empty())
                            .map(|cluster| drawn[cluster])
                            .sum();
                        assert_eq!(count, expected);
                    }
                }
            }
        }
    }

    #[test]
    fn one_repetition_leaves_the_clusters_alone_to_chance() {
        for n_clusters in [30_usize, 20_000] {
            let offsets = offsets(vec![1; n_clusters * 2]);
            let scheme = Scheme::plain(n_clusters).expect("clusters");
            for divisor in [1.0, 7.0] {
                let values: Vec<f64> = ones(n_clusters * 2).iter().map(|v| v / divisor).collect();
                let cells = Cells::new(&values, &offsets, 2, &scheme).expect("finite");
                assert_eq!(cells.binary.is_some(), divisor < 2.0);
                let (sums, _) = replicates(&cells, &scheme, 9, runs()[2]);
                let data = bootstrap::Totals::new(&values, n_clusters, 2).expect("finite");
                let mut expected = vec![0.0; 18];
                assert_eq!(
                    bootstrap::totals(&data, &scheme, 6, 3, runs()[2], &mut expected),
                    Ok(())
                );
                for (sum, expected) in sums.iter().zip(&expected) {
                    assert!((sum - expected).abs() < 1e-9 * expected.abs(), "{sum} {expected}");
                }
            }
        }
    }

    /// Both paths against the mean and the variance that follow from the law of total variance, and
    /// against each other in third moments, within five standard errors.
    #[test]
    fn both_paths_have_the_right_moments() {
        const R: usize = 20_000;
        let (g, k) = (25_usize, 2_usize);
        for sizes in [[2; 50].to_vec(), (0..50).map(|i| 1 + i % 4).collect()] {
            let offsets = offsets(sizes);
            let values = ones(size(&offsets));
            let scheme = Scheme::plain(g).expect("clusters");
            let mut cells = Cells::new(&values, &offsets, k, &scheme).expect("finite");
            let binary = Binary::new(&Cells { binary: None, ..cells.clone() }, &scheme);
            let mut thirds = Vec::new();
            for binary in [None, binary] {
                cells.binary = binary;
                let (sums, counts) = replicates(&cells, &scheme, R, runs()[2]);
                assert!(counts.iter().all(|&count| count == 25));
                for column in 0..k {
                    let (mut mean, mut square, mut inner) = (0.0, 0.0, 0.0);
                    for cluster in 0..g {
                        let values = cells.cell(cluster * k + column);
                        let n = f64::from(u32::try_from(values.len()).expect("few"));
                        let p = values.iter().sum::<f64>() / n;
                        mean += p;
                        square += p * p;
                        inner += p * (1.0 - p) / n;
                    }
                    let variance = square - mean * mean / 25.0 + inner;
                    let away = |power: i32| {
                        let column = sums.iter().skip(column).step_by(k);
                        column.map(|sum| (sum - mean).powi(power)).sum::<f64>() / 2e4
                    };
                    assert!(away(1).abs() < 5.0 * (variance / 2e4).sqrt());
                    assert!((away(2) - variance).abs() < 5.0 * variance * (2.0_f64 / 2e4).sqrt());
                    thirds.push(away(3) / variance.powf(1.5));
                }
            }
            assert_eq!(thirds.len(), 4);
            for column in 0..k {
                assert!((thirds[column] - thirds[k + column]).abs() < 0.17, "{thirds:?}");
            }
        }
    }

    #[test]
    fn chunks_change_nothing() {
        let offsets = offsets((0..60).map(|i| 1 + i % 3));
        let scheme = Scheme::plain(20).expect("clusters");
        for scale in [1.0, 0.3] {
            let values: Vec<f64> = ones(size(&offsets)).iter().map(|v| v * scale).collect();
            let cells = Cells::new(&values, &offsets, 3, &scheme).expect("finite");
            let (sums, counts) = replicates(&cells, &scheme, 20, runs()[3]);
            let (mut a, mut b) = (vec![0.0; 60], vec![0; 60]);
            for (first, (a, b)) in (3..).step_by(7).zip(a.chunks_mut(21).zip(b.chunks_mut(21))) {
                assert_eq!(totals(&cells, &scheme, 6, first, runs()[2], a, b), Ok(()));
            }
            assert_eq!((a, b), (sums, counts));
        }
    }

    #[test]
    fn invalid_input_is_refused() {
        let scheme = Scheme::plain(1).expect("a cluster");
        let cells = |values: &[f64], offsets: &[i64]| Cells::new(values, offsets, 2, &scheme).err();
        assert_eq!(
            cells(&[1.0], &[0, 1]),
            Some(Error::Shape { name: "offsets", expected: 3, actual: 2 })
        );
        for offsets in &[[0, 2, 1], [1, 1, 1], [0, 0, 2], [0, -1, 1]] {
            assert_eq!(cells(&[1.0], offsets), Some(Error::Offsets { n_values: 1 }));
        }
        assert_eq!(
            cells(&[1.0, f64::NAN], &[0, 1, 2]),
            Some(Error::NotFinite { name: "values", value: "NaN".into(), at: vec![1] })
        );
        assert_eq!(
            cells(&vec![0.0; 70_000], &[0, 1, 70_000]),
            Some(Error::TooManyRepetitions { cell: 1, limit: u16::MAX })
        );
    }
}
