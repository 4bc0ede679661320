//! The rows of replicates, and the threads that fill them.
//!
//! Threads live for one call and there is no pool. A pool's threads do not exist in a forked child,
//! whose first call would then wait for ever, and Python programs do fork. Starting a thread costs
//! some tens of microseconds, little beside a call that is worth several threads.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::cpu::Cpu;
use crate::error::{Error, Result, check_some};
use crate::products::LANES;

/// Pieces of work a thread gets on average: enough that a thread on a slow core does not keep the
/// others waiting.
const PIECES_PER_THREAD: usize = 8;

/// Zeros for `n_resamples` replicates of `row_len` values.
///
/// # Errors
/// [`Error::Empty`] without replicates, [`Error::TooLarge`] when memory cannot hold them.
pub fn zeros<T: Copy + Default>(n_resamples: usize, row_len: usize) -> Result<Vec<T>> {
    check_some("`n_resamples`", n_resamples)?;
    let too_large = || Error::TooLarge { n_resamples, row_len };
    let size = n_resamples.checked_mul(row_len).ok_or_else(too_large)?;
    let mut values = Vec::new();
    values.try_reserve_exact(size).map_err(|_| too_large())?;
    values.resize(size, T::default());
    Ok(values)
}

/// How many replicates of `row_len` values `out` holds.
///
/// # Errors
/// [`Error::Empty`] for none, [`Error::PartialReplicate`] for a fraction of one.
pub fn count_rows<T>(out: &[T], row_len: usize) -> Result<usize> {
    check_some("the length of a replicate", row_len)?;
    if !out.len().is_multiple_of(row_len) {
        return Err(Error::PartialReplicate { row_len, actual: out.len() });
    }
    check_some("`n_resamples`", out.len() / row_len)?;
    Ok(out.len() / row_len)
}

/// Where a kernel runs; it changes the time, not the result.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Threads to use, the calling one included.
    pub n_threads: NonZeroUsize,
    /// Instructions to use.
    pub cpu: Cpu,
}

impl Run {
    /// On so many threads, with all that the processor offers.
    #[must_use]
    pub fn on(n_threads: NonZeroUsize) -> Self {
        Self { n_threads, cpu: Cpu::detect() }
    }
}

/// How the rows are handed out.
#[derive(Debug, Clone, Copy)]
pub struct Split {
    /// Values in a row.
    pub row_len: NonZeroUsize,
    /// Rows that are cheaper together; no piece is cut inside such a group.
    pub batch: NonZeroUsize,
    /// Threads to use, the calling one included.
    pub n_threads: NonZeroUsize,
}

impl Split {
    /// Rows handed out one by one.
    #[must_use]
    pub fn single(row_len: NonZeroUsize, run: Run) -> Self {
        Self { row_len, batch: NonZeroUsize::MIN, n_threads: run.n_threads }
    }

    /// Rows handed out by as many as are summed together.
    #[must_use]
    pub fn lanes(row_len: NonZeroUsize, run: Run) -> Self {
        let batch = const { NonZeroUsize::new(LANES).unwrap() };
        Self { row_len, batch, n_threads: run.n_threads }
    }
}

/// Fills `out` by calls of `body(scratch, number of the first row, rows)`, each of them for some
/// adjacent rows.
///
/// The threads take the next piece from a common queue. A thread makes its `scratch` once. With one
/// thread, nothing is spawned; when the system refuses a thread, those that exist do the work.
pub fn fill<T, S>(
    out: &mut [T],
    split: Split,
    scratch: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, usize, &mut [T]) + Sync,
) where
    T: Send,
{
    let mut nothing = vec![(); out.len()];
    fill_pair(out, &mut nothing, split, scratch, |scratch, start, rows, _| {
        body(scratch, start, rows);
    });
}

