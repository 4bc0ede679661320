"""The command line: what it prints, where, in which colours, and how it ends."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import sysconfig
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import triagestats as ts
from triagestats.cli import NAMES, app
from triagestats.cli_messages import as_options
from triagestats.schema import TIDY_COLUMNS

PROGRAM = Path(sysconfig.get_path("scripts")) / ("triagestats.exe" if os.name == "nt" else "triagestats")
# What the caller's terminal and Python were told must not reach the program under test.
DROPPED = (
    "PYTHONUNBUFFERED",
    "PYTHONIOENCODING",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "TERM",
)
ESCAPE = "\x1b["


def environment(**changes: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in DROPPED} | changes


def program(*arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the installed program with its output in pipes."""
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, encoding="utf-8", env=environment(**changes), check=False
    )


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    """A csv of 0/1 scores under names that are recognised."""
    return write(tmp_path / "responses.csv")


@pytest.fixture(scope="module")
def demo_text() -> str:
    """What the demo prints into a pipe."""
    done = program("demo")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def write(path: Path, *, models: tuple[str, ...] = ("m1", "m2"), header: str = "") -> Path:
    lines = [header or "item,model,format,run,score"]
    for item in range(12):
        for place, model in enumerate(models):
            for format_ in ("a", "b"):
                for run in (1, 2):
                    score = (item * 7 + place * 3 + run * 5 + (format_ == "b") * 4) % 9 < 5
                    lines.append(f'i{item},"{model}",{format_},{run},{score:d}')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def refused(result: Result | subprocess.CompletedProcess[str]) -> str:
    """Return the one message of a run that ended with code 2."""
    code = result.exit_code if isinstance(result, Result) else result.returncode
    assert code == 2, result
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


def test_the_summary_is_that_of_python(responses: Path) -> None:
    done = program("analyze", responses)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout == repr(ts.analyze(responses)) + "\n"


def test_demo_prints_the_summary(demo_text: str) -> None:
    assert demo_text == repr(ts.analyze(ts.demo_table(), margin=0.05)) + "\n"


def test_version_and_help() -> None:
    assert invoke("--version").stdout == f"{ts.__version__}\n"
    for arguments in (["--help"], ["analyze", "--help"], ["demo", "--help"]):
        result = invoke(*arguments)
        assert result.exit_code == 0
        assert "Usage" in result.stdout
    options = invoke("analyze", "--help").stdout
    for option in ("--reference", "--margin", "--conf-level", "--seed", "--format", "--output", "-o"):
        assert option in options
    for role in (
        "scenario",
        "model",
        "condition",
        "variant",
        "repetition",
        "judge",
        "metric",
        "response",
        "gold",
        "score",
        "status",
        "reason",
        "task",
        "source",
        "cluster",
        "stratum",
    ):
        assert f"--{role} " in options


def test_options_reach_the_analysis(responses: Path) -> None:
    asked = [
        "--reference",
        "b",
        "--margin",
        "0.2",
        "--conf-level",
        "0.9",
        "--seed",
        "3",
        "--n-resamples",
        "99",
        "--match",
        "row",
        "--weights",
        "row",
        "--interval",
        "bca",
        "--lower-is-better",
        "--cluster",
        "item",
    ]
    result = invoke("analyze", responses, *asked, "--format", "json")
    assert result.exit_code == 0, result.output
    settings = json.loads(result.stdout)["settings"]
    assert settings == {
        "cluster": "item",
        "n_clusters": [12],
        "match": "row",
        "weights": "row",
        "interval": "bca",
        "conf_level": 0.9,
        "margin": 0.2,
        "n_resamples": 99,
        "seed": 3,
        "higher_is_better": False,
    }
    assert json.loads(result.stdout)["contrasts"][0]["contrast"] == "a - b"


