"""Leaderboard: models in order, with intervals, rank sets, chances of being best and pairwise verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from triagestats.arguments import valid_level
from triagestats.beside import Extra, Shares
from triagestats.marginals import Marginals
from triagestats.rank_rows import difference_rows, doubt_of, rank_rows
from triagestats.rank_sets import Contest, Ranking, competition_ranks
from triagestats.results import Note, Shown, as_json, tidy_frame
from triagestats.triage.text import aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["Leaderboard"]

Kind = Literal["ranked", "unranked", "counts", "policy"]


@dataclass(frozen=True, slots=True, eq=False)
class Leaderboard(Shown):
    """Models in order of a metric, all read from one joint set of replicates.

    Attributes
    ----------
    metric
        What the models are ranked by.
    models
        The ranked models, the best first.
    unranked
        Models with rows that are shown and not ranked.
    marginals
        Estimates of the ranked models, then of the unranked ones.
    contest
        Estimates and joint replicates of the ranked models; None where there are none.
    extras
        Policies, and models known by counts alone.
    flags
        Shares beside the ranking.
    n_scenarios
        Scenarios on which the models are compared.
    conf_level, n_resamples, seed
        As asked.
    notes
        Choices made and doubts.
    strength
        What ranks are read from where the estimates do not say it, the larger the better: of the ranked
        models, then of the unranked ones.
    ranking
        Ranks, rank sets, chances of being best and differences, as arrays in the order of `models`.

    Notes
    -----
    `standings` is the board as one wide row a model. `rank` is the competition rank of the estimate: models
    that tie share the better one. `set_low` and `set_high` end the rank set: at `conf_level` the sets hold
    the true ranks of all models at once, as all pairwise differences do in their intervals. `rank_low` and
    `rank_high` are quantiles of the ranks of the replicates: they show how the rank of one model moves from
    sample to sample, and can cover too little where models are nearly tied. `could_rank` of a row that is
    not ranked is the rank that its estimate would have.

    Examples
    --------
    >>> import triagestats as ts
    >>> scores = {"a": [1] * 40, "b": [0, 1] * 20, "c": [1, 0, 0, 0] * 10}
    >>> rows = [(case, m, s) for m, all_scores in scores.items() for case, s in enumerate(all_scores)]
    >>> board = ts.leaderboard(dict(zip(("case", "model", "score"), zip(*rows))))
    >>> board.standings.select("model", "estimate", "rank", "set_low", "set_high").row(0)
    ('a', 1.0, 1, 1, 1)
    >>> board.tied
    (('a',), ('b', 'c'))
    """

    metric: str
    models: tuple[str, ...]
    unranked: tuple[str, ...]
    marginals: Marginals
    contest: Contest | None
    extras: tuple[Extra, ...]
    flags: Shares | None
    n_scenarios: int
    higher_is_better: bool
    conf_level: float
    n_resamples: int
    seed: int
    notes: tuple[Note, ...] = ()
    strength: Array | None = None
    ranking: Ranking | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ranking = None if self.contest is None else self.contest.rank(self.conf_level)
        object.__setattr__(self, "ranking", ranking)

    def with_level(self, conf_level: float) -> Leaderboard:
        """The same replicates at another level.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    @property
    def tied(self) -> tuple[tuple[str, ...], ...]:
        """Largest sets of models none of which is better than another beyond doubt, best first."""
        if self.ranking is None:
            return ()
        return tuple(tuple(self.models[code] for code in members) for members in self.ranking.tied)

    @property
    def rank_shares(self) -> pl.DataFrame:
        """Share of the replicates in which each model has each rank: `model`, `rank`, `share`."""
        if self.ranking is None or self.ranking.withheld:
            return pl.DataFrame(schema={"model": pl.String, "rank": pl.Int64, "share": pl.Float64})
        size = len(self.models)
        return pl.DataFrame(
            {
                "model": np.repeat(np.array(self.models, dtype=object), size).tolist(),
                "rank": np.tile(np.arange(1, size + 1), size),
                "share": self.ranking.shares.reshape(-1),
            }
        )

    @property
    def standings(self) -> pl.DataFrame:
        """One row a model, the best first: estimate and interval, ranks, rank set, chance of being best."""
        rows = []
        ranking = self.ranking
        for model, kind, found, place in self._entries():
            row: dict[str, Any] = {"model": model, "kind": kind} | {
                name: found.get(name)
                for name in ("estimate", "conf_low", "conf_high", "status", "reason", "n_rows", "n_clusters")
            }
            if ranking is not None and kind == "ranked":
                row |= {
                    "rank": int(ranking.rank[place]),
                    "set_low": int(ranking.set_low[place]),
                    "set_high": int(ranking.set_high[place]),
                }
                if not ranking.withheld:
                    row |= {
                        "rank_low": int(ranking.percentile_low[place]),
                        "rank_high": int(ranking.percentile_high[place]),
                        "p_best": float(ranking.p_best[place]),
                    }
            elif kind != "ranked" and row["estimate"] is not None:
                row |= {"could_rank": self._could_rank(place)}
            rows.append(row)
        return pl.DataFrame(rows, schema=_STANDINGS)

    @property
    def pairs(self) -> pl.DataFrame:
        """All differences of ranked models, the better estimate first, as tidy rows."""
        if self.ranking is None or self.contest is None:
            return tidy_frame([])
        return tidy_frame(
            difference_rows(
                self.ranking,
                self.models,
                self.metric,
                self._doubt(),
                contest=self.contest,
                n_rows=self.marginals.n_rows,
                conf_level=self.conf_level,
            )
        )

    def tidy(self) -> pl.DataFrame:
        """Estimates, ranks, chances of being best, flags and differences."""
        rows: list[dict[str, Any]] = []
        for model, kind, found, place in self._entries():
            term = None if kind == "ranked" else kind
            rows.append({"estimand": self.metric, "model": model, "term": term, **found})
            if kind == "ranked" and self.ranking is not None:
                rows += rank_rows(self.ranking, model, place, self._doubt(), self.conf_level)
        if self.flags is not None:
            rows += self.flags.read(self.conf_level)
        return pl.concat([tidy_frame(rows), self.pairs])

    def glance(self) -> pl.DataFrame:
        """One row: how many models, on what, and how they were drawn."""
        ranking = self.ranking
        return pl.DataFrame(
            {
                "metric": [self.metric],
                "n_models": [len(self.models)],
                "n_scenarios": [self.n_scenarios],
                "n_clusters": [0 if self.contest is None else self.contest.n_clusters],
                "n_separated": [0 if ranking is None else int((ranking.pairs.order != 0).sum())],
                "n_pairs": [0 if ranking is None else len(ranking.pairs.order)],
                "critical": [None if ranking is None else _finite(ranking.pairs.critical)],
                "conf_level": [self.conf_level],
                "n_resamples": [self.n_resamples],
                "seed": [self.seed],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"critical": pl.Float64},
        )

    def to_dict(self) -> dict[str, Any]:
        """Standings, differences, settings and notes as plain JSON values."""
        return as_json(
            self,
            standings=self.standings,
            tied=[list(members) for members in self.tied],
            estimates=self.tidy(),
        )

    def __repr__(self) -> str:
        size, level = self.n_scenarios, f"{self.conf_level * 100:g} %"
        lines = [f"Leaderboard by {self.metric}, {len(self.models)} models on {size:,} shared scenarios"]
        shown = self.standings.with_columns(
            _range("set_low", "set_high").alias("rank set"),
            _range("rank_low", "rank_high").alias("ranks drawn"),
        ).rename({"could_rank": "could rank", "p_best": "P(best)", "conf_low": "low", "conf_high": "high"})
        columns: tuple[str, ...] = (
            "model",
            "kind",
            "estimate",
            "low",
            "high",
            "rank",
            "rank set",
            "ranks drawn",
            "P(best)",
        )
        if not self.extras and not self.unranked:
            columns = tuple(name for name in columns if name != "kind")
        lines += aligned(shown, (*columns, "could rank"))
        lines += self.flag_lines()
        if self.ranking is not None and len(self.models) > 1:
            told = "; ".join(", ".join(members) for members in self.tied if len(members) > 1)
            lines.append(f"Not separated: {told or 'none'}")
            glance = self.glance().row(0, named=True)
            lines.append(
                f"{glance['n_separated']:,} of {glance['n_pairs']:,} pairs are separated; intervals of the "
                f"differences and rank sets hold all at once at {level}, by max-T of "
                f"{self.ranking.n_drawn:,} cluster bootstrap replicates, seed {self.seed}"
            )
        return "\n".join(lines + [f"note: {note.message}" for note in self.notes])

    def flag_lines(self) -> list[str]:
        """The flags as lines of text."""
        if self.flags is None:
            return []
        rows = tidy_frame(self.flags.read(self.conf_level)).rename({"term": "flag", "estimate": "share"})
        return ["Beside the ranking:", *aligned(rows, ("flag", "model", "share", "conf_low", "conf_high"))]

    def _entries(self) -> list[tuple[str, Kind, dict[str, Any], int]]:
        """Model, kind, columns of its own estimate, and place among the ranked, or among the others."""
        read = self.marginals.read(self.conf_level)
        size = len(self.models)
        ranked: list[tuple[str, Kind, dict[str, Any], int]] = [
            (model, "ranked", row, place)
            for place, (model, row) in enumerate(zip(self.models, read, strict=False))
        ]
        others: list[tuple[str, Kind, dict[str, Any], int]] = [
            (model, "unranked", row, place)
            for place, (model, row) in enumerate(zip(self.unranked, read[size:], strict=True))
        ]
        extras: list[tuple[str, Kind, dict[str, Any], int]] = [
            (extra.model, extra.kind, extra.read(self.conf_level), place)
            for place, extra in enumerate(self.extras, start=len(self.unranked))
        ]
        return [*ranked, *others, *extras]

    def _doubt(self) -> dict[str, Any]:
        """Status and reason of what is read from all ranked models at once."""
        if self.ranking is None or self.contest is None:
            return {}
        return doubt_of(self.ranking, self.contest.behind, self.conf_level)

    def _could_rank(self, place: int) -> int:
        """1 + the ranked models that are better; where none is ranked, those known by counts.

        `place` counts all that is not ranked: models with rows, then extras.
        """
        sign = 1.0 if self.higher_is_better else -1.0
        strength = sign * self.marginals.estimate if self.strength is None else self.strength
        others = np.array([sign * e.estimate if e.strength is None else e.strength for e in self.extras])
        everyone = np.concatenate([strength, others])
        rivals = (
            others[[extra.kind == "counts" for extra in self.extras]]
            if self.contest is None
            else everyone[: len(self.models)]
        )
        own = everyone[len(self.models) + place]
        return int(competition_ranks(np.append(rivals, own)[None])[0, -1])


_STANDINGS: Final = pl.Schema(
    {
        "model": pl.String,
        "kind": pl.String,
        "estimate": pl.Float64,
        "conf_low": pl.Float64,
        "conf_high": pl.Float64,
        "rank": pl.Int64,
        "set_low": pl.Int64,
        "set_high": pl.Int64,
        "rank_low": pl.Int64,
        "rank_high": pl.Int64,
        "p_best": pl.Float64,
        "could_rank": pl.Int64,
        "n_rows": pl.Int64,
        "n_clusters": pl.Int64,
        "status": pl.String,
        "reason": pl.String,
    }
)


def _range(low: str, high: str) -> pl.Expr:
    return pl.format("{} to {}", pl.col(low), pl.col(high))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
