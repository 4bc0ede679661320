"""Tables of the user's own: csv, parquet or JSON lines, long or wide, one file or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import polars as pl

from triagestats.errors import ArgumentTypeError, DataError, ReadError
from triagestats.files import read_table
from triagestats.labels import listed
from triagestats.readers.bounded import File
from triagestats.readers.reading import valid_limit
from triagestats.readers.recognise import Paths, files_of
from triagestats.readers.wide_csv import long_table, readable_scores
from triagestats.results import Note
from triagestats.roles import ROLE_ARGUMENTS, Assignment, RoleArgument, assign_roles, role_spelled
from triagestats.schema import KEY_ROLES
from triagestats.source import Source
from triagestats.table import ResponseTable

__all__ = ["is_table", "read_csv", "table_from"]

_KINDS: Final = ("csv", "parquet", "jsonl")
_OPTIONS: Final = ("levels", "higher_is_better", "unparsed")
_NO_SCORE: Final = ("na", "n/a", "null", "none", "missing")


def read_csv(path: Paths, **options: Any) -> ResponseTable:
    r"""Tables of the user's own as a response table: csv, parquet or JSON lines, plain or gzip.

    Parameters
    ----------
    path
        A file, a folder, or a list of them. Several files are one table, with the column `source`.
    **options
        Roles, `levels`, `higher_is_better` and `unparsed`, as in `ResponseTable`. `model` and `judge` also
        take a list of columns of a wide table.

    Returns
    -------
    ResponseTable
        One row a score.

    Raises
    ------
    ReadError
        If a file cannot be read as a table.
    RoleError, DataError
        As `ResponseTable` raises them; and if two files claim the same answers.

    Notes
    -----
    A table is wide where it has neither a score nor a response beside a gold label: then every column
    without a role that holds scores from 0 to 1 only is a model, `name@2` the second run of `name`, and
    `score_<name>` a judge. Columns of labels that occur in the gold column are responses, `pred_<name>`
    those of a condition. A note lists the columns that were read so.

    C, I, P and N are 1, 0, 0.5 and 0. `NA` and the like say that there is no score, and none is then made
    from the labels; an empty cell beside a response and a gold label is scored by these. Separator, byte
    order mark and decimal comma are recognised.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import triagestats as ts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "wide.csv")
    ...     _ = path.write_text("case_id,acme/mock-7b,acme/mock-7b@2,acme/mock-70b\nc1,1,0,1\n007,0,,C\n")
    ...     table = ts.read_csv(path)
    >>> table.frame.select("scenario", "repetition", "score", "status").rows()[:3]
    [('007', '1', 1.0, 'ok'), ('007', '1', 0.0, 'ok'), ('007', '2', None, 'missing')]
    """
    files, title = files_of(path, valid_limit(options.pop("max_bytes", None)))
    tables = [file for file in files if is_table(file)] if len(files) > 1 else files
    if not tables:
        names = listed([file.name for file in files])
        raise ReadError(f"`path`: {title} holds no csv, parquet or JSON-lines file; its files are {names}")
    return table_from(tables, options)


def is_table(file: File) -> bool:
    """Whether a file of a folder may be a table of the user's own; a text file may be anything."""
    return file.kind in _KINDS and file.path.suffix.lower() != ".txt"


def table_from(files: Sequence[File], options: Mapping[str, Any]) -> ResponseTable:
    """One response table of files that hold tables.

    Raises
    ------
    ReadError, RoleError, DataError, ArgumentTypeError
        As in `read_csv`.
    """
    unknown = sorted(options.keys() - {*ROLE_ARGUMENTS, *_OPTIONS})
    if unknown:
        raise ArgumentTypeError(
            f"{', '.join(f'`{name}`' for name in unknown)}: no option of a table; the options are "
            f"{', '.join((*ROLE_ARGUMENTS, *_OPTIONS))}"
        )
    given: dict[str, RoleArgument] = {
        name: value for name, value in options.items() if name in ROLE_ARGUMENTS and value is not None
    }
    named = {
        name for value in given.values() for name in ([value] if isinstance(value, str) else value or ())
    }
    read = []
    for file in files:
        try:
            came = read_table(file.path, keep=lambda name: name in named or role_spelled(name) is not None)
        except ReadError as error:
            raise ReadError(f"`path`: {error}") from error.__cause__
        read.append(long_table(came, given))
    came, roles = read[0] if len(read) == 1 else _together(files, read)
    came = _scores(came, roles)
    others = {name: options[name] for name in _OPTIONS if options.get(name) is not None}
    said: dict[str, Any] = {**roles, **others}
    return ResponseTable(came, **said)


def _together(
    files: Sequence[File], read: Sequence[tuple[Source, dict[str, RoleArgument]]]
) -> tuple[Source, dict[str, RoleArgument]]:
    """Several tables as one, with the file of each row; what repeats in later files are further runs."""
    roles: dict[str, RoleArgument] = {}
    for _, said in read:
        roles |= said
    named = "source" if "source" not in roles else None
    frames = []
    for file, (came, _) in zip(files, read, strict=True):
        frame = came.frame
        if named and named not in frame.columns:
            frame = frame.with_columns(pl.lit(file.name).alias("source"))
        frames.append(frame)
    try:
        frame = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        first = str(error).strip().splitlines()[0]
        raise DataError(
            f"`path`: the tables have columns of one name that hold different things ({first}); read "
            "them apart"
        ) from error
    notes = tuple(dict.fromkeys(note for came, _ in read for note in came.notes))
    assigned = assign_roles(frame.columns, roles)
    source = assigned.one("source")
    if source is not None and "scenario" in assigned:
        frame, more = _numbered(frame, assigned, source)
        notes = (*notes, *more)
    decimal_comma = any(came.decimal_comma for came, _ in read)
    return Source(frame, notes, decimal_comma, settled=all(came.settled for came, _ in read)), roles


def _numbered(
    frame: pl.DataFrame, assigned: Assignment, source: str
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Answers that several files hold: further repetitions where the files number none, else an error."""
    key = [name for role in (*KEY_ROLES, "task") for name in assigned.columns.get(role, ())]
    shared = frame.filter(pl.col(source).n_unique().over(key) > 1)
    if shared.is_empty():
        return frame, ()
    if "repetition" in assigned:
        first = shared.row(0, named=True)
        same = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(first[name])) for name in key)
        files = shared.filter(same)[source].unique(maintain_order=True).to_list()
        what = ", ".join(f"{name} {first[name]!r}" for name in key if first[name] is not None)
        raise DataError(f"`path`: {files[0]!r} and {files[1]!r} both claim {what}; leave one of them out")
    numbered = frame.with_columns((pl.int_range(pl.len()).over(key) + 1).alias("repetition"))
    text = "Answers that several files hold are runs, numbered as repetitions in the order of the files."
    return numbered, (Note("runs", text),)


def _scores(came: Source, roles: Mapping[str, RoleArgument]) -> Source:
    """Letters as numbers, and `NA` as the statement that there is no score."""
    assigned = assign_roles(came.frame.columns, roles)
    column = assigned.one("score")
    if column is None or came.frame[column].dtype != pl.String:
        return came
    frame, notes = readable_scores(came.frame, column)
    stated = frame[column].str.strip_chars().str.to_lowercase().is_in(list(_NO_SCORE)).fill_null(value=False)
    if "status" not in assigned and "status" not in frame.columns and stated.any():
        frame = frame.with_columns(pl.when(stated).then(pl.lit("missing")).alias("status"))
    return replace(came, frame=frame, notes=(*came.notes, *notes))