def test_columns_of_other_names_take_roles(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.csv", header="q,llm_name,style,nth,points")
    roles = ["--scenario", "q", "--model", "llm_name", "--condition", "style", "--repetition", "nth"]
    assert "48 keys" not in invoke("analyze", path, *roles, "--score", "points").output
    result = invoke("analyze", path, *roles, "--score", "points")
    assert result.exit_code == 0
    assert "b - a: " in result.stdout


def test_several_conditions_references_and_crossed_clusters(tmp_path: Path) -> None:
    lines = ["item,model,voice,style,score"]
    lines += [
        f"i{item},m{model},{voice},{style},{(item * 5 + model + len(voice) * 3 + len(style)) % 7 < 4:d}"
        for item in range(8)
        for model in range(6)
        for voice in ("lo", "high")
        for style in ("x", "yy")
    ]
    path = tmp_path / "two.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    two = ["--condition", "voice", "--condition", "style", "--cluster", "item", "--cluster", "model"]
    result = invoke("analyze", path, *two, "--reference", "voice=lo", "--reference", "style=yy")
    assert result.exit_code == 0, result.output
    assert "voice: high - lo" in result.stdout
    assert "style: x - yy" in result.stdout
    assert "clustered by item (8) and model (6)" in result.stdout
    message = refused(invoke("analyze", path, *two, "--reference", "voice=lo", "--reference", "yy"))
    assert "COLUMN=LEVEL" in message


def test_an_empty_name_says_that_no_column_plays_the_role(responses: Path) -> None:
    message = refused(invoke("analyze", responses, "--condition", ""))
    assert "'format'" in message  # without it the keys repeat
    assert invoke("analyze", responses, "--source", "").exit_code == 0


def test_judgments_are_joined(tmp_path: Path) -> None:
    answers = tmp_path / "answers.csv"
    answers.write_text(
        "item,format,answer,gold\n" + "".join(f"{i},{f},,yes\n" for i in range(6) for f in "ab"),
        encoding="utf-8",
    )
    judged = tmp_path / "judged.csv"
    judged.write_text(
        "item,format,judge,label\n"
        + "".join(
            f"{i},{f},{j},{'yes' if (i + len(j)) % 3 or f == 'b' else 'no'}\n"
            for i in range(6)
            for f in "ab"
            for j in ("x", "yy")
        ),
        encoding="utf-8",
    )
    result = invoke("analyze", answers, "--judgments", judged)
    assert result.exit_code == 0, result.output
    assert "2 judges" in result.stdout


def test_json_is_json(responses: Path) -> None:
    done = program("analyze", responses, "--format", "json")
    values = json.loads(done.stdout, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert values == ts.analyze(responses).to_dict()


def test_csv_is_the_tidy_table(responses: Path) -> None:
    result = invoke("analyze", responses, "--format", "csv")
    rows = list(csv.reader(StringIO(result.stdout)))
    assert rows[0] == list(TIDY_COLUMNS)
    tidy = ts.analyze(responses).tidy()
    assert len(rows) - 1 == tidy.height
    assert float(rows[1][rows[0].index("estimate")]) == tidy["estimate"][0]


@pytest.mark.parametrize("output_format", ["text", "json", "csv"])
def test_output_goes_to_a_file(responses: Path, tmp_path: Path, output_format: str) -> None:
    target = tmp_path / "out.txt"
    shown = invoke("analyze", responses, "--format", output_format)
    result = invoke("analyze", responses, "--format", output_format, "-o", target)
    assert (result.exit_code, result.output) == (0, "")
    assert target.read_text(encoding="utf-8") == shown.stdout
    assert invoke("demo", "--output", target).exit_code == 0
    assert target.read_text(encoding="utf-8").startswith("triagestats  2,495")


def test_output_that_cannot_be_written_is_one_message(responses: Path, tmp_path: Path) -> None:
    target = tmp_path / "absent" / "out.txt"
    message = refused(program("analyze", responses, "-o", target))
    assert (
        message
        == f"triagestats: {str(target)!r} cannot be written: there is no folder {str(target.parent)!r}\n"
    )
    assert "cannot be written" in refused(invoke("analyze", responses, "-o", tmp_path))


def test_the_input_is_not_overwritten(responses: Path) -> None:
    before = responses.read_bytes()
    assert "choose another name" in refused(invoke("analyze", responses, "--format", "csv", "-o", responses))
    assert responses.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.csv"], "FILE: there is no file"),
        (["https://x.org/z.csv"], "FILE: 'https://x.org/z.csv' is a URL"),
        (["{file}", "--scenario", "nope"], "'nope'"),
        (
            ["{file}", "--conf-level", "95"],
            "--conf-level must lie between 0 and 1; got 95; did you mean 0.95",
        ),
        (["{file}", "--margin", "-1"], "--margin must"),
        (["{file}", "--n-resamples", "0"], "--n-resamples must"),
        (["{file}", "--seed", "-1"], "--seed must"),
        (["{file}", "--reference", "z"], "'z'"),
        (["{file}", "--cluster", "model"], "cluster"),
        (["{file}", "--conf-level", "high"], "--conf-level"),
        (["{file}", "--match", "rows"], "--match"),
        (["{file}", "--format", "xml"], "--format"),
        (["{file}", "--nonsense"], "--nonsense"),
        (["{file}", "other.csv"], "other.csv"),
        ([], "file"),
    ],
)
def test_unusable_input_is_one_message_and_code_2(responses: Path, arguments: list[str], words: str) -> None:
    message = refused(invoke("analyze", *(argument.format(file=responses) for argument in arguments)))
    assert words in message
    ours = [line for line in message.splitlines() if line.startswith("triagestats: ")]
    assert len(ours) + message.count("Error: ") == 1


