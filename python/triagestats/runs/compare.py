"""compare: two runs of an evaluation, aligned and paired; orchestration only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level, valid_margin
from triagestats.design import design_of
from triagestats.independent import read_independent
from triagestats.inference import Options, infer
from triagestats.missingness import unparsed_notes
from triagestats.readings import Comparison
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import tidy_frame
from triagestats.roles import RoleArgument
from triagestats.runs.alignment import align, difference_bounds
from triagestats.runs.comparison import Parts, Run, RunComparison, RunSettings, assemble
from triagestats.runs.planning import difference_plan, difference_target, heaviest_weights, rate_plan
from triagestats.runs.sides import (
    direction_of,
    metric_of,
    read_side,
    same_files_notes,
    source_of,
    valid_names,
)
from triagestats.runs.together import together
from triagestats.runs.unpaired import refuse_unpaired, unpaired_notes, unshared_notes
from triagestats.schema import Interval, Match, Weights
from triagestats.tallies import tally_of

__all__ = ["compare"]


def compare(
    a: object,
    b: object,
    *,
    margin: float | None = None,
    metric: RoleArgument = None,
    judge: RoleArgument | bool = None,
    cluster: RoleArgument = None,
    names: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002
    higher_is_better: bool | None = None,
    match: Match = "row",
    weights: Weights = "scenario",
    interval: Interval = "auto",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
    **options: Any,
) -> RunComparison:
    r"""The difference of two runs of an evaluation, candidate minus baseline, paired and by cluster.

    Keys that both runs scored pair: the same scenario (task and item), model, condition, variant and
    repetition (epoch). With :math:`x` the scores and :math:`K_s` the keys of scenario s that pair, the
    difference is

    .. math::
        d = \frac{1}{S} \sum_s \frac{1}{|K_s|} \sum_{k \in K_s} (x_{B, k} - x_{A, k})

    over the S scenarios with such keys; over several models and conditions it is the plain mean of theirs.

    Parameters
    ----------
    a, b
        Baseline and candidate: a path that `ts.read` takes (files or a folder of any harness, a table), a
        list of them, a dataframe, or a `ResponseTable`.
    margin
        The largest loss that is accepted, on the scale of the scores; the gate and the verdicts `not worse`
        and `equivalent` read it. Without one the gate takes it as 0, and there are no such verdicts.
    metric
        The metric to compare, where the runs have several.
    judge
        Of files of a harness the scorers that are judges of one metric, of a table its column of judges, of
        a `ResponseTable` the judge whose scores to take.
    cluster
        What is resampled: a column, a role or dotted metadata such as `metadata.passage_id`; two that cross.
        Default: the scenario. Where one table alone names clusters, the scenarios of the other have them too.
    names
        What the runs are called. Default: A and B.
    format
        The format of the files, as in `ts.read`. Default: told from the content.
    higher_is_better
        Whether a larger score is the better one. Default: as the files say of the metric, else True.
    match
        What pairs: `row` as above; `cell` pairs the means over repetitions of scenario x model x condition x
        variant, `scenario` the means of scenario x model. Where a run numbers no repetitions, `row` is
        `cell`.
    weights, interval, conf_level, n_resamples, seed, n_threads
        As in `analyze`.
    **options
        Roles of columns (`scenario=`, `score=`, ...) and options of `ts.read` (`task=`, `item=`, `runs=`,
        `unparsed=`, ...), for both runs. Runs that need different ones are read by `ts.read` first.

    Returns
    -------
    RunComparison
        Print it for the summary; `gate` and `exit_code` say what CI asks.

    Raises
    ------
    ReadError
        If a run cannot be read.
    DataError, RoleError
        If a run has several metrics and `metric` chooses none, or the runs share no task, model, condition
        or variant.
    DesignError
        If no key is scored in both, or there are fewer than two clusters.
    ArgumentError, ArgumentTypeError
        If an argument has a value or type that cannot be used.
        All of these derive from `TriagestatsError` and name the run that they are about as `a` or `b`.

    Notes
    -----
    Runs of one model each pair whatever the models are called: these are what is compared; so do runs of one
    condition or variant each. Of several, those of the same name pair, and the others are left out and named.
    Tasks pair by name alone.

    Interval, p-value and verdict are those that `analyze` gives for a table whose condition is the run: the
    jackknife by cluster with t(G - 1), and the permutation of the two runs by cluster. Where all clusters
    agree, as in two runs that are equal, and scores lie between 0 and 1, the interval is that of the share of
    clusters that could differ (Clopper and Pearson). Answers that a run lacks are counted by status; they
    enter the worst cases, never the difference.

    References
    ----------
    Miller, E. (2024), Adding error bars to evals: a statistical approach to language model evaluations,
    arXiv:2411.00640.

    Examples
    --------
    >>> import triagestats as ts
    >>> def run(missed):
    ...     items = [f"i{i}" for i in range(30) for _ in range(2)]
    ...     score = [(i * 7) % 30 >= missed for i in range(30) for _ in range(2)]
    ...     return {"item": items, "epoch": [1, 2] * 30, "correct": score}
    >>> found = ts.compare(run(missed=3), run(missed=12), margin=0.05)
    >>> round(found.difference["estimate"], 3), found.verdict, found.gate, found.exit_code
    (-0.3, 'worse', 'worse', 1)
    """
    valid_choice("match", match, Match)
    valid_choice("weights", weights, Weights)
    valid_choice("interval", interval, Interval)
    labels = valid_names(names)
    level = valid_level(conf_level)
    asked: dict[str, Any] = {
        "interval": interval,
        "n_resamples": valid_resamples(n_resamples),
        "seed": valid_seed(seed),
        "n_threads": thread_count(n_threads),
        "margin": valid_margin(margin),
    }
    given = options | {
        "metric": metric,
        "judge": judge,
        "cluster": cluster,
        "higher_is_better": higher_is_better,
    }
    baseline = read_side(a, "a", given, name=format)
    candidate = read_side(b, "b", given, name=format)
    name = metric_of(baseline, candidate)
    higher = direction_of(baseline, candidate, higher_is_better)
    joined = together(baseline, candidate, labels)
    paired_by: Match = "cell" if match == "row" and not joined.has_repetitions else match
    design = design_of(joined.table, reference=joined.references)
    target = difference_target(design, joined.factor)
    keys = align(design, target, paired_by)
    refuse_unpaired(keys, labels, paired_by)
    plan = difference_plan(design, target, keys, match=paired_by, weights=weights, metric=name)
    valid_resamples(n_resamples, len(plan.rows))
    inference = Options(**asked, higher_is_better=higher)
    family, contrast_notes = infer(plan, kind="contrast", options=inference)
    rates, rate_notes = infer(
        rate_plan(design, plan, keys, match=paired_by, metric=name), kind="mean", options=inference
    )
    n_lost = keys.n_unusable() + sum(keys.n_within)
    bounds = difference_bounds(design, target, match=paired_by, weights=weights) if n_lost else None
    missing = keys.missing(labels, name)
    if bounds is not None:
        missing += bounds.rows(target.estimand.label, name, n_lost)
    parts = Parts(
        settings=RunSettings(
            metric=name,
            higher_is_better=higher,
            margin=asked["margin"],
            match=paired_by,
            weights=weights,
            interval=interval,
            cluster=design.cluster_name,
            conf_level=level,
            n_resamples=asked["n_resamples"],
            seed=asked["seed"],
        ),
        runs=(
            Run(labels[0], source_of(a), joined.models[0]),
            Run(labels[1], source_of(b), joined.models[1]),
        ),
        rates=rates,
        comparison=Comparison(family, read_independent(design, plan.blocks)),
        weights=heaviest_weights(design, plan),
        alignment=keys,
        missing=tidy_frame(missing) if missing else None,
        left_out=joined.left_out,
        notes=(
            *same_files_notes(a, b, labels),
            *joined.notes,
            *design.notes,
            *unparsed_notes(design, tally_of(design, joined.table.frame.height, None)),
            *unshared_notes(design, target),
            *unpaired_notes(design, target, keys, labels, match=paired_by),
            *contrast_notes,
            *rate_notes,
        ),
    )
    return assemble(parts, level)
