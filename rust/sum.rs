//! Sums of selected rows of a matrix.

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

/// How many of `n_rows` rows of `row_len` floats form a block, and how many replicates share
/// it.
pub fn plan(n_rows: usize, row_len: usize) -> (usize, NonZeroUsize) {
    let block = (BLOCK_BYTES / size_of::<f64>() / row_len).clamp(1, n_rows);
    let batch = if block == n_rows { NonZeroUsize::MIN } else { BATCH };
    (block, batch)
}

/// Adds the rows of the given numbers, in their order, to `out`.
pub fn add_rows(values: &[f64], numbers: &[u32], out: &mut [f64]) {
    let stride = out.len();
    for (tile, sums) in out.chunks_mut(TILE).enumerate() {
        let column = tile * TILE;
        // One width a call, so that the compiler keeps all its sums in registers over the whole
        // loop.
        match sums.len() {
            1 => add_tile::<1>(values, stride, column, numbers, sums),
            2 => add_tile::<2>(values, stride, column, numbers, sums),
            3 => add_tile::<3>(values, stride, column, numbers, sums),
            4 => add_tile::<4>(values, stride, column, numbers, sums),
            5 => add_tile::<5>(values, stride, column, numbers, sums),
            6 => add_tile::<6>(values, stride, column, numbers, sums),
            7 => add_tile::<7>(values, stride, column, numbers, sums),
            8 => add_tile::<8>(values, stride, column, numbers, sums),
            9 => add_tile::<9>(values, stride, column, numbers, sums),
            10 => add_tile::<10>(values, stride, column, numbers, sums),
            11 => add_tile::<11>(values, stride, column, numbers, sums),
            12 => add_tile::<12>(values, stride, column, numbers, sums),
            13 => add_tile::<13>(values, stride, column, numbers, sums),
            14 => add_tile::<14>(values, stride, column, numbers, sums),
            15 => add_tile::<15>(values, stride, column, numbers, sums),
            _ => add_tile::<TILE>(values, stride, column, numbers, sums),
        }
    }
}

fn add_tile<const N: usize>(
    values: &[f64],
    stride: usize,
    column: usize,
    numbers: &[u32],
    out: &mut [f64],
) {
    let Some(out) = out.first_chunk_mut::<N>() else {
        return;
    };
    let mut sums = *out;
    for &number in numbers {
        let start = number as usize * stride + column;
        if let Some(row) = values[start..].first_chunk::<N>() {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += value;
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
            add_rows(&values, &[0, 3, 3, 4], &mut out);
            for (j, &sum) in out.iter().enumerate() {
                let expected = 1.0 + values[j] + 2.0 * values[3 * k + j] + values[4 * k + j];
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
