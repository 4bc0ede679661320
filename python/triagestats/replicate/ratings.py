"""Physicians' ratings of retellings: rank tests between voices, and agreement of raters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import polars as pl

from triagestats.agreement.alpha import krippendorff_alpha
from triagestats.agreement.icc import icc
from triagestats.agreement.kappa import cohen_kappa
from triagestats.bootstraps import cluster_bootstrap
from triagestats.labels import listed
from triagestats.permute import permutation_test
from triagestats.rank_sums import mann_whitney
from triagestats.replicate.clusters import mean_by_cluster, of_test
from triagestats.replicate.entry import Clustered, Found, NotDerivableError
from triagestats.replicate.published import Published
from triagestats.replicate.tables import Folder
from triagestats.results import Test
from triagestats.several_samples import kruskal

__all__ = ["Ratings"]

_FILE: Final = "annotations.csv"
_QUESTION: Final = "question_id"
_RATING: Final = "realism"
_POOLED: Final = "POOLED"
_BY: Final = "question"


@dataclass(frozen=True, slots=True)
class Ratings:
    """Recipes for entries on ratings.

    Attributes
    ----------
    folder
        The folder.
    """

    folder: Folder

    def between_voices(self, _published: Published, match: re.Match[str]) -> Found:
        """Kruskal-Wallis over the voices, raters pooled; beside it voices permuted within questions."""
        rows = self._rows()
        test = kruskal(rows[_RATING], groups=rows["voice"])
        means = rows.group_by(_QUESTION, "voice").agg(pl.col(_RATING).mean())
        wide = means.pivot(on="voice", index=_QUESTION, values=_RATING).drop_nulls().sort(_QUESTION)
        flips = permutation_test(wide.drop(_QUESTION).to_numpy(), statistic=_spread, alternative="greater")
        answer = Clustered(
            "spread of the voices, permuted within questions",
            p_value=flips.p_value,
            n_clusters=wide.height,
            cluster=_BY,
            method=flips.method,
        )
        return Found(test.statistic if match[1] == "H" else test.p_value, clustered=(answer,))

    def two_voices(self, _published: Published, match: re.Match[str]) -> Found:
        """Mann-Whitney of two voices; beside it the mean difference, flipped by question."""
        rows = self._rows()
        first, second = match[2], match[3]
        parts = [rows.filter(pl.col("voice") == voice) for voice in (first, second)]
        if any(part.is_empty() for part in parts):
            raise NotDerivableError(f"rows are not in the folder: no ratings of {first} or {second}")
        test = mann_whitney(*(part[_RATING] for part in parts), method="normal", correction=True)
        means = rows.group_by(_QUESTION, "voice").agg(pl.col(_RATING).mean())
        wide = means.pivot(on="voice", index=_QUESTION, values=_RATING).drop_nulls([first, second])
        flips = permutation_test(wide[first], wide[second], clusters=wide[_QUESTION])
        difference = mean_by_cluster(f"{first} - {second}", wide[first] - wide[second], wide[_QUESTION], _BY)
        answer = Clustered(
            difference.about,
            difference.estimate,
            difference.conf_low,
            difference.conf_high,
            flips.p_value,
            wide.height,
            _BY,
            flips.method,
        )
        return Found(test.statistic if match[1] == "U" else test.p_value, clustered=(answer,))

    def alpha(self, _published: Published, match: re.Match[str]) -> Found:
        """Krippendorff's alpha of all raters, or of those who vary."""
        test = self._alpha(match[1], everyone=match[2].startswith("all"))
        return Found(test.estimate, clustered=(of_test(f"alpha, {match[1]}", test, _BY),))

    def intraclass(self, _published: Published, match: re.Match[str]) -> Found:
        """Intraclass correlation in the form of the entry."""
        wide, raters = self._wide(everyone=match[3].startswith("all"))
        form = f"ICC({match[1]},{match[2]})"
        test = icc(wide.select(raters), form=form)
        by_question = icc(wide.select(raters), form=form, clusters=wide[_QUESTION])
        return Found(test.estimate, clustered=(of_test(form, by_question, _BY),))

    def agreement(self, _published: Published, match: re.Match[str]) -> Found:
        """Share of items on which two raters agree."""
        wide, raters = self._wide()
        first, second = (self._rater(raters, match[place]) for place in (1, 2))
        same = (wide[first] == wide[second]).cast(pl.Float64)
        share = cohen_kappa(wide[first], wide[second]).details["percent_agreement"]
        return Found(share, clustered=(mean_by_cluster("agreement", same, wide[_QUESTION], _BY),))

    def moment(self, _published: Published, match: re.Match[str]) -> Found:
        """Mean or standard deviation of ratings of one rater, or of all, in one voice."""
        column, what, rater, voice = match[1], match[2], match[3], match[4]
        rows = self._rows()
        if column not in rows.columns:
            raise NotDerivableError(f"rows are not in the folder: {_FILE} has no column {column}")
        rows = rows.filter(pl.col("voice") == voice)
        if rater != _POOLED:
            rows = rows.filter(pl.col("rater") == rater)
        if rows.is_empty():
            raise NotDerivableError(f"rows are not in the folder: no ratings by {rater} of {voice}")
        values = rows[column].cast(pl.Float64)
        if what == "mean":
            return Found(
                float(values.to_numpy().mean()),
                clustered=(mean_by_cluster("mean", values, rows[_QUESTION], _BY),),
            )
        numbers = values.to_numpy()
        size = len(numbers)

        def spread(means: Any) -> Any:
            variance = np.maximum(means[..., 1:2] - means[..., :1] ** 2, 0.0)
            return np.sqrt(variance * size / (size - 1))

        fit = cluster_bootstrap(np.column_stack([numbers, numbers**2]), rows[_QUESTION], spread)
        answer = Clustered(
            "sd",
            float(fit.estimate[0]),
            float(fit.conf_low[0]),
            float(fit.conf_high[0]),
            n_clusters=rows[_QUESTION].n_unique(),
            cluster=_BY,
            method="cluster bootstrap, percentile",
        )
        return Found(float(numbers.std(ddof=1)), clustered=(answer,))

    def block(self, _published: Published, _match: re.Match[str]) -> Found:
        """Everything that the folder recomputed of the ratings."""
        rows = self._rows()
        test = kruskal(rows[_RATING], groups=rows["voice"])
        voices = sorted(rows["voice"].unique())
        constant = self._constant()
        _, raters = self._wide()
        value: dict[str, Any] = {
            "kruskal_H": test.statistic,
            "kruskal_p": test.p_value,
            "krippendorff_ordinal_all3": self._alpha("ordinal").estimate,
            "facts_preserved_zero": int((rows["facts_preserved"] == 0).sum()),
            "register_match_zero": int((rows["register_match"] == 0).sum()),
            "krippendorff_other_levels": {
                metric: {
                    name: self._alpha(metric, everyone=name == "all3").estimate
                    for name in ("all3", "excluding_constant")
                }
                for metric in ("nominal", "interval", "ratio")
            },
            "krippendorff_ordinal_by_voice_all3": {
                voice: self._alpha("ordinal", voice=voice).estimate for voice in voices
            },
            "score_counts": {
                voice: dict(
                    rows.filter(pl.col("voice") == voice)
                    .group_by(pl.col(_RATING).cast(pl.String))
                    .len()
                    .sort(_RATING)
                    .iter_rows()
                )
                for voice in voices
            },
            "percent_agreement_by_voice": {
                voice: {
                    f"{_number(first)}-{_number(second)}": self._share(first, second, voice)
                    for first, second in combinations(raters, 2)
                }
                for voice in voices
            },
        }
        for name in constant:
            value[f"krippendorff_ordinal_excluding_{name}"] = self._alpha("ordinal", everyone=False).estimate
            value[f"krippendorff_ordinal_by_voice_excluding_{name}"] = {
                voice: self._alpha("ordinal", everyone=False, voice=voice).estimate for voice in voices
            }
        return Found(value)

    def _rows(self) -> pl.DataFrame:
        numbers = [_RATING, "facts_preserved", "register_match"]
        return self.folder.table(_FILE).with_columns(pl.col(numbers).cast(pl.Int64))

    def _constant(self) -> list[str]:
        """Raters who gave every item the same."""
        kinds = self._rows().group_by("rater").agg(pl.col(_RATING).n_unique())
        return sorted(kinds.filter(pl.col(_RATING) == 1)["rater"])

    def _wide(self, *, everyone: bool = True, voice: str | None = None) -> tuple[pl.DataFrame, list[str]]:
        """One row an item, one column a rater; all of them, or those who vary."""
        rows = self._rows()
        if voice is not None:
            rows = rows.filter(pl.col("voice") == voice)
        raters = sorted(rows["rater"].unique())
        if not everyone:
            raters = [rater for rater in raters if rater not in self._constant()]
        wide = rows.pivot(on="rater", index=[_QUESTION, "voice"], values=_RATING).sort(_QUESTION, "voice")
        return wide.select(_QUESTION, "voice", *raters), raters

    def _alpha(self, metric: str, *, everyone: bool = True, voice: str | None = None) -> Test:
        wide, raters = self._wide(everyone=everyone, voice=voice)
        return krippendorff_alpha(
            wide.select(raters),
            metric=metric,  # type: ignore[arg-type]  # checked there
            clusters=wide[_QUESTION],
        )

    def _share(self, first: str, second: str, voice: str) -> float:
        wide, _ = self._wide(voice=voice)
        share: float = cohen_kappa(wide[first], wide[second]).details["percent_agreement"]
        return share

    def _rater(self, raters: Sequence[str], number: str) -> str:
        for rater in raters:
            if _number(rater) == number:
                return rater
        raise NotDerivableError(f"rows are not in the folder: no rater {number} among {listed(raters)}")


def _number(rater: str) -> str:
    """The number at the end of a rater's name."""
    return rater.rpartition("_")[2]


def _spread(means: Any) -> Any:
    """Variance of the means of the voices."""
    return np.var(means, axis=-1)
