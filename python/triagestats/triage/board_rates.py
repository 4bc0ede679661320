"""Rates, score and kappa of a triage board as functions of sums, and rows that are known by counts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from triagestats.counts import whole_counts
from triagestats.defaults import FEW_CLUSTERS
from triagestats.errors import DataError
from triagestats.flags import column_named
from triagestats.ingest import to_polars
from triagestats.joint import Joint, joint_estimates
from triagestats.labels import as_text
from triagestats.marginals import Marginals, Scarce, shares_of
from triagestats.resample import bootstrap
from triagestats.schema import Interval
from triagestats.schemes import Collapsed
from triagestats.triage.policies import Tolerances, score_of
from triagestats.vectors import numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Measures", "counted", "measures_of", "scarce_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """Under rate, over rate, score and kappa of E rows.

    Attributes
    ----------
    rates
        Under rates, then over rates: 2 E estimates.
    score, kappa
        E estimates each.
    distance
        d, by which rows are ranked: unlike the score it is scaled as a whole where U and O are. Shape (E,).
    sums
        Urgent cases, other ones, missed ones, needless escalations, shape (4, E).
    """

    rates: Marginals
    score: Marginals
    kappa: Marginals
    distance: Array
    sums: Array

    @property
    def size(self) -> int:
        """E."""
        return int(self.sums.shape[1])

    @property
    def under(self) -> Array:
        """Shares of urgent cases that are not escalated, shape (E,)."""
        return self.rates.estimate[: self.size]

    @property
    def over(self) -> Array:
        """Shares of the other cases that are escalated, shape (E,)."""
        return self.rates.estimate[self.size :]

    def ordered(self, order: NDArray[np.int64]) -> Measures:
        """The rows in an order."""
        both = np.concatenate([order, self.size + order])
        return Measures(
            self.rates.ordered(both),
            self.score.ordered(order),
            self.kappa.ordered(order),
            self.distance[order],
            self.sums[:, order],
        )


def measures_of(
    totals: Array,
    tolerances: Tolerances,
    *,
    binary: bool,
    interval: Interval,
    **asked: int,
) -> tuple[Measures, Joint]:
    """Measures of M models from sums by cluster, shape (G, 4, M), and their joint evidence.

    The estimates of the joint evidence are M under rates, M over rates, M scores, M kappas and M distances.
    """
    n_clusters, _, n_models = totals.shape
    together = bool((totals[:, :2] == totals[:, :2, :1]).all())  # all models answered the same cases
    width = 1 if together else n_models
    columns = [totals[:, 0, :width], totals[:, 1, :width], totals[:, 2], totals[:, 3]]

    def evaluate(sums: Array, _: int) -> Array:
        urgent, others = sums[..., :width], sums[..., width : 2 * width]
        missed, needless = sums[..., 2 * width : -n_models], sums[..., -n_models:]
        return np.concatenate(_measures((urgent, others, missed, needless), tolerances), axis=-1)

    joint = joint_estimates(evaluate, np.concatenate(columns, axis=1), **asked)
    successes = np.concatenate([totals[:, 2], totals[:, 3]], axis=1)
    sizes = np.concatenate([totals[:, 0], totals[:, 1]], axis=1)
    rates = replace(
        shares_of(successes, sizes, binary=binary),
        replicates=np.ascontiguousarray(joint.replicates[:, : 2 * n_models]),
        interval=interval,
    )
    scarce = scarce_of((totals[:, :2] > 0).sum(axis=0))
    n_cases = totals[:, :2].sum(axis=(0, 1)).astype(np.int64)
    score, kappa = (
        Marginals(
            estimate=joint.estimate[part],
            std_error=joint.std_error[part],
            n_clusters=np.full(n_models, n_clusters),
            n_rows=n_cases,
            is_rate=(False,) * n_models,
            successes=np.full(n_models, -1),
            replicates=np.ascontiguousarray(joint.replicates[:, part]),
            interval="percentile",
            scarce=scarce,
        )
        for part in (slice(2 * n_models, 3 * n_models), slice(3 * n_models, 4 * n_models))
    )
    return Measures(rates, score, kappa, joint.estimate[4 * n_models :], totals.sum(axis=0)), joint


def scarce_of(numbers: NDArray[np.int64]) -> tuple[Scarce | None, ...]:
    """The scarcer of urgent and other cases where few clusters hold it, from numbers (2, E)."""
    found = []
    for urgent, others in numbers.T.tolist():
        fewer = Scarce(urgent, "urgent cases") if urgent <= others else Scarce(others, "other cases")
        found.append(fewer if fewer.n_clusters < FEW_CLUSTERS else None)
    return tuple(found)


def _measures(sums: Sequence[Array] | Array, tolerances: Tolerances) -> tuple[Array, ...]:
    """Under rate, over rate, score, Cohen's kappa of escalation with the label, and distance.

    `sums` are those of urgent cases, other ones, missed ones, and needless escalations.
    """
    urgent, others, missed, needless = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        under, over = missed / urgent, needless / others
        whole = urgent + others
        escalated = (urgent - missed + needless) / whole
        agreed = (urgent - missed + others - needless) / whole
        base = urgent / whole
        chance = base * escalated + (1.0 - base) * (1.0 - escalated)
        kappa = (agreed - chance) / (1.0 - chance)
        squares = tolerances.squared_distance(under, over)
    return under, over, score_of(squares), kappa, np.sqrt(squares)


def counted(
    counts: object,
    tolerances: Tolerances,
    *,
    interval: Interval,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> tuple[tuple[str, ...], Measures]:
    """Models known by counts alone: names, and measures from draws of independent cases.

    `counts` has the columns `model`, `missed`, `over`, `n_urgent`, `n_nonurgent`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError
        If a column is absent or counts do not go together.
    """
    frame = to_polars(counts, "counts").frame
    names = as_text(column_named(frame, "model", "counts"), "counts")
    if names.null_count():
        raise DataError("`counts` has a row without a model")
    if names.is_duplicated().any():
        raise DataError(
            f"`counts` has several rows of {names.filter(names.is_duplicated())[0]!r}; give one a model"
        )
    missed, needless, urgent, others = (
        whole_counts(numbers_of(column_named(frame, name, "counts"), "counts", dimensions=(1,)), "counts")
        for name in ("missed", "over", "n_urgent", "n_nonurgent")
    )
    for part, whole, what in (
        (missed, urgent, ("missed", "n_urgent")),
        (needless, others, ("over", "n_nonurgent")),
    ):
        if (wrong := np.flatnonzero((whole == 0) | (part > whole))).size:
            first = int(wrong[0])
            got = f"{what[0]} = {part[first]:,} of {what[1]} = {whole[first]:,}"
            raise DataError(
                f"`counts` has {got} for {names[first]!r}; expected at most {what[1]}, and that at least 1"
            )
    sums = np.stack([urgent, others, missed, needless]).astype(np.float64)
    estimate = np.stack(_measures(sums, tolerances))
    drawn = np.stack(
        [
            _drawn(column, tolerances, n_resamples=n_resamples, seed=seed, n_threads=n_threads)
            for column in sums.T
        ],
        axis=2,
    )
    size = len(names)

    def marginals(part: slice, number: Array, successes: Array, how: Interval, *, rate: bool) -> Marginals:
        found: dict[str, Any] = {"interval": how, "successes": successes.reshape(-1).astype(np.int64)}
        draws = np.ascontiguousarray(drawn[:, part].reshape(n_resamples, -1))
        values = estimate[part].reshape(-1)
        error = np.sqrt(values * (1 - values) / (number - 1)) if rate else draws.std(axis=0)
        return Marginals(
            estimate=values,
            std_error=error,
            n_clusters=number.astype(np.int64),
            n_rows=number.astype(np.int64),
            is_rate=(rate,) * len(values),
            replicates=draws,
            scarce=() if rate else scarce,
            **found,
        )

    cases = (urgent + others).astype(np.float64)
    unknown = np.full(size, -1)
    scarce = scarce_of(np.stack([urgent, others]).astype(np.int64))
    both = np.concatenate([urgent, others]).astype(np.float64)
    return tuple(names.to_list()), Measures(
        rates=marginals(slice(0, 2), both, np.concatenate([missed, needless]), interval, rate=True),
        score=marginals(slice(2, 3), cases, unknown, "percentile", rate=False),
        kappa=marginals(slice(3, 4), cases, unknown, "percentile", rate=False),
        distance=estimate[4],
        sums=sums,
    )


def _drawn(sums: Array, tolerances: Tolerances, *, n_resamples: int, seed: int, n_threads: int) -> Array:
    """Measures of drawn tables of independent cases with these sums, shape (R, 5)."""
    urgent, others, missed, needless = sums
    kinds = np.array([[1, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 0]], dtype=np.float64)
    number = np.array([missed, urgent - missed, needless, others - needless]).astype(np.uint64)
    there = number > 0
    return bootstrap(
        lambda sums: np.stack(_measures(np.moveaxis(sums, -1, 0), tolerances), axis=-1),
        Collapsed(np.ascontiguousarray(kinds[there]), number[there]),
        n_resamples=n_resamples,
        seed=seed,
        n_threads=n_threads,
    )
