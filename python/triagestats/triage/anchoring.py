"""anchoring_null: what the anchoring gap of each model would be if the voices did not differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice
from triagestats.blocks import Target, contrast_block
from triagestats.design import Design, design_of
from triagestats.errors import ArgumentError, DesignError
from triagestats.estimands import AnchoringGap
from triagestats.matching import keys_of
from triagestats.permutation import MOST_LABELS
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note, Shown, as_json, tidy_frame
from triagestats.schema import Match, Weights
from triagestats.table import ResponseTable
from triagestats.totals import TotalsBuilder
from triagestats.triage.anchoring_law import NULL_SCHEMA, Law, averages_of, laws_of, row_of
from triagestats.triage.text import aligned
from triagestats.triage.voices import marked_voices, voice_factor

__all__ = ["AnchoringNull", "anchoring_null"]

_BY_MODEL: Final = Note(
    "by_model",
    "The anchoring gap is given by model only: a minimum of noisy means is biased up, and an average over "
    "models keeps the bias.",
)


@dataclass(frozen=True, slots=True, eq=False)
class AnchoringNull(Shown):
    """Anchoring gaps beside their law under relabelling of the voices.

    Attributes
    ----------
    frame
        One row a model and condition, with the columns of the glossary; `p_value` is one-sided, `statistic`
        is (observed - mean) / sd of the law.
    null
        `condition`, `model`, `observed`, and of the law `null_mean`, `null_std` and `null_q95`, its quantile
        of probability 0.95; `p_value`.
    averages
        Averages of `null_mean` and `null_q95` over the models of a condition, and `pooled_q95`, the quantile
        of the draws of all these models together.
    n_arrangements, exact
        Most relabellings behind a law, and whether those of every law are all there are.
    control, marked, n_resamples, seed
        What was asked.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> rows = [(s, v, int((s * 7 + len(v)) % 5 > 1)) for s in range(9) for v in ("plain", "poor", "proud")]
    >>> table = ts.ResponseTable(dict(zip(["scenario", "voice", "score"], zip(*rows))))
    >>> found = ts.anchoring_null(table, control="plain", n_resamples=999)
    >>> isinstance(found, ts.AnchoringNull), found.marked, found.tidy().height
    (True, ('poor', 'proud'), 1)
    """

    frame: pl.DataFrame
    null: pl.DataFrame
    averages: pl.DataFrame
    n_arrangements: int
    exact: bool
    control: str
    marked: tuple[str, ...]
    n_resamples: int
    seed: int
    notes: tuple[Note, ...]

    def tidy(self) -> pl.DataFrame:
        """One row a model and condition."""
        return self.frame

    def glance(self) -> pl.DataFrame:
        """One row: what was permuted, and how often."""
        return pl.DataFrame(
            {
                "control": [self.control],
                "marked": [", ".join(self.marked)],
                "n_tests": [self.frame["p_value"].count()],
                "smallest_p": [self.frame["p_value"].min()],
                "n_arrangements": [self.n_arrangements],
                "exact": [self.exact],
                "seed": [self.seed],
                "n_notes": [len(self.notes)],
            },
            schema_overrides={"smallest_p": pl.Float64, "seed": pl.UInt64},
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return as_json(
            self,
            {"n_resamples": self.n_resamples},
            tests=self.frame,
            null=self.null,
            averages=self.averages,
        )

    def __repr__(self) -> str:
        how = "all" if self.exact else "drawn"
        gap = f"{self.control} - min({', '.join(self.marked)})"
        count = f"{self.n_arrangements:,} arrangements ({how})"
        lines = [f"Anchoring gap {gap} under relabelling of the voices, {count}"]
        lines += aligned(self.null, self.null.columns)
        lines += ["Averages over models", *aligned(self.averages, self.averages.columns)]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def anchoring_null(
    data: object,
    *,
    control: str,
    marked: Sequence[str] | None = None,
    voice: str | None = None,
    match: Match = "cell",
    weights: Weights = "scenario",
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> AnchoringNull:
    """Test the anchoring gap of each model against relabelling of the voices.

    With C the mean score in the control voice and M_v those in the marked voices, over the keys scored in all
    of them, the anchoring gap is

        A = C - min over v of M_v

    The labels of the voices are permuted within clusters, one relabelling a cluster for all models, variants,
    repetitions and conditions alike: `p_value = (1 + #{A* >= A}) / (R + 1)`, or `#{A* >= A}` over all
    arrangements where these are at most R.

    Parameters
    ----------
    data
        A `ResponseTable`, or a table that `ResponseTable(data)` takes, its columns under usual names.
    control
        The voice that the others are compared with.
    marked
        The marked voices. Default: all others.
    voice
        The condition column that holds the voices. Needed where there are several: each combination of the
        others is tested by itself.
    match, weights
        As in `analyze`.
    n_resamples
        R, and the most arrangements that are enumerated.
    seed, n_threads
        As in `analyze`.

    Returns
    -------
    AnchoringNull
        One row a model and condition.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument names what the table does not have.
    DataError, RoleError
        If the table cannot be read.
    DesignError
        If no key is scored in all voices, or there are two crossed cluster columns.

    Notes
    -----
    A is biased up. The minimum of means that are equal but for noise lies below them, so that A is positive
    on average where no voice differs: by the mean of its law, `null_mean`. Where the marked voices differ
    from the control alike the bias is about the same; where they differ from each other by much it vanishes.
    It does not shrink by averaging over models, which is why there is no estimate for all of them.

    The test assumes that the voices are exchangeable within clusters. Models whose answers do not differ
    between the voices in any cluster have p = 1, and are in no average.

    References
    ----------
    Phipson, B. and Smyth, G. K. (2010), Permutation p-values should never be zero, Statistical Applications
    in Genetics and Molecular Biology 9(1):39, doi:10.2202/1544-6115.1585.

    Examples
    --------
    >>> import triagestats as ts
    >>> right = {"plain": 6, "poor": 1, "proud": 2}
    >>> rows = [(s, v, int(s < n)) for v, n in right.items() for s in range(6)]
    >>> table = ts.ResponseTable(dict(zip(["scenario", "voice", "score"], zip(*rows))))
    >>> found = ts.anchoring_null(table, control="plain", n_resamples=99_999)
    >>> found.exact, round(found.null["observed"][0], 4), round(found.null["p_value"][0], 4)
    (True, 0.8333, 0.0082)
    """
    valid_choice("match", match, Match)
    valid_choice("weights", weights, Weights)
    drawn = {"n_resamples": valid_resamples(n_resamples), "seed": valid_seed(seed)}
    threads = thread_count(n_threads)
    table = data if isinstance(data, ResponseTable) else ResponseTable(data)
    design = design_of(table)
    if len(design.axes) > 1:
        raise DesignError(
            "a permutation within clusters needs one cluster column, and this table has two that cross; "
            "choose one with `table.with_cluster(...)`"
        )
    by_voice = voice_factor(design, _voice(design, voice), "voice")
    standard, others = marked_voices(by_voice, control, marked)
    if len(others) >= MOST_LABELS:
        raise ArgumentError(
            f"`marked` names {len(others)} voices; at most {MOST_LABELS - 1} can be permuted with the control"
        )
    estimand = AnchoringGap(standard, others)
    wanted = (standard, *others)
    metric = table.frame["metric"][0] if "metric" in table.frame.columns else None
    keys = keys_of(design, match)
    rows: list[dict[str, Any]] = []
    laws: list[Law] = []
    for condition, codes in _parts(design, by_voice.name, wanted):
        builder = TotalsBuilder(design.axes)
        target = Target(estimand, by_voice.name, (codes,))
        block = contrast_block(builder, design, keys, target, weights=weights, stratum=None)
        identity = {
            "estimand": estimand.name,
            "term": by_voice.name,
            "condition": condition,
            "contrast": estimand.label,
            "metric": metric,
        }
        found = {} if block is None else laws_of(block, builder, condition, design, threads=threads, **drawn)
        laws += found.values()
        planned = design.planned(codes, match)
        for model in range(len(design.models)):
            named = identity | {"model": design.models[model] if design.has_models else None}
            rows.append(named | row_of(found.get(model), planned))
    if not laws:
        raise DesignError(f"no key is scored in all of the voices {list(wanted)} with match={match!r}")
    return AnchoringNull(
        frame=tidy_frame(rows),
        null=pl.DataFrame([law.shown() for law in laws], schema=NULL_SCHEMA),
        averages=averages_of(laws),
        n_arrangements=max(len(law.values) for law in laws),
        exact=all(law.exact for law in laws),
        control=standard,
        marked=others,
        **drawn,
        notes=(
            *table.notes,
            *(note for note in design.notes if note.code != "reference"),
            _BY_MODEL,
            *_notes(laws),
        ),
    )


def _voice(design: Design, voice: str | None) -> str:
    """The condition column of the voices; the only one where none is named."""
    if voice is not None:
        return voice
    names = [factor.name for factor in design.factors]
    if len(names) != 1:
        raise ArgumentError(
            f"`voice` must name the condition column that holds the voices, one of {names}"
            if names
            else "`voice` needs a condition column; name it with `condition=` where the table is made"
        )
    return names[0]


def _parts(design: Design, voice: str, wanted: Sequence[str]) -> list[tuple[str | None, tuple[int, ...]]]:
    """The other conditions, and the codes of the voices there."""
    names = [factor.name for factor in design.factors]
    place = names.index(voice)
    of_other: dict[tuple[str, ...], dict[str, int]] = {}
    for code, level in enumerate(design.levels):
        other = (*level.parts[:place], *level.parts[place + 1 :])
        of_other.setdefault(other, {})[level.parts[place]] = code
    parts = [
        (", ".join(other) or None, tuple(codes[one] for one in wanted))
        for other, codes in of_other.items()
        if all(one in codes for one in wanted)
    ]
    if not parts:
        raise DesignError(f"the voices {list(wanted)} never occur with the same other conditions")
    return parts


def _notes(laws: Sequence[Law]) -> list[Note]:
    moving = [float(law.values.mean()) for law in laws if law.moves]
    notes = []
    if moving:
        message = (
            f"Where no voice differs the anchoring gap is {np.mean(moving):.4f} on average: its bias where "
            "the marked voices tie. Where these differ from each other the bias is less."
        )
        notes.append(Note("bias", message))
    still = [
        " ".join(filter(None, (law.model, law.condition))) or "the model" for law in laws if not law.moves
    ]
    if still:
        message = f"No voice differs in any cluster of {', '.join(still)}: p = 1, and in no average."
        notes.append(Note("degenerate", message, "caution"))
    return notes
