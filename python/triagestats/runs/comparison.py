"""RunComparison: the result of `compare`, and how it is read from its parts at a level."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import polars as pl

from triagestats.arguments import valid_level
from triagestats.inference import Family
from triagestats.readings import Comparison, Reading
from triagestats.results import Note, Shown, as_json, tidy_frame
from triagestats.runs.alignment import Alignment
from triagestats.runs.gate import Decision, Gate, gate_of
from triagestats.runs.together import LeftOut
from triagestats.runs.unvarying import METHOD, unvarying_interval
from triagestats.schema import Interval, Match, Weights
from triagestats.verdicts import verdict

__all__ = ["Parts", "Run", "RunComparison", "RunSettings", "assemble"]


@dataclass(frozen=True, slots=True)
class Run:
    """One of the runs: what it is called, its files as they were named, and its models that take part."""

    name: str
    source: str | None
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a comparison was asked, and what it resampled."""

    metric: str | None
    higher_is_better: bool
    margin: float | None
    match: Match
    weights: Weights
    interval: Interval
    cluster: str
    conf_level: float
    n_resamples: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What a comparison is read from, at any level.

    Attributes
    ----------
    settings
        What was asked; its level is that of the first reading.
    rates
        Means of both runs over the keys that pair.
    comparison
        The difference, beside rows and cells as independent.
    weights
        Of each estimate of the difference, the weight of the heaviest cluster over the mean; None where an
        interval without spread cannot be had.
    alignment, missing
        What pairs; shares of missing answers and the bounds of the difference, None without any.
    notes
        Notes that do not depend on the level.
    """

    settings: RunSettings
    runs: tuple[Run, Run]
    rates: Family
    comparison: Comparison
    weights: tuple[float, ...] | None
    alignment: Alignment
    missing: pl.DataFrame | None
    left_out: tuple[LeftOut, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RunComparison(Shown):
    """Result of `compare`: the difference of two runs, candidate minus baseline.

    Attributes
    ----------
    a, b
        Baseline and candidate: `name`, `source`, `models`.
    contrasts
        The difference, by cluster; the first row is of everything, others are of single models and strata.
    rates
        Mean scores of both runs over what pairs, so that they differ by what `contrasts` has.
    missing
        Of the answers that a run asked, the share that each run lacks, by status; and, for rates, the
        difference if all that is missing made it as low, and as high, as it can be. None where nothing is.
    alignment
        Keys by what each run has of them: `a` and `b` are `scored`, the status of an answer without a score,
        or `absent`; `n` is their number.
    sensitivity, tests
        The difference under other intervals and tests, and under rows taken as independent.
    left_out
        Tasks, models, conditions and variants of one run alone, with their rows.
    settings
        What was asked, and what was resampled.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> old = {"item": [f"i{i}" for i in range(40)], "score": [i % 3 > 0 for i in range(40)]}
    >>> new = {"item": [f"i{i}" for i in range(40)], "score": [i % 8 > 0 for i in range(40)]}
    >>> found = ts.compare(old, new, margin=0.05)
    >>> isinstance(found, ts.RunComparison), found.verdict, found.gate, found.exit_code
    (True, 'better', 'not worse', 0)
    """

    a: Run
    b: Run
    contrasts: pl.DataFrame
    rates: pl.DataFrame
    missing: pl.DataFrame | None
    alignment: pl.DataFrame
    sensitivity: pl.DataFrame
    tests: pl.DataFrame
    left_out: tuple[LeftOut, ...]
    settings: RunSettings
    notes: tuple[Note, ...]
    _parts: Parts

    @property
    def difference(self) -> Mapping[str, Any]:
        """The row of `contrasts` that is about everything."""
        return self.contrasts.row(0, named=True)

    @property
    def decision(self) -> Gate:
        """The decision of the gate with its margin and its reason."""
        settings = self.settings
        return gate_of(self.difference, margin=settings.margin, higher_is_better=settings.higher_is_better)

    @property
    def gate(self) -> Decision:
        """What the gate decides: `not worse` (by the margin), `worse`, `undecided`, or `unusable`."""
        return self.decision.decision

    @property
    def exit_code(self) -> int:
        """The code with which `triagestats compare --gate` ends: 0, 1, 3 or 2, in the order of `gate`."""
        return self.decision.exit_code

    @property
    def verdict(self) -> str:
        """What the interval says against 0 and the margin, as in `analyze`."""
        return str(self.difference["verdict"])

    @property
    def design_effect(self) -> float | None:
        """Variance of the difference by cluster over that of independent rows; None where undefined."""
        return self._parts.comparison.design_effect(0)

    def tidy(self) -> pl.DataFrame:
        """Difference, rates, and what is missing, one row an estimate."""
        frames = (self.contrasts, self.rates, self.missing)
        return pl.concat([frame for frame in frames if frame is not None])

    def glance(self) -> pl.DataFrame:
        """One row: the difference, what it rests on, the verdict and the gate."""
        row, settings, keys = self.difference, self.settings, self._parts.alignment
        both = self.rates.filter(pl.col("model").is_null() & pl.col("stratum").is_null())["estimate"]
        return pl.DataFrame(
            {
                "metric": settings.metric,
                "rate_a": both[0],
                "rate_b": both[1],
                **{name: row[name] for name in ("estimate", "std_error", "conf_low", "conf_high")},
                "conf_level": settings.conf_level,
                "p_value": row["p_value"],
                "design_effect": self.design_effect,
                "verdict": row["verdict"],
                "margin": settings.margin,
                "gate": self.gate,
                "higher_is_better": settings.higher_is_better,
                "match": settings.match,
                "weights": settings.weights,
                "interval": settings.interval,
                "cluster": settings.cluster,
                "n_scenarios": keys.n_scenarios,
                "n_clusters": row["n_clusters"],
                "n_pairs": keys.n(True, True),
                "n_only_a": keys.n_only_a,
                "n_only_b": keys.n_only_b,
                "n_scored_only_a": keys.n(True, False),
                "n_scored_only_b": keys.n(False, True),
                "n_scored_in_neither": keys.n(False, False),
                "n_resamples": settings.n_resamples,
                "seed": settings.seed,
                "n_notes": len(self.notes),
            },
            schema_overrides=_GLANCED,
        )

    def with_level(self, conf_level: float) -> RunComparison:
        """The same replicates read at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return assemble(self._parts, valid_level(conf_level))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values; the page on comparing runs says what each key holds."""
        decision = self.decision
        return as_json(
            self,
            a=asdict(self.a) | {"models": list(self.a.models)},
            b=asdict(self.b) | {"models": list(self.b.models)},
            gate={
                "decision": decision.decision,
                "exit_code": decision.exit_code,
                "margin": self.settings.margin,
                "reason": decision.reason,
            },
            **{
                name: getattr(self, name)
                for name in ("contrasts", "rates", "missing", "alignment", "sensitivity", "tests")
            },
            left_out=[asdict(one) for one in self.left_out],
        )

    def to_json(self) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1)

    def __repr__(self) -> str:
        from triagestats.runs.printed import comparison_text

        return comparison_text(self)


_GLANCED: Final[dict[str, Any]] = {
    "metric": pl.String,
    "seed": pl.UInt64,
    **dict.fromkeys(("std_error", "conf_low", "conf_high", "p_value", "design_effect", "margin"), pl.Float64),
}


def assemble(parts: Parts, conf_level: float) -> RunComparison:
    """A comparison read at a level, from replicates that are there already."""
    reading = Reading.at(parts.comparison, conf_level)
    settings = RunSettings(**asdict(parts.settings) | {"conf_level": conf_level})
    contrasts = tidy_frame(_with_unvarying(parts, reading.contrasts, conf_level))
    level_notes = list(reading.notes())
    row = contrasts.row(0, named=True)
    decided = gate_of(row, margin=settings.margin, higher_is_better=settings.higher_is_better)
    if row["verdict"] == "equivalent" and decided.decision != "not worse":
        level_notes.append(
            Note(
                "gate",
                f"The verdict equivalent reads the {100 * (2 * conf_level - 1):g} % interval, as two "
                "one-sided tests do; the gate reads the interval that is shown.",
            )
        )
    return RunComparison(
        a=parts.runs[0],
        b=parts.runs[1],
        contrasts=contrasts,
        rates=parts.rates.read(conf_level),
        missing=parts.missing,
        alignment=parts.alignment.by_status(),
        sensitivity=reading.sensitivity(),
        tests=reading.tests(),
        left_out=parts.left_out,
        settings=settings,
        notes=(*parts.notes, *level_notes),
        _parts=parts,
    )


def _with_unvarying(parts: Parts, contrasts: pl.DataFrame, conf_level: float) -> list[dict[str, Any]]:
    """Rows of the difference; where all clusters agree, with the interval that their number gives."""
    rows = list(contrasts.iter_rows(named=True))
    slots = [row.slot for row in parts.comparison.family.rows]
    for row, slot in zip(rows, slots, strict=True):
        if row["status"] != "degenerate" or parts.weights is None or slot is None:
            continue
        given = {"weight": parts.weights[slot]}
        low, high = unvarying_interval(row["estimate"], row["n_clusters"], conf_level, **given)
        inner = None
        if conf_level > 0.5:
            inner = unvarying_interval(row["estimate"], row["n_clusters"], 2 * conf_level - 1, **given)
        row |= {
            "conf_low": low,
            "conf_high": high,
            "status": "warning",
            "reason": "all clusters agree: the interval is that of the share of clusters that could differ",
            "method": METHOD + row["method"].removeprefix("none"),
            "verdict": verdict(
                low,
                high,
                margin=parts.settings.margin,
                inner=inner,
                higher_is_better=parts.settings.higher_is_better,
            ),
        }
    return rows
