//! Sums of drawn rows of small integers, a byte each.
//!
//! A row is a few words of eight bytes, and adding words adds their bytes as long as no byte
//! overflows. So many rows are added before the bytes are moved to wider sums.

use std::num::{NonZeroU8, NonZeroUsize};

use crate::cpu::{Cpu, on_cpu};
use crate::scheme::{Draws, Scheme};

/// Bytes of a line of cache, and most columns summed at a time.
const LINE: usize = 64;

/// A matrix of bytes with a row for each position of a scheme.
#[derive(Debug, Clone)]
pub struct Bytes {
    n_rows: usize,
    n_columns: usize,
    /// Rows that can be added before a byte overflows.
    period: NonZeroUsize,
    tiles: Vec<Tile>,
}

/// Some of the columns.
#[derive(Debug, Clone)]
struct Tile {
    /// The rows, from `start` on, which is where a line of cache begins.
    words: Vec<u64>,
    start: usize,
    /// Words in a row: 1, 2, 4 or 8, so that no row lies across two lines.
    width: usize,
}

impl Bytes {
    /// The bytes that `byte(cluster, column)` gives, none above `largest`.
    pub fn new(
        scheme: &Scheme,
        n_columns: usize,
        largest: NonZeroU8,
        byte: impl Fn(usize, usize) -> u8,
    ) -> Self {
        let tiles = (0..n_columns).step_by(LINE).map(|begin| {
            let columns = begin..n_columns.min(begin + LINE);
            let width = columns.len().div_ceil(8).next_power_of_two();
            let mut words = vec![0; scheme.n_clusters() * width + LINE / 8];
            let start = words.as_ptr().align_offset(LINE).min(LINE / 8);
            let rows = words[start..].chunks_exact_mut(width).take(scheme.n_clusters());
            for (position, row) in rows.enumerate() {
                let cluster = scheme.cluster(position);
                let mut columns = columns.clone();
                for word in row {
                    let mut bytes = [0; 8];
                    for (place, column) in bytes.iter_mut().zip(columns.by_ref()) {
                        *place = byte(cluster, column);
                    }
                    *word = u64::from_le_bytes(bytes);
                }
            }
            Tile { words, start, width }
        });
        let period = usize::from(u8::MAX / largest.get());
        let period = NonZeroUsize::new(period).unwrap_or(NonZeroUsize::MIN);
        Self { n_rows: scheme.n_clusters(), n_columns, period, tiles: tiles.collect() }
    }

    /// Adds the rows that a replicate draws to `sums`, one of every column.
    #[inline]
    pub fn add_drawn(&self, cpu: Cpu, scheme: &Scheme, draws: &mut Draws, sums: &mut [u64]) {
        for stretch in scheme.stretches() {
            let begin = stretch.positions.start;
            scheme.each_block(draws, stretch.blocks.clone(), begin, |begin, indices| {
                for (tile, sums) in self.tiles.iter().zip(sums.chunks_mut(LINE)) {
                    let words = &tile.words[tile.start + begin * tile.width..];
                    on_cpu!(cpu, add, add_wide, (words, tile.width, indices, self.period, sums));
                }
            });
        }
    }

    /// Bytes in a row.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Rows, one a position.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn add(words: &[u64], width: usize, indices: &[u16], period: NonZeroUsize, sums: &mut [u64]) {
    match width {
        1 => add_rows::<1>(words, indices, period, sums),
        2 => add_rows::<2>(words, indices, period, sums),
        4 => add_rows::<4>(words, indices, period, sums),
        _ => add_rows::<8>(words, indices, period, sums),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn add_wide(words: &[u64], width: usize, indices: &[u16], period: NonZeroUsize, sums: &mut [u64]) {
    add(words, width, indices, period, sums);
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn add_rows<const W: usize>(
    words: &[u64],
    indices: &[u16],
    period: NonZeroUsize,
    sums: &mut [u64],
) {
    let (rows, _) = words.as_chunks::<W>();
    // They would overflow with 2^32 / 255 draws in one block, whose expected draws are as many as
    // its clusters: at most some thousands.
    let mut wider = [[0_u32; 8]; W];
    for indices in indices.chunks(period.get()) {
        let mut packed = [0_u64; W];
        for &index in indices {
            let row = &rows[usize::from(index)];
            for (sum, word) in packed.iter_mut().zip(row) {
                *sum = sum.wrapping_add(*word);
            }
        }
        for (wider, packed) in wider.iter_mut().zip(packed) {
            for (sum, byte) in wider.iter_mut().zip(packed.to_le_bytes()) {
                *sum += u32::from(byte);
            }
        }
    }
    for (sum, wider) in sums.iter_mut().zip(wider.as_flattened()) {
        *sum += u64::from(*wider);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_counts_times_bytes() {
        for (n_clusters, n_columns, largest) in
            [(1, 1, 255), (50, 3, 1), (700, 8, 4), (60, 33, 90), (20_000, 64, 3), (900, 150, 200)]
        {
            let byte = |cluster: usize, column: usize| {
                u8::try_from((cluster * 31 + column * 7) % (usize::from(largest) + 1)).unwrap_or(0)
            };
            let codes: Vec<u32> = (0..3).cycle().take(n_clusters).collect();
            let most = NonZeroU8::new(largest).expect("a largest byte");
            for scheme in [Scheme::plain(n_clusters), Scheme::stratified(&codes)] {
                let scheme = scheme.expect("a valid scheme");
                let bytes = Bytes::new(&scheme, n_columns, most, byte);
                let mut counts = vec![0; n_clusters];
                for index in 0..5 {
                    let mut expected = vec![0; n_columns];
                    let mut draws = Draws::new(Cpu::plain());
                    draws.start(&scheme, Cpu::plain(), 3, index);
                    scheme.count(&mut draws, &mut counts);
                    for (cluster, &count) in counts.iter().enumerate() {
                        for (column, sum) in expected.iter_mut().enumerate() {
                            *sum += u64::from(count) * u64::from(byte(cluster, column));
                        }
                    }
                    for cpu in [Cpu::plain(), Cpu::detect()] {
                        let mut sums = vec![0; n_columns];
                        draws.start(&scheme, cpu, 3, index);
                        bytes.add_drawn(cpu, &scheme, &mut draws, &mut sums);
                        assert_eq!(sums, expected, "{n_clusters} x {n_columns}, {cpu:?}");
                    }
                }
            }
        }
    }
}
