//! Which clusters a bootstrap replicate draws, and how often.

use std::num::NonZeroU16;
use std::ops::Range;

use crate::binomial::Chance;
use crate::cpu::Cpu;
use crate::error::{Error, Result, check_rows};
use crate::stream::Stream;

/// Most clusters of a stratum that are drawn from directly. With more, the memory that the draws
/// wander over would no longer be near.
const MOST_DIRECT: u32 = 2_048;

/// Clusters in the blocks that a larger stratum is split into: a power of two, so that no draw is
/// rejected.
const BLOCK: u16 = 1_024;

/// Clusters drawn and summed at a time, where blocks are smaller.
const STRETCH: usize = 1_024;

/// Which clusters stand in for which: all for all, or only those of the same stratum.
///
/// A stratum of S clusters draws S of them with replacement. If S exceeds 2,048, it is in blocks
/// of 1,024 clusters. The draws that fall in the first half of the blocks are a binomial number, of
/// those the draws in its first half again, and so on; then each block draws its number among its
/// own clusters. The multiplicities are multinomial either way.
#[derive(Debug, Clone)]
pub struct Scheme {
    n_clusters: usize,
    /// Clusters ordered by stratum, then by number: position to cluster; empty where position and
    /// cluster are the same.
    members: Vec<u32>,
    /// Draws and first block of each stratum.
    strata: Vec<(u32, usize)>,
    /// Splits of the strata, each before the splits of its halves.
    splits: Vec<Split>,
    /// Clusters in each block.
    sizes: Vec<NonZeroU16>,
    stretches: Vec<Stretch>,
}

/// The draws of blocks `left..`, known so far as one number, of which some fall in `right..`.
#[derive(Debug, Clone, Copy)]
struct Split {
    left: usize,
    right: usize,
    chance: Chance,
}

/// Blocks that are drawn and summed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Numbers of the blocks.
    pub blocks: Range<usize>,
    /// Their positions.
    pub positions: Range<usize>,
}

impl Scheme {
    /// G draws from all G clusters.
    ///
    /// # Errors
    /// [`Error::Empty`] without clusters, [`Error::TooManyRows`] past 32 bits.
    pub fn plain(n_clusters: usize) -> Result<Self> {
        let size = check_rows(n_clusters)?;
        if size == 0 {
            return Err(Error::Empty { what: "the number of clusters" });
        }
        Ok(Self::new(n_clusters, &[size], Vec::new()))
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
        if codes.is_empty() {
            return Err(Error::Empty { what: "the number of clusters" });
        }
        check_rows(codes.len())?;
        let largest = codes.iter().copied().max().unwrap_or(0);
        // S codes without a gap need S clusters, so the counter never has to be longer than the
        // clusters allow, and a gap is then among the codes it counts.
        let mut sizes = vec![0_u32; codes.len().min((largest as usize).saturating_add(1))];
        for &code in codes {
            if let Some(size) = sizes.get_mut(code as usize) {
                *size += 1;
            }
        }
        if let Some(code) = (0..).zip(&sizes).find_map(|(code, &size)| (size == 0).then_some(code))
        {
            return Err(Error::StrataGap { code, largest });
        }
        let mut members = Vec::new();
        if !codes.is_sorted() {
            members.extend((0..).take(codes.len()));
            members.sort_by_key(|&cluster: &u32| codes[cluster as usize]);
        }
        Ok(Self::new(codes.len(), &sizes, members))
    }

    fn new(n_clusters: usize, strata: &[u32], members: Vec<u32>) -> Self {
        let mut scheme = Self {
            n_clusters,
            members,
            strata: Vec::with_capacity(strata.len()),
            splits: Vec::new(),
            sizes: Vec::new(),
            stretches: Vec::new(),
        };
        for &size in strata {
            scheme.add_stratum(size);
        }
        scheme.find_stretches();
        scheme
    }

    fn add_stratum(&mut self, size: u32) {
        let first = self.sizes.len();
        self.strata.push((size, first));
        let block = if size > MOST_DIRECT { u32::from(BLOCK) } else { size };
        let mut left = size;
        while let Some(size) = u16::try_from(left.min(block)).ok().and_then(NonZeroU16::new) {
            self.sizes.push(size);
            left -= u32::from(size.get());
        }
        self.split(first..self.sizes.len(), size, u32::from(BLOCK));
    }

    /// Lists the splits of some blocks, all but the last of which have `block` clusters.
    fn split(&mut self, blocks: Range<usize>, n_clusters: u32, block: u32) {
        if blocks.len() < 2 {
            return;
        }
        let half = blocks.len() / 2;
        let right = blocks.start + half;
        let in_left = (0..half).fold(0, |sum, _| sum + block);
        self.splits.push(Split {
            left: blocks.start,
            right,
            chance: Chance::new(n_clusters - in_left, n_clusters),
        });
        self.split(blocks.start..right, in_left, block);
        self.split(right..blocks.end, n_clusters - in_left, block);
    }

