"""A ranking as tidy rows: ranks, chances of being best, and differences of all pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from triagestats.defaults import FEW_CLUSTERS, FEWEST_CLUSTERS, too_few
from triagestats.marginals import Scarce
from triagestats.rank_sets import Contest, Ranking

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

__all__ = ["difference_rows", "doubt_of", "rank_rows"]

_WORDS: Final = {1: "better", -1: "worse", 0: "undecided"}


def doubt_of(ranking: Ranking, behind: Scarce, conf_level: float) -> dict[str, Any]:
    """Status and reason of what is read from all models at once."""
    n_clusters = behind.n_clusters
    if n_clusters < FEWEST_CLUSTERS:
        reason = (
            f"{n_clusters} clusters: too few to say how ranks would come out among others "
            f"({FEWEST_CLUSTERS} are needed)"
        )
        return {"status": "few_clusters", "reason": behind.of(reason)}
    if ranking.withheld:
        return {"status": "undefined", "reason": "no replicate has a value of all models"}
    doubts = []
    if n_clusters < FEW_CLUSTERS:
        said = f"{n_clusters} clusters: fewer than {FEW_CLUSTERS} may cover less than they say"
        doubts.append(str(behind.of(said)))
    if doubt := too_few(ranking.n_drawn, conf_level):
        doubts.append(doubt)
    return {"status": "warning" if doubts else "ok", "reason": "; ".join(doubts) or None}


def rank_rows(
    ranking: Ranking, model: str, place: int, doubt: Mapping[str, Any], conf_level: float
) -> list[dict[str, Any]]:
    """Rank with its set, rank with its percentile interval, and P(best) of one model."""
    row: dict[str, Any] = {
        "estimand": "rank",
        "model": model,
        "estimate": float(ranking.rank[place]),
        "conf_level": conf_level,
        **doubt,
    }
    if ranking.withheld:
        return [row | {"term": "rank set", "method": "none"}]
    drawn = f"{ranking.n_drawn:,} drawn"
    return [
        row
        | {
            "term": "rank set",
            "conf_low": float(ranking.set_low[place]),
            "conf_high": float(ranking.set_high[place]),
            "method": f"all ranks at once, from max-T differences, {drawn}",
        },
        row
        | {
            "term": "percentile",
            "conf_low": float(ranking.percentile_low[place]),
            "conf_high": float(ranking.percentile_high[place]),
            "method": f"cluster bootstrap percentile of ranks, {drawn}",
        },
        row
        | {
            "estimand": "p_best",
            "estimate": float(ranking.p_best[place]),
            "conf_level": None,
            "method": f"share of replicates, ties split, {drawn}",
        },
    ]


def difference_rows(
    ranking: Ranking,
    models: Sequence[str],
    metric: str,
    doubt: Mapping[str, Any],
    *,
    contest: Contest,
    n_rows: Whole,
    conf_level: float,
) -> list[dict[str, Any]]:
    """One row a pair: first minus second, with simultaneous interval, adjusted p-value and verdict.

    `n_rows` are the answers behind each model, in the order of `models`; a pair shows the fewer.
    """
    pairs = ranking.pairs
    sign = 1 if contest.higher_is_better else -1
    fewer = np.minimum(n_rows[pairs.first], n_rows[pairs.second])
    carries = contest.contributes
    n_clusters = (carries[:, pairs.first] | carries[:, pairs.second]).sum(axis=0)
    rows = []
    for p in range(len(pairs.first)):
        difference, error = float(pairs.difference[p]), float(pairs.std_error[p])
        row: dict[str, Any] = {
            "estimand": "difference",
            "contrast": f"{models[pairs.first[p]]} - {models[pairs.second[p]]}",
            "metric": contest.metric or metric,
            "estimate": difference,
            "n_rows": int(fewer[p]),
            "n_clusters": int(n_clusters[p]),
            "verdict": _WORDS[sign * int(pairs.order[p])],
            "method": "none" if ranking.withheld else "max-T over all pairs, simultaneous",
            "conf_level": conf_level,
            **doubt,
        }
        if error > 0:
            row |= {
                "std_error": error,
                "statistic": difference / error,
                "conf_low": float(pairs.low[p]),
                "conf_high": float(pairs.high[p]),
                "p_adjusted": float(pairs.p_adjusted[p]),
            }
        elif error == 0:
            row |= _same_everywhere(difference, float(pairs.p_adjusted[p]))
        rows.append(row)
    return rows


def _same_everywhere(difference: float, p_adjusted: float) -> dict[str, Any]:
    """What is said of a difference that no cluster moves."""
    reason = "the difference is the same in all clusters, so that it has no interval"
    if difference == 0:
        return {"status": "degenerate", "reason": "the models agree in every cluster", "method": "none"}
    if np.isnan(p_adjusted):
        return {"status": "degenerate", "reason": reason, "method": "none"}
    return {
        "status": "degenerate",
        "reason": f"{reason}; the sign test decides",
        "method": "sign test of clusters, Bonferroni",
        "p_adjusted": p_adjusted,
    }
