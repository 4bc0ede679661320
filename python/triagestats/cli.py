"""Command line: `triagestats analyze FILE`, `triagestats demo`."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from inspect import signature
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from triagestats import defaults
from triagestats.errors import ReadError, TriagestatsError
from triagestats.roles import ROLE_ARGUMENTS
from triagestats.schema import ROLES, Interval, Match, Unparsed, Weights

if TYPE_CHECKING:
    from triagestats.analysis import Analysis

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Statistics for evaluations of language models, with uncertainty that respects shared scenarios.",
)

Format = Literal["text", "json", "csv"]


def _role(name: str, more: str = "", metavar: str = "COLUMN") -> Any:
    """The option that names the column of a role."""
    return typer.Option(
        metavar=metavar, help=f"{ROLES[name].meaning[:1].upper()}{ROLES[name].meaning[1:]}{more}."
    )


def main() -> None:
    """Run the command line; a reader that closes the pipe early, as `head` does, is no error to report."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names that the encoding lacks are escaped, not fatal
            stream.reconfigure(errors="backslashreplace")
    code = 0
    try:
        try:
            app()
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else int(done.code is not None)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        code = 1
    sys.exit(code)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(version("triagestats"))
        raise typer.Exit


@app.callback()
def _root(
    show: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Statistics for evaluations of language models, with uncertainty that respects shared scenarios."""


@app.command()
def analyze(
    file: Annotated[Path, typer.Argument(help="A csv, parquet or jsonl file of responses.")],
    judgments: Annotated[
        Path | None, typer.Option(help="A second file with one row a judgment of a response.")
    ] = None,
    scenario: Annotated[str | None, _role("scenario")] = None,
    model: Annotated[str | None, _role("model")] = None,
    condition: Annotated[
        list[str] | None,
        _role("condition", ", given once each"),
    ] = None,
    variant: Annotated[str | None, _role("variant")] = None,
    repetition: Annotated[str | None, _role("repetition")] = None,
    judge: Annotated[str | None, _role("judge")] = None,
    metric: Annotated[str | None, _role("metric", "; or the one to keep", metavar="COLUMN|VALUE")] = None,
    response: Annotated[str | None, _role("response")] = None,
    gold: Annotated[
        list[str] | None,
        _role("gold", "; twice for its two ends in two columns"),
    ] = None,
    score: Annotated[str | None, _role("score")] = None,
    status: Annotated[str | None, _role("status")] = None,
    reason: Annotated[str | None, _role("reason")] = None,
    task: Annotated[str | None, _role("task")] = None,
    source: Annotated[str | None, _role("source")] = None,
    cluster: Annotated[
        list[str] | None,
        _role("cluster", "; twice for two crossed columns"),
    ] = None,
    stratum: Annotated[str | None, _role("stratum")] = None,
    levels: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="The response scale from least to most urgent."),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="LEVEL", help="Reference level; COLUMN=LEVEL with several condition columns."),
    ] = None,
    match: Annotated[Match, typer.Option(help="What is paired in a contrast.")] = "cell",
    weights: Annotated[Weights, typer.Option(help="What weighs the same.")] = "scenario",
    interval: Annotated[Interval, typer.Option(help="The interval to show.")] = "auto",
    unparsed: Annotated[
        Unparsed, typer.Option(help="What becomes of answers that could not be read.")
    ] = "as scored",
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="A smaller score is better.")
    ] = False,
    margin: Annotated[float | None, typer.Option(help="The smallest difference that matters.")] = None,
    conf_level: Annotated[float, typer.Option(help="Level of the intervals.")] = defaults.CONF_LEVEL,
    n_resamples: Annotated[
        int, typer.Option(help="Bootstrap and permutation replicates.")
    ] = defaults.N_RESAMPLES,
    seed: Annotated[int, typer.Option(help="Seed of the replicates.")] = defaults.SEED,
    output_format: Annotated[
        Format, typer.Option("--format", help="csv is the tidy table of estimates.")
    ] = "text",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file instead.")] = None,
) -> None:
    """Analyse a file of responses: rates, contrasts, and what clustering changes.

    Columns are recognised by their usual names; name others by their role, such as --scenario item.
    An empty name says that no column plays the role.
    """
    roles = {role: _columns(value) for role, value in locals().items() if role in ROLE_ARGUMENTS}
    given: dict[str, Any] = roles | {
        "levels": None if levels is None else [level.strip() for level in levels.split(",")],
        "higher_is_better": not lower_is_better,
        "unparsed": unparsed,
    }
    asked: dict[str, Any] = {
        "reference": _reference(reference),
        "match": match,
        "weights": weights,
        "interval": interval,
        "margin": margin,
        "conf_level": conf_level,
        "n_resamples": n_resamples,
        "seed": seed,
    }

    def run() -> Analysis:
        from triagestats.analyze import analyze as analyze_table
        from triagestats.table import ResponseTable

        table = ResponseTable(file, **given)
        if judgments is not None:
            table = table.with_judgments(judgments)
        return analyze_table(table, **asked)

    _guarded(run, output_format, output, file, judgments)


@app.command()
def demo(
    output_format: Annotated[
        Format, typer.Option("--format", help="csv is the tidy table of estimates.")
    ] = "text",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file instead.")] = None,
) -> None:
    """Analyse the bundled study: two answer formats, 17 scenarios, 5 models, two judges."""

    def run() -> Analysis:
        from triagestats.analyze import analyze as analyze_table
        from triagestats.demo import demo_table

        return analyze_table(demo_table(), margin=0.05)

    _guarded(run, output_format, output)


_NAMES: Final = {
    **{name: "--" + name.replace("_", "-") for name in signature(analyze).parameters},
    "data": "FILE",
    "file": "FILE",
    "output_format": "--format",
    "higher_is_better": "--lower-is-better",
}
"""What an argument of Python is called on the command line."""


def _columns(values: str | list[str] | None) -> str | list[str] | Literal[False] | None:
    """A column or several; an empty name says that no column plays the role."""
    if isinstance(values, list):
        values = values if len(values) > 1 else "".join(values) if values else None
    return False if values == "" else values


def _reference(values: list[str] | None) -> str | dict[str, str] | None:
    if not values:
        return None
    if len(values) == 1 and "=" not in values[0]:
        return values[0]
    if any("=" not in value for value in values):
        raise typer.BadParameter("give each as COLUMN=LEVEL", param_hint="--reference")
    return {value.partition("=")[0]: value.partition("=")[2] for value in values}


def _guarded(
    run: Callable[[], Analysis], output_format: Format, output: Path | None, *inputs: Path | None
) -> None:
    """Run, print or write; one message and exit code 2 for input that cannot be used."""
    try:
        if output is not None:
            _check_output(output, [path for path in inputs if path is not None])
        fit = run()
        if output is not None:
            _write(_rendered(fit, output_format), output)
        elif output_format == "text":
            _print_summary(fit)
        else:
            typer.echo(_rendered(fit, output_format).encode(), nl=False)
    except TriagestatsError as error:
        typer.echo(f"triagestats: {_as_options(str(error))}", err=True)
        raise typer.Exit(2) from None


def _as_options(message: str) -> str:
    """A message that names arguments of Python with options of the command line in their place."""
    if message.startswith("`judgments`"):  # no option names a column of the judgments
        advises = re.search("`\\w+=", message)
        fix = "; on the command line, rename or drop columns in that file" if advises else ""
        return message.replace("`judgments`", _NAMES["judgments"]) + fix
    return re.sub("`([^`]+)`", lambda found: _as_option(found[1]) or found[0], message)


def _as_option(code: str) -> str | None:
    """`name`, `name=` or `name=value, other=value` as options; None for what is no argument."""
    if (name := code.removesuffix("=")) in _NAMES:
        return _NAMES[name]
    try:
        call = ast.parse(f"_({code})", mode="eval").body
        given = {found.arg: ast.literal_eval(found.value) for found in getattr(call, "keywords", ())}
    except (SyntaxError, ValueError):
        return None
    if not given or not given.keys() <= _NAMES.keys():
        return None
    return " ".join(
        f"{_NAMES[str(name)]} {shlex.quote(word)}"
        for name, value in given.items()
        for word in _words(name, value)
    )


def _words(name: str | None, value: object) -> list[str]:
    """What to write after an option, once for each time that it is given."""
    if value is False:
        return [""]
    if isinstance(value, Mapping):
        return [f"{key}={item}" for key, item in value.items()]
    values = list(value) if isinstance(value, list | tuple) else [value]
    if name == "levels":
        return [",".join("ABC" if values == [...] else map(str, values))]
    return [str(item) for item in values]


def _check_output(output: Path, inputs: Sequence[Path]) -> None:
    """Refuse before the analysis what could not be written after it, or would destroy what is read."""
    if not output.parent.is_dir():
        raise ReadError(f"{str(output)!r} cannot be written: there is no folder {str(output.parent)!r}")
    if output.exists() and any(path.exists() and output.samefile(path) for path in inputs):
        raise ReadError(f"{str(output)!r} is the file to analyse; choose another name for the output")


def _print_summary(fit: Analysis) -> None:
    """Print in the width and the colours of the terminal; plain and of fixed width where there is none."""
    from triagestats.report.text import print_summary, summary_text

    if not sys.stdout.isatty():
        text = summary_text(fit)
        utf = (sys.stdout.encoding or "").lower().startswith("utf")
        sys.stdout.write((text if utf else text.replace("\u2500", "-")) + "\n")
        return
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    print_summary(fit, Console(color_system=None if plain else "auto", force_terminal=True))


def _rendered(fit: Analysis, output_format: Format) -> str:
    if output_format == "json":
        return fit.to_json() + "\n"
    if output_format == "csv":
        return fit.tidy().write_csv()
    return repr(fit) + "\n"


def _write(text: str, output: Path) -> None:
    try:
        output.write_bytes(text.encode())
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise ReadError(f"{str(output)!r} cannot be written: {reason}") from error
