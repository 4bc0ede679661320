//! One benchmark a kernel, at the sizes of common studies.

use std::num::NonZeroUsize;

use _native::bootstrap::Totals;
use _native::collapsed::Classes;
use _native::cpu::Cpu;
use _native::crossed::Pairs;
use _native::flips::Flips;
use _native::integers::IntTotals;
use _native::models::laplace::{self, Data, Part, Response};
use _native::nested::Cells;
use _native::parallel::Run;
use _native::permutation::{Blocks, Permutations};
use _native::quantile::Ends;
use _native::scheme::Scheme;
use _native::{
    bayesian, bootstrap, collapsed, crossed, flips, integers, nested, permutation, quantile,
    subset, wild,
};
use divan::{Bencher, black_box};

const SEED: u64 = 20_261_130;

fn main() {
    divan::main();
}

fn one_thread() -> Run {
    Run::on(NonZeroUsize::MIN)
}

/// Numbers without a pattern that arithmetic could use.
fn numbers(size: usize) -> impl Iterator<Item = u32> {
    (0..size).map(|i| u32::try_from(i * 7919 % 1009).unwrap_or(0))
}

fn values(size: usize) -> Vec<f64> {
    numbers(size).map(|number| f64::from(number) / 1009.0).collect()
}

fn plain(n_clusters: usize) -> Scheme {
    Scheme::plain(n_clusters).expect("there are clusters")
}

#[divan::bench(args = [(1_000, 2_000), (3_000, 700), (10_001, 200), (100_000, 20)])]
fn counts(bencher: Bencher, (n_clusters, n_resamples): (usize, usize)) {
    let scheme = plain(n_clusters);
    let mut out = vec![0; n_resamples * n_clusters];
    bencher.bench_local(|| bootstrap::counts(&scheme, SEED, 0, black_box(&mut out)));
}

#[divan::bench(args = [
    (1_000, 1, 2_000),
    (1_000, 22, 2_000),
    (1_000, 36, 2_000),
    (1_000, 1_000, 100),
    (3_000, 2, 700),
    (10_001, 2, 200),
    (100_000, 2, 100),
    (100_000, 36, 40),
    (1_000_000, 2, 8),
    (1_000_000, 22, 8),
])]
fn totals(bencher: Bencher, (n_clusters, n_columns, n_resamples): (usize, usize, usize)) {
    let values = values(n_clusters * n_columns);
    let scheme = plain(n_clusters);
    let totals = Totals::new(&values, n_clusters, n_columns).expect("the values are finite");
    let run = one_thread();
    let mut out = vec![0.0; n_resamples * n_columns];
    bencher.bench_local(|| bootstrap::totals(&totals, &scheme, SEED, 0, run, black_box(&mut out)));
}

#[divan::bench(args = [
    (1_000, 36, 2, 2_000),
    (250, 60, 5, 2_000),
    (1_000, 36, 1_000, 2_000),
    (100_000, 2, 6, 100),
])]
fn totals_int(
    bencher: Bencher,
    (n_clusters, n_columns, n_values, n_resamples): (usize, usize, u32, usize),
) {
    let values: Vec<i64> =
        numbers(n_clusters * n_columns).map(|number| (number % n_values).into()).collect();
    let scheme = plain(n_clusters);
    let run = one_thread();
    let mut out = vec![0; n_resamples * n_columns];
    bencher.bench_local(|| {
        let totals = IntTotals::new(&values, n_columns, &scheme).expect("the values are small");
        integers::totals(&totals, &scheme, SEED, 0, run, black_box(&mut out))
    });
}

#[divan::bench(args = [(36, 100_000, 10_000), (11, 1_000_000, 1_000)])]
fn collapsed_totals(bencher: Bencher, (n_classes, n_clusters, n_resamples): (usize, usize, usize)) {
    let values = values(n_classes);
    let totals = Totals::new(&values, n_classes, 1).expect("the values are finite");
    let share = u32::try_from(n_clusters / n_classes).expect("few clusters");
    let sizes: Vec<u32> = numbers(n_classes).map(|number| share / 2 + number).collect();
    let classes = Classes::new(&sizes).expect("there are clusters");
    let run = one_thread();
    let mut out = vec![0.0; n_resamples];
    bencher.bench_local(|| collapsed::totals(&totals, &classes, SEED, 0, run, black_box(&mut out)));
}

