"""Study 1: forced letters against free text in 17 scenarios, and small ablations."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats.agreement.kappa import cohen_kappa
from triagestats.contingency import chi_square
from triagestats.estimands import Difference
from triagestats.fisher import fisher_exact
from triagestats.permute import permutation_test
from triagestats.replicate.clusters import (
    leave_one_out,
    mean_by_cluster,
    of_row,
    of_test,
    these_only,
    with_flips,
)
from triagestats.replicate.counting import count_text, counts_like, scored
from triagestats.replicate.differences import clustered_block, resampled_test, signed_ranks
from triagestats.replicate.entry import Clustered, Found, NotDerivableError
from triagestats.replicate.published import Expected, Published
from triagestats.replicate.study1_tables import FORCED, FREE, Answers
from triagestats.replicate.tables import Folder, Recipes, best_named
from triagestats.table import ResponseTable

__all__ = ["BLOCKS", "recipes"]

BLOCKS: Final = {"clustered": 1}
_RERUNS: Final = "one scenario: the p-value speaks of reruns of it, not of other scenarios"


def recipes(folder: Folder, _: Expected) -> Recipes:
    """Recipes for the entries of the study."""
    study = _Study(Answers(folder))
    return Recipes(
        (
            (r"s\d_chi2_variant", study.variants),
            (r"s\d_acc_(constrained|natural)", study.accuracy),
            (r"s\d_diff", study.difference),
            (r"s\d_wilcoxon_\d+(?:_(\w+))?", study.wilcoxon),
            (r"s\d_judge_agreement", study.judges),
            (r"s\d_fisher", study.fisher),
            (r"s\d_all_constraints", study.one_format),
            (r"s\d_factor_sweep", study.sweep),
            (r"s\d_one_factor", study.one_factor),
            (r"clustered/natural_minus_constrained.*", study.block),
            (r"clustered/variant_(\w+)_minus_(\w+)", study.variant_block),
            (r"clustered/judge_kappa", study.kappa_block),
            (r"s\d_\w+", study.one_scenario),
        )
    )


@dataclass(frozen=True, slots=True)
class _Study:
    """Recipes that read the tables of the study."""

    tables: Answers

    def variants(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        rows = scored(self.tables.folder.table("constrained_responses.csv"))
        test = chi_square(rows["variant"], rows["right"])
        counts = rows.group_by("variant").agg(pl.col("right").sum(), pl.len()).sort("variant")
        sizes = counts["len"].unique()
        cells = rows.group_by("scenario", "variant").agg(pl.col("right").mean().alias("mean"))
        wide = cells.pivot(on="variant", index="scenario", values="mean").sort("scenario").drop_nulls()
        flips = permutation_test(wide.drop("scenario").to_numpy(), statistic=_spread, alternative="greater")
        return Found(
            value={"chi2": test.statistic, "p": test.p_value},
            recomputed={
                "chi2": test.statistic,
                "df": test.details["df"],
                "p": test.p_value,
                "correct": dict(counts.select("variant", "right").iter_rows()),
                "n_per_variant": sizes[0] if len(sizes) == 1 else None,
            },
            clustered=(
                Clustered(
                    about="spread of the variants, permuted within scenarios",
                    p_value=flips.p_value,
                    n_clusters=wide.height,
                    method=flips.method,
                ),
            ),
        )

    def accuracy(self, published: Published, match: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        rows = self.tables.answers().filter(pl.col("condition") == match[1])
        if rows.is_empty():
            raise NotDerivableError(f"rows are not in the folder: no answers of {match[1]}")
        rate = rows["score"].to_numpy().mean()
        answer = mean_by_cluster(match[1], rows["score"], rows["scenario"], "scenario")
        return Found(float(rate), clustered=(answer,))

    def difference(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        (answer,) = with_flips(self.tables.table(), FREE, FORCED, "scenario")
        moved = replace(answer, note=leave_one_out(self.tables.table(), FREE, FORCED))
        return Found(answer.estimate, clustered=(moved,))

    def wilcoxon(self, published: Published, match: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        rows = self.tables.answers(match[1])
        keys = ["scenario", "model", "variant"]
        cells = rows.group_by(*keys, "condition").agg(pl.col("score").mean())
        wide = cells.pivot(on="condition", index=keys, values="score").drop_nulls().sort(keys)
        found, test = signed_ranks(wide, FREE, FORCED, clusters="scenario")
        value = {"p": test.p_value}
        recomputed = found | {
            "p_exact_ties": test.p_value,
            "W_exact_ties": found.pop("W"),
            "p_continuity_corrected_exact_ties": found.pop("p_continuity_corrected"),
        }
        recomputed.pop("p")
        (answer,) = with_flips(self.tables.table(match[1]), FREE, FORCED, "scenario")
        flips = signed_ranks(wide, FREE, FORCED, clusters="scenario", flip=True)[1]
        ranks = of_test("signed ranks, flipped by scenario", flips, "scenario")
        return Found(
            value if published.published is not None else recomputed,
            recomputed=recomputed,
            clustered=(answer, Clustered(ranks.about, p_value=ranks.p_value, method=ranks.method)),
            note="differences that are equal tie here; floats that are not rounded break these ties",
        )

    def judges(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        wide, judges = self.tables.judged()
        first, second = (wide[judge] for judge in judges)
        kappa = cohen_kappa(first, second)
        value = {"agreement": kappa.details["percent_agreement"], "kappa": kappa.estimate}
        by_scenario = cohen_kappa(first, second, clusters=wide["scenario"])
        return Found(
            value,
            recomputed=value | {"disagreements": int((first != second).sum()), "n": wide.height},
            clustered=(self._kappa(wide, by_scenario),),
        )

    def fisher(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        counts = self.tables.formats("power_ablation")
        forced_name, free_name = "forced_choice_baseline", "free_text"
        found: dict[str, Any] = {}
        for model in sorted(counts["model"].unique()):
            forced, free = (_pair(counts, model=model, format=name) for name in (forced_name, free_name))
            test = fisher_exact([[k, n - k] for k, n in (forced, free)])
            found[model] = {"forced": list(forced), "free": list(free), "p": test.p_value}
        value: dict[str, Any] = {}
        for key in published.published or {}:
            model = best_named(key, found)
            if model is not None:
                value[key] = found[model]["p"]
        if value and (text := (published.published or {}).get("paper_text")):
            exponent = math.floor(-math.log10(max(value.values())))
            value["paper_text"] = re.sub(r"10\^-\d+", f"10^-{exponent}", str(text))
        answers = these_only(self.tables.ablation("power_ablation"), {"condition": [forced_name, free_name]})
        return Found(value, recomputed=found, clustered=_contrasts(answers), note=_RERUNS)

    def one_format(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        named = re.search(r"format==([\w+]+)", published.recipe)
        if named is None:
            raise NotDerivableError("the recipe names no format")
        counts = self.tables.formats("power_ablation").filter(pl.col("format") == named[1])
        by_model = {row["model"]: row for row in counts.iter_rows(named=True)}
        value = {
            key: count_text(by_model[model]["right"], by_model[model]["scored"], by_model[model]["n"])
            for key in published.published
            if (model := best_named(key, by_model)) is not None
        }
        recomputed = {
            model: {"correct": row["right"], "scored": row["scored"], "n": row["n"]}
            for model, row in by_model.items()
        }
        answers = these_only(self.tables.ablation("power_ablation"), {"condition": [named[1]]})
        return Found(value, recomputed=recomputed, clustered=answers, note=_RERUNS)

    def sweep(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        rows = scored(self.tables.folder.table("factor_sweep_responses.csv"))
        counts = rows.group_by("model", "scenario").agg(pl.col("right").sum(), pl.len()).sort("model")
        pairs = {f"{m}:{s}": [k, n] for m, s, k, n in counts.iter_rows()}
        table = ResponseTable(
            rows.select("scenario", "model", "variant", pl.col("right").alias("score")), condition=False
        )
        return Found(
            {name: count_text(*pair) for name, pair in pairs.items()},
            recomputed=pairs,
            clustered=these_only(table, None),
            note="each cell holds one answer: nothing shows how it would vary",
        )

    def one_factor(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        counts = self.tables.formats("one_factor_ablation", "scenario")
        found: dict[str, dict[str, dict[str, int]]] = {}
        for row in counts.iter_rows(named=True):
            by_model = found.setdefault(row["scenario"], {}).setdefault(row["model"], {})
            by_model[row["format"]] = row["right"]
        value: dict[str, Any] = {"n_per_cell": int(counts["n"].max())}  # type: ignore[arg-type]  # counts
        for key in published.published or {}:
            scenario, model = self._scenario_in(key, found)
            if scenario is None or model is None:
                continue
            cells = counts.filter((pl.col("scenario") == scenario) & (pl.col("model") == model))
            forced = cells.filter(pl.col("format") != "free_text")
            free = cells.filter(pl.col("format") == "free_text")
            told = sorted({count_text(k, n) for k, n in forced.select("right", "n").iter_rows()})
            value[key] = (
                f"{', '.join(told)} in every forced-choice condition, "
                f"{count_text(free['right'][0], free['n'][0])} in free text"
            )
        answers = these_only(self.tables.ablation("one_factor_ablation"), None, reference="baseline")
        return Found(value, recomputed=found, clustered=_contrasts(answers))

    def one_scenario(self, published: Published, _: re.Match[str]) -> Found:
        """Counts of right answers to one scenario, by condition and variant."""
        self.tables.folder.need(published)
        named = re.search(r"scenario==(\w+)", published.recipe)
        if named is None:
            return self.counts(published)
        everything = self.tables.answers(matched=False).filter(pl.col("scenario") == named[1])
        matched = self.tables.answers().filter(pl.col("scenario") == named[1])
        if everything.is_empty():
            raise NotDerivableError(f"rows are not in the folder: there is no scenario {named[1]}")
        pairs: dict[str, list[float]] = {}
        keys = published.published if isinstance(published.published, dict) else published.recomputed or {}
        tells_apart = any(key.startswith("matched_") for key in keys)
        for key in keys:
            condition = next((name for name in (FORCED, FREE) if key.endswith(name)), None)
            if condition is None:
                continue
            rows = matched if key.startswith("matched_") or not tells_apart else everything
            rows = rows.filter(pl.col("condition") == condition)
            variant = key.removesuffix(condition).strip("_").removeprefix("matched").strip("_")
            if variant:
                rows = rows.filter(pl.col("variant") == best_named(variant, rows["variant"].unique()))
            pairs[key] = [float(rows["score"].sum()), rows.height]
        return Found(
            {key: count_text(*pair) for key, pair in pairs.items()},
            recomputed=pairs,
            clustered=_contrasts(these_only(self.tables.table(), {"scenario": [named[1]]})),
        )

    def counts(self, published: Published) -> Found:
        """Counts in the tables that an entry names, in the shape in which the folder has them."""
        names = re.findall(r"[\w.-]+\.csv", published.table)
        rows = pl.concat([self.tables.scored_file(name) for name in names], how="diagonal") if names else None
        if rows is None:
            raise NotDerivableError("no recipe of the library stands for this kind of entry")
        value = counts_like(published.published, rows)
        recomputed = counts_like(published.recomputed, rows)
        return Found(value if published.published is not None else recomputed, recomputed=recomputed)

    def block(self, published: Published, _: re.Match[str]) -> Found:
        table = self.tables.table()
        return clustered_block(published, table, Difference(FREE, FORCED), "scenario")

    def variant_block(self, published: Published, match: re.Match[str]) -> Found:
        rows = scored(self.tables.folder.table("constrained_responses.csv"))
        names = [best_named(match[place], rows["variant"].unique()) for place in (1, 2)]
        if None in names:
            raise NotDerivableError(f"no variant is called {match[1]} or {match[2]}")
        table = ResponseTable(
            rows.select("scenario", "model", "variant", "repetition", pl.col("right").alias("score")),
            condition="variant",
            variant=False,
        )
        return clustered_block(published, table, Difference(*map(str, names)), "scenario")

    def kappa_block(self, published: Published, _: re.Match[str]) -> Found:
        wide, judges = self.tables.judged()
        first, second = (wide[judge] for judge in judges)

        def test(level: float) -> Any:
            return cohen_kappa(first, second, clusters=wide["scenario"], conf_level=level)

        return resampled_test(published, test, self._kappa(wide, test(0.95)))

    def _kappa(self, wide: pl.DataFrame, test: Any) -> Clustered:
        row = {"estimate": test.estimate, "conf_low": test.conf_low, "conf_high": test.conf_high}
        more = {"p_value": None, "n_clusters": wide["scenario"].n_unique(), "method": test.method}
        return of_row("kappa", row | more, "scenario")

    def _scenario_in(self, key: str, found: dict[str, dict[str, Any]]) -> tuple[str | None, str | None]:
        """The scenario and the model in a name such as `gpt_5_2_asthma`."""
        titles = self.tables.folder.table("scenarios.csv").select("scenario", "title").iter_rows()
        for scenario, title in titles:
            for word in key.split("_"):
                if scenario in found and len(word) > 3 and word.lower() in title.lower():
                    short = key.replace(word, "").strip("_")
                    return scenario, best_named(short, found[scenario])
        return None, None


def _spread(means: Any) -> Any:
    """Variance of the means of the variants."""
    return np.var(means, axis=-1)


def _pair(counts: pl.DataFrame, **where: str) -> tuple[int, int]:
    """Right answers of all answers in one cell."""
    rows = counts.filter(pl.all_horizontal(pl.col(name) == value for name, value in where.items()))
    if rows.height != 1:
        raise NotDerivableError(f"rows are not in the folder: {', '.join(where.values())}")
    return rows["right"][0], rows["n"][0]


def _contrasts(answers: tuple[Clustered, ...]) -> tuple[Clustered, ...]:
    """The differences, or what stands there instead."""
    found = tuple(answer for answer in answers if " - " in answer.about)
    return found or answers
