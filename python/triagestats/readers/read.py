"""read: files of any format that is known, told from their content."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeGuard

from triagestats.errors import ArgumentError, ReadError, TriagestatsError
from triagestats.files import refuse_url
from triagestats.readers import (
    deepeval,
    every_eval_ever,
    healthbench,
    helm,
    inspect_logs,
    langsmith,
    lighteval,
    lm_eval,
    mlflow,
    openai_evals,
    promptfoo,
)
from triagestats.readers.plain_tables import is_table, table_from
from triagestats.readers.reading import table_of, valid_limit
from triagestats.readers.recognise import Paths, advice, files_of, mixed, nothing, recognise
from triagestats.readers.rows import Reader
from triagestats.table import ResponseTable

__all__ = ["FORMATS", "READERS", "are_paths", "read", "read_paths"]

READERS: Final[tuple[Reader, ...]] = (
    inspect_logs.READER,
    lm_eval.READER,
    helm.READER,
    lighteval.READER,
    openai_evals.READER,
    healthbench.READER,
    promptfoo.READER,
    deepeval.READER,
    mlflow.READER,
    langsmith.READER,
    every_eval_ever.READER,
)
"""All formats of harnesses; the first that recognises a file reads it."""

TABLE: Final = "csv"
_NO_TABLES: Final = ("json", "zip")
FORMATS: Final = (*(reader.name for reader in READERS), TABLE)
"""What `format=` can be."""


def read(path: Paths, format: str | None = None, **options: Any) -> ResponseTable:  # noqa: A002
    """Result files of an evaluation harness, or a table, as a response table.

    Parameters
    ----------
    path
        A file, a folder, or a list of them: the logs of several models, runs and tasks are read at once.
    format
        `inspect`, `lm_eval`, `helm`, `lighteval`, `openai_evals`, `healthbench`, `promptfoo`, `deepeval`,
        `mlflow`, `langsmith`, `every_eval_ever`, or `csv` for tables of the user's own (csv, parquet, JSON
        lines). Recognised from the content where not given.
    metric
        The metric to keep. Default: all; a table of several metrics is analysed after choosing one.
    judge
        Scorers that are judges of one metric, a name or a list of them; True for all. Default: scorers are
        metrics.
    task
        The task to keep, or a list of them.
    model
        What the model is called where the files do not say.
    item
        The field that names the items, in formats that leave that to the user.
    cluster, stratum
        A role, or metadata of the items under a dotted name such as `metadata.passage_id`; its last part is
        enough where only one column has it. `cluster` takes two that cross.
    runs
        Whether files that claim the same model, task and epoch are runs of their own, numbered as further
        repetitions. Default: an error that names both.
    levels, higher_is_better, unparsed
        As in `ResponseTable`. Default of `higher_is_better`: what the files say of the metric, else True.
    max_bytes
        Bytes that one line, one JSON value or one member of an archive may unpack to.
    **options
        For `csv` the roles of the columns, as in `read_csv`.

    Returns
    -------
    ResponseTable
        One row a scorer's value for one answer. A scenario is an item of a task, so that the files of several
        models pair; `source` says which file a row came from.

    Raises
    ------
    ReadError
        If there is no file of a known format, files of several harnesses, or a damaged one.
    DataError
        If two files claim the same model, task and epoch, or an option names what the files do not have.
    ArgumentError, ArgumentTypeError
        If an option has a value that cannot be used, or is none of the format.

    Notes
    -----
    An answer that failed is missing, never wrong or 0. An answer that could not be read and was scored as
    wrong keeps its score and says so in `reason`; `unparsed=` changes that. NaN is `unscored`, a scorer
    that left no entry `absent`, a value that is not one number `non_scalar`. Epochs are those of the files;
    where these number none, repetitions are counted in order of occurrence. Nothing is written to the disk,
    and nothing of a harness is run. Tables beside the files of a harness are left aside.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import triagestats as ts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for model, value in (("acme/mock-7b", "C"), ("acme/mock-70b", "I")):
    ...         log = {"status": "success", "eval": {"task": "triage", "model": model},
    ...                "samples": [{"id": 1, "epoch": 1, "scores": {"choice": {"value": value}}}]}
    ...         _ = pathlib.Path(folder, f"{model[5:]}.json").write_text(json.dumps(log))
    ...     table = ts.read(folder)
    >>> table.frame.select("scenario", "model", "score", "source").rows()
    [('1', 'acme/mock-70b', 0.0, 'mock-70b.json'), ('1', 'acme/mock-7b', 1.0, 'mock-7b.json')]
    """
    return read_paths(path, options, name=format)


def read_paths(
    path: Paths,
    options: Mapping[str, Any],
    *,
    name: str | None = None,
    argument: str = "path",
) -> ResponseTable:
    """`read`, with options as a mapping, the name of a format, and the argument that messages name.

    Raises
    ------
    TriagestatsError
        As `read` raises it.
    """
    try:
        return _read(path, options, name)
    except TriagestatsError as error:
        if argument == "path":
            raise
        raise type(error)(str(error).replace("`path`", f"`{argument}`")) from error.__cause__


def _read(path: Paths, options: Mapping[str, Any], name: str | None) -> ResponseTable:
    if name is not None and name not in FORMATS:
        raise ArgumentError(f"`format` must be one of {', '.join(map(repr, FORMATS))}; got {name!r}")
    max_bytes = valid_limit(options.get("max_bytes"))
    if isinstance(path, str | os.PathLike):
        try:
            refuse_url(Path(path))
        except ReadError as error:
            raise ReadError(f"`path`: {error}") from None
    files, title = files_of(path, max_bytes)
    readers = [reader for reader in READERS if name in (None, reader.name)]
    found = recognise(files, readers) if name != TABLE else ()
    if len(found) > 1:
        raise ReadError(f"`path`: {mixed(found, title)}")
    if found:
        return table_of(found[0], options)
    tables = [file for file in files if is_table(file) or (len(files) == 1 and file.kind not in _NO_TABLES)]
    said = advice(files, readers)
    if name not in (None, TABLE) or not tables or said:
        raise ReadError(f"`path`: {said or nothing(files, readers, title)}")
    roles = {name: value for name, value in options.items() if name != "max_bytes"}
    return table_from(tables, roles)


def are_paths(data: object) -> TypeGuard[Paths]:
    """Whether data are named by a path or a list of paths."""
    if isinstance(data, str | os.PathLike):
        return True
    return (
        isinstance(data, list | tuple)
        and bool(data)
        and all(isinstance(one, str | os.PathLike) for one in data)
    )
