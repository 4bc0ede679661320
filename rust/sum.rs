//! Sums of selected rows of a matrix, shared by the kernels.

use std::num::NonZeroUsize;

/// Bytes of a matrix summed before the next replicate takes its turn: about half of a small
/// second-level cache.
const BLOCK_BYTES: usize = 128 * 1024;

/// Replicates that take turns on each block of a matrix too large for the cache, so that memory
/// is read once for all.
const BATCH: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// Columns whose sums stay in registers: eight 128-bit registers, which leaves room for the
/// operands.
const TILE: usize = 16;

/// A row to add, and what to multiply it by.
pub trait Term: Copy {
    /// Position of the row in the matrix.
    fn row(self) -> usize;
    /// Contribution of one value of the row.
    fn scale(self, value: f64) -> f64;
}

/// A row taken once.
impl Term for u32 {
    #[inline]
    fn row(self) -> usize {
        self as usize
    }
    #[inline]
    fn scale(self, value: f64) -> f64 {
        value
    }
}

/// A row taken as often as its multiplicity says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weighted {
    pub row: u32,
    pub weight: f64,
}

impl Term for Weighted {
    #[inline]
    fn row(self) -> usize {
        self.row as usize
    }
    #[inline]
    fn scale(self, value: f64) -> f64 {
        self.weight * value
    }
}

/// How many of `n_rows` rows of `row_len` floats form a block, and how many replicates share
/// it.
pub fn plan(n_rows: usize, row_len: usize) -> (usize, NonZeroUsize) {
    let block = (BLOCK_BYTES / size_of::<f64>() / row_len).clamp(1, n_rows);
    let batch = if block == n_rows { NonZeroUsize::MIN } else { BATCH };
    (block, batch)
}

/// Adds the rows named by `terms`, in their order, to `out`.
pub fn add_rows<T: Term>(values: &[f64], terms: &[T], out: &mut [f64]) {
    let stride = out.len();
    for (tile, sums) in out.chunks_mut(TILE).enumerate() {
        let column = tile * TILE;
        // One width a call, so that the compiler keeps all its sums in registers over the whole
        // loop.
        match sums.len() {
            1 => add_tile::<T, 1>(values, stride, column, terms, sums),
            2 => add_tile::<T, 2>(values, stride, column, terms, sums),
            3 => add_tile::<T, 3>(values, stride, column, terms, sums),
            4 => add_tile::<T, 4>(values, stride, column, terms, sums),
            5 => add_tile::<T, 5>(values, stride, column, terms, sums),
            6 => add_tile::<T, 6>(values, stride, column, terms, sums),
            7 => add_tile::<T, 7>(values, stride, column, terms, sums),
            8 => add_tile::<T, 8>(values, stride, column, terms, sums),
            9 => add_tile::<T, 9>(values, stride, column, terms, sums),
            10 => add_tile::<T, 10>(values, stride, column, terms, sums),
            11 => add_tile::<T, 11>(values, stride, column, terms, sums),
            12 => add_tile::<T, 12>(values, stride, column, terms, sums),
            13 => add_tile::<T, 13>(values, stride, column, terms, sums),
            14 => add_tile::<T, 14>(values, stride, column, terms, sums),
            15 => add_tile::<T, 15>(values, stride, column, terms, sums),
            _ => add_tile::<T, TILE>(values, stride, column, terms, sums),
        }
    }
}

fn add_tile<T: Term, const N: usize>(
    values: &[f64],
    stride: usize,
    column: usize,
    terms: &[T],
    out: &mut [f64],
) {
    let Some(out) = out.first_chunk_mut::<N>() else {
        return;
    };
    let mut sums = *out;
    for &term in terms {
        let start = term.row() * stride + column;
        if let Some(row) = values[start..].first_chunk::<N>() {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += term.scale(value);
            }
        }
    }
    *out = sums;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_sums_every_column() {
        for width in 1..=40_u32 {
            let k = width as usize;
            let values: Vec<f64> = (0..5 * width).map(f64::from).collect();
            let mut out = vec![1.0; k];
            let terms = [
                Weighted { row: 0, weight: 2.0 },
                Weighted { row: 3, weight: 1.0 },
                Weighted { row: 4, weight: 5.0 },
            ];
            add_rows(&values, &terms, &mut out);
            for (j, &sum) in out.iter().enumerate() {
                let expected = 1.0 + 2.0 * values[j] + values[3 * k + j] + 5.0 * values[4 * k + j];
                assert_eq!(sum.to_bits(), expected.to_bits(), "width {k}, column {j}");
            }
        }
    }

    #[test]
    fn a_block_never_exceeds_the_matrix() {
        assert_eq!(plan(10, 2), (10, NonZeroUsize::MIN));
        assert_eq!(plan(1_000_000, 1_000_000), (1, BATCH));
    }
}
