"""What every result shares: notes, the tidy frame, and the result of one test."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol

import polars as pl

from triagestats.schema import GLOSSARY, SCHEMA_VERSION

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "TIDY_SCHEMA",
    "Alternative",
    "Hypothesis",
    "Note",
    "Shown",
    "Test",
    "as_json",
    "notes_as_json",
    "plain",
    "tidy_frame",
]

Alternative = Literal["two-sided", "greater", "less"]
Hypothesis = Alternative | Literal["equivalence"]

_KINDS: Final = {"text": pl.String, "number": pl.Float64, "count": pl.Int64}
_SIGNS: Final = (" - ", " / ", " = ", ": ", ", ")
"""Signs of a comparison in words."""
TIDY_SCHEMA: Final = pl.Schema({column.name: _KINDS[column.kind] for column in GLOSSARY})


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of a result must know: a choice that was made, or a doubt.

    Attributes
    ----------
    code
        Stable identifier, such as `reference` or `few_clusters`.
    message
        The note in words.
    level
        `info` for a choice that was made, `caution` for a doubt.

    Examples
    --------
    >>> import triagestats as ts
    >>> print(ts.Note("few_clusters", "Eight scenarios are few.", "caution"))
    Eight scenarios are few.
    """

    code: str
    message: str
    level: Literal["info", "caution"] = "info"

    def __str__(self) -> str:
        return self.message


class Shown:
    """What results have in common: a pandas frame of `tidy()`, and the repr in a notebook."""

    __slots__ = ()

    def tidy(self) -> pl.DataFrame:
        """One row an estimate, with the columns of the glossary."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """`tidy()` as a pandas frame; needs pandas and pyarrow."""
        frame: pd.DataFrame = self.tidy().to_pandas()
        return frame

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


class _Settled(Protocol):
    @property
    def notes(self) -> tuple[Note, ...]: ...
    def glance(self) -> pl.DataFrame: ...


def as_json(result: _Settled, settings: Mapping[str, Any] | None = None, **parts: object) -> dict[str, Any]:
    """A result as plain JSON values: schema, settings of `glance()` and more, parts, and notes.

    Frames among the parts become lists of rows.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "settings": plain(result.glance())[0] | dict(settings or {}),
        **{name: plain(part) if isinstance(part, pl.DataFrame) else part for name, part in parts.items()},
        "notes": notes_as_json(result.notes),
    }


