"""The Wilcoxon signed-rank test: exact with ties and zeros, and by cluster."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from triagestats import defaults
from triagestats.arguments import chosen_method, valid_choice, valid_level
from triagestats.differences import Differences, all_zero, read_differences
from triagestats.errors import ArgumentError
from triagestats.midranks import (
    MOST_ASKED,
    MOST_SIGNS,
    NO_CORRECTION,
    SignedRanks,
    normal_tail,
    untied_signs,
)
from triagestats.results import Alternative, Note, Test
from triagestats.schema import Match
from triagestats.sign_flips import FLIP_DETAILS, flip_location, flip_test
from triagestats.sign_sums import sign_p_value
from triagestats.vectors import Missing
from triagestats.walsh import Location, pseudo_median

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["wilcoxon_signed_rank"]

ZeroMethod = Literal["pratt", "wilcox", "zsplit"]
Method = Literal["auto", "exact", "normal", "cluster-sign-flip"]

_NAMES: Final[dict[ZeroMethod, str]] = {
    "pratt": "Pratt zeros",
    "wilcox": "zeros dropped",
    "zsplit": "zeros split",
}
_OF_ZEROS: Final[dict[ZeroMethod, str]] = {
    "pratt": "they are ranked, and then left out (Pratt)",
    "wilcox": "they are left out before ranking (Wilcoxon); zero_method='pratt' lets them count",
    "zsplit": "they are ranked, and half of their ranks goes to each sign",
}


def wilcoxon_signed_rank(
    x: object,
    y: object = None,
    *,
    data: object = None,
    clusters: object = None,
    zero_method: ZeroMethod = "pratt",
    method: Method | None = None,
    correction: bool = False,
    alternative: Alternative = "two-sided",
    match: Match = "cell",
    missing: Missing = "raise",
    conf_level: float | None = defaults.CONF_LEVEL,
    n_resamples: int = defaults.N_RESAMPLES,
    seed: int = defaults.SEED,
) -> Test:
    """Wilcoxon signed-rank test of paired differences, exact with ties and zeros.

    With d = x - y and r the midranks of |d|,

        T+ = sum of r[d > 0]

    and p from the law of T+ in which every sign that is not zero is as likely plus as minus, given the ranks
    that were observed. Two-sided `p = min(1, 2 min(P(T+ <= t), P(T+ >= t)))`, which is
    `P(|T+ - mu| >= |t - mu|)`.

    Parameters
    ----------
    x, y
        Vectors of one length; names of columns of `data`; or condition levels where `data` is a
        ResponseTable. `x` alone: differences.
    data
        A table of any make, or a ResponseTable.
    clusters
        One label a pair, or the name of a column. Then one sign is drawn a cluster, for all of its pairs.
    zero_method
        `pratt`: zeros are ranked with the others, then left out. `wilcox`: left out before ranking.
        `zsplit`: ranked, and half of their ranks goes to each sign.
    method
        `exact` by convolution, up to 1,000 differences that are not zero; `normal` with the variance that
        ties and zeros leave; `cluster-sign-flip`: exact by enumeration or convolution where it can be, else
        drawn. Default (`auto`, or None): `cluster-sign-flip` where `clusters` are given, else exact up to 300
        differences that are not zero, and normal beyond.
    correction
        Continuity correction of 1/2; for the normal approximation only.
    alternative
        `greater`: x tends to be larger than y.
    match
        What is paired in a ResponseTable.
    missing
        `raise`, or `omit` the pairs with a missing value.
    conf_level
        Level of the interval, which is two-sided whatever the alternative. None leaves out interval and
        pseudo-median, which take longer than the test.
    n_resamples, seed
        As in `permutation_test`; for `cluster-sign-flip`.

    Returns
    -------
    Test
        `statistic` is T+, `estimate` the Hodges-Lehmann pseudo-median of all differences with its
        interval; `details`: `t_plus`, `t_minus`, `t_min` (which others call W), `n_zero`, `n_nonzero`,
        `n_positive`, `n_negative`, `z` without continuity correction (by cluster where clusters are
        flipped), `matched_rank_biserial`.
        If all differences are zero p = 1 and the statistic is undefined.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        For arguments and data that cannot be used; the message says how to fix it.

    Notes
    -----
    The hypothesis is that differences are symmetric about zero, and independent between pairs, or clusters.
    It is not one of medians alone.

    Differences tie if they agree to ten digits, or to 1e-12 of the values that they are made of: rounding
    of floats neither breaks ties nor makes zeros count. Other programs rank the raw floats.

    Pratt is the default because zeros are outcomes where scores are few; SciPy and R drop them. R and
    SciPy take the law without ties, or the normal one, where there are ties or zeros. `zsplit` has SciPy's
    variance, with the zeros' ranks in it; `z_conditional` in `details` is without. The matched-pairs
    rank-biserial correlation is that of the differences that are not zero, (T+ - T-) / (T+ + T-) with zeros
    dropped, whatever the zero method.

    For clusters the interval holds the shifts that the sign flips do not reject. Else it is that of
    `hodges_lehmann`, whose ends are those for values without ties; where values tie, the test can turn an
    average earlier or later, and a note says where the two differ about 0.

    References
    ----------
    Wilcoxon, F. (1945), Individual comparisons by ranking methods, Biometrics Bulletin 1:80-83,
    doi:10.2307/3001968.

    Pratt, J. W. (1959), Remarks on zeros and ties in the Wilcoxon signed rank procedures, Journal of the
    American Statistical Association 54:655-667, doi:10.1080/01621459.1959.10501526.

    Rosner, B., Glynn, R. J. and Lee, M.-L. T. (2006), The Wilcoxon signed rank test for paired comparisons
    of clustered data, Biometrics 62:185-192, doi:10.1111/j.1541-0420.2005.00389.x.

    Examples
    --------
    >>> import triagestats as ts
    >>> free = [5, 4, 3, 5, 4, 2, 5, 3, 4, 5, 1, 4, 3, 5, 2]
    >>> letter = [3, 4, 2, 5, 2, 3, 3, 3, 1, 4, 2, 2, 3, 3, 1]
    >>> result = ts.wilcoxon_signed_rank(free, letter)
    >>> round(result.p_value, 7), result.estimate, result.details["n_zero"]
    (0.0205078, 1.0, 4)
    >>> ts.wilcoxon_signed_rank(free, letter, zero_method="wilcox").p_value
    0.015625
    """
    valid_choice("zero_method", zero_method, ZeroMethod)
    valid_choice("alternative", alternative, Alternative)
    asked = chosen_method(method, Method)
    level = None if conf_level is None else valid_level(conf_level)
    read = read_differences(x, y, data=data, clusters=clusters, match=match, missing=missing)
    way: Method = asked or ("cluster-sign-flip" if read.pairs.clustered else "auto")
    if correction and way in ("exact", "cluster-sign-flip"):
        raise ArgumentError(f"`correction` goes with method='normal'; got method={way!r}")
    ranked = read.ranked
    sums = _Sums(ranked, zero_method)
    name = f"Wilcoxon signed-rank, {_NAMES[zero_method]}"
    details: dict[str, Any] = sums.details()
    if way == "cluster-sign-flip":
        return _by_cluster(
            read,
            sums,
            name,
            details,
            alternative=alternative,
            level=level,
            n_resamples=n_resamples,
            seed=seed,
        )
    exact = way == "exact" or (way == "auto" and len(ranked.ranks) <= MOST_SIGNS)
    by_law = sums.p_value(alternative, asked=way == "exact") if exact else None
    if way == "exact" and by_law is None:
        raise ArgumentError(
            f"`method` 'exact' would take too long for {len(ranked.ranks):,} differences that are not zero"
            + (f" and {ranked.n_zero:,} that are" if ranked.n_zero else "")
            + f": it goes up to {MOST_ASKED:,}; use method='normal'"
        )
    location = None
    if level is not None:
        exact_ends = False if by_law is None else True if way == "exact" else None
        location = pseudo_median(ranked.values, level, exact=exact_ends, correction=correction)
        details |= {"hodges_lehmann": location.estimate, "interval": location.how}
    p_value = 1.0
    if len(ranked.ranks) == 0:
        name += ", exact"
    elif by_law is not None:
        p_value = by_law
        name += ", exact by convolution"
    else:
        z, p_value = normal_tail(sums.distance, sums.deviation, alternative, correction=correction)
        name += ", normal approximation"
        if correction:
            details["z_corrected"] = z
            name += " with continuity correction"
    return _signed_test(
        read,
        location,
        p_value=p_value,
        statistic=sums.plus if len(ranked.ranks) else None,
        alternative=alternative,
        level=level,
        name=name,
        details=details,
        notes=(
            *_about_zeros(ranked, zero_method),
            *((NO_CORRECTION,) if correction and by_law is not None else ()),
            *(_about_interval(location, p_value, level) if alternative == "two-sided" else ()),
            *read.pairs.independence("wilcoxon_signed_rank(..., method='cluster-sign-flip')"),
        ),
    )


class _Sums:
    """Sums of signed ranks under a way to treat zeros, with their moments.

    Zeros take the lowest ranks: they move the others up by their number, and that is all they do.
    """

    __slots__ = (
        "deviation",
        "distance",
        "minus",
        "moving",
        "n_positive",
        "ranked",
        "ranks",
        "split",
        "total",
        "untied",
        "zeros",
    )

    def __init__(self, ranked: SignedRanks, zero_method: ZeroMethod) -> None:
        zeros = 0 if zero_method == "wilcox" else ranked.n_zero
        self.ranked = ranked
        self.untied = ranked.untied and not zeros
        self.ranks = ranked.ranks + zeros if zeros else ranked.ranks
        self.n_positive = int(np.count_nonzero(ranked.positive))
        self.moving = float(self.ranks @ ranked.positive)
        m = len(self.ranks)
        self.total = m * (m + 1) / 2 + zeros * m
        self.zeros = zeros
        self.split = zeros * (zeros + 1) / 4 if zero_method == "zsplit" else 0.0
        self.minus = self.total - self.moving
        self.distance = self.moving - self.total / 2
        squares = m * (m + 1) * (2 * m + 1) / 6 if self.untied else float(self.ranks @ self.ranks)
        if zero_method == "zsplit":
            squares += zeros * ((zeros + 1) / 2) ** 2
        self.deviation = math.sqrt(squares / 4)

    @property
    def plus(self) -> float:
        """T+."""
        return self.moving + self.split

    def p_value(self, alternative: Alternative, *, asked: bool) -> float | None:
        """Of the ranks with a positive sign, exact; None where that would take too long."""
        if self.untied and len(self.ranks) <= MOST_SIGNS:
            law = untied_signs(len(self.ranks))
            return None if law is None else law.p_value(self.moving, alternative)
        return sign_p_value(self.ranks, self.moving, alternative, asked=asked)

    def signed(self) -> Array:
        """Signed ranks by difference, shape (n,); 0 for zeros."""
        signed = np.zeros(len(self.ranked.values))
        signed[self.ranked.rows] = np.where(self.ranked.positive, self.ranks, -self.ranks)
        return signed

    def details(self) -> dict[str, Any]:
        """What the result tells of the sums."""
        m = len(self.ranks)
        plus, minus = self.moving + self.split, self.minus + self.split
        dropped = self.moving - self.zeros * self.n_positive
        found: dict[str, Any] = {
            "t_plus": plus,
            "t_minus": minus,
            "t_min": min(plus, minus),
            "n_zero": self.ranked.n_zero,
            "n_nonzero": m,
            "n_positive": self.n_positive,
            "n_negative": m - self.n_positive,
            "z": self.distance / self.deviation if m else None,
            "matched_rank_biserial": 4 * dropped / (m * (m + 1)) - 1 if m else None,
        }
        if self.split and m:
            found["z_conditional"] = self.distance / math.sqrt(float(self.ranks @ self.ranks) / 4)
        return found


def _by_cluster(
    read: Differences,
    sums: _Sums,
    name: str,
    details: dict[str, Any],
    *,
    alternative: Alternative,
    level: float | None,
    n_resamples: int,
    seed: int,
) -> Test:
    """The cluster sign flip of the signed ranks."""
    ranked, some = read.ranked, len(sums.ranks) > 0
    shared = read.pairs.clusters_for("cluster-sign-flip")
    signed = sums.signed()
    found = flip_test(signed, shared.codes, alternative=alternative, n_resamples=n_resamples, seed=seed)
    by_cluster = np.bincount(shared.codes, weights=signed)
    spread = float(by_cluster @ by_cluster)
    location = None
    if level is not None:
        location = Location(0.0, None, None, None)
        if some:
            location = flip_location(ranked.values, shared.codes, level)
        details |= {"hodges_lehmann": location.estimate, "interval": "sign flips by cluster"}
    return _signed_test(
        read,
        location,
        p_value=found.p_value if some else 1.0,
        statistic=sums.plus if some else None,
        alternative=alternative,
        level=level,
        name=f"{name}, {found.method}",
        details=details
        | {"z": float(by_cluster.sum()) / math.sqrt(spread) if spread else None}
        | {key: found.details[key] for key in FLIP_DETAILS},
        notes=(*_about_zeros(ranked, None), *(found.notes if some else ())),
    )


def _about_zeros(ranked: SignedRanks, zero_method: ZeroMethod | None) -> tuple[Note, ...]:
    n, zeros = len(ranked.values), ranked.n_zero
    if not zeros:
        return ()
    if zeros == n:
        return (all_zero(),)
    message = f"{zeros:,} of {n:,} differences are zero"
    return (Note("zeros", message + (f"; {_OF_ZEROS[zero_method]}." if zero_method else ".")),)


def _about_interval(location: Location | None, p_value: float, level: float | None) -> tuple[Note, ...]:
    """Where ties or zeros let the test and the interval of its pseudo-median differ."""
    if location is None or level is None or location.low is None or location.high is None:
        return ()
    if location.conf_level(level) != level or (p_value < 1 - level) != (location.low <= 0 <= location.high):
        return ()
    side, holds = ("below", "holds") if p_value < 1 - level else ("not below", "leaves out")
    message = (
        f"p = {p_value:.3g} is {side} {1 - level:.3g}, and the interval {holds} 0: its ends are those for "
        "values without ties, and belong to it."
    )
    return (Note("interval", message),)


def _signed_test(
    read: Differences,
    location: Location | None,
    *,
    p_value: float | None,
    statistic: float | None,
    alternative: Alternative,
    level: float | None,
    name: str,
    details: dict[str, Any],
    notes: tuple[Note, ...],
) -> Test:
    located: dict[str, float | None] = {}
    if location is not None and level is not None:
        located = {
            "estimate": location.estimate,
            "conf_low": location.low,
            "conf_high": location.high,
            "conf_level": location.conf_level(level),
        }
    return Test(
        **located,
        estimand="pseudo-median",
        contrast=read.contrast,
        statistic=statistic,
        p_value=p_value,
        alternative=alternative,
        method=name,
        n=len(read.ranked.values),
        details=details | {"n_missing": read.pairs.n_missing},
        notes=(*read.pairs.notes, *notes, *(location.notes if location else ())),
    )
