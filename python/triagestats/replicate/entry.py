"""Entry: what was published, what the library finds, and whether they match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from triagestats.replicate.leaves import agrees, flat, printed_alike, shown
from triagestats.replicate.montecarlo import Band
from triagestats.replicate.published import Kind, Published

__all__ = ["Clustered", "Entry", "Found", "NotDerivableError", "Verdict", "judged"]

Verdict = Literal["yes", "within Monte Carlo error", "no", "not derivable"]
_MOST: Final = 3
"""Parts of an entry that are named in a reason."""


class NotDerivableError(Exception):
    """An entry cannot be computed from what the folder holds; the message says why."""


@dataclass(frozen=True, slots=True)
class Clustered:
    """The answer of the library that respects clusters.

    Attributes
    ----------
    about
        What is estimated.
    estimate, conf_low, conf_high, p_value
        None where there is none.
    n_clusters, cluster
        What was taken as independent.
    method
        How the interval and the p-value were made.
    note
        What must be known beside it.
    """

    about: str
    estimate: float | None = None
    conf_low: float | None = None
    conf_high: float | None = None
    p_value: float | None = None
    n_clusters: int | None = None
    cluster: str = "scenario"
    method: str = ""
    note: str = ""

    def __str__(self) -> str:
        parts = [self.about]
        if self.estimate is not None:
            parts.append(f"{self.estimate:.4g}")
        if self.conf_low is not None and self.conf_high is not None:
            parts.append(f"[{self.conf_low:.4g}, {self.conf_high:.4g}]")
        if self.p_value is not None:
            parts.append(f"p = {self.p_value:.3g}")
        text = " ".join(parts)
        if self.n_clusters is not None:
            text += f", {self.n_clusters:,} {self.cluster} cluster" + ("" if self.n_clusters == 1 else "s")
        return text + (f"; {self.note}" if self.note else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Found:
    """What a recipe of the library gives for one entry.

    Attributes
    ----------
    value
        In the shape of what was published; of what was recomputed, where nothing was published.
    recomputed
        In the shape of what the folder recomputed, where that is another one.
    bands
        By path of a leaf, where a resampled value of the source may lie.
    clustered
        Answers that respect clusters.
    note
        What must be known of the value.
    """

    value: Any
    recomputed: Any = None
    bands: Mapping[str, Band] = field(default_factory=dict)
    clustered: tuple[Clustered, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One published value beside that of the library.

    Attributes
    ----------
    id, kind
        As in expected.json: `published`, or a `reference` value of the folder.
    claim, where
        What it says and where it stands.
    published
        What was printed; of a reference value what the folder recomputed.
    value
        What the library finds, in the same shape; None where it finds nothing.
    match
        `yes`: to the printed digits, or the tolerance that the folder states. `within Monte Carlo error`: a
        resampled value lies in the band that the numbers of replicates leave. `no`, or `not derivable`.
    marked
        Whether the folder marks it as matching.
    recomputed_agrees
        Whether the library also finds what the folder recomputed, to nine digits or within the band; None
        where that was not compared.
    reason
        Why it does not match or cannot be derived, or what is to be known.
    clustered
        Answers that respect clusters.
    """

    id: str
    kind: Kind
    claim: str
    where: str
    published: Any
    value: Any
    match: Verdict
    marked: bool
    mark: str
    recomputed_agrees: bool | None
    reason: str
    clustered: tuple[Clustered, ...]

    @property
    def failed(self) -> bool:
        """Whether the folder marks it as matching and it does not match."""
        return self.marked and self.match == "no"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        names = [name for name in self.__slots__ if name != "clustered"]
        return {name: getattr(self, name) for name in names} | {
            "clustered": [answer.to_dict() for answer in self.clustered]
        }


