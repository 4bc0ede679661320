"""Tables that harnesses export with pandas: csv, parquet, JSON of any orientation."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from triagestats.errors import ReadError
from triagestats.files import read_table
from triagestats.readers.bounded import File
from triagestats.readers.shapes import mapping

__all__ = ["column_names", "nested", "table_rows"]

_OPENING: Final = ("{", "[", '"')


def column_names(file: File) -> tuple[str, ...]:
    """Columns of a table as far as its head shows them, without the slashes that pandas escapes."""
    keys = tuple(key.replace("\\/", "/") for key in file.keys)
    where = next((name for name in ("columns", "fields") if f'"{name}"'.encode() in file.head), None)
    if where is None or not {"columns", "schema"} & set(keys):
        return keys or file.columns
    head = file.head.decode("utf-8", "replace")
    try:
        names, _ = json.JSONDecoder().raw_decode(head, head.index("[", head.index(f'"{where}"')))
    except ValueError:
        return keys
    return tuple(str(mapping(name).get("name", name)) for name in names)


def table_rows(file: File) -> Iterator[dict[str, Any]]:
    """The rows of a table, a mapping each.

    Raises
    ------
    ReadError
        If the file is no table.
    """
    if file.kind == "jsonl":
        for _, row in file.lines():
            yield row
    elif file.kind == "json":
        yield from _json_rows(file)
    elif file.kind == "parquet":
        with file.open():
            frame = pl.read_parquet(file.path)
        yield from frame.iter_rows(named=True)
    else:
        yield from read_table(file.path).frame.iter_rows(named=True)


def nested(cell: object) -> object:
    """A cell as the object that it was: JSON, or what Python wrote in its place; other text as it is."""
    if not isinstance(cell, str) or not cell.lstrip().startswith(_OPENING):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(cell.lstrip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return cell


def _json_rows(file: File) -> Iterator[dict[str, Any]]:
    if file.head.lstrip().startswith(b"["):
        for _, row in file.stream():
            yield _row(row, file)
        return
    document = file.json()
    columns, data = document.get("columns"), document.get("data")
    if isinstance(columns, list) and isinstance(data, list):
        for values in data:
            if not isinstance(values, list) or len(values) != len(columns):
                raise ReadError(
                    f"{file.name!r} has {len(columns)} columns, and a row with another number of values; "
                    "export it again"
                )
            yield dict(zip(map(str, columns), values, strict=True))
    elif isinstance(data, list):
        for row in data:
            yield _row(row, file)
    elif document and all(isinstance(column, Mapping) for column in document.values()):
        if all(key.isdecimal() for key in document):
            yield from (dict(row) for row in document.values())
            return
        index = list(dict.fromkeys(key for column in document.values() for key in column))
        for key in index:
            yield {name: column.get(key) for name, column in document.items()}
    else:
        raise ReadError(
            f"{file.name!r} is no table of columns and rows; export it with `to_json` or `to_csv`"
        )


def _row(row: object, file: File) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ReadError(f"{file.name!r} is a list of something else than rows; export it with `to_json`")
    return row
