"""The printed comparison: the answer, the gate, the rates, what pairs, the notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from textwrap import wrap
from typing import Any, Final

import polars as pl
from rich.console import Console

from triagestats.report.grid import Grid
from triagestats.report.labels import Decimals, count, level_text, name, p_text, quantity
from triagestats.runs.alignment import ABSENT, SCORED
from triagestats.runs.comparison import RunComparison

__all__ = ["comparison_text"]

_WIDTH: Final = 100
_WORDS: Final = {"row": "item and epoch", "cell": "item", "scenario": "scenario"}

Row = Mapping[str, Any]


def comparison_text(found: RunComparison) -> str:
    """The comparison as plain text of a fixed width."""
    shown = _Shown(found)
    parts = [
        shown.head(),
        shown.answer(),
        *shown.grids(),
        shown.missing(),
        shown.said("caution"),
        shown.said("info"),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


class _Shown:
    """The parts of the print, each as lines."""

    def __init__(self, found: RunComparison) -> None:
        self.found = found
        self.level = level_text(found.settings.conf_level)
        errors = pl.concat([found.contrasts["std_error"], found.rates["std_error"]]).to_list()
        is_rate = found.rates["estimand"][0] == "rate"
        self.decimals = Decimals() if is_rate else Decimals.of(errors)

    def head(self) -> list[str]:
        settings = self.found.settings
        metric = f"{name(settings.metric)}; " if settings.metric else ""
        better = "higher" if settings.higher_is_better else "lower"
        lines = [f"Comparison of two runs: {metric}{better} scores are better"]
        runs = (self.found.a, self.found.b)
        width = max(len(name(run.name)) for run in runs)
        for run, role in zip(runs, ("baseline", "candidate"), strict=True):
            models = run.models if len(run.models) <= 3 else (*run.models[:3], f"{len(run.models) - 3} more")
            what = [", ".join(map(name, models)), *([f"({name(run.source)})"] if run.source else [])]
            lines.append(
                f"  {name(run.name):<{width}}  {' '.join((f'{role}:', *filter(None, what)))}".rstrip(": ")
            )
        return lines

    def answer(self) -> list[str]:
        found, row = self.found, self.found.difference
        numbers = [
            self.decimals.signed(row["estimate"]),
            f"{self.level} interval {self.decimals.interval(row)}",
            *([p_text(row["p_value"], equals=True)] if row["p_value"] is not None else []),
        ]
        margin = "" if found.settings.margin is None else f", margin {found.settings.margin:g}"
        gate = f"Gate: {found.gate} (exit code {found.exit_code}{margin}): {found.decision.reason}."
        sizes = found.glance().row(0, named=True)
        pairs = f"{count(sizes['n_pairs'], 'pair')} by {_WORDS[found.settings.match]}"
        clusters = f"{count(row['n_clusters'], 'cluster')} ({name(found.settings.cluster)})"
        return [
            f"{name(row['contrast'])}: {', '.join(numbers)}: {row['verdict']}",
            *_folded(gate, ""),
            f"  {pairs}, {count(sizes['n_scenarios'], 'scenario')}, {clusters}",
        ]

    def grids(self) -> Iterator[list[str]]:
        yield _lines(self.rates())
        if (grid := self.independence()) is not None:
            yield _lines(grid)

    def rates(self) -> Grid:
        """Both runs and their difference, by model and stratum."""
        contrasts = self.found.contrasts
        rows = []
        for row in contrasts.iter_rows(named=True):
            same = pl.col("model").eq_missing(row["model"]) & pl.col("stratum").eq_missing(row["stratum"])
            sides = list(self.found.rates.filter(same).iter_rows(named=True))
            rates = [self.decimals.estimate(side) for side in sides] or ["no data", "no data"]
            several = contrasts.height > 1
            label = [name(row["model"]) or ("all" if several else ""), name(row["stratum"])]
            difference = "no data"
            if row["estimate"] is not None:
                difference = f"{self.decimals.signed(row['estimate'])} {self.decimals.interval(row)}"
            rows.append((" in ".join(filter(None, label)), *rates, difference, row["verdict"] or ""))
        kind = "Rates" if self.found.rates["estimand"][0] == "rate" else "Mean scores"
        a, b = name(self.found.a.name), name(self.found.b.name)
        title = f"{kind} over what pairs, {self.level} intervals"
        return Grid(title, ("",), (a, b, f"{b} - {a}", "verdict"), tuple(rows), last=True)

    def independence(self) -> Grid | None:
        """The difference by cluster, and with rows taken as independent."""
        row = self.found.difference
        others = self.found.sensitivity.filter(
            pl.col("method").str.contains("as independent")
            & pl.col("model").is_null()
            & pl.col("stratum").is_null()
        )
        if others.is_empty():
            return None
        effect = quantity(self.found.design_effect)
        rows = [(count(row["n_clusters"], "cluster"), *self._reading(row), row["verdict"], effect)]
        for other in others.iter_rows(named=True):
            what = other["method"].split(" as ")[0]
            rows.append((f"{other['n_rows']:,} {what}", *self._reading(other), other["verdict"], ""))
        title = "What the same data would say if rows were independent"
        numbers = (f"{self.level} interval", "p", "verdict", "design effect")
        return Grid(title, ("taken as independent",), numbers, tuple(rows))

    def _reading(self, row: Row) -> tuple[str, str]:
        return self.decimals.interval(row), p_text(row["p_value"])

    def missing(self) -> list[str]:
        """What does not pair, and the bounds of the difference."""
        unpaired = self.found.alignment.filter((pl.col("a") != SCORED) | (pl.col("b") != SCORED))
        if unpaired.is_empty() and self.found.missing is None:
            return []
        a, b = name(self.found.a.name), name(self.found.b.name)
        lines = ["Answers that do not pair" if unpaired.height else "Answers without a score"]
        for row in unpaired.iter_rows(named=True):
            lines.append(f"  {row['n']:,}: {a} {_had(row['a'])}, {b} {_had(row['b'])}")
        if self.found.missing is not None:
            bounds = self.found.missing.filter(pl.col("estimand").str.starts_with("difference_if"))
            if not bounds.is_empty():
                ends = [self.decimals.signed(value) for value in bounds["estimate"]]
                worst, best = ends if self.found.settings.higher_is_better else reversed(ends)
                lines.append(f"  {b} - {a} if all of them spoke against {b}: {worst}; for it: {best}")
        return lines

    def said(self, level: str) -> list[str]:
        messages = [name(note.message) for note in self.found.notes if note.level == level]
        if level == "caution":
            reasons = dict.fromkeys(self.found.contrasts["reason"].drop_nulls())
            messages += [f"{name(self.found.difference['contrast'])}: {name(reason)}." for reason in reasons]
        if not messages:
            return []
        title = "Doubts" if level == "caution" else "Notes"
        return [title, *(line for message in messages for line in _folded(message, "- "))]


def _had(status: str) -> str:
    return {SCORED: "scored it", ABSENT: "lacks it"}.get(status, f"has status {status}")


def _folded(text: str, mark: str) -> Sequence[str]:
    return wrap(text, _WIDTH, initial_indent=mark, subsequent_indent="  ")


def _lines(grid: Grid) -> list[str]:
    stream = StringIO()
    width = max(_WIDTH, grid.least_width)
    Console(file=stream, width=width, color_system=None, legacy_windows=False).print(grid.rendered())
    return [line.rstrip() for line in stream.getvalue().rstrip().splitlines()]
