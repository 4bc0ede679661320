"""From what was answered, scored and reported to one score and one status a row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from triagestats.errors import DataError
from triagestats.gold import Gold, read_gold, refuse_outside
from triagestats.labels import n_rows
from triagestats.results import Note
from triagestats.schema import STATUSES, Unparsed

__all__ = [
    "DOUBTFUL",
    "FINE",
    "FLAGGED",
    "doubt_note",
    "infinite_score",
    "label_notes",
    "refuse_wrong",
    "score_rows",
    "scores_from_text",
    "spelled_apart",
    "unordered_range",
]

DOUBTFUL: Final = ("error", "suspect", "unscored", "absent", "deferred")
"""Statuses of which a row with a score is doubtful."""

_WORDS: Final = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_BLANK: Final = ("", "na", "n/a", "null", "none", "missing")
_UNUSUAL: Final = ("nan", "inf", "-inf", "+inf", "infinity", "-infinity")
FINE: Final = ("", "ok", "none", "null", "na", "n/a", "nan", "false", "no", "0", "success")
FLAGGED: Final = ("true", "yes", "1")
_NUMERIC_TEXT: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_DECIMAL_COMMA: Final = r"^[+-]?\d+,\d+$"
_SHOWN: Final = 5
_LONGEST_WORD: Final = 40
_SCORED_WRONG: Final = "no answer was read; scored as wrong"


def score_rows(
    frame: pl.DataFrame,
    *,
    levels: Sequence[str] | None,
    unparsed: Unparsed,
    decimal_comma: bool = False,
    settled: bool = False,
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Add `score` (float, null where a row has none), `status` and `reason`; put gold ranges in order.

    Parameters
    ----------
    frame
        Has `score` (numbers or text), or `response` and `gold_low`; may have `gold_high`, `status`, `reason`
        (text).
    levels
        The response scale; labels outside it are an error.
    unparsed
        What becomes of rows whose answer could not be read: `as scored` leaves them as they are,
        `wrong` scores them 0, `missing` takes their score away.
    decimal_comma
        Whether `0,5` is a number.
    settled
        Whether scores and statuses stay as they are stated.

    Raises
    ------
    DataError
        For text that is no score, infinite scores, unknown labels, and gold ranges that nothing orders.
    """
    given = "score" in frame.columns
    response = frame["response"] if "response" in frame.columns else None
    if response is not None and levels is not None:
        outside = response.is_not_null() & ~response.is_in(pl.Series(levels).implode())
        refuse_outside(
            response.filter(outside), levels, "response", "or make them null with the status 'unparsed'"
        )
    notes: list[Note] = []
    score, status, reason, unknown = _given_status(frame)
    open_scores = status != "missing"
    if given:
        numbers = _numbers(frame, decimal_comma=decimal_comma)
        score = numbers.values
        notes += numbers.notes
        status = status.set(numbers.nan & (status == "ok"), "unscored")
        if response is not None and not settled:
            read_wrong = _parse_failures(frame, response, score) & (status == "ok")
            status = status.set(read_wrong, "unparsed")
            reason = reason.set(read_wrong & reason.is_null(), _SCORED_WRONG)
        status = status.set(numbers.blank & (status == "ok"), "missing")
    if "gold_low" in frame.columns:
        other = frame["gold_high"] if "gold_high" in frame.columns else None
        gold = read_gold(frame["gold_low"], other, response, levels)
        notes += gold.notes
        frame = frame.with_columns(gold.low.alias("gold_low"), gold.high.alias("gold_high"))
        if response is not None and not settled:
            from_label = _label_scores(response, gold, levels)
            fill = score.is_null() & open_scores & status.is_in(["ok", "missing", "suspect"])
            _refuse_unordered(gold, fill & response.is_not_null())
            notes += _label_doubts(response, gold, levels, score, from_label)
            fill &= from_label.is_not_null()
            score = from_label.zip_with(fill, score)
            status = status.set(fill & (status == "missing"), "ok")
            no_gold = score.is_null() & response.is_not_null() & (status == "ok")
            status = status.set(no_gold, "unscored")
            reason = reason.set(no_gold & reason.is_null(), "no gold label")
    status = status.set(score.is_null() & (status == "ok"), "missing")
    score, reason = _unparsed(score, status, reason, unparsed)
    notes += _doubtful_statuses(score, status, unknown)
    return frame.with_columns(score.alias("score"), status.alias("status"), reason.alias("reason")), tuple(
        notes
    )


def _doubtful_statuses(score: pl.Series, status: pl.Series, unknown: pl.Series) -> list[Note]:
    odd = score.is_not_null() & status.is_in(list(DOUBTFUL))
    if not odd.any():
        return []
    words = unknown.filter(odd).drop_nulls().value_counts()
    return [doubt_note(int(odd.sum()), status.filter(odd).unique().to_list(), dict(words.iter_rows()))]


