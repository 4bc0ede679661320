"""The wild cluster bootstrap of a coefficient: p-values and intervals that hold with few clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np

from triagestats import _native
from triagestats.arguments import valid_choice, valid_flag, valid_level
from triagestats.defaults import CONF_LEVEL, FEWEST_CLUSTERS, N_RESAMPLES, SEED
from triagestats.errors import ArgumentError
from triagestats.labels import counted
from triagestats.models.matrix import ModelMatrix
from triagestats.models.t_inference import hypothesis
from triagestats.models.wild_law import POINTS, TwoSided, WildLaw, studentised
from triagestats.models.wild_scores import Coefficient, coefficient_of
from triagestats.resample import thread_count, valid_resamples, valid_seed
from triagestats.results import Note, Test

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["wild_bootstrap", "wild_statistics"]

Weights = Literal["auto", "rademacher", "webb", "mammen"]
Kind = Literal["rademacher", "webb", "mammen"]

_FEW_SIGNS: Final = 10
"""Below so many clusters drawn signs repeat, and Webb's six points are drawn instead."""
_NUMBERS: Final = 5
"""Numbers that a replicate takes."""


class _HasMatrix(Protocol):
    @property
    def matrix(self) -> ModelMatrix: ...


def wild_bootstrap(
    model: ModelMatrix | _HasMatrix,
    term: str,
    *,
    value: float = 0.0,
    weights: Weights = "auto",
    impose_null: bool = True,
    p_value: TwoSided = "symmetric",
    conf_level: float = CONF_LEVEL,
    n_resamples: int = N_RESAMPLES,
    seed: int = SEED,
    n_threads: int | None = None,
) -> Test:
    r"""Wild cluster bootstrap test of one coefficient of a linear model, with the interval by inversion.

    Residuals u of the model with b = `value` imposed are multiplied by one random weight w_g a cluster, and
    the model is fitted again to each

        y* = fitted + w_g u_g,        t* = (b* - value) / se*,        p = #{|t*| >= |t|} / R

    with errors se by cluster (CRV1), whose small-sample factor cancels in p.

    Parameters
    ----------
    model
        What `lpm` returns, with one cluster variable, or its `matrix`.
    term
        The coefficient to test.
    value
        Its value under the hypothesis.
    weights
        `rademacher`: 1 or -1, each as likely; all 2^G sign vectors are enumerated where they are at most
        `n_resamples`. `webb`: plus or minus the roots of 1/2, 1 and 3/2. `mammen`: (1 -+ sqrt 5) / 2,
        skewed. `auto`: `rademacher`, but `webb` for fewer than 10 clusters whose sign vectors are not
        enumerated.
    impose_null
        Whether the replicates have b = `value` (WCR), or the estimate (WCU, then t* = (b* - b) / se*).
    p_value
        `symmetric`: as above. `equal-tailed`: twice the smaller of #{t* >= t} / R and #{t* <= t} / R.
    conf_level
        Level of the interval: the values that the test does not reject at 1 - `conf_level`.
    n_resamples, seed
        Replicates that are drawn, and the seed.
    n_threads
        Threads; default TRIAGESTATS_NUM_THREADS, else all cores. The result does not depend on it.

    Returns
    -------
    Test
        `estimate` is the coefficient, `statistic` t. `details` has `std_error`, `n_clusters`, `value`,
        `weights`, `impose_null`, `two_sided`, `enumerated`, `n_replicates`, `n_as_extreme` (|t*| >= |t|),
        `n_above` (t* >= t), `n_below`, `n_ties` (|t*| = |t|), `n_degenerate`, `smallest_p_value`,
        `small_sample_factor`, `n_parameters`, `effective_clusters`, `n_resamples` and `seed`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument has a wrong value or type, or the model has no such term.
    DesignError
        If the model has no cluster variable or two, or one cluster, or nothing of the regressor is left
        beside the others and the fixed effects.

    Notes
    -----
    Ties count, by a relative tolerance of 1e-10: with the null imposed the data and their mirror image are
    among the sign vectors, and their t* equals t or -t but for rounding. Implementations that compare floats
    get another p under another coding of the same model: 7 of 64 or 2 of 64. Drawn replicates give
    `(b + 1) / (R + 1)`, enumerated ones b / 2^G, which for WCU can be 0. With the null imposed, replicates
    with one weight for all clusters tie with the data whatever these are: `smallest_p_value` is their share,
    plus one; p of Mammen's weights for 8 clusters is never below 0.075.

    A replicate whose error is 0 has an infinite t*, or an undefined one if its estimate is `value` too; both
    count as extreme.

    Each replicate costs clusters times the number of regressors at most, never rows: fixed effects nested in
    clusters drop out, and the others and the regressors enter by sums over clusters. The interval
    takes no more replicates: t* is known for every value from five sums. Where the test rejects no value on
    a side, as with five clusters or fewer and signs, the end is infinite. The values that are not rejected
    need not be an interval; each end is a boundary of them, sought from the estimate outwards.

    The test needs a regressor that varies in several clusters: with few treated clusters WCR rejects too
    rarely and WCU too often. `effective_clusters` is 1 / sum h_g^2, h_g the cluster's share of
    x'x after the other regressors were taken out; a note says where it is below five.

    References
    ----------
    Cameron, A. C., Gelbach, J. B. and Miller, D. L. (2008), Bootstrap-Based Improvements for Inference with
    Clustered Errors, Review of Economics and Statistics 90(3):414-427, doi:10.1162/rest.90.3.414.
    MacKinnon, J. G. and Webb, M. D. (2017), Wild Bootstrap Inference for Wildly Different Cluster Sizes,
    Journal of Applied Econometrics 32(2):233-254, doi:10.1002/jae.2508.
    Roodman, D., Nielsen, M. O., MacKinnon, J. G. and Webb, M. D. (2019), Fast and Wild: Bootstrap Inference
    in Stata Using boottest, Stata Journal 19(1):4-60, doi:10.1177/1536867X19830877.
    Webb, M. D. (2023), Reworking Wild Bootstrap-Based Inference for Clustered Errors, Canadian Journal of
    Economics 56(3):839-858, doi:10.1111/caje.12661.

    Examples
    --------
    >>> import triagestats as ts
    >>> gain = [1, 2, 0, 1, 3, 1, -1, 2]  # of arm v over arm u in eight items
    >>> rows = {
    ...     "item": [item for item in "abcdefgh" for _ in range(2)],
    ...     "arm": ["u", "v"] * 8,
    ...     "y": [score for item in range(8) for score in (item % 3, item % 3 + gain[item])],
    ... }
    >>> fit = ts.lpm("y ~ arm | item", rows, cluster="item")
    >>> result = ts.wild_bootstrap(fit, "arm[T.v]")
    >>> result.estimate, result.p_value, result.details["n_replicates"]
    (1.125, 0.078125, 256)
    """
    options = _Options(
        value=hypothesis(value),
        impose_null=impose_null,
        two_sided=p_value,
        conf_level=valid_level(conf_level),
        n_resamples=valid_resamples(n_resamples, _NUMBERS),
        seed=valid_seed(seed),
        n_threads=thread_count(n_threads),
    )
    valid_choice("weights", weights, Weights)
    valid_choice("p_value", p_value, TwoSided)
    valid_flag("impose_null", impose_null)
    data = coefficient_of(model, term)
    return _Bootstrap(data, *_weights(weights, data.scores.n_clusters, options.n_resamples), options).test()


