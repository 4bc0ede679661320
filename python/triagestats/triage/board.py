"""Board: the result of triage_board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from triagestats import intervals
from triagestats.defaults import FEWEST_CLUSTERS
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.rank_sets import competition_ranks
from triagestats.results import Note, Shown, as_json, tidy_frame
from triagestats.standings import Leaderboard
from triagestats.triage.board_cases import Cases
from triagestats.triage.board_rates import Measures
from triagestats.triage.policies import Policy, Tolerances
from triagestats.triage.severity import valid_threshold
from triagestats.triage.text import aligned, number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Board"]

Box = Literal["inside", "outside", "undecided"]
Source = Literal["rows", "counts", "policy"]


@dataclass(frozen=True, slots=True, eq=False)
class Board(Shown):
    """Models by missed and needless escalations, with one joint draw of cases behind every number.

    Attributes
    ----------
    tolerances
        U and O.
    leaderboard
        The ranking by score: rank sets, chances of being best, pairwise verdicts, flags.
    measures
        Rates, score and kappa of the models with rows, then of those known by counts.
    policies
        Rules that need no model.
    cases
        The cases that the models are compared on; None where there are counts alone.

    Examples
    --------
    >>> import triagestats as ts
    >>> counts = {"model": ["a", "b"], "missed": [11, 5], "over": [25, 34]}
    >>> counts |= {"n_urgent": 188, "n_nonurgent": 62}
    >>> board = ts.triage_board(counts=counts, U=0.05, O=0.35, n_resamples=999)
    >>> board.standings.select("model", "score", "could_rank").head(2).rows()
    [('a', 42.583345905164, 1), ('b', 42.21315791979619, 2)]
    """

    tolerances: Tolerances
    leaderboard: Leaderboard
    measures: tuple[Measures, ...]
    policies: tuple[Policy, ...]
    cases: Cases | None

    @property
    def conf_level(self) -> float:
        """Level of all intervals."""
        return self.leaderboard.conf_level

    @property
    def notes(self) -> tuple[Note, ...]:
        """Choices made and doubts."""
        return self.leaderboard.notes

    def with_level(self, conf_level: float) -> Board:
        """The same replicates at another level.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, leaderboard=self.leaderboard.with_level(conf_level))

    @property
    def standings(self) -> pl.DataFrame:
        """One row a model, the best first, then what is not ranked.

        `missed` and `over` count urgent cases that were not escalated and other cases that were; `under_rate`
        and `over_rate` are their shares of `n_urgent` and `n_nonurgent`. `box_*` are the limits that hold for
        both rates at once. The other columns are as in `Leaderboard.standings`, for the score.
        """
        rates = self._rates()
        rows = []
        for row in self.leaderboard.standings.iter_rows(named=True):
            renamed = {_RENAMED.get(name, name): value for name, value in row.items()}
            rows.append(renamed | rates[_source(row["kind"]), row["model"]])
        return pl.DataFrame(rows, schema=_SCHEMA).with_columns(pl.col(_LIMITS).fill_nan(None))

    def sensitivity(
        self,
        *,
        U: Sequence[float] | None = None,
        O: Sequence[float] | None = None,  # noqa: E741  # the letters of the score
        thresholds: Sequence[float] | None = None,
    ) -> pl.DataFrame:
        """Scores and ranks of the ranked models under other tolerances and labels, as one row for each.

        Parameters
        ----------
        U, O
            Tolerated rates; half, once and twice those of the board, at most 1, where not given.
        thresholds
            Thresholds of P(severe); that of the board where not given.

        Returns
        -------
        polars.DataFrame
            `U`, `O`, `threshold`, `model`, `under_rate`, `over_rate`, `score`, `rank`; a rate is null where
            the threshold leaves no case to divide by, and then score and rank too.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            If a tolerance is not positive or above 1, the board has counts alone, or its labels no
            probabilities.
        """
        if self.cases is None:
            raise ArgumentError("`sensitivity` needs a board of cases; this one has counts alone")
        if thresholds is not None and self.cases.threshold is None:
            raise ArgumentError(
                "`thresholds` need the P(severe) of each case: make the board with `urgent=` its column and "
                "`threshold=`"
            )
        labels = [self.cases.threshold] if thresholds is None else _numbers(thresholds, "thresholds")
        n_ranked = len(self.leaderboard.models)
        parts = []
        for threshold in labels:
            sums = self.cases.totals(None if threshold is None else valid_threshold(threshold, "thresholds"))
            urgent, others, missed, needless = sums.sum(axis=0)[:, :n_ranked]
            with np.errstate(divide="ignore", invalid="ignore"):
                under, over = missed / urgent, needless / others
            for u in _numbers(U, "U", self.tolerances.under):
                for o in _numbers(O, "O", self.tolerances.over):
                    parts.append(_graded(self.leaderboard.models, Tolerances(u, o), threshold, under, over))
        return pl.concat(parts)

    def tidy(self) -> pl.DataFrame:
        """Rates, distance, score, kappa and box of each row, then ranks, flags and differences."""
        rows: list[dict[str, Any]] = []
        for _, measures, names in self._parts():
            rates, kappa = (part.read(self.conf_level) for part in (measures.rates, measures.kappa))
            scores = measures.score.read(self.conf_level)
            for e, name in enumerate(names):
                under, over = rates[e], rates[measures.size + e]
                rows.append({"estimand": "under_rate", "model": name, **under})
                rows.append({"estimand": "over_rate", "model": name, **over})
                rows.append({"estimand": "squared_distance", "model": name, **_as_distance(scores[e])})
                rows.append({"estimand": "kappa", "model": name, **kappa[e]})
                box = self._box(measures)[e]
                rows.append(
                    {
                        "estimand": "box",
                        "model": name,
                        "verdict": box["box"],
                        "conf_level": self.conf_level,
                        "method": "Korn-Graubard plus two of both rates, Bonferroni",
                    }
                )
        for policy in self.policies:
            known = {"model": policy.name, "term": "policy", "method": "a policy: known, not estimated"}
            rows.append({"estimand": "under_rate", "estimate": policy.under, **known})
            rows.append({"estimand": "over_rate", "estimate": policy.over, **known})
        return pl.concat([tidy_frame(rows), self.leaderboard.tidy()])

    def glance(self) -> pl.DataFrame:
        """One row: tolerances, cases, and how they were drawn."""
        known = {"U": [self.tolerances.under], "O": [self.tolerances.over]}
        label = {
            "threshold": [None if self.cases is None else self.cases.threshold],
            "n_urgent": [None if self.cases is None else int(self.cases.urgent().sum())],
        }
        types = {"threshold": pl.Float64, "n_urgent": pl.Int64}
        return pl.concat(
            [pl.DataFrame(known | label, schema_overrides=types), self.leaderboard.glance()], how="horizontal"
        )

    def to_dict(self) -> dict[str, Any]:
        """Standings, estimates, settings and notes as plain JSON values."""
        return as_json(self, standings=self.standings, estimates=self.tidy())

    def __repr__(self) -> str:
        u, o = self.tolerances.under, self.tolerances.over
        size = self.leaderboard.n_scenarios
        what = (
            "counts alone" if self.cases is None else f"{size:,} cases, {self.cases.urgent().sum():,} urgent"
        )
        lines = [f"Triage board, U = {u:g}, O = {o:g}, {what}"]
        shown = self.standings.with_columns(
            _range("set_low", "set_high").alias("rank set"),
            _range("rank_low", "rank_high").alias("ranks drawn"),
            _range("box_under_low", "box_under_high").alias("under in box"),
            _range("box_over_low", "box_over_high").alias("over in box"),
        ).rename({"p_best": "P(best)", "could_rank": "could rank"})
        lines += aligned(shown, _SHOWN)
        if shown["box_under_low"].count():
            lines.append(f"Limits in box hold for both rates at once at {self.conf_level * 100:g} %.")
        lines += self.leaderboard.flag_lines()
        return "\n".join(lines + [f"note: {note.message}" for note in self.notes])

    def _parts(self) -> list[tuple[Source, Measures, tuple[str, ...]]]:
        """Measures with where they come from, and the names of their rows."""
        board = self.leaderboard
        sources: list[tuple[Source, tuple[str, ...]]] = [
            ("counts", tuple(extra.model for extra in board.extras if extra.kind == "counts"))
        ]
        if self.cases is not None:
            sources.insert(0, ("rows", (*board.models, *board.unranked)))
        return [(source, part, names) for part, (source, names) in zip(self.measures, sources, strict=False)]

    def _rates(self) -> dict[tuple[Source, str], dict[str, Any]]:
        """Rates, kappa and box by where they come from, and name."""
        found: dict[tuple[Source, str], dict[str, Any]] = {}
        for source, measures, names in self._parts():
            rates, kappa = measures.rates.read(self.conf_level), measures.kappa.read(self.conf_level)
            box = self._box(measures)
            for e, name in enumerate(names):
                under, over = rates[e], rates[measures.size + e]
                urgent, others, missed, needless = (float(value) for value in measures.sums[:, e])
                found[source, name] = {
                    "n_urgent": urgent,
                    "n_nonurgent": others,
                    "missed": missed,
                    "over": needless,
                    "under_rate": under["estimate"],
                    "under_low": under.get("conf_low"),
                    "under_high": under.get("conf_high"),
                    "over_rate": over["estimate"],
                    "over_low": over.get("conf_low"),
                    "over_high": over.get("conf_high"),
                    "kappa": kappa[e]["estimate"],
                    "kappa_low": kappa[e].get("conf_low"),
                    "kappa_high": kappa[e].get("conf_high"),
                    "distance": self._distance(under["estimate"], over["estimate"]),
                    **box[e],
                }
        for policy in self.policies:
            found["policy", policy.name] = {
                "under_rate": policy.under,
                "over_rate": policy.over,
                "distance": self._distance(policy.under, policy.over),
            }
        return found

    def _distance(self, under: float, over: float) -> float:
        return self.tolerances.distance(under, over)

    def _box(self, measures: Measures) -> list[dict[str, Any]]:
        """Simultaneous limits of both rates, and whether they lie in the box of tolerated rates."""
        rates = measures.rates
        level = 1 - (1 - self.conf_level) / 2
        ends = intervals.korn_graubard_plus_two(
            rates.estimate,
            rates.std_error**2,
            rates.n_clusters.astype(np.float64),
            rates.n_rows.astype(np.float64),
            level,
        )
        enough = (rates.n_clusters >= FEWEST_CLUSTERS) & np.isfinite(ends.low)
        low, high = np.where(enough, ends.low, np.nan), np.where(enough, ends.high, np.nan)
        rows = []
        for e in range(measures.size):
            pair = [e, measures.size + e]
            most = (self.tolerances.under, self.tolerances.over)
            box: Box = "undecided"
            if (high[pair] < most).all():
                box = "inside"
            elif (low[pair] > most).any():
                box = "outside"
            names = ("box_under_low", "box_over_low", "box_under_high", "box_over_high")
            rows.append(
                {"box": box} | dict(zip(names, [*low[pair].tolist(), *high[pair].tolist()], strict=True))
            )
        return rows


