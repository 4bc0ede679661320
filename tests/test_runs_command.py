"""`triagestats compare A B`: exit codes, what is printed and written, options in messages."""

from __future__ import annotations

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import triagestats as ts
import triagestats.runs.compare as module
from triagestats.cli import app
from triagestats.schema import TIDY_COLUMNS

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
PROGRAM = [sys.executable, "-c", "from triagestats.cli import main; main()"]


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        app, ["compare", *(str(argument) for argument in arguments), "--n-resamples", "99"]
    )


def program(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [*PROGRAM, "compare", *(str(argument) for argument in arguments), "--n-resamples", "99"]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def write(path: Path, wrong: int, *, n: int = 60, metric: str | None = None) -> Path:
    """Sixty items in twenty passages, each twice; the first so many of every ten are wrong."""
    lines = ["item,passage,epoch,correct" + (",metric" if metric else "")]
    for item in range(n):
        for epoch in (1, 2):
            correct = (item * 3) % 10 >= wrong + (epoch == 2 and item % 20 == 4)
            lines.append(f"i{item},p{item % 20},{epoch},{correct:d}" + (f",{metric}" if metric else ""))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, Path]:
    """Runs with 2, 3 and 6 of ten items wrong, and one of three items."""
    return {
        "base": write(tmp_path / "base.csv", 2),
        "near": write(tmp_path / "near.csv", 3),
        "bad": write(tmp_path / "bad.csv", 6),
        "tiny": write(tmp_path / "tiny.csv", 2, n=3),
    }


@pytest.mark.parametrize(
    ("a", "b", "margin", "code", "word"),
    [
        ("near", "base", "0.05", 0, ""),
        ("base", "bad", "0.05", 1, "gate worse: "),
        ("base", "tiny", "0.05", 2, "gate unusable: there is no interval: 3 clusters"),
        ("base", "near", "0.1", 3, "gate undecided: "),
    ],
)
def test_the_four_exit_codes_of_the_gate(
    a: str, b: str, margin: str, code: int, word: str, runs: dict[str, Path]
) -> None:
    done = program(runs[a], runs[b], "--cluster", "passage", "--margin", margin, "--gate")
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith("Comparison of two runs")
    assert word in done.stderr
    assert bool(done.stderr) == bool(code)
    found = ts.compare(runs[a], runs[b], cluster="passage", margin=float(margin), n_resamples=99)
    assert found.exit_code == code
    assert done.stdout == repr(found) + "\n"


