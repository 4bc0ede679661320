"""Every kind of file gives the same table, or one clear message."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import triagestats as ts

COLUMNS = {"scenario": ["007", "b", "c"], "model": ["m", "m", "n"], "score": [1, 0, None]}
EXPECTED = [("007", "m", 1.0), ("b", "m", 0.0), ("c", "n", None)]
CSV = "scenario,model,score\n007,m,1\nb,m,0\nc,n,\n"
JSONL = (
    '{"scenario":"007","model":"m","score":1}\n{"scenario":"b","model":"m","score":0}\n'
    '{"scenario":"c","model":"n","score":null}\n'
)


def parquet() -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(COLUMNS).write_parquet(buffer)
    return buffer.getvalue()


FILES: dict[str, tuple[str, bytes]] = {
    "csv": ("a.csv", CSV.encode()),
    "upper case ending": ("a.CSV", CSV.encode()),
    "dots in the name": ("run.v1.csv", CSV.encode()),
    "tsv": ("a.tsv", CSV.replace(",", "\t").encode()),
    "tsv.gz": ("a.tsv.gz", gzip.compress(CSV.replace(",", "\t").encode())),
    "csv.gz": ("a.csv.gz", gzip.compress(CSV.encode())),
    "compressed without saying so": ("a.csv", gzip.compress(CSV.encode())),
    "CRLF": ("a.csv", CSV.replace("\n", "\r\n").encode()),
    "CR": ("a.csv", CSV.replace("\n", "\r").encode()),
    "BOM": ("a.csv", CSV.encode("utf-8-sig")),
    "UTF-16": ("a.csv", CSV.encode("utf-16")),
    "UTF-32": ("a.csv", CSV.encode("utf-32")),
    "blank line first": ("a.csv", b"\n" + CSV.encode()),
    "parquet": ("a.parquet", parquet()),
    "jsonl": ("a.jsonl", JSONL.encode()),
    "jsonl.gz": ("a.jsonl.gz", gzip.compress(JSONL.encode())),
    "jsonl with BOM": ("a.jsonl", JSONL.encode("utf-8-sig")),
    "jsonl in UTF-16": ("a.jsonl", JSONL.encode("utf-16")),
    "jsonl with blank lines": ("a.jsonl", JSONL.replace("\n", "\n\n").encode()),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("as_path", [str, Path])
def test_every_file_gives_the_same_table(kind: str, as_path: Callable[[Path], Any], tmp_path: Path) -> None:
    name, content = FILES[kind]
    (tmp_path / name).write_bytes(content)
    table = ts.ResponseTable(as_path(tmp_path / name))
    assert table.frame.select("scenario", "model", "score").rows() == EXPECTED
    assert table.notes == ()


UNUSUAL: dict[str, tuple[str, str, list[tuple[Any, ...]], list[str]]] = {
    "semicolon and decimal comma": (
        "a.csv",
        "scenario;score;x\n1,2;0,5;7,5\n1,3;1;2\n",
        [("1,2", 0.5), ("1,3", 1.0)],
        [
            "'a.csv': columns are separated by ';'.",
            "Decimal commas of `score` are read as points in 1 row.",
        ],
    ),
    "tab and decimal comma": (
        "a.tsv",
        "scenario\tscore\na\t0,5\n",
        [("a", 0.5)],
        ["Decimal commas of `score` are read as points in 1 row."],
    ),
    "tabs in a csv": (
        "a.csv",
        "scenario\tscore\na\t1\n",
        [("a", 1.0)],
        ["'a.csv': columns are separated by '\\t'."],
    ),
    "blank lines": (
        "a.csv",
        "scenario,score\na,1\n\nb,0\n,\n",
        [("a", 1.0), ("b", 0.0)],
        ["'a.csv': 2 blank lines are left out."],
    ),
    "separators in quoted names": (
        "a.csv",
        'scenario;score;"a, b, c, d"\na;1;x\n',
        [("a", 1.0)],
        ["'a.csv': columns are separated by ';'."],
    ),
    "quotes and line breaks": (
        "a.csv",
        'scenario,score,t\n"a ""b"", c",1,"x\ny"\n',
        [('a "b", c', 1.0)],
        [],
    ),
    "no name for the index": ("a.csv", ",scenario,score\n0,a,1\n", [("a", 1.0)], []),
    "numbers with zeros in front": (
        "a.csv",
        "scenario,score\n007,1\n7,0\n",
        [("007", 1.0), ("7", 0.0)],
        [],
    ),
    "NA is a name": ("a.csv", "scenario,score\nNA,1\n", [("NA", 1.0)], []),
    "NaN in jsonl": ("a.jsonl", '{"scenario":"a","score":NaN}\n', [("a", None)], []),
    "types differ in jsonl": (
        "a.jsonl",
        '{"scenario":7,"score":true}\n{"scenario":"007","score":0.5}\n',
        [("007", 0.5), ("7", 1.0)],
        [],
    ),
    "nested jsonl": (
        "a.jsonl",
        '{"scenario":"a","score":1,"meta":{"x":[1]}}\n{"scenario":"b","score":0}\n',
        [("a", 1.0), ("b", 0.0)],
        [],
    ),
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_unusual_files_are_read_and_noted(case: str, tmp_path: Path) -> None:
    name, content, rows, notes = UNUSUAL[case]
    (tmp_path / name).write_text(content, newline="")
    table = ts.ResponseTable(tmp_path / name)
    assert table.frame.select("scenario", "score").rows() == rows
    assert [str(note) for note in table.notes] == notes


def test_a_decimal_comma_changes_the_score_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("scenario;score;x\n1,2;0,5;7,5\n")
    assert ts.ResponseTable(tmp_path / "a.csv").frame.select("scenario", "x").rows() == [("1,2", "7,5")]


ENDINGS = (
    ".csv, .tsv, .txt, .parquet, .pq, .jsonl, .ndjson, or in one of them with .gz: save the table as one of "
    "these"
)
RAGGED = "quote fields that hold the separator, and complete rows that are cut short"
NOT_A_LINE = "jsonl has one whole object in each line"

BAD_FILES: list[tuple[str, bytes, str]] = [
    ("a.csv", b"", "'a.csv' is empty"),
    ("a.csv", b" \n\n", "'a.csv' is empty"),
    ("a.csv", b"\xef\xbb\xbf", "'a.csv' is empty"),
    ("a.csv", b"scenario,score\na,1,3\n", f"'a.csv', line 2, has 3 fields, and its header has 2; {RAGGED}"),
    (
        "a.csv",
        b"scenario,score,x\na,1,2\nb\n",
        f"'a.csv', line 3, has 1 field, and its header has 3; {RAGGED}",
    ),
    ("a.csv", b"scenario,score,x\na,1\n", f"'a.csv', line 2, has 2 fields, and its header has 3; {RAGGED}"),
    (
        "a.csv",
        b'scenario,"score\na,1\nb,0\n',
        "'a.csv' has a quotation mark that is never closed; quote whole fields, and double the marks in them",
    ),
    (
        "a.csv",
        b"scenario,score,score\na,1,0\n",
        "'a.csv' has several columns named 'score'; rename them, so that each has a name of its own",
    ),
    (
        "a.csv",
        "scenario,score\nä,1\n".encode("latin-1"),
        "'a.csv' is not UTF-8 text (byte 15 is none of its characters); save it as UTF-8",
    ),
    (
        "a.csv",
        parquet(),
        (
            "'a.csv' is named as csv, but its content looks like parquet; save it as csv, or rename it after "
            "what it holds"
        ),
    ),
    (
        "a.csv",
        JSONL.encode(),
        (
            "'a.csv' is named as csv, but its content looks like jsonl; save it as csv, or rename it after "
            "what it holds"
        ),
    ),
    (
        "a.csv",
        b"PK\x03\x04xl/workbook",
        (
            "'a.csv' is named as csv, but its content looks like a zip archive (an Excel workbook is one); "
            "save it as csv, or rename it after what it holds"
        ),
    ),
    (
        "a.csv",
        b"\xd0\xcf\x11\xe0\x00\x00",
        (
            "'a.csv' is named as csv, but its content looks like binary data; save it as csv, or rename it "
            "after what it holds"
        ),
    ),
    (
        "a.parquet",
        CSV.encode(),
        (
            "'a.parquet' is named as parquet, but its content looks like text; save it as parquet, or rename "
            "it after what it holds"
        ),
    ),
    (
        "a.jsonl",
        CSV.encode(),
        (
            "'a.jsonl' is named as jsonl, but its content looks like text; save it as jsonl, or rename it "
            "after what it holds"
        ),
    ),
    (
        "a.jsonl",
        b'[{"scenario":"a"}]',
        (
            "'a.jsonl' is named as jsonl, but its content looks like a JSON array; save it as jsonl, or "
            "rename it after what it holds"
        ),
    ),
    ("a.jsonl", JSONL.encode() + b'{"scenario":', f"'a.jsonl', line 4, is not one JSON object; {NOT_A_LINE}"),
    ("a.jsonl", b'{"scenario":"a"}\n[1]\n', f"'a.jsonl', line 2, is not one JSON object; {NOT_A_LINE}"),
    (
        "a.csv.gz",
        CSV.encode(),
        "'a.csv.gz' is named as gzip, but it is not compressed; drop .gz from its name",
    ),
    ("a.xlsx", b"PK\x03\x04", f"'a.xlsx' has the ending '.xlsx'; expected a file ending in {ENDINGS}"),
    ("a.json", b"[]", f"'a.json' has the ending '.json'; expected a file ending in {ENDINGS}"),
    ("table", CSV.encode(), f"'table' has no ending; expected a file ending in {ENDINGS}"),
    ("a.gz", gzip.compress(CSV.encode()), f"'a.gz' has no ending; expected a file ending in {ENDINGS}"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES)
def test_bad_files(
    name: str, content: bytes, message: str, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert refusal(lambda: ts.ResponseTable(tmp_path / name)) == f"ReadError: `data`: {message}"


# The rest of these messages is that of polars or zlib, and theirs to change.
DAMAGED: list[tuple[str, bytes, str]] = [
    ("a.parquet", parquet()[:60], "'a.parquet' cannot be read as parquet, and may be damaged or cut short: "),
    ("a.csv.gz", gzip.compress(CSV.encode())[:-9], "'a.csv.gz' is a damaged gzip file ("),
    ("a.csv", b'scenario,score,t\na,1,5" x\nb,0,6" x\n', "'a.csv' cannot be read as csv: "),
]


@pytest.mark.parametrize(("name", "content", "start"), DAMAGED)
def test_damaged_files(
    name: str, content: bytes, start: str, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    (tmp_path / name).write_bytes(content)
    said = refusal(lambda: ts.ResponseTable(tmp_path / name))
    assert said.startswith(f"ReadError: `data`: {start}")
    assert "\n" not in said


def test_paths_that_name_no_file(tmp_path: Path, refusal: Callable[..., str]) -> None:
    (tmp_path / "d.csv").mkdir()
    assert refusal(lambda: ts.ResponseTable(tmp_path / "d.csv")) == (
        "ReadError: `data`: 'd.csv' is a folder; expected one file"
    )
    assert refusal(lambda: ts.ResponseTable(tmp_path / "x.csv")) == (
        f"ReadError: `data`: there is no file 'x.csv' in {str(tmp_path)!r}; correct the path"
    )
    for url in ("https://x.org/z.csv", "http://x.org/z", "s3://b/z.parquet", "hf://datasets/a/b.csv"):
        assert refusal(lambda url=url: ts.ResponseTable(url)) == (
            f"ReadError: `data`: {url!r} is a URL, and URLs are not read; download the file, and give its "
            "path"
        )
    assert "there is no file" in refusal(lambda: ts.ResponseTable("c:/z.csv"))
    assert refusal(lambda: ts.ResponseTable("a\0.csv")) == (
        r"ReadError: `data`: 'a\x00.csv' cannot be read: embedded null byte"
    )
    long = "x" * 5_000 + ".csv"
    assert refusal(lambda: ts.ResponseTable(long)) == (
        f"ReadError: `data`: '{long[:80]}...' cannot be read: File name too long"
    )