def doubt_note(count: int, statuses: Sequence[str], unknown: Mapping[str, int]) -> Note:
    """What rows with a score and a status of doubt come to; `unknown` are words that are no status."""
    which = ", ".join(sorted(statuses)) + _said_of(unknown)
    said = (
        f"{n_rows(count)} {'has' if count == 1 else 'have'} a score and a status of doubt ({which}); "
        f"{'the score is' if count == 1 else 'their scores are'} used as given."
    )
    return Note("scored_with_status", said, "caution")


def _said_of(counts: Mapping[str, int]) -> str:
    """What a status column says that is no status and is read as an error, the most frequent first."""
    if not counts:
        return ""
    words = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    shown = [word if len(word) <= _LONGEST_WORD else word[:_LONGEST_WORD] + "..." for word in words[:_SHOWN]]
    more = len(words) - len(shown)
    said = ", ".join(map(repr, shown)) + (f" and {more:,} more" if more else "")
    return f"; {said} {'is no status and counts' if len(words) == 1 else 'are no status and count'} as error"


def _given_status(frame: pl.DataFrame) -> tuple[pl.Series, pl.Series, pl.Series, pl.Series]:
    """Empty scores, the status and reason that the table itself states, and its words that are no status."""
    empty = pl.repeat(None, frame.height, dtype=pl.Float64, eager=True)
    nothing = pl.repeat(None, frame.height, dtype=pl.String, eager=True)
    reason = frame["reason"] if "reason" in frame.columns else nothing
    if "status" not in frame.columns:
        return empty, pl.repeat("ok", frame.height, dtype=pl.String, eager=True), reason, nothing
    text = frame["status"].fill_null("")
    word = text.str.to_lowercase().str.replace_all(r"[\s-]+", "_")
    fine = word.is_in(list(FINE))
    known = word.is_in(list(STATUSES))
    status = word.set(fine, "ok").set(~fine & ~known, "error")
    stated = text.set(fine | known | word.is_in(list(FLAGGED)), None)
    both = stated + ": " + reason
    return empty, status, both.fill_null(stated).fill_null(reason), stated


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Scores as floats, null where there is none, with masks of the blank and of the NaN ones."""

    values: pl.Series
    blank: pl.Series
    nan: pl.Series
    notes: tuple[Note, ...] = ()


def _numbers(frame: pl.DataFrame, *, decimal_comma: bool) -> _Numbers:
    raw = frame["score"]
    notes: tuple[Note, ...] = ()
    if raw.dtype == pl.Boolean or raw.dtype.is_numeric() or raw.dtype == pl.Null:
        values = raw.cast(pl.Float64)
    else:
        text, notes = _with_points(raw) if decimal_comma else (raw, ())
        values = scores_from_text(text)
    nan = values.is_nan().fill_null(value=False)
    blank = values.is_null()
    infinite = values.is_infinite().fill_null(value=False)
    if infinite.any():
        raise infinite_score(int(infinite.sum()), frame["scenario"].filter(infinite)[0])
    return _Numbers(values.set(nan, None), blank, nan, notes)


def infinite_score(count: int, scenario: str) -> DataError:
    """The refusal of scores that are infinite."""
    return DataError(
        f"`score` is infinite in {n_rows(count)}, such as that of scenario "
        f"{scenario!r}; a score must be finite, or null where there is none"
    )


def _with_points(text: pl.Series) -> tuple[pl.Series, tuple[Note, ...]]:
    commas = text.str.contains(_DECIMAL_COMMA).fill_null(value=False)
    if not commas.any() or text.str.contains(".", literal=True).any():
        return text, ()
    note = Note(
        "decimal_comma", f"Decimal commas of `score` are read as points in {n_rows(int(commas.sum()))}."
    )
    return text.zip_with(~commas, text.str.replace(",", ".", literal=True)), (note,)


def scores_from_text(text: pl.Series, counts: pl.Series | None = None) -> pl.Series:
    """Scores that are written as text, null where blank.

    Parameters
    ----------
    text
        Stripped texts, null where blank.
    counts
        How many rows have each text; one where not given.

    Raises
    ------
    DataError
        If a text is no score.
    """
    word = text.str.to_lowercase()
    blank = word.is_null() | word.is_in(list(_BLANK))
    values = word.replace_strict(_WORDS, default=None, return_dtype=pl.Float64)
    numeric = word.str.contains(_NUMERIC_TEXT) | word.is_in(list(_UNUSUAL))
    numbers = word.set(~numeric.fill_null(value=False), None).cast(pl.Float64, strict=False)
    values = values.fill_null(numbers)
    unknown = values.is_null() & ~blank
    if unknown.any():
        examples = text.filter(unknown).unique(maintain_order=True).head(_SHOWN).to_list()
        comma = any(re.fullmatch(_DECIMAL_COMMA, example) for example in examples)
        rows = unknown if counts is None else counts.filter(unknown)
        raise DataError(
            f"`score` cannot be read in {n_rows(int(rows.sum()))}, such as "
            f"{', '.join(map(repr, examples))}; expected numbers, true/false, yes/no, 0/1 or blank: "
            + ("write decimals with a point" if comma else "correct these, or name another column")
        )
    return values


def _parse_failures(frame: pl.DataFrame, response: pl.Series, score: pl.Series) -> pl.Series:
    """Rows scored 0 without a response, where the same condition has responses elsewhere."""
    empty = response.is_null() & (score == 0).fill_null(value=False)
    if not empty.any() or not response.is_not_null().any():
        return pl.Series([False] * frame.height, dtype=pl.Boolean)
    has = frame.select(
        response.is_not_null().alias("has"),
        pl.col("condition") if "condition" in frame.columns else pl.lit(""),
    ).select(pl.col("has").any().over(pl.nth(1)))["has"]
    return empty & has


def _label_scores(response: pl.Series, gold: Gold, levels: Sequence[str] | None) -> pl.Series:
    if levels is None:
        return (response == gold.low).cast(pl.Float64)
    rank = {level: position for position, level in enumerate(levels)}
    given, least, most = (
        series.replace_strict(rank, default=None, return_dtype=pl.Int32)
        for series in (response, gold.low, gold.high)
    )
    return ((given >= least) & (given <= most)).cast(pl.Float64)


def _refuse_unordered(gold: Gold, needed: pl.Series) -> None:
    ranges = gold.unordered & needed
    if ranges.any():
        raise unordered_range(gold.low.filter(ranges)[0], gold.high.filter(ranges)[0])


def unordered_range(low: str, high: str) -> DataError:
    """The refusal of a gold range that no `levels` order."""
    return DataError(
        f"`gold` has ranges such as {low if low == high else f'{low}/{high}'!r}; give the response scale "
        "from least to most urgent with `levels=[...]`, so that they can be read"
    )


def _label_doubts(
    response: pl.Series,
    gold: Gold,
    levels: Sequence[str] | None,
    score: pl.Series,
    from_label: pl.Series,
) -> list[Note]:
    """Scores that contradict the labels, and labels that are one but for their spelling."""
    differs = (from_label == 1) & (score == 0)
    if levels is not None:
        differs |= (from_label == 0) & (score == 1)
    pair = spelled_apart(response, gold.low) if levels is None else None
    return label_notes(int(differs.sum()), pair)


def label_notes(n_contradicted: int, apart: tuple[str, str] | None) -> list[Note]:
    """Notes on scores that contradict the labels, and on a pair of labels that may be one."""
    notes = []
    if n_contradicted:
        said = (
            f"{n_rows(n_contradicted)} {'has' if n_contradicted == 1 else 'have'} a score that `response` "
            "and `gold` contradict; the score is used as given."
        )
        notes.append(Note("score_contradicts_label", said, "caution"))
    if apart is not None:
        said = (
            f"`response` has {apart[0]!r} where `gold` has {apart[1]!r}: they count as different labels. "
            "If they are one, spell them alike."
        )
        notes.append(Note("labels_spelled_apart", said, "caution"))
    return notes


def spelled_apart(response: pl.Series, gold: pl.Series) -> tuple[str, str] | None:
    """A pair of labels of one row that differ only in case, or in the decimals of a whole number."""
    pairs = pl.DataFrame([response.alias("response"), gold.alias("gold")])
    alike = [pl.col(name).str.to_lowercase().str.replace(r"^([+-]?\d+)\.0+$", "$1") for name in pairs.columns]
    apart = pairs.filter((pl.col("response") != pl.col("gold")) & (alike[0] == alike[1]))
    apart = apart.sort("response", "gold").head(1)
    return None if apart.is_empty() else (apart["response"][0], apart["gold"][0])


def _unparsed(
    score: pl.Series, status: pl.Series, reason: pl.Series, unparsed: Unparsed
) -> tuple[pl.Series, pl.Series]:
    rows = status == "unparsed"
    if unparsed == "missing":
        return score.set(rows, None), reason
    if unparsed == "wrong" and rows.any():
        present = score.drop_nulls()
        if present.len():
            refuse_wrong(float(present.min()), float(present.max()))  # type: ignore[arg-type]  # numbers
        return score.set(rows, 0.0), reason.set(rows & reason.is_null(), _SCORED_WRONG)
    return score, reason


def refuse_wrong(least: float, most: float) -> None:
    """Refuse to score unread answers 0 among scores that do not lie between 0 and 1.

    Raises
    ------
    DataError
        If they do not.
    """
    if not 0 <= least <= most <= 1:
        raise DataError(
            "`unparsed='wrong'` scores unread answers 0, which needs scores from 0 to 1; "
            f"these run from {least!r} to {most!r}. Use 'as scored' or 'missing'"
        )
