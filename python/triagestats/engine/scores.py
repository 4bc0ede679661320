"""One score and one status a row, as `scoring` reads them, in the engine that holds the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NoReturn

import polars as pl

from triagestats.engine.held import Held
from triagestats.engine.identifiers import label_kind
from triagestats.engine.labels import from_labels, refuse_responses, spelled_twice
from triagestats.engine.rows import MOST_LABELS, Rows, in_words
from triagestats.errors import DataError
from triagestats.labels import as_text
from triagestats.results import Note
from triagestats.schema import STATUSES, Unparsed
from triagestats.scoring import (
    DOUBTFUL,
    FINE,
    FLAGGED,
    doubt_note,
    infinite_score,
    label_notes,
    refuse_wrong,
    scores_from_text,
)

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["refuse_infinite", "scored_rows"]

MOST_TEXTS: Final = 200
"""Different texts of scores that are read."""


def scored_rows(
    held: Held,
    *,
    levels: Sequence[str] | None,
    unparsed: Unparsed,
    answered: Sequence[Mapping[str, Any]],
) -> tuple[Held, tuple[Note, ...]]:
    """Add `value` (0 where there is no score), `scored` (1 or 0) and `status` to the role columns.

    Parameters
    ----------
    held
        A table under the names of the roles, with `given`, `stated`, `response`, `gold_low`, `gold_high`
        where it has them.
    levels, unparsed
        As in `ResponseTable`.
    answered
        The conditions in which some row has a response, as values of the condition columns.

    Raises
    ------
    DataError
        As `scoring.score_rows`, and for text scores or labels of too many kinds to read.
    """
    import narwhals as nw

    columns = held.frame.collect_schema()
    rows = Rows(held).with_columns(status=_stated(columns))
    labelled = "response" in columns and "gold_low" in columns
    if "given" in columns:
        rows = _given(rows, columns)
        if "response" in columns:
            rows = rows.with_columns(status=_parse_failures(columns, answered))
        blank = (nw.col("given").is_null()) & (nw.col("status") == "ok")
        rows = rows.with_columns(status=nw.when(blank).then(nw.lit("missing")).otherwise(nw.col("status")))
    else:
        rows = rows.with_columns(value=nw.lit(0.0), scored=nw.lit(0))
    if "response" in columns and levels is not None:
        refuse_responses(rows, levels)
    if labelled:
        rows = from_labels(rows, columns, levels)
    nothing = (nw.col("scored") == 0) & (nw.col("status") == "ok")
    rows = rows.with_columns(status=nw.when(nothing).then(nw.lit("missing")).otherwise(nw.col("status")))
    rows = _read_facts(rows, columns, unparsed, levels)
    return rows.held, rows.notes


def refuse_infinite(held: Held, infinite: nw.Expr) -> NoReturn:
    """Refuse the rows with an infinite score, of which there are some.

    Raises
    ------
    DataError
        Always.
    """
    import narwhals as nw

    frame = held.frame.filter(infinite)
    scenario = nw.col("scenario")
    if held.frame.collect_schema()["scenario"] == nw.Categorical:
        scenario = scenario.cast(nw.String)
    (found,) = held.collect(frame.select(n=nw.len(), first=scenario.min()))
    raise infinite_score(int(found["n"][0]), as_text(found["first"], "scenario")[0])


def _stated(columns: Mapping[str, Any]) -> nw.Expr:
    """The status that the table itself states."""
    import narwhals as nw

    if "stated" not in columns:
        return nw.lit("ok")
    stated = nw.col("stated")
    kind = label_kind(columns["stated"])
    if kind == "text":
        word = in_words(stated)
        known = nw.when(word.is_in(list(STATUSES))).then(word).otherwise(nw.lit("error"))
        fine = stated.is_null() | word.is_in(list(FINE))
        return nw.when(fine).then(nw.lit("ok")).otherwise(known)
    if kind not in ("flag", "number"):
        raise DataError("`status` holds dates; expected text or true/false: name another column")
    wrong = (stated == True) if kind == "flag" else (stated != 0)  # noqa: E712  # an expression
    return nw.when(~stated.is_null() & wrong).then(nw.lit("error")).otherwise(nw.lit("ok"))


def _given(rows: Rows, columns: Mapping[str, Any]) -> Rows:
    """Scores of the table: `value`, `scored`, and the status of those that are NaN."""
    import narwhals as nw

    given, status = nw.col("given"), nw.col("status")
    there = ~given.is_null()
    text = label_kind(columns["given"]) == "text"
    if text:
        rows = rows.with_columns(given=_read_texts(rows))
    if text or columns["given"].is_float():  # other numbers cannot be NaN, but a cast may make null NaN
        nan = given.is_nan() & there & (status == "ok")
        rows = rows.with_columns(status=nw.when(nan).then(nw.lit("unscored")).otherwise(status))
        there &= ~given.is_nan()
    return rows.with_columns(
        scored=nw.when(there).then(nw.lit(1)).otherwise(nw.lit(0)),
        value=nw.when(there).then(given.cast(nw.Float64)).otherwise(nw.lit(0.0)),
    )


def _read_texts(rows: Rows) -> nw.Expr:
    """Scores written as text, read from the different texts."""
    import narwhals as nw

    texts = rows.groups(rows.held.frame, ["given"], MOST_TEXTS)
    if texts.height > MOST_TEXTS:
        raise DataError(
            f"`score` is text of more than {MOST_TEXTS} kinds; cast it to a number where it is held, or "
            "collect the table first"
        )
    texts = texts.sort("given")
    values = scores_from_text(texts["given"].cast(pl.String), texts["n"])
    if (infinite := values.is_infinite().fill_null(value=False)).any():
        refuse_infinite(rows.held, nw.col("given").is_in(texts["given"].filter(infinite).to_list()))
    found: nw.Expr = nw.lit(None, dtype=nw.Float64)
    by_value: dict[float, list[str]] = {}
    for text, value in zip(texts["given"], values, strict=True):
        if text is not None and value is not None:
            by_value.setdefault(value, []).append(text)
    for value, written in by_value.items():
        found = nw.when(nw.col("given").is_in(written)).then(nw.lit(value)).otherwise(found)
    return found


def _parse_failures(columns: Mapping[str, Any], answered: Sequence[Mapping[str, Any]]) -> nw.Expr:
    """Rows scored 0 without a response, where the same condition has responses elsewhere, are unparsed."""
    import narwhals as nw

    status = nw.col("status")
    failed = nw.col("response").is_null() & (nw.col("scored") == 1) & (nw.col("value") == 0)
    if not answered:
        return status
    factors = [name for name in columns if name.startswith("factor_")]
    if factors:
        here = [_all_equal({name: condition[name] for name in factors}) for condition in answered]
        failed &= reduce(lambda one, other: one | other, here)
    return nw.when(failed & (status == "ok")).then(nw.lit("unparsed")).otherwise(status)


def _all_equal(values: Mapping[str, Any]) -> nw.Expr:
    import narwhals as nw

    equal = [nw.col(name) == value for name, value in values.items()]
    found: nw.Expr = reduce(lambda one, other: one & other, equal)
    return found


def _read_facts(
    rows: Rows,
    columns: Mapping[str, Any],
    unparsed: Unparsed,
    levels: Sequence[str] | None,
) -> Rows:
    """Apply `unparsed`, and note what is doubtful about scores and statuses."""
    import narwhals as nw

    if "stated" not in columns and "response" not in columns:
        return rows
    frame = rows.held.frame
    if "against" not in frame.collect_schema():
        frame = frame.with_columns(against=nw.lit(0))
    (facts,) = rows.held.collect(
        frame.group_by("status", "scored").agg(
            nw.len().alias("n"),
            nw.col("against").sum(),
            nw.col("value").min().alias("least"),
            nw.col("value").max().alias("most"),
        )
    )
    notes = label_notes(int(facts["against"].sum()), spelled_twice(rows, columns) if levels is None else None)
    scored = nw.col("scored")
    read = nw.col("status") != "unparsed"
    present = facts.filter(pl.col("scored") == 1)
    if unparsed == "missing":
        rows = rows.with_columns(
            scored=nw.when(read).then(scored).otherwise(nw.lit(0)),
            value=nw.when(read).then(nw.col("value")).otherwise(nw.lit(0.0)),
        )
        present = present.filter(pl.col("status") != "unparsed")
    elif unparsed == "wrong" and (facts["status"] == "unparsed").any():
        if present.height:
            refuse_wrong(float(present["least"].min()), float(present["most"].max()))  # type: ignore[arg-type]  # numbers
        rows = rows.with_columns(
            scored=nw.when(read).then(scored).otherwise(nw.lit(1)),
            value=nw.when(read).then(nw.col("value")).otherwise(nw.lit(0.0)),
        )
    odd = present.filter(pl.col("status").is_in(list(DOUBTFUL)))
    if odd.height:
        notes.append(
            doubt_note(int(odd["n"].sum()), odd["status"].unique().to_list(), _unknown(rows, columns))
        )
    return rows.of(rows.held.frame, *notes)


def _unknown(rows: Rows, columns: Mapping[str, Any]) -> dict[str, int]:
    """Words of the status column that are no status, among rows with a score."""
    import narwhals as nw

    if "stated" not in columns:
        return {}
    stated = nw.col("stated")
    kind = label_kind(columns["stated"])
    if kind == "flag":
        return {}
    unknown = (stated != 0) & (stated != 1)
    if kind == "text":
        unknown = ~in_words(stated).is_in([*FINE, *STATUSES, *FLAGGED])
    frame = rows.held.frame.filter(~stated.is_null() & unknown & (nw.col("scored") == 1))
    found = rows.groups(frame, ["stated"], MOST_LABELS)
    return dict(zip(as_text(found["stated"], "status"), found["n"], strict=True))
