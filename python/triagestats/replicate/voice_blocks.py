"""Reference values of the narrativeshield folder: cells, regressions, bootstraps, nulls, transitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats.agreement.kappa import cohen_kappa
from triagestats.defaults import N_RESAMPLES
from triagestats.estimands import AnchoringGap, Difference, Gap
from triagestats.mcnemar_tests import mcnemar
from triagestats.replicate.entry import Found, NotDerivableError
from triagestats.replicate.fits import LEVEL
from triagestats.replicate.montecarlo import (
    Band,
    band_of_mean,
    band_of_p,
    band_of_spread,
    bands_of_ends,
    bands_of_tail,
)
from triagestats.replicate.published import Published
from triagestats.replicate.voices import CLUSTER, Voices, answer_of

__all__ = ["VoiceBlocks"]

_TAIL_DENSITY: Final = 0.1031
"""Density of the standard normal law at its 95th percentile."""
_WORDS: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class VoiceBlocks:
    """Recipes for reference values.

    Attributes
    ----------
    tables
        Tables and fits.
    """

    tables: Voices

    def cell(self, _published: Published, match: re.Match[str]) -> Found:
        """One model under one condition: rates, gaps, and pairs of voices."""
        condition, model = match["condition"], match["model"]
        voices = self.tables
        wide = voices.wide(condition, model, "correct")
        means = {voice: float(wide[voice].to_numpy().mean()) for voice in voices.voices}
        marked = [means[voice] for voice in voices.marked]
        value: dict[str, Any] = {
            "n_questions": wide.height,
            **{f"acc_{voice}": mean for voice, mean in means.items()},
            "acc_overall": float(np.mean(list(means.values()))),
            "nag": means[voices.control] - min(marked),
            "gap": means[voices.control] - float(np.mean(marked)),
            "n_unparsed": voices.rows(condition, [model])["answer"].null_count(),
            "pairs": {
                f"{first}-{second}": self._pair(condition, model, first, second)
                for first, second in combinations(voices.voices, 2)
            },
        }
        fit = voices.gaps(condition)
        labels = [kind(voices.control, voices.marked).label for kind in (Gap, AnchoringGap)]
        return Found(value, clustered=tuple(answer_of(label, fit.row(label, model)) for label in labels))

    def elsewhere(self, _published: Published, match: re.Match[str]) -> Found:
        """Printed numbers of a condition whose rows the folder does not have."""
        voices = self.tables
        wide = voices.wide(match[1], match[2], "correct")
        means = {voice: float(wide[voice].to_numpy().mean()) for voice in voices.voices}
        nag = means[voices.control] - min(means[voice] for voice in voices.marked)
        overall = float(np.mean(list(means.values())))
        digits = 4
        value = {f"acc_{voice}": round(mean, digits) for voice, mean in means.items()}
        return Found(value | {"acc_overall": round(overall, digits), "nag": round(nag, digits)})

    def regression(self, published: Published, _match: re.Match[str]) -> Found:
        """A linear probability model with errors by question."""
        said = published.recomputed or {}
        try:
            condition, models, formula = said["condition"], said["models"], said["formula"]
        except KeyError as error:
            raise NotDerivableError(f"the entry does not say its {error.args[0]}") from None
        fit = self.tables.regression(condition, models, formula)
        glance = fit.glance().row(0, named=True)
        rows = {str(row["term"]): row for row in fit.tidy().iter_rows(named=True)}
        terms = {
            name: {
                "coef": row["estimate"],
                "pyfixest": {
                    "se": row["std_error"],
                    "ci95": [row["conf_low"], row["conf_high"]],
                    "t": row["statistic"],
                    "p": row["p_value"],
                },
            }
            for name, row in rows.items()
        }
        value = {"N": glance.get("n_rows"), "terms": terms}
        value["G"] = next(iter(rows.values()))["n_clusters"]
        return Found(value, clustered=tuple(answer_of(name, row) for name, row in rows.items()))

    def bootstrapped(self, published: Published, match: re.Match[str]) -> Found:
        """Gaps with percentile intervals, and their reduction between two conditions."""
        where, model = match[1], match[2]
        if "-" in where:
            before, _, after = where.partition("-")
            return self._reduction(published, before, after, model)
        voices = self.tables
        pooled = model.startswith("mean_over")
        models = None
        if pooled:
            named = (published.recomputed or {}).get("models")
            models = named if named else list(self._usable())
        fit = voices.gaps(where, models)
        of_model = None if pooled else model
        gap, nag = (kind(voices.control, voices.marked).label for kind in (Gap, AnchoringGap))
        row = fit.row(gap, of_model)
        value: dict[str, Any] = {
            "gap": row["estimate"],
            "gap_ci95": [row["conf_low"], row["conf_high"]],
            "gap_boot_sd": row["std_error"],
        }
        bands = fit.bands("gap_ci95", gap, of_model, published.n_replicates)
        if published.n_replicates and row["std_error"]:
            bands["gap_boot_sd"] = band_of_spread(row["std_error"], published.n_replicates, N_RESAMPLES)
        answers = [answer_of(gap, row)]
        if not pooled:
            other = fit.row(nag, of_model)
            value |= {"nag": other["estimate"], "nag_ci95": [other["conf_low"], other["conf_high"]]}
            bands |= fit.bands("nag_ci95", nag, of_model, published.n_replicates)
            answers.append(answer_of(nag, other))
        return Found(value, bands=bands, clustered=tuple(answers))

    def null(self, published: Published, match: re.Match[str]) -> Found:
        """The anchoring gap under relabelling of the voices."""
        condition, model = match[1], match[2]
        law = self.tables.null()
        source, library = published.n_replicates, law.n_resamples
        rows = law.null.filter(pl.col("condition") == condition)
        bands: dict[str, Band] = {}
        step = 1 / self.tables.rows(condition)[CLUSTER].n_unique()
        if model in ("average_of_models", "pooled_draws"):
            averages = law.averages.filter(pl.col("condition") == condition)
            if averages.is_empty():
                raise NotDerivableError(f"rows are not in the folder: no answers under {condition}")
            row = averages.row(0, named=True)
            tail = row["null_q95"] if model == "average_of_models" else row["pooled_q95"]
            moving = rows.filter(pl.col("null_std") > 0)
            if moving.is_empty():
                raise NotDerivableError(f"no voice differs under {condition}")
            spread = float(moving["null_std"].to_numpy().mean()) / np.sqrt(moving.height)
            value = {"mean": row["null_mean"], "p95": tail}
            if source:
                bands["mean"] = band_of_mean(row["null_mean"], spread, source, library)
                bands["p95"] = bands_of_tail(tail, step, _TAIL_DENSITY / spread, source, library)
            return Found(
                value, bands=bands, note="draws of the models are taken as independent of each other"
            )
        rows = rows.filter(pl.col("model") == model)
        if rows.is_empty():
            raise NotDerivableError(f"rows are not in the folder: no answers of {model} under {condition}")
        row = rows.row(0, named=True)
        value = {
            "mean": row["null_mean"],
            "p95": row["null_q95"],
            "sd": row["null_std"],
            "observed": row["observed"],
            "p_value": row["p_value"],
        }
        if source:
            sizes = (source, library)
            bands = {
                "mean": band_of_mean(row["null_mean"], row["null_std"], *sizes),
                "p95": bands_of_tail(row["null_q95"], step, _TAIL_DENSITY / row["null_std"], *sizes),
                "sd": band_of_spread(row["null_std"], *sizes),
                "p_value": band_of_p(row["p_value"], *sizes),
            }
        return Found(value, bands=bands)

    def transitions(self, _published: Published, match: re.Match[str]) -> Found:
        """Victims that a method recovers, and right answers that it breaks."""
        before, after, model = match[1], match[2], match[3]
        found = self.tables.compared(before, after)
        shares = ("recovered", "broken")
        pooled = model.startswith(("mean_of", "pooled"))
        counts = found.victims.filter(
            pl.col("stratum").is_not_null() if found.without and pooled else pl.col("stratum").is_null()
        )
        counts = counts.filter(pl.col("model").is_null() if pooled else pl.col("model") == model)
        if counts.is_empty():
            raise NotDerivableError(f"rows are not in the folder: no answers of {model} under {after}")
        if model.startswith("pooled"):
            row = counts.filter(pl.col("voice").is_null()).row(0, named=True)
            return Found({f"{share}_share": row[f"{share}_share"] for share in shares})
        gaps = found.gaps.filter(
            pl.col("estimand").is_in(list(shares))
            & (pl.col("model").is_null() if pooled else pl.col("model") == model)
        )
        if pooled and found.without:
            gaps = gaps.filter(pl.col("stratum").is_not_null())
        rows = {row["estimand"]: row for row in gaps.iter_rows(named=True)}
        value: dict[str, Any] = {f"{share}_share": rows[share]["estimate"] for share in shares}
        if not pooled:
            right = f"correct_{before}"
            by_voice = {
                row["voice"]: {name: row[name] for name in ("victims", *shares)} | {right: row["right"]}
                for row in counts.iter_rows(named=True)
            }
            whole = by_voice.pop(None)
            value |= {"by_voice": by_voice} | {name: whole[name] for name in ("victims", *shares)}
            value[f"marked_{right}"] = whole[right]
        return Found(value, clustered=tuple(answer_of(share, rows[share]) for share in shares))

    def significance(self, published: Published, match: re.Match[str]) -> Found:
        """How many comparisons of the control with a marked voice fall below a level."""
        condition = match[1].upper()
        voices = self.tables
        found: dict[str, list[float]] = {"cc": [], "exact": []}
        for model in voices.models(condition):
            wide = voices.wide(condition, model, "correct")
            for voice in voices.marked:
                for name, method in (("cc", "chi2-corrected"), ("exact", "exact")):
                    p = mcnemar(wide[voices.control], wide[voice], method=method).p_value  # type: ignore[arg-type]  # two of its options
                    found[name].append(1.0 if p is None else p)
        value: dict[str, Any] = {"tests": len(found["cc"])}
        for key in published.recomputed or {}:
            if said := re.fullmatch(r"(cc|exact)_p<([\d.]+)(?:/(\d+))?", key):
                bound = float(said[2]) / int(said[3] or 1)
                value[key] = sum(p < bound for p in found[said[1]])
        return Found(value)

    def superset(self, published: Published, match: re.Match[str]) -> Found:
        """The first marked voice on items that hold the original word for word."""
        voice = self.tables.marked[0]
        questions = self.tables.folder.table("questions.csv")
        kept = questions.filter(pl.col(f"orig_verbatim_in_{voice}") == "1")[CLUSTER]
        said = (published.recomputed or {}).get("models")
        rows = self.tables.rows(match[1], said).filter(pl.col(CLUSTER).is_in(kept.implode()))
        difference = Difference(self.tables.control, voice)
        fit = self.tables.fit(rows, [difference])
        row = fit.row(difference.label, None)
        value = {
            "n": row["n_clusters"],
            f"{self.tables.control}_minus_{voice}": row["estimate"],
            "ci95": [row["conf_low"], row["conf_high"]],
        }
        bands = fit.bands("ci95", difference.label, None, published.n_replicates)
        return Found(value, bands=bands, clustered=(answer_of(difference.label, row),))

    def subgroup(self, _published: Published, match: re.Match[str]) -> Found:
        """The gap in a part of the questions, mean of the models."""
        questions = self.tables.folder.table("questions.csv")
        column, _, level = match[2].partition("=")
        if level:
            kept = questions.filter(pl.col(column) == level)
        else:
            words = pl.sum_horizontal(pl.col(f"words_{voice}").cast(pl.Int64) for voice in self.tables.marked)
            half = words <= words.median()
            kept = questions.filter(half if column.startswith("shorter") else ~half)
        rows = self.tables.rows(match[1]).filter(pl.col(CLUSTER).is_in(kept[CLUSTER].implode()))
        gap = Gap(self.tables.control, self.tables.marked)
        row = self.tables.fit(rows, [gap]).row(gap.label, None)
        return Found({"n": row["n_clusters"], "gap": row["estimate"]}, clustered=(answer_of(gap.label, row),))

    def letters(self, _published: Published, match: re.Match[str]) -> Found:
        """How many models gave each letter to one question, by voice."""
        rows = self.tables.rows(match[2]).filter(pl.col(CLUSTER) == match[1])
        if rows.is_empty():
            raise NotDerivableError(f"rows are not in the folder: there is no question {match[1]}")
        counts = rows.drop_nulls("answer").group_by("voice", "answer").len().sort("voice", "answer")
        value: dict[str, dict[str, int]] = {}
        for voice, letter, number in counts.iter_rows():
            value.setdefault(voice, {})[letter] = number
        return Found(value, note="one question: nothing is inferred from it")

    def letter_kappa(self, published: Published, match: re.Match[str]) -> Found:
        """The mean kappa of letters in the control and a marked voice: of all models, or of those read."""
        voices, condition = self.tables, match[1]
        value = {}
        for word in published.recomputed or {}:
            models = voices.models(condition)
            if word not in _WORDS or len(models) != _WORDS.index(word):
                models = tuple(model for model in models if model in self._usable())
            found = [
                voices.letter_kappa(condition, model, voices.control, voice, unread_counts=True)[0].estimate
                for model in models
                for voice in voices.marked
            ]
            known = [kappa for kappa in found if kappa is not None]
            value[word] = float(np.mean(known)) if known else None
        return Found(value)

    def _usable(self) -> tuple[str, ...]:
        """Models of which something was read under every condition."""
        return self.tables.read_models(*sorted(self.tables.rows()["condition"].unique()))

    def _pair(self, condition: str, model: str, first: str, second: str) -> dict[str, Any]:
        """Counts, tests and kappas of two voices."""
        wide = self.tables.wide(condition, model, "correct")
        x, y = wide[first], wide[second]
        letters = self.tables.wide(condition, model, "answer").select(first, second)
        tests = {
            "mcnemar_p_exact": mcnemar(x, y, method="exact"),
            "mcnemar_p_cc": mcnemar(x, y, method="chi2-corrected"),
            "mcnemar_p_uncorrected": mcnemar(x, y, method="chi2"),
        }
        found: dict[str, Any] = {name: test.p_value for name, test in tests.items()}
        found |= {
            "both": int((x * y).sum()),
            "b_first_only": int((x * (1 - y)).sum()),
            "c_second_only": int(((1 - x) * y).sum()),
            "neither": int(((1 - x) * (1 - y)).sum()),
            "mcnemar_chi2_cc": tests["mcnemar_p_cc"].statistic,
            "kappa_correctness": cohen_kappa(x, y).estimate,
            "same_letter_share": float(letters[first].eq_missing(letters[second]).to_numpy().mean()),
            "n_letters_pairs": letters.drop_nulls().height,
        }
        for name, counts in (("drop_unparsed", False), ("unparsed_as_category", True)):
            found[f"kappa_letters_{name}"] = None
            if counts or found["n_letters_pairs"]:
                test, _ = self.tables.letter_kappa(condition, model, first, second, unread_counts=counts)
                found[f"kappa_letters_{name}"] = test.estimate
        return found

    def _reduction(self, published: Published, before: str, after: str, model: str) -> Found:
        """How much smaller the gap is under a second condition."""

        def ends(level: float) -> tuple[float, float]:
            row = self.tables.reduction(before, after, model, level)
            return row["conf_low"], row["conf_high"]

        shown = self.tables.reduction(before, after, model, LEVEL)
        value = {"gap_reduction": shown["estimate"], "ci95": list(ends(LEVEL))}
        bands: dict[str, Band] = {}
        if published.n_replicates:
            library = None if "exact" in shown["method"].partition(";")[0] else N_RESAMPLES
            found = bands_of_ends(ends, LEVEL, published.n_replicates, library)
            bands = {f"ci95/{place}": band for place, band in enumerate(found)}
        return Found(value, bands=bands, clustered=(answer_of(f"gap {before} - gap {after}", shown),))
