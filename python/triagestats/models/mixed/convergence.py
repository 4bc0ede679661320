"""R-hat and effective sample sizes of many quantities at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import fft, special, stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Convergence", "bfmi", "convergence"]

_AT_ONCE: Final = 1 << 19
"""Numbers that are sorted and transformed together: they stay in the cache."""
_MOST_THREADS: Final = 4
_TAILS: Final = (0.05, 0.95)


@dataclass(frozen=True, slots=True, eq=False)
class Convergence:
    """How well chains agree, and how many independent draws they are worth, for each of k quantities.

    Attributes
    ----------
    r_hat
        The larger of the rank-normalised split R-hat and that of the folded draws, shape (k,); NaN where a
        quantity is constant or not finite, or there is one chain.
    ess_bulk, ess_tail
        Effective sample size of the rank-normalised draws, and the smaller one of the 5 % and 95 % quantiles,
        shape (k,); NaN where a quantity is constant or not finite.
    """

    r_hat: Array
    ess_bulk: Array
    ess_tail: Array


def convergence(values: Array) -> Convergence:
    """R-hat, bulk and tail effective sample size.

    Parameters
    ----------
    values
        Shape (chains, draws, ...), at least 8 draws; the further axes are flattened.

    Notes
    -----
    Chains are split in halves; of an odd number of draws the middle one is left out. Autocorrelations are
    combined over chains and cut by Geyer's initial monotone sequence.

    References
    ----------
    Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Buerkner, P.-C. (2021), Rank-Normalization,
    Folding, and Localization: An Improved R-hat for Assessing Convergence of MCMC, Bayesian Analysis
    16(2):667-718, doi:10.1214/20-BA1221.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.models.mixed.convergence import convergence
    >>> found = convergence(np.random.default_rng(1).normal(size=(4, 1000, 3)))
    >>> bool((found.r_hat < 1.01).all()), bool((found.ess_bulk > 3000).all())
    (True, True)
    """
    n_chains, n_draws = values.shape[:2]
    flat = values.reshape(n_chains, n_draws, -1)
    k = flat.shape[2]
    results = np.full((3, k), np.nan)
    step = max(1, _AT_ONCE // (n_chains * n_draws))

    def fill(start: int) -> None:
        chunk = np.ascontiguousarray(flat[:, :, start : start + step].transpose(2, 0, 1), dtype=np.float64)
        usable = np.isfinite(chunk).all(axis=(1, 2)) & (np.ptp(chunk, axis=(1, 2)) > 0)
        if usable.any():
            results[:, start : start + step][:, usable] = _of_chunk(chunk[usable])

    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
        list(threads.map(fill, range(0, k, step)))
    return Convergence(*results)


def bfmi(energy: Array) -> Array:
    """Bayesian fraction of missing information of each chain, from energies of shape (chains, draws).

    The mean squared change of the energy from draw to draw over its variance; below 0.3 the sampler hardly
    moves between energies.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        changes: Array = np.square(np.diff(energy, axis=1)).mean(axis=1) / energy.var(axis=1, ddof=1)
    return changes


def _of_chunk(chunk: Array) -> Array:
    """R-hat, bulk ESS and tail ESS, shape (3, k), of finite values (k, chains, draws)."""
    half = chunk.shape[2] // 2
    split = np.concatenate([chunk[:, :, :half], chunk[:, :, -half:]], axis=1)
    z, ordered = _rank_normalised(split)
    folded, _ = _rank_normalised(np.abs(split - _median(ordered)[:, None, None]))
    r_hat = np.maximum(_r_hat(z), _r_hat(folded)) if chunk.shape[1] > 1 else np.full(len(chunk), np.nan)
    tails = [_ess((split <= _quantile(ordered, p)[:, None, None]).astype(np.float64)) for p in _TAILS]
    return np.stack([r_hat, _ess(z), np.minimum(*tails)])


def _median(ordered: Array) -> Array:
    """Median of each row of ordered values, an even number: the two in the middle are as far from it."""
    half = ordered.shape[1] // 2
    median: Array = (ordered[:, half - 1] + ordered[:, half]) / 2
    return median


def _quantile(ordered: Array, p: float) -> Array:
    """Quantile of each row of ordered values, linear between them."""
    place = p * (ordered.shape[1] - 1)
    below = int(place)
    above = min(below + 1, ordered.shape[1] - 1)
    value: Array = ordered[:, below] + (place - below) * (ordered[:, above] - ordered[:, below])
    return value


def _rank_normalised(split: Array) -> tuple[Array, Array]:
    """Normal scores of the ranks of all draws, ties by their mean rank; and the draws in order."""
    flat = split.reshape(len(split), -1)
    n = flat.shape[1]
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    tied = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    scores = np.empty_like(flat)
    np.put_along_axis(scores, order, special.ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25))[None], axis=1)
    if tied.any():
        ranks = stats.rankdata(flat[tied], axis=1)
        scores[tied] = special.ndtri((ranks - 0.375) / (n + 0.25))
    return scores.reshape(split.shape), ordered


def _r_hat(chains: Array) -> Array:
    n = chains.shape[2]
    between = n * chains.mean(axis=2).var(axis=1, ddof=1)
    within = chains.var(axis=2, ddof=1).mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: Array = np.sqrt((between / within + n - 1) / n)
    return ratio


def _ess(chains: Array) -> Array:
    """Effective sample size of chains (k, m, n) that are split already."""
    k, m, n = chains.shape
    means = chains.mean(axis=2)
    centred = chains - means[:, :, None]
    transformed = fft.rfft(centred, n=fft.next_fast_len(2 * n, real=True), axis=2)
    power = (transformed.real**2 + transformed.imag**2).mean(axis=1)
    covariance = fft.irfft(power, n=fft.next_fast_len(2 * n, real=True), axis=1)[:, :n] / n
    within = covariance[:, 0] * n / (n - 1)
    total = within * (n - 1) / n + (means.var(axis=1, ddof=1) if m > 1 else 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = 1 - (within[:, None] - covariance) / total[:, None]
    rho[:, 0] = 1.0
    last = (n - 4) // 2 + (n - 4) % 2
    pairs = rho[:, 0 : 2 * last + 2 : 2] + rho[:, 1 : 2 * last + 2 : 2]
    stopped = pairs <= 0
    stop = np.where(stopped.any(axis=1), stopped.argmax(axis=1), last)
    rows = np.arange(k)
    monotone = np.minimum.accumulate(pairs, axis=1)
    monotone[np.arange(pairs.shape[1])[None, :] >= stop[:, None]] = 0.0
    even = rho[rows, 2 * stop]
    even = np.where((even > 0) | (pairs[rows, stop] >= 0), even, 0.0)
    tau = np.maximum(-1 + 2 * monotone.sum(axis=1) + even, 1 / np.log10(m * n))
    # Where nothing varies, as where ties put all draws below a quantile, every draw counts.
    effective: Array = np.where(total > 0, m * n / tau, m * n)
    return effective
