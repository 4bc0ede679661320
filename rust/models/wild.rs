//! The wild cluster bootstrap of one coefficient of a linear model, from sums by cluster.
//!
//! Let `x` be the tested regressor after the other regressors and the fixed effects were taken out
//! of it, `u` the residuals of the model that generates the replicates, and `P` the projection on
//! all regressors. A replicate multiplies the residuals of cluster `g` by a weight `w_g`. Its
//! estimate is then off by the sum of `w_g x_g'u_g` over `x'x`, and the score of cluster `g`, which
//! its variance is made of, is `w_g x_g'u_g` less the sum over clusters `h` of `x_g' P_gh u_h w_h`.
//! With `x_g' P_gh u_h` written as the product of a row of `left` and a row of a right factor, of
//! any rank, a replicate costs clusters times rank and never sees a row of the data (Roodman,
//! Nielsen, `MacKinnon` and Webb 2019, "Fast and wild: bootstrap inference in Stata using
//! boottest", Stata Journal 19(1):4-60, doi 10.1177/1536867X19830877).
//!
//! Both are linear in `u`. With two parts, `u` may be any combination of two vectors of residuals:
//! the products of their scores give the variance of each combination.

use std::array;
use std::num::NonZeroUsize;

use crate::cpu::{Cpu, on_cpu};
use crate::error::{Error, Result, check_rows, check_some, check_values};
use crate::parallel::{self, Run, Split, count_rows};
use crate::products::{self, LANES};
use crate::stream::{Stream, check_range};
use crate::wild::{Kind, draw};

/// Clusters whose signs fit in a word.
const WORD: usize = 64;

/// Vectors of residuals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// One.
    One,
    /// Two, to be combined.
    Two,
}

impl Parts {
    fn count(self) -> usize {
        match self {
            Parts::One => 1,
            Parts::Two => 2,
        }
    }
}

/// What a replicate needs to know of the data.
#[derive(Debug, Clone)]
pub struct Scores<'a> {
    values: &'a [f64],
    left: &'a [f64],
    n_clusters: usize,
    parts: Parts,
    rank: NonZeroUsize,
}