    fn find_stretches(&mut self) {
        let mut last = Stretch { blocks: 0..0, positions: 0..0 };
        for (block, size) in self.sizes.iter().enumerate() {
            let end = last.positions.end + usize::from(size.get());
            // A cluster's neighbours may be anywhere when the positions are not the clusters.
            let room = !self.members.is_empty() || end - last.positions.start <= STRETCH;
            if !room && !last.blocks.is_empty() {
                let next = last.positions.end;
                self.stretches.push(last);
                last = Stretch { blocks: block..block, positions: next..next };
            }
            last.blocks.end = block + 1;
            last.positions.end = end;
        }
        self.stretches.push(last);
    }

    /// Clusters in all strata.
    #[must_use]
    pub fn n_clusters(&self) -> usize {
        self.n_clusters
    }

    /// Draws of a replicate, as many as there are clusters.
    #[inline]
    #[must_use]
    pub fn n_draws(&self) -> u32 {
        self.strata.iter().map(|&(size, _)| size).sum()
    }

    /// Whether positions are clusters.
    #[inline]
    pub(crate) fn in_order(&self) -> bool {
        self.members.is_empty()
    }

    /// The cluster at a position.
    #[inline]
    #[must_use]
    pub fn cluster(&self, position: usize) -> usize {
        self.members.get(position).map_or(position, |&cluster| cluster as usize)
    }

    /// What is drawn and summed at a time. Several stretches only where position and cluster are
    /// the same.
    pub(crate) fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// Clusters of the longest stretch.
    pub(crate) fn longest(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.positions.len()).max().unwrap_or(0)
    }

    /// Calls `visit` with the position of each block and the clusters drawn in it, as places within
    /// the block.
    #[inline]
    pub(crate) fn each_block(
        &self,
        draws: &mut Draws,
        blocks: Range<usize>,
        start: usize,
        mut visit: impl FnMut(usize, &[u16]),
    ) {
        let mut position = start;
        for (&size, &times) in self.sizes[blocks.clone()].iter().zip(&draws.times[blocks]) {
            draws.indices.resize(times as usize, 0);
            draws.stream.indices(size, &mut draws.indices);
            visit(position, &draws.indices);
            position += usize::from(size.get());
        }
    }

    /// Writes how often each cluster is drawn.
    pub(crate) fn count(&self, draws: &mut Draws, counts: &mut [u32]) {
        counts.fill(0);
        self.each_block(draws, 0..self.sizes.len(), 0, |start, indices| {
            if self.members.is_empty() {
                let counts = &mut counts[start..];
                for &index in indices {
                    counts[usize::from(index)] += 1;
                }
            } else {
                let members = &self.members[start..];
                for &index in indices {
                    counts[members[usize::from(index)] as usize] += 1;
                }
            }
        });
    }
}

/// The draws of one replicate, made block by block.
#[derive(Debug)]
pub(crate) struct Draws {
    pub stream: Stream,
    /// Draws of each block.
    times: Vec<u32>,
    indices: Vec<u16>,
}

impl Draws {
    /// Room for the draws of replicates.
    pub fn new(cpu: Cpu) -> Self {
        Self { stream: Stream::new(cpu, 0, 0), times: Vec::new(), indices: Vec::new() }
    }

    /// Starts replicate `index`: the number of draws of each block.
    #[inline]
    pub fn start(&mut self, scheme: &Scheme, cpu: Cpu, seed: u64, index: u64) {
        self.stream = Stream::new(cpu, seed, index);
        self.go_on(scheme);
    }

