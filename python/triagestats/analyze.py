"""analyze: from a response table to estimates; orchestration only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triagestats import contrast_tests, defaults, describe, missingness, plan, rate_effects, readings
from triagestats.agreement.of_table import agreement_of
from triagestats.analysis import Analysis, Parts, Settings, assemble
from triagestats.arguments import valid_choice, valid_flag, valid_level, valid_margin
from triagestats.design import Design, Reference, design_of
from triagestats.engine.analysis import Asked, analyze_held
from triagestats.engine.held import held_by_engine
from triagestats.errors import ArgumentError
from triagestats.estimands import Estimand
from triagestats.independent import read_independent
from triagestats.inference import Options, infer
from triagestats.key_sums import DesignSums
from triagestats.models.contrast_regression import contrast_regressions
from triagestats.models.mixed.of_table import bayes_of_table
from triagestats.ranked_design import ranking_or_note
from triagestats.readers.read import are_paths, read_paths
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note
from triagestats.roles import ROLE_ARGUMENTS, RoleArgument
from triagestats.schema import Interval, Match, Unparsed, Weights
from triagestats.table import ResponseTable
from triagestats.tallies import tally_of
from triagestats.triage.direction import errors_of_table

__all__ = ["analyze"]


def analyze(
    data: object,
    *,
    scenario: RoleArgument = None,
    model: RoleArgument = None,
    condition: RoleArgument = None,
    variant: RoleArgument = None,
    repetition: RoleArgument = None,
    judge: RoleArgument = None,
    metric: RoleArgument = None,
    response: RoleArgument = None,
    gold: RoleArgument = None,
    score: RoleArgument = None,
    status: RoleArgument = None,
    reason: RoleArgument = None,
    task: RoleArgument = None,
    source: RoleArgument = None,
    cluster: RoleArgument = None,
    stratum: RoleArgument = None,
    levels: Sequence[str] | None = None,
    higher_is_better: bool | None = None,
    unparsed: Unparsed | None = None,
    reference: Reference = None,
    estimands: Sequence[Estimand] | None = None,
    match: Match = "cell",
    weights: Weights = "scenario",
    interval: Interval = "auto",
    margin: float | None = None,
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
    bayes: bool = False,
) -> Analysis:
    """Rates by model and condition, and contrasts of the conditions, with uncertainty by cluster.

    A cell is scenario x model x variant x condition: judges are averaged first, then repetitions. A
    contrast is level minus reference over the keys scored on both sides. With `weights="scenario"` a
    model's estimate is the mean over its scenarios of their cell values, and the pooled estimate the
    plain mean of the models' estimates:

        (1/M) sum_m (1/S_m) sum_s mean_v (x[s, m, v, level] - x[s, m, v, reference])

    Parameters
    ----------
    data
        A dataframe of any make (polars, pandas, pyarrow, duckdb, ...), a mapping of columns, a
        `ResponseTable`, or a path that `ts.read` takes: a csv, parquet or jsonl file, result files of a
        harness, a folder of them, or a list. It is never changed. A lazy table (polars, duckdb, dask,
        pyspark) is grouped and summed by the engine that holds it, and only sums by cluster arrive: what
        needs rows is None, with a note; collect the table first for these.
    scenario, model, condition, variant, repetition, judge, metric, response, gold, score, status, \
