//! Sums of weighted rows for several replicates at a time.
//!
//! Replicates sit side by side in the lanes of wide registers, each with weights of its own, and
//! all take the same rows. Every sum is made row by row in ascending order, one product after the
//! other, whatever the width of the registers.

use std::ops::{Add, Mul};

use crate::cpu::{Cpu, on_cpu};

/// Replicates that are summed together.
pub const LANES: usize = 8;

/// Bytes of a matrix summed before the next columns take their turn: about half of a small
/// second-level cache.
const NEAR_BYTES: usize = 128 * 1024;

/// What is summed.
pub trait Value:
    Copy + Default + Send + Sync + Add<Output = Self> + Mul<Output = Self> + From<u16>
{
}

impl Value for f64 {}
impl Value for i64 {}

/// Adds `weight * row` for each row of `values` to `sums`, which holds the lanes of each column.
#[inline]
pub fn add<W, T>(cpu: Cpu, weights: &[[W; LANES]], values: &[T], sums: &mut [[T; LANES]])
where
    W: Copy,
    T: Value + From<W>,
{
    let stride = sums.len();
    let near = (NEAR_BYTES / size_of::<T>() / stride).max(1);
    for (weights, values) in weights.chunks(near).zip(values.chunks(near * stride)) {
        on_cpu!(cpu, add_near, add_near_wide, (weights, values, sums));
    }
}

/// Two columns a pass: with eight lanes, their sums fill half of sixteen narrow registers.
#[inline]
fn add_near<W, T>(weights: &[[W; LANES]], values: &[T], sums: &mut [[T; LANES]])
where
    W: Copy,
    T: Value + From<W>,
{
    add_tiles::<W, T, 2>(weights, values, sums);
}

/// Four columns a pass: with eight lanes, their sums fill half of sixteen wide registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn add_near_wide<W, T>(weights: &[[W; LANES]], values: &[T], sums: &mut [[T; LANES]])
where
    W: Copy,
    T: Value + From<W>,
{
    add_tiles::<W, T, 4>(weights, values, sums);
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn add_tiles<W, T, const N: usize>(weights: &[[W; LANES]], values: &[T], sums: &mut [[T; LANES]])
where
    W: Copy,
    T: Value + From<W>,
{
    let stride = sums.len();
    let (tiles, rest) = sums.as_chunks_mut::<N>();
    let columns = tiles.len() * N;
    for (tile, sums) in tiles.iter_mut().enumerate() {
        add_tile(weights, values, stride, tile * N, sums);
    }
    // One width a call, so that the sums of the last columns are not waited for one by one either.
    match rest.len() {
        1 => add_last::<W, T, 1>(weights, values, stride, columns, rest),
        2 => add_last::<W, T, 2>(weights, values, stride, columns, rest),
        _ => add_last::<W, T, 3>(weights, values, stride, columns, rest),
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn add_last<W, T, const N: usize>(
    weights: &[[W; LANES]],
    values: &[T],
    stride: usize,
    column: usize,
    sums: &mut [[T; LANES]],
) where
    W: Copy,
    T: Value + From<W>,
{
    if let Some(sums) = sums.first_chunk_mut::<N>() {
        add_tile(weights, values, stride, column, sums);
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it has to be compiled for the features of its caller")]
fn add_tile<W, T, const N: usize>(
    weights: &[[W; LANES]],
    values: &[T],
    stride: usize,
    column: usize,
    out: &mut [[T; LANES]; N],
) where
    W: Copy,
    T: Value + From<W>,
{
    let mut sums = *out;
    for (weights, row) in weights.iter().zip(values.chunks_exact(stride)) {
        let Some(row) = row[column..].first_chunk::<N>() else { return };
        let weights = weights.map(T::from);
        for (sums, &value) in sums.iter_mut().zip(row) {
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum = *sum + weight * value;
            }
        }
    }
    *out = sums;
}

/// Writes the lanes as rows, as many as there is room for.
#[inline]
pub fn write_lanes<T: Copy, U>(sums: &[[T; LANES]], convert: impl Fn(T) -> U, rows: &mut [U]) {
    for (lane, row) in rows.chunks_exact_mut(sums.len()).enumerate() {
        for (place, sums) in row.iter_mut().zip(sums) {
            *place = convert(sums[lane]);
        }
    }
}