def wild_statistics(
    model: ModelMatrix | _HasMatrix,
    term: str,
    weights: Array,
    *,
    value: float = 0.0,
    impose_null: bool = True,
    n_threads: int | None = None,
) -> Array:
    """t* of each given vector of weights, shape (R,): what `wild_bootstrap` compares with t.

    Parameters
    ----------
    model, term, value, impose_null, n_threads
        As in `wild_bootstrap`.
    weights
        One row a replicate, one column a cluster in the order of the cluster codes, shape (R, G).

    Returns
    -------
    ndarray of shape (R,)
        With the small-sample factor of CRV1. Infinite where the error is 0, NaN where the estimate of the
        replicate does not differ from its value either.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DesignError
        As `wild_bootstrap`, and if `weights` has another shape or a value that is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import triagestats as ts
    >>> from triagestats.models.wild import wild_statistics
    >>> rows = {"item": list("aabbccdd"), "arm": list("uvuvuvuv"), "y": [0, 1, 1, 1, 0, 1, 0, 2]}
    >>> fit = ts.lpm("y ~ arm | item", rows, cluster="item")
    >>> wild_statistics(fit, "arm[T.v]", np.array([[1.0, 1, 1, 1], [1, 1, -1, 1]])).round(4).tolist()
    [2.2678, 0.7171]
    """
    given = np.ascontiguousarray(weights, dtype=np.float64)
    data, held = coefficient_of(model, term), hypothesis(value)
    n_clusters = data.scores.n_clusters
    if given.ndim != 2 or given.shape[1] != n_clusters or not len(given) or not np.isfinite(given).all():
        raise ArgumentError(
            f"`weights` must be finite numbers of shape (R, {n_clusters}), a column for each cluster; got "
            f"shape {given.shape}"
        )
    held = held if impose_null else data.scores.estimate
    scores = np.ascontiguousarray(data.scores.of_residuals(held)[:, None])
    sums, squares = _native.weighted_wild_regression(
        scores, data.scores.left, given, n_threads=thread_count(n_threads)
    ).T
    return studentised(sums, squares, data.factor, data.scores.noise(held))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    value: float
    impose_null: bool
    two_sided: TwoSided
    conf_level: float
    n_resamples: int
    seed: int
    n_threads: int


