//! Random signs: each cluster keeps its totals or has them negated, by the toss of one bit.

use crate::bootstrap::Totals;
use crate::cpu::{Cpu, on_cpu};
use crate::error::{Result, check_rows, check_some};
use crate::parallel::{self, Run, Split, count_rows};
use crate::products::{self, LANES};
use crate::stream::{Stream, check_range};

/// Clusters whose signs fit in a word.
const WORD: usize = 64;

/// Clusters that are summed at a time when their totals are floats; their signs are whole steps of
/// a stream's four generators.
const STRETCH: usize = 1_024;

/// Largest size of an integer that is summed bit by bit.
const LARGEST: f64 = 255.0;

/// Signs of the clusters in the replicates `first`, `first + 1`, ...: fills `out`, (R, G) row by
/// row, with 1 and -1.
///
/// # Errors
/// [`Error::Empty`], [`Error::TooManyRows`], [`Error::PartialReplicate`] or
/// [`Error::ReplicateRange`].
///
/// [`Error::Empty`]: crate::Error::Empty
/// [`Error::TooManyRows`]: crate::Error::TooManyRows
/// [`Error::PartialReplicate`]: crate::Error::PartialReplicate
/// [`Error::ReplicateRange`]: crate::Error::ReplicateRange
pub fn signs(n_clusters: usize, seed: u64, first: u64, out: &mut [i8]) -> Result<()> {
    check_some("the number of clusters", n_clusters)?;
    check_rows(n_clusters)?;
    check_range(first, count_rows(out, n_clusters)?)?;
    let cpu = Cpu::detect();
    for (row, index) in out.chunks_exact_mut(n_clusters).zip(first..) {
        each_sign(&mut Stream::new(cpu, seed, index), row.iter_mut(), |place, negative| {
            *place = if negative { -1 } else { 1 };
        });
    }
    Ok(())
}

/// Calls `visit` with each place and whether its cluster is negated.
#[inline]
pub(crate) fn each_sign<P>(
    stream: &mut Stream,
    mut places: impl ExactSizeIterator<Item = P>,
    mut visit: impl FnMut(P, bool),
) {
    let mut words = [0; STRETCH / WORD];
    while places.len() > 0 {
        let words = &mut words[..places.len().min(STRETCH).div_ceil(WORD)];
        stream.words(words);
        for &mut word in words {
            for (place, bit) in places.by_ref().take(WORD).zip(0..) {
                visit(place, word >> bit & 1 == 1);
            }
        }
    }
}

/// Per-cluster totals, laid out for sums under random signs.
#[derive(Debug, Clone)]
pub struct Flips<'a> {
    totals: Totals<'a>,
    /// Where all values are small integers.
    planes: Option<Planes>,
}

impl<'a> Flips<'a> {
    /// Reads `values` as (clusters, columns), row by row.
    ///
    /// # Errors
    /// As [`Totals::new`].
    pub fn new(values: &'a [f64], n_clusters: usize, n_columns: usize) -> Result<Self> {
        let totals = Totals::new(values, n_clusters, n_columns)?;
        let small = |&value: &f64| value.abs() <= LARGEST && value.fract() == 0.0;
        let planes = values.iter().all(small).then(|| Planes::new(&totals));
        Ok(Self { totals, planes })
    }
}

/// Sums under random signs in the replicates `first`, `first + 1`, ...: fills `out`, (R, K) row by
/// row.
///
/// A row is the sum over the clusters, in ascending order, of sign times totals. Small integers are
/// summed exactly, which is the same.
///
/// # Errors
/// [`Error::Empty`], [`Error::PartialReplicate`] or [`Error::ReplicateRange`].
///
/// [`Error::Empty`]: crate::Error::Empty
/// [`Error::PartialReplicate`]: crate::Error::PartialReplicate
/// [`Error::ReplicateRange`]: crate::Error::ReplicateRange
pub fn totals(flips: &Flips, seed: u64, first: u64, run: Run, out: &mut [f64]) -> Result<()> {
    let (n_clusters, n_columns) = (flips.totals.n_clusters(), flips.totals.n_columns());
    check_range(first, count_rows(out, n_columns.get())?)?;
    if let Some(planes) = &flips.planes {
        let scratch = || vec![0; n_clusters.div_ceil(WORD)];
        parallel::fill(out, Split::single(n_columns, run), scratch, |bits, start, rows| {
            let indices = (first..).skip(start);
            for (row, index) in rows.chunks_exact_mut(n_columns.get()).zip(indices) {
                Stream::new(run.cpu, seed, index).words(bits);
                on_cpu!(run.cpu, add_planes, add_planes_wide, (planes, bits, row));
            }
        });
    } else {
        let scratch = || Batch {
            signs: vec![[0; LANES]; STRETCH.min(n_clusters)],
            sums: vec![[0.0; LANES]; n_columns.get()],
        };
        parallel::fill(out, Split::lanes(n_columns, run), scratch, |batch, start, rows| {
            let mut indices = (first..).skip(start);
            for rows in rows.chunks_mut(n_columns.get() * LANES) {
                let streams = indices.by_ref().map(|index| Stream::new(run.cpu, seed, index));
                let mut streams: Vec<_> = streams.take(rows.len() / n_columns).collect();
                batch.fill(run.cpu, flips.totals.values(), &mut streams, rows);
            }
        });
    }
    Ok(())
}

