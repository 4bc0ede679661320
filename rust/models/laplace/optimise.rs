//! Minimising a smooth function with an exact gradient: BFGS from a Hessian by differences.

use super::dense::{backward, cholesky, dot, forward, real};
use crate::error::Result;

/// Steps before the search is given up.
const MAX_STEPS: usize = 200;

/// Shortest share of a step.
const SHORTEST: f64 = 1e-10;

/// Distance of gradients for the first Hessian.
const FIRST: f64 = 1e-4;

/// Distance, in standard errors, of gradients for the last Hessian.
const SECOND: f64 = 3e-3;

/// Least pivot of a Hessian that is scaled to a diagonal of ones.
const CURVED: f64 = 1e-5;

/// Share of the value that is rounding.
const ROUNDING: f64 = 1e-12;

/// A function of some parameters.
pub trait Objective {
    /// Parameters.
    fn size(&self) -> usize;

    /// The value, and all derivatives; not finite where there is none.
    fn evaluate(&mut self, parameters: &[f64], gradient: &mut [f64]) -> f64;

    /// The longest step in a parameter, from a value, that is worth trying.
    fn longest(&self, parameter: usize, value: f64) -> f64;

    /// Keeps what the last evaluation left, as a start for others nearby.
    fn keep(&mut self) {}

    /// Starts the next evaluation from what was kept; or, if `mirrored`, from as far on its other
    /// side as the last evaluation went.
    fn recall(&mut self, mirrored: bool) {
        let _ = mirrored;
    }
}

/// What may stop a search: called before each step.
pub type Tick<'a> = &'a mut dyn FnMut() -> Result<()>;

/// A point with its value and gradient.
#[derive(Debug, Clone)]
pub struct Point {
    /// All parameters.
    pub at: Vec<f64>,
    /// The value.
    pub value: f64,
    /// Derivatives in all parameters.
    pub gradient: Vec<f64>,
}

/// Searches over some of the parameters.
pub struct Search<'a> {
    /// What to minimise.
    pub objective: &'a mut dyn Objective,
    /// Numbers of the parameters to move.
    pub free: Vec<usize>,
    /// Evaluations so far.
    pub evaluations: usize,
    /// What may stop the search.
    pub tick: Tick<'a>,
}

/// Where a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// At a minimum.
    Converged,
    /// Where no step along a direction of descent lowers the value.
    Stuck,
    /// After too many steps.
    Tired,
}

