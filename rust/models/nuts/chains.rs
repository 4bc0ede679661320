//! Chains of the sampler, each in a thread of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nuts_rs::rand::{SeedableRng, rngs::ChaCha8Rng};
use nuts_rs::{Chain as _, CpuMath, DiagNutsSettings, Settings as _};

use super::posterior::Posterior;
use crate::cpu::Cpu;
use crate::error::{Error, Result, check_some, check_values};
use crate::stream::Stream;

/// Steps of a chain between two looks at whether it is another's turn.
const STEPS_PER_TURN: usize = 5;
/// Steps vary in length by so much to either side. In coordinates that are close to normal, all
/// trajectories would otherwise turn by about the same angle, and the distance from the mean would
/// be slow to change.
const JITTER: f64 = 0.3;
/// Time between two looks at the progress.
const PATIENCE: Duration = Duration::from_millis(50);

/// What is asked of the sampler.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Steps that adapt the sampler, and are thrown away.
    pub n_tune: usize,
    /// Steps that are kept.
    pub n_draws: usize,
    /// The seed; a chain draws from streams of its own.
    pub seed: u64,
    /// Acceptance rate that the length of a step is adapted to.
    pub target_accept: f64,
    /// Doublings of a trajectory at most.
    pub max_depth: u64,
    /// The effects of the parts are kept of every so many draws.
    pub every: usize,
    /// Integrated effects are drawn for every so many draws.
    pub every_integrated: usize,
    /// Chains that run at a time.
    pub n_threads: usize,
}

/// What was drawn of a chain, step by step.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The coordinates of a position that are no effects.
    pub heads: Vec<f64>,
    /// The coordinates that are, of every so many draws.
    pub tails: Vec<f64>,
    /// Integrated effects, of every so many draws.
    pub effects: Vec<f64>,
    /// Whether the trajectory met an energy too far from the first.
    pub diverging: Vec<bool>,
    /// Of the Hamiltonian.
    pub energy: Vec<f64>,
    /// Log-density.
    pub log_density: Vec<f64>,
    /// Doublings.
    pub depth: Vec<i64>,
    /// Gradients.
    pub n_steps: Vec<i64>,
    /// Mean acceptance rate of the trajectory.
    pub acceptance_rate: Vec<f64>,
    /// Length of a step.
    pub step_size: Vec<f64>,
}

impl Trace {
    /// Draws in it.
    #[must_use]
    pub fn n_draws(&self) -> usize {
        self.diverging.len()
    }
}

/// Who may run.
struct Turns {
    free: usize,
    /// Steps that each chain has done, and whether it waits for its turn.
    done: Vec<usize>,
    waiting: Vec<bool>,
    running: usize,
    stopped: bool,
}

struct Gate {
    turns: Mutex<Turns>,
    changed: Condvar,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a thread is free and no other chain that waits is further behind; false when all
    /// has to stop.
    fn enter(&self, chain: usize) -> bool {
        let mut turns = self.lock();
        turns.waiting[chain] = true;
        loop {
            if turns.stopped {
                turns.waiting[chain] = false;
                return false;
            }
            let mine = (turns.done[chain], chain);
            let first = (0..turns.done.len())
                .filter(|&other| turns.waiting[other])
                .all(|other| mine <= (turns.done[other], other));
            if turns.free > 0 && first {
                turns.free -= 1;
                turns.waiting[chain] = false;
                self.changed.notify_all();
                return true;
            }
            turns = self.changed.wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn leave(&self, chain: usize, n_steps: usize) {
        let mut turns = self.lock();
        turns.free += 1;
        turns.done[chain] += n_steps;
        self.changed.notify_all();
    }

    fn finish(&self) {
        self.lock().running -= 1;
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }
}

/// Runs a chain from each of `starts`; `watch` is told the number of steps done by all, and stops
/// them by false. Chains that were stopped have fewer draws.
///
/// # Errors
/// [`Error::Empty`], [`Error::Shape`], [`Error::NotFinite`], or [`Error::Sampler`] when a chain
/// cannot start or go on.
pub fn run(
    posterior: &Posterior,
    starts: &[f64],
    plan: Plan,
    mut watch: impl FnMut(usize) -> bool,
) -> Result<Vec<Trace>> {
    let size = posterior.n_coordinates();
    let n_chains = starts.len() / size;
    check_some("the number of chains", n_chains)?;
    check_some("`n_threads`", plan.n_threads)?;
    check_some("`every`", plan.every)?;
    check_some("`every_integrated`", plan.every_integrated)?;
    check_values("starts", starts, &[n_chains, size])?;
    let turns = Turns {
        free: plan.n_threads,
        done: vec![0; n_chains],
        // Also those whose thread has not started yet.
        waiting: vec![true; n_chains],
        running: n_chains,
        stopped: false,
    };
    let gate = &Gate { turns: Mutex::new(turns), changed: Condvar::new() };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (chain, start) in starts.chunks_exact(size).enumerate() {
            let work = move || {
                let result =
                    catch_unwind(AssertUnwindSafe(|| sample(posterior, start, plan, chain, gate)));
                if !matches!(result, Ok(Ok(_))) {
                    gate.stop();
                }
                gate.finish();
                result.unwrap_or_else(|_| {
                    Err(Error::Sampler { chain, reason: "an unexpected failure".to_owned() })
                })
            };
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    gate.stop();
                    return Err(Error::Sampler { chain, reason: error.to_string() });
                }
            }
        }
        let mut turns = gate.lock();
        while turns.running > 0 {
            turns = gate
                .changed
                .wait_timeout_while(turns, PATIENCE, |turns| turns.running > 0)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            let done = turns.done.iter().sum();
            drop(turns);
            if !watch(done) {
                gate.stop();
            }
            turns = gate.lock();
        }
        drop(turns);
        let mut traces = Vec::new();
        for (chain, thread) in threads.into_iter().enumerate() {
            let failed = |_| Err(Error::Sampler { chain, reason: "its thread failed".to_owned() });
            traces.push(thread.join().unwrap_or_else(failed)?);
        }
        Ok(traces)
    })
}

