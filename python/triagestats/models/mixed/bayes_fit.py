"""bayes_fit: sample the posterior of a mixed model, and judge and read the draws."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from numbers import Real
from typing import Any, Final, Literal

from triagestats import defaults
from triagestats.arguments import valid_choice, valid_flag, valid_level, valid_margin
from triagestats.errors import ArgumentError, ArgumentTypeError
from triagestats.models.mixed.bayes_result import BayesianMixedModel
from triagestats.models.mixed.diagnostics import FEWEST_DRAWS, Diagnostics, diagnostics
from triagestats.models.mixed.draws import Draws
from triagestats.models.mixed.matrix import MixedMatrix
from triagestats.models.mixed.native_sampler import covers, sample_native
from triagestats.models.mixed.prior_scales import prior_scales
from triagestats.models.mixed.priors import Priors
from triagestats.models.mixed.profiles import Profiles
from triagestats.models.mixed.progress import progress_bar
from triagestats.models.mixed.pymc_sampler import sample_pymc
from triagestats.models.mixed.quantities import average_quantities, model_quantities
from triagestats.resample import thread_count
from triagestats.results import Note

__all__ = ["Sampler", "bayes_fit", "bayes_result"]

Sampler = Literal["auto", "native", "pymc", "nutpie"]

_ACCEPT: Final = {"pymc": 0.95, "nutpie": 0.95}


def bayes_fit(
    matrix: MixedMatrix,
    priors: Priors | None = None,
    *,
    profiles: Profiles,
    formula: str = "",
    contrasts: Mapping[str, str] | None = None,
    sampler: Sampler = "auto",
    chains: int = 4,
    draws: int = 1_000,
    tune: int = 1_000,
    seed: int = 0,
    target_accept: float | None = None,
    n_threads: int | None = None,
    progress: bool | None = None,
    keep_on_interrupt: bool = False,
    margin: float | None = None,
    higher_is_better: bool = True,
    conf_level: float = defaults.CONF_LEVEL,
    notes: tuple[Note, ...] = (),
) -> BayesianMixedModel:
    """Sample the posterior of a mixed model.

    Parameters
    ----------
    matrix
        The cells.
    priors
        Default: `Priors()`.
    profiles
        What probabilities are averaged over, and their comparisons.
    formula
        As it was written, for the print.
    contrasts
        For coefficients that are a comparison of levels, the comparison in words, by term.
    sampler
        `native`, `pymc` or `nutpie`; `auto` is the native one where it covers the model, else nutpie where
        that is installed, else PyMC.
    chains, draws, tune
        Number of chains, draws that each keeps, and draws before them that adapt the sampler.
    seed
        Of all that is random.
    target_accept
        Acceptance rate that the step size is adapted to. Default: that of the sampler.
    n_threads
        Chains that run at once; changes no draw of the native sampler.
    progress
        Whether a bar shows how far the chains are. Default: on a terminal.
    keep_on_interrupt
        At Ctrl-C, whether what was drawn is returned, with a note, instead of raising.
    margin
        The smallest difference that matters.
    higher_is_better
        Orientation of the verdicts.
    conf_level
        Level of the credible intervals.
    notes
        What is known of the rows already.

    Raises
    ------
    ArgumentError
        If an argument cannot be used, the native sampler does not cover the model, a prior names what the
        model does not have, or a library is not installed.
    """
    valid_choice("sampler", sampler, Sampler)
    level, least = valid_level(conf_level), valid_margin(margin)
    _check_whole("chains", chains, 1)
    _check_whole("draws", draws, FEWEST_DRAWS)
    _check_whole("tune", tune, 1)
    _check_accept(target_accept)
    if n_threads is not None:
        n_threads = thread_count(n_threads)
    if progress is not None:
        valid_flag("progress", progress)
    if priors is not None and not isinstance(priors, Priors):
        raise ArgumentTypeError(f"`priors` must be made by ts.Priors(...); got {priors!r}")
    chosen = Priors() if priors is None else priors
    prior_scales(matrix, chosen)  # refuses priors that do not fit the model, before anything is sampled
    used, why = _chosen(sampler, matrix)
    settings: dict[str, Any] = {"chains": chains, "draws": draws, "tune": tune, "seed": seed}
    accept = _ACCEPT.get(used) if target_accept is None else target_accept
    if accept is not None:
        settings["target_accept"] = accept
    if used == "native":
        with progress_bar(chains * (draws + tune), progress) as watch:
            sampled = sample_native(
                matrix,
                chosen,
                progress=watch,
                n_threads=n_threads,
                keep_on_interrupt=keep_on_interrupt,
                **settings,
            )
    else:
        sampled = sample_pymc(
            matrix,
            chosen,
            sampler="nutpie" if used == "nutpie" else "pymc",
            progress=sys.stderr.isatty() if progress is None else progress,
            cores=n_threads,
            keep_on_interrupt=keep_on_interrupt,
            **settings,
        ).draws
    if sampled.interrupted and sampled.n_draws < FEWEST_DRAWS:
        raise KeyboardInterrupt  # too few to be judged or read
    return bayes_result(
        matrix,
        chosen,
        sampled,
        profiles=profiles,
        formula=formula,
        contrasts=contrasts,
        margin=least,
        higher_is_better=higher_is_better,
        conf_level=level,
        seed=seed,
        notes=(*notes, *why),
    )


def bayes_result(
    matrix: MixedMatrix,
    priors: Priors,
    draws: Draws,
    *,
    profiles: Profiles,
    formula: str = "",
    contrasts: Mapping[str, str] | None = None,
    margin: float | None = None,
    higher_is_better: bool = True,
    conf_level: float = defaults.CONF_LEVEL,
    seed: int = 0,
    notes: tuple[Note, ...] = (),
) -> BayesianMixedModel:
    """Judge draws and compute what is reported; the parameters are those of `bayes_fit`."""
    quantities = (
        *average_quantities(matrix, draws, profiles),
        *model_quantities(matrix, draws, dict(contrasts or {})),
    )
    judged = diagnostics(draws, matrix=matrix, quantities=quantities)
    return BayesianMixedModel(
        formula=formula,
        matrix=matrix,
        priors=priors,
        draws=draws,
        profiles=profiles,
        quantities=quantities,
        diagnostics=judged,
        margin=margin,
        higher_is_better=higher_is_better,
        conf_level=conf_level,
        seed=seed,
        notes=(*notes, *_notes(matrix, priors, draws, judged)),
    )


def _check_whole(argument: str, value: object, fewest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < fewest:
        raise ArgumentError(f"`{argument}` must be a whole number, {fewest} or more; got {value!r}")


def _check_accept(value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentTypeError(f"`target_accept` must be a number between 0 and 1; got {value!r}")
    if not 0 < float(value) < 1:
        raise ArgumentError(f"`target_accept` must lie between 0 and 1; got {float(value):g}")


def _chosen(sampler: Sampler, matrix: MixedMatrix) -> tuple[str, tuple[Note, ...]]:
    """The sampler to use; where the native one does not do, why."""
    if sampler in ("pymc", "nutpie"):
        return sampler, ()
    reason = covers(matrix)
    if reason is None:
        return "native", ()
    if sampler == "native":
        raise ArgumentError(
            f"`sampler` 'native' does not cover this model: {reason}; use sampler='nutpie', 'pymc' or 'auto'"
        )
    used = "nutpie" if find_spec("nutpie") is not None else "pymc"
    message = f"The native sampler does not cover this model ({reason}): {used} sampled it."
    return used, (Note("sampler", message),)


def _notes(matrix: MixedMatrix, priors: Priors, draws: Draws, judged: Diagnostics) -> tuple[Note, ...]:
    location, coefficients, sds, correlations, residual = priors.described()
    told = [location, coefficients, sds]
    if any(part.width > 1 for part in matrix.random):
        told.append(correlations)
    if matrix.family == "gaussian":
        told += [residual, "all in standard deviations of the outcome"]
    found = [Note("priors", f"Priors: {'; '.join(told)}.")]
    if draws.interrupted:
        made = f"{draws.n_chains} x {draws.n_draws:,}"
        found.append(Note("interrupted", f"Sampling was stopped: {made} draws are kept.", "caution"))
    every = max(draws.effects_every, default=1)
    if every > 1:
        message = f"The effects of every {every}-th draw are kept: all would not fit in memory."
        found.append(Note("effects_thinned", message))
    found += [Note("diagnostics", f"{text[0].upper()}{text[1:]}.", "caution") for text in judged.failed]
    if judged.deepest:
        found.append(
            Note(
                "tree_depth",
                f"{judged.deepest:,} of {judged.n_chains * judged.n_draws:,} trajectories were cut at the "
                "greatest depth: the draws are right, but slow.",
            )
        )
    return tuple(found)