#[divan::bench(args = [(true, 2), (true, 5), (false, 2)])]
fn nested_totals(bencher: Bencher, (binary, n_repetitions): (bool, i64)) {
    let (n_clusters, n_columns, n_resamples) = (60, 24, 2_000);
    let offsets: Vec<i64> = (0..=1_440).map(|cell| cell * n_repetitions).collect();
    let size = usize::try_from(1_440 * n_repetitions).expect("few");
    let mut values: Vec<f64> =
        numbers(size).map(|number| f64::from(u8::from(number % 5 < 2))).collect();
    if !binary {
        values[0] = 0.5;
    }
    let scheme = plain(n_clusters);
    let run = one_thread();
    let (mut sums, mut counts) =
        (vec![0.0; n_resamples * n_columns], vec![0; n_resamples * n_columns]);
    bencher.bench_local(|| {
        let cells = Cells::new(&values, &offsets, n_columns, &scheme).expect("finite");
        nested::totals(&cells, &scheme, SEED, 0, run, black_box(&mut sums), &mut counts)
    });
}

#[divan::bench(args = [(1_000, 5, 12, 500)])]
fn crossed_totals(
    bencher: Bencher,
    (n_first, n_second, n_columns, n_resamples): (usize, usize, usize, usize),
) {
    let values = values(n_first * n_second * n_columns);
    let pairs = Pairs::new(&values, [n_first, n_second], n_columns).expect("finite");
    let run = one_thread();
    let mut out = vec![0.0; n_resamples * n_columns];
    bencher.bench_local(|| crossed::totals(&pairs, SEED, 0, run, black_box(&mut out)));
}

#[divan::bench(args = [(1_000, 12, 1_000)])]
fn bayesian_totals(bencher: Bencher, (n_clusters, n_columns, n_resamples): (usize, usize, usize)) {
    let values = values(n_clusters * n_columns);
    let totals = Totals::new(&values, n_clusters, n_columns).expect("finite");
    let run = one_thread();
    let mut out = vec![0.0; n_resamples * n_columns];
    bencher.bench_local(|| bayesian::totals(&totals, SEED, 0, run, black_box(&mut out)));
}

#[divan::bench(args = [wild::Kind::Rademacher, wild::Kind::Webb, wild::Kind::Mammen])]
fn wild_weights(bencher: Bencher, kind: wild::Kind) {
    let mut out = vec![0.0; 1_000 * 999];
    bencher.bench_local(|| wild::weights(kind, 1_000, SEED, 0, black_box(&mut out)));
}

/// Values of -1, 0 and 1; small integers; floats.
#[divan::bench(args = [(3, 1.0), (200, 1.0), (3, 0.5)])]
fn sign_flip_totals(bencher: Bencher, (n_values, scale): (u32, f64)) {
    let (n_clusters, n_columns, n_resamples) = (1_000, 12, 9_999);
    let values: Vec<f64> = numbers(n_clusters * n_columns)
        .map(|number| (f64::from(number % n_values) - f64::from(n_values / 2)) * scale)
        .collect();
    let flips = Flips::new(&values, n_clusters, n_columns).expect("finite");
    let run = one_thread();
    let mut out = vec![0.0; n_resamples * n_columns];
    bencher.bench_local(|| flips::totals(&flips, SEED, 0, run, black_box(&mut out)));
}

#[divan::bench(args = [(1_000, 9_999)])]
fn sign_flips(bencher: Bencher, (n_clusters, n_resamples): (usize, usize)) {
    let mut out = vec![0; n_resamples * n_clusters];
    bencher.bench_local(|| flips::signs(n_clusters, SEED, 0, black_box(&mut out)));
}

