"""Answers in several voices: tables by condition and model, and the fits that entries read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from triagestats.agreement.kappa import cohen_kappa
from triagestats.bootstraps import bootstrap
from triagestats.errors import ArgumentError
from triagestats.estimands import AnchoringGap, Difference, Estimand, Function, Gap, Mean
from triagestats.labels import listed
from triagestats.models.linear import lpm
from triagestats.replicate.entry import Clustered, NotDerivableError
from triagestats.replicate.fits import Fit
from triagestats.replicate.tables import Folder
from triagestats.results import Test
from triagestats.table import ResponseTable
from triagestats.triage.anchoring import AnchoringNull, anchoring_null
from triagestats.triage.gaps import GapComparison, compare_gaps

if TYPE_CHECKING:
    from triagestats.models.linear_model import LinearModel

__all__ = ["CLUSTER", "OVERALL", "Voices", "answer_of"]

CLUSTER: Final = "question_id"
OVERALL: Final = "overall"
UNREAD: Final = "unread"
"""The letter of an answer that was not read, where that is a category of its own."""
_FILE: Final = "responses.csv.gz"


@dataclass(frozen=True, slots=True)
class Voices:
    """Tables of the study, and what is fitted to them once.

    Attributes
    ----------
    folder
        The folder.
    voices
        The control voice, then the marked ones.
    """

    folder: Folder
    voices: tuple[str, ...]

    @property
    def control(self) -> str:
        """The voice that the others are compared with."""
        return self.voices[0]

    @property
    def marked(self) -> tuple[str, ...]:
        """The other voices."""
        return self.voices[1:]

    def rows(self, condition: str | None = None, models: Sequence[str] | None = None) -> pl.DataFrame:
        """Answers of one condition or of all, of some models or of all; `correct` as a number.

        Raises
        ------
        NotDerivableError
            If there are none in the folder.
        """
        rows = self.folder.table(_FILE).with_columns(pl.col("correct").cast(pl.Float64))
        if condition is not None:
            rows = rows.filter(pl.col("condition") == condition)
        if models is not None:
            rows = rows.filter(pl.col("model").is_in(list(models)))
            if absent := sorted(set(models) - set(rows["model"])):
                where = f" under {condition}" if condition else ""
                raise NotDerivableError(
                    f"rows are not in the folder: no answers of {', '.join(absent)}{where}"
                )
        if rows.is_empty():
            raise NotDerivableError(f"rows are not in the folder: no answers under {condition}")
        return rows

    def models(self, condition: str) -> tuple[str, ...]:
        """All models of a condition."""
        return tuple(sorted(self.rows(condition)["model"].unique()))

    def read_models(self, *conditions: str) -> tuple[str, ...]:
        """Models of which some answer could be read under each of the conditions."""
        found: set[str] | None = None
        for condition in conditions:
            rows = self.rows(condition).filter(pl.col("answer").is_not_null())
            found = set(rows["model"]) if found is None else found & set(rows["model"])
        return tuple(sorted(found or ()))

    def wide(self, condition: str, model: str, values: str) -> pl.DataFrame:
        """One row a question, one column a voice."""

        def make() -> pl.DataFrame:
            rows = self.rows(condition, [model])
            if missing := [voice for voice in self.voices if voice not in set(rows["voice"])]:
                raise NotDerivableError(f"rows are not in the folder: no answers in {', '.join(missing)}")
            return rows.pivot(on="voice", index=CLUSTER, values=values).sort(CLUSTER)

        return self.folder.once(("wide", condition, model, values), make)

    def pair(self, condition: str, model: str, pair: str) -> tuple[pl.DataFrame, str, str]:
        """Scores of a model, and the two voices of a name such as `alpha-beta`."""
        first, _, second = pair.partition("-")
        wide = self.wide(condition, model, "correct")
        for voice in (first, second):
            if voice not in wide.columns:
                raise NotDerivableError(f"{voice!r} is none of the voices {listed(self.voices)}")
        return wide, first, second

    def letter_kappa(
        self, condition: str, model: str, first: str, second: str, *, unread_counts: bool
    ) -> tuple[Test, int]:
        """Kappa of the letters in two voices, and their number; unread answers dropped, or a category."""
        letters = self.wide(condition, model, "answer").select(first, second)
        letters = letters.fill_null(UNREAD) if unread_counts else letters.drop_nulls()
        if letters.is_empty():
            raise NotDerivableError("no answer could be read in both voices")
        return cohen_kappa(letters[first], letters[second]), letters.height

    def gaps(self, condition: str, models: Sequence[str] | None = None) -> Fit:
        """Means, gap and anchoring gap of a condition, by model and pooled, with percentile intervals."""
        key = ("gaps", condition, None if models is None else tuple(sorted(models)))

        def make() -> Fit:
            return self.fit(self.rows(condition, models), self._estimands())

        return self.folder.once(key, make)

    def fit(self, rows: pl.DataFrame, estimands: Sequence[Estimand]) -> Fit:
        """Estimands of the voices in some rows."""
        kept = rows.filter(pl.col("voice").is_in(list(self.voices))).drop("condition")
        table = ResponseTable(kept, condition="voice")
        return Fit(bootstrap(table, list(estimands), interval="percentile"))

    def _estimands(self) -> list[Estimand]:
        return [
            *map(Mean, self.voices),
            Gap(self.control, self.marked),
            AnchoringGap(self.control, self.marked),
        ]

    def changes(self, before: str, after: str) -> Fit:
        """Changes between two conditions: of each voice, of their mean, and of the anchoring gap."""

        def make() -> Fit:
            rows = self.rows().filter(pl.col("condition").is_in([before, after]))
            for one in (before, after):
                self.rows(one)
            joint = rows.with_columns(pl.format("{}: {}", "condition", "voice").alias("joint"))
            table = ResponseTable(joint.drop("condition", "voice"), condition="joint")
            names = {one: [f"{one}: {voice}" for voice in self.voices] for one in (before, after)}
            pairs = [Difference(a, b) for a, b in zip(names[after], names[before], strict=True)]
            anchoring = [AnchoringGap(names[one][0], names[one][1:]) for one in (after, before)]
            estimands: list[Estimand] = [
                *pairs,
                Function(_mean_of, pairs, name="overall_change", null=0.0),
                Function(_difference_of, anchoring, name="anchoring_change", smooth=False, null=0.0),
            ]
            return Fit(bootstrap(table, estimands, interval="percentile"))

        return self.folder.once(("changes", before, after), make)

    def compared(self, before: str, after: str, weights: str = "scenario") -> GapComparison:
        """Gaps of two conditions, their reduction and the victims, with percentile intervals."""

        def make() -> GapComparison:
            for one in (before, after):
                self.rows(one)
            rows = self.rows().filter(pl.col("condition").is_in([before, after]))
            return compare_gaps(
                rows,
                method="condition",
                voice="voice",
                control=self.control,
                marked=list(self.marked),
                baseline=before,
                interval="percentile",
                weights=weights,  # type: ignore[arg-type]  # one of its options
            )

        return self.folder.once(("compared", before, after, weights), make)

    def reduction(self, before: str, after: str, model: str, level: float) -> Mapping[str, Any]:
        """The row of the reduction of the gap at a level, for a model.

        Raises
        ------
        NotDerivableError
            If there is none.
        """

        def make() -> pl.DataFrame:
            gaps = self.compared(before, after).with_level(level).gaps
            return gaps.filter(pl.col("estimand") == "gap_reduction")

        found = self.folder.once(("reduction", before, after, level), make)
        rows = found.filter(pl.col("model") == model)
        if rows.is_empty():
            raise NotDerivableError(f"rows are not in the folder: no answers of {model}")
        return rows.row(0, named=True)

    def null(self) -> AnchoringNull:
        """Anchoring gaps under relabelling of the voices, of all conditions and models."""

        def make() -> AnchoringNull:
            table = ResponseTable(self.rows(), condition=["condition", "voice"])
            return anchoring_null(table, voice="voice", control=self.control, marked=list(self.marked))

        return self.folder.once(("null",), make)

    def regression(self, condition: str, models: Sequence[str], formula: str) -> LinearModel:
        """The linear probability model of a formula on `marked` or on one column a voice.

        Raises
        ------
        NotDerivableError
            If the extra of the models is not installed.
        """

        def make() -> LinearModel:
            voices = [(pl.col("voice") == voice).cast(pl.Float64).alias(voice) for voice in self.voices]
            marked = (pl.col("voice") != self.control).cast(pl.Float64).alias("marked")
            rows = self.rows(condition, models).with_columns(marked, *voices)
            try:
                return lpm(formula, rows, cluster=CLUSTER)
            except (ArgumentError, ImportError) as error:
                raise NotDerivableError(f"the regression cannot be fitted: {error}") from None

        return self.folder.once(("lpm", condition, tuple(sorted(models)), formula), make)


def answer_of(
    about: str, row: Mapping[str, Any], *, p_value: float | None = None, note: str = ""
) -> Clustered:
    """The clustered answer of a tidy row, by question."""
    return Clustered(
        about=about,
        estimate=row["estimate"],
        conf_low=row["conf_low"],
        conf_high=row["conf_high"],
        p_value=row["p_value"] if p_value is None else p_value,
        n_clusters=row["n_clusters"],
        cluster="question",
        method=row["method"] or "",
        note=note,
    )


def _mean_of(values: Any) -> Any:
    return values.mean(axis=-1)


def _difference_of(values: Any) -> Any:
    return values[..., 0] - values[..., 1]
