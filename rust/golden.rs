//! The first draws of each kernel for fixed seeds: a change of the streams, which would change every
//! published number, does not go unnoticed.

use crate::bootstrap::{self, Totals};
use crate::collapsed::{self, Classes};
use crate::crossed::{self, Pairs};
use crate::flips::{self, Flips};
use crate::integers::{self, IntTotals};
use crate::nested::{self, Cells};
use crate::parallel::{Run, runs};
use crate::permutation::{self, Blocks, Permutations};
use crate::scheme::Scheme;
use crate::{bayesian, wild};

const SEED: u64 = 20_261_130;
const FIRST: u64 = 5;

/// FNV-1a (Fowler, Noll and Vo) of 64 bits over the bytes, the lowest of each value first.
fn hash<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> u64 {
    values.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn of_floats(values: &[f64]) -> u64 {
    hash(values.iter().map(|value| value.to_bits().to_le_bytes()))
}

fn of_counts(values: &[u32]) -> u64 {
    hash(values.iter().map(|value| value.to_le_bytes()))
}

fn fractions(size: usize) -> Vec<f64> {
    (0_u32..).take(size).map(|i| f64::from(i * 7919 % 1009) / 1009.0 - 0.3).collect()
}

fn both() -> [Run; 2] {
    let [plain, wide, ..] = runs();
    [plain, wide]
}

#[test]
fn bootstrap() {
    let mixed: Vec<u32> = (0..).take(50_000).map(|g: u32| u32::from(g % 7 > 4)).collect();
    for (scheme, expected) in [
        (Scheme::plain(6), [0x6825_2ab1_e714_4df7, 0x3709_165f_aea3_2306, 0xc3f6_8db0_d856_f8f5]),
        (
            Scheme::plain(1_000),
            [0xc808_884f_230e_1f33, 0x695b_277f_9372_7153, 0x5354_2b4d_b23f_ca10],
        ),
        (
            Scheme::plain(2_048),
            [0xb961_8bc9_c1c0_1571, 0xeded_ff52_5d57_93c6, 0x75cd_b659_b4f6_5632],
        ),
        (
            Scheme::plain(50_001),
            [0x8c43_743f_57b0_4d48, 0x29ea_91ef_6c07_a992, 0x7664_6212_4f6f_643f],
        ),
        (
            Scheme::stratified(&mixed[..70]),
            [0x4606_8165_3a58_5623, 0x02f1_c57e_280e_fdf8, 0x53d5_a20c_4193_00dd],
        ),
        (
            Scheme::stratified(&mixed),
            [0x7cf4_ef1e_278d_43f1, 0xddd9_2e66_4d56_4032, 0xb5f1_58b8_e614_1940],
        ),
    ] {
        let scheme = scheme.expect("a valid scheme");
        let g = scheme.n_clusters();
        let mut counts = vec![0; 3 * g];
        assert_eq!(bootstrap::counts(&scheme, SEED, FIRST, &mut counts), Ok(()));
        let values = fractions(2 * g);
        let data = Totals::new(&values, g, 2).expect("finite");
        let bytes: Vec<u8> = (0..=6).cycle().take(2 * g).collect();
        let bytes = IntTotals::new(&bytes, 2, &scheme).expect("small");
        for run in both() {
            let (mut sums, mut exact) = ([0.0; 6], [0; 6]);
            assert_eq!(bootstrap::totals(&data, &scheme, SEED, FIRST, run, &mut sums), Ok(()));
            assert_eq!(integers::totals(&bytes, &scheme, SEED, FIRST, run, &mut exact), Ok(()));
            let exact = hash(exact.map(i64::to_le_bytes));
            assert_eq!([of_counts(&counts), of_floats(&sums), exact], expected, "{g} clusters");
        }
    }
}

#[test]
fn collapsed() {
    let sizes = [40_u32, 0, 3, 60_000, 1, 39_956, 7];
    let classes = Classes::new(&sizes).expect("clusters");
    let mut counts = vec![0; 7 * 20];
    assert_eq!(collapsed::counts(&classes, SEED, FIRST, &mut counts), Ok(()));
    assert_eq!(of_counts(&counts), 0x5b75_5374_4e56_b0f8);
    let values = fractions(14);
    let data = Totals::new(&values, 7, 2).expect("finite");
    for run in both() {
        let mut sums = [0.0; 40];
        assert_eq!(collapsed::totals(&data, &classes, SEED, FIRST, run, &mut sums), Ok(()));
        assert_eq!(of_floats(&sums), 0xdc40_7575_4388_0e4c);
    }
}

#[test]
fn nested() {
    let scheme = Scheme::plain(60).expect("clusters");
    let offsets: Vec<i64> = (0..=120).map(|cell| 3 * cell).collect();
    for (scale, expected) in [(1.0, 0xb4b7_82a1_fbe9_34a4), (0.5, 0x9e04_8873_b720_78b6)] {
        let values: Vec<f64> =
            (0_u32..360).map(|i| f64::from(u8::from(i * 7919 % 101 < 40)) * scale).collect();
        let cells = Cells::new(&values, &offsets, 2, &scheme).expect("finite");
        for run in both() {
            let (mut sums, mut counts) = ([0.0; 20], [0; 20]);
            assert_eq!(
                nested::totals(&cells, &scheme, SEED, FIRST, run, &mut sums, &mut counts),
                Ok(())
            );
            assert_eq!(of_floats(&sums), expected);
            assert_eq!(counts, [60; 20]);
        }
    }
}

#[test]
fn crossed() {
    let values = fractions(30 * 4 * 2);
    let pairs = Pairs::new(&values, [30, 4], 2).expect("finite");
    let schemes = [30, 4].map(|size| Scheme::plain(size).expect("clusters"));
    let mut counts = vec![0; 34 * 10];
    assert_eq!(crossed::counts(schemes.each_ref(), SEED, FIRST, &mut counts), Ok(()));
    assert_eq!(of_counts(&counts), 0x234b_637d_7ae6_1e87);
    for run in both() {
        let mut sums = [0.0; 20];
        assert_eq!(crossed::totals(&pairs, SEED, FIRST, run, &mut sums), Ok(()));
        assert_eq!(of_floats(&sums), 0xfcff_17fa_40cd_5b07);
    }
}

#[test]
fn bayesian() {
    let mut weights = vec![0.0; 1_100 * 3];
    assert_eq!(bayesian::weights(1_100, SEED, FIRST, &mut weights), Ok(()));
    assert_eq!(of_floats(&weights), 0x9a5b_8eea_07ec_0e87);
    let values = fractions(1_100);
    let data = Totals::new(&values, 1_100, 1).expect("finite");
    for run in both() {
        let mut sums = [0.0; 20];
        assert_eq!(bayesian::totals(&data, SEED, FIRST, run, &mut sums), Ok(()));
        assert_eq!(of_floats(&sums), 0xbdf2_5631_99d4_8ade);
    }
}

#[test]
fn signs_and_weights() {
    let mut signs = vec![0; 1_100 * 3];
    assert_eq!(flips::signs(1_100, SEED, FIRST, &mut signs), Ok(()));
    assert_eq!(hash(signs.iter().map(|sign| sign.to_le_bytes())), 0x745c_8b6d_a859_836f);
    let values = fractions(1_100);
    let data = Flips::new(&values, 1_100, 1).expect("finite");
    for run in both() {
        let mut sums = [0.0; 20];
        assert_eq!(flips::totals(&data, SEED, FIRST, run, &mut sums), Ok(()));
        assert_eq!(of_floats(&sums), 0x0340_5052_41bd_778c);
    }
    for (kind, expected) in [
        (wild::Kind::Rademacher, 0xd7c5_4b77_caf8_1ce5),
        (wild::Kind::Webb, 0x8bc0_d6d2_8847_cad8),
        (wild::Kind::Mammen, 0x205d_594e_7158_ec91),
    ] {
        let mut weights = vec![0.0; 1_100 * 3];
        assert_eq!(wild::weights(kind, 1_100, SEED, FIRST, &mut weights), Ok(()));
        assert_eq!(of_floats(&weights), expected);
    }
}

#[test]
fn permutations() {
    for (n_labels, expected) in [
        (2, [0x9884_cbec_2160_1185, 0x68df_8fac_b26a_eff0]),
        (3, [0x1fc4_bcfa_e180_592c, 0xb3ca_d6f2_db3c_6df9]),
        (8, [0xe1ca_0fea_144c_e835, 0x1a87_3998_8848_6172]),
    ] {
        let list = Permutations::new(n_labels).expect("labels");
        let mut codes = vec![0; 300 * 3];
        assert_eq!(permutation::codes(&list, 300, SEED, FIRST, &mut codes), Ok(()));
        let values = fractions(300 * n_labels);
        let data = Blocks::new(&values, 300, n_labels, 1).expect("finite");
        for run in both() {
            let mut sums = vec![0.0; 3 * n_labels];
            assert_eq!(permutation::blocks(&data, SEED, FIRST, run, &mut sums), Ok(()));
            let codes = hash(codes.iter().map(|code| code.to_le_bytes()));
            assert_eq!([codes, of_floats(&sums)], expected, "{n_labels} labels");
        }
    }
}