/// The generator of a chain's trajectories.
fn generator(seed: u64, chain: usize) -> ChaCha8Rng {
    let mut words = [0; 4];
    Stream::new(Cpu::plain(), seed, 2 * chain as u64).words(&mut words);
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(bytes)
}

fn sample(
    posterior: &Posterior,
    start: &[f64],
    plan: Plan,
    chain: usize,
    gate: &Gate,
) -> Result<Trace> {
    let failed =
        |error: &dyn std::fmt::Display| Error::Sampler { chain, reason: error.to_string() };
    let mut settings = DiagNutsSettings {
        num_tune: plan.n_tune as u64,
        num_draws: plan.n_draws as u64,
        maxdepth: plan.max_depth,
        ..DiagNutsSettings::default()
    };
    settings.adapt_options.step_size_settings.target_accept = plan.target_accept;
    settings.adapt_options.step_size_settings.jitter = Some(JITTER);
    let mut rng = generator(plan.seed, chain);
    let math = CpuMath::new(posterior.clone());
    let mut sampler =
        settings.new_chain(chain as u64, math, &mut rng).map_err(|error| failed(&error))?;
    let mut posterior = posterior.clone();
    let mut stream = Stream::new(Cpu::detect(), plan.seed, 2 * chain as u64 + 1);
    let n_integrated = posterior.n_integrated();
    let mut trace = Trace::default();
    let n_steps = plan.n_tune + plan.n_draws;
    for first in (0..n_steps).step_by(STEPS_PER_TURN) {
        if !gate.enter(chain) {
            break;
        }
        let last = n_steps.min(first + STEPS_PER_TURN);
        let turn = || -> std::result::Result<(), Error> {
            if first == 0 {
                sampler.set_position(start).map_err(|error| failed(&error))?;
            }
            for step in first..last {
                let (position, _, stats, progress) =
                    sampler.expanded_draw().map_err(|error| failed(&error))?;
                let Some(draw) = step.checked_sub(plan.n_tune) else { continue };
                if n_integrated > 0 && draw.is_multiple_of(plan.every_integrated) {
                    let start = trace.effects.len();
                    trace.effects.resize(start + n_integrated, 0.0);
                    posterior.draw_integrated(&position, &mut stream, &mut trace.effects[start..]);
                }
                let (head, tail) = position.split_at(posterior.n_head());
                trace.heads.extend_from_slice(head);
                if draw.is_multiple_of(plan.every) {
                    trace.tails.extend_from_slice(tail);
                }
                trace.diverging.push(progress.diverging);
                trace.energy.push(stats.point.energy);
                trace.log_density.push(stats.point.logp);
                trace.depth.push(stats.depth.cast_signed());
                trace.n_steps.push(progress.num_steps.cast_signed());
                trace.acceptance_rate.push(stats.adapt.step_size.mean_tree_accept);
                trace.step_size.push(progress.step_size);
            }
            Ok(())
        };
        let mut turn = turn;
        let result = turn();
        gate.leave(chain, last - first);
        result?;
    }
    Ok(trace)
}
