"""Tables of study 2: labels and scores of four formats, and what pairs across them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import polars as pl

from triagestats.labels import listed
from triagestats.mcnemar_tests import mcnemar
from triagestats.replicate.clusters import with_flips
from triagestats.replicate.entry import Clustered, NotDerivableError
from triagestats.replicate.published import Expected
from triagestats.replicate.tables import Folder, best_named
from triagestats.table import ResponseTable

__all__ = ["CLUSTERS", "FORMATS", "JUDGED", "KEY", "LEVELS", "Formats", "judges_named", "mean_of"]

FORMATS: Final = {
    "exact": "exact_structured",
    "natural": "natural_free_text",
    "forced": "natural_forced_letter",
    "stripped": "source_stripped",
}
JUDGED: Final = ("natural", "stripped")
"""Free text, which judges label."""
LEVELS: Final = ("A", "B", "C", "D")
KEY: Final = ("scenario", "model", "repetition")
CLUSTERS: Final = ("scenario", "pair")


@dataclass(frozen=True, slots=True)
class Formats:
    """Tables of the study, each read once.

    Attributes
    ----------
    folder
        The folder.
    judges
        The first and the second judge; empty where the folder does not say which they are.
    """

    folder: Folder
    judges: tuple[str, ...]

    def has(self, word: str) -> bool:
        """Whether the folder has the answers of a format, and what they were judged."""
        kinds = ("responses", "judgments") if word in JUDGED else ("responses",)
        return all(self.folder.has(f"{FORMATS[word]}_{kind}.csv") for kind in kinds)

    def is_judged(self, *words: str) -> bool:
        return any(word in JUDGED for word in words)

    def labels(self, word: str) -> pl.DataFrame:
        """One row a label: of an answer, or of a judge of an answer; with the gold range of its scenario."""
        rows = self.folder.table(f"{FORMATS[word]}_responses.csv")
        if word not in JUDGED:
            return rows.rename({"response": "label"}).filter(pl.col("label").is_not_null())
        judged = self.folder.table(f"{FORMATS[word]}_judgments.csv").filter(pl.col("label").is_not_null())
        of_answer = rows.select(*KEY, "gold_low", "gold_high", "pair", "case_type")
        return judged.select(*KEY, "judge", "label").join(of_answer, on=KEY)

    def scores(self, word: str, judge: str | None = None) -> pl.DataFrame:
        """One row an answer with its score, the mean of its judges or that of one of them."""
        rows = self.labels(word)
        if judge is not None and word in JUDGED:
            name = best_named(judge, rows["judge"].unique())
            if name is None:
                raise NotDerivableError(
                    f"no judge is called {judge}; they are {listed(rows['judge'].unique())}"
                )
            rows = rows.filter(pl.col("judge") == name)
        right = pl.col("label").is_between(pl.col("gold_low"), pl.col("gold_high")).cast(pl.Float64)
        keys = [*KEY, "pair", "case_type"]
        return rows.group_by(keys).agg(right.mean().alias("score")).sort(keys)

    def pairs(self, first: str, second: str, judge: str | None) -> pl.DataFrame:
        """Answers to the same request in both formats, side by side."""
        left, right = (self.scores(word, judge) for word in (first, second))
        joined = left.rename({"score": "first"}).join(
            right.select(*KEY, pl.col("score").alias("second")), on=KEY
        )
        if joined.is_empty():
            raise NotDerivableError(f"no answer is in both of {first} and {second}")
        return joined.sort(KEY)

    def cells(self, first: str, second: str) -> pl.DataFrame:
        """Means of the matched answers by model and scenario."""
        pairs = self.pairs(first, second, None)
        keys = ["scenario", "pair", "model"]
        return pairs.group_by(keys).agg(pl.col("first", "second").mean()).sort(keys)

    def exact(self, first: str, second: str, judge: str | None) -> tuple[float | None, int, int]:
        """The exact McNemar test of matched answers, and its two counts."""
        pairs = self.pairs(first, second, judge)
        test = mcnemar(pairs["first"], pairs["second"], method="exact")
        return test.p_value, test.details["b"], test.details["c"]

    def judged(self, word: str) -> tuple[pl.DataFrame, list[str]]:
        """Labels of the two judges side by side."""
        labels = self.labels(word)
        judges = sorted(labels["judge"].unique())
        if len(judges) != 2:
            raise NotDerivableError(f"two judges are compared; the folder has {listed(judges)}")
        wide = labels.pivot(on="judge", index=[*KEY, "pair"], values="label")
        return wide.drop_nulls(judges).sort(KEY), judges

    def table(self) -> ResponseTable:
        """All answers of all formats in the folder, with their judgments."""

        def make() -> ResponseTable:
            words = [word for word in FORMATS if self.has(word)]
            answers = [self.folder.table(f"{FORMATS[word]}_responses.csv") for word in words]
            table = ResponseTable(pl.concat(answers), levels=list(LEVELS))
            judged = [self.folder.table(f"{FORMATS[word]}_judgments.csv") for word in words if word in JUDGED]
            return table.with_judgments(pl.concat(judged)) if judged else table

        return self.folder.once(("table",), make)

    def difference(self, first: str, second: str, cluster: str) -> tuple[Clustered, ...]:
        def make() -> tuple[Clustered, ...]:
            return with_flips(self.table().with_cluster(cluster), FORMATS[first], FORMATS[second], cluster)

        return self.folder.once(("difference", first, second, cluster), make)


def mean_of(rows: pl.DataFrame) -> float:
    """The mean score of rows."""
    return float(rows["score"].to_numpy().mean())


def judges_named(expected: Expected) -> tuple[str, ...]:
    """The first and the second judge, as the folder names them."""
    for entry in expected.entries:
        if found := re.search(r"first judge = ([\w.-]+), second = ([\w.-]+)", entry.recipe):
            return found[1].rstrip("."), found[2].rstrip(".")
    return ()
