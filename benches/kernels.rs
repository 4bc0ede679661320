//! One benchmark a kernel, at the sizes of common studies.

use std::num::NonZeroUsize;

use _native::{bootstrap, permutation};
use divan::{Bencher, black_box};

const SEED: u64 = 20_261_130;
const ONE: NonZeroUsize = NonZeroUsize::MIN;

fn main() {
    divan::main();
}

/// Values without a pattern that arithmetic could use.
fn values(size: usize) -> Vec<f64> {
    (0..size).map(|i| f64::from(u32::try_from(i * 7919 % 1009).unwrap_or(0)) / 1009.0).collect()
}

#[divan::bench(args = [(1_000, 2_000), (100_000, 20)])]
fn counts(bencher: Bencher, (n_clusters, n_resamples): (usize, usize)) {
    let scheme = bootstrap::Scheme::plain(n_clusters).expect("there are clusters");
    let mut out = vec![0; n_resamples * n_clusters];
    bencher.bench_local(|| bootstrap::counts(&scheme, SEED, 0, black_box(&mut out)));
}

#[divan::bench(args = [
    (1_000, 1, 2_000),
    (1_000, 22, 2_000),
    (1_000, 36, 2_000),
    (1_000, 1_000, 100),
    (100_000, 5, 100),
    (100_000, 36, 40),
    (1_000_000, 2, 8),
    (1_000_000, 22, 8),
])]
fn totals(bencher: Bencher, (n_clusters, n_columns, n_resamples): (usize, usize, usize)) {
    let values = values(n_clusters * n_columns);
    let scheme = bootstrap::Scheme::plain(n_clusters).expect("there are clusters");
    let totals =
        bootstrap::Totals::new(&values, n_clusters, n_columns).expect("the values are finite");
    let mut out = vec![0.0; n_resamples * n_columns];
    bencher.bench_local(|| bootstrap::totals(&totals, &scheme, SEED, 0, ONE, black_box(&mut out)));
}

#[divan::bench(args = [(1_000, 2, 9_999), (1_000, 4, 2_000)])]
fn codes(bencher: Bencher, (n_clusters, n_labels, n_resamples): (usize, usize, usize)) {
    let permutations = permutation::Permutations::new(n_labels).expect("there are labels");
    let mut out = vec![0; n_resamples * n_clusters];
    bencher.bench_local(|| {
        permutation::codes(&permutations, n_clusters, SEED, 0, black_box(&mut out))
    });
}

#[divan::bench(args = [(1_000, 2, 12, 9_999), (1_000, 3, 12, 2_000), (100_000, 2, 12, 40)])]
fn blocks(
    bencher: Bencher,
    (n_clusters, n_labels, n_columns, n_resamples): (usize, usize, usize, usize),
) {
    let values = values(n_clusters * n_labels * n_columns);
    let blocks = permutation::Blocks::new(&values, n_clusters, n_labels, n_columns)
        .expect("the values are finite");
    let mut out = vec![0.0; n_resamples * n_labels * n_columns];
    bencher.bench_local(|| permutation::blocks(&blocks, SEED, 0, ONE, black_box(&mut out)));
}

#[divan::bench(args = [(13, 2, 12, 8_192), (5, 3, 12, 7_776)])]
fn enumerate(
    bencher: Bencher,
    (n_clusters, n_labels, n_columns, n_resamples): (usize, usize, usize, usize),
) {
    let values = values(n_clusters * n_labels * n_columns);
    let blocks = permutation::Blocks::new(&values, n_clusters, n_labels, n_columns)
        .expect("the values are finite");
    let mut out = vec![0.0; n_resamples * n_labels * n_columns];
    bencher.bench_local(|| permutation::enumerate(&blocks, 0, ONE, black_box(&mut out)));
}
