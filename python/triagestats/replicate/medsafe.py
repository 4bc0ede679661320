"""medsafe: escalation decisions on cases of known severity, and a board of models."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from triagestats.agreement.kappa import cohen_kappa
from triagestats.bootstraps import bootstrap
from triagestats.contingency import chi_square
from triagestats.models.correlation import model_correlation
from triagestats.permute import permutation_test
from triagestats.proportions import proportion_ci
from triagestats.replicate.board_blocks import BoardBlocks
from triagestats.replicate.boards import BY, Decisions, decisions_of, share_answer, standing
from triagestats.replicate.clusters import of_test
from triagestats.replicate.entry import Clustered, Found, NotDerivableError
from triagestats.replicate.fits import LEVEL, Fit
from triagestats.replicate.published import Expected, Published
from triagestats.replicate.tables import Folder, Recipes

__all__ = ["BLOCKS", "recipes"]

BLOCKS: Final = {
    "runs": 1,
    "triage_bootstrap": 2,
    "sensitivity_ranks": 1,
    "severity_scales": 0,
    "board_": 2,
}
_TOP: Final = ("sev_1", "sev_2", "sev_3")
_URGENT: Final = 2
"""The least urgent severity that is urgent: `any top-3 severity <= 2`."""
_SCALES: Final = "severity_scales.csv"
_RUN: Final = r"(?P<model>[^/@]+)@(?P<run>\d+)"


def recipes(folder: Folder, expected: Expected) -> Recipes:
    """Recipes for the entries of the study."""
    decisions = decisions_of(folder, expected)
    rates, cases = _Rates(decisions, _level_of(expected)), _Cases(decisions)
    board, blocks = _Board(decisions), BoardBlocks(decisions, expected)
    return Recipes(
        (
            (rf"(?:board/)?{_RUN}/(?P<what>\w+)", rates.count),
            (r"table/(?P<model>[^/]+)/safety_boot_(?P<end>lo|hi)", rates.resampled),
            (r"(?:table|report)/(?P<model>[^/]+)/(?P<what>\w+)", rates.share),
            (r"case_breakdown/(?P<model>[^/]+)/chi2_urgent_vs_not", rates.breakdown),
            (r"denominators/(?P<run>\d+)/(?P<what>\w+)", cases.denominator),
            (r"labels/urgent_v0_from_severities_mismatches_(?P<run>\d+)", cases.mismatches),
            (r"severity/(?P<what>\w+)", cases.scales),
            (r"board/(?P<model>[^/@]+)/(?P<what>score|kappa|rank|would_rank)", board.value),
            (r"board/(?P<model>[^/@]+)/(?P<what>under|over|score)_(?P<end>lo|hi)", board.end),
            (rf"runs/{_RUN}", blocks.run),
            (rf"triage_bootstrap/(?P<set>[^/]+)/{_RUN}", blocks.bootstrapped),
            (r"sensitivity_ranks_\w+/U=(?P<U>[\d.]+),O=(?P<O>[\d.]+)", blocks.sensitivity),
            (r"severity_scales", cases.scale_block),
            (r"board_\w+/models/(?P<model>[^/]+)", blocks.counted),
            (r"board_\w+/max_abs_difference", blocks.difference),
        )
    )


@dataclass(frozen=True, slots=True)
class _Rates:
    """Recipes for counts and shares of the decisions of one model.

    Attributes
    ----------
    decisions
        Tables and boards.
    level
        Of the intervals in the source's tables, which may round the normal quantile.
    """

    decisions: Decisions
    level: float

    def count(self, published: Published, match: re.Match[str]) -> Found:
        what = match["what"]
        if what.startswith("t15"):
            raise NotDerivableError(published.recipe or "the label of the case is not in the folder")
        rows = self.decisions.run(match["model"], match["run"])
        counts = self.decisions.counts(rows)
        n = counts["n"]
        shares: dict[str, tuple[int, int]] = {
            "valid_predictions": (counts["valid"], n),
            "coverage_rate": (counts["valid"], n),
            "format_failures": (n - counts["valid"], n),
            "missed_escalations": (counts["missed_valid_only"], counts["urgent"]),
            "missed_incl_unreadable": (counts["missed_incl_unreadable"], counts["urgent"]),
            "v0_missed": (counts["missed_incl_unreadable"], counts["urgent"]),
            "over_escalation": (counts["over"], counts["nonurgent"]),
            "v0_over": (counts["over"], counts["nonurgent"]),
            "over_escalation_rate_of_all_cases": (counts["over"], counts["nonurgent"]),
            "safety_pass_rate": (n - counts["failed"], n),
            "escalate_rate": (counts["escalated"], n),
        }
        if what not in shares:
            raise NotDerivableError("no recipe of the library stands for this kind of entry")
        number, of = shares[what]
        answer = share_answer(f"{what} as a share", number, of)
        if what == "over_escalation_rate_of_all_cases":
            return Found(
                number / n,
                clustered=(answer,),
                note="the interval is of the share of cases that are not urgent",
            )
        return Found(number / of if what.endswith("_rate") else number, clustered=(answer,))

    def share(self, published: Published, match: re.Match[str]) -> Found:
        counts = self.decisions.counts(self.decisions.run(match["model"]))
        n = counts["n"]
        kinds: dict[str, tuple[int, int]] = {
            "safety": (n - counts["failed"], n),
            "missed_cons": (counts["missed_incl_unreadable"], counts["urgent"]),
            "missed": (counts["missed_valid_only"], counts["urgent"]),
            "over": (counts["over"], counts["nonurgent"]),
        }
        kind = next((name for name in kinds if match["what"].startswith(name)), None)
        if kind is None:
            raise NotDerivableError("no recipe of the library stands for this kind of entry")
        number, of = kinds[kind]
        answer = share_answer(kind, number, of)
        if not match["what"].endswith(("_lo", "_hi")):
            return Found(number / of, clustered=(answer,))
        test = proportion_ci(
            number, of, conf_level=self.level if published.id.startswith("table/") else LEVEL
        )
        end = test.conf_low if match["what"].endswith("_lo") else test.conf_high
        return Found(end, clustered=(answer,))

    def resampled(self, published: Published, match: re.Match[str]) -> Found:
        """An end of the percentile interval of the share of cases that pass."""
        rows = self.decisions.run(match["model"])
        passed = 1 - rows["hard_fail"]
        key = ("passed", match["model"])
        fit = self.decisions.folder.once(key, lambda: Fit(bootstrap(passed.to_list())))
        label = fit.estimates.identity[0]["estimand"]
        row = fit.row(label)
        bands = fit.bands("ends", label, None, published.n_replicates)
        place = 0 if match["end"] == "lo" else 1
        value = (row["conf_low"], row["conf_high"])[place]
        answer = share_answer("safety", int(passed.sum()), len(passed))
        return Found(
            value,
            bands={"": bands[f"ends/{place}"]} if bands else {},
            clustered=(answer,),
        )

    def breakdown(self, _published: Published, match: re.Match[str]) -> Found:
        rows = self.decisions.run(match["model"])
        urgent = self.decisions.label(rows)
        test = chi_square(rows["hard_fail"], urgent, correction=True)
        flips = permutation_test(rows["hard_fail"].to_list(), groups=urgent.to_list())
        answer = Clustered(
            "failures, urgent - other",
            flips.estimate,
            p_value=flips.p_value,
            n_clusters=rows.height,
            cluster=BY,
            method=flips.method,
            note="each case is one cluster",
        )
        return Found(test.statistic, clustered=(answer,), note=test.undefined or "")


@dataclass(frozen=True, slots=True)
class _Cases:
    """Recipes for counts of cases and for the two scales of severity."""

    decisions: Decisions

    def denominator(self, _published: Published, match: re.Match[str]) -> Found:
        cases = self.decisions.cases(match["run"])
        what = match["what"]
        if what in cases.columns:
            return self._counted(cases, pl.col(what) == "1")
        severities = [pl.col(name).cast(pl.Int64) for name in _TOP if name in cases.columns]
        urgent = [(severity <= _URGENT).fill_null(value=False) for severity in severities]
        first, others = urgent[0], pl.any_horizontal(urgent[1:])
        known = pl.sum_horizontal(severity.is_not_null() for severity in severities)
        spread = pl.max_horizontal(severities) - pl.min_horizontal(severities)
        kinds: dict[str, pl.Expr] = {
            "urgent_by_primary": first,
            "urgent_by_secondary": ~first & others,
            "fewer_than_2_severities": known < 2,
        }
        if found := re.fullmatch(r"severity_spread_(\d+)", what):
            kinds[what] = (known >= 2) & (spread == int(found[1]))
        if what not in kinds:
            raise NotDerivableError("no recipe of the library stands for this kind of entry")
        return self._counted(cases, kinds[what])

    def _counted(self, cases: pl.DataFrame, which: pl.Expr) -> Found:
        number = int(cases.select(which.alias("it"))["it"].sum())
        return Found(number, clustered=(share_answer("share of the cases", number, cases.height),))

    def mismatches(self, _published: Published, match: re.Match[str]) -> Found:
        cases = self.decisions.cases(match["run"])
        severities = [pl.col(name).cast(pl.Int64) for name in _TOP if name in cases.columns]
        urgent = pl.any_horizontal((severity <= _URGENT).fill_null(value=False) for severity in severities)
        wrong = int(cases.select((urgent != (pl.col("urgent_v0") == "1")).alias("it"))["it"].sum())
        return Found(wrong, note="a check of the table")

    def scales(self, _published: Published, match: re.Match[str]) -> Found:
        first, second = self._scales()
        weights = {"qwk": "quadratic", "linear_kappa": "linear", "kappa": None}
        what = match["what"]
        if what in weights:
            test = cohen_kappa(first, second, weights=weights[what], categories=self._levels())
            by_condition = of_test(what, test, "condition")
            return Found(test.estimate, clustered=(_sized(by_condition, len(first)),))
        if what == "spearman":
            test = model_correlation(first, second, method="spearman")
            return Found(test.estimate, clustered=(_sized(of_test(what, test, "condition"), len(first)),))
        apart = second - first
        counts = {
            "exact": apart == 0,
            "within_one": apart.abs() <= 1,
            "ddx_more_severe": apart > 0,
            "ddx_less_severe": apart < 0,
        }
        if what not in counts:
            raise NotDerivableError("no recipe of the library stands for this kind of entry")
        number = int(counts[what].sum())
        answer = share_answer(what, number, len(first))
        return Found(number, clustered=(_sized(answer, len(first), "condition"),))

    def scale_block(self, _published: Published, _match: re.Match[str]) -> Found:
        first, second = self._scales()
        levels = self._levels()
        value: dict[str, Any] = {
            name: cohen_kappa(first, second, weights=weights, categories=levels).estimate
            for name, weights in (("qwk", "quadratic"), ("linear", "linear"), ("unweighted", None))
        }
        value["spearman"] = model_correlation(first, second, method="spearman").estimate
        return Found(value)

    def _scales(self) -> tuple[pl.Series, pl.Series]:
        """Severities of the conditions on the two scales; smaller is more severe on both."""
        rows = self.decisions.folder.table(_SCALES)
        return rows["ddxplus_severity"].cast(pl.Int64), rows["reference_level"].cast(pl.Int64)

    def _levels(self) -> list[int]:
        first, second = self._scales()
        both = pl.concat([first, second])
        levels = both.to_list()
        return list(range(min(levels), max(levels) + 1))


@dataclass(frozen=True, slots=True)
class _Board:
    """Recipes for the later board, which is known by counts."""

    decisions: Decisions

    def value(self, _published: Published, match: re.Match[str]) -> Found:
        model, what = match["model"], match["what"]
        row = standing(self.decisions.counted_board(), model)
        answer = Clustered(
            "score",
            row["score"],
            row["score_low"],
            row["score_high"],
            n_clusters=_cases_of(row),
            cluster=BY,
            method="percentile of draws from the counts",
            note="known by counts: no rank interval"
            if row["kind"] == "counts"
            else "a policy: known, not estimated",
        )
        if what == "kappa":
            (counts,) = self.decisions.later().filter(pl.col("model") == model).iter_rows(named=True)
            hit = counts["n_urgent"] - counts["t15_missed"]
            quiet = counts["n_nonurgent"] - counts["t15_over"]
            test = cohen_kappa([[hit, counts["t15_missed"]], [counts["t15_over"], quiet]])
            cases = counts["n_urgent"] + counts["n_nonurgent"]
            return Found(
                test.estimate,
                clustered=(_sized(of_test("kappa", test, BY), cases),),
                note=test.undefined or "",
            )
        if what == "score":
            return Found(row["score"], clustered=(answer,))
        rank = row["rank"] if row["rank"] is not None else row["could_rank"]
        return Found(rank, clustered=(answer,))

    def end(self, published: Published, match: re.Match[str]) -> Found:
        """An end of a percentile interval of a rate or score, from draws of the counts."""
        board = self.decisions.counted_board()
        found = BoardBlocks.of_counts(board, match["model"], published.n_replicates)
        place = 0 if match["end"] == "lo" else 1
        bands = {"": found.bands[f"{match['what']}/{place}"]} if found.bands else {}
        return Found(found.value[match["what"]][place], bands=bands, clustered=found.clustered)


def _level_of(expected: Expected) -> float:
    """The level of the intervals in the source's tables, from the normal quantile that a recipe states."""
    for entry in expected.entries:
        if entry.id.startswith("table/") and (found := re.search(r"\bz=([\d.]+)", entry.recipe)):
            return math.erf(float(found[1]) / math.sqrt(2))
    return LEVEL


def _cases_of(row: Mapping[str, Any]) -> int | None:
    """Cases behind a row; None for a policy."""
    if row["n_urgent"] is None or row["kind"] == "policy":
        return None
    return int(row["n_urgent"] + row["n_nonurgent"])


def _sized(answer: Clustered, number: int, cluster: str | None = None) -> Clustered:
    """An answer whose units are its clusters."""
    return Clustered(
        answer.about,
        answer.estimate,
        answer.conf_low,
        answer.conf_high,
        answer.p_value,
        number,
        cluster or answer.cluster,
        answer.method,
        answer.note,
    )