/// Replicates whose signs are drawn and whose totals are summed together.
struct Batch {
    signs: Vec<[i8; LANES]>,
    sums: Vec<[f64; LANES]>,
}

impl Batch {
    fn fill(&mut self, cpu: Cpu, values: &[f64], streams: &mut [Stream], rows: &mut [f64]) {
        let n_columns = self.sums.len();
        self.sums.fill([0.0; LANES]);
        for values in values.chunks(STRETCH * n_columns) {
            let signs = &mut self.signs[..values.len() / n_columns];
            for (lane, stream) in streams.iter_mut().enumerate() {
                each_sign(stream, signs.iter_mut(), |signs, negative| {
                    signs[lane] = if negative { -1 } else { 1 };
                });
            }
            products::add(cpu, signs, values, &mut self.sums);
        }
        products::write_lanes(&self.sums, |sum| sum, rows);
    }
}

/// Integers by their bits: a word holds the same bit of 64 clusters.
#[derive(Debug, Clone)]
struct Planes {
    columns: Vec<Column>,
}

#[derive(Debug, Clone)]
struct Column {
    /// Sum of the sizes.
    size: f64,
    /// Clusters whose value is negative.
    negative: Vec<u64>,
    /// Bits of the sizes, the lowest plane first, as many planes as the largest needs.
    bits: Vec<u64>,
}

impl Planes {
    fn new(totals: &Totals) -> Self {
        let (n_clusters, n_columns) = (totals.n_clusters(), totals.n_columns().get());
        let n_words = n_clusters.div_ceil(WORD);
        let columns = (0..n_columns).map(|column| {
            let values = || totals.values().iter().skip(column).step_by(n_columns);
            let largest = values().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            let n_planes = (u8::BITS - to_size(largest).leading_zeros()) as usize;
            let mut negative = vec![0; n_words];
            let mut bits = vec![0; n_words * n_planes];
            for (cluster, &value) in values().enumerate() {
                let (word, place) = (cluster / WORD, cluster % WORD);
                negative[word] |= u64::from(value < 0.0) << place;
                let size = u64::from(to_size(value));
                for (plane, bits) in bits.chunks_exact_mut(n_words).enumerate() {
                    bits[word] |= (size >> plane & 1) << place;
                }
            }
            Column { size: values().fold(0.0, |sum, value| sum + value.abs()), negative, bits }
        });
        Self { columns: columns.collect() }
    }
}

/// Size of an integer of at most [`LARGEST`].
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is at most 255")]
fn to_size(value: f64) -> u8 {
    value.abs() as u8
}