/// As [`fill`], for two outputs of the same shape: `body(scratch, number of the first row, rows of
/// the one, rows of the other)`.
pub fn fill_pair<T, U, S>(
    out: &mut [T],
    other: &mut [U],
    split: Split,
    scratch: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, usize, &mut [T], &mut [U]) + Sync,
) where
    T: Send,
    U: Send,
{
    let (row_len, batch) = (split.row_len.get(), split.batch.get());
    let n_batches = (out.len() / row_len).div_ceil(batch);
    let n_threads = split.n_threads.get().min(n_batches);
    if n_threads <= 1 {
        body(&mut scratch(), 0, out, other);
        return;
    }
    let per_piece = n_batches.div_ceil(n_threads.saturating_mul(PIECES_PER_THREAD)) * batch;
    let size = per_piece * row_len;
    let queue = Mutex::new(out.chunks_mut(size).zip(other.chunks_mut(size)).enumerate());
    let work = || {
        let mut scratch = scratch();
        loop {
            // Taking a piece cannot panic, so a poisoned lock still guards a sound queue.
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((piece, (rows, others))) = next else { return };
            body(&mut scratch, piece * per_piece, rows, others);
        }
    };
    thread::scope(|scope| {
        for _ in 1..n_threads {
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

/// Ways to run a kernel that must all give the same.
#[cfg(test)]
pub(crate) fn runs() -> [Run; 5] {
    let thread = |n| NonZeroUsize::new(n).expect("threads");
    [
        Run { n_threads: thread(1), cpu: Cpu::plain() },
        Run::on(thread(1)),
        Run::on(thread(2)),
        Run::on(thread(3)),
        Run::on(thread(7)),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn nonzero(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).expect("sizes in tests are positive")
    }

    #[test]
    fn every_row_is_filled_once_for_every_number_of_threads() {
        for n_rows in [1, 2, 5, 64, 203] {
            for n_threads in [1, 2, 3, 7, 1_000] {
                for batch in [1, 8] {
                    let split = Split {
                        row_len: nonzero(3),
                        batch: nonzero(batch),
                        n_threads: nonzero(n_threads),
                    };
                    let mut out = vec![0; 3 * n_rows];
                    fill(
                        &mut out,
                        split,
                        || (),
                        |(), start, rows| {
                            assert!(start.is_multiple_of(batch));
                            for (row, number) in rows.chunks_mut(3).zip(start..) {
                                for value in row {
                                    *value += number + 1;
                                }
                            }
                        },
                    );
                    let expected: Vec<usize> = (1..=n_rows).flat_map(|n| [n; 3]).collect();
                    assert_eq!(out, expected);
                }
            }
        }
    }

    #[test]
    fn both_outputs_of_a_pair_are_filled() {
        for n_threads in [1, 3] {
            let split =
                Split { row_len: nonzero(2), batch: nonzero(1), n_threads: nonzero(n_threads) };
            let (mut out, mut other) = (vec![0; 200], vec![0.0; 200]);
            fill_pair(
                &mut out,
                &mut other,
                split,
                || (),
                |(), start, rows, others| {
                    assert_eq!(rows.len(), others.len());
                    for ((row, other), number) in rows.iter_mut().zip(others).zip(2 * start..) {
                        (*row, *other) = (number, 0.5);
                    }
                },
            );
            assert!(out.iter().copied().eq(0..200));
            assert!(other.iter().all(|&other| other > 0.0));
        }
    }

    #[test]
    fn one_thread_is_the_calling_one() {
        let caller = thread::current().id();
        let split = Split { row_len: nonzero(1), batch: nonzero(1), n_threads: nonzero(1) };
        let calls = AtomicUsize::new(0);
        fill(
            &mut [0; 100],
            split,
            || (),
            |(), _, _| {
                assert_eq!(thread::current().id(), caller);
                calls.fetch_add(1, Ordering::Relaxed);
            },
        );
        assert_eq!(calls.into_inner(), 1);
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!(zeros::<f64>(0, 3), Err(Error::Empty { what: "`n_resamples`" }));
        assert_eq!(zeros::<u16>(2, 3), Ok(vec![0; 6]));
        for (n_resamples, row_len) in [(usize::MAX, 2), (usize::MAX / 8, 1), (usize::MAX / 16, 1)] {
            assert_eq!(
                zeros::<f64>(n_resamples, row_len),
                Err(Error::TooLarge { n_resamples, row_len })
            );
        }
        assert_eq!(count_rows(&[0; 6], 3), Ok(2));
        assert_eq!(count_rows(&[0; 7], 3), Err(Error::PartialReplicate { row_len: 3, actual: 7 }));
        assert_eq!(count_rows(&[0; 0], 3), Err(Error::Empty { what: "`n_resamples`" }));
        assert_eq!(count_rows(&[0; 3], 0), Err(Error::Empty { what: "the length of a replicate" }));
    }
}
