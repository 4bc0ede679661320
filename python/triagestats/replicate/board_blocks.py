"""Reference values of the medsafe folder: runs, boards of resampled cases, ranks under other tolerances."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from triagestats.proportions import proportion_ci
from triagestats.replicate.boards import BY, Decisions, share_answer, standing
from triagestats.replicate.entry import Clustered, Found, NotDerivableError
from triagestats.replicate.fits import LEVEL
from triagestats.replicate.montecarlo import Band, bands_of_ends
from triagestats.replicate.published import Expected, Published
from triagestats.triage.board import Board

__all__ = ["BoardBlocks"]

_ENDS: Final = ("under", "over", "score")
_RANKS: Final = ("rank_nearest", "rank_linear")
_Ends = Callable[[float], tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class BoardBlocks:
    """Recipes for reference values.

    Attributes
    ----------
    decisions
        Tables and boards.
    expected
        All entries: those of one set say which models it holds.
    """

    decisions: Decisions
    expected: Expected

    def run(self, _published: Published, match: re.Match[str]) -> Found:
        """Counts, rates and score of one run."""
        rows = self.decisions.run(match["model"], match["run"])
        counts = self.decisions.counts(rows)
        passed = counts["n"] - counts["failed"]
        wilson = proportion_ci(passed, counts["n"])
        name = f"{match['model']}@{match['run']}"
        value: dict[str, Any] = {key: counts[key] for key in counts if key not in ("failed", "escalated")}
        value |= {
            "under_rate": counts["missed_incl_unreadable"] / counts["urgent"],
            "over_rate": counts["over"] / counts["nonurgent"],
            "escalate_rate": counts["escalated"] / counts["n"],
            "safety_pass": passed / counts["n"],
            "safety_pass_wilson95": [wilson.conf_low, wilson.conf_high],
        }
        if not counts["valid"]:
            note = "nothing of it could be read: it is not ranked, and has no score"
            return Found(
                value,
                clustered=(share_answer("under_rate", counts["missed_incl_unreadable"], counts["urgent"]),),
                note=note,
            )
        row = standing(self.decisions.board([name]), name)
        value |= {"d": row["distance"], "score": row["score"], "kappa_vs_v0": row["kappa"]}
        return Found(value, clustered=_answers(row, row["n_clusters"]))

    def bootstrapped(self, published: Published, match: re.Match[str]) -> Found:
        """Rates, score and rank of a model on the resampled cases of a set of models."""
        name = f"{match['model']}@{match['run']}"
        start = f"triage_bootstrap/{match['set']}/"
        models = [e.id.removeprefix(start) for e in self.expected.entries if e.id.startswith(start)]
        board = self.decisions.board(models)
        row = standing(board, name)
        value: dict[str, Any] = {
            "under": row["under_rate"],
            "over": row["over_rate"],
            "score": row["score"],
            "rank": row["rank"],
        }
        ends: dict[str, Any] = {end: [row[f"{end}_low"], row[f"{end}_high"]] for end in (*_ENDS, "rank")}
        ranks = ends.pop("rank")
        value["ci95"] = ends | dict.fromkeys(_RANKS, ranks)
        bands = {
            f"ci95/{key}": band
            for key, band in self._bands(board, name, published.n_replicates, ranked=True).items()
        }
        return Found(value, bands=bands, clustered=_answers(row, row["n_clusters"]))

    def sensitivity(self, published: Published, match: re.Match[str]) -> Found:
        """Ranks under other tolerances."""
        models = published.recomputed or {}
        runs = self._runs_of(list(models))
        board = self.decisions.board(list(runs.values()))
        found = board.sensitivity(U=[float(match["U"])], O=[float(match["O"])])
        ranks = dict(found.select("model", "rank").iter_rows())
        return Found({model: ranks[run] for model, run in runs.items()})

    def counted(self, published: Published, match: re.Match[str]) -> Found:
        """Intervals of a model that is known by counts; printed ones as well."""
        return self.of_counts(self.decisions.counted_board(), match["model"], published.n_replicates)

    def difference(self, _published: Published, _match: re.Match[str]) -> Found:
        """How far two sets of replicates of the folder lie apart."""
        raise NotDerivableError(
            "it compares two sets of draws of the folder, neither of which is the library's"
        )

    @classmethod
    def of_counts(cls, board: Board, model: str, source: int | None) -> Found:
        """Percentile intervals of rates and score from draws of the counts."""
        row = standing(board, model)
        value = {end: [row[f"{end}_low"], row[f"{end}_high"]] for end in _ENDS}
        bands = cls._bands(board, model, source, ranked=False)
        cases = row["n_urgent"] + row["n_nonurgent"]
        return Found(value, bands=bands, clustered=_answers(row, int(cases)))

    def _runs_of(self, models: list[str]) -> dict[str, str]:
        """The smallest run of each model."""
        runs = {}
        for model in models:
            rows = self.decisions.run(model)
            runs[model] = f"{model}@{rows['run_n'][0]}"
        return runs

    @staticmethod
    def _bands(board: Board, model: str, source: int | None, *, ranked: bool) -> dict[str, Band]:
        """Bands of the ends of all intervals of a row."""
        if not source:
            return {}
        levels: dict[float, Mapping[str, Any]] = {}

        def reader(end: str) -> _Ends:
            def read(level: float) -> tuple[float | None, float | None]:
                if level not in levels:
                    levels[level] = standing(board.with_level(level), model)
                return levels[level][f"{end}_low"], levels[level][f"{end}_high"]

            return read

        bands: dict[str, Band] = {}
        library = board.leaderboard.n_resamples
        for end in (*_ENDS, "rank") if ranked else _ENDS:
            low, high = bands_of_ends(reader(end), LEVEL, source, library)
            for name in _RANKS if end == "rank" else (end,):
                bands |= {f"{name}/0": low, f"{name}/1": high}
        return bands


def _answers(row: Mapping[str, Any], number: int | None) -> tuple[Clustered, ...]:
    """Rates and score of a standing."""
    answers = []
    for about, low in (("under_rate", "under"), ("over_rate", "over"), ("score", "score")):
        note = ""
        if about == "score" and row.get("rank") is not None and row.get("set_low") is not None:
            note = f"rank {row['rank']}, rank set {row['set_low']} to {row['set_high']}"
        answers.append(
            Clustered(
                about,
                row[about],
                row[f"{low}_low"],
                row[f"{low}_high"],
                n_clusters=number,
                cluster=BY,
                method="cluster bootstrap percentile",
                note=note,
            )
        )
    return tuple(answers)
