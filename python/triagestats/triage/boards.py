"""triage_board: missed and needless escalations of models against tolerated rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_level
from triagestats.beside import Extra, Shares, refuse_known
from triagestats.errors import ArgumentError
from triagestats.flags import binary_column, flag_names, flag_shares
from triagestats.marginals import Marginals
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note
from triagestats.roles import RoleArgument
from triagestats.standings import Leaderboard
from triagestats.triage.board import Board
from triagestats.triage.board_cases import Places, places_of, read_cases
from triagestats.triage.board_ranking import RankedModels, rank_models
from triagestats.triage.board_rates import Measures, counted
from triagestats.triage.policies import Policy, Tolerances, best_random
from triagestats.triage.policies import policies as known_policies
from triagestats.triage.severity import valid_threshold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

__all__ = ["triage_board"]

BoardInterval = Literal["percentile", "auto"]


def triage_board(
    data: object = None,
    *,
    U: float,
    O: float,  # noqa: E741  # the letters of the score
    escalate: str = "escalate",
    urgent: str = "urgent",
    valid: str | None = None,
    threshold: float | None = None,
    scenario: RoleArgument = None,
    model: RoleArgument = None,
    cluster: RoleArgument = None,
    match: Literal["shared", "own"] = "shared",
    unranked: Sequence[str] = (),
    counts: object = None,
    flags: Sequence[str] = (),
    policies: bool = True,
    interval: BoardInterval = "percentile",
    conf_level: float = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
) -> Board:
    """Board of models that decide whether to escalate a case.

        under = share of the urgent cases that are not escalated
        over  = share of the other cases that are escalated
        d^2   = (under / U)^2 + (over / O)^2
        score = 100 / (1 + d^2 / 2)

    Parameters
    ----------
    data
        A table of any make with one row an answer, or a `ResponseTable`. It may be left out where there are
        `counts`.
    U, O
        The under rate and the over rate that are tolerated, above 0 and up to 1.
    escalate
        Column of 0 and 1: whether the answer escalates. Where it is blank the answer could not be read.
    urgent
        Column of 0 and 1: whether the case is urgent. With `threshold` its column of P(severe).
    valid
        Column of 0 and 1: whether the answer could be read. One that could not counts as not escalated.
    threshold
        A case is urgent where P(severe) is at least so much.
    scenario, model, cluster
        Columns; recognised where not given. Clusters are the scenarios by default.
    match
        `shared`: cases that all ranked models answered. `own`: each model on its own cases.
    unranked
        Models that are shown and not ranked. One that has no readable answer is not ranked either.
    counts
        Models known by counts alone: a table with the columns `model`, `missed`, `over`, `n_urgent` and
        `n_nonurgent`. Their intervals take cases as independent; nothing pairs them with others, so that they
        have no rank interval.
    flags
        Columns of 0 and 1 whose shares stand beside the board and do not enter it; with `valid` that of the
        readable answers stands there too.
    policies
        Whether to show what needs no model: always, never, and at random as often as cases are urgent.
    interval
        Of the rates: `percentile` of the draws, with Wilson's (or Korn and Graubard's) at 0 and 1; `auto`:
        those throughout. Score and kappa have percentile intervals.
    conf_level, n_resamples, seed
        Level, number of replicates and seed.
    n_threads
        Changes no result.

    Returns
    -------
    Board
        `standings` (one wide row a model), `leaderboard`, `sensitivity()`, `tidy()`, `with_level()`.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If U or O is not positive or above 1, a column is absent or holds something else, a case has two
        labels, or no case is urgent, or none is not; `counts` name a model that has rows, or a policy.

    Notes
    -----
    All rates, scores and ranks are read from one joint draw of clusters, in which the numbers of urgent and
    other cases vary. Ranks, rank sets and verdicts compare the distances d, not the scores, which are a
    decreasing function of d. Scaling U and O together scales every d as a whole: it changes scores, and never
    ranks, rank sets or verdicts. `leaderboard.pairs` are differences of d: the smaller is the better.

    With fewer than 5 clusters that hold urgent cases, or other cases, scores and kappas have no interval,
    ranks no set and pairs no verdict, however many cases there are; up to 11 they carry a warning.

    The box verdict is `inside` where the upper limits of both rates are below U and O, `outside` where a
    lower limit is above, else `undecided`. Both limits hold at once at `conf_level`: they are Korn and
    Graubard's plus two at 1 - (1 - conf_level) / 2 each (Bonferroni), which do not collapse at rates of 0.

    A score below that of the best coin, 100 / (1 + 1 / (2 (U^2 + O^2))) at a chance of escalating of
    O^2 / (U^2 + O^2), says less than the coin.

    References
    ----------
    Cohen, J. (1960), A coefficient of agreement for nominal scales, Educational and Psychological Measurement
    20(1):37-46, doi:10.1177/001316446002000104.

    Korn, E. L. and Graubard, B. I. (1998), Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data, Survey Methodology 24(2):193-201.

    Romano, J. P. and Wolf, M. (2005), Exact and approximate stepdown methods for multiple hypothesis
    testing, JASA 100(469):94-108, doi:10.1198/016214504000000539.

    Examples
    --------
    >>> import triagestats as ts
    >>> cases = [(case, model) for case in range(60) for model in ("a", "b")]
    >>> table = {"case": [case for case, _ in cases], "model": [model for _, model in cases]}
    >>> table["urgent"] = [case < 20 for case, _ in cases]
    >>> table["escalate"] = [case * {"a": 3, "b": 5}[model] % 7 < 5 for case, model in cases]
    >>> board = ts.triage_board(table, U=0.05, O=0.35, n_resamples=999)
    >>> board.standings.select("model", "missed", "over", "box").row(0)
    ('a', 6.0, 29.0, 'outside')
    >>> board.standings.filter(kind="policy").select("model", "score").row(0)
    ('always escalate', 19.67871485943775)
    """
    tolerances = Tolerances(U, O)
    valid_choice("match", match, Literal["shared", "own"])
    valid_choice("interval", interval, BoardInterval)
    if data is None and counts is None:
        raise ArgumentError("`data` is needed: a table with one row an answer, or `counts`")
    asked: dict[str, Any] = {"n_resamples": valid_resamples(n_resamples), "seed": valid_seed(seed)}
    threads = thread_count(n_threads)
    level = valid_level(conf_level)
    known = None
    if counts is not None:
        known = counted(counts, tolerances, interval=interval, n_threads=threads, **asked)
    found = None
    if data is not None:
        places = places_of(data, scenario=scenario, model=model, cluster=cluster)
        cases, notes = read_cases(
            places,
            escalate=escalate,
            urgent=urgent,
            valid=valid,
            threshold=None if threshold is None else valid_threshold(threshold),
        )
        found = rank_models(
            cases,
            tolerances,
            unranked,
            readable=valid is not None,
            match=match,
            interval=interval,
            n_threads=threads,
            **asked,
        )
        shares = _flags(places, flag_names(flags), valid)
        found = replace(found, notes=(*places.notes, *notes, *found.notes), flags=shares)
    if known is not None:
        _refuse_twice(known[0], found, policies=policies)
    return _board(found, known, tolerances, policies=policies, conf_level=level, **asked)


def _flags(places: Places, names: tuple[str, ...], valid: str | None) -> Shares | None:
    """Shares of flag columns, and of readable answers."""
    columns = [(name, binary_column(places.frame, name, "flags")) for name in names]
    if valid is not None:
        columns.append(("readable", binary_column(places.frame, valid, "valid")))
    return flag_shares(columns, places.models, places.model, places.scenario, places.cluster)


def _refuse_twice(names: Sequence[str], found: RankedModels | None, *, policies: bool) -> None:
    """Refuse counts of models that have rows, or that are called as a policy that is shown."""
    if found is not None:
        fix = "leave them out of `counts`, or give the counts another name, such as 'gpt (published)'"
        refuse_known(names, found.models, "which has rows in `data`", fix)
    if policies:
        shown = [policy.name for policy in known_policies(0.5)]
        fix = "give the model another name, or leave policies out with `policies=False`"
        refuse_known(names, shown, "which is the name of a policy on the board", fix)


def _board(
    found: RankedModels | None,
    known: tuple[tuple[str, ...], Measures] | None,
    tolerances: Tolerances,
    *,
    policies: bool,
    conf_level: float,
    n_resamples: int,
    seed: int,
) -> Board:
    """The board of what is known by rows and by counts."""
    notes = () if found is None else found.notes
    extras: list[Extra] = []
    shown: tuple[Policy, ...] = ()
    parts = [
        part
        for part in (None if found is None else found.measures, None if known is None else known[1])
        if part
    ]
    if policies:
        sums = parts[0].sums
        shown = known_policies(float(sums[0, 0] / sums[:2, 0].sum()))
        chance, score = best_random(tolerances)
        message = (
            f"Escalating at random scores at most {score:.4g}, at a chance of {chance:.4g}: a model below "
            "that does no better than a coin."
        )
        notes = (*notes, Note("best_random", message))
        extras = [
            Extra(
                p.name,
                "policy",
                float(tolerances.score(np.array(p.under), np.array(p.over))),
                strength=-tolerances.distance(p.under, p.over),
            )
            for p in shown
        ]
    if known is not None:
        message = (
            "Models known by counts alone: cases are taken as independent, and "
            "nothing pairs them with others."
        )
        notes = (*notes, Note("counts", message, "caution"))
        names, measures = known
        extras = [
            *(
                Extra(
                    name,
                    "counts",
                    float(measures.score.estimate[e]),
                    int(measures.score.n_rows[e]),
                    replicates=measures.score.replicates[:, e],
                    strength=-float(measures.distance[e]),
                    scarce=measures.score.scarce[e],
                )
                for e, name in enumerate(names)
            ),
            *extras,
        ]
    n_ranked = 0 if found is None else found.n_ranked
    board = Leaderboard(
        metric="score",
        models=() if found is None else found.models[:n_ranked],
        unranked=() if found is None else found.models[n_ranked:],
        marginals=_none() if found is None else found.measures.score,
        contest=None
        if found is None
        else found.joint.contest(
            np.arange(n_ranked),
            found.contributes[:, :n_ranked],
            higher_is_better=False,
            metric="distance",
            scarce=found.scarce,
        ),
        extras=tuple(extras),
        flags=None if found is None else found.flags,
        n_scenarios=0 if found is None else len(found.cases.severe),
        higher_is_better=True,
        conf_level=conf_level,
        n_resamples=n_resamples,
        seed=seed,
        notes=notes,
        strength=None if found is None else -found.measures.distance,
    )
    return Board(
        tolerances=tolerances,
        leaderboard=board,
        measures=tuple(parts),
        policies=shown,
        cases=None if found is None else found.cases,
    )


def _none() -> Marginals:
    """No estimates."""
    nothing, none = np.empty(0), np.empty(0, dtype=np.int64)
    return Marginals(nothing, nothing, none, none, (), none, np.empty((0, 0)))
