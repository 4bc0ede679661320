"""Diagnostics: whether draws can be trusted, and in words where not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.errors import ArgumentError
from triagestats.labels import counted
from triagestats.models.mixed.convergence import bfmi, convergence
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.quantities import Quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["FEWEST_DRAWS", "Diagnostics", "diagnostics"]

_MOST_R_HAT: Final = 1.01
_LEAST_ESS: Final = 400.0
"""With four chains 100 of each, so that R-hat and the quantiles can be relied on."""
_LEAST_BFMI: Final = 0.3
FEWEST_DRAWS: Final = 8
"""Of a chain: fewer cannot be split in halves that vary."""
_DEEPEST: Final = 10
"""Depth at which the samplers stop doubling a trajectory."""


@dataclass(frozen=True, slots=True, eq=False)
class Diagnostics:
    """R-hat, effective sample sizes and the signs of trouble that a sampler leaves.

    Attributes
    ----------
    names
        The k quantities: what is reported first, then every effect as `part[level]`.
    r_hat, ess_bulk, ess_tail
        Shape (k,); NaN where a quantity is constant over all draws.
    divergences
        Draws whose trajectory diverged.
    bfmi
        Bayesian fraction of missing information of each chain; empty where the sampler tells no energy.
    deepest
        Draws whose trajectory had the greatest depth, 10: slow, but not wrong.
    failed
        What failed, in words; empty where nothing did.

    Examples
    --------
    >>> import numpy as np
    >>> from triagestats.models.mixed.diagnostics import diagnostics
    >>> found = diagnostics({"rate": np.random.default_rng(1).normal(size=(4, 1000))})
    >>> found.ok, found.failed
    (True, ())
    """

    names: tuple[str, ...]
    r_hat: Array
    ess_bulk: Array
    ess_tail: Array
    divergences: int
    bfmi: tuple[float, ...]
    deepest: int
    n_chains: int
    n_draws: int
    failed: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failed

    @property
    def worst_r_hat(self) -> float:
        """The largest R-hat; NaN where there is none."""
        return _extreme(self.r_hat, np.nanmax)

    @property
    def least_bulk(self) -> float:
        """The smallest bulk effective sample size; NaN where there is none."""
        return _extreme(self.ess_bulk, np.nanmin)

    @property
    def least_tail(self) -> float:
        """The smallest tail effective sample size; NaN where there is none."""
        return _extreme(self.ess_tail, np.nanmin)

    def frame(self) -> pl.DataFrame:
        """One row a quantity: `name`, `r_hat`, `ess_bulk`, `ess_tail`, the worst R-hat first."""
        columns = {"r_hat": self.r_hat, "ess_bulk": self.ess_bulk, "ess_tail": self.ess_tail}
        frame = pl.DataFrame({"name": list(self.names), **columns})
        return frame.with_columns(pl.col(columns).fill_nan(None)).sort(
            "r_hat", descending=True, nulls_last=True, maintain_order=True
        )

    def as_dict(self) -> dict[str, Any]:
        """The worst of each, as plain JSON values."""
        numbers = {
            "worst_r_hat": self.worst_r_hat,
            "least_ess_bulk": self.least_bulk,
            "least_ess_tail": self.least_tail,
        }
        return {
            "ok": self.ok,
            "failed": list(self.failed),
            **{name: None if np.isnan(value) else value for name, value in numbers.items()},
            "divergences": self.divergences,
            "bfmi": [None if np.isnan(value) else value for value in self.bfmi],
            "deepest_trajectories": self.deepest,
            "n_chains": self.n_chains,
            "n_draws": self.n_draws,
        }


def diagnostics(
    draws: Draws | Mapping[str, Array],
    *,
    matrix: MixedMatrix | None = None,
    quantities: Iterable[Quantity] = (),
) -> Diagnostics:
    """Judge draws: of every quantity reported, and of every effect.

    Failed is what R-hat 1.01 or more, a bulk or tail effective sample size of 400 or less, a divergence, a
    fraction of missing information of 0.3 or less in a chain, a quantity that is constant or not finite, or a
    single chain make of it.

    Parameters
    ----------
    draws
        Those of a sampler; or values by name, shape (chains, draws, ...), as the posterior of an
        `arviz.InferenceData` has them.
    matrix
        The model of the draws of a sampler, for the names of its effects.
    quantities
        What is reported.

    Raises
    ------
    ArgumentError
        If chains have fewer than 8 draws, or draws of a sampler come without their matrix.

    References
    ----------
    Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Buerkner, P.-C. (2021), Rank-Normalization,
    Folding, and Localization: An Improved R-hat for Assessing Convergence of MCMC, Bayesian Analysis
    16(2):667-718, doi:10.1214/20-BA1221.

    Betancourt, M. (2016), Diagnosing Suboptimal Cotangent Disintegrations in Hamiltonian Monte Carlo,
    arXiv:1604.00695.
    """
    blocks: list[tuple[tuple[str, ...], Array]] = []
    listed = list(quantities)
    if listed:
        names = tuple(q.name for q in listed)
        blocks.append((names, np.stack([q.values for q in listed], axis=2)))
    statistics: Mapping[str, NDArray[Any]] = {}
    if isinstance(draws, Draws):
        if matrix is None:
            raise ArgumentError("`matrix` must be given with draws of a sampler: it names the effects")
        statistics = draws.statistics
        for part, effects in zip(matrix.random, draws.effects, strict=True):
            blocks.append((_effect_names(part.name, part.levels, part.z_names), effects))
    else:
        blocks += [(_element_names(name, values), values) for name, values in draws.items()]
    n_chains, n_draws = blocks[0][1].shape[:2]
    if n_draws < FEWEST_DRAWS:
        raise ArgumentError(f"`draws` must be at least {FEWEST_DRAWS} a chain; got {n_draws}")
    every = [convergence(values) for _, values in blocks]
    names = tuple(name for block, _ in blocks for name in block)
    r_hat = np.concatenate([found.r_hat for found in every])
    bulk = np.concatenate([found.ess_bulk for found in every])
    tail = np.concatenate([found.ess_tail for found in every])
    divergences = int(np.sum(statistics.get("diverging", 0)))
    fractions = tuple(bfmi(statistics["energy"]).tolist()) if "energy" in statistics else ()
    depth = statistics.get("tree_depth")
    return Diagnostics(
        names,
        r_hat,
        bulk,
        tail,
        divergences,
        fractions,
        0 if depth is None else int((np.asarray(depth, dtype=np.int64) >= _DEEPEST).sum()),
        n_chains,
        n_draws,
        tuple(_failures(names, (r_hat, bulk, tail), divergences, fractions, n_chains, n_draws)),
    )


def _failures(
    names: tuple[str, ...],
    numbers: tuple[Array, Array, Array],
    divergences: int,
    fractions: tuple[float, ...],
    n_chains: int,
    n_draws: int,
) -> Iterable[str]:
    r_hat, bulk, tail = numbers
    if n_chains < 2:
        yield "one chain cannot be compared with another: run two or more, better four"
    still = np.flatnonzero(np.isnan(bulk))
    if len(still):
        what = counted(len(still), "quantity", "quantities")
        yield f"{what} constant or not finite, such as {names[still[0]]}"
    high = np.flatnonzero(r_hat >= _MOST_R_HAT)
    if len(high):
        worst = int(np.nanargmax(r_hat))
        yield (
            f"R-hat is {r_hat[worst]:.3f} for {names[worst]}, {_MOST_R_HAT:g} or more for {len(high):,} of "
            f"{len(names):,} quantities: the chains do not agree"
        )
    for what, sizes in (("bulk", bulk), ("tail", tail)):
        low = np.flatnonzero(sizes <= _LEAST_ESS)
        if len(low):
            worst = int(np.nanargmin(sizes))
            yield (
                f"the {what} effective sample size is {sizes[worst]:.0f} for {names[worst]}, {_LEAST_ESS:g} "
                f"or less for {len(low):,} of {len(names):,} quantities: draw more"
            )
    if divergences:
        yield (
            f"{counted(divergences, 'trajectory', 'trajectories')} of {n_chains * n_draws:,} diverged: parts "
            "of the posterior may be missed; raise `target_accept`"
        )
    poor = [value for value in fractions if not value > _LEAST_BFMI]
    if poor:
        yield (
            f"the fraction of missing information (BFMI) is {min(poor):.2f}, {_LEAST_BFMI:g} or less in "
            f"{counted(len(poor), 'chain')}: the energies are hardly explored"
        )


def _extreme(values: Array, reduce: Any) -> float:
    known = values[~np.isnan(values)]
    return float(reduce(known)) if len(known) else float("nan")


def _effect_names(part: str, levels: tuple[str, ...], effects: tuple[str, ...]) -> tuple[str, ...]:
    if len(effects) == 1:
        return tuple(f"{part}[{level}]" for level in levels)
    return tuple(f"{part}[{level}, {effect}]" for level in levels for effect in effects)


def _element_names(name: str, values: Array) -> tuple[str, ...]:
    places = np.ndindex(values.shape[2:])
    if values.ndim == 2:
        return (name,)
    return tuple(f"{name}[{', '.join(map(str, place))}]" for place in places)
