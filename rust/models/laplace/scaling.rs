//! Regressors and multipliers on a common scale, and back.

use super::dense::real;
use super::pattern::Part;
use crate::error::{Error, Result};

/// Share of a column's length that is left when it depends on those before it.
const DEPENDENT: f64 = 1e-9;

/// Regressors with mean squares of 1 that are orthogonal over the rows.
#[derive(Debug, Clone)]
pub struct Regressors {
    /// (cells, coefficients), row by row.
    pub x: Vec<f64>,
    /// Coefficients.
    pub size: usize,
    /// Means that were taken out, where they were.
    pub means: Vec<f64>,
    /// Upper triangle `R` with `x = orthogonal R`, row by row.
    triangle: Vec<f64>,
}

impl Regressors {
    /// Orthogonalises the columns of `x` over the rows of the cells, after taking out their means
    /// where `centred`.
    ///
    /// # Errors
    /// [`Error::Dependent`] for a column that depends on those before it.
    pub fn new(x: &[f64], size: usize, rows: &[f64], centred: bool) -> Result<Self> {
        let total: f64 = rows.iter().sum();
        let mut columns: Vec<Vec<f64>> =
            (0..size).map(|k| x.iter().skip(k).step_by(size).copied().collect()).collect();
        let inner = |a: &[f64], b: &[f64]| -> f64 {
            a.iter().zip(b).zip(rows).map(|((a, b), m)| a * b * m).sum::<f64>() / total
        };
        let ones = vec![1.0; rows.len()];
        let mut means = vec![0.0; size];
        let mut triangle = vec![0.0; size * size];
        for k in 0..size {
            let whole = inner(&columns[k], &columns[k]).sqrt();
            let (before, rest) = columns.split_at_mut(k);
            let column = &mut rest[0];
            // Twice, so that what rounding left of the first pass goes.
            for _ in 0..2 {
                if centred {
                    let mean = inner(column, &ones);
                    means[k] += mean;
                    for value in column.iter_mut() {
                        *value -= mean;
                    }
                }
                for (j, other) in before.iter().enumerate() {
                    let share = inner(column, other);
                    triangle[j * size + k] += share;
                    for (value, other) in column.iter_mut().zip(other) {
                        *value -= share * other;
                    }
                }
            }
            let length = inner(column, column).sqrt();
            if length.is_nan() || length <= DEPENDENT * whole {
                return Err(Error::Dependent { column: k });
            }
            triangle[k * size + k] = length;
            for value in column.iter_mut() {
                *value /= length;
            }
        }
        let mut out = vec![0.0; x.len()];
        for (k, column) in columns.iter().enumerate() {
            for (out, &value) in out.iter_mut().skip(k).step_by(size).zip(column) {
                *out = value;
            }
        }
        Ok(Self { x: out, size, means, triangle })
    }

    /// `R^-1`, row by row: what the coefficients of the orthogonal regressors are multiplied by.
    #[must_use]
    pub fn back(&self) -> Vec<f64> {
        let size = self.size;
        let mut out = vec![0.0; size * size];
        for column in 0..size {
            for row in (0..=column).rev() {
                let known: f64 = (row + 1..=column)
                    .map(|k| self.triangle[row * size + k] * out[k * size + column])
                    .sum();
                let unit = f64::from(u8::from(row == column));
                out[row * size + column] = (unit - known) / self.triangle[row * size + row];
            }
        }
        out
    }

    /// The log determinant of `R'R`.
    #[must_use]
    pub fn log_determinant(&self) -> f64 {
        (0..self.size).map(|k| 2.0 * libm::log(self.triangle[k * self.size + k])).sum()
    }
}

/// Divides the multipliers of each effect by the root of their mean square, which is returned.
///
/// # Errors
/// [`Error::Dependent`] for multipliers that are all 0.
pub fn level_multipliers(part: &mut Part) -> Result<Vec<f64>> {
    if part.z.is_empty() {
        return Ok(vec![1.0]);
    }
    let n_cells = real(part.codes.len());
    let mut scales = vec![0.0; part.width];
    for row in part.z.chunks(part.width) {
        for (scale, z) in scales.iter_mut().zip(row) {
            *scale += z * z;
        }
    }
    for (column, scale) in scales.iter_mut().enumerate() {
        *scale = (*scale / n_cells).sqrt();
        if *scale == 0.0 {
            return Err(Error::Dependent { column });
        }
    }
    for row in part.z.chunks_mut(part.width) {
        for (z, scale) in row.iter_mut().zip(&scales) {
            *z /= scale;
        }
    }
    Ok(scales)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_orthogonal_and_come_back() {
        let x = [1.0, 5.0, 2.0, 1.0, 7.0, 2.5, 1.0, 9.0, -1.0, 1.0, 4.0, 0.5];
        let rows = [2.0, 1.0, 1.0, 3.0];
        let found = Regressors::new(&x, 3, &rows, false).expect("independent");
        for j in 0..3 {
            for k in 0..3 {
                let inner: f64 =
                    (0..4).map(|i| rows[i] * found.x[3 * i + j] * found.x[3 * i + k] / 7.0).sum();
                assert!((inner - f64::from(u8::from(j == k))).abs() < 1e-14);
            }
        }
        let back = found.back();
        let known: f64 = (0..3).map(|k| found.x[3 + k] * [1.0, 2.0, 3.0][k]).sum();
        let mapped: Vec<f64> =
            (0..3).map(|j| (0..3).map(|k| back[3 * j + k] * [1.0, 2.0, 3.0][k]).sum()).collect();
        let ours: f64 = (0..3).map(|k| x[3 + k] * mapped[k]).sum();
        assert!((known - ours).abs() < 1e-13);
        let twice = [1.0, 2.0, 3.0, 6.0, 5.0, 10.0];
        let error = Regressors::new(&twice, 2, &[1.0; 3], false).expect_err("dependent");
        assert_eq!(error, Error::Dependent { column: 1 });
    }
}
