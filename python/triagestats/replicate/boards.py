"""Escalation decisions of models: rows by run, and the boards that entries read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from triagestats.labels import listed
from triagestats.proportions import proportion_ci
from triagestats.replicate.clusters import of_test
from triagestats.replicate.entry import Clustered, NotDerivableError
from triagestats.replicate.published import Expected
from triagestats.replicate.tables import Folder
from triagestats.triage.board import Board
from triagestats.triage.boards import triage_board

__all__ = ["BY", "COUNTS", "Decisions", "decisions_of", "share_answer", "standing"]

BY: Final = "case"
COUNTS: Final = "board_2026_09.csv"
_RESPONSES: Final = "responses.csv.gz"
_CASES: Final = "cases.csv"
_LABEL: Final = "urgent_v0"


@dataclass(frozen=True, slots=True)
class Decisions:
    """Tables of the study, and boards that are made once.

    Attributes
    ----------
    folder
        The folder.
    tolerated
        The under and the over rate that are tolerated, as the folder states them; None where it does not.
    """

    folder: Folder
    tolerated: tuple[float, float] | None

    def cases(self, run: str) -> pl.DataFrame:
        """Cases of a run, such as `250`; those of the largest are all there are.

        Raises
        ------
        NotDerivableError
            If the folder does not say which cases the run has.
        """
        cases = self.folder.table(_CASES)
        if run == str(cases.height):
            return cases
        if f"in_{run}" not in cases.columns:
            raise NotDerivableError(f"rows are not in the folder: cases.csv does not say which are the {run}")
        return cases.filter(pl.col(f"in_{run}") == "1")

    def run(self, model: str, run: str | None = None) -> pl.DataFrame:
        """Answers of a model in a run, with the labels of their cases; the smallest run where none is named.

        Raises
        ------
        NotDerivableError
            If there are none in the folder.
        """
        key = ("run", model, run)
        return self.folder.once(key, lambda: self._run(model, run))

    def _run(self, model: str, run: str | None) -> pl.DataFrame:
        rows = self.folder.table(_RESPONSES).filter(pl.col("model") == model)
        if run is None and rows.height:
            run = min(rows["run_n"].unique(), key=int)
        rows = rows.filter(pl.col("run_n") == (run or ""))
        if rows.is_empty():
            where = f" in the run of {run}" if run else ""
            raise NotDerivableError(f"rows are not in the folder: no answers of {model}{where}")
        numbers = ["escalate", "valid", "hard_fail", _LABEL]
        joined = rows.join(self.folder.table(_CASES), on="case_id", how="left")
        if missing := joined[_LABEL].null_count():
            raise NotDerivableError(
                f"rows are not in the folder: {missing:,} answers have no case in {_CASES}"
            )
        return joined.with_columns(pl.col(numbers).cast(pl.Int64)).sort("case_id")

    def label(self, rows: pl.DataFrame) -> pl.Series:
        """Whether each case is urgent."""
        return rows[_LABEL]

    def counts(self, rows: pl.DataFrame) -> dict[str, int]:
        """Urgent and other cases, and the errors in them."""
        urgent, escalated, valid = rows[_LABEL] == 1, rows["escalate"] == 1, rows["valid"] == 1
        return {
            "n": rows.height,
            "valid": int(valid.sum()),
            "urgent": int(urgent.sum()),
            "nonurgent": int((~urgent).sum()),
            "missed_valid_only": int((urgent & ~escalated & valid).sum()),
            "missed_incl_unreadable": int((urgent & ~escalated).sum()),
            "over": int((~urgent & escalated).sum()),
            "failed": int(rows["hard_fail"].sum()),
            "escalated": int(escalated.sum()),
        }

    def board(self, runs: Sequence[str]) -> Board:
        """The board of some runs, such as `model@250`, on the cases that all of them answered.

        Raises
        ------
        NotDerivableError
            If one has no answers in the folder, or the folder does not state U and O.
        """
        wanted = tuple(sorted(runs))

        def make() -> Board:
            parts = []
            for name in wanted:
                model, _, run = name.rpartition("@")
                parts.append(self.run(model, run).with_columns(pl.lit(name).alias("model")))
            smallest = min((name.rpartition("@")[2] for name in wanted), key=int)
            kept = self.cases(smallest)["case_id"]
            rows = pl.concat(parts).filter(pl.col("case_id").is_in(kept.implode()))
            under, over = self.limits()
            return triage_board(
                rows.select("case_id", "model", "escalate", "valid", "hard_fail", _LABEL),
                U=under,
                O=over,
                urgent=_LABEL,
                valid="valid",
                scenario="case_id",
                flags=["hard_fail"],
            )

        return self.folder.once(("board", wanted), make)

    def counted_board(self) -> Board:
        """The later board, of counts alone."""

        def make() -> Board:
            rows = self.later()
            under, over = self.limits()
            kept = rows.filter(~pl.col("is_policy"))
            counts = kept.select(
                "model",
                pl.col("t15_missed").alias("missed"),
                pl.col("t15_over").alias("over"),
                "n_urgent",
                "n_nonurgent",
            )
            return triage_board(counts=counts, U=under, O=over)

        return self.folder.once(("counted",), make)

    def later(self) -> pl.DataFrame:
        """The later board as it was copied; the two rows that are policies say how many cases are urgent.

        Raises
        ------
        NotDerivableError
            If these rows are absent.
        """
        rows = self.folder.table(COUNTS).with_columns(pl.col("^(v0|t15)_.*$").cast(pl.Int64))
        policies = pl.col("model").str.contains(r"^(always|never)-")
        sizes = {}
        for name, column in (("n_urgent", "t15_missed"), ("n_nonurgent", "t15_over")):
            known = rows.filter(policies)[column].max()
            if not isinstance(known, int) or not known:
                raise NotDerivableError(f"rows are not in the folder: {COUNTS} has no policy rows")
            sizes[name] = known
        return rows.with_columns(
            policies.alias("is_policy"), *(pl.lit(n).alias(name) for name, n in sizes.items())
        )

    def limits(self) -> tuple[float, float]:
        """U and O.

        Raises
        ------
        NotDerivableError
            If the folder does not state them.
        """
        if self.tolerated is None:
            raise NotDerivableError("the folder does not state the tolerated rates U and O")
        return self.tolerated


def decisions_of(folder: Folder, expected: Expected) -> Decisions:
    """Tables of a folder, with the tolerated rates that it states."""
    stated = expected.conventions
    numbers = [stated.get(name) for name in ("U", "O")]
    if all(isinstance(number, int | float) for number in numbers):
        return Decisions(folder, (float(numbers[0]), float(numbers[1])))  # type: ignore[arg-type]  # numbers
    for entry in expected.entries:
        found = re.search(r"\(under/([\d.]+)\)\^2\+\(over/([\d.]+)\)\^2", entry.recipe)
        if found:
            return Decisions(folder, (float(found[1]), float(found[2])))
    return Decisions(folder, None)


def share_answer(about: str, count: int, of: int) -> Clustered:
    """A share of cases, each of which a model answers once: cases are the clusters."""
    if not of:
        raise NotDerivableError("there is no such case")
    test = proportion_ci(count, of)
    answer = of_test(about, test, BY)
    return Clustered(
        about, answer.estimate, answer.conf_low, answer.conf_high, None, of, BY, answer.method, answer.note
    )


def standing(board: Board, model: str) -> Mapping[str, Any]:
    """The row of a model, or of a policy whose name has a hyphen in the folder.

    Raises
    ------
    NotDerivableError
        If the board does not have it.
    """
    names = (model, model.replace("-", " "))
    rows = board.standings.filter(pl.col("model").is_in(names))
    if rows.height != 1:
        known = listed(board.standings["model"].to_list())
        raise NotDerivableError(f"rows are not in the folder: {model} is none of {known}")
    return rows.row(0, named=True)