def _source(kind: str) -> Source:
    """Where the rates of a row of the standings come from."""
    if kind == "counts":
        return "counts"
    return "policy" if kind == "policy" else "rows"


def _graded(
    models: tuple[str, ...], tolerances: Tolerances, threshold: float | None, under: Array, over: Array
) -> pl.DataFrame:
    """Scores and ranks at one choice of tolerances and threshold; ranks are those of the distances."""
    score, squares = tolerances.score(under, over), tolerances.squared_distance(under, over)
    able = np.isfinite(score)
    ranks = competition_ranks(-np.sqrt(squares)[None])[0]
    frame = pl.DataFrame(
        {"model": models, "under_rate": under, "over_rate": over, "score": score, "rank": ranks}
    ).with_columns(
        pl.lit(tolerances.under).alias("U"),
        pl.lit(tolerances.over).alias("O"),
        pl.lit(threshold, dtype=pl.Float64).alias("threshold"),
        pl.col("under_rate", "over_rate", "score").fill_nan(None),
        pl.when(pl.Series(able)).then("rank").alias("rank"),
    )
    return frame.select("U", "O", "threshold", "model", "under_rate", "over_rate", "score", "rank")


def _numbers(values: object, argument: str, around: float | None = None) -> list[float]:
    """A list of numbers; half, once and twice a rate, at most 1, where none is given."""
    if values is None and around is not None:
        return list(dict.fromkeys((around / 2, around, min(1.0, around * 2))))
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        raise ArgumentTypeError(f"`{argument}` must be a list of numbers; got {values!r}")
    return list(values)


