"""Sheets for people: blind samples of answers, reviews of rewrites, and what follows from them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from triagestats.errors import ArgumentError, DataError, ReadError
from triagestats.ingest import to_polars
from triagestats.labels import label_of, listed
from triagestats.table import ResponseTable

__all__ = ["BlindSheet", "blind_sheet", "next_versions", "replace_rewrites", "review_sheet"]

_RATINGS: Final = ("fact_faithful", "sound", "same_urgency", "plausibility", "major_issue")
_YES_NO: Final = ("fact_faithful", "sound", "same_urgency", "major_issue")
_YES: Final = ("yes", "y", "1", "true")
_NO: Final = ("no", "n", "0", "false")


@dataclass(frozen=True, slots=True, eq=False)
class BlindSheet:
    """A sample of answers without who gave them, and the key that tells.

    Attributes
    ----------
    sheet
        `entry`, what is shown, and empty columns to fill in; in random order.
    key
        For each entry, all columns of the table that the sheet does not show.
    """

    sheet: pl.DataFrame
    key: pl.DataFrame

    def write(self, sheet: str | Path, key: str | Path) -> None:
        """Write both as csv files.

        Raises
        ------
        ReadError
            If one cannot be written.
        """
        for frame, path in ((self.sheet, sheet), (self.key, key)):
            try:
                frame.write_csv(path)
            except (OSError, pl.exceptions.PolarsError) as error:
                raise ReadError(f"{str(path)!r} cannot be written: {error}") from error


def blind_sheet(
    data: object,
    *,
    n: int | None = None,
    seed: int = 1,
    show: Sequence[str] = ("text",),
    ask: Sequence[str] = ("correct", "comment"),
) -> BlindSheet:
    """A blind sample of answers for a human rater.

    Parameters
    ----------
    data
        The response table of a collection, or any table.
    n
        How many answers; all by default.
    seed
        Of the sample and its order.
    show
        Columns that the rater sees.
    ask
        Names of the empty columns that the rater fills in.

    Returns
    -------
    BlindSheet
        The sheet, and the key to join the ratings with.

    Raises
    ------
    ArgumentError
        If a column is absent, a column to fill in is there already, or `n` is larger than the table.

    Notes
    -----
    Rows are ordered by the SHA-256 of the seed and the row itself, so that neither the order of the table
    nor the platform changes the sample. An answer with several judgments or metrics is in the table once
    for each: give the sheet one row an answer.

    Examples
    --------
    >>> from triagestats.collect.sheets import blind_sheet
    >>> table = {"scenario": ["a", "b"], "model": ["m", "m"], "text": ["Rest.", "Go now."]}
    >>> blind_sheet(table, n=1).sheet.columns
    ['entry', 'text', 'correct', 'comment']
    """
    frame = _frame(data)
    for name in show:
        if name not in frame.columns:
            raise ArgumentError(f"`show` names {name!r}; the columns are {listed(frame.columns)}")
    if taken := [
        name for name in ask if name in frame.columns or name == "entry" or list(ask).count(name) > 1
    ]:
        raise ArgumentError(f"`ask` names {taken[0]!r}, which the table has already; choose another name")
    if "entry" in frame.columns:
        raise DataError("`data` has a column 'entry', which the sheet adds; rename it")
    if not frame.height:
        raise DataError("`data` has no rows")
    count = frame.height if n is None else n
    if not 1 <= count <= frame.height:
        raise ArgumentError(f"`n` must be from 1 to {frame.height:,}, the rows of the table; got {n!r}")
    ranked = sorted(frame.iter_rows(), key=lambda row: _rank(seed, row))
    chosen = pl.DataFrame(ranked[:count], schema=frame.schema, orient="row")
    width = len(str(count))
    entries = pl.Series("entry", [f"E{number:0{width}d}" for number in range(1, count + 1)])
    empty = [pl.lit("").alias(name) for name in ask]
    return BlindSheet(
        sheet=chosen.select(entries, *show).with_columns(empty),
        key=chosen.select(entries, pl.exclude(show)),
    )


def _rank(seed: int, row: Sequence[object]) -> bytes:
    return hashlib.sha256(f"{seed}\n{row!r}".encode()).digest()


def review_sheet(data: object, *, source: Mapping[str, str] | None = None) -> pl.DataFrame:
    """A sheet on which people review rewrites.

    Parameters
    ----------
    data
        The response table of a `rewriting` condition: `scenario`, `text`, `rewrite_version`.
    source
        The original by scenario, to be shown beside the rewrite.

    Returns
    -------
    polars.DataFrame
        One row a rewrite, with empty columns: `fact_faithful`, `sound`, `same_urgency` and
        `major_issue` (yes or no), `plausibility` (1 to 5) and `comment`. Rows without a version (calls
        that failed or were not made) hold no rewrite and are left out.

    Raises
    ------
    ArgumentError
        If a column is absent, or a scenario has no original.

    Examples
    --------
    >>> from triagestats.collect.sheets import review_sheet
    >>> sheet = review_sheet({"scenario": ["a"], "rewrite_version": [1], "text": ["My arm hurts."]})
    >>> sheet.columns[3:]
    ['fact_faithful', 'sound', 'same_urgency', 'plausibility', 'major_issue', 'comment']
    """
    frame = _rewrites(_frame(data), "data")
    sheet = frame.select("scenario", "rewrite_version", pl.col("text").alias("rewrite")).unique(
        maintain_order=True
    )
    if source is not None:
        if absent := [name for name in sheet["scenario"] if name not in source]:
            raise ArgumentError(f"`source` has no original of scenario {absent[0]!r}")
        original = pl.Series("original", [source[name] for name in sheet["scenario"]])
        sheet = sheet.select("scenario", "rewrite_version", original, "rewrite")
    return sheet.with_columns(pl.lit("").alias(name) for name in (*_RATINGS, "comment"))


def next_versions(review: object) -> dict[str, int]:
    """The versions of rewrites after a review: one higher where a rewrite must be replaced.

    Parameters
    ----------
    review
        A filled-in review sheet; several rows a rewrite where several people reviewed it.

    Returns
    -------
    dict
        Version by scenario, for the key `versions` of the protocol `rewriting`.

    Raises
    ------
    ArgumentError
        If a column is absent.
    DataError
        If a rating is neither yes nor no, a plausibility is not from 1 to 5, a version is no whole number
        from 1 on, or a row names no scenario.

    Notes
    -----
    A rewrite is replaced if anyone finds a major issue, facts that are not faithful, another urgency, or
    that it is not sound. Plausibility replaces nothing. Only the latest version that was reviewed counts.

    Examples
    --------
    >>> from triagestats.collect.sheets import next_versions
    >>> review = {"scenario": ["a", "b"], "rewrite_version": [1, 1], "fact_faithful": ["yes", "no"],
    ...           "sound": ["yes", "yes"], "same_urgency": ["yes", "yes"], "plausibility": [4, 5],
    ...           "major_issue": ["no", "no"]}
    >>> next_versions(review)
    {'a': 1, 'b': 2}
    """
    frame = to_polars(review, "review").frame
    for column in ("scenario", "rewrite_version", *_RATINGS):
        if column not in frame.columns:
            raise ArgumentError(f"`review` has no column {column!r}; its columns are {listed(frame.columns)}")
    found: dict[str, tuple[int, bool]] = {}
    for row in frame.iter_rows(named=True):
        name, said_version = label_of(row["scenario"]), label_of(row["rewrite_version"])
        if name is None:
            raise DataError("`scenario` of `review` is blank in a row; name it, or delete the row")
        if said_version is None or not re.fullmatch("[1-9][0-9]{0,8}", said_version):
            raise DataError(
                f"`rewrite_version` of scenario {name!r} must be a whole number from 1; "
                f"got {row['rewrite_version']!r}"
            )
        version = int(said_version)
        plausibility = label_of(row["plausibility"])
        if plausibility is None or not re.fullmatch("[1-5]", plausibility):
            raise DataError(
                f"`plausibility` of scenario {name!r} must be a whole number from 1 to 5; "
                f"got {row['plausibility']!r}"
            )
        said = {rating: _yes(row[rating], rating, name) for rating in _YES_NO}
        replaced = said.pop("major_issue") or not all(said.values())
        before = found.get(name, (0, False))
        if version > before[0]:
            found[name] = (version, replaced)
        elif version == before[0]:
            found[name] = (version, before[1] or replaced)
    return {name: version + replaced for name, (version, replaced) in found.items()}


def _yes(value: object, rating: str, scenario: str) -> bool:
    word = (label_of(value) or "").lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise DataError(f"`{rating}` of scenario {scenario!r} must be yes or no; got {value!r}")


def replace_rewrites(rewrites: object, replacements: Mapping[str, str]) -> pl.DataFrame:
    """Rewrites with new versions of some, written by hand; earlier versions stay.

    Parameters
    ----------
    rewrites
        `scenario`, `rewrite_version`, `text`.
    replacements
        New text by scenario.

    Returns
    -------
    polars.DataFrame
        The three columns, one row a version, and `current`, true for the latest one of a scenario.

    Raises
    ------
    ArgumentError
        If a scenario has no rewrite, or a replacement is blank or no change.

    Examples
    --------
    >>> from triagestats.collect.sheets import replace_rewrites
    >>> rewrites = {"scenario": ["a"], "rewrite_version": [1], "text": ["My arm hurts."]}
    >>> replace_rewrites(rewrites, {"a": "My left arm hurts."})["rewrite_version"].to_list()
    [1, 2]
    """
    frame = _rewrites(_frame(rewrites), "rewrites").select("scenario", "rewrite_version", "text")
    frame = frame.unique(maintain_order=True)
    latest = {row["scenario"]: row for row in frame.sort("rewrite_version").iter_rows(named=True)}
    new = []
    for name, text in replacements.items():
        if name not in latest:
            raise ArgumentError(f"`replacements` names scenario {name!r}, which has no rewrite")
        if not text.strip() or text == latest[name]["text"]:
            raise ArgumentError(f"`replacements` of scenario {name!r} must be a new text; got {text[:60]!r}")
        new.append({"scenario": name, "rewrite_version": latest[name]["rewrite_version"] + 1, "text": text})
    grown = pl.concat([frame, pl.DataFrame(new, schema=frame.schema)]) if new else frame
    newest = pl.col("rewrite_version") == pl.col("rewrite_version").max().over("scenario")
    return grown.sort("scenario", "rewrite_version").with_columns(newest.alias("current"))


def _frame(data: object) -> pl.DataFrame:
    return data.frame if isinstance(data, ResponseTable) else to_polars(data, "data").frame


def _rewrites(frame: pl.DataFrame, argument: str) -> pl.DataFrame:
    for name in ("scenario", "rewrite_version", "text"):
        if name not in frame.columns:
            raise ArgumentError(
                f"`{argument}` has no column {name!r}; its columns are {listed(frame.columns)}"
            )
    versions = frame["rewrite_version"].cast(pl.Int64, strict=False)
    if versions.null_count() > frame["rewrite_version"].null_count():
        wrong = frame["rewrite_version"].filter(versions.is_null()).drop_nulls()[0]
        raise DataError(f"`rewrite_version` of `{argument}` must hold whole numbers; got {wrong!r}")
    # Rows of calls that failed or were not made have no version, and hold no rewrite.
    return frame.with_columns(pl.col("scenario").cast(pl.String), versions).drop_nulls("rewrite_version")
