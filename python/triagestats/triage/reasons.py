"""valid_reason: serious cases that are escalated for a reason that is valid for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from triagestats import defaults
from triagestats.arguments import valid_level
from triagestats.errors import ArgumentTypeError, DataError, DesignError
from triagestats.flags import binary_column, column_named
from triagestats.labels import counted, label_of
from triagestats.marginals import Marginals, pooled_share, shares_of
from triagestats.results import Note, Shown, as_json, tidy_frame
from triagestats.roles import RoleArgument
from triagestats.triage.board_cases import Places, places_of
from triagestats.triage.text import aligned, withheld_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["ValidReasons", "valid_reason"]

Reasons = frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class ValidReasons(Shown):
    """Shares of serious cases that are escalated, and escalated for a valid reason.

    Attributes
    ----------
    rows
        For each estimate what it is, and what its interval is read from.
    answers
        One row an answer to a serious case: `scenario`, `model`, `escalated`, `valid_reason`, `passed`.
    conf_level
        Level of the intervals.
    notes
        Choices made and doubts.

    Examples
    --------
    >>> import triagestats as ts
    >>> table = {
    ...     "case": [1, 2, 3, 4, 5, 6],
    ...     "escalated": [1, 1, 1, 0, 1, 1],
    ...     "reasons": ["stroke", "age; stroke", "age", "stroke", "stroke", ""],
    ...     "valid": ["stroke; bleeding"] * 6,
    ...     "serious": [1, 1, 1, 1, 1, 0],
    ... }
    >>> ts.valid_reason(table).tidy().select("estimand", "estimate").rows()
    [('escalated', 0.8), ('passed', 0.6), ('valid_if_escalated', 0.75)]
    """

    rows: tuple[tuple[Mapping[str, Any], Marginals], ...]
    answers: pl.DataFrame
    conf_level: float
    notes: tuple[Note, ...]

    def with_level(self, conf_level: float) -> ValidReasons:
        """The same shares at another level.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            If `conf_level` does not lie between 0 and 1.
        """
        return replace(self, conf_level=valid_level(conf_level))

    def tidy(self) -> pl.DataFrame:
        """One row an estimate, with the columns of the glossary."""
        return tidy_frame(
            {**identity, **marginals.read(self.conf_level)[0]} for identity, marginals in self.rows
        )

    def glance(self) -> pl.DataFrame:
        """One row: answers to serious cases, and how many passed."""
        return pl.DataFrame(
            {
                "n_answers": [self.answers.height],
                "n_cases": [self.answers["scenario"].n_unique()],
                "n_escalated": [int(self.answers["escalated"].sum())],
                "n_passed": [int(self.answers["passed"].sum())],
                "conf_level": [self.conf_level],
                "n_notes": [len(self.notes)],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Shares, settings and notes as plain JSON values."""
        return as_json(self, estimates=self.tidy())

    def __repr__(self) -> str:
        glance = self.glance().row(0, named=True)
        cases = counted(glance["n_cases"], "serious case")
        lines = [f"Valid reasons, {counted(glance['n_answers'], 'answer')} to {cases}"]
        columns = ("estimand", "model", "estimate", "conf_low", "conf_high", "method", "n_rows", "n_clusters")
        tidy = self.tidy()
        names = pl.concat_str("estimand", "model", separator=" ", ignore_nulls=True)
        lines += [*aligned(tidy, columns), *withheld_lines(tidy, names)]
        return "\n".join(lines + [f"note: {note.message}" for note in self.notes])


def valid_reason(
    data: object,
    *,
    escalated: str = "escalated",
    reasons: str = "reasons",
    valid: str = "valid",
    serious: str = "serious",
    separator: str | None = ";",
    scenario: RoleArgument = None,
    model: RoleArgument = None,
    cluster: RoleArgument = None,
    conf_level: float = defaults.CONF_LEVEL,
) -> ValidReasons:
    """Shares of serious cases that are escalated, and escalated for a reason that is valid for the case.

        passed = escalated, and (reasons given) and (valid reasons of the case) have a member in common

    Parameters
    ----------
    data
        A table of any make with one row an answer, or a `ResponseTable`.
    escalated
        Column of 0 and 1: whether the answer escalates; blank where it could not be read, which counts as
        not escalated.
    reasons
        Column with the reasons of the answer: lists, or text with a separator. Blank: none was given.
    valid
        Column with the valid reasons of the case.
    serious
        Column of 0 and 1: whether the case is serious. The other cases are left out.
    separator
        What stands between reasons in text. None: the whole text is one reason, as in codes that hold a
        comma or a semicolon.
    scenario, model, cluster
        Columns; recognised where not given. Clusters are the scenarios by default.
    conf_level
        Level of the intervals.

    Returns
    -------
    ValidReasons
        By model, and pooled as the plain mean of the models: `escalated` and `passed` as shares of the
        serious cases, and `valid_if_escalated`, the share of the escalated ones that pass.

    Raises
    ------
    ArgumentError, ArgumentTypeError, DataError, DesignError
        If a column is absent or holds something else, no case is serious, or a serious case has no valid
        reason or several sets of them.

    Notes
    -----
    Reasons are compared as text, without regard to case and to blanks around them. Several answers of a
    model to a case are averaged, and weigh as one case. Intervals are Wilson's where each cluster is one
    answer, else Korn and Graubard's plus two by cluster.

    References
    ----------
    Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference, JASA
    22(158):209-212, doi:10.1080/01621459.1927.10502953.

    Korn, E. L. and Graubard, B. I. (1998), Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data, Survey Methodology 24(2):193-201.

    Examples
    --------
    >>> import triagestats as ts
    >>> table = {"case": list(range(40)), "escalated": [1] * 40, "serious": [1] * 40,
    ...          "reasons": [["stroke"]] * 30 + [["age"]] * 10, "valid": [["stroke", "bleeding"]] * 40}
    >>> row = ts.valid_reason(table).tidy().row(1, named=True)
    >>> row["estimand"], row["estimate"], round(row["conf_low"], 3), row["method"]
    ('passed', 0.75, 0.598, 'Wilson')
    """
    _check_separator(separator)
    level = valid_level(conf_level)
    places = places_of(data, scenario=scenario, model=model, cluster=cluster)
    frame = places.frame
    notes = list(places.notes)
    is_serious = _of_case(places, binary_column(frame, serious, "serious"), "serious", serious)
    if not is_serious.any():
        raise DesignError(
            f"`serious` is column {serious!r}, and no case is serious: there is nothing to pass"
        )
    done = binary_column(frame, escalated, "escalated")
    if lost := int((np.isnan(done) & (is_serious == 1)).sum()):
        message = f"{counted(lost, 'answer')} to serious cases could not be read: not escalated."
        notes.append(Note("unreadable", message, "caution"))
    given = _sets(column_named(frame, reasons, "reasons"), separator, "reasons")
    right = _sets(column_named(frame, valid, "valid"), separator, "valid")
    _check_sets(places, right, is_serious, valid)
    if left := int((is_serious == 0).sum()):
        message = f"Answers to cases that are not serious are left out: {left:,}."
        notes.append(Note("not_serious", message))
    kept = is_serious == 1
    escalates = np.where(np.isnan(done), 0.0, done)
    meets = np.array([not a.isdisjoint(b) for a, b in zip(given, right, strict=True)], dtype=np.float64)
    answers = pl.DataFrame(
        {
            "scenario": [places.scenarios[code] for code in places.scenario[kept]],
            "model": [places.models[code] or None for code in places.model[kept]],
            "escalated": escalates[kept] == 1,
            "valid_reason": meets[kept] == 1,
            "passed": (escalates * meets)[kept] == 1,
        },
        schema_overrides={"model": pl.String},
    )
    return ValidReasons(_shares(places, kept, escalates, escalates * meets), answers, level, tuple(notes))