#[divan::bench(args = [(200, 100), (2_000, 1_000)])]
fn subset_totals(bencher: Bencher, (n_clusters, size): (usize, usize)) {
    let (n_columns, n_resamples) = (2, 9_999);
    let values = values(n_clusters * n_columns);
    let totals = Totals::new(&values, n_clusters, n_columns).expect("finite");
    let run = one_thread();
    let mut out = vec![0.0; n_resamples * n_columns];
    bencher.bench_local(|| subset::totals(&totals, size, SEED, 0, run, black_box(&mut out)));
}

#[divan::bench(args = [(1_000, 2, 9_999), (1_000, 4, 2_000)])]
fn codes(bencher: Bencher, (n_clusters, n_labels, n_resamples): (usize, usize, usize)) {
    let permutations = Permutations::new(n_labels).expect("there are labels");
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
    let blocks = Blocks::new(&values, n_clusters, n_labels, n_columns).expect("finite");
    let run = one_thread();
    let mut out = vec![0.0; n_resamples * n_labels * n_columns];
    bencher.bench_local(|| permutation::blocks(&blocks, SEED, 0, run, black_box(&mut out)));
}

#[divan::bench(args = [(13, 2, 12, 8_192), (5, 3, 12, 7_776)])]
fn enumerate(
    bencher: Bencher,
    (n_clusters, n_labels, n_columns, n_resamples): (usize, usize, usize, usize),
) {
    let values = values(n_clusters * n_labels * n_columns);
    let blocks = Blocks::new(&values, n_clusters, n_labels, n_columns).expect("finite");
    let run = one_thread();
    let mut out = vec![0.0; n_resamples * n_labels * n_columns];
    bencher.bench_local(|| permutation::enumerate(&blocks, 0, run, black_box(&mut out)));
}

#[divan::bench(args = [(10_000, 24), (2_000, 80)])]
fn quantile_pairs(bencher: Bencher, (n_resamples, n_columns): (usize, usize)) {
    let mut drawn = vec![0.0; n_resamples * n_columns];
    bayesian::weights(n_columns, SEED, 0, &mut drawn).expect("whole rows");
    let (low, high) = (vec![0.025; n_columns], vec![0.975; n_columns]);
    let ends = Ends::new(&drawn, &low, &high).expect("whole rows");
    let run = one_thread();
    let mut out = vec![0.0; 2 * n_columns];
    bencher.bench_local(|| quantile::pairs(&ends, 0, run, black_box(&mut out)));
}

/// Scenarios crossed with models, three rows of one trial each.
#[divan::bench(args = [(60, 6), (1_000, 12)], sample_count = 10)]
fn laplace(bencher: Bencher, (n_scenarios, n_models): (u32, u32)) {
    let rows = || {
        (0..n_scenarios * n_models * 3)
            .map(move |row| (row / 3 / n_models, row / 3 % n_models, row % 3))
    };
    let part = |codes: Vec<u32>, n_levels: u32| Part {
        codes,
        z: Vec::new(),
        width: 1,
        n_levels: n_levels as usize,
    };
    let size = rows().count();
    let answers = numbers(size).zip(rows());
    let data = Data {
        response: Response::Binomial {
            successes: answers
                .map(|(number, (s, m, _))| {
                    f64::from(u8::from(number + 60 * (s % 7) + 40 * (m % 5) > 700))
                })
                .collect(),
            trials: vec![1.0; size],
        },
        x: rows()
            .flat_map(|(.., v)| [1.0, f64::from(u8::from(v == 1)), f64::from(u8::from(v == 2))])
            .collect(),
        n_coefficients: 3,
        parts: vec![
            part(rows().map(|(s, ..)| s).collect(), n_scenarios),
            part(rows().map(|(_, m, _)| m).collect(), n_models),
        ],
        rule: None,
    };
    bencher.bench_local(|| laplace::fit(black_box(data.clone()), Cpu::detect(), &mut || Ok(())));
}
