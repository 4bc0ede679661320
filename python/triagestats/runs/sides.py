"""The two runs of a comparison as response tables that measure the same thing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

from triagestats.errors import ArgumentError, ArgumentTypeError, DataError, TriagestatsError
from triagestats.labels import label_of, listed
from triagestats.readers.read import are_paths, read_paths
from triagestats.results import Note
from triagestats.roles import ROLE_ARGUMENTS
from triagestats.table import ResponseTable

__all__ = ["direction_of", "metric_of", "read_side", "same_files_notes", "source_of", "valid_names"]

_OF_TABLES: Final = (*ROLE_ARGUMENTS, "levels", "unparsed", "higher_is_better")
_CHOSEN: Final = ("metric", "judge", "cluster")
"""What can still be chosen of a ResponseTable; the direction of its scores is settled by the comparison."""


def valid_names(names: object) -> tuple[str, str]:
    """What the runs are called: `names` if it is two different labels, else A and B.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If it is something else.
    """
    if names is None:
        return "A", "B"
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ArgumentTypeError(f"`names` must be two names, such as ('old', 'new'); got {names!r}")
    if not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(f"`names` must hold text; got {list(names)}")
    labels = [label_of(name) for name in names]
    if len(labels) != 2 or None in labels or labels[0] == labels[1]:
        raise ArgumentError(f"`names` must be two different names, none blank; got {list(names)}")
    return str(labels[0]), str(labels[1])


def read_side(
    data: object, argument: Literal["a", "b"], options: Mapping[str, Any], *, name: str | None
) -> ResponseTable:
    """One run: files that `ts.read` takes, a dataframe, or a table that is there already.

    Parameters
    ----------
    data
        The run.
    argument
        What the caller gave it as; every message names it.
    options
        Roles of columns and options of a reader; what is None was not given.
    name
        The format of the files.

    Raises
    ------
    TriagestatsError
        As `ts.read` and `ts.ResponseTable` raise it.
    """
    given = {option: value for option, value in options.items() if value is not None}
    with _naming(argument):
        if are_paths(data):
            return read_paths(data, given, name=name, argument=argument)
        if name is not None:
            raise ArgumentError(f"`format` is for files; `{argument}` is a {type(data).__name__}")
        if isinstance(data, ResponseTable):
            return _chosen(data, given)
        unknown = [option for option in given if option not in _OF_TABLES]
        if unknown:
            raise ArgumentTypeError(
                f"{', '.join(f'`{option}`' for option in unknown)}: no option of a dataframe; the options "
                f"are {', '.join(_OF_TABLES)}"
            )
        try:
            return ResponseTable(data, **given)
        except TriagestatsError as error:
            raise type(error)(str(error).replace("`data`", f"`{argument}`")) from error.__cause__


def _chosen(table: ResponseTable, given: Mapping[str, Any]) -> ResponseTable:
    """A table with the metric, the judge and the cluster that were asked for."""
    settled = [option for option in given if option not in (*_CHOSEN, "higher_is_better")]
    if settled:
        raise ArgumentError(
            f"{', '.join(f'`{option}`' for option in settled)} cannot be given with a ResponseTable; give "
            "them where the table is made"
        )
    if "metric" in given:
        table = table.with_metric(given["metric"])
    if "judge" in given:
        table = table.with_judge(given["judge"])
    return table.with_cluster(given["cluster"]) if "cluster" in given else table


@contextmanager
def _naming(argument: str) -> Iterator[None]:
    """Say in every refusal which of the two runs it is about."""
    try:
        yield
    except TriagestatsError as error:
        said = str(error)
        if f"`{argument}`" in said:
            raise
        raise type(error)(f"`{argument}`: {said}") from error.__cause__


def source_of(data: object) -> str | None:
    """The files of a run as they were named; None where it came as a table."""
    if not are_paths(data):
        return None
    paths = [data] if isinstance(data, str | os.PathLike) else list(data)
    return ", ".join(os.fspath(path) for path in paths)


def same_files_notes(a: object, b: object, names: tuple[str, str]) -> tuple[Note, ...]:
    """A doubt where both runs are the same files, as a mistaken step of CI gives them."""
    if not (are_paths(a) and are_paths(b)) or _resolved(a) != _resolved(b):
        return ()
    message = f"{names[0]} and {names[1]} are the same files, so that they cannot differ."
    return (Note("same_files", message, "caution"),)


def _resolved(data: Any) -> set[str]:
    paths = [data] if isinstance(data, str | os.PathLike) else list(data)
    return {os.path.realpath(path) for path in paths}


def metric_of(a: ResponseTable, b: ResponseTable) -> str | None:
    """The metric that both runs have; None where neither names one.

    Raises
    ------
    DataError
        If a run has several, or the runs measure different things.
    """
    if len(a.metrics) > 1 or len(b.metrics) > 1:
        shared = [metric for metric in a.metrics if metric in b.metrics]
        fix = f"choose one, for instance `metric={shared[0]!r}`" if shared else "none is in both"
        raise DataError(
            f"`metric` has several values: `a` has {listed(a.metrics)} and `b` has {listed(b.metrics)}; {fix}"
        )
    if a.metrics and b.metrics and a.metrics != b.metrics:
        raise DataError(
            f"`metric`: `a` has {a.metrics[0]!r} and `b` has {b.metrics[0]!r}, which may not measure one "
            "thing; give runs that were scored alike, or tables in which the metric has one name"
        )
    return next(iter((*a.metrics, *b.metrics)), None)


def direction_of(a: ResponseTable, b: ResponseTable, asked: bool | None) -> bool:
    """Whether a larger score is the better one: as the caller says, else as both runs say.

    Raises
    ------
    ArgumentTypeError
        If `asked` is no truth value.
    DataError
        If the runs differ in it.
    """
    if asked is not None:
        if not isinstance(asked, bool):
            raise ArgumentTypeError(f"`higher_is_better` must be True or False; got {asked!r}")
        return asked
    if a.higher_is_better != b.higher_is_better:
        raise DataError(
            "`a` and `b` differ in whether a larger score is the better one; say which with "
            "`higher_is_better=True`"
        )
    return a.higher_is_better