def test_messages_name_options_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    message = refused(invoke("analyze", path))
    assert "--scenario" in message
    assert "`scenario=`" not in message


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("`levels=[...]`", "--levels A,B,C"),
        ("`levels=['A', 'B c']`", "--levels 'A,B c'"),
        ("`condition=['condition', 'my voice']`", "--condition condition --condition 'my voice'"),
        ("`cluster=('scenario', 'model')`", "--cluster scenario --cluster model"),
        ("`variant='p', repetition='q'`", "--variant p --repetition q"),
        ("`reference={'voice': 'lo'}`", "--reference voice=lo"),
        ("`gold=False`", "--gold ''"),
        ("`unparsed='as scored'`", "--unparsed 'as scored'"),
        ("`conf_level` and `n_resamples`", "--conf-level and --n-resamples"),
        ("`higher_is_better`", "--lower-is-better"),
        ("`response=` or `score=`", "--response or --score"),
        ("`data` has no rows", "FILE has no rows"),
        ("`estimands` `C/D` `f(x)` `x=1` `level=1, y=2`", "`estimands` `C/D` `f(x)` `x=1` `level=1, y=2`"),
        ("`judgments` has no rows", "--judgments has no rows"),
        (
            "`judgments`: `score` could be 'a' or 'b', say `score='a'`",
            (
                "--judgments: `score` could be 'a' or 'b', say `score='a'`; on the command line, rename or "
                "drop columns in that file"
            ),
        ),
    ],
)
def test_what_python_calls_an_argument_the_command_line_calls_an_option(python: str, shell: str) -> None:
    assert as_options(python, NAMES) == shell


def test_advice_is_that_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("item,voice,condition,score\n1,a,B1,1\n1,a,B3,0\n", encoding="utf-8")
    message = refused(invoke("analyze", path, "--condition", "voice"))
    assert message.endswith(
        "compare both with --condition voice --condition condition, or keep the rows of one "
        "value of 'condition'\n"
    )
    path.write_text("item,answer,gold\n1,A,A/B\n2,B,C\n", encoding="utf-8")
    assert "with --levels A,B,C, so that" in refused(invoke("analyze", path))


