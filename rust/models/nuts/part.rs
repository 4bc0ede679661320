//! The effects of a part of the model, in the coordinates they are sampled in.

use super::cells::check_codes;
use crate::error::{Error, Result, check_finite, check_values};

/// A reflection that moves some of the entries of a vector.
#[derive(Debug, Clone)]
struct Reflection {
    at: Vec<u32>,
    /// A unit vector.
    normal: Vec<f64>,
}

impl Reflection {
    fn apply(&self, vector: &mut [f64]) {
        let mut along = 0.0;
        for (&at, normal) in self.at.iter().zip(&self.normal) {
            along += normal * vector[at as usize];
        }
        for (&at, normal) in self.at.iter().zip(&self.normal) {
            vector[at as usize] -= 2.0 * along * normal;
        }
    }
}

/// Effects `u = H_1 H_2 ... H_r e`, where `H` are reflections and the entries of `e` are 0 except
/// those at `free`.
///
/// Coordinate `j` of those has the variance `v`, the sum of `shares[t] s[t]^2` over the parts. Let
/// `h` be the information about it and `k` the pull of the data at 0, from a quadratic
/// approximation of the log-likelihood. Then `v k / (1 + h v)` and `v / (1 + h v)` approximate its
/// mean and variance given `v`, and `z = (e - mean) / sd` is sampled.
#[derive(Debug, Clone)]
pub struct Part {
    n_levels: usize,
    free: Vec<u32>,
    reflections: Vec<Reflection>,
    information: Vec<f64>,
    pull: Vec<f64>,
    shares: Vec<f64>,
    /// The only part with a share, which is 1.
    only: Option<usize>,
    /// e / sigma, its derivative by sigma, and sqrt(1 + h v), of the last position.
    scaled: Vec<f64>,
    turned: Vec<f64>,
    roots: Vec<f64>,
    sigma: f64,
}

/// What a [`Part`] is made of; reflection `i` has the entries `bounds[i]` to `bounds[i + 1]` of `at`
/// and `normals`.
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    /// Levels.
    pub n_levels: usize,
    /// Entries that are not 0 before the reflections.
    pub free: &'a [u32],
    /// Bounds of the reflections.
    pub bounds: &'a [u32],
    /// Entries that they move.
    pub at: &'a [u32],
    /// Their normals, unit vectors.
    pub normals: &'a [f64],
    /// Information about each free coordinate.
    pub information: &'a [f64],
    /// Pull of the data on it.
    pub pull: &'a [f64],
    /// Shares of the variances of all parts.
    pub shares: &'a [f64],
}

impl Part {
    /// Reads the layout of a part.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::CodeTooLarge`], [`Error::NotFinite`] or [`Error::Offsets`].
    pub fn new(layout: Layout) -> Result<Self> {
        let Layout { n_levels, free, bounds, at, normals, information, pull, shares } = layout;
        check_codes(free, n_levels)?;
        check_codes(at, n_levels)?;
        check_values("normals", normals, &[at.len()])?;
        check_values("information", information, &[free.len()])?;
        check_values("pull", pull, &[free.len()])?;
        check_finite("shares", shares, &[shares.len()])?;
        let ends = (bounds.first(), bounds.last());
        let whole = matches!(ends, (Some(0), Some(&end)) if end as usize == at.len());
        if !whole || !bounds.is_sorted() {
            return Err(Error::Offsets { n_values: at.len() });
        }
        let reflections = bounds
            .windows(2)
            .map(|ends| {
                let range = ends[0] as usize..ends[1] as usize;
                Reflection { at: at[range.clone()].to_vec(), normal: normals[range].to_vec() }
            })
            .collect();
        let mut with_share = shares.iter().enumerate().filter(|&(_, &share)| share != 0.0);
        let only = match (with_share.next(), with_share.next()) {
            (Some((part, &1.0)), None) => Some(part),
            _ => None,
        };
        let m = free.len();
        Ok(Self {
            n_levels,
            free: free.to_vec(),
            reflections,
            information: information.to_vec(),
            pull: pull.to_vec(),
            shares: shares.to_vec(),
            only,
            scaled: vec![0.0; m],
            turned: vec![0.0; m],
            roots: vec![0.0; m],
            sigma: 0.0,
        })
    }

    /// Coordinates that are sampled.
    #[must_use]
    pub fn n_free(&self) -> usize {
        self.free.len()
    }

    /// Levels.
    #[must_use]
    pub fn n_levels(&self) -> usize {
        self.n_levels
    }

    pub(super) fn n_shares(&self) -> usize {
        self.shares.len()
    }

    /// The standard deviation of the coordinates; it has the sign of `s` where it is that alone.
    fn sigma(&self, s: &[f64]) -> f64 {
        self.only.map_or_else(
            || {
                let mut variance = f64::MIN_POSITIVE;
                for (share, s) in self.shares.iter().zip(s) {
                    variance += share * s * s;
                }
                variance.sqrt()
            },
            |part| s[part],
        )
    }

    /// Puts the effects at `z` into `out`; returns their log-density with that of the change of
    /// coordinates.
    pub(super) fn place(&mut self, s: &[f64], z: &[f64], out: &mut [f64]) -> f64 {
        let sigma = self.sigma(s);
        let variance = sigma * sigma;
        let (mut squares, mut product, mut logs) = (0.0, 1.0, 0.0);
        out.fill(0.0);
        for j in 0..self.free.len() {
            let spread = 1.0 + self.information[j] * variance;
            let root = spread.sqrt();
            let towards = self.pull[j] / spread;
            let rest = z[j] / root;
            let scaled = sigma * towards + rest;
            // d(scaled) / d(sigma)
            self.turned[j] = towards
                - (2.0 * variance * towards + sigma * rest) * (self.information[j] / spread);
            self.scaled[j] = scaled;
            self.roots[j] = root;
            squares += scaled * scaled;
            product *= spread;
            // One logarithm for many factors.
            if product > 1e100 {
                logs += product.ln();
                product = 1.0;
            }
            out[self.free[j] as usize] = sigma * scaled;
        }
        for reflection in self.reflections.iter().rev() {
            reflection.apply(out);
        }
        self.sigma = sigma;
        -0.5 * (squares + logs + product.ln())
    }

    /// From the derivatives of the log-likelihood by the effects, which are used up: those of the
    /// log-density by `z`, and what they add to the derivatives by `s`.
    pub(super) fn pull_back(
        &self,
        s: &[f64],
        effects: &mut [f64],
        z: &mut [f64],
        by_s: &mut [f64],
    ) {
        for reflection in &self.reflections {
            reflection.apply(effects);
        }
        let sigma = self.sigma;
        let mut by_sigma = 0.0;
        for j in 0..self.free.len() {
            let slope = effects[self.free[j] as usize];
            let net = slope * sigma - self.scaled[j];
            let root = self.roots[j];
            z[j] = net / root;
            by_sigma += slope * self.scaled[j] + net * self.turned[j]
                - self.information[j] * sigma / (root * root);
        }
        if let Some(part) = self.only {
            by_s[part] += by_sigma;
        } else {
            for ((by_s, share), s) in by_s.iter_mut().zip(&self.shares).zip(s) {
                *by_s += by_sigma * share * s / sigma;
            }
        }
    }
}