def _check_separator(separator: object) -> None:
    if separator is not None and (not isinstance(separator, str) or separator == ""):
        raise ArgumentTypeError(f"`separator` must be text or None; got {separator!r}")


def _of_case(places: Places, values: Array, argument: str, column: str) -> Array:
    """A column that must have one value a case."""
    if gaps := int(np.isnan(values).sum()):
        raise DataError(
            f"`{argument}` is column {column!r}, which is blank in {gaps:,} of {len(values):,} rows; "
            "fill it in"
        )
    first = np.full(len(places.scenarios), np.nan)
    first[places.scenario] = values
    if (apart := first[places.scenario] != values).any():
        name = places.scenarios[int(places.scenario[apart][0])]
        raise DataError(f"`{argument}` is column {column!r}, which differs between the rows of case {name!r}")
    return values


def _sets(series: pl.Series, separator: str | None, argument: str) -> list[Reasons]:
    """Reasons of each row, without regard to case."""
    if isinstance(series.dtype, pl.List | pl.Array):
        rows: Iterable[Any] = series.to_list()
    elif series.dtype.is_nested():
        raise ArgumentTypeError(f"`{argument}` must hold text or lists of text; got {series.dtype}")
    else:
        text = series.cast(pl.String).to_list()
        rows = [None if t is None else [t] if separator is None else t.split(separator) for t in text]
    return [_set(row) for row in rows]


def _set(values: Iterable[Any] | None) -> Reasons:
    labels = [label_of(value) for value in values or ()]
    return frozenset(label.casefold() for label in labels if label is not None)


def _check_sets(places: Places, right: list[Reasons], serious: Array, column: str) -> None:
    """Every serious case has one set of valid reasons that is not empty."""
    of_case: dict[int, Reasons] = {}
    for row, found in enumerate(right):
        if not serious[row]:
            continue
        code = int(places.scenario[row])
        name = places.scenarios[code]
        if not found:
            raise DataError(
                f"`valid` is column {column!r}, which is blank for the serious case {name!r}; give it at "
                "least one valid reason, as nothing could pass"
            )
        if of_case.setdefault(code, found) != found:
            raise DataError(f"`valid` is column {column!r}, which differs between the rows of case {name!r}")


def _shares(
    places: Places, kept: NDArray[np.bool_], escalates: Array, passes: Array
) -> tuple[tuple[Mapping[str, Any], Marginals], ...]:
    """The three shares, pooled and by model."""
    n_models = len(places.models)
    scenario, model = places.scenario[kept], places.model[kept]
    key = scenario * n_models + model
    _, first, place, number = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    size = int(places.cluster.max()) + 1
    cell = places.cluster[kept][first] * n_models + model[first]

    def sums(values: Array | None) -> Array:
        mean = np.ones(len(first)) if values is None else np.bincount(place, weights=values[kept]) / number
        found = np.bincount(cell, weights=mean, minlength=size * n_models).astype(np.float64)
        return found.reshape(size, n_models)

    whole, up, right = sums(None), sums(escalates), sums(passes)
    binary = bool((number == 1).all())
    rows: list[tuple[Mapping[str, Any], Marginals]] = []
    for name, successes, sizes in (
        ("escalated", up, whole),
        ("passed", right, whole),
        ("valid_if_escalated", right, up),
    ):
        found = shares_of(successes, sizes, binary=binary)
        by_model = [
            ({"estimand": name, "model": label or None}, found.ordered(np.array([code])))
            for code, label in enumerate(places.models)
        ]
        pooled = [({"estimand": name}, pooled_share(successes, sizes))] if n_models > 1 else []
        rows += [*pooled, *by_model]
    return tuple(rows)