impl<'a> Scores<'a> {
    /// Reads `values` as (clusters, parts, 1 + rank): the score `x_g'u_g`, then the row of the right
    /// factor. Reads `left` as (clusters, rank).
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::TooManyRows`], [`Error::Shape`] or [`Error::NotFinite`].
    pub fn new(
        values: &'a [f64],
        left: &'a [f64],
        n_clusters: usize,
        parts: Parts,
        rank: usize,
    ) -> Result<Self> {
        check_some("the number of clusters", n_clusters)?;
        check_rows(n_clusters)?;
        let rank = NonZeroUsize::new(rank)
            .ok_or(Error::Empty { what: "the number of columns of `left`" })?;
        let width = rank.saturating_add(1).get();
        check_values("scores", values, &[n_clusters, parts.count(), width])?;
        check_values("left", left, &[n_clusters, rank.get()])?;
        Ok(Self { values, left, n_clusters, parts, rank })
    }

    /// Clusters.
    #[must_use]
    pub fn n_clusters(&self) -> usize {
        self.n_clusters
    }

    /// Values in one replicate: a sum a part, and a product for each two parts.
    #[must_use]
    pub fn row_len(&self) -> NonZeroUsize {
        match self.parts {
            Parts::One => const { NonZeroUsize::new(2).unwrap() },
            Parts::Two => const { NonZeroUsize::new(5).unwrap() },
        }
    }

    /// Values that a cluster has.
    fn stride(&self) -> usize {
        self.parts.count() * (1 + self.rank.get())
    }

    /// Additions in one replicate.
    #[must_use]
    pub fn additions(&self) -> usize {
        self.values.len().saturating_mul(2).saturating_add(self.n_clusters)
    }
}

/// Where the weights of a replicate come from, by its number.
#[derive(Debug, Clone, Copy)]
pub enum Weights<'a> {
    /// Drawn: those of [`crate::wild::weights`].
    Drawn {
        /// Their distribution.
        kind: Kind,
        /// The seed.
        seed: u64,
    },
    /// All signs: cluster `g` is negated where bit `g` of the number is set, so that number 0
    /// changes nothing.
    Signs,
    /// Given, (replicates, clusters) row by row.
    Given(&'a [f64]),
}

impl Weights<'_> {
    /// Checks that the replicates have weights.
    fn check(&self, n_clusters: usize, first: u64, n_resamples: usize) -> Result<()> {
        check_range(first, n_resamples)?;
        let available = match self {
            Weights::Drawn { .. } => return Ok(()),
            Weights::Signs => u32::try_from(n_clusters)
                .ok()
                .and_then(|power| 1_u64.checked_shl(power))
                .ok_or(Error::UncountableArrangements { n_clusters, n_labels: 2 })?,
            Weights::Given(values) => {
                let rows = values.len() / n_clusters;
                check_values("weights", values, &[rows, n_clusters])?;
                rows as u64
            }
        };
        if first.checked_add(n_resamples as u64).is_none_or(|end| end > available) {
            return Err(Error::TooManyArrangements { first, n_resamples, available });
        }
        Ok(())
    }

    /// Whether all weights are 1 or -1.
    fn are_signs(&self) -> bool {
        matches!(self, Weights::Signs | Weights::Drawn { kind: Kind::Rademacher, .. })
    }

    /// Writes the weights of replicate `number`.
    fn write(&self, cpu: Cpu, number: u64, row: &mut [f64]) {
        match *self {
            Weights::Drawn { kind, seed } => draw(kind, &mut Stream::new(cpu, seed, number), row),
            Weights::Signs => {}
            Weights::Given(values) => {
                let place = usize::try_from(number).unwrap_or(usize::MAX);
                if let Some(given) = values.chunks_exact(row.len()).nth(place) {
                    row.copy_from_slice(given);
                }
            }
        }
    }

    /// Writes the signs of replicate `number`, a set bit for each cluster that is negated: the signs
    /// of [`crate::flips::signs`], or the number itself.
    fn write_signs(&self, cpu: Cpu, number: u64, words: &mut [u64]) {
        match *self {
            Weights::Drawn { seed, .. } => Stream::new(cpu, seed, number).words(words),
            Weights::Signs | Weights::Given(_) => words.fill(number),
        }
    }
}

/// Replicates `first`, `first + 1`, ...: fills `out`, row by row.
///
/// A row has, for each part, the sum over the clusters of `w_g x_g'u_g`; then the sum over the
/// clusters of the squares of the scores of the first part and, where there are two, of their
/// products and of the squares of the second. Sums run over the clusters in ascending order.
///
/// # Errors
/// [`Error::Empty`], [`Error::PartialReplicate`], [`Error::ReplicateRange`], [`Error::Shape`],
/// [`Error::NotFinite`], [`Error::TooManyArrangements`] or [`Error::UncountableArrangements`].
pub fn statistics(
    scores: &Scores,
    weights: Weights,
    first: u64,
    run: Run,
    out: &mut [f64],
) -> Result<()> {
    let row_len = scores.row_len();
    weights.check(scores.n_clusters, first, count_rows(out, row_len.get())?)?;
    parallel::fill(
        out,
        Split::lanes(row_len, run),
        || Batch::of(scores, weights),
        |batch, start, rows| {
            let mut numbers = (first..).skip(start);
            for rows in rows.chunks_mut(row_len.get() * LANES) {
                batch.weigh(run.cpu, weights, numbers.by_ref().take(rows.len() / row_len));
                batch.fill(run.cpu, scores, rows);
            }
        },
    );
    Ok(())
}

/// Replicates that are computed together.
struct Batch {
    /// Weights of one replicate, or its signs.
    row: Vec<f64>,
    words: Vec<u64>,
    signs: Vec<[u64; LANES]>,
    weights: Vec<[f64; LANES]>,
    /// Sums of the columns of the values.
    sums: Vec<[f64; LANES]>,
    /// What is returned.
    moments: Vec<[f64; LANES]>,
}

impl Batch {
    fn of(scores: &Scores, weights: Weights) -> Self {
        let (n_clusters, signs) = (scores.n_clusters, weights.are_signs());
        let n_words = if signs { n_clusters.div_ceil(WORD) } else { 0 };
        Self {
            row: vec![0.0; if signs { 0 } else { n_clusters }],
            words: vec![0; n_words],
            signs: vec![[0; LANES]; n_words],
            weights: vec![[0.0; LANES]; n_clusters],
            sums: vec![[0.0; LANES]; scores.stride()],
            moments: vec![[0.0; LANES]; scores.row_len().get()],
        }
    }

    /// Writes the weights of some replicates, at most as many as there are lanes.
    fn weigh(&mut self, cpu: Cpu, weights: Weights, numbers: impl Iterator<Item = u64>) {
        if weights.are_signs() {
            for (lane, number) in numbers.enumerate() {
                weights.write_signs(cpu, number, &mut self.words);
                for (lanes, &word) in self.signs.iter_mut().zip(&self.words) {
                    lanes[lane] = word;
                }
            }
            on_cpu!(cpu, spread, spread_wide, (&self.signs, &mut self.weights));
        } else {
            for (lane, number) in numbers.enumerate() {
                weights.write(cpu, number, &mut self.row);
                for (lanes, &weight) in self.weights.iter_mut().zip(&self.row) {
                    lanes[lane] = weight;
                }
            }
        }
    }

