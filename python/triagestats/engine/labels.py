"""Scores from labels and the right labels, in the engine that holds the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl

from triagestats.engine.identifiers import label_kind
from triagestats.engine.rows import MOST_LABELS, Rows, in_words
from triagestats.errors import DataError
from triagestats.gold import order_notes, read_gold, refuse_labels
from triagestats.labels import as_text, label_of
from triagestats.results import Note
from triagestats.scoring import spelled_apart, unordered_range

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["from_labels", "refuse_responses", "spelled_twice"]


def refuse_responses(rows: Rows, levels: Sequence[str]) -> None:
    """Refuse responses that are not on the scale."""
    found = rows.groups(rows.held.frame.select("response"), ["response"], MOST_LABELS)
    labels = found.with_columns(as_text(found["response"], "response").alias("response")).drop_nulls(
        "response"
    )
    outside = labels.filter(~pl.col("response").is_in(list(levels)))
    if outside.height:
        fix = "or make them null with the status 'unparsed'"
        refuse_labels(dict(outside.select("response", "n").iter_rows()), levels, "response", fix)


def from_labels(rows: Rows, columns: Mapping[str, Any], levels: Sequence[str] | None) -> Rows:
    """Fill in scores from labels where there are none, and mark labels that contradict a score."""
    import narwhals as nw

    names = ["response", *(name for name in ("gold_low", "gold_high") if name in columns)]
    if len({label_kind(columns[name]) for name in names}) > 1 and levels is None:
        raise DataError(
            "`response` and `gold` hold different types, so that the engine cannot compare them as labels; "
            "make both text where they are held"
        )
    if levels is not None and label_kind(columns["response"]) == "date":
        raise DataError(
            "`response` holds dates, which the engine cannot compare with `levels`; make it text where it is "
            "held"
        )
    golds = _golds(rows, columns, levels)
    response, scored, status = nw.col("response"), nw.col("scored"), nw.col("status")
    low = nw.col("gold_low")
    if levels is None:
        there = ~(response.is_null() | low.is_null())
        right = response == low
    else:
        there, right = _by_scale(golds, columns, levels)
    rows = rows.of(rows.held.frame, *_gold_notes(golds, levels))
    rows = rows.with_columns(
        match=nw.when(there).then(nw.when(right).then(nw.lit(1)).otherwise(nw.lit(0))).otherwise(nw.lit(-1)),
        open=nw.when(_open(columns) & (scored == 0) & status.is_in(["ok", "missing", "suspect"]))
        .then(nw.lit(1))
        .otherwise(nw.lit(0)),
    )
    if levels is None:
        _refuse_ranges(rows, golds, columns)
    match = nw.col("match")
    against = ((match == 1) & (scored == 1) & (nw.col("value") == 0)) | (
        (match == 0) & (scored == 1) & (nw.col("value") == 1) if levels is not None else nw.lit(value=False)
    )
    fill = (nw.col("open") == 1) & (match >= 0)
    rows = rows.with_columns(
        against=nw.when(against).then(nw.lit(1)).otherwise(nw.lit(0)),
        fill=nw.when(fill).then(nw.lit(1)).otherwise(nw.lit(0)),
    )
    filled = nw.col("fill") == 1
    rows = rows.with_columns(
        value=nw.when(filled).then(match.cast(nw.Float64)).otherwise(nw.col("value")),
        scored=nw.when(filled).then(nw.lit(1)).otherwise(scored),
        status=nw.when(filled & (status == "missing")).then(nw.lit("ok")).otherwise(status),
    )
    no_gold = (scored == 0) & ~response.is_null() & (status == "ok")
    return rows.with_columns(status=nw.when(no_gold).then(nw.lit("unscored")).otherwise(status))


def _open(columns: Mapping[str, Any]) -> nw.Expr:
    """Rows that do not state that their score is missing."""
    import narwhals as nw

    if "stated" not in columns or label_kind(columns["stated"]) != "text":
        return nw.lit(value=True)
    return (
        nw.when(nw.col("stated").is_null())
        .then(nw.lit(value=True))
        .otherwise(in_words(nw.col("stated")) != "missing")
    )


def _golds(rows: Rows, columns: Mapping[str, Any], levels: Sequence[str] | None) -> pl.DataFrame:
    """The different right labels or ranges, as they are held and as text, with the number of rows.

    Without a scale only those that may be ranges.
    """
    import narwhals as nw

    ends = [name for name in ("gold_low", "gold_high") if name in columns]
    frame = rows.held.frame.select(*ends)
    if levels is None:
        if len(ends) == 2:
            frame = frame.filter(nw.col(ends[0]) != nw.col(ends[1]))
        elif label_kind(columns["gold_low"]) == "text":
            frame = frame.filter(nw.col("gold_low").str.contains("/"))
        else:
            frame = frame.head(0)
    found = rows.groups(frame, ends, MOST_LABELS)
    if found.height > MOST_LABELS:
        raise DataError(
            f"`gold` has more than {MOST_LABELS:,} different {'ranges' if levels is None else 'labels'}; "
            "name another column, or collect the table first"
        )
    text = [as_text(found[name], "gold").alias(f"{name}_text") for name in ends]
    return found.with_columns(text).sort([f"{name}_text" for name in ends])


def _by_scale(
    golds: pl.DataFrame, columns: Mapping[str, Any], levels: Sequence[str]
) -> tuple[nw.Expr, nw.Expr]:
    """Where a response can be compared with the gold on the scale, and where it is right."""
    import narwhals as nw

    ends = [name for name in ("gold_low", "gold_high") if name in columns]
    texts = [golds[f"{name}_text"] for name in ends]
    _refuse_golds(golds, levels)
    gold = read_gold(texts[0], texts[1] if len(ends) > 1 else None, None, levels)
    rank = {level: position for position, level in enumerate(levels)}
    right: nw.Expr = nw.lit(value=False)
    dtype = columns["response"]
    for row, low, high in zip(golds.iter_rows(named=True), gold.low, gold.high, strict=True):
        if low is None:
            continue
        labels = [_as_held(level, dtype) for level in levels[rank[low] : rank[high] + 1]]
        here = nw.col("response").is_in([label for label in labels if label is not None])
        for name in ends:
            here &= nw.col(name).is_null() if row[name] is None else nw.col(name) == row[name]
        right = nw.when(here).then(nw.lit(value=True)).otherwise(right)
    known = reduce(lambda one, other: one | other, [~nw.col(name).is_null() for name in ends])
    return ~nw.col("response").is_null() & known, right


def _as_held(level: str, dtype: Any) -> Any:
    """A level of the scale as a value of the column of responses; None where no value has this label."""
    kind = label_kind(dtype)
    if kind == "text":
        return level
    if kind == "flag":
        return {"true": True, "false": False}.get(level)
    try:
        value = int(level) if dtype.is_integer() else float(level)
    except ValueError:
        return None
    return value if label_of(value) == level else None  # 01 is the label of no number


def _refuse_golds(golds: pl.DataFrame, levels: Sequence[str]) -> None:
    """Refuse right labels that are not on the scale."""
    low, high = _ends(golds, levels)
    outside = ~(low.is_in(list(levels)) & high.is_in(list(levels)))
    if not outside.any():
        return
    shown = golds["gold_low_text"]
    if "gold_high_text" in golds.columns:
        shown = low.zip_with(low.eq_missing(high), low + "/" + high)
    counts = (
        pl.DataFrame({"label": shown, "n": golds["n"]})
        .filter(outside)
        .group_by("label")
        .agg(pl.col("n").sum())
    )
    refuse_labels(dict(counts.iter_rows()), levels, "gold", "or correct the gold")


def _ends(golds: pl.DataFrame, levels: Sequence[str]) -> tuple[pl.Series, pl.Series]:
    """The two ends of each range as they are written, an absent one filled with the other."""
    low = golds["gold_low_text"]
    if "gold_high_text" in golds.columns:
        high = golds["gold_high_text"]
        return low.fill_null(high), high.fill_null(low)
    ranges = (low.str.contains("/", literal=True) & ~low.is_in(list(levels))).fill_null(value=False)
    parts = low.str.splitn("/", 2)
    first, last = (parts.struct.field(f"field_{end}").str.strip_chars() for end in (0, 1))
    return first.zip_with(ranges, low), last.zip_with(ranges, low)


def _gold_notes(golds: pl.DataFrame, levels: Sequence[str] | None) -> list[Note]:
    if levels is None or golds.is_empty():
        return []
    rank = {level: position for position, level in enumerate(levels)}
    low, high = _ends(golds, levels)
    both = pl.DataFrame({"low": low, "high": high, "n": golds["n"]})
    ranked = both.select(pl.col("low", "high").replace_strict(rank, default=None, return_dtype=pl.Int64), "n")
    gap = pl.col("low") - pl.col("high")
    return order_notes(
        int(ranked.filter(gap > 0)["n"].sum()),
        int(ranked.filter(gap.abs() == len(levels) - 1)["n"].sum()),
        levels,
    )


def _refuse_ranges(rows: Rows, golds: pl.DataFrame, columns: Mapping[str, Any]) -> None:
    """Refuse ranges of labels without a scale, where a score would be read from one."""
    import narwhals as nw

    if golds.is_empty():
        return
    frame = rows.held.frame
    ends = [name for name in ("gold_low", "gold_high") if name in columns]
    ranges = golds
    if len(ends) == 1:
        written = golds["gold_low"].to_list()
        answered = rows.groups(frame.filter(nw.col("response").is_in(written)), ["response"], MOST_LABELS)
        ranges = golds.filter(~pl.col("gold_low").is_in(answered["response"].to_list()))
        if ranges.is_empty():
            return
        frame = frame.filter(nw.col("gold_low").is_in(ranges["gold_low"].to_list()))
    else:
        frame = frame.filter(nw.col("gold_low") != nw.col("gold_high"))
    needed = frame.filter((nw.col("open") == 1) & ~nw.col("response").is_null())
    found = rows.groups(needed, ends, 1)
    if found.height:
        low, high = (as_text(found[end], "gold")[0] for end in (ends[0], ends[-1]))
        raise unordered_range(low, high)


def spelled_twice(rows: Rows, columns: Mapping[str, Any]) -> tuple[str, str] | None:
    """A pair of labels that differ only in their spelling."""
    import narwhals as nw

    if "gold_low" not in columns or "response" not in columns:
        return None
    if label_kind(columns["response"]) != "text" or label_kind(columns["gold_low"]) != "text":
        return None
    alike = [
        nw.col(name).str.to_lowercase().str.replace_all(r"\.0+$", "") for name in ("response", "gold_low")
    ]
    differ = rows.held.frame.filter((nw.col("response") != nw.col("gold_low")) & (alike[0] == alike[1]))
    found = rows.groups(differ.select("response", "gold_low"), ["response", "gold_low"], MOST_LABELS)
    found = found.sort("response", "gold_low")
    return spelled_apart(found["response"], found["gold_low"])
