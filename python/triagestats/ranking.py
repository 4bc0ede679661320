"""leaderboard: models ranked by a mean, an estimand or a triage score, with joint uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.beside import Extra, Shares, refuse_known
from triagestats.counts import whole_counts
from triagestats.design import design_of
from triagestats.errors import ArgumentError, ArgumentTypeError, DataError, DesignError
from triagestats.estimands import Estimand
from triagestats.flags import binary_column, column_named, flag_names, flag_shares
from triagestats.ingest import to_polars
from triagestats.labels import as_text
from triagestats.ranked_design import Sharing, ranking_of
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.standings import Leaderboard
from triagestats.table import ResponseTable
from triagestats.triage.boards import triage_board
from triagestats.triage.policies import TriageScore
from triagestats.vectors import numbers_of

__all__ = ["leaderboard"]


def leaderboard(
    table: object,
    *,
    metric: Literal["mean"] | Estimand | TriageScore = "mean",
    higher_is_better: bool | None = None,
    match: Sharing = "shared",
    unranked: Sequence[str] = (),
    counts: object = None,
    flags: Sequence[str] = (),
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Leaderboard:
    """Models in order, with intervals, rank sets, chances of being best, and verdicts on all pairs.

    Everything is read from one joint set of cluster bootstrap replicates. With d the difference of two
    models, d* its replicates, se its cluster jackknife error and G the number of clusters,

        q = the `conf_level` quantile of max over all pairs |d* - d| / se
        c = t[G - 1]^-1(Phi(q sqrt(G / (G - 1)))),

    one model is better than another where `d +- c se` excludes 0, and the rank set of a model is

        1 + (models that are better)  to  M - (models that are worse).

    Parameters
    ----------
    table
        A `ResponseTable`, or what `ResponseTable` takes, with a column of models.
    metric
        `mean`: the mean score; each scenario weighs the same, and so does each condition. An estimand: its
        value for each model. A `TriageScore`: as in `triage_board`.
    higher_is_better
        Whether the largest estimate is the best. Default: as the table says; True for a triage score.
    match
        `shared`: scenarios scored for all ranked models, at each condition. `own`: each model on what it has;
        the sets of scenarios may then differ.
    unranked
        Models that are shown and not ranked, such as a proxy run under another protocol; they are estimated
        on those of the shared scenarios that they have.
    counts
        Models known by counts alone: a table with the columns `model`, `successes` and `n`. They get Wilson's
        interval, and no rank among the others, as nothing pairs them. With a `TriageScore`: as in
        `triage_board`.
    flags
        Columns of 0 and 1 (overconfident and wrong, format failure, ...) whose shares stand beside the
        ranking and do not enter it.
    conf_level, n_resamples, seed
        Level, number of replicates and seed.
    n_threads
        Changes no result.

    Returns
    -------
    Leaderboard
        `standings` (one wide row a model), `pairs`, `tied`, `rank_shares`, `tidy()`, `with_level()`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments that cannot be used, no shared scenario, or two crossed cluster columns.

    Notes
    -----
    The rank sets hold all true ranks at once at the level, however close the models are; they are those of
    Mogstad, Romano, Shaikh and Wilhelm with two-sided single-step comparisons. Their package csranks draws
    from a normal distribution and steps down, which can separate a few more pairs; here the intervals of the
    differences say the same as the sets. The quantiles of drawn ranks (`rank_low`, `rank_high`) are what
    leaderboards often print: they can cover too little where models are nearly tied.

    c is q as a value of t: replicates of few clusters vary too little, and errors are estimated. With six
    tied models and 8 to 30 clusters the sets from q held all ranks in .90 of simulated samples at nominal
    .95, those from c in .95 and more. P-values are mapped in the same way.

    Models that tie share the better rank (1, 1, 3). In P(best) the models that tie for the first place of a
    replicate share it. The error of a difference is fixed, not computed anew in each replicate. Where all
    clusters show the same difference there is no error: of a mean the sign test of the G clusters decides,
    p = 2^(1 - G) times the number of pairs; else the pair is undecided.

    Under 5 clusters nothing is said of ranks but the order of the estimates.

    References
    ----------
    Mogstad, M., Romano, J. P., Shaikh, A. M. and Wilhelm, D. (2024), Inference for ranks with applications
    to mobility across neighbourhoods and academic achievement across countries, Review of Economic Studies
    91(1), doi:10.1093/restud/rdad006.

    Romano, J. P. and Wolf, M. (2005), Exact and approximate stepdown methods for multiple hypothesis
    testing, JASA 100(469):94-108, doi:10.1198/016214504000000539.

    Examples
    --------
    >>> import triagestats as ts
    >>> board = ts.leaderboard(ts.demo_table(), n_resamples=999)
    >>> board.standings.select("model", "rank", "set_low", "set_high").row(0)
    ('model_b', 1, 1, 4)
    >>> board.glance().select("n_models", "n_scenarios", "n_pairs").row(0)
    (5, 17, 10)
    """
    if higher_is_better is not None and not isinstance(higher_is_better, bool):
        raise ArgumentTypeError(f"`higher_is_better` must be True or False; got {higher_is_better!r}")
    valid_choice("match", match, Sharing)
    asked: dict[str, Any] = {
        "conf_level": valid_level(conf_level),
        "n_resamples": valid_resamples(n_resamples),
        "seed": valid_seed(seed),
        "n_threads": thread_count(n_threads),
    }
    if isinstance(metric, TriageScore):
        if higher_is_better is False:
            raise ArgumentError("`higher_is_better` cannot be False for a TriageScore: 100 is its best value")
        return triage_board(
            table, **metric.arguments(), match=match, unranked=unranked, counts=counts, flags=flags, **asked
        ).leaderboard
    if metric != "mean" and not isinstance(metric, Estimand):
        raise ArgumentTypeError(f"`metric` must be 'mean', an estimand or a TriageScore; got {metric!r}")
    estimand = metric if isinstance(metric, Estimand) else None
    if counts is not None and estimand is not None:
        raise ArgumentError("`counts` are shares, which go with metric='mean'; an estimand has none")
    responses = table if isinstance(table, ResponseTable) else ResponseTable(table)
    found = ranking_of(
        design_of(responses),
        estimand=estimand,
        match=match,
        unranked=unranked,
        higher_is_better=responses.higher_is_better if higher_is_better is None else higher_is_better,
        extras=_extras(counts, responses),
        shares=_flags(responses, flag_names(flags)),
        **asked,
    )
    if found is None:
        raise DesignError(
            "the table has no column of models to rank; name it with `ts.ResponseTable(..., model=)`"
        )
    return found


def _flags(table: ResponseTable, names: tuple[str, ...]) -> Shares | None:
    """Shares of flag columns by model."""
    if not names:
        return None
    frame = table.frame
    models = sorted(frame["model"].unique().to_list()) if "model" in frame.columns else []
    cluster = "cluster_1" if "cluster_1" in frame.columns else "scenario"
    model, scenario, group = (
        (frame[name].rank("dense") - 1).cast(pl.Int64).to_numpy() for name in ("model", "scenario", cluster)
    )
    columns = [(name, binary_column(frame, name, "flags")) for name in names]
    return flag_shares(columns, models, model, scenario, group)


def _extras(counts: object, table: ResponseTable) -> tuple[Extra, ...]:
    """Rows of models that are known by counts alone."""
    if counts is None:
        return ()
    frame = to_polars(counts, "counts").frame
    labels = as_text(column_named(frame, "model", "counts"), "counts")
    if labels.null_count() or labels.is_duplicated().any():
        raise DataError("`counts` must have one row a model, each with its name")
    names = labels.to_list()
    models = table.frame["model"].unique().to_list() if "model" in table.frame.columns else []
    fix = "leave them out of `counts`, or give the counts another name, such as 'gpt (published)'"
    refuse_known(names, models, "which has rows in the table", fix)
    successes, n = (
        whole_counts(numbers_of(column_named(frame, name, "counts"), "counts", dimensions=(1,)), "counts")
        for name in ("successes", "n")
    )
    if (wrong := np.flatnonzero((n == 0) | (successes > n))).size:
        first = int(wrong[0])
        raise DataError(
            f"`counts` has {successes[first]:,} successes of n = {n[first]:,} for {names[first]!r}; expected "
            "at most n, and n at least 1"
        )
    return tuple(
        Extra(str(name), "counts", x / size, int(size), int(x))
        for name, x, size in zip(names, successes, n, strict=True)
    )