def notes_as_json(notes: Iterable[Note]) -> list[dict[str, str]]:
    """Notes as plain JSON values."""
    return [{"code": note.code, "level": note.level, "message": note.message} for note in notes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Test(Shown):
    """Result of one test.

    Attributes
    ----------
    estimand, contrast
        What is estimated, and the comparison in words; None where there is no comparison.
    estimate
        The point estimate, in the units of the data; None for a test without one.
    statistic
        The test statistic.
    p_value
        For `alternative`, not adjusted.
    conf_low, conf_high, conf_level
        Interval of the estimate and its level, None where the test has none.
    alternative
        `two-sided`, `greater` or `less`; `equivalence` where both bounds are tested.
    method
        The test in words, and whether its p-value is exact.
    n
        Observations that were used: pairs, or rows.
    details
        Quantities of this method, plain values by name.
    notes
        Choices made and doubts; one with the code `undefined` says why a number is None.

    Examples
    --------
    >>> import triagestats as ts
    >>> result = ts.permutation_test([5, 6, 7, 9], [4, 4, 6, 5])
    >>> isinstance(result, ts.Test), result.estimate, result.p_value
    (True, 2.0, 0.125)
    >>> result.tidy()["contrast"].to_list(), result.glance().height
    (['a - b'], 1)
    """

    __test__: ClassVar[bool] = False  # pytest takes classes of this name for tests

    estimand: str | None
    contrast: str | None = None
    estimate: float | None = None
    statistic: float | None
    p_value: float | None
    conf_low: float | None = None
    conf_high: float | None = None
    conf_level: float | None = None
    alternative: Hypothesis = "two-sided"
    method: str
    n: int
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def undefined(self) -> str | None:
        """Why what was asked is undefined for these data; None where it is defined."""
        return next((note.message for note in self.notes if note.code == "undefined"), None)

    def tidy(self) -> pl.DataFrame:
        """One row with the columns of the glossary."""
        doubts = [note.message for note in self.notes if note.level == "caution"]
        one_sided = f"; one-sided, {self.alternative}" if self.alternative in ("greater", "less") else ""
        row = {
            name: getattr(self, name)
            for name in (
                "estimand",
                "contrast",
                "estimate",
                "conf_low",
                "conf_high",
                "conf_level",
                "statistic",
                "p_value",
            )
        }
        others = ("std_error", "df", "n_clusters", "n_missing")
        details = {name: self.details[name] for name in others if name in self.details}
        return tidy_frame(
            [
                row
                | details
                | {
                    "status": "undefined" if self.undefined else "warning" if doubts else "ok",
                    "reason": " ".join(doubts) or None,
                    "method": self.method + one_sided,
                    "n_rows": self.n,
                }
            ]
        )

    def glance(self) -> pl.DataFrame:
        """One row: the test without its details."""
        numbers = ("estimate", "statistic", "p_value", "conf_low", "conf_high", "conf_level")
        return pl.DataFrame(
            {name: [getattr(self, name)] for name in (*numbers, "alternative", "method", "n")}
            | {"n_notes": [len(self.notes)]},
            schema_overrides=dict.fromkeys(numbers, pl.Float64),
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        names = [name for name in self.__slots__ if name not in ("details", "notes")]
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: _json(getattr(self, name)) for name in names},
            "details": _json(self.details),
            "notes": notes_as_json(self.notes),
        }

    def _named(self) -> str:
        """What the estimate is: a comparison speaks for itself; of one vector, or for a share, in words."""
        if self.contrast is None or self.estimand is None:
            return str(self.contrast or self.estimand)
        compared = any(sign in self.contrast for sign in _SIGNS) and not self.estimand.startswith("share")
        if compared or self.contrast.startswith(self.estimand):
            return self.contrast
        return f"{self.estimand} of {self.contrast}"

    def __repr__(self) -> str:
        numbers = [] if self.estimate is None else [f"{self._named()} = {self.estimate:.4g}"]
        if self.conf_low is not None and self.conf_high is not None and self.conf_level is not None:
            numbers.append(f"{self.conf_level:.4g} interval {self.conf_low:.4g} to {self.conf_high:.4g}")
        if self.statistic is not None and self.statistic != self.estimate:
            numbers.append(f"statistic = {self.statistic:.4g}")
        if self.p_value is not None:
            numbers.append(f"p = {self.p_value:.3g} ({self.alternative})")
        if not numbers:
            numbers.append("undefined")
        return " ".join([f"{self.method}: {', '.join(numbers)}, n = {self.n:,}.", *map(str, self.notes)])


def tidy_frame(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Rows as a frame with all columns of the glossary, in its order.

    Parameters
    ----------
    rows
        One mapping an estimate. Absent keys become null, and so do numbers that are NaN:
        a tidy result holds null where a number is undefined.

    Raises
    ------
    KeyError
        If a row has a key that the glossary does not know.
    """
    listed = list(rows)
    unknown = {key for row in listed for key in row} - set(TIDY_SCHEMA)
    if unknown:
        raise KeyError(f"not in the glossary of result columns: {sorted(unknown)}")
    columns = {name: [_value(row.get(name)) for row in listed] for name in TIDY_SCHEMA}
    return pl.DataFrame(columns, schema=TIDY_SCHEMA)


def _value(value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def plain(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame as plain JSON values: NaN becomes null, and infinity text, as JSON has neither."""
    return [{key: _json(value) for key, value in row.items()} for row in frame.iter_rows(named=True)]


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else _value(value)