def test_usage_errors_of_the_program() -> None:
    for arguments in (["bogus"], ["demo", "--nope"], ["demo", "extra"]):
        assert refused(program(*arguments)).count("Error: ") == 1


@pytest.mark.parametrize(
    "changes", [{}, {"FORCE_COLOR": "1"}, {"TERM": "xterm-256color", "COLORTERM": "truecolor"}]
)
def test_a_pipe_has_no_colours(changes: dict[str, str]) -> None:
    done = program("demo", **changes)
    assert ESCAPE not in done.stdout
    assert "─" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no head")
@pytest.mark.parametrize("output_format", ["text", "json", "csv"])
def test_a_reader_that_stops_early_sees_no_traceback(output_format: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # nobody reads: the first write fails
    try:
        done = subprocess.run(
            [PROGRAM, "demo", "--format", output_format],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
        )
    finally:
        os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no head")
def test_head_gets_its_line() -> None:
    command = f"'{PROGRAM}' demo --format json | head -1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{\n", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_names_that_the_encoding_lacks_are_escaped(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "r.csv", models=("模型", "é"))
    done = subprocess.run(
        [PROGRAM, "analyze", path],
        capture_output=True,
        env=environment(PYTHONIOENCODING=encoding),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\u6a21\u578b" in done.stdout
    assert rb"\u2500" not in done.stdout
    as_json = subprocess.run(
        [PROGRAM, "analyze", path, "--format", "json"],
        capture_output=True,
        env=environment(PYTHONIOENCODING=encoding),
        check=True,
    )
    assert json.loads(as_json.stdout)["rates"][1]["model"] in ("模型", "é")


def test_names_print_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", models=("[bold]m[/bold]", ":smile:", "模型 é"))
    done = program("analyze", path)
    for name in ("[bold]m[/bold]", ":smile:", "模型 é"):
        assert name in done.stdout


def terminal(
    *arguments: str | Path, columns: int = 120, errors: bool = True, **changes: str
) -> tuple[str, int]:
    """Run the installed program on a pseudo-terminal; return what it shows and its exit code.

    Without `errors` its errors, and the bar that a slow machine sees, go nowhere.
    """
    fcntl, pty, struct, termios = (pytest.importorskip(n) for n in ("fcntl", "pty", "struct", "termios"))
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    child = subprocess.Popen(
        [PROGRAM, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower if errors else subprocess.DEVNULL,
        env=environment(**changes),
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the terminal is gone with its last user
            break
        if not part:
            break
        shown += part
    os.close(leader)
    return shown.decode().replace("\r\n", "\n"), child.wait()


def stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(
    ("changes", "coloured"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colours_on_a_terminal(changes: dict[str, str], coloured: bool) -> None:
    shown, code = terminal("demo", **changes)
    assert code == 0
    assert (ESCAPE in shown) == coloured
    assert ("\x1b[33mundecided" in shown) == coloured


def test_a_wide_terminal_shows_what_a_pipe_shows(demo_text: str) -> None:
    shown, _ = terminal("demo", columns=110, errors=False, TERM="xterm", NO_COLOR="1")
    assert stripped(shown) == demo_text.rstrip("\n")


@pytest.mark.parametrize("columns", [1, 40, 79])
def test_a_narrow_terminal_loses_nothing(columns: int, demo_text: str) -> None:
    shown, code = terminal("demo", columns=columns, TERM="xterm", NO_COLOR="1")
    assert code == 0
    assert "Traceback" not in shown
    assert "…" not in shown
    for table in demo_text.split("\n\n"):
        if "───" in table:
            for line in table.splitlines()[3:]:
                assert all(
                    part in shown for part in line.split("   ") if part.strip().startswith(("[", "0."))
                )


def test_an_error_on_a_terminal_is_one_message(tmp_path: Path) -> None:
    shown, code = terminal("analyze", tmp_path / "absent.csv", TERM="xterm")
    assert code == 2
    assert shown.count("triagestats: ") == 1
    assert "Traceback" not in shown