@pytest.mark.parametrize("b", ["near", "bad", "tiny"])
def test_without_a_gate_a_comparison_is_a_success(b: str, runs: dict[str, Path]) -> None:
    result = invoke(runs["base"], runs[b], "--cluster", "passage")
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(("b", "code"), [("base", 3), ("bad", 1)])
def test_a_gate_without_a_margin_asks_for_better(b: str, code: int, runs: dict[str, Path]) -> None:
    result = invoke(runs["base"], runs[b], "--gate")
    assert result.exit_code == code
    assert "0 (no margin was given)" in result.stderr
    assert invoke(runs["bad"], runs["base"], "--gate").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.csv", "base"], "triagestats: A: there is no file 'absent.csv'"),
        (["base", "absent.csv"], "triagestats: B: there is no file 'absent.csv'"),
        (["base", "near", "--margin", "-1"], "triagestats: --margin must be positive and finite"),
        (["base", "near", "--cluster", "nope"], "triagestats: A: --cluster names 'nope'"),
        (["base", "near", "--from", "inspect"], "triagestats: A: "),
        (["base", "near", "--names", "x"], "triagestats: --names must be two different names"),
        (
            ["base", "other"],
            "triagestats: A and B have no answer that both scored (A scored 60, B scored 4)",
        ),
        (["m1", "m2"], "triagestats: --metric: A has 'f1' and B has 'match'"),
        (["base", "near", "-o", "absent/x.json"], "cannot be written: there is no folder 'absent'"),
    ],
)
@pytest.mark.parametrize("gate", [True, False])
def test_what_cannot_be_used_ends_with_2(
    arguments: list[str], said: str, gate: bool, runs: dict[str, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("item,score\nq1,1\nq2,0\nq3,1\nq4,0\n", encoding="utf-8")
    named = runs | {
        "other": other,
        "m1": write(tmp_path / "m1.csv", 1, metric="f1"),
        "m2": write(tmp_path / "m2.csv", 1, metric="match"),
    }
    result = invoke(*(named.get(argument, argument) for argument in arguments), *(["--gate"] if gate else []))
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_usage_errors_end_with_2(runs: dict[str, Path]) -> None:
    assert invoke(runs["base"], "--gate").exit_code == 2
    assert invoke(runs["base"], runs["near"], "--margin", "much", "--gate").exit_code == 2


@pytest.mark.parametrize("gate", [True, False])
def test_a_defect_is_no_decision(gate: bool, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(module, "compare", fails)
    result = invoke(runs["base"], runs["near"], *(["--gate"] if gate else []))
    assert result.exit_code == 2
    assert "ZeroDivisionError: a defect" in result.stderr


def test_an_interruption_is_no_decision(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "compare", stopped)
    assert invoke(runs["base"], runs["near"], "--gate").exit_code == 128 + signal.SIGINT


def test_a_reader_that_stops_early_changes_no_decision(runs: dict[str, Path]) -> None:
    asked = ["--cluster", "passage", "--margin", "0.1", "--gate"]
    command = [*PROGRAM, "compare", str(runs["base"]), str(runs["near"]), *asked]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read().decode()
    assert running.returncode == 3
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("b", "margin", "redirected", "code"),
    [
        ("near", "0.1", ">&-", 3),
        ("near", "0.2", ">&-", 0),
        ("bad", "0.1", ">&- 2>&-", 1),
        pytest.param("near", "0.1", ">/dev/null 2>/dev/full", 3, marks=FULL),
        pytest.param("absent", "0.1", ">/dev/null 2>/dev/full", 2, marks=FULL),
    ],
)
def test_what_cannot_be_said_changes_no_decision(
    b: str, margin: str, redirected: str, code: int, runs: dict[str, Path]
) -> None:
    candidate = runs.get(b, Path("absent.csv"))
    asked = ["--margin", margin, "--cluster", "passage", "--gate", "--n-resamples", "99"]
    line = f"{shlex.join([*PROGRAM, 'compare', str(runs['base']), str(candidate), *asked])} {redirected}"
    assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == code


@pytest.mark.parametrize("gate", [["--gate"], []])
def test_an_empty_path_is_not_the_current_folder(gate: list[str], runs: dict[str, Path]) -> None:
    result = invoke(runs["base"], "", *gate)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "it is empty; expected a file or a folder" in result.stderr


def test_json_is_that_of_python(runs: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    asked = [
        "--margin",
        "0.1",
        "--names",
        "old, new",
        "--match",
        "cell",
        "--conf-level",
        "0.9",
        "--seed",
        "3",
    ]
    done = program(runs["base"], runs["near"], *asked, "--format", "json", "-o", path, "--gate")
    found = ts.compare(
        runs["base"],
        runs["near"],
        margin=0.1,
        names=("old", "new"),
        match="cell",
        conf_level=0.9,
        seed=3,
        n_resamples=99,
    )
    assert done.stdout == ""
    assert done.returncode == found.exit_code
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written == json.loads(found.to_json())
    assert written["gate"]["exit_code"] == done.returncode
    assert [written[side]["source"] for side in "ab"] == [str(runs["base"]), str(runs["near"])]


def test_csv_is_the_tidy_table(runs: dict[str, Path]) -> None:
    result = invoke(runs["base"], runs["near"], "--format", "csv")
    rows = list(csv.DictReader(StringIO(result.stdout)))
    assert tuple(rows[0]) == TIDY_COLUMNS
    assert [(row["estimand"], row["condition"] or row["contrast"]) for row in rows] == [
        ("difference", "B - A"),
        ("rate", "A"),
        ("rate", "B"),
    ]


def test_options_speak_of_both_runs(tmp_path: Path) -> None:
    for name, shift in (("a", 0), ("b", 2)):
        lines = ["question_text,who,loss", *(f"q{i},m{shift},{(i + shift) % 7}" for i in range(14))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = ["--scenario", "question_text", "--model", "who", "--score", "loss", "--lower-is-better"]
    result = invoke(tmp_path / "a.csv", tmp_path / "b.csv", *columns, "--format", "json")
    found = json.loads(result.stdout)
    assert not found["settings"]["higher_is_better"]
    assert (found["a"]["models"], found["b"]["models"]) == (["m0"], ["m2"])


def test_the_program_is_installed_with_the_command() -> None:
    path = Path(sysconfig.get_path("scripts")) / ("triagestats.exe" if os.name == "nt" else "triagestats")
    done = subprocess.run([path, "compare", "--help"], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0
    for option in (
        "--margin",
        "--gate",
        "--metric",
        "--judge",
        "--cluster",
        "--from",
        "--format",
        "--output",
    ):
        assert option in done.stdout