    fn fill(&mut self, cpu: Cpu, scores: &Scores, rows: &mut [f64]) {
        let Self { weights, sums, moments, .. } = self;
        sums.fill([0.0; LANES]);
        products::add(cpu, weights, scores.values, sums);
        let (linear, squares) = moments.split_at_mut(scores.parts.count());
        let width = 1 + scores.rank.get();
        for (linear, sums) in linear.iter_mut().zip(sums.chunks_exact(width)) {
            *linear = sums[0];
        }
        on_cpu!(cpu, square, square_wide, (scores, weights, sums, squares));
        products::write_lanes(moments, |moment| moment, rows);
    }
}

/// Writes 1, or -1 where a bit is set.
#[inline]
fn spread(signs: &[[u64; LANES]], weights: &mut [[f64; LANES]]) {
    const SIGN: u64 = 1 << (WORD - 1);
    let one = 1.0_f64.to_bits();
    for (words, weights) in signs.iter().zip(weights.chunks_mut(WORD)) {
        for (bit, weights) in (1..).zip(weights) {
            *weights = words.map(|word| f64::from_bits(one | word.rotate_right(bit) & SIGN));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn spread_wide(signs: &[[u64; LANES]], weights: &mut [[f64; LANES]]) {
    spread(signs, weights);
}

/// Writes the sums of the products of the scores of the clusters, for each two parts.
#[inline]
fn square(
    scores: &Scores,
    weights: &[[f64; LANES]],
    sums: &[[f64; LANES]],
    squares: &mut [[f64; LANES]],
) {
    match scores.parts {
        Parts::One => square_parts::<1>(scores, weights, sums, squares),
        Parts::Two => square_parts::<2>(scores, weights, sums, squares),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn square_wide(
    scores: &Scores,
    weights: &[[f64; LANES]],
    sums: &[[f64; LANES]],
    squares: &mut [[f64; LANES]],
) {
    match scores.parts {
        Parts::One => square_parts::<1>(scores, weights, sums, squares),
        Parts::Two => square_parts::<2>(scores, weights, sums, squares),
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn square_parts<const P: usize>(
    scores: &Scores,
    weights: &[[f64; LANES]],
    sums: &[[f64; LANES]],
    squares: &mut [[f64; LANES]],
) {
    let (rank, width) = (scores.rank.get(), 1 + scores.rank.get());
    let mut totals = [[[0.0; LANES]; P]; P];
    let clusters = scores.values.chunks_exact(P * width).zip(scores.left.chunks_exact(rank));
    for (weights, (values, left)) in weights.iter().zip(clusters) {
        let mut own: [_; P] =
            array::from_fn(|part| weights.map(|weight| weight * values[part * width]));
        for (k, left) in (1..).zip(left) {
            for (part, own) in own.iter_mut().enumerate() {
                for (score, sum) in own.iter_mut().zip(sums[part * width + k]) {
                    *score -= left * sum;
                }
            }
        }
        for (part, totals) in totals.iter_mut().enumerate() {
            for (totals, other) in totals[part..].iter_mut().zip(&own[part..]) {
                for ((total, one), other) in totals.iter_mut().zip(&own[part]).zip(other) {
                    *total += one * other;
                }
            }
        }
    }
    let upper = totals.iter().enumerate().flat_map(|(part, totals)| &totals[part..]);
    for (square, total) in squares.iter_mut().zip(upper) {
        *square = *total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::runs;
    use crate::wild;

    /// Numbers without a pattern.
    fn values(size: usize) -> Vec<f64> {
        (0_u32..).take(size).map(|i| f64::from(i * 7919 % 1009) / 1009.0 - 0.4).collect()
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    /// One replicate from the definition.
    fn naive(scores: &Scores, weights: &[f64]) -> Vec<f64> {
        let (parts, rank) = (scores.parts.count(), scores.rank.get());
        let at = |g: usize, p: usize, k: usize| scores.values[(g * parts + p) * (1 + rank) + k];
        let sum = |p: usize, k: usize| {
            weights.iter().enumerate().fold(0.0, |sum, (g, weight)| sum + weight * at(g, p, k))
        };
        let score = |g: usize, p: usize| {
            (0..rank).fold(weights[g] * at(g, p, 0), |score, k| {
                score - scores.left[g * rank + k] * sum(p, 1 + k)
            })
        };
        let mut row: Vec<f64> = (0..parts).map(|p| sum(p, 0)).collect();
        for p in 0..parts {
            for q in p..parts {
                let square = |total, g| total + score(g, p) * score(g, q);
                row.push((0..weights.len()).fold(0.0, square));
            }
        }
        row
    }

    #[test]
    fn replicates_follow_the_definition_for_every_run() {
        for (n_clusters, parts, rank) in
            [(1, Parts::One, 1), (9, Parts::Two, 1), (40, Parts::Two, 5), (130, Parts::One, 3)]
        {
            let table = values(n_clusters * parts.count() * (1 + rank));
            let left = values(n_clusters * rank);
            let scores =
                Scores::new(&table, &left, n_clusters, parts, rank).expect("finite values");
            let row_len = scores.row_len().get();
            for kind in [Kind::Rademacher, Kind::Webb, Kind::Mammen] {
                let mut drawn = vec![0.0; 19 * n_clusters];
                assert_eq!(wild::weights(kind, n_clusters, 6, 4, &mut drawn), Ok(()));
                let expected: Vec<f64> =
                    drawn.chunks(n_clusters).flat_map(|row| naive(&scores, row)).collect();
                for run in runs() {
                    let mut out = vec![0.0; 19 * row_len];
                    let source = Weights::Drawn { kind, seed: 6 };
                    assert_eq!(statistics(&scores, source, 4, run, &mut out), Ok(()));
                    assert_eq!(bits(&out), bits(&expected));
                    let given = Weights::Given(&drawn);
                    for (rows, first) in out.chunks_mut(5 * row_len).zip((0..).step_by(5)) {
                        assert_eq!(statistics(&scores, given, first, run, rows), Ok(()));
                    }
                    assert_eq!(bits(&out), bits(&expected));
                }
            }
        }
    }

    #[test]
    fn all_signs_are_enumerated() {
        let (table, left) = (values(5 * 2 * 3), values(5 * 2));
        let scores = Scores::new(&table, &left, 5, Parts::Two, 2).expect("finite values");
        let row_len = scores.row_len().get();
        let mut out = vec![0.0; 32 * row_len];
        assert_eq!(statistics(&scores, Weights::Signs, 0, runs()[2], &mut out), Ok(()));
        for (number, row) in out.chunks(row_len).enumerate() {
            let signs: Vec<f64> =
                (0..5).map(|g| if number >> g & 1 == 1 { -1.0 } else { 1.0 }).collect();
            assert_eq!(bits(row), bits(&naive(&scores, &signs)));
        }
        let mut late = vec![0.0; 2 * row_len];
        assert_eq!(statistics(&scores, Weights::Signs, 30, runs()[1], &mut late), Ok(()));
        assert_eq!(bits(&late), bits(&out[30 * row_len..]));
    }

    #[test]
    fn invalid_input_is_refused() {
        let (table, left) = (values(4), values(2));
        let new = |n_clusters, parts, rank| Scores::new(&table, &left, n_clusters, parts, rank);
        assert_eq!(
            new(0, Parts::One, 1).err(),
            Some(Error::Empty { what: "the number of clusters" })
        );
        let what = "the number of columns of `left`";
        assert_eq!(new(2, Parts::One, 0).err(), Some(Error::Empty { what }));
        let shape = |name, expected, actual| Some(Error::Shape { name, expected, actual });
        assert_eq!(new(2, Parts::Two, 1).err(), shape("scores", 8, 4));
        assert_eq!(Scores::new(&table, &table, 2, Parts::One, 1).err(), shape("left", 2, 4));
        let scores = new(2, Parts::One, 1).expect("finite values");
        let run = runs()[0];
        let mut out = [0.0; 10];
        assert_eq!(
            statistics(&scores, Weights::Signs, 0, run, &mut out),
            Err(Error::TooManyArrangements { first: 0, n_resamples: 5, available: 4 })
        );
        assert_eq!(
            statistics(&scores, Weights::Given(&[1.0; 8]), 1, run, &mut out[..8]),
            Err(Error::TooManyArrangements { first: 1, n_resamples: 4, available: 4 })
        );
        assert_eq!(
            statistics(&scores, Weights::Given(&[1.0; 3]), 0, run, &mut out[..2]).err(),
            shape("weights", 2, 3)
        );
        let (table, left) = (values(128), values(64));
        let many = Scores::new(&table, &left, 64, Parts::One, 1).expect("finite values");
        assert_eq!(
            statistics(&many, Weights::Signs, 0, run, &mut out),
            Err(Error::UncountableArrangements { n_clusters: 64, n_labels: 2 })
        );
    }
}