impl Search<'_> {
    /// The value at a point.
    pub fn evaluate(&mut self, at: Vec<f64>) -> Point {
        let mut gradient = vec![0.0; at.len()];
        let value = self.objective.evaluate(&at, &mut gradient);
        self.evaluations += 1;
        Point { at, value, gradient }
    }

    /// The derivatives in the parameters that move.
    fn slope(&self, point: &Point) -> Vec<f64> {
        self.free.iter().map(|&parameter| point.gradient[parameter]).collect()
    }

    /// A point moved along a direction.
    fn moved(&mut self, point: &Point, direction: &[f64], length: f64) -> Point {
        let mut at = point.at.clone();
        for (&parameter, &step) in self.free.iter().zip(direction) {
            at[parameter] += length * step;
        }
        self.evaluate(at)
    }

    /// The Hessian by differences of gradients over these distances, at the point that was evaluated
    /// last.
    ///
    /// # Errors
    /// Those of `tick`.
    pub fn hessian(&mut self, point: &Point, step: &[f64], central: bool) -> Result<Vec<f64>> {
        let size = self.free.len();
        let mut out = vec![0.0; size * size];
        let middle = self.slope(point);
        self.objective.keep();
        for j in 0..size {
            (self.tick)()?;
            let mut direction = vec![0.0; size];
            direction[j] = step[j];
            self.objective.recall(false);
            let up = self.moved(point, &direction, 1.0);
            let up = self.slope(&up);
            let (down, distance) = if central {
                self.objective.recall(true);
                let down = self.moved(point, &direction, -1.0);
                (self.slope(&down), 2.0 * step[j])
            } else {
                (middle.clone(), step[j])
            };
            for i in 0..size {
                let slope = (up[i] - down[i]) / distance;
                out[i * size + j] += 0.5 * slope;
                out[j * size + i] += 0.5 * slope;
            }
        }
        self.objective.recall(false);
        Ok(out)
    }

    /// Moves from a point to a minimum, until half the squared Newton step, in which the value could
    /// still fall, is below `tolerance`. Returns the end and the last approximate Hessian.
    ///
    /// # Errors
    /// Those of `tick`.
    pub fn minimise(&mut self, point: &mut Point, tolerance: f64) -> Result<(Ended, Vec<f64>)> {
        let size = self.free.len();
        let mut hessian = self.hessian(point, &vec![FIRST; size], false)?;
        let mut renewed = true;
        for _ in 0..MAX_STEPS {
            (self.tick)()?;
            let gradient = self.slope(point);
            let factor = positive(&mut hessian, size);
            let mut step: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
            forward(&factor, size, &mut step);
            let fall = 0.5 * dot(&step, &step);
            if fall <= tolerance {
                return Ok((Ended::Converged, hessian));
            }
            backward(&factor, size, &mut step);
            let longest = self.share_of_longest(point, &step);
            if longest > 1.0 {
                for step in &mut step {
                    *step /= longest;
                }
            }
            let descent = dot(&gradient, &step);
            let Some((next, length)) = self.descend(point, &step, descent) else {
                if renewed {
                    return Ok((Ended::Stuck, hessian));
                }
                hessian = self.hessian(point, &vec![FIRST; size], false)?;
                renewed = true;
                continue;
            };
            for step in &mut step {
                *step *= length;
            }
            let change: Vec<f64> = (self.slope(&next).iter().zip(&gradient))
                .map(|(after, before)| after - before)
                .collect();
            update(&mut hessian, size, &step, &change);
            renewed = false;
            *point = next;
        }
        Ok((Ended::Tired, hessian))
    }

    /// How many times as long as allowed a step is, in the parameter where it is most.
    fn share_of_longest(&self, point: &Point, step: &[f64]) -> f64 {
        let shares = self.free.iter().zip(step);
        shares
            .map(|(&parameter, step)| {
                step.abs() / self.objective.longest(parameter, point.at[parameter])
            })
            .fold(0.0, f64::max)
    }

    /// A lower point along a direction of descent, and how far it is.
    fn descend(&mut self, point: &Point, step: &[f64], descent: f64) -> Option<(Point, f64)> {
        let slack = ROUNDING * (1.0 + point.value.abs());
        let mut length = 1.0;
        while length > SHORTEST {
            let next = self.moved(point, step, length);
            if next.value <= point.value + 1e-4 * length * descent + slack {
                return Some(self.lengthen(next, length, point, step, descent));
            }
            let curved = next.value - point.value - length * descent;
            let best = -0.5 * length * length * descent / curved;
            let shorter = if best.is_finite() {
                best.clamp(0.1 * length, 0.5 * length)
            } else {
                0.2 * length
            };
            length = shorter;
        }
        None
    }

    /// A still lower point further on, where the slope there is nearly as steep as at the start.
    fn lengthen(
        &mut self,
        mut found: Point,
        mut length: f64,
        point: &Point,
        step: &[f64],
        descent: f64,
    ) -> (Point, f64) {
        let longest = self.share_of_longest(point, step);
        while dot(&self.slope(&found), step) < 0.9 * descent && 2.0 * length * longest <= 1.0 {
            let next = self.moved(point, step, 2.0 * length);
            // Written so that a value that is not a number ends the search.
            if next.value < found.value {
                length *= 2.0;
                found = next;
            } else {
                break;
            }
        }
        (found, length)
    }

    /// One Newton step with the Hessian by central differences, at a minimum: the point, the
    /// Hessian, and the largest derivative in units of the square root of the Hessian. No Hessian
    /// where it is not positive definite.
    ///
    /// # Errors
    /// Those of `tick`.
    pub fn polish(
        &mut self,
        point: Point,
        approximate: &mut [f64],
    ) -> Result<(Point, Option<Vec<f64>>, f64)> {
        let size = self.free.len();
        let factor = positive(approximate, size);
        let errors: Vec<f64> = (0..size)
            .map(|j| {
                let mut unit = vec![0.0; size];
                unit[j] = 1.0;
                forward(&factor, size, &mut unit);
                SECOND * dot(&unit, &unit).sqrt().clamp(1e-3, 1e1)
            })
            .collect();
        let hessian = self.hessian(&point, &errors, true)?;
        let mut factor = hessian.clone();
        if !curved(&hessian, size) || !cholesky(&mut factor, size) {
            let largest = self
                .slope(&point)
                .iter()
                .fold(0.0, |largest, &slope| f64::max(largest, slope.abs()));
            // Leaves the objective at the point.
            let point = self.evaluate(point.at);
            return Ok((point, None, largest));
        }
        let scaled = |slope: Vec<f64>| {
            let mut slope = slope;
            forward(&factor, size, &mut slope);
            let largest = slope.iter().fold(0.0, |largest, &slope| f64::max(largest, slope.abs()));
            (largest, slope)
        };
        let (before, mut step) = scaled(self.slope(&point));
        backward(&factor, size, &mut step);
        let next = self.moved(&point, &step, -1.0);
        let (after, _) = scaled(self.slope(&next));
        let slack = ROUNDING * (1.0 + point.value.abs());
        if after <= before && next.value <= point.value + slack {
            return Ok((next, Some(hessian), after));
        }
        let point = self.evaluate(point.at);
        Ok((point, Some(hessian), before))
    }
}

