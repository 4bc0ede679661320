"""Joining a table of judgments to the responses that they judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import polars as pl

from triagestats.canonical import canonical_frame
from triagestats.errors import DataError, RoleError
from triagestats.ingest import to_polars
from triagestats.labels import in_task, listed, n_rows
from triagestats.results import Note
from triagestats.roles import RoleArgument, assign_roles, column_names
from triagestats.schema import KEY_ROLES, ROLES
from triagestats.scoring import score_rows

if TYPE_CHECKING:
    from triagestats.table import ResponseTable

__all__ = ["attach_judgments"]

_VERDICT: Final = ("response", "score", "status", "reason")
_OWN: Final = ("score", "status", "reason")


def attach_judgments(
    table: ResponseTable, judgments: object, given: Mapping[str, RoleArgument]
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """The canonical frame of `table` with one row a judgment where there is one.

    Raises
    ------
    DataError
        If a judgment fits no response, or more than one, or the responses name judges already.
    """
    responses = table.frame
    if "judge" in responses.columns and responses["judge"].null_count() < responses.height:
        raise DataError(
            "`with_judgments` takes responses without a judge, and these name judges already; "
            "join all judgments in one call"
        )
    responses = responses.drop("judge", strict=False).with_row_index("_response")
    judged, notes = _judgment_frame(table, judgments, given)
    key = [role for role in KEY_ROLES if role in responses.columns and role in judged.columns]
    judged = judged.with_row_index("_judgment")
    pairs = judged.select("_judgment", *key).join(
        responses.select("_response", *key), on=key, how="left", nulls_equal=True
    )
    _check_matches(pairs, key, judged)
    _check_repeats(judged, [*key, "judge"])
    extra = _extra(judged, responses, key)
    matched = (
        judged.join(pairs.select("_judgment", "_response"), on="_judgment")
        .select("_response", "judge", *_VERDICT, *extra)
        .rename(extra)
    )
    is_judged = pl.col("_response").is_in(matched["_response"].implode())
    rows = (
        responses.filter(is_judged)
        .with_columns(_own(responses, name) for name in ("response", *_OWN))
        .drop(_VERDICT, strict=False)
        .join(matched, on="_response")
    )
    rows, scoring_notes = _rescored(rows, table)
    rows = _own_where_nothing_was_judged(rows).drop("own_status", "own_reason")
    rows = rows.drop(name for name in ("own_response", "own_score") if rows[name].null_count() == rows.height)
    joined = pl.concat([responses.filter(~is_judged), rows], how="diagonal_relaxed").drop("_response")
    order = [name for name in ("scenario", "model", "condition") if name in joined.columns]
    return joined.select(*order, pl.exclude(order)), (*notes, *scoring_notes)


def _own(responses: pl.DataFrame, name: str) -> pl.Expr:
    found = pl.col(name) if name in responses.columns else pl.lit(None, pl.String)
    return found.alias(f"own_{name}")


def _own_where_nothing_was_judged(rows: pl.DataFrame) -> pl.DataFrame:
    """A response that had a status of its own keeps it, with its score, where no judge gave a verdict."""
    kept = (
        (pl.col("status") == "missing")
        & ~pl.col("own_status").is_in(["ok", "missing"])
        & pl.col("score").is_null().all().over("_response")
    )
    return rows.with_columns(pl.when(kept).then(f"own_{name}").otherwise(name).alias(name) for name in _OWN)


def _extra(judged: pl.DataFrame, responses: pl.DataFrame, key: Sequence[str]) -> dict[str, str]:
    """What else the judgments hold, and the names under which it is carried."""
    used = {*key, *_VERDICT, "judge", "task", "_judgment"}
    taken = {*ROLES, *responses.columns}
    return {
        name: f"judgment.{name}" if name in taken else name for name in judged.columns if name not in used
    }


def _judgment_frame(
    table: ResponseTable, judgments: object, given: Mapping[str, RoleArgument]
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    source = to_polars(judgments, "judgments")
    raw = source.frame
    if raw.height == 0:
        raise DataError(f"`judgments` has no rows; its columns are {listed(raw.columns)}")
    known = dict(given)
    named = {name for role, value in given.items() if value for name in column_names(role, value)}
    free = set(raw.columns) - named
    for role in KEY_ROLES:
        columns = table.roles.columns.get(role, ())
        if role not in known and columns and free.issuperset(columns):
            known[role] = columns
    for role in ("cluster", "stratum", "gold"):
        known.setdefault(role, False)
    try:
        roles = assign_roles(raw.columns, known)
    except RoleError as error:
        raise RoleError(f"`judgments`: {error}") from None
    for role in ("scenario", "judge"):
        if role not in roles:
            raise DataError(
                f"`judgments` has no column for the {role}; name it with `{role}=`; its columns are "
                f"{listed(raw.columns)}"
            )
    if "response" not in roles and "score" not in roles:
        raise DataError(
            "`judgments` has neither a label nor a score; name its column with `response=` or `score=`; "
            f"its columns are {listed(raw.columns)}"
        )
    if "score" not in roles and "gold_low" not in table.frame.columns:
        raise DataError(
            "`judgments` has labels, and the responses have no gold to compare them with; give the "
            "responses a `gold`, or the judgments a `score`"
        )
    frame, _ = canonical_frame(raw, roles)
    if blank := frame["judge"].null_count():
        raise DataError(f"`judge` is blank in {blank:,} of {n_rows(frame.height)} of `judgments`; fill it in")
    tasks = table.frame["task"].n_unique() if "task" in table.frame.columns else 0
    if tasks > 1 and "task" in frame.columns:
        frame = frame.with_columns(in_task().alias("scenario"))
    for name in _VERDICT:
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, pl.String).alias(name))
    return frame, source.notes


def _check_matches(pairs: pl.DataFrame, key: Sequence[str], judged: pl.DataFrame) -> None:
    orphans = pairs.filter(pl.col("_response").is_null())
    if orphans.height:
        raise DataError(
            f"`judgments` has {n_rows(orphans.height)} of {judged.height:,} that fit no response, such as "
            f"{_example(orphans, key)}; they are matched by {' x '.join(key)}: correct them, or leave a "
            f"column out of the match, for instance with `{key[-1]}=False`"
        )
    several = pairs.filter(pl.col("_judgment").is_duplicated())
    if several.height:
        raise DataError(
            f"`judgments` has {n_rows(several['_judgment'].n_unique())} that fit several responses, such as "
            f"{_example(several, key)}; add the column of the key (model, variant, repetition, ...) that "
            "tells the responses apart"
        )


def _check_repeats(judged: pl.DataFrame, key: Sequence[str]) -> None:
    repeated = judged.filter(pl.struct(key).is_duplicated())
    if repeated.height:
        raise DataError(
            f"`judgments` has {n_rows(repeated.height)} in which a judge judges a response again, such as "
            f"{_example(repeated, key)}; keep one judgment of each judge, or name the judges apart"
        )


def _example(rows: pl.DataFrame, key: Sequence[str]) -> str:
    return ", ".join(f"{role}={value!r}" for role, value in rows.select(key).row(0, named=True).items())


def _rescored(rows: pl.DataFrame, table: ResponseTable) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    if "gold_low" in rows.columns and rows["score"].null_count() == rows.height:
        rows = rows.drop("score")
    scored, notes = score_rows(rows, levels=table.levels, unparsed=table.unparsed)
    return scored, tuple(note for note in notes if not note.code.startswith("gold_"))
