"""What a summary says, section by section, before it is laid out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from triagestats.analysis import Analysis
from triagestats.readings import INDEPENDENT
from triagestats.report.agreement import agreement_grid
from triagestats.report.errors import errors_grid
from triagestats.report.grid import Grid
from triagestats.report.labels import Decimals, Row, count, level_text, name, p_text, percent, place, quantity
from triagestats.report.mixed import mixed_grid

__all__ = ["VERDICT_STYLES", "WIDTH", "Line", "sections"]

WIDTH: Final = 110
"""Characters in a line where there is no terminal that says otherwise."""
MOST_LINES: Final = 64
MOST_ACROSS: Final = 3
_SHOWN: Final = 12
_NAMED: Final = 3
VERDICT_STYLES: Final = {"better": "green", "equivalent": "green", "worse": "red", "undecided": "yellow"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text: what is strong in it, the rest, a verdict at its end, and a bullet before it."""

    text: str
    strong: str = ""
    verdict: str = ""
    mark: str = ""


Section = list[Line | Grid]


def sections(fit: Analysis) -> list[Section]:
    """All sections of the summary that have something to say, in order."""
    return [section for section in _Summary(fit).sections() if section]


class _Summary:
    """One analysis, with what its sections share."""

    def __init__(self, fit: Analysis) -> None:
        self.fit = fit
        self.level = level_text(fit.settings.conf_level)
        self.decimals = _decimals(fit)
        self.interval = f"{self.level} interval"
        terms = set() if fit.contrasts is None else set(fit.contrasts["term"])
        self.several_terms = len(terms) > 1
        plain = pl.all_horizontal(pl.col("status", "condition", "contrast").is_null())
        sizes = fit.design.filter(plain).select("estimand", "estimate")
        self.sizes: dict[str, float] = dict(sizes.iter_rows())

    def sections(self) -> Iterator[Section]:
        yield [self.title()]
        contrasts = self.fit.contrasts
        if contrasts is not None:
            whole = contrasts.filter(pl.col("stratum").is_null())
            yield [self.headline(row) for row in _rows(whole, pooled=True)]
            yield self.independence(whole)
            yield self.by_model(whole)
            yield self.contrasts_by_stratum(contrasts)
        rates = self.fit.rates
        yield self.rates(rates.filter(pl.col("stratum").is_null()))
        yield self.rates_by_stratum(rates)
        yield self.errors()
        yield self.agreement()
        yield self.mixed()
        yield self.design()
        yield self.missing()
        yield self.doubts()
        yield self.notes()

    def contrast(self, row: Row) -> str:
        """The contrast of a row, with its condition column where there are several."""
        label = name(row["contrast"])
        return f"{name(row['term'])}: {label}" if self.several_terms and row["term"] else label

    def title(self) -> Line:
        metric = self.fit.rates["metric"][0]
        sizes = [count(self.sizes["scored"], "scored response")]
        if "models" in self.sizes:
            sizes.append(f"{count(self.sizes['models'], 'model')} x")
        scenarios = count(self.sizes["scenarios"], "scenario")
        size = ", ".join(sizes) + (" " if len(sizes) > 1 else ", ") + scenarios
        return Line(
            f"  {name(metric) + ': ' if metric else ''}{size}, clustered by {self.clusters()}", "triagestats"
        )

    def clusters(self) -> str:
        axes = self.fit.design.filter(pl.col("estimand") == "clusters").select("term", "estimate")
        return " and ".join(f"{name(axis)} ({number:,.0f})" for axis, number in axes.iter_rows())

    def unit(self, row: Row) -> str:
        """What is taken as independent in a row."""
        return (
            "two-way clusters" if len(self.fit.settings.n_clusters) > 1 else f"{row['n_clusters']:,} clusters"
        )

    def headline(self, row: Row) -> Line:
        """The answer for one contrast."""
        if row["estimate"] is None:
            return Line(f": no estimate; {row['reason']}", self.contrast(row))
        numbers = [
            self.decimals.signed(row["estimate"]),
            f"{self.interval} {self.decimals.interval(row)}",
            *([p_text(row["p_value"], equals=True)] if row["p_value"] is not None else []),
        ]
        verdict = row["verdict"] or ""
        return Line(
            f": {', '.join(numbers)}" + (": " if verdict else ""), self.contrast(row), verdict=verdict
        )

    def independence(self, contrasts: pl.DataFrame) -> Section:
        """Clustered and independent readings side by side, for the pooled contrasts."""
        if self.fit.sensitivity is None:
            return []
        independent = self.fit.sensitivity.filter(
            pl.col("model").is_null()
            & pl.col("stratum").is_null()
            & pl.col("method").is_in(list(INDEPENDENT.values()))
        )
        effects = self.fit.design.filter(
            (pl.col("estimand") == "design_effect") & pl.col("model").is_null() & pl.col("stratum").is_null()
        )
        rows: list[tuple[str, ...]] = []
        bold: set[int] = set()
        for row in _rows(contrasts, pooled=True):
            same = _same_contrast(independent, row)
            if row["estimate"] is None or same.is_empty():
                continue
            effect = _same_contrast(effects, row)["estimate"]
            bold.add(len(rows))
            rows.append(self._reading(row, self.unit(row), quantity(effect[0])))
            for other in same.iter_rows(named=True):
                what = f"{other['n_rows']:,} {other['method'].split(' as ')[0]}"
                rows.append(self._reading(other, what, ""))
        if not rows:
            return []
        grid = Grid(
            "What the same data would say if rows were independent",
            ("contrast", "taken as independent"),
            ("estimate", self.interval, "p", "design effect"),
            tuple(rows),
            bold=frozenset(bold),
        )
        return [grid.without_constants()]

    def _reading(self, row: Row, what: str, effect: str) -> tuple[str, ...]:
        return (
            self.contrast(row),
            what,
            self.decimals.signed(row["estimate"]),
            self.decimals.interval(row),
            p_text(row["p_value"]),
            effect,
        )

    def by_model(self, contrasts: pl.DataFrame) -> Section:
        rows = list(_rows(contrasts, pooled=False))
        if self.sizes.get("models", 1) < 2:
            return []
        if len(rows) > MOST_LINES:
            return [Line(f"{len(rows):,} contrasts by model: see `contrasts`.")]
        cells = [(self.contrast(row), name(row["model"]), *self._contrast_cells(row)) for row in rows]
        return [self._contrast_grid("Contrasts by model", ("contrast", "model"), cells)]

    def contrasts_by_stratum(self, contrasts: pl.DataFrame) -> Section:
        rows = [row for row in _rows(contrasts, pooled=True) if row["stratum"] is not None]
        if not rows:
            return []
        if len(rows) > MOST_LINES:
            return [Line(f"{len(rows):,} contrasts by stratum: see `contrasts`.")]
        cells = [(self.contrast(row), name(row["stratum"]), *self._contrast_cells(row)) for row in rows]
        title = "Contrasts by stratum" + self._pooled()
        return [self._contrast_grid(title, ("contrast", "stratum"), cells)]

    def _pooled(self) -> str:
        return ", models pooled" if self.sizes.get("models", 1) > 1 else ""

    def _contrast_cells(self, row: Row) -> tuple[str, ...]:
        if row["estimate"] is None:
            return ("", "", "no data", "", "0", "")
        return (
            self.decimals.signed(row["estimate"]),
            self.decimals.number(row["std_error"]),
            self.decimals.interval(row),
            p_text(row["p_value"]),
            f"{row['n_clusters']:,}",
            row["verdict"] or "",
        )

    def _contrast_grid(self, title: str, names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Grid:
        numbers = ("estimate", "std. error", self.interval, "p", "clusters", "verdict")
        return Grid(title, names, numbers, tuple(rows), last=True, styles=VERDICT_STYLES).without_constants()

    def rates(self, rates: pl.DataFrame) -> Section:
        if self.sizes.get("models") == 1:
            rates = rates.filter(pl.col("model").is_not_null())
        return self._rate_grid(rates, "", "model", "all models" if "models" in self.sizes else "all")

    def rates_by_stratum(self, rates: pl.DataFrame) -> Section:
        chosen = rates.filter(pl.col("stratum").is_not_null() & pl.col("model").is_null())
        return self._rate_grid(chosen, f" by stratum{self._pooled()}", "stratum") if chosen.height else []

    def _rate_grid(self, rates: pl.DataFrame, what: str, by: str, everyone: str = "") -> Section:
        """Rates by model or stratum: conditions across where they are few, else below each other."""
        title = "Rates" if rates["estimand"][0] == "rate" else "Mean scores"
        title += f"{what}, {self.level} intervals"
        conditions = rates["condition"].unique(maintain_order=True).to_list()
        groups = rates[by].unique(maintain_order=True).to_list()
        if len(groups) * (1 if len(conditions) <= MOST_ACROSS else len(conditions)) > MOST_LINES:
            title += "; the others: see `rates`"
            groups = groups[:1]
        cell = {(row[by], row["condition"]): row for row in rates.iter_rows(named=True)}
        labels = {group: name(group) or everyone for group in groups}
        if len(conditions) <= MOST_ACROSS:
            headings = tuple(name(condition) or "all" for condition in conditions)
            rows = [
                (labels[g], *(self.decimals.estimate(cell[g, condition]) for condition in conditions))
                for g in groups
            ]
            across = Grid(title, (by,), headings, tuple(rows))
            if across.least_width <= WIDTH:
                return [across]
        rows = [
            (labels[g], name(condition) or "all", self.decimals.estimate(cell[g, condition]))
            for g in groups
            for condition in conditions
        ]
        return [Grid(title, (by, "condition"), ("estimate",), tuple(rows)).without_constants()]

    def errors(self) -> Section:
        grid = None if self.fit.errors is None else errors_grid(self.fit.errors, self.level)
        return [] if grid is None else [grid]

    def agreement(self) -> Section:
        if self.fit.agreement is None:
            return []
        grid = agreement_grid(self.fit.agreement, self.level)
        return [] if grid is None else [grid.without_constants()]

    def mixed(self) -> Section:
        """The mixed model where one was fitted; that its draws cannot be trusted comes first."""
        if self.fit.mixed is None:
            return []
        grid = mixed_grid(self.fit.mixed, self.fit.contrasts, self.level)
        failed = self.fit.mixed.filter(pl.col("status") == "warning")["reason"].drop_nulls()
        lines = [Line(f": {failed[0]}", "The mixed model is not reliable")] if len(failed) else []
        return [*lines, *([] if grid is None else [grid])]

    def design(self) -> Section:
        sizes = self.sizes
        parts = [
            f"{sizes[key]:,.0f} {noun}"
            for key, noun in (("rows", "rows"), ("responses", "responses"), ("scored", "scored"))
        ]
        parts.append(count(sizes["cells"], "cell"))
        if "judges" in sizes:
            parts.append(count(sizes["judges"], "judge"))
        lines = [*self._collapsed(self._crossing(), "each condition")]
        lines += self._collapsed(self._matching(), "each contrast")
        return [Line(f": {', '.join(parts)}", "Design"), *lines, self._asked()]

    def _crossing(self) -> Iterator[tuple[str, str]]:
        chosen = self.fit.design.filter(pl.col("estimand").is_in(["variants", "repetitions", "balance"]))
        for (condition,), rows in chosen.group_by(["condition"], maintain_order=True):
            value = dict(rows.select("estimand", "estimate").iter_rows())
            text = f"{count(value['variants'], 'variant')} x {count(value['repetitions'], 'repetition')}"
            share = value["balance"]
            if share == 1:
                text += ", all planned answers usable"
            elif share is not None:
                text += f", {percent(share)} of the planned answers usable"
            yield name(condition) or "all", text

    def _matching(self) -> Iterator[tuple[str, str]]:
        lost = self.fit.design.filter(pl.col("estimand") == "keys_lost")
        for row in self.fit.design.filter(pl.col("estimand") == "keys_matched").iter_rows(named=True):
            sides = ", ".join(
                f"{number:,.0f} of {name(level)}"
                for level, number in _same_contrast(lost, row).select("condition", "estimate").iter_rows()
                if number
            )
            text = f"{count(row['estimate'], 'key')} matched by {self.fit.settings.match}"
            yield (
                self.contrast(row),
                text + (f"; without a partner: {sides}" if sides else ", none left over"),
            )

    def _collapsed(self, lines: Iterable[tuple[str, str]], each: str) -> list[Line]:
        """One line where all say the same."""
        listed = list(lines)
        texts = {text for _, text in listed}
        if len(listed) > 1 and len(texts) == 1:
            return [Line(f"  {each}: {texts.pop()}")]
        shown = [Line(f"  {who}: {text}") for who, text in listed[:_SHOWN]]
        more = len(listed) - _SHOWN
        return [*shown, *([Line(f"  ... {more} more in `design`")] if more > 0 else [])]

    def _asked(self) -> Line:
        settings = self.fit.settings
        parts = [f"{settings.n_resamples:,} resamples, seed {settings.seed}"]
        if self.fit.contrasts is not None:
            if settings.margin is not None:
                parts.append(f"margin {settings.margin:g}")
            parts.append(f"{'higher' if settings.higher_is_better else 'lower'} scores are better")
        return Line(f"  {'; '.join(parts)}")

    def missing(self) -> Section:
        """Missing and unread answers by condition and model, with the worst cases."""
        frame = self.fit.missing
        if frame is None:
            return []
        groups = list(frame.group_by(["condition", "model"], maintain_order=True))
        if len(groups) > MOST_LINES // 2:
            groups = [group for group in groups if group[0][1] is None]
        rows = [
            (name(condition) or "all", name(model) or "all models", *self._worst(rows))
            for (condition, model), rows in groups[: MOST_LINES // 2]
        ]
        title = "Answers that are missing or could not be read"
        if rated := frame["estimand"].str.starts_with("rate_if").any():
            title += ", and the rate if all of them were wrong or right"
        if self.sizes.get("models", 0) < 2:
            rows = [row for row in rows if "models" not in self.sizes or row[1] != "all models"]
        numbers = ("planned", "of which", *(("if wrong", "if right") if rated else ()))
        return [Grid(title, ("condition", "model"), numbers, tuple(rows)).without_constants()]

    def _worst(self, rows: pl.DataFrame) -> tuple[str, ...]:
        planned = (rows["n_rows"][0] or 0) + (rows["n_missing"][0] or 0)
        value = {row["estimand"]: row["estimate"] for row in rows.iter_rows(named=True)}
        shares = rows.filter(pl.col("estimand").is_in(["share_missing", "share_unparsed"]))
        why = ", ".join(
            f"{row['estimate'] * planned:,.0f} {row['status']}"
            + (" but scored" if row["estimand"] == "share_unparsed" else "")
            for row in shares.iter_rows(named=True)
        )
        worst = (value.get(f"rate_if_missing_{end}") for end in ("wrong", "right"))
        return (f"{planned:,}", why, *(self.decimals.number(rate) for rate in worst if rate is not None))

    def doubts(self) -> Section:
        cautions = [note.message for note in self.fit.notes if note.level == "caution"]
        return _listed("Doubts", [*cautions, *self._row_doubts()])

    def notes(self) -> Section:
        return _listed("Notes", [note.message for note in self.fit.notes if note.level == "info"])

    def _row_doubts(self) -> Iterator[str]:
        """Reasons that stand in the rows, each with where it applies."""
        frames = [frame for frame in (self.fit.contrasts, self.fit.rates) if frame is not None]
        rows = pl.concat(frames)
        doubtful = rows.filter(pl.col("reason").is_not_null())
        for (reason,), same in doubtful.group_by(["reason"], maintain_order=True):
            if same.height == rows.height:
                yield f"All estimates: {reason}."
                continue
            names = [place(row, self.contrast(row)) for row in same.iter_rows(named=True)]
            more = len(names) - _NAMED
            shown = ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
            yield f"{shown}: {reason}."


def _decimals(fit: Analysis) -> Decimals:
    if fit.rates["estimand"][0] == "rate":
        return Decimals()
    frames = [frame["std_error"] for frame in (fit.rates, fit.contrasts) if frame is not None]
    return Decimals.of(pl.concat(frames).to_list())


def _rows(frame: pl.DataFrame, *, pooled: bool) -> Iterator[dict[str, Any]]:
    model = pl.col("model")
    yield from frame.filter(model.is_null() if pooled else model.is_not_null()).iter_rows(named=True)


def _same_contrast(frame: pl.DataFrame, row: Row) -> pl.DataFrame:
    same = pl.col("contrast").eq_missing(row["contrast"]) & pl.col("term").eq_missing(row["term"])
    return frame.filter(same)


def _listed(title: str, messages: Sequence[str]) -> Section:
    if not messages:
        return []
    return [Line("", title), *(Line(name(message), mark="-") for message in messages)]
