"""Study 2: structured letters, free text and forced letters in 60 scenarios."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from triagestats.agreement.kappa import cohen_kappa
from triagestats.estimands import Difference
from triagestats.mcnemar_tests import mcnemar
from triagestats.replicate.clusters import by_rows, mean_by_cluster, of_row, of_test, these_only
from triagestats.replicate.counting import count_text
from triagestats.replicate.differences import signed_ranks
from triagestats.replicate.entry import Clustered, Found, NotDerivableError
from triagestats.replicate.published import Expected, Published
from triagestats.replicate.study2_blocks import FormatBlocks
from triagestats.replicate.study2_tables import (
    CLUSTERS,
    FORMATS,
    JUDGED,
    LEVELS,
    Formats,
    judges_named,
    mean_of,
)
from triagestats.replicate.tables import Folder, Recipes, best_named
from triagestats.triage.direction import ErrorDirection, error_direction

__all__ = ["BLOCKS", "recipes"]

BLOCKS: Final = {"clustered": 2, "snapshot_released_values": 1}
_SIDES: Final = ("under", "over")
_FORMAT: Final = "|".join(FORMATS)


def recipes(folder: Folder, expected: Expected) -> Recipes:
    """Recipes for the entries of the study."""
    tables = Formats(folder, judges_named(expected))
    study, blocks = _Study(tables), FormatBlocks(tables)
    return Recipes(
        (
            (rf"s\d_acc_({_FORMAT})", study.accuracy),
            (rf"s\d_({_FORMAT})_({_FORMAT})_wilcoxon", study.wilcoxon),
            (rf"s\d_({_FORMAT})_({_FORMAT})_mcnemar", study.mcnemar),
            (r"s\d_mcnemar_check_.*", study.counts_alone),
            (r"s\d_judge_disagreement", study.disagreement),
            (r"s\d_direction_other", study.other_directions),
            (r"s\d_direction", study.direction),
            (r"s\d_split", study.split),
            (rf"s\d_emergency_({_FORMAT})", study.emergency),
            (r"s\d_by_model", study.by_model),
            (r"s\d_gold_ranges", study.ranges),
            (r"s\d_prompt_a", study.prompt_a),
            (r"s\d_rows_recollected", study.unscored),
            (rf"clustered/({_FORMAT})_minus_({_FORMAT})/cluster_(\w+)", blocks.block),
            (rf"snapshot_released_values/({_FORMAT})_minus_({_FORMAT})", blocks.released),
        )
    )


@dataclass(frozen=True, slots=True)
class _Study:
    """Recipes that read the tables of the study."""

    tables: Formats

    def accuracy(self, published: Published, match: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        word = match[1]
        rows = self.tables.scores(word)
        answers = tuple(mean_by_cluster(word, rows["score"], rows[name], name) for name in CLUSTERS)
        mean, n = mean_of(rows), rows.height
        recomputed: dict[str, Any] = {"mean": mean, "n": n}
        if not isinstance(published.published, Mapping):
            recomputed = {"correct": int(rows["score"].sum()), "n": n, "accuracy": mean}
            first = rows.filter(pl.col("repetition") == "1")
            right = int(first["score"].sum())
            recomputed["run1"] = {"correct": right, "n": first.height, "accuracy": mean_of(first)}
            return Found(mean, recomputed=recomputed, clustered=answers)
        for key in published.published:
            if key != "mean":
                recomputed[key] = mean_of(self.tables.scores(word, key))
        return Found(recomputed, recomputed=recomputed, clustered=answers)

    def wilcoxon(self, published: Published, match: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        cells = self.tables.cells(match[1], match[2])
        found, _ = signed_ranks(cells, "first", "second", clusters="scenario")
        ranks = [
            of_test(
                f"signed ranks, flipped by {name}",
                signed_ranks(cells, "first", "second", clusters=name, flip=True)[1],
                name,
            )
            for name in CLUSTERS
        ]
        answers = [
            *(answer for name in CLUSTERS for answer in self.tables.difference(match[1], match[2], name)),
            *(
                Clustered(one.about, p_value=one.p_value, cluster=one.cluster, method=one.method)
                for one in ranks
            ),
        ]
        return Found(found, recomputed=found, clustered=tuple(answers))

    def mcnemar(self, published: Published, match: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        first, second = match[1], match[2]
        judged = self.tables.is_judged(first, second)
        sides = dict(
            zip(("first_judge", "second_judge"), self.tables.judges if judged else (None,), strict=False)
        )
        tests = {judge: self.tables.exact(first, second, judge) for judge in sides.values()}
        value: dict[str, Any] = {}
        for side, judge in sides.items():
            p, b, c = tests[judge]
            said = (published.published or {}).get(side)
            value[side] = {"p": p, "discordant": f"{b} vs {c}"} if isinstance(said, Mapping) else p
        recomputed: dict[str, Any] = {}
        for key in published.recomputed or {}:
            judge = best_named(key.removeprefix("mcnemar_"), self.tables.judges) if judged else None
            if judge in tests:
                p, b, c = tests[judge]
                recomputed[key] = {"first_only": b, "second_only": c, "p": p}
        answers = []
        for judge in tests:
            pairs = self.tables.pairs(first, second, judge)
            for name in CLUSTERS:
                clustered = mcnemar(pairs["first"], pairs["second"], clusters=pairs[name])
                about = f"{first} - {second}" + (f", {judge}" if judge else "")
                answers.append(of_test(about, clustered, name))
        return Found(value, recomputed=recomputed, clustered=tuple(answers))

    def counts_alone(self, published: Published, _: re.Match[str]) -> Found:
        said = published.published
        if not isinstance(said, Mapping) or not {"b", "c"} <= said.keys():
            raise NotDerivableError("the entry does not hold the two discordant counts")
        test = mcnemar(said["b"], said["c"], method="exact")
        value = {"b": said["b"], "c": said["c"], "p": test.p_value}
        note = "from the two counts alone: which scenarios they are of is not known, and nothing is clustered"
        return Found(value, recomputed={"p": test.p_value}, note=note)

    def disagreement(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        found: dict[str, Any] = {}
        answers: list[Clustered] = []
        for word in JUDGED:
            if not self.tables.has(word):
                continue
            wide, judges = self.tables.judged(word)
            first, second = (wide[judge] for judge in judges)
            kappa = cohen_kappa(first, second)
            disagree = int((first != second).sum())
            numbers = {
                "n": wide.height,
                "disagree": disagree,
                "agreement" if word == "natural" else "agree": kappa.details["percent_agreement"],
                "kappa": kappa.estimate,
            }
            if word == "natural":
                found = numbers | {"rate": disagree / wide.height}
                differs = (first != second).cast(pl.Float64)
                for name in CLUSTERS:
                    answers.append(mean_by_cluster("disagreement", differs, wide[name], name))
                by_scenario = cohen_kappa(first, second, clusters=wide["scenario"])
                answer = of_test("kappa", by_scenario, "scenario")
                answers.append(replace(answer, n_clusters=wide["scenario"].n_unique()))
            else:
                found["source_stripped"] = numbers
        return Found(found.get("rate"), recomputed=found, clustered=tuple(answers))

    def direction(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        counts = self._directions("natural")
        value = counts | {"n_labels": self.tables.labels("natural").height}
        return Found(value, recomputed=value, clustered=self._direction_answers("natural"))

    def other_directions(self, published: Published, _: re.Match[str]) -> Found:
        found: dict[str, Any] = {}
        answers: list[Clustered] = []
        for word in published.recomputed or {}:
            if word not in FORMATS or not self.tables.has(word):
                continue
            counts = self._directions(word)
            types = {name: [counts[name][side] for side in _SIDES] for name in counts if name not in _SIDES}
            found[word] = {side: counts[side] for side in _SIDES} | {"by_case_type": types}
            answers += self._direction_answers(word)
        return Found(found, clustered=tuple(answers))

    def split(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        value: dict[str, Any] = {}
        recomputed: dict[str, Any] = {}
        keys = {*(published.published or {}), *(published.recomputed or {})}
        for key in sorted(keys):
            model, _, word = key.rpartition("_")
            rows = self.tables.scores(word) if word in FORMATS else None
            if rows is None:
                continue
            if model:
                named = [name for name in sorted(rows["model"].unique()) if best_named(model, [name])]
                rows = rows.filter(pl.col("model").is_in(named))
            parts = {
                name: part
                for (name,), part in rows.sort("case_type").group_by("case_type", maintain_order=True)
            }
            means = {name: mean_of(part) for name, part in parts.items()}
            recomputed[key] = {name: [means[name], part.height] for name, part in parts.items()}
            said = (published.published or {}).get(key)
            told = " versus ".join(
                f"{100 * means[name]:.0f}" for name in ("with_data", "symptoms_only") if name in means
            )
            value[key] = told if isinstance(said, str) else means
        answers = [
            mean_by_cluster(f"natural, {name}", part["score"], part[cluster], cluster)
            for (name,), part in self.tables.scores("natural")
            .sort("case_type")
            .group_by("case_type", maintain_order=True)
            for cluster in CLUSTERS
        ]
        return Found(value, recomputed=recomputed, clustered=tuple(answers))

    def emergency(self, published: Published, match: re.Match[str]) -> Found:
        """Labels below the most urgent level in the scenarios whose gold is that level alone."""
        self.tables.folder.need(published)
        top = LEVELS[-1]
        rows = self.tables.labels(match[1]).filter((pl.col("gold_low") == top) & (pl.col("gold_high") == top))
        if rows.is_empty():
            raise NotDerivableError("no scenario has the most urgent level as its gold")
        below = int((rows["label"] != top).sum())
        at_top = pl.col("label") == top
        cases = rows.group_by("scenario").agg(at_top.sum().alias("k"), pl.len().alias("n")).sort("scenario")
        by_case = {name: [k, n] for name, k, n in cases.iter_rows()}
        counts = dict(rows.group_by("label").len().sort("label", descending=True).iter_rows())
        recomputed = {
            "below_D": below,
            "labels": rows.height,
            "rate": below / rows.height,
            "D_by_case": by_case,
            "label_counts": counts,
        }
        value: dict[str, Any] = {"rate": below / rows.height, "below_D": count_text(below, rows.height)}
        value["all_C"] = set(counts) <= {top, "C"}
        for key in published.published or {}:
            name = key.removesuffix("_D")
            if name in by_case:
                value[key] = count_text(*by_case[name]) + ("" if key.endswith("_D") else f" {top}")
        value = {key: item for key, item in value.items() if key in (published.published or value)}
        subset = {"condition": [FORMATS[match[1]]], "scenario": list(by_case)}
        return Found(
            value, recomputed=recomputed, clustered=these_only(self.tables.table(), subset, kind="under")
        )

    def by_model(self, published: Published, _: re.Match[str]) -> Found:
        value: dict[str, Any] = {}
        recomputed: dict[str, Any] = {}
        scores = {word: self.tables.scores(word) for word in FORMATS if self.tables.has(word)}
        for model in sorted({name for rows in scores.values() for name in rows["model"]}):
            numbers = {}
            for word, rows in scores.items():
                part = rows.filter(pl.col("model") == model)
                judged = word in JUDGED
                numbers[word] = [mean_of(part) if judged else int(part["score"].sum()), part.height]
            recomputed[model] = numbers
        for key in published.published or {}:
            model = best_named(key, recomputed)
            if model is not None and {"natural", "exact"} <= scores.keys():
                both = (mean_of(scores[w].filter(pl.col("model") == model)) for w in ("natural", "exact"))
                natural, exact = both
                value[key] = natural - exact
        answers = self._by_model_answers([name for key in value if (name := best_named(key, recomputed))])
        return Found(value, recomputed=recomputed, clustered=answers)

    def ranges(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        scenarios = self.tables.folder.table("scenarios.csv")
        wide = scenarios.filter(pl.col("gold_low") != pl.col("gold_high"))
        kinds = wide.group_by("gold_low", "gold_high").len()
        found = {f"{low}_{high}": n for low, high, n in kinds.iter_rows()}
        found |= {"ranges": wide.height, "single": scenarios.height - wide.height}
        return Found(wide.height, recomputed=found, note="a count of scenarios has no uncertainty")

    def prompt_a(self, published: Published, _: re.Match[str]) -> Found:
        self.tables.folder.need(published)
        named = re.search(r"parser=(\w+)", published.table)
        rows = self.tables.folder.table("prompt_a_summary.csv")
        if named:
            rows = rows.filter(pl.col("parser") == named[1])
        rows = rows.with_columns(pl.col("correct", "n").cast(pl.Int64))
        rates = {row["model"]: row["correct"] / row["n"] for row in rows.iter_rows(named=True)}
        value = {
            key: rates[model]
            for key in published.published or {}
            if (model := best_named(key, rates)) is not None
        }
        note = "rows by scenario are not in the folder: from the counts alone nothing is clustered"
        return Found(value, recomputed=rates, note=note)

    def unscored(self, _published: Published, _: re.Match[str]) -> Found:
        found = {
            word: self.tables.folder.table(f"{FORMATS[word]}_responses.csv")["error"].count()
            for word in FORMATS
            if self.tables.folder.has(f"{FORMATS[word]}_responses.csv")
        }
        total = sum(found.values())
        return Found(total, recomputed={"unscored": found, "total": total}, note="a count of rows")

    def _errors(self, cluster: str) -> ErrorDirection:
        def make() -> ErrorDirection:
            return error_direction(self.tables.table().with_cluster(cluster), weights="row", by="case_type")

        return self.tables.folder.once(("errors", cluster), make)

    def _rates(self, word: str, cluster: str) -> pl.DataFrame:
        """Rates of labels under and over the gold range, of all and by type of case."""
        rates = self._errors(cluster).rates
        names = [f"{side}_rate" for side in _SIDES]
        return rates.filter(
            (pl.col("condition") == FORMATS[word])
            & pl.col("model").is_null()
            & pl.col("estimand").is_in(names)
        )

    def _directions(self, word: str) -> dict[str, Any]:
        """How many labels lie under and over the gold range, of all and by type of case."""
        counts: dict[str, Any] = {}
        for row in self._rates(word, "scenario").iter_rows(named=True):
            side = row["estimand"].removesuffix("_rate")
            number = round(row["estimate"] * row["n_rows"])
            if row["stratum"] is None:
                counts[side] = number
            else:
                counts.setdefault(row["stratum"], {})[side] = number
        return counts

    def _direction_answers(self, word: str) -> tuple[Clustered, ...]:
        return tuple(
            of_row(f"{word}, {row['estimand']}", row, cluster)
            for cluster in CLUSTERS
            for row in self._rates(word, cluster).filter(pl.col("stratum").is_null()).iter_rows(named=True)
        )

    def _by_model_answers(self, models: Sequence[str]) -> tuple[Clustered, ...]:
        natural, exact = (FORMATS[word] for word in ("natural", "exact"))
        fit = by_rows(self.tables.table().with_cluster("scenario"), [Difference(natural, exact)]).tidy()
        rows = fit.filter(pl.col("model").is_in(list(models)))
        return tuple(
            of_row(f"{natural} - {exact}, {row['model']}", row, "scenario")
            for row in rows.iter_rows(named=True)
        )
