//! The No-U-Turn sampler for logistic mixed models with random intercepts.
//!
//! The posterior is that of `y ~ binomial(n, 1 / (1 + exp(-eta)))` with
//! `eta = x'b + u_1[g_1] + ... + u_T[g_T]`, effects `u_t` that are independent normal with standard
//! deviation `s_t`, normal priors of the coefficients and half-normal priors of the `s_t`. It is
//! sampled in coordinates in which it is close to a standard normal distribution, whatever the
//! amount of data:
//!
//! - Directions of `u_t` that the fixed columns span (the mean, above all) are told apart from the
//!   coefficients by the prior alone. Only their sum is a coordinate; it is split afterwards, by an
//!   exact draw ([`part`] and [`posterior`]).
//! - What is left of `u_t` is shifted and scaled by its approximate mean and standard deviation
//!   given `s_t`, which a fit beforehand supplies. As `s_t` goes to 0 these become 0 and `s_t`, and
//!   nothing is singular on the way, so `s_t` may have either sign; its absolute value counts
//!   (between centred and not: Papaspiliopoulos, Roberts and Sköld 2007, "A general framework for
//!   the parametrization of hierarchical models", Statistical Science 22(1):59-73, doi
//!   10.1214/088342307000000014).
//! - The effects of one part, of many levels with few rows each, can be integrated out by adaptive
//!   Gauss-Hermite quadrature ([`nodes`]) and are drawn afterwards.
//!
//! The trajectories, and the adaptation of their steps, are those of the crate `nuts-rs`.

mod cells;
pub mod chains;
mod crossed;
mod lanes;
mod nodes;
pub mod part;
pub mod posterior;

pub use cells::Cells;
pub use crossed::Crossed;
pub use nodes::Nodes;
