"""Tables of study 1: answers of both formats with their scores, and the small ablations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from triagestats.labels import listed
from triagestats.replicate.counting import scored
from triagestats.replicate.entry import NotDerivableError
from triagestats.replicate.tables import Folder, best_named
from triagestats.table import ResponseTable

__all__ = ["FORCED", "FREE", "KEY", "Answers"]

FORCED: Final = "constrained"
FREE: Final = "natural"
KEY: Final = ("scenario", "model", "variant", "repetition")


@dataclass(frozen=True, slots=True)
class Answers:
    """Tables of the study, each read once.

    Attributes
    ----------
    folder
        The folder.
    """

    folder: Folder

    def answers(self, judge: str | None = None, *, matched: bool = True) -> pl.DataFrame:
        """One row an answer with its score, of the variants that both conditions have."""
        key = ("answers", judge, matched)
        return self.folder.once(key, lambda: self._read_answers(judge, matched=matched))

    def _read_answers(self, judge: str | None, *, matched: bool) -> pl.DataFrame:
        forced = scored(self.folder.table("constrained_responses.csv"))
        judged = self.folder.table("natural_judgments.csv")
        if judge is not None:
            name = best_named(judge, judged["judge"].unique())
            if name is None:
                raise NotDerivableError(
                    f"no judge is called {judge}; they are {listed(judged['judge'].unique())}"
                )
            judged = judged.filter(pl.col("judge") == name)
        golds = self.folder.table("natural_responses.csv").select(*KEY, "gold_low", "gold_high")
        labels = scored(judged.join(golds, on=KEY), label="label")
        free = labels.group_by(KEY).agg(pl.col("right").cast(pl.Float64).mean().alias("score"))
        frames = [
            forced.select(
                *KEY, pl.col("right").cast(pl.Float64).alias("score"), pl.lit(FORCED).alias("condition")
            ),
            free.select(*KEY, "score", pl.lit(FREE).alias("condition")),
        ]
        rows = pl.concat(frames).sort(*KEY, "condition")
        if not matched:
            return rows
        shared = set(frames[0]["variant"]) & set(frames[1]["variant"])
        return rows.filter(pl.col("variant").is_in(sorted(shared)))

    def table(self, judge: str | None = None) -> ResponseTable:
        return self.folder.once(("table", judge), lambda: ResponseTable(self.answers(judge)))

    def judged(self) -> tuple[pl.DataFrame, list[str]]:
        """Labels of the two judges side by side."""
        labels = self.folder.table("natural_judgments.csv")
        judges = sorted(labels["judge"].unique())
        if len(judges) != 2:
            raise NotDerivableError(f"two judges are compared; the folder has {listed(judges)}")
        wide = labels.pivot(on="judge", index=list(KEY), values="label").drop_nulls(judges).sort(KEY)
        return wide, judges

    def _labels(self, name: str) -> pl.DataFrame:
        """Answers of an ablation; those in free text have the label of its judge."""
        rows = self.folder.table(f"{name}_responses.csv")
        judged = self.folder.table(f"{name}_judgments.csv")
        keys = ["scenario", "model", "format", "variant", "repetition"]
        joined = rows.join(judged.select(*keys, "label"), on=keys, how="left")
        return joined.with_columns(pl.coalesce("response", "label").alias("response"))

    def formats(self, name: str, *more: str) -> pl.DataFrame:
        """Right, scored and all answers by model and format."""
        rows = scored(self._labels(name), keep_blank=True)
        by = [*more, "model", "format"]
        return (
            rows.group_by(by)
            .agg(
                pl.col("right").sum().cast(pl.Int64),
                pl.col("right").count().cast(pl.Int64).alias("scored"),
                pl.len().cast(pl.Int64).alias("n"),
            )
            .sort(by)
        )

    def ablation(self, name: str) -> ResponseTable:
        rows = scored(self._labels(name))
        return ResponseTable(
            rows.select("scenario", "model", "format", "repetition", pl.col("right").alias("score"))
        )

    def scored_file(self, name: str) -> pl.DataFrame:
        """A table of answers, or of judgments with the gold of their answers."""
        rows = self.folder.table(name)
        if "label" not in rows.columns:
            return scored(rows, keep_blank=True).filter(
                pl.col("response").is_not_null() | pl.col("error").is_not_null()
            )
        golds = self.folder.table(name.replace("judgments", "responses"))
        keys = [key for key in (*KEY, "format") if key in rows.columns]
        return scored(rows.join(golds.select(*keys, "gold_low", "gold_high"), on=keys), label="label")