/// A value counts against the sum of the sizes, twice, where its own sign and the drawn one differ.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn add_planes(planes: &Planes, flipped: &[u64], row: &mut [f64]) {
    for (place, column) in row.iter_mut().zip(&planes.columns) {
        let mut against = 0;
        for (plane, bits) in (0_u32..).zip(column.bits.chunks_exact(flipped.len())) {
            let words = flipped.iter().zip(&column.negative).zip(bits);
            let count = words.fold(0, |count, ((flipped, negative), bits)| {
                count + u64::from(((flipped ^ negative) & bits).count_ones())
            });
            against += count << plane;
        }
        // Below 2^53, so exact.
        #[expect(clippy::cast_precision_loss, reason = "at most 2^32 clusters of 8 bits")]
        let against = against as f64;
        *place = column.size - 2.0 * against;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn add_planes_wide(planes: &Planes, flipped: &[u64], row: &mut [f64]) {
    add_planes(planes, flipped, row);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::runs;
    use crate::permutation::{self, Blocks, Permutations};

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    /// Values of the three kinds: signs, small integers, floats.
    fn values(kind: u32, size: u32) -> Vec<f64> {
        (0..size)
            .map(|i| {
                let raw = f64::from(i * 7919 % 1009);
                match kind {
                    0 => raw % 3.0 - 1.0,
                    1 => raw % 300.0 - 150.0,
                    _ => raw / 1009.0 - 0.3,
                }
            })
            .collect()
    }

    #[test]
    fn totals_are_signs_times_totals() {
        for (n_clusters, n_columns) in [(1_u32, 1_u32), (64, 3), (65, 12), (1_100, 5), (2_500, 2)] {
            for kind in 0..3 {
                let (g, k) = (n_clusters as usize, n_columns as usize);
                let values = values(kind, n_clusters * n_columns);
                let flips = Flips::new(&values, g, k).expect("finite");
                assert_eq!(flips.planes.is_some(), kind < 2 || n_clusters * n_columns == 0);
                let mut drawn = vec![0; 11 * g];
                assert_eq!(signs(g, 5, 3, &mut drawn), Ok(()));
                for run in runs() {
                    let mut out = vec![0.0; 11 * k];
                    assert_eq!(totals(&flips, 5, 3, run, &mut out), Ok(()));
                    for (drawn, row) in drawn.chunks(g).zip(out.chunks(k)) {
                        for (column, &sum) in row.iter().enumerate() {
                            let expected = (0..g).fold(0.0, |sum, cluster| {
                                sum + f64::from(drawn[cluster]) * values[cluster * k + column]
                            });
                            assert_eq!(sum.to_bits(), expected.to_bits());
                        }
                    }
                    let mut chunked = vec![0.0; 11 * k];
                    for (rows, first) in chunked.chunks_mut(3 * k).zip((3..).step_by(3)) {
                        assert_eq!(totals(&flips, 5, first, run, rows), Ok(()));
                    }
                    assert_eq!(bits(&chunked), bits(&out));
                }
            }
        }
    }

    #[test]
    fn a_swap_of_two_labels_is_a_negation() {
        for n_clusters in [1, 63, 64, 3_000] {
            let mut codes = vec![9; 7 * n_clusters];
            let pair = Permutations::new(2).expect("two labels");
            assert_eq!(permutation::codes(&pair, n_clusters, 8, 2, &mut codes), Ok(()));
            let mut drawn = vec![0; 7 * n_clusters];
            assert_eq!(signs(n_clusters, 8, 2, &mut drawn), Ok(()));
            assert!(codes.iter().zip(&drawn).all(|(&code, &sign)| (code == 1) == (sign == -1)));
        }
        let values = values(1, 100 * 2);
        let pairs = Blocks::new(&values, 100, 2, 1).expect("finite");
        let differences: Vec<f64> = values.chunks(2).map(|pair| pair[0] - pair[1]).collect();
        let flips = Flips::new(&differences, 100, 1).expect("finite");
        let (mut swapped, mut flipped) = ([0.0; 40], [0.0; 20]);
        assert_eq!(permutation::blocks(&pairs, 8, 2, runs()[2], &mut swapped), Ok(()));
        assert_eq!(totals(&flips, 8, 2, runs()[2], &mut flipped), Ok(()));
        let swapped: Vec<f64> = swapped.chunks(2).map(|pair| pair[0] - pair[1]).collect();
        assert_eq!(bits(&swapped), bits(&flipped));
    }

    /// Both signs of each cluster, and of each pair of neighbours, within five standard errors.
    #[test]
    fn signs_are_even_and_unrelated() {
        let mut drawn = vec![0; 130 * 4_000];
        assert_eq!(signs(130, 1, 0, &mut drawn), Ok(()));
        for cluster in 0..129 {
            let (mut sum, mut pairs) = (0, 0);
            for row in drawn.chunks(130) {
                sum += i32::from(row[cluster]);
                pairs += i32::from(row[cluster] * row[cluster + 1]);
            }
            assert!(sum.abs() < 317 && pairs.abs() < 317, "{cluster}: {sum} {pairs}");
        }
    }
}