def _weights(weights: Weights, n_clusters: int, n_resamples: int) -> tuple[Kind, bool]:
    """Which weights to use, and whether to enumerate them."""
    countable = n_clusters < 64 and 2**n_clusters <= n_resamples
    if weights == "auto":
        weights = "rademacher" if countable or n_clusters >= _FEW_SIGNS else "webb"
    return weights, countable and weights == "rademacher"


@dataclass(frozen=True, slots=True, eq=False)
class _Bootstrap:
    data: Coefficient
    kind: Kind
    enumerated: bool
    options: _Options

    def test(self) -> Test:
        """The result in words and numbers."""
        data, options = self.data, self.options
        n_clusters = data.scores.n_clusters
        n_replicates = 2**n_clusters if self.enumerated else options.n_resamples
        details: dict[str, Any] = {
            "std_error": data.std_error,
            "n_clusters": n_clusters,
            "value": options.value,
            "weights": self.kind,
            "impose_null": options.impose_null,
            "two_sided": options.two_sided,
            "enumerated": self.enumerated,
            "n_replicates": n_replicates,
            "smallest_p_value": self._smallest(n_replicates),
            "small_sample_factor": data.factor,
            "n_parameters": data.n_parameters,
            "effective_clusters": data.scores.size**2 / float(data.scores.own[1] @ data.scores.own[1]),
            "n_resamples": options.n_resamples,
            "seed": options.seed,
        }
        law = None if data.std_error is None else self._law(n_replicates)
        tails = None if law is None else law.tails(options.value)
        ends = None if law is None else law.interval(options.conf_level, options.two_sided)
        p = None if law is None or tails is None else law.p_value(tails, options.two_sided)
        if tails is not None:
            details |= {
                "n_as_extreme": tails.extreme,
                "n_above": tails.above,
                "n_below": tails.below,
                "n_ties": tails.ties,
                "n_degenerate": tails.degenerate,
            }
        return Test(
            estimand="coefficient",
            contrast=data.term,
            estimate=data.scores.estimate,
            statistic=None if law is None else law.observed(options.value)[0],
            p_value=p,
            conf_low=None if ends is None else ends[0],
            conf_high=None if ends is None else ends[1],
            conf_level=None if ends is None else options.conf_level,
            method=self._method(n_replicates),
            n=data.n,
            details=details,
            notes=tuple(self._notes(details, p, ends)),
        )

    def _law(self, n_replicates: int) -> WildLaw:
        """Replicates of t*, for every value where the null is imposed."""
        scores, options = self.data.scores, self.options
        held = options.value if options.impose_null else scores.estimate
        parts = [scores.of_residuals(held)] + [scores.of_regressor] * options.impose_null
        stacked = np.ascontiguousarray(np.stack(parts, axis=1))
        if self.enumerated:
            raw = _native.enumerate_wild_regression(
                stacked, scores.left, n_replicates, n_threads=options.n_threads
            )
        else:
            raw = _native.wild_regression(
                stacked, scores.left, n_replicates, options.seed, kind=self.kind, n_threads=options.n_threads
            )
        return WildLaw(self.data, held, raw, self.enumerated)

    def _smallest(self, n_replicates: int) -> float:
        """Least p-value that any data could have, for drawn weights about.

        With the null imposed and one weight for all clusters t* is t, or -t where it is negative, for any
        data: such draws always count.
        """
        symmetric, imposed = self.options.two_sided == "symmetric", self.options.impose_null
        if self.enumerated:
            return 2 / n_replicates if imposed else 0.0
        chances = [
            chance**self.data.scores.n_clusters
            for weight, chance in POINTS[self.kind]
            if imposed and (symmetric or weight > 0)
        ]
        least = (n_replicates * sum(chances) + 1) / (n_replicates + 1)
        return least if symmetric else min(1.0, 2 * least)

    def _method(self, n_replicates: int) -> str:
        null = "null imposed" if self.options.impose_null else "null not imposed"
        how = f"all {n_replicates:,} sign vectors" if self.enumerated else f"{n_replicates:,} drawn"
        tails = "" if self.options.two_sided == "symmetric" else ", equal-tailed"
        return f"wild cluster bootstrap-t, {null}{tails}, {self.kind.capitalize()} weights, {how}"

    def _notes(
        self, details: dict[str, Any], p: float | None, ends: tuple[float, float] | None
    ) -> list[Note]:
        data, g, alpha = self.data, self.data.scores.n_clusters, 1 - self.options.conf_level
        notes = [
            Note(
                "convention",
                f"CRV1 factor {data.factor:.6g}, with G = {g:,}, N = {data.n:,} and K = "
                f"{data.n_parameters:,}; it cancels in p.",
            )
        ]
        if self.kind == "webb" and g < _FEW_SIGNS:
            message = f"{g} clusters have {2**g:,} sign vectors; Webb's six points have more."
            notes.append(Note("weights", message))
        if p is None or ends is None:
            message = (
                "The error by cluster is 0, so that t is undefined: the fit is perfect, or one cluster alone "
                "decides the coefficient."
            )
            return [*notes, Note("undefined", message, "caution")]
        doubts = []
        replicates, smallest = details["n_replicates"], details["smallest_p_value"]
        if smallest > alpha:
            about = "" if self.enumerated else "about "
            message = (
                f"With {replicates:,} replicates of {g:,} clusters p cannot be below {about}{smallest:.3g}."
            )
            doubts.append(("smallest_p", message))
        if p == 0:
            message = f"No replicate is as extreme as the data, so that p is below 1/{replicates:,}."
            doubts.append(("zero_p", message))
        if math.isinf(ends[0]) or math.isinf(ends[1]):
            message = f"No value on a side is rejected at {alpha:.3g}; the interval has no end there."
            doubts.append(("unbounded", message))
        if lost := details["n_degenerate"]:
            one, many = "replicate has an error of 0, and counts", "replicates have an error of 0, and count"
            doubts.append(("degenerate", f"{counted(lost, one, many)} as extreme."))
        if (effective := details["effective_clusters"]) < FEWEST_CLUSTERS:
            message = (
                f"{data.term} varies in few clusters, as many as {effective:.1f} equal ones: "
                f"p may be far too {'large' if self.options.impose_null else 'small'}."
            )
            doubts.append(("few_clusters", message))
        return [*notes, *(Note(code, message, "caution") for code, message in doubts)]
