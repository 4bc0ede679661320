"""Agreement in a response table: of each pair of judges, and of a model's labels across conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from triagestats.agreement.coefficients import pair_coefficients
from triagestats.agreement.estimation import sums_sample
from triagestats.agreement.functions import Coefficient, together
from triagestats.agreement.scale import Scale, codes_on, scale_of
from triagestats.array_bootstrap import estimates_of
from triagestats.defaults import FEWEST_CLUSTERS
from triagestats.design import Design
from triagestats.estimates import Estimates
from triagestats.results import Note, tidy_frame
from triagestats.schema import KEY_ROLES
from triagestats.table import ResponseTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Agreement", "agreement_of"]

_SHOWN: Final = ("percent_agreement", "disagreement", "kappa", "weighted_kappa")
_MOST_SCORES: Final = 20
"""Different scores up to which they are categories."""
_MOST_LEVELS: Final = 6
"""Conditions up to which all pairs are compared; beyond, each with the reference."""
_ONE_CATEGORY: Final = "only one category was used, so that chance agreement is 1 and the coefficient 0/0"


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Coefficients of agreement with their replicates, to be read at any level.

    Attributes
    ----------
    estimates
        One estimate a coefficient and comparison, all from one set of draws.
    """

    estimates: Estimates

    def read(self, conf_level: float) -> pl.DataFrame:
        """The frame `agreement` at a level."""
        return tidy_frame(
            _row(row) for row in self.estimates.with_level(conf_level).tidy().iter_rows(named=True)
        )


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the engine in the words of agreement."""
    if row["estimate"] is None:
        return row | {"conf_low": None, "conf_high": None, "status": "undefined", "reason": _ONE_CATEGORY}
    if row["n_clusters"] < FEWEST_CLUSTERS:
        why = f"{row['n_clusters']} clusters are too few for an interval ({FEWEST_CLUSTERS} are needed)"
        return row | {"conf_low": None, "conf_high": None, "status": "few_clusters", "reason": why}
    return row


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """Counts of the pairs of categories by cluster, shape (G, k * k), and what is compared."""

    identity: dict[str, Any]
    totals: Array

    @property
    def n_units(self) -> int:
        return int(self.totals.sum())

    @property
    def n_clusters(self) -> int:
        return int((self.totals.sum(axis=1) > 0).sum())


def agreement_of(
    table: ResponseTable, design: Design, *, n_resamples: int, seed: int, n_threads: int
) -> tuple[Agreement | None, tuple[Note, ...]]:
    """Percent agreement, kappa and alpha, with intervals by cluster; None where nothing can be compared.

    Judges are compared on the responses that both labelled (or scored, in a table without labels); conditions
    on the keys that have a label at both, pooled over models and by model, by each judge.
    """
    labels = _labels(table)
    if isinstance(labels, str):
        return None, (Note("no_agreement", labels),)
    name, frame = labels
    scale = scale_of([frame["_label"]], table.levels if name == "response" else None)
    frame = frame.with_columns(pl.Series("_code", codes_on(scale, frame["_label"], name)))
    frame = frame.filter(pl.col("_code") >= 0)  # clusters without a label are none here
    frame = frame.with_columns((pl.col(_cluster(frame)).rank("dense") - 1).cast(pl.Int64).alias("_cluster"))
    compared = [*_judges(frame, table, scale)]
    if name == "response":
        compared += _conditions(frame, table, design, scale)
    if not compared:
        message = "Agreement: no response has labels of two judges, and no key has labels at two conditions."
        return None, (Note("no_agreement", message),)
    shown = [*_SHOWN, _alpha(scale)]
    if scale.size == 2:
        shown.remove("weighted_kappa")  # it is kappa
    chosen = tuple(c for c in pair_coefficients(scale) if c.name in shown)
    estimates = _estimate(compared, chosen, n_resamples=n_resamples, seed=seed, n_threads=n_threads)
    notes: tuple[Note, ...] = ()
    if len(design.axes) > 1:
        message = f"Agreement is resampled by {design.axes[0].name} alone, not by both cluster columns."
        notes = (Note("agreement_clusters", message, "caution"),)
    return Agreement(estimates), notes


def _alpha(scale: Scale) -> str:
    return "alpha_ordinal" if scale.ordered else "alpha_nominal"


def _labels(table: ResponseTable) -> tuple[str, pl.DataFrame] | str:
    """The frame with responses, else scores, as `_label`; or why there is nothing to compare."""
    frame = table.frame
    if "response" in frame.columns and frame["response"].count():
        return "response", frame.with_columns(pl.col("response").alias("_label"))
    if len(table.judges) < 2:
        return "Agreement: the table has no labels, and not two judges."
    number = frame["score"].drop_nulls().n_unique()
    if number > _MOST_SCORES:
        return (
            f"Agreement: the judges gave {number:,} different scores, too many to be categories; see ts.icc "
            "for the agreement of numbers."
        )
    return "score", frame.with_columns(pl.col("score").alias("_label"))


def _cluster(frame: pl.DataFrame) -> str:
    return "cluster_1" if "cluster_1" in frame.columns else "scenario"


def _judges(frame: pl.DataFrame, table: ResponseTable, scale: Scale) -> Iterator[_Compared]:
    """Each pair of judges, over all conditions and at each."""
    if len(table.judges) < 2:
        return
    key = [role for role in KEY_ROLES if role in frame.columns and role != "judge"]
    size = _n_clusters(frame)
    wide = frame.pivot("judge", index=[*key, "_cluster"], values="_code")
    for first, second in combinations([judge for judge in table.judges if judge in wide.columns], 2):
        both = wide.filter(pl.col(first).is_not_null() & pl.col(second).is_not_null())
        identity = {"term": "judges", "contrast": f"{first}, {second}"}
        whole = _compared(identity, both, first, second, size, scale)
        parts = []
        if "condition" in both.columns and both["condition"].n_unique() > 1:
            parts = [
                _compared(identity | {"condition": level}, rows, first, second, size, scale)
                for (level,), rows in both.group_by(["condition"], maintain_order=True)
            ]
        yield from (one for one in (whole, *parts) if one.n_units)


def _conditions(
    frame: pl.DataFrame, table: ResponseTable, design: Design, scale: Scale
) -> Iterator[_Compared]:
    """Labels of the same key at two conditions, pooled and by model, as each judge read them."""
    levels = [level.label for level in design.levels]
    if len(levels) < 2 or "condition" not in frame.columns:
        return
    pairs = list(combinations(levels, 2))
    if len(levels) > _MOST_LEVELS:
        pairs = [pair for pair in pairs if pair[0] == levels[0]]
    key = [role for role in KEY_ROLES if role in frame.columns and role not in ("judge", "condition")]
    size = _n_clusters(frame)
    own = pl.col("judge").is_null() if "judge" in frame.columns else pl.lit(value=True)
    judged = set(frame.filter(~own)["condition"])
    for judge in (None, *table.judges):
        unjudged = own if judge is None else own & ~pl.col("condition").is_in(judged)
        rows = frame.filter(unjudged if judge is None else unjudged | (pl.col("judge") == judge))
        wide = rows.pivot("condition", index=[*key, "_cluster"], values="_code")
        for first, second in pairs:
            if first not in wide.columns or second not in wide.columns:
                continue
            if bool(judged & {first, second}) != (judge is not None):
                continue  # labels that no judge gave are the same for all
            both = wide.filter(pl.col(first).is_not_null() & pl.col(second).is_not_null())
            identity = {"term": "conditions", "contrast": f"{first}, {second}", "judge": judge}
            found = [_compared(identity, both, first, second, size, scale)]
            if design.has_models:
                found += [
                    _compared(identity | {"model": model}, part, first, second, size, scale)
                    for (model,), part in both.group_by(["model"], maintain_order=True)
                ]
            yield from (one for one in found if one.n_units)


def _n_clusters(frame: pl.DataFrame) -> int:
    return frame["_cluster"].n_unique()


def _compared(
    identity: dict[str, Any], rows: pl.DataFrame, first: str, second: str, n_clusters: int, scale: Scale
) -> _Compared:
    cells = scale.size**2
    cell = rows.select(pl.col("_cluster") * cells + pl.col(first) * scale.size + pl.col(second)).to_series()
    counts = np.bincount(cell.to_numpy().astype(np.int64), minlength=n_clusters * cells)
    return _Compared(identity, counts.reshape(n_clusters, cells).astype(np.float64))


def _estimate(
    compared: Sequence[_Compared],
    coefficients: Sequence[Coefficient],
    *,
    n_resamples: int,
    seed: int,
    n_threads: int,
) -> Estimates:
    """All coefficients of all comparisons from one set of drawn clusters."""
    totals = np.concatenate([one.totals for one in compared], axis=1)
    width = compared[0].totals.shape[1]
    read = together(coefficients)
    size = len(totals)

    def evaluate(means: Array) -> Array:
        sums = (means * size).reshape(*means.shape[:-1], len(compared), width)
        return read(sums).reshape(*means.shape[:-1], -1)

    found = estimates_of(
        sums_sample(totals, n_rows=0),
        evaluate,
        interval="percentile",
        conf_level=0.95,
        n_resamples=n_resamples,
        seed=seed,
        n_threads=n_threads,
    )
    each = [(one, coefficient) for one in compared for coefficient in coefficients]
    n_clusters = np.array([one.n_clusters for one, _ in each])
    return replace(
        found,
        identity=tuple(one.identity | {"estimand": coefficient.name} for one, coefficient in each),
        evidence=replace(found.evidence, n_clusters=n_clusters),
        binomial=tuple(one.n_clusters if coefficient.is_share else 0 for one, coefficient in each),
        n_rows=tuple(one.n_units for one, _ in each),
    )
