"""narrativeshield: exam questions told in three voices, under several methods."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats.agreement.kappa import cohen_kappa
from triagestats.estimands import AnchoringGap, Difference, Gap, Mean
from triagestats.mcnemar_tests import mcnemar
from triagestats.proportions import proportion_ci
from triagestats.replicate.clusters import mean_by_cluster, of_test
from triagestats.replicate.entry import Clustered, Found, NotDerivableError
from triagestats.replicate.montecarlo import band_of_mean, bands_of_tail
from triagestats.replicate.published import Expected, Published
from triagestats.replicate.ratings import Ratings
from triagestats.replicate.tables import Folder, Recipes
from triagestats.replicate.voice_blocks import VoiceBlocks
from triagestats.replicate.voices import CLUSTER, OVERALL, Voices, answer_of

__all__ = ["BLOCKS", "recipes"]

BLOCKS: Final = {
    "cells": 1,
    "published_only_cells": 1,
    "lpm": 1,
    "bootstrap_": 1,
    "nag_permutation_null": 1,
    "transitions": 1,
    "annotations": 0,
    "b1_control": 0,
    "superset": 0,
    "subgroup_gap": 1,
    "MQ_": 0,
    "mean_letter_kappa": 0,
}
_VOICES: Final = ("alpha", "beta", "gamma")
_CELL: Final = r"(?P<condition>[^/-]+)/(?P<model>[^/]+)"
_FORMULA: Final = f"correct ~ marked | {CLUSTER}^model"


def recipes(folder: Folder, expected: Expected) -> Recipes:
    """Recipes for the entries of the study."""
    named = expected.conventions.get("voices")
    voices = tuple(map(str, named)) if isinstance(named, list) and len(named) > 1 else _VOICES
    tables = Voices(folder, voices)
    cells, paper = _Cells(tables), _Paper(tables)
    ratings, blocks = Ratings(folder), VoiceBlocks(tables)
    return Recipes(
        (
            (r"annotations/kruskal_(H|p)", ratings.between_voices),
            (r"annotations/mwu_(U|p)/([^/-]+)-([^/-]+)", ratings.two_voices),
            (r"annotations/krippendorff_(nominal|ordinal|interval|ratio)_(all\w*|excl\w*)", ratings.alpha),
            (r"annotations/icc(\d)(1|k)_(all\w*|excl\w*)", ratings.intraclass),
            (r"annotations/percent_agreement/([^/-]+)-([^/-]+)", ratings.agreement),
            (r"annotations/(\w+)_(mean|sd)/([^/]+)/([^/]+)", ratings.moment),
            (r"annotations", ratings.block),
            (r"paper/gap_([^/_]+)/([^/]+)", paper.gap),
            (r"paper/nag_(min|max)_([^/_]+)(?:_without_(\w+))?", paper.extreme),
            (r"paper/pooled_effect_([^/_]+)", paper.effect),
            (r"paper/nag_null_(mean|p95)", paper.null),
            (r"paper/mean_acc_([^/_]+)/([^/]+)", paper.accuracy),
            (r"paper/words_(\w+)", paper.words),
            (r"paper/orig_verbatim_(\w+)", paper.verbatim),
            (r"paper/kappa_letters_mean", paper.letters),
            (r"paper/([^/_]+)_gap_reduction_share", paper.reduction),
            (r"paper/superset_gap", paper.superset),
            (rf"cells/{_CELL}", blocks.cell),
            (r"published_only_cells/([^/]+)/([^/]+)", blocks.elsewhere),
            (r"lpm/.+", blocks.regression),
            (r"bootstrap_\d+/([^/]+)/([^/]+)", blocks.bootstrapped),
            (r"nag_permutation_null_\d+/([^/]+)/([^/]+)", blocks.null),
            (r"transitions_(\w+)_to_(\w+)/(.+)", blocks.transitions),
            (r"(\w+?)_control_vs_marked_significance", blocks.significance),
            (r"superset_(\w+)", blocks.superset),
            (r"subgroup_gap_([^_]+)\w*/(.+)", blocks.subgroup),
            (r"(MQ_\d+)_(\w+)_letters", blocks.letters),
            (r"mean_letter_kappa_(\w+)", blocks.letter_kappa),
            (rf"{_CELL}/acc/(?P<voice>[^/]+)", cells.accuracy),
            (rf"{_CELL}/wilson_(?P<end>lo|hi)/(?P<voice>[^/]+)", cells.wilson),
            (rf"{_CELL}/nag", cells.anchoring),
            (rf"{_CELL}/gap", cells.gap),
            (rf"{_CELL}/mcnemar_p/(?P<pair>[^/]+)", cells.mcnemar),
            (rf"{_CELL}/kappa_correctness/(?P<pair>[^/]+)", cells.kappa),
            (rf"{_CELL}/kappa_letters\w*/(?P<pair>[^/]+)", cells.letters),
            (rf"{_CELL}/parse_rate", cells.parsed),
            (r"(?P<after>[^/-]+)-(?P<before>[^/-]+)/(?P<model>[^/]+)/(?P<what>acc_\w+|nag)", cells.change),
        )
    )


@dataclass(frozen=True, slots=True)
class _Cells:
    """Recipes for the published numbers of one model under one condition."""

    tables: Voices

    def accuracy(self, _published: Published, match: re.Match[str]) -> Found:
        values, _ = self._values(match)
        return Found(float(values.to_numpy().mean()), clustered=(self._rate(match),))

    def wilson(self, _published: Published, match: re.Match[str]) -> Found:
        values, _ = self._values(match)
        test = proportion_ci(int(values.sum()), len(values))
        end = test.conf_low if match["end"] == "lo" else test.conf_high
        return Found(end, clustered=(self._rate(match),))

    def anchoring(self, _published: Published, match: re.Match[str]) -> Found:
        condition, model = match["condition"], match["model"]
        self.tables.wide(condition, model, "correct")
        voices = self.tables
        label = AnchoringGap(voices.control, voices.marked).label
        row = voices.gaps(condition).row(label, model)
        null = voices.null().null.filter((pl.col("condition") == condition) & (pl.col("model") == model))
        p_value = null["p_value"][0] if null.height else None
        note = (
            "" if not null.height else f"{null['null_mean'][0]:.4f} on average if the voices did not differ"
        )
        return Found(row["estimate"], clustered=(answer_of(label, row, p_value=p_value, note=note),))

    def gap(self, _published: Published, match: re.Match[str]) -> Found:
        self.tables.wide(match["condition"], match["model"], "correct")
        label = Gap(self.tables.control, self.tables.marked).label
        row = self.tables.gaps(match["condition"]).row(label, match["model"])
        return Found(row["estimate"], clustered=(answer_of(label, row),))

    def mcnemar(self, _published: Published, match: re.Match[str]) -> Found:
        wide, first, second = self.tables.pair(match["condition"], match["model"], match["pair"])
        test = mcnemar(wide[first], wide[second], method="chi2-corrected")
        exact = mcnemar(wide[first], wide[second], method="exact")
        low, high = (exact.details[f"difference_{end}"] for end in ("low", "high"))
        answer = Clustered(
            f"{first} - {second}",
            exact.details["difference"],
            low,
            high,
            exact.p_value,
            wide.height,
            "question",
            "exact McNemar; Tango's interval of the difference",
            "one pair a question, so that questions are what the test takes as independent",
        )
        return Found(test.p_value, clustered=(answer,), note=test.undefined or "")

    def kappa(self, _published: Published, match: re.Match[str]) -> Found:
        wide, first, second = self.tables.pair(match["condition"], match["model"], match["pair"])
        test = cohen_kappa(wide[first], wide[second])
        answer = self._by_question(of_test(f"kappa of {first} and {second}", test, "question"), wide.height)
        return Found(test.estimate, clustered=(answer,), note=test.undefined or "")

    def letters(self, published: Published, match: re.Match[str]) -> Found:
        condition, model = match["condition"], match["model"]
        _, first, second = self.tables.pair(condition, model, match["pair"])
        counts = "category" in published.id or "own category" in published.recipe
        test, n = self.tables.letter_kappa(condition, model, first, second, unread_counts=counts)
        answer = self._by_question(of_test(f"kappa of {first} and {second}", test, "question"), n)
        return Found(test.estimate, clustered=(answer,), note=test.undefined or "")

    def parsed(self, _published: Published, match: re.Match[str]) -> Found:
        rows = self.tables.rows(match["condition"], [match["model"]])
        read = rows["answer"].is_not_null().cast(pl.Float64)
        answer = mean_by_cluster("read", read, rows[CLUSTER], "question")
        return Found(float(read.to_numpy().mean()), clustered=(answer,))

    def change(self, published: Published, match: re.Match[str]) -> Found:
        """A difference of two rounded values, as the recipe says, or of the values themselves."""
        before, after, model, what = (match[name] for name in ("before", "after", "model", "what"))
        digits = re.search(r"(\d+)-decimal", published.recipe)
        ends = []
        for condition in (after, before):
            value = self._of(condition, model, what)
            ends.append(round(value, int(digits[1])) if digits else value)
        fit = self.tables.changes(before, after)
        voice = what.removeprefix("acc_")
        labels = {"nag": "anchoring_change", f"acc_{OVERALL}": "overall_change"}
        label = labels.get(what, Difference(f"{after}: {voice}", f"{before}: {voice}").label)
        answer = answer_of(f"{what}, {after} - {before}", fit.row(label, model))
        return Found(ends[0] - ends[1], clustered=(answer,))

    def _of(self, condition: str, model: str, what: str) -> float:
        """A rate, or the anchoring gap."""
        wide = self.tables.wide(condition, model, "correct")
        means = {voice: float(wide[voice].to_numpy().mean()) for voice in self.tables.voices}
        if what == "nag":
            return means[self.tables.control] - min(means[voice] for voice in self.tables.marked)
        voice = what.removeprefix("acc_")
        if voice == OVERALL:
            return float(np.mean(list(means.values())))
        if voice not in means:
            raise NotDerivableError(f"{voice!r} is none of the voices")
        return means[voice]

    def _values(self, match: re.Match[str]) -> tuple[pl.Series, pl.Series]:
        """Scores and questions of one voice, or of all."""
        voice = match["voice"]
        if voice == OVERALL:
            rows = self.tables.rows(match["condition"], [match["model"]])
            return rows["correct"], rows[CLUSTER]
        wide = self.tables.wide(match["condition"], match["model"], "correct")
        if voice not in self.tables.voices:
            raise NotDerivableError(f"{voice!r} is none of the voices")
        return wide[voice], wide[CLUSTER]

    def _rate(self, match: re.Match[str]) -> Clustered:
        """The rate by question: of one voice each question answers once, of all of them several times."""
        values, questions = self._values(match)
        key = ("rate", match["condition"], match["model"], match["voice"])

        def make() -> Clustered:
            number = questions.n_unique()
            if match["voice"] == OVERALL and 0 < values.sum() < len(values):
                return mean_by_cluster(OVERALL, values, questions, "question")
            right = (
                int(values.sum())
                if len(values) == number
                else round(float(values.sum()) * number / len(values))
            )
            test = proportion_ci(right, number)  # at 0 and 1 as many answers as questions
            return self._by_question(of_test(match["voice"], test, "question"), number)

        return self.tables.folder.once(key, make)

    def _by_question(self, answer: Clustered, number: int) -> Clustered:
        return Clustered(
            answer.about,
            answer.estimate,
            answer.conf_low,
            answer.conf_high,
            answer.p_value,
            number,
            answer.cluster,
            answer.method,
            answer.note,
        )


@dataclass(frozen=True, slots=True)
class _Paper:
    """Recipes for the numbers in the text of the paper."""

    tables: Voices

    def gap(self, _published: Published, match: re.Match[str]) -> Found:
        self.tables.wide(match[1], match[2], "correct")
        label = Gap(self.tables.control, self.tables.marked).label
        row = self.tables.gaps(match[1]).row(label, match[2])
        return Found(row["estimate"], clustered=(answer_of(label, row),))

    def extreme(self, _published: Published, match: re.Match[str]) -> Found:
        """The smallest or largest anchoring gap over the models."""
        label = AnchoringGap(self.tables.control, self.tables.marked).label
        fit = self.tables.gaps(match[2])
        models = [model for model in self.tables.models(match[2]) if model != match[3]]
        rows = {model: fit.row(label, model) for model in models}
        pick: Callable[..., str] = min if match[1] == "min" else max
        model = pick(rows, key=lambda name: rows[name]["estimate"])
        note = "the extreme of several estimates lies further out than the true extreme does"
        return Found(
            rows[model]["estimate"],
            clustered=(answer_of(f"{label}, {model}", rows[model], note=note),),
        )

    def effect(self, _published: Published, match: re.Match[str]) -> Found:
        fit = self.tables.regression(match[1], self.tables.models(match[1]), _FORMULA)
        (row,) = fit.tidy().iter_rows(named=True)
        return Found(row["estimate"], clustered=(answer_of("marked", row),))

    def null(self, published: Published, match: re.Match[str]) -> Found:
        """The average over models of the mean, or of the 95th percentile, of the law under relabelling."""
        condition = self._first_condition()
        law = self.tables.null()
        row = _one(law.averages, condition)
        of_models = law.null.filter((pl.col("condition") == condition) & (pl.col("null_std") > 0))
        if of_models.is_empty():
            raise NotDerivableError(f"no voice differs under {condition}")
        spread = float(of_models["null_std"].to_numpy().mean()) / np.sqrt(of_models.height)
        value = row["null_mean"] if match[1] == "mean" else row["null_q95"]
        bands = {}
        if published.n_replicates:
            sizes = (published.n_replicates, law.n_resamples)
            if match[1] == "mean":
                bands[""] = band_of_mean(value, spread, *sizes)
            else:
                bands[""] = bands_of_tail(value, 0.0, _TAIL_DENSITY / spread, *sizes)
        return Found(value, bands=bands, note="draws of the models are taken as independent of each other")

    def accuracy(self, _published: Published, match: re.Match[str]) -> Found:
        row = self.tables.gaps(match[1]).row(Mean(match[2]).label, None)
        return Found(row["estimate"], clustered=(answer_of(match[2], row),))

    def words(self, _published: Published, match: re.Match[str]) -> Found:
        questions = self._questions(f"words_{match[1]}")
        values = questions[f"words_{match[1]}"].cast(pl.Float64)
        answer = mean_by_cluster("words", values, questions[CLUSTER], "question")
        return Found(float(values.to_numpy().mean()), clustered=(answer,))

    def verbatim(self, _published: Published, match: re.Match[str]) -> Found:
        voices = self.tables.marked if match[1] == "any" else (match[1],)
        names = [f"orig_verbatim_in_{voice}" for voice in voices]
        questions = self._questions(*names)
        held = questions.select(pl.any_horizontal(pl.col(name) == "1" for name in names)).to_series()
        answer = mean_by_cluster("share", held.cast(pl.Float64), questions[CLUSTER], "question")
        return Found(int(held.sum()), clustered=(answer,))

    def letters(self, _published: Published, _match: re.Match[str]) -> Found:
        condition = self._first_condition()
        voices = self.tables
        found = [
            voices.letter_kappa(condition, model, voices.control, voice, unread_counts=True)[0].estimate
            for model in voices.models(condition)
            for voice in voices.marked
        ]
        known = [kappa for kappa in found if kappa is not None]
        if not known:
            raise NotDerivableError("no kappa of letters is defined")
        return Found(float(np.mean(known)), note="a mean over models of kappas: no interval is given for it")

    def reduction(self, _published: Published, match: re.Match[str]) -> Found:
        found = self.tables.compared(self._first_condition(), match[1])
        rows = found.gaps.filter((pl.col("estimand") == "relative_gap_reduction") & pl.col("model").is_null())
        row = rows.row(rows.height - 1, named=True)  # without models of which nothing was read, if any
        return Found(row["estimate"], clustered=(answer_of("relative reduction of the gap", row),))

    def superset(self, _published: Published, _match: re.Match[str]) -> Found:
        voice = self.tables.marked[0]
        questions = self._questions(f"orig_verbatim_in_{voice}")
        kept = questions.filter(pl.col(f"orig_verbatim_in_{voice}") == "1")[CLUSTER]
        rows = self.tables.rows(self._first_condition()).filter(pl.col(CLUSTER).is_in(kept.implode()))
        label = Difference(self.tables.control, voice)
        row = self.tables.fit(rows, [label]).row(label.label, None)
        return Found(row["estimate"], clustered=(answer_of(label.label, row),))

    def _questions(self, *columns: str) -> pl.DataFrame:
        questions = self.tables.folder.table("questions.csv")
        if absent := [name for name in columns if name not in questions.columns]:
            raise NotDerivableError(f"rows are not in the folder: questions.csv has no column {absent[0]}")
        return questions

    def _first_condition(self) -> str:
        """The condition that the others are compared with: the first by name."""
        return str(min(self.tables.rows()["condition"].unique()))


_TAIL_DENSITY: Final = 0.1031
"""Density of the standard normal law at its 95th percentile."""


def _one(frame: pl.DataFrame, condition: str) -> Mapping[str, Any]:
    rows = frame.filter(pl.col("condition") == condition)
    if rows.is_empty():
        raise NotDerivableError(f"rows are not in the folder: no answers under {condition}")
    return rows.row(0, named=True)
