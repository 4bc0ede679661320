"""Analysis: the result of `analyze`, and how it is read from its parts at a level."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from triagestats.agreement.of_table import Agreement
from triagestats.arguments import valid_level
from triagestats.contrast_rows import FAMILIES, quantities_of, rows_of, with_adjusted
from triagestats.contrast_tests import ContrastTests
from triagestats.inference import Family
from triagestats.models.contrast_regression import ContrastRegressions
from triagestats.models.mixed.bayes_result import BayesianMixedModel
from triagestats.readings import Comparison, Reading
from triagestats.results import Note, notes_as_json, plain, tidy_frame
from triagestats.schema import SCHEMA_VERSION, Interval, Match, Weights
from triagestats.standings import Leaderboard
from triagestats.triage.error_families import Errors

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Analysis", "Parts", "Settings", "assemble"]

_LATER: Final = ("variance",)
_ESTIMATES: Final = (
    "rates", "contrasts", "errors", "agreement", "regression", "mixed", "variance", "ranking", "missing",
)  # fmt: skip
_ELSEWHERE: Final = {
    "mixed": "mixed (bayes=True, or ts.mixed)",
    "variance": "variance (see ts.variance_components)",
}
_FRAMES: Final = ("design", *_ESTIMATES, "sensitivity", "tests")
_SIZES: Final = ("rows", "responses", "scored", "cells", "scenarios")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an analysis was asked, and what it resampled."""

    cluster: str
    n_clusters: tuple[int, ...]
    match: Match
    weights: Weights
    interval: Interval
    conf_level: float
    margin: float | None
    n_resamples: int
    seed: int
    higher_is_better: bool


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What an analysis is read from, at any level.

    Attributes
    ----------
    settings
        What was asked; its level is that of the first reading.
    design, missing
        Frames that do not depend on the level.
    rates
        The family of rates or means.
    comparison
        The contrasts beside independent rows; None where nothing is compared.
    contrast_tests
        McNemar, signed rank and equivalence tests of the contrasts, by judge.
    agreement
        Agreement of judges and of labels; None where there is nothing to compare.
    regression
        The fixed-effects regressions; None where nothing is compared.
    errors
        The direction of error; None without an ordered scale and gold.
    ranking
        The leaderboard of the models; None where there is nothing to rank.
    mixed
        The Bayesian mixed model; None unless it was asked for.
    notes
        Notes that do not depend on the level.
    """

    settings: Settings
    design: pl.DataFrame
    missing: pl.DataFrame | None
    rates: Family
    comparison: Comparison | None
    contrast_tests: tuple[ContrastTests, ...]
    agreement: Agreement | None
    regression: ContrastRegressions | None
    errors: Errors | None
    ranking: Leaderboard | None
    mixed: BayesianMixedModel | None
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """Result of `analyze`: tidy frames, notes, and what is needed to read them at another level.

    Every frame has the columns of `tidy()`, and is None, with a note, where there is nothing to show.

    Attributes
    ----------
    design
        Counts of the design: rows, responses, cells, keys matched and lost, design effects.
    rates
        Mean scores by model and pooled, at every condition; by stratum where there are strata.
    contrasts
        Every level minus its reference, and the estimands asked for, by model and pooled.
    missing
        Shares of planned answers that are missing or could not be read, and the worst cases.
    sensitivity
        Each contrast under every interval that applies (cluster jackknife t, bootstrap percentile,
        BCa) and under rows, and cells, taken as independent; `method` says which. Its verdicts read
        the interval against 0 alone, without the margin.
    tests
        Each contrast under every test that applies: the permutation of labels by cluster, the
        cluster jackknife t test, and t tests of rows, and cells, taken as independent; McNemar's test
        of rows and the signed rank test of cells, each by cluster too; with a margin the two one-sided
        tests of equivalence. By judge, and for the mean of the judges (`judge` is null). `p_adjusted`
        is Holm's, within a family that the notes state.
    agreement
        Agreement of each pair of judges (`term` is `judges`), and of a model's labels across conditions
        (`conditions`): percent agreement, disagreement, kappa, alpha; weighted kappa and ordinal alpha
        where `levels` orders the labels. Cluster bootstrap percentile intervals.
    regression
        `score ~ condition | scenario x model x variant` by least squares, for each condition column, pooled
        and by model, with CRV1 errors; a note where it and the contrast do not say the same of 0.
    errors
        Rates of labels below (`under_rate`) and above (`over_rate`) the gold range, their difference, and
        their contrasts, where `levels` orders the labels and there is gold; judges are averaged.
    ranking
        Models by their mean over conditions, on the scenarios that all share: rank with the set of ranks that
        no pair rules out, P(best), and all pairwise differences by max-T.
    mixed
        With `bayes=True` the Bayesian mixed model that the design asks for: probabilities and differences
        averaged over new scenarios, log odds, standard deviations. `mixed_model` is the model itself.
    variance
        None, with a note.
    details
        Quantities of single methods, long: `quantity` and `value`; with other columns.
    settings
        What was asked, and what was resampled.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> fit = ts.analyze(ts.demo_table(), n_resamples=999)
    >>> fit.tidy().columns == fit.contrasts.columns
    True
    >>> fit.with_level(0.9).contrasts["conf_level"][0]
    0.9
    >>> sorted(set(fit.sensitivity["method"]))[:2]
    ['cells as independent, t', 'cluster bootstrap BCa']
    """

    design: pl.DataFrame
    rates: pl.DataFrame
    contrasts: pl.DataFrame | None
    errors: pl.DataFrame | None
    agreement: pl.DataFrame | None
    regression: pl.DataFrame | None
    mixed: pl.DataFrame | None
    variance: pl.DataFrame | None
    ranking: pl.DataFrame | None
    missing: pl.DataFrame | None
    sensitivity: pl.DataFrame | None
    tests: pl.DataFrame | None
    details: pl.DataFrame | None
    notes: tuple[Note, ...]
    settings: Settings
    _parts: Parts

    def tidy(self) -> pl.DataFrame:
        """All estimates in one frame, one row each.

        That is `rates`, `contrasts`, `errors`, `agreement`, `regression`, `mixed`, `ranking` and `missing`;
        `sensitivity` and `tests` hold other readings of the same estimates, and `design` holds counts.
        """
        frames: list[pl.DataFrame | None] = [getattr(self, name) for name in _ESTIMATES]
        return pl.concat([frame for frame in frames if frame is not None])

    def glance(self) -> pl.DataFrame:
        """One row: sizes and settings."""
        sizes = self.design.filter(pl.col("estimand").is_in(_SIZES) & pl.col("status").is_null())
        counts = {name: int(count) for name, count in sizes.select("estimand", "estimate").iter_rows()}
        return pl.DataFrame(
            {name: counts[name] for name in _SIZES}
            | {
                "cluster": self.settings.cluster,
                "n_clusters": min(self.settings.n_clusters),
                "match": self.settings.match,
                "weights": self.settings.weights,
                "interval": self.settings.interval,
                "conf_level": self.settings.conf_level,
                "margin": self.settings.margin,
                "n_resamples": self.settings.n_resamples,
                "seed": self.settings.seed,
                "n_notes": len(self.notes),
            },
            schema_overrides={"margin": pl.Float64},
        )

    def with_level(self, conf_level: float) -> Analysis:
        """The same replicates read at another level.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        return assemble(self._parts, valid_level(conf_level))

    @property
    def mixed_model(self) -> BayesianMixedModel | None:
        """The model behind `mixed`, with its draws, at the level of this analysis."""
        model = self._parts.mixed
        return None if model is None else model.with_level(self.settings.conf_level)

    def to_pandas(self) -> pd.DataFrame:
        """`tidy()` as a pandas frame; needs pandas and pyarrow."""
        frame: pd.DataFrame = self.tidy().to_pandas()
        return frame

    def to_dict(self) -> dict[str, Any]:
        """All frames, notes and settings as plain JSON values."""
        frames = {name: getattr(self, name) for name in (*_FRAMES, "details")}
        return {
            "schema_version": SCHEMA_VERSION,
            "settings": {f.name: getattr(self.settings, f.name) for f in fields(self.settings)}
            | {"n_clusters": list(self.settings.n_clusters)},
            **{name: None if frame is None else plain(frame) for name, frame in frames.items()},
            "notes": notes_as_json(self.notes),
        }

    def to_json(self) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1)

    def __repr__(self) -> str:
        from triagestats.report.text import summary_text

        return summary_text(self)

    def _repr_html_(self) -> str:
        from triagestats.report.text import summary_html

        return summary_html(self)