def judged(published: Published, found: Found | NotDerivableError) -> Entry:
    """The entry of what was published and what was found."""
    printed = published.published if published.published is not None else published.recomputed
    shared: dict[str, Any] = {
        "id": published.id,
        "kind": published.kind,
        "claim": published.claim,
        "where": published.where,
        "published": printed,
        "marked": published.marked,
        "mark": published.mark,
    }
    if isinstance(found, NotDerivableError):
        return Entry(
            **shared,
            value=None,
            match="not derivable",
            recomputed_agrees=None,
            reason=str(found),
            clustered=(),
        )
    exact = published.published is None
    compared = _compare(printed, found.value, found.bands, published.tolerance, exact=exact)
    kept = found.value if found.recomputed is None else found.recomputed
    again = None
    if published.recomputed is not None and not exact:
        again = _compare(published.recomputed, kept, found.bands, None, exact=True)
    checked = compared if exact else again
    if not compared.n_compared:
        return Entry(
            **shared,
            value=found.value,
            match="not derivable",
            recomputed_agrees=None if checked is None or not checked.n_compared else not checked.wrong,
            reason=_joined(found.note or "the library gives no part of it", published.note),
            clustered=found.clustered,
        )
    match: Verdict = "yes"
    if compared.wrong:
        match = "no"
    elif compared.resampled:
        match = "within Monte Carlo error"
    return Entry(
        **shared,
        value=found.value,
        match=match,
        recomputed_agrees=None if checked is None or not checked.n_compared else not checked.wrong,
        reason=_reason(published, found, compared, again),
        clustered=found.clustered,
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """Leaves of two JSON values, side by side."""

    n_compared: int
    wrong: dict[str, tuple[Any, Any]]
    resampled: dict[str, Band]
    absent: tuple[str, ...]


def _compare(
    wanted: Any, value: Any, bands: Mapping[str, Band], tolerance: float | None, *, exact: bool
) -> _Compared:
    """Which leaves differ; those that one side does not have, or has no value for, are not compared."""
    there, here = flat(wanted), flat(value)
    wrong: dict[str, tuple[Any, Any]] = {}
    resampled: dict[str, Band] = {}
    shared = [path for path in there if path in here and there[path] is not None and here[path] is not None]
    for path in shared:
        said, got = there[path], here[path]
        if agrees(said, got) if exact else printed_alike(said, got, tolerance):
            continue
        band = bands.get(path)
        if band is not None and isinstance(said, int | float) and band.holds(said, tolerance or 0.0):
            resampled[path] = band
        else:
            wrong[path] = (said, got)
    told = {path for path, said in there.items() if exact and isinstance(said, str)}  # words beside numbers
    absent = tuple(path for path, said in there.items() if said is not None and path not in {*shared, *told})
    return _Compared(len(shared), wrong, resampled, absent)


def _reason(published: Published, found: Found, compared: _Compared, again: _Compared | None) -> str:
    """Why an entry does not match, or what is to be known where it does."""
    parts = []
    if compared.wrong:
        number = f"{len(compared.wrong)} of {compared.n_compared} parts differ: "
        parts.append((number if compared.n_compared > 1 else "") + _differences(compared.wrong))
        parts.append(published.note or (published.recipe if published.kind == "published" else ""))
    elif compared.resampled:
        path, band = next(iter(compared.resampled.items()))
        parts.append(f"{path}: {band}" if path else str(band))
    elif published.mark not in ("yes", "reference"):
        parts.append(published.note)
    if again is not None and again.wrong:
        parts.append(f"the folder recomputed other values: {_differences(again.wrong)}")
    if compared.absent:
        more = len(compared.absent) - _MOST
        named = ", ".join(compared.absent[:_MOST]) + (f" and {more} more" if more > 0 else "")
        parts.append(f"not compared: {named}")
    parts.append(found.note)
    return _joined(*parts)


def _differences(wrong: Mapping[str, tuple[Any, Any]]) -> str:
    told = [
        f"{path + ' ' if path else ''}{shown(said)} against {shown(got)}"
        for path, (said, got) in list(wrong.items())[:_MOST]
    ]
    return "; ".join(told) + (f"; and {len(wrong) - _MOST} more" if len(wrong) > _MOST else "")


def _joined(*parts: str) -> str:
    return ". ".join(part.rstrip(". ") for part in parts if part)
