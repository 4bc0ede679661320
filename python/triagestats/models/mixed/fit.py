"""mixed: logistic, ordinal and linear mixed models of response tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Unpack, overload

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_flag, valid_level, valid_margin
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.models.mixed.bayes_fit import Sampler, bayes_fit
from triagestats.models.mixed.bayes_result import BayesianMixedModel
from triagestats.models.mixed.laplace import fit_laplace
from triagestats.models.mixed.laplace_notes import laplace_notes
from triagestats.models.mixed.matrix import Family
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.profiles import profiles_of
from triagestats.models.mixed.read import MixedData, mixed_data
from triagestats.models.mixed.result import MixedModel
from triagestats.resample import thread_count, valid_seed
from triagestats.table import ResponseTable

__all__ = ["mixed"]

Engine = Literal["laplace", "bayes"]


class _Options(TypedDict, total=False):
    """What both engines take."""

    family: Family
    judge: str | None
    levels: Sequence[str] | None
    nodes: int
    reml: bool
    priors: Priors | None
    sampler: Sampler
    chains: int
    draws: int
    tune: int
    target_accept: float | None
    seed: int
    n_threads: int | None
    progress: bool | None
    keep_on_interrupt: bool
    margin: float | None
    higher_is_better: bool | None
    conf_level: float


@overload
def mixed(
    formula: str, data: object, *, engine: Literal["laplace"] = ..., **options: Unpack[_Options]
) -> MixedModel: ...


@overload
def mixed(
    formula: str, data: object, *, engine: Literal["bayes"], **options: Unpack[_Options]
) -> BayesianMixedModel: ...


def mixed(
    formula: str,
    data: object,
    *,
    family: Family = "binomial",
    engine: Engine = "laplace",
    judge: str | None = None,
    levels: Sequence[str] | None = None,
    nodes: int = 1,
    reml: bool = True,
    priors: Priors | None = None,
    sampler: Sampler = "auto",
    chains: int = 4,
    draws: int = 1_000,
    tune: int = 1_000,
    target_accept: float | None = None,
    seed: int = defaults.SEED,
    n_threads: int | None = None,
    progress: bool | None = None,
    keep_on_interrupt: bool = False,
    margin: float | None = None,
    higher_is_better: bool | None = None,
    conf_level: float = defaults.CONF_LEVEL,
) -> MixedModel | BayesianMixedModel:
    r"""Mixed model of a response table, with probabilities averaged over new scenarios.

    With random effects u of each grouping drawn from a normal distribution of their own,

    .. math::
        \text{binomial: } \operatorname{logit} P(y = 1) = x'b + z'u, \quad
        \text{ordinal: } \operatorname{logit} P(y \le j) = \theta_j - x'b - z'u, \quad
        \text{gaussian: } y = x'b + z'u + e.

    What is reported first is on the scale of rates: the probability at each level of a regressor, integrated
    over the distribution of the random effects,

    .. math::
        \bar P(l) = \sum_i w_i \int \operatorname{expit}(x_i(l)'b + s_i t) \, \phi(t) \, dt, \qquad
        s_i^2 = \sum_t z_{it}' \Sigma_t z_{it},

    and the differences of these. They are those of new scenarios (and models, where these are random), not of
    a scenario of median difficulty, whose random effects are 0.

    Parameters
    ----------
    formula
        `correct ~ condition + (1 | scenario) + (1 | model)`. Regressors as in `lpm`; `(1 | a:b)` has one
        effect for each pair of levels, `(1 | a/b)` is `(1 | a) + (1 | a:b)`, `(condition | scenario)` has an
        intercept and a slope for each scenario that are correlated, and `||` makes them independent. Of a
        ResponseTable, `(1 | response)` has one effect for all judges of a response.
    data
        A table of any make, or a ResponseTable.
    family
        `binomial`: 0 and 1. `ordinal`: labels with an order (`levels`, that of the ResponseTable, or an
        Enum), or few numbers. `gaussian`: numbers.
    engine
        `laplace`: maximum likelihood, by the Laplace approximation (exact for `gaussian`). `bayes`: draws
        from the posterior.
    judge
        The judge whose scores are modelled, where there are several.
    levels
        The labels of an ordinal outcome from lowest to highest.
    nodes
        1: Laplace. More: adaptive Gauss-Hermite quadrature with so many nodes, for a model with one random
        intercept.
    reml
        Whether a gaussian model is fitted by restricted maximum likelihood.
    priors
        With `bayes`, the scales of the prior distributions. Default: `ts.Priors()`.
    sampler
        With `bayes`: `native` (logistic models with random intercepts, no compiling), `pymc`, `nutpie`;
        `auto` is native where it covers the model, else nutpie where it is installed, else PyMC.
    chains, draws, tune, target_accept
        With `bayes`: chains, draws that each keeps, draws before them that tune it, and the acceptance rate
        that steps are tuned to.
    seed
        With `bayes`: the same call gives the same draws.
    n_threads
        With `bayes`: chains that run at once; changes no draw of the native sampler.
    progress
        With `bayes`: whether to show a bar. Default: on a terminal.
    keep_on_interrupt
        With `bayes`: at Ctrl-C, whether what was drawn is returned, with a note, instead of raising.
    margin
        The smallest difference of rates that matters; the verdicts `equivalent` and `not worse` need one.
    higher_is_better
        Orientation of the verdicts. Default: that of the ResponseTable, else True.
    conf_level
        Level of the intervals.

    Returns
    -------
    MixedModel
        Print it; `tidy()` has averages and differences, coefficients, and standard deviations; `averages()`
        has the averages at other places, `random_effects()` the predicted effects, `likelihood_ratio()`
        compares models.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If the formula or an argument cannot be read, or labels have no order.
    DataError
        If the outcome is not of the family; means of judges are none.
    DesignError
        If a random factor has one level, or cannot be told from another.

    Notes
    -----
    Rows that share all columns of the formula are collapsed to counts, so that the time depends on the cells.

    Random intercepts alone take the effect of a condition to be the same in every scenario. Where it is not,
    its error is too small for new scenarios; a note says so and names the term to add.

    The Laplace approximation makes standard deviations of effects with few rows each somewhat too small (.70
    for .75 where an effect had three rows). Quadrature, for one grouping, does not. Errors
    are those of the full Hessian, those of averages by the delta method; intervals of probabilities are
    symmetric in log odds, of standard deviations in logarithms. A variance that is estimated at 0 is reported
    as 0, without error, and the rest of the model holds.

    References
    ----------
    Breslow, N. E. and Clayton, D. G. (1993), Approximate inference in generalized linear mixed models,
    Journal of the American Statistical Association 88(421):9-25, doi:10.1080/01621459.1993.10594284.

    Bates, D., Maechler, M., Bolker, B. and Walker, S. (2015), Fitting linear mixed-effects models using lme4,
    Journal of Statistical Software 67(1), doi:10.18637/jss.v067.i01.

    Examples
    --------
    >>> import triagestats as ts
    >>> formula = "correct ~ condition + (1 | scenario) + (1 | model) + (1 | scenario:condition)"
    >>> fit = ts.mixed(formula, ts.demo_table(), judge="judge_1")
    >>> difference = fit.tidy().row(3, named=True)
    >>> difference["estimand"], difference["contrast"], round(difference["estimate"], 2)
    ('population-averaged probability', 'letter - free_text', -0.04)
    """
    valid_choice("family", family, Family)
    valid_choice("engine", engine, Engine)
    read = mixed_data(formula, data, family=family, judge=judge, levels=levels)
    shared: dict[str, Any] = {
        "profiles": profiles_of(read),
        "margin": valid_margin(margin),
        "higher_is_better": _orientation(higher_is_better, data),
        "conf_level": valid_level(conf_level),
    }
    if engine == "bayes":
        if nodes != 1 or isinstance(nodes, bool):
            raise ArgumentError(f"`nodes` is of the Laplace engine; got {nodes!r} with engine='bayes'")
        if not valid_flag("reml", reml):
            raise ArgumentError("`reml` is of the Laplace engine; got False with engine='bayes'")
        return bayes_fit(
            read.matrix,
            priors,
            formula=read.formula.text,
            contrasts=read.columns.contrasts,
            sampler=sampler,
            chains=chains,
            draws=draws,
            tune=tune,
            seed=valid_seed(seed),
            target_accept=target_accept,
            n_threads=n_threads,
            progress=progress,
            keep_on_interrupt=valid_flag("keep_on_interrupt", keep_on_interrupt),
            notes=read.notes,
            **shared,
        )
    if priors is not None:
        raise ArgumentError("`priors` are of engine='bayes'; maximum likelihood has none")
    asked = {"sampler": (sampler, "auto"), "chains": (chains, 4), "draws": (draws, 1_000),
             "tune": (tune, 1_000), "target_accept": (target_accept, None),
             "keep_on_interrupt": (keep_on_interrupt, False)}  # fmt: skip
    for name, (value, default) in asked.items():
        if value != default:
            raise ArgumentError(f"`{name}` is of engine='bayes'; got {value!r} with engine={engine!r}")
    valid_seed(seed)
    thread_count(n_threads)
    fit = fit_laplace(read.matrix, nodes=_nodes(nodes, read), reml=valid_flag("reml", reml))
    return MixedModel(data=read, fit=fit, notes=(*read.notes, *laplace_notes(read.matrix, fit)), **shared)


def _nodes(nodes: object, read: MixedData) -> int:
    """The number of nodes, if the model has the one random intercept that several need."""
    most = 100
    if isinstance(nodes, bool) or not isinstance(nodes, int):
        raise ArgumentTypeError(f"`nodes` must be a whole number; got {nodes!r}")
    if not 1 <= nodes <= most:
        raise ArgumentError(f"`nodes` must be from 1 (Laplace) to {most}; got {nodes}")
    random = read.matrix.random
    if nodes > 1 and (len(random) != 1 or not random[0].intercept_only or read.matrix.family == "gaussian"):
        what = ", ".join(part.name for part in random) or "none"
        raise ArgumentError(
            f"`nodes` above 1 are for a binomial or ordinal model with one random intercept; this one is "
            f"{read.matrix.family} with random effects of {what}. Leave `nodes` out"
        )
    return nodes


def _orientation(higher_is_better: object, data: object) -> bool:
    if higher_is_better is None:
        return data.higher_is_better if isinstance(data, ResponseTable) else True
    return valid_flag("higher_is_better", higher_is_better)