reason, task, source, cluster, stratum, levels, higher_is_better, unparsed
        As in `ResponseTable`, and for files of a harness as in `ts.read`; where `data` is a
        ResponseTable, these were settled when it was made, and only `cluster` and `metric` can be given.
    reference
        The level that the others are compared with, or a mapping from condition column to level.
        Default: the first level of an Enum, else of the sorted order.
    estimands
        Contrasts beyond level minus reference, such as `ts.Gap("alpha", ["beta", "gamma"])`.
    match
        What is paired: `cell` (scenario x model x variant), `row` (also the same repetition), or
        `scenario` (scenario x model).
    weights
        `scenario` as above; `row`: every matched key weighs the same, pooled over everything.
    interval
        `auto` picks: Korn-Graubard plus two for rates, cluster jackknife with t(G - 1) for other means
        and for contrasts, the bootstrap percentile for estimands that are not smooth. Or one of
        `jackknife-t`, `percentile`, `basic`, `normal`, `bca`, `bootstrap-t` (R x G evaluations) and
        `max-t` (simultaneous over all contrasts) for all; where it cannot hold, the row says what is
        shown.
    margin
        The smallest difference that matters, on the scale of the scores; the verdicts `equivalent` and
        `not worse` need one.
    conf_level
        Level of the intervals, between 0 and 1.
    n_resamples
        Bootstrap replicates, and permutations where they are too many to enumerate.
    seed
        A whole number; the same call gives the same answer.
    n_threads
        Threads; changes no result. Default: TRIAGESTATS_NUM_THREADS, else all cores.
    bayes
        Whether to add a Bayesian mixed model of 0/1 scores (`mixed`), which takes seconds to minutes.
        Conditions are fixed; scenarios, the effect of a condition in each, and five models or more are
        random.

    Returns
    -------
    Analysis
        Print it for the summary; `rates`, `contrasts` and the others are tidy polars frames.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument has a value or type that cannot be used.
    ReadError
        If `data` is a file that cannot be read.
    DataError, RoleError
        If a column is missing or ambiguous, a key repeats, or a score or label cannot be read.
    DesignError
        If nothing is scored, there are fewer than two clusters, or no key is scored on both sides.
        All of these derive from `TriagestatsError`; the message says what would help.

    Notes
    -----
    Scenarios are the sample: the intervals speak of new scenarios for these models. The p-value
    permutes condition labels within clusters, one relabelling a cluster for all of its rows; with two
    crossed cluster columns, and with more than 100,000 clusters, it is that of the t test. `p_adjusted` is
    Holm's within a family that the notes state; verdicts do not use it.

    With fewer than 5 clusters intervals are withheld unless `interval` asks for one by name (3 are needed);
    with fewer than 12 they carry a warning. Null and
    NaN scores are missing: they enter no estimate, and `missing` counts them with the worst cases.

    References
    ----------
    Miller, E. (2024), Adding error bars to evals: a statistical approach to language model evaluations,
    arXiv:2411.00640.
    Cameron, A. C. and Miller, D. L. (2015), A practitioner's guide to cluster-robust inference, Journal
    of Human Resources 50(2):317-372, doi:10.3368/jhr.50.2.317.

    Examples
    --------
    >>> import triagestats as ts
    >>> fit = ts.analyze(ts.demo_table(), n_resamples=999)
    >>> fit.contrasts.select("contrast", "model", "n_clusters", "verdict").row(0)
    ('letter - free_text', None, 17, 'undecided')
    >>> fit.glance().select("scored", "scenarios", "cluster").row(0)
    (2495, 17, 'scenario')
    """
    roles = {role: value for role, value in locals().items() if role in ROLE_ARGUMENTS}
    valid_choice("match", match, Match)
    valid_choice("weights", weights, Weights)
    valid_choice("interval", interval, Interval)
    level = valid_level(conf_level)
    asked: dict[str, Any] = {
        "interval": interval,
        "n_resamples": valid_resamples(n_resamples),
        "seed": valid_seed(seed),
        "n_threads": thread_count(n_threads),
        "margin": valid_margin(margin),
    }
    with_model = valid_flag("bayes", bayes)
    held = None if isinstance(data, ResponseTable) else held_by_engine(data)
    if held is not None:
        if with_model:
            raise ArgumentError("`bayes` needs rows, and `data` is lazy: collect it first")
        return analyze_held(
            held,
            roles,
            levels=levels,
            higher_is_better=higher_is_better,
            unparsed=unparsed,
            asked=Asked(
                reference=reference,
                estimands=estimands,
                match=match,
                weights=weights,
                conf_level=level,
                **asked,
            ),
        )
    table = _table(
        data,
        roles,
        {"levels": levels, "higher_is_better": higher_is_better, "unparsed": unparsed},
    )
    options = Options(**asked, higher_is_better=table.higher_is_better)
    design = design_of(table, reference=reference)
    targets = plan.targets_of(design, estimands)
    name = _metric_name(table)
    rate_plan = plan.rate_plan(design, weights=weights, metric=name)
    contrast_plan = plan.contrast_plan(design, targets, match=match, weights=weights, metric=name)
    planned = [*rate_plan.rows, *(contrast_plan.rows if contrast_plan else ())]
    valid_resamples(options.n_resamples, len(planned))
    rates, rate_notes = infer(rate_plan, kind="mean", options=options)
    tally = tally_of(
        design, table.frame.height, len(table.judges) if "judge" in table.frame.columns else None
    )
    comparison, contrast_notes = _compare(design, contrast_plan, options)
    effects = rate_effects.rate_effects(design, tally, rates) if comparison is None else ()
    drawn = {name: asked[name] for name in ("n_resamples", "seed", "n_threads")}
    readers, test_notes = contrast_tests.readers_of(table, design, reference)
    tests = contrast_tests.contrast_tests(readers, weights=weights, match=match, metric=name, **drawn)
    errors = errors_of_table(
        table, reference=reference, estimands=estimands, match=match, weights=weights, options=options
    )
    ranking, ranking_notes = ranking_or_note(
        design, higher_is_better=table.higher_is_better, conf_level=level, **drawn
    )
    agreement, agreement_notes = agreement_of(table, design, **drawn)
    mixed_model, mixed_notes = (
        bayes_of_table(
            table,
            design,
            margin=options.margin,
            conf_level=level,
            seed=asked["seed"],
            n_threads=asked["n_threads"],
        )
        if with_model
        else (None, ())
    )
    parts = Parts(
        settings=Settings(
            cluster=design.cluster_name,
            n_clusters=design.n_clusters,
            match=match,
            weights=weights,
            interval=interval,
            conf_level=level,
            margin=options.margin,
            n_resamples=options.n_resamples,
            seed=options.seed,
            higher_is_better=table.higher_is_better,
        ),
        design=describe.design_frame(
            design, tally, DesignSums(design, match, weights), targets, match, comparison, effects
        ),
        missing=missingness.missing_frame(design, tally, name),
        rates=rates,
        comparison=comparison,
        contrast_tests=tests,
        agreement=agreement,
        errors=errors,
        ranking=ranking,
        mixed=mixed_model,
        regression=contrast_regressions(design, metric=name),
        notes=(
            *table.notes,
            *design.notes,
            *missingness.unparsed_notes(design, tally),
            *describe.plan_notes(design, targets, match=match, weights=weights, interval=interval),
            *rate_notes,
            *rate_effects.rows_note(design, effects),
            *contrast_notes,
            *test_notes,
            *agreement_notes,
            *ranking_notes,
            *mixed_notes,
            *(errors.notes if errors else ()),
        ),
    )
    return assemble(parts, level)


def _table(data: object, roles: Mapping[str, RoleArgument], options: Mapping[str, Any]) -> ResponseTable:
    """The data as a ResponseTable; with one, roles and scoring were settled when it was made."""
    given: dict[str, Any] = {name: value for name, value in {**roles, **options}.items() if value is not None}
    if are_paths(data):
        return read_paths(data, given, argument="data")
    if not isinstance(data, ResponseTable):
        return ResponseTable(data, **given)
    settled = [name for name in given if name not in ("cluster", "metric")]
    if settled:
        raise ArgumentError(
            f"{', '.join(f'`{name}`' for name in settled)} cannot be given with a ResponseTable; "
            "give them where the table is made"
        )
    if isinstance(metric := given.get("metric"), str):
        data = data.with_metric(metric)
    return data.with_cluster(given["cluster"]) if "cluster" in given else data


def _metric_name(table: ResponseTable) -> str | None:
    return table.frame["metric"][0] if "metric" in table.frame.columns else None


def _compare(
    design: Design, contrast_plan: plan.Plan | None, options: Options
) -> tuple[readings.Comparison | None, tuple[Note, ...]]:
    """The contrasts, and what independent rows and cells would have said of each."""
    if contrast_plan is None:
        return None, ()
    family, notes = infer(contrast_plan, kind="contrast", options=options)
    independent = read_independent(design, contrast_plan.blocks)
    return readings.Comparison(family, independent), notes