def _as_distance(score: dict[str, Any]) -> dict[str, Any]:
    """The row of d^2 from that of the score, of which it is a decreasing function."""
    ends = {
        name: None if score.get(other) is None else 2.0 * (100.0 / score[other] - 1.0)
        for name, other in (("estimate", "estimate"), ("conf_low", "conf_high"), ("conf_high", "conf_low"))
    }
    return score | ends | {"std_error": None}


def _range(low: str, high: str) -> pl.Expr:
    """A range as text, null where it has no end."""
    ends = [pl.col(name).map_elements(number, return_dtype=pl.String) for name in (low, high)]
    return pl.format("{} to {}", *ends)


_SHOWN: Final = (
    "model",
    "under_rate",
    "under in box",
    "over_rate",
    "over in box",
    "box",
    "score",
    "score_low",
    "score_high",
    "rank",
    "rank set",
    "ranks drawn",
    "P(best)",
    "could rank",
)
_RENAMED: Final = {"estimate": "score", "conf_low": "score_low", "conf_high": "score_high"}
_RATES: Final = ("under_rate", "under_low", "under_high", "over_rate", "over_low", "over_high")
_LIMITS: Final = ("box_under_low", "box_under_high", "box_over_low", "box_over_high")
_RANKS: Final = ("rank", "set_low", "set_high", "rank_low", "rank_high")
_SCHEMA: Final = pl.Schema(
    {"model": pl.String, "kind": pl.String}
    | dict.fromkeys(("missed", "n_urgent", "over", "n_nonurgent"), pl.Float64)
    | dict.fromkeys(_RATES, pl.Float64)
    | dict.fromkeys(("distance", "score", "score_low", "score_high"), pl.Float64)
    | dict.fromkeys(_RANKS, pl.Int64)
    | {"p_best": pl.Float64, "could_rank": pl.Int64, "box": pl.String}
    | dict.fromkeys(_LIMITS, pl.Float64)
    | dict.fromkeys(("kappa", "kappa_low", "kappa_high"), pl.Float64)
    | {"n_rows": pl.Int64, "n_clusters": pl.Int64, "status": pl.String, "reason": pl.String}
)