def assemble(parts: Parts, conf_level: float) -> Analysis:
    """An analysis read at a level, from replicates that are there already."""
    reading = None if parts.comparison is None else Reading.at(parts.comparison, conf_level)
    computed = {
        name: getattr(parts, name) for name in ("errors", "agreement", "regression", "mixed", "ranking")
    }
    absent = {*_LATER, *(name for name, part in computed.items() if part is None)}
    later = [name for name in _ESTIMATES if name in absent]
    return Analysis(
        design=parts.design,
        rates=parts.rates.read(conf_level),
        contrasts=with_adjusted(reading.contrasts, by_kind=False) if reading else None,
        **dict.fromkeys(_LATER),
        errors=None if parts.errors is None else parts.errors.read(conf_level),
        agreement=None if parts.agreement is None else parts.agreement.read(conf_level),
        regression=None if parts.regression is None else parts.regression.read(conf_level),
        ranking=None if parts.ranking is None else parts.ranking.with_level(conf_level).tidy(),
        mixed=None if parts.mixed is None else parts.mixed.with_level(conf_level).tidy(),
        missing=parts.missing,
        sensitivity=reading.sensitivity() if reading else None,
        tests=_tests(reading, parts, conf_level) if reading else None,
        details=_details(parts.comparison, parts) if parts.comparison else None,
        notes=(
            *parts.notes,
            *(reading.notes() if reading else ()),
            *_disagreeing(parts, reading, conf_level),
            *((FAMILIES,) if reading and reading.contrasts.height > 1 else ()),
            Note(
                "not_computed",
                f"Not part of this analysis: {', '.join(_ELSEWHERE.get(n, n) for n in later)}.",
            ),
        ),
        settings=replace(parts.settings, conf_level=conf_level),
        _parts=parts,
    )


def _disagreeing(parts: Parts, reading: Reading | None, conf_level: float) -> tuple[Note, ...]:
    if parts.regression is None or reading is None:
        return ()
    return parts.regression.notes(reading.contrasts, conf_level, parts.settings.weights)


def _tests(reading: Reading, parts: Parts, conf_level: float) -> pl.DataFrame:
    rows = rows_of(parts.contrast_tests, conf_level, parts.settings.margin)
    tests = pl.concat([reading.tests(), tidy_frame(rows)]).with_columns(pl.col("status").fill_null("ok"))
    return with_adjusted(tests, by_kind=True)


def _details(comparison: Comparison, parts: Parts) -> pl.DataFrame:
    return pl.concat(
        [comparison.details(), quantities_of(parts.contrast_tests, parts.settings.margin)], how="diagonal"
    )