/// Whether a Hessian by differences is positive definite, by more than the error of the differences.
fn curved(hessian: &[f64], size: usize) -> bool {
    let roots: Vec<f64> = (0..size).map(|i| hessian[i * size + i].sqrt()).collect();
    let mut scaled: Vec<f64> = (0..size * size)
        .map(|place| hessian[place] / (roots[place / size] * roots[place % size]))
        .collect();
    cholesky(&mut scaled, size)
        && (0..size).all(|i| scaled[i * size + i] * scaled[i * size + i] > CURVED)
}

/// Makes a matrix positive definite, by adding to its diagonal what it takes, and factorises it.
fn positive(matrix: &mut [f64], size: usize) -> Vec<f64> {
    let scale = (0..size).map(|i| matrix[i * size + i].abs()).fold(0.0, f64::max);
    let mut added = 0.0;
    loop {
        let mut factor = matrix.to_vec();
        let sound = matrix.iter().all(|value| value.is_finite());
        if sound && cholesky(&mut factor, size) {
            // A pivot of rounding alone makes a step of any length.
            let least = (0..size).map(|i| factor[i * size + i]).fold(f64::INFINITY, f64::min);
            if least * least > 1e-12 * scale {
                return factor;
            }
        }
        if !sound || added > 1e3 * scale || scale == 0.0 {
            matrix.fill(0.0);
            for i in 0..size {
                matrix[i * size + i] = real(size).max(1.0);
            }
            let mut factor = matrix.to_vec();
            let _ = cholesky(&mut factor, size);
            return factor;
        }
        let more = f64::max(2.0 * added, 1e-4 * scale);
        for i in 0..size {
            matrix[i * size + i] += more;
        }
        added += more;
    }
}

/// The BFGS update, damped so that the matrix stays positive definite (Powell).
fn update(hessian: &mut [f64], size: usize, step: &[f64], change: &[f64]) {
    let along: Vec<f64> = hessian.chunks(size).map(|row| dot(row, step)).collect();
    let expected = dot(step, &along);
    let found = dot(step, change);
    if expected.is_nan() || expected <= 0.0 || !found.is_finite() {
        return;
    }
    let share = if found >= 0.2 * expected { 1.0 } else { 0.8 * expected / (expected - found) };
    let change: Vec<f64> =
        change.iter().zip(&along).map(|(y, b)| share * y + (1.0 - share) * b).collect();
    let found = dot(step, &change);
    for i in 0..size {
        for j in 0..size {
            hessian[i * size + j] += change[i] * change[j] / found - along[i] * along[j] / expected;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Valley;

    impl Objective for Valley {
        fn size(&self) -> usize {
            2
        }

        fn longest(&self, _: usize, _: f64) -> f64 {
            2.0
        }

        fn evaluate(&mut self, at: &[f64], gradient: &mut [f64]) -> f64 {
            let (a, b) = (1.0 - at[0], at[1] - at[0] * at[0]);
            gradient[0] = -2.0 * a - 400.0 * at[0] * b;
            gradient[1] = 200.0 * b;
            a * a + 100.0 * b * b
        }
    }

    fn search<'a>(objective: &'a mut Valley, free: Vec<usize>, tick: Tick<'a>) -> Search<'a> {
        Search { objective, free, evaluations: 0, tick }
    }

    #[test]
    fn the_end_of_a_curved_valley_is_found() {
        let (mut valley, mut tick) = (Valley, || Ok(()));
        let mut search = search(&mut valley, vec![0, 1], &mut tick);
        let mut point = search.evaluate(vec![-1.2, 1.0]);
        let (ended, mut hessian) = search.minimise(&mut point, 1e-14).expect("no interrupt");
        assert_eq!(ended, Ended::Converged);
        let (point, hessian, gradient) = search.polish(point, &mut hessian).expect("no interrupt");
        assert!((point.at[0] - 1.0).abs() < 1e-9 && (point.at[1] - 1.0).abs() < 1e-9);
        assert!(gradient < 1e-8);
        for (found, known) in hessian.expect("positive").iter().zip([802.0, -400.0, -400.0, 200.0])
        {
            assert!((found - known).abs() < 1e-3 * known.abs());
        }
    }

    #[test]
    fn parameters_that_are_held_stay() {
        let (mut valley, mut tick) = (Valley, || Ok(()));
        let mut search = search(&mut valley, vec![1], &mut tick);
        let mut point = search.evaluate(vec![3.0, 1.0]);
        search.minimise(&mut point, 1e-14).expect("no interrupt");
        assert!((point.at[0] - 3.0).abs() < 1e-15 && (point.at[1] - 9.0).abs() < 1e-9);
    }
}
