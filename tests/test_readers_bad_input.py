"""Files that are damaged, hostile, empty, mixed or too large."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import triagestats as ts

Refusal = Callable[[Callable[[], object]], str]

SAMPLE = {"id": 1, "epoch": 1, "target": "A", "scores": {"s": {"value": 1}}}
HEADER = {"version": 2, "status": "success", "eval": {"task": "t", "model": "acme/m"}}
LINE = {
    "doc_id": 0,
    "doc": {},
    "resps": [["5"]],
    "filtered_resps": ["5"],
    "filter": "none",
    "metrics": ["em"],
    "em": 1,
}


def archive(members: dict[str, bytes | str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return stream.getvalue()


def log(**members: bytes | str) -> bytes:
    return archive({"header.json": json.dumps(HEADER), "samples/1.json": json.dumps(SAMPLE), **members})


def write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("share", [0.3, 0.7, 0.98])
def test_a_truncated_zip(tmp_path: Path, refusal: Refusal, share: float) -> None:
    whole = archive({"_journal/start.json": json.dumps(HEADER), "samples/1.json": os.urandom(5_000).hex()})
    path = write(tmp_path / "cut.eval", whole[: int(len(whole) * share)])
    said = refusal(lambda: ts.read(path))
    assert said.startswith("ReadError: 'cut.eval' cannot be read, and may be damaged or cut short")


def test_a_truncated_real_log(shared: Callable[[str], Path], tmp_path: Path, refusal: Refusal) -> None:
    content = shared("harness/inspect/passage_mcq_mock-7b.eval").read_bytes()
    path = write(tmp_path / "cut.eval", content[: len(content) // 2])
    for read in (ts.read, ts.read_inspect, ts.analyze):
        assert "'cut.eval' cannot be read, and may be damaged or cut short" in refusal(lambda: read(path))  # noqa: B023


def test_a_spoiled_member(tmp_path: Path, refusal: Refusal) -> None:
    content = bytearray(log())
    place = content.index(b"samples/1.json") + len("samples/1.json") + 5
    content[place] ^= 0xFF
    path = write(tmp_path / "a.eval", bytes(content))
    assert "'a.eval' cannot be read, and may be damaged" in refusal(lambda: ts.read(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"status": "success", "eval": {"task": "t"}, "samples": [{"id": 1}, {"id', "cut short"),
        (b'{"status": "success", "eval": {"task": "t"}, "samples": [{"id": 1} nonsense]}', "is not JSON"),
        (b'{"status": "success", "eval": {"task": "\xff"}, "samples": []}', "is not UTF-8 text"),
        (b'{"status": "success", "eval": ' + b"[" * 200_000, "is nested too deeply"),
    ],
)
def test_a_damaged_json_log(tmp_path: Path, refusal: Refusal, content: bytes, said: str) -> None:
    path = write(tmp_path / "a.json", content)
    message = refusal(lambda: ts.read(path))
    assert message.startswith("ReadError: 'a.json'")
    assert said in message


def test_a_line_that_is_cut_short(tmp_path: Path, refusal: Refusal) -> None:
    path = write(tmp_path / "samples_t.jsonl", json.dumps(LINE) + "\n" + json.dumps(LINE)[:40])
    assert "'samples_t.jsonl', line 2, is not JSON, and may be damaged or cut short" in refusal(
        lambda: ts.read(path)
    )


def test_an_empty_folder(tmp_path: Path, refusal: Refusal) -> None:
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs" / ".hidden", "x")
    assert "/logs' has no files; expected the logs or results of a harness" in refusal(
        lambda: ts.read(tmp_path / "logs")
    )
    assert "`data`: " in refusal(lambda: ts.analyze(tmp_path / "logs"))


def test_a_folder_of_other_files(tmp_path: Path, refusal: Refusal) -> None:
    write(tmp_path / "README.md", "words")
    write(tmp_path / "settings.json", '{"colour": "blue"}')
    said = refusal(lambda: ts.read(tmp_path))
    assert "is of no format that is known; its files are ['README.md', 'settings.json']" in said
    assert "holds no HELM file" in refusal(lambda: ts.read_helm(tmp_path))
    assert "holds no csv, parquet or JSON-lines file" in refusal(lambda: ts.read_csv(tmp_path))


def test_an_empty_file(tmp_path: Path, refusal: Refusal) -> None:
    path = write(tmp_path / "a.jsonl", "")
    assert "'a.jsonl' is empty" in refusal(lambda: ts.read(path))


def test_a_path_that_is_none(tmp_path: Path, refusal: Refusal) -> None:
    assert "there is no file or folder 'logs'" in refusal(lambda: ts.read(tmp_path / "logs"))
    assert "is a URL" in refusal(lambda: ts.read("https://example.org/a.eval"))


def test_mixed_harnesses(tmp_path: Path, refusal: Refusal) -> None:
    write(tmp_path / "a.eval", log())
    write(tmp_path / "b" / "samples_t.jsonl", json.dumps(LINE))
    said = refusal(lambda: ts.read(tmp_path))
    assert (
        "holds files of 2 harnesses: Inspect ('a.eval'); lm-evaluation-harness ('b/samples_t.jsonl')" in said
    )
    assert "`format='inspect'`" in said
    assert ts.read(tmp_path, format="inspect").frame["source"].to_list() == ["a.eval"]
    assert ts.read_lm_eval(tmp_path).frame["source"].to_list() == ["b/samples_t.jsonl"]


def test_names_that_leave_the_archive(tmp_path: Path) -> None:
    """They are not read, and nothing of an archive is written to the disk."""
    hostile = {
        name: json.dumps(SAMPLE | {"id": name})
        for name in (
            "samples/../../evil.json",
            "/samples/evil.json",
            "../samples/evil.json",
            "samples\\..\\..\\e.json",
        )
    }
    path = write(tmp_path / "logs" / "a.eval", log(**hostile))
    before = sorted(tmp_path.rglob("*"))
    table = ts.read(path)
    assert table.frame["scenario"].to_list() == ["1"]
    assert any(note.code == "outside" and "4 members" in note.message for note in table.notes)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bomb_in_a_zip(tmp_path: Path, refusal: Refusal) -> None:
    content = log(**{"samples/2.json": b" " * 3_000_000 + json.dumps(SAMPLE | {"id": 2}).encode()})
    assert len(content) < 10_000
    path = write(tmp_path / "a.eval", content)
    said = refusal(lambda: ts.read(path, max_bytes=1_000_000))
    assert said == (
        "ReadError: member 'samples/2.json' of 'a.eval' has more than 1,000,000 bytes; if the file is to be "
        "trusted, raise the limit with `max_bytes=4000000`"
    )
    assert ts.read(path, max_bytes=4_000_000).frame.height == 2


def test_a_bomb_that_lies_about_its_size(tmp_path: Path, refusal: Refusal) -> None:
    """The size in the directory is not believed."""
    content = log(**{"samples/2.json": b" " * 3_000_000})
    size = (3_000_000).to_bytes(4, "little")
    assert content.count(size) == 2
    path = write(tmp_path / "a.eval", content.replace(size, (10).to_bytes(4, "little")))
    assert refusal(lambda: ts.read(path, max_bytes=1_000_000)).startswith("ReadError: ")


def test_a_bomb_in_gzip(tmp_path: Path, refusal: Refusal) -> None:
    line = json.dumps(LINE)[:-1] + ', "x": "' + "a" * 3_000_000 + '"}'
    path = write(tmp_path / "samples_t.jsonl.gz", gzip.compress(line.encode()))
    assert "line 1 of 'samples_t.jsonl.gz' has more than 1,000,000 bytes" in refusal(
        lambda: ts.read(path, max_bytes=1_000_000)
    )
    document = json.dumps(HEADER | {"samples": [SAMPLE | {"x": "a" * 3_000_000}]})
    path = write(tmp_path / "log.json.gz", gzip.compress(document.encode()))
    assert "one value of 'log.json.gz' has more than 1,000,000 bytes" in refusal(
        lambda: ts.read(path, max_bytes=1_000_000)
    )
    assert ts.read(path).frame.height == 1


def test_a_damaged_gzip_file(tmp_path: Path, refusal: Refusal) -> None:
    path = write(tmp_path / "samples_t.jsonl.gz", gzip.compress(json.dumps(LINE).encode())[:-9])
    assert "'samples_t.jsonl.gz' cannot be read, and may be damaged" in refusal(lambda: ts.read(path))


def test_an_encrypted_member(tmp_path: Path, refusal: Refusal) -> None:
    content = bytearray(log())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = 0
        while (place := content.find(mark, place)) >= 0:
            content[place + offset] |= 1
            place += 4
    path = write(tmp_path / "a.eval", bytes(content))
    assert "is encrypted; expected an archive without a password" in refusal(lambda: ts.read(path))


MEASURE = """
import resource, sys
import triagestats as ts
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
path, small = sys.argv[1:]
ts.read(small)
before = peak()
rows = ts.read(path).frame.height
print(rows, peak() - before)
"""
STREAMED_MEBIBYTES = 120
MOST_MEBIBYTES = 40
"""What may be added by reading: the rows, one chunk of lines, and what the allocator keeps."""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kibibytes on Linux")
@pytest.mark.parametrize("name", ["samples_t.jsonl", "log.json"])
def test_large_files_are_streamed(tmp_path: Path, name: str) -> None:
    """Peak memory of a process that reads a file of 120 MiB, over one that reads a line of it."""
    text = "x" * 2**18
    count = STREAMED_MEBIBYTES * 4
    path, small = tmp_path / name, tmp_path / f"small_{name}"
    for target, number in ((small, 1), (path, count)):
        with target.open("w") as stream:
            if name.endswith("jsonl"):
                for place in range(number):
                    stream.write(json.dumps(LINE | {"doc_id": place, "doc": {"text": text}}) + "\n")
            else:
                stream.write(json.dumps(HEADER)[:-1] + ', "samples": [')
                for place in range(number):
                    stream.write(", " * (place > 0) + json.dumps(SAMPLE | {"id": place, "input": text}))
                stream.write("]}")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, path, small], capture_output=True, text=True, check=True
    )
    rows, added = map(int, done.stdout.split())
    assert rows == count
    assert added < MOST_MEBIBYTES


def test_the_measure_of_memory_is_in_mebibytes() -> None:
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 > 10


@pytest.mark.parametrize(
    "change",
    [
        {"eval": {"task": "t", "model": ["acme/m"]}},
        {"samples": [SAMPLE | {"epoch": "second"}]},
        {"samples": [SAMPLE | {"scores": ["s"]}]},
        {"samples": [SAMPLE | {"metadata": 3, "target": {"a": 1}}]},
        {"samples": {"id": 1}},
        {"samples": ["text"]},
        {"eval": "t"},
    ],
)
def test_a_log_of_another_layout_is_an_error_or_a_table(tmp_path: Path, change: dict[str, object]) -> None:
    path = write(tmp_path / "a.json", json.dumps(HEADER | {"samples": [SAMPLE]} | change))
    try:
        said = f"{ts.read(path).frame['source'].unique().to_list()}"
    except ts.TriagestatsError as error:
        said = str(error)
    assert "a.json" in said


def test_a_value_that_no_version_wrote_names_its_file(tmp_path: Path, refusal: Refusal) -> None:
    path = write(tmp_path / "a.json", json.dumps(HEADER | {"samples": [SAMPLE | {"epoch": "second"}]}))
    assert "ReadError: 'a.json' is not laid out as Inspect does (ValueError: invalid literal" in refusal(
        lambda: ts.read(path)
    )