    /// Draws the numbers from the stream as it stands.
    #[inline]
    pub fn go_on(&mut self, scheme: &Scheme) {
        self.times.clear();
        self.times.resize(scheme.sizes.len(), 0);
        for &(size, block) in &scheme.strata {
            self.times[block] = size;
        }
        for split in &scheme.splits {
            let right = split.chance.draw(&mut self.stream, self.times[split.left]);
            self.times[split.left] -= right;
            self.times[split.right] = right;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of counts of the replicates 0, 1, ...
    fn counts(scheme: &Scheme, seed: u64, out: &mut [u32]) {
        let cpu = Cpu::detect();
        let mut draws = Draws::new(cpu);
        for (row, index) in out.chunks_exact_mut(scheme.n_clusters()).zip(0..) {
            draws.start(scheme, cpu, seed, index);
            scheme.count(&mut draws, row);
        }
    }

    #[test]
    fn one_stratum_is_the_plain_scheme() {
        let plain = Scheme::plain(50).expect("fifty clusters");
        let stratified = Scheme::stratified(&[0; 50]).expect("one stratum");
        let (mut a, mut b) = (vec![0; 500], vec![1; 500]);
        counts(&plain, 3, &mut a);
        counts(&stratified, 3, &mut b);
        assert_eq!(a, b);
    }

    #[test]
    fn strata_keep_their_sizes() {
        let codes: Vec<u32> = (0..90).map(|g| [2, 0, 1, 2, 2, 3][g % 6]).collect();
        let scheme = Scheme::stratified(&codes).expect("four strata");
        let mut out = vec![0; 90 * 40];
        counts(&scheme, 8, &mut out);
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
        counts(&scheme, 11, &mut out);
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

    /// Each number of clusters, over a million draws: every cluster is drawn equally often, by the
    /// bound of Wilson and Hilferty for a chance of 1e-5, and the counts of a replicate vary as
    /// multinomial ones do, within five standard errors.
    #[test]
    fn counts_are_multinomial() {
        for n_clusters in [5_u32, 20, 1_000, 2_048, 2_049, 10_001, 50_000] {
            let size = n_clusters as usize;
            let n_resamples = 1_000_000_u32.div_ceil(n_clusters);
            let scheme = Scheme::plain(size).expect("clusters");
            let mut out = vec![0; size * n_resamples as usize];
            counts(&scheme, 21, &mut out);
            let mut cells = vec![0_u32; size];
            for row in out.chunks(size) {
                assert_eq!(row.iter().sum::<u32>(), n_clusters);
                for (cell, &count) in cells.iter_mut().zip(row) {
                    *cell += count;
                }
            }
            let expected = f64::from(n_resamples);
            let chi_square: f64 =
                cells.iter().map(|&cell| (f64::from(cell) - expected).powi(2) / expected).sum();
            let df = f64::from(n_clusters - 1);
            let spread = 2.0 / (9.0 * df);
            let bound = df * (1.0 - spread + 4.265 * spread.sqrt()).powi(3);
            assert!(chi_square < bound, "{n_clusters}: {chi_square}");

            let squares: f64 = out.iter().map(|&count| (f64::from(count) - 1.0).powi(2)).sum();
            let draws = f64::from(n_clusters) * expected;
            let away = squares / draws - (1.0 - 1.0 / f64::from(n_clusters));
            assert!(away.abs() < 5.0 * (2.0 / draws).sqrt(), "{n_clusters}: {away}");
        }
    }

    /// Draws in the halves of the clusters, which the splits decide, against the binomial
    /// distribution.
    #[test]
    fn splits_have_the_right_spread() {
        let scheme = Scheme::plain(20_000).expect("clusters");
        assert_eq!((scheme.sizes.len(), scheme.splits.len()), (20, 19));
        let mut out = vec![0; 20_000 * 400];
        counts(&scheme, 5, &mut out);
        for (begin, end) in [(0_u32, 10_240_u32), (0, 1_024), (5_120, 6_144), (19_456, 20_000)] {
            let share = f64::from(end - begin) / 20_000.0;
            let (mean, variance) = (20_000.0 * share, 20_000.0 * share * (1.0 - share));
            let away = out
                .chunks(20_000)
                .map(|row| f64::from(row[begin as usize..end as usize].iter().sum::<u32>()) - mean);
            let sum: f64 = away.clone().sum();
            let squares: f64 = away.map(|away| away * away).sum();
            assert!((sum / 400.0).abs() < 5.0 * (variance / 400.0).sqrt());
            assert!((squares / 400.0 / variance - 1.0).abs() < 5.0 * (2.0_f64 / 400.0).sqrt());
        }
    }

    #[test]
    fn stretches_cover_the_positions_once() {
        let sorted: Vec<u32> = (0..3_000).flat_map(|code| [code; 7]).collect();
        let mixed: Vec<u32> = (0..3).cycle().take(60_000).collect();
        for (scheme, n_stretches) in [
            (Scheme::plain(1), 1),
            (Scheme::plain(2_048), 1),
            (Scheme::plain(2_049), 3),
            (Scheme::plain(16_384), 16),
            (Scheme::stratified(&sorted), 21),
            (Scheme::stratified(&mixed), 1),
        ] {
            let scheme = scheme.expect("a valid scheme");
            assert_eq!(scheme.stretches.len(), n_stretches);
            let (mut block, mut position) = (0, 0);
            for stretch in &scheme.stretches {
                assert_eq!((stretch.blocks.start, stretch.positions.start), (block, position));
                let sizes = &scheme.sizes[stretch.blocks.clone()];
                position += sizes.iter().map(|size| usize::from(size.get())).sum::<usize>();
                block = stretch.blocks.end;
                assert_eq!(stretch.positions.end, position);
            }
            assert_eq!((block, position), (scheme.sizes.len(), scheme.n_clusters()));
        }
    }

    #[test]
    fn large_strata_keep_their_sizes() {
        let codes: Vec<u32> = (0..70_000).map(|g| u32::from(g % 7 > 4)).collect();
        let scheme = Scheme::stratified(&codes).expect("two strata");
        let mut out = vec![0; 70_000 * 2];
        counts(&scheme, 8, &mut out);
        for row in out.chunks(70_000) {
            let second: u32 = row.iter().zip(&codes).map(|(count, code)| count * code).sum();
            assert_eq!((row.iter().sum::<u32>(), second), (70_000, 20_000));
        }
    }
}
