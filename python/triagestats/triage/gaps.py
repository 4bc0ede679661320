"""compare_gaps: what a method does to the gap between a control voice and marked ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.design import design_of
from triagestats.errors import ArgumentError
from triagestats.inference import Family, Options
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note, Shown, as_json
from triagestats.schema import Interval, Match, Weights
from triagestats.table import ResponseTable
from triagestats.triage.contrasts import family_of
from triagestats.triage.gap_frames import directions_frame, gaps_frame
from triagestats.triage.gap_notes import gap_notes
from triagestats.triage.gap_plan import CHANGES, REDUCTION, RELATIVE, gap_plan
from triagestats.triage.text import aligned, glanced
from triagestats.triage.voices import models_named, read_voices, unread_models

__all__ = ["GapComparison", "compare_gaps"]

_UNTESTED: Final = ("gap", RELATIVE)
_POOLED: Final = (*CHANGES, "gap", REDUCTION, RELATIVE, "recovered", "broken")
_SHOWN: Final = (
    "estimand",
    "term",
    "condition",
    "stratum",
    "estimate",
    "conf_low",
    "conf_high",
    "p_value",
    "verdict",
    "n_rows",
    "n_clusters",
)


@dataclass(frozen=True, slots=True, eq=False)
class GapComparison(Shown):
    """Gaps between voices under several methods.

    Attributes
    ----------
    gaps
        One row an estimate, method compared with the baseline (`term`), model (null: all) and stratum (null:
        all rows; `without ...`: all models but some): `control_change`, `marked_change`, `overall_change`,
        `gap` and `anchoring_gap` (at each `condition`; the latter by model only), `gap_reduction`,
        `relative_gap_reduction`, `recovered`, `broken`.
    victims
        Counts by `method`, `model` (null: their sum), `voice` (null: all marked) and `stratum`: `victims`,
        `recovered`, `recovered_share`, `right`, `broken`, `broken_share`.
    directions
        How many models have an interval above, and below, 0: `estimand`, `method`, `stratum`, `n_models`,
        `n_above`, `n_below`, and which.
    baseline, methods, control, marked, without
        What was compared, and the models without which there is a second row of all models.
    cluster, match, weights, interval, conf_level, n_resamples, seed
        What was asked.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = [(s, m, v, int((s * 7 + len(m + v) * (s % 3)) % 5 > 1))
    ...         for s in range(12) for m in ("direct", "advice") for v in ("plain", "marked")]
    >>> data = dict(zip(["scenario", "method", "voice", "score"], zip(*rows)))
    >>> found = ts.compare_gaps(data, method="method", voice="voice", control="plain", baseline="direct",
    ...                         n_resamples=999)
    >>> isinstance(found, ts.GapComparison), found.methods, found.marked
    (True, ('advice',), ('marked',))
    """

    gaps: pl.DataFrame
    victims: pl.DataFrame
    directions: pl.DataFrame
    baseline: str
    methods: tuple[str, ...]
    control: str
    marked: tuple[str, ...]
    without: tuple[str, ...]
    cluster: str
    match: Match
    weights: Weights
    interval: Interval
    conf_level: float
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]
    _family: Family

    def tidy(self) -> pl.DataFrame:
        """One row an estimate, with the columns of the glossary."""
        return self.gaps

    def glance(self) -> pl.DataFrame:
        """One row: what was compared, and settings."""
        names = ("cluster", "match", "weights", "interval", "conf_level", "n_resamples")
        compared = {
            "baseline": self.baseline,
            "methods": ", ".join(self.methods),
            "control": self.control,
            "marked": ", ".join(self.marked),
        }
        return glanced(self, compared, names)

    def with_level(self, conf_level: float) -> GapComparison:
        """The same replicates read at another level, verdicts included.

        Raises
        ------
        ArgumentError
            If `conf_level` does not lie between 0 and 1.
        """
        level = valid_level(conf_level)
        frames = _frames(self._family, level, self.baseline, self.without)
        return replace(self, **frames, conf_level=level)

    def to_dict(self) -> dict[str, Any]:
        """Frames, notes and settings as plain JSON values."""
        return as_json(
            self,
            {"without": list(self.without)},
            gaps=self.gaps,
            victims=self.victims,
            directions=self.directions,
        )

    def __repr__(self) -> str:
        marked = self.marked[0] if len(self.marked) == 1 else f"mean({', '.join(self.marked)})"
        lines = [f"Gap {self.control} - {marked}, against {self.baseline}, by {self.cluster}, all models"]
        pooled = self.gaps.filter(pl.col("model").is_null() & pl.col("estimand").is_in(list(_POOLED)))
        lines += aligned(pooled, _SHOWN)
        counted = self.directions.filter(pl.col("estimand") == REDUCTION)
        for row in counted.iter_rows(named=True):
            where = f", {row['stratum']}" if row["stratum"] else ""
            lines.append(
                f"Models whose interval of the reduction by {row['method']}{where} excludes 0: "
                f"{row['n_above']} of {row['n_models']} above, {row['n_below']} below"
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def compare_gaps(
    data: object,
    *,
    method: str,
    voice: str,
    control: str,
    baseline: str,
    marked: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    without: Sequence[str] | None = None,
    match: Match = "cell",
    weights: Weights = "scenario",
    interval: Interval = "auto",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> GapComparison:
    """Whether a method narrows the gap between voices, and by raising which of them.

    With C the mean score in the control voice, M the mean of those in the marked voices, and g = C - M, each
    at the baseline (0) or with a method (1), over the keys scored in all voices with both,

        control_change          dC = C1 - C0
        marked_change           dM = M1 - M0
        overall_change          change of the mean of all voices, each with the same weight
        gap_reduction           R = g0 - g1 = dM - dC
        relative_gap_reduction  R / g0
        recovered               share of the victims that are right with the method
        broken                  share of the right marked answers that are wrong with the method

    A victim is an item and a marked voice with the control right and the marked voice wrong at the baseline;
    the right marked answers are the pairs of an item and a marked voice that are right at the baseline.

    Parameters
    ----------
    data
        A `ResponseTable` whose condition columns hold method and voice; or a table that `ResponseTable` takes
        with `condition=[method, voice]`.
    method, voice
        The condition columns that hold them. Other condition columns are averaged over.
    control
        The voice that the others are compared with.
    baseline
        The method that the others are compared with: any of them.
    marked
        The marked voices. Default: all others.
    methods
        The methods that are compared with the baseline. Default: all others.
    without
        Models without which there is a second row of all models. Default: those of which nothing could be
        read in some voice; none with `()`.
    match, weights, interval, conf_level, n_resamples, seed, n_threads
        As in `analyze`. With scenario weights, the default, every model weighs the same in the estimates of
        all.

    Returns
    -------
    GapComparison
        For all models, without some, by model, and by stratum where there are some; one set of draws of
        clusters serves all.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument names what the table does not have.
    DataError, RoleError
        If the table cannot be read.
    DesignError
        If a voice is missing under a method, or nothing is scored in all voices.

    Notes
    -----
    The relative reduction is withheld where the interval of g0 holds 0. That of all models is the ratio of
    their mean R and mean g0, not the mean of ratios.

    Verdicts read the intervals shown: `levels up` when those of R and dM lie above 0; `levels down` when that
    of R lies above 0 and that of dC below, with that of dM not above; `undecided` when that of R holds 0 or
    is withheld; else `mixed`: the gap shrinks and neither can be told, it grows, or that of g0 lies below 0,
    so that there is no gap to level.

    The p-value flips the sign of what a cluster adds to dC, dM, R or the overall change: it is exact where
    the two methods are exchangeable within clusters. Gaps themselves are tested by `permutation_tests`.

    Answers that could not be read and score 0 make gaps small: a note says of which models, and how many.

    The shares of all models in `victims` are of pairs, over all models: a model with more victims weighs
    more. With scenario weights `recovered` and `broken` of all models are plain means of the models' shares.

    References
    ----------
    Miller, E. (2024), Adding error bars to evals: a statistical approach to language model evaluations,
    arXiv:2411.00640.

    Phipson, B. and Smyth, G. K. (2010), Permutation p-values should never be zero, Statistical Applications
    in Genetics and Molecular Biology 9(1):39, doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> import triagestats as ts
    >>> right = {"direct": {"plain": 9, "marked": 5}, "advice": {"plain": 9, "marked": 8}}
    >>> rows = [(s, m, v, int(s < n)) for m in right for v, n in right[m].items() for s in range(12)]
    >>> data = dict(zip(["scenario", "method", "voice", "score"], zip(*rows)))
    >>> found = ts.compare_gaps(data, method="method", voice="voice", control="plain", baseline="direct")
    >>> row = found.gaps.filter(estimand="gap_reduction").row(0, named=True)
    >>> round(row["estimate"], 6), row["verdict"], row["p_value"]
    (0.25, 'undecided', 0.25)
    >>> found.victims.filter(voice="marked").select("victims", "recovered", "right", "broken").row(0)
    (4.0, 3.0, 5.0, 0.0)
    """
    valid_choice("match", match, Match)
    valid_choice("weights", weights, Weights)
    valid_choice("interval", interval, Interval)
    level = valid_level(conf_level)
    drawn: dict[str, Any] = {"n_resamples": valid_resamples(n_resamples), "seed": valid_seed(seed)}
    table = data if isinstance(data, ResponseTable) else ResponseTable(data, condition=[method, voice])
    if not table.higher_is_better:
        raise ArgumentError(
            "`higher_is_better` is False, and a gap is that of scores of which more is better; score what is "
            "right instead of what is wrong"
        )
    options = Options(
        interval=interval,
        n_threads=thread_count(n_threads),
        margin=None,
        higher_is_better=True,
        **drawn,
    )
    design = design_of(table)
    voices = read_voices(
        design,
        method=method,
        voice=voice,
        control=control,
        marked=marked,
        baseline=baseline,
        methods=methods,
    )
    unread, unread_notes = unread_models(design, voices)
    some = len(unread) < len(design.models) and design.has_models
    left_out = (unread if some else ()) if without is None else models_named(design, without)
    metric = table.frame["metric"][0] if "metric" in table.frame.columns else None
    found = gap_plan(design, voices, without=left_out, match=match, weights=weights, metric=metric)
    valid_resamples(options.n_resamples, len(found.plan.rows))
    family, notes = family_of(found.plan, options, untested=_UNTESTED)
    names = tuple(design.models[model] for model in left_out)
    frames = _frames(family, level, voices.baseline, names)
    return GapComparison(
        **frames,
        victims=found.victims,
        baseline=voices.baseline,
        methods=voices.methods,
        control=voices.control,
        marked=voices.marked,
        without=names,
        cluster=design.cluster_name,
        match=match,
        weights=weights,
        interval=interval,
        conf_level=level,
        **drawn,
        notes=(
            *table.notes,
            *(note for note in design.notes if note.code != "reference"),
            *unread_notes,
            *notes,
            *gap_notes(family, frames["gaps"], design, voices, weights),
        ),
        _family=family,
    )


def _frames(family: Family, level: float, baseline: str, without: tuple[str, ...]) -> dict[str, Any]:
    gaps = gaps_frame(family, level, baseline)
    called = f"without {', '.join(without)}" if without else None
    return {"gaps": gaps, "directions": directions_frame(gaps, frozenset(without), called)}
