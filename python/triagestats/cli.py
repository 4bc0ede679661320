"""Command line: `triagestats analyze`, `compare`, `import`, `collect`, `replicate`, `demo`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from inspect import signature
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from triagestats import defaults
from triagestats.cli_options import (
    from_option,
    item_option,
    limit_option,
    paths_argument,
    read_options,
    role_option,
    runs_option,
)
from triagestats.cli_output import Format, guarded, shown
from triagestats.collect.command import collect_command
from triagestats.replicate.published import Study
from triagestats.runs.command import compare_command
from triagestats.schema import Interval, Match, Unparsed, Weights

if TYPE_CHECKING:
    from triagestats.analysis import Analysis
    from triagestats.replicate.run import Replication

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Statistics for evaluations of language models, with uncertainty that respects shared scenarios.",
)


def main() -> None:
    """Run the command line; a reader that closes the pipe early, as `head` does, is no error to report."""
    if sys.stdout is None:  # closed by the caller: what is printed goes nowhere
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for the whole run
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
    file: Annotated[list[Path], paths_argument()],
    judgments: Annotated[
        Path | None, typer.Option(help="A second file with one row a judgment of a response.")
    ] = None,
    scenario: Annotated[str | None, role_option("scenario")] = None,
    model: Annotated[str | None, role_option("model")] = None,
    condition: Annotated[
        list[str] | None,
        role_option("condition", ", given once each"),
    ] = None,
    variant: Annotated[str | None, role_option("variant")] = None,
    repetition: Annotated[str | None, role_option("repetition")] = None,
    judge: Annotated[
        list[str] | None, role_option("judge", "; of a harness the scorers that are judges")
    ] = None,
    metric: Annotated[
        str | None, role_option("metric", "; or the one to keep", metavar="COLUMN|VALUE")
    ] = None,
    response: Annotated[str | None, role_option("response")] = None,
    gold: Annotated[
        list[str] | None,
        role_option("gold", "; twice for its two ends in two columns"),
    ] = None,
    score: Annotated[str | None, role_option("score")] = None,
    status: Annotated[str | None, role_option("status")] = None,
    reason: Annotated[str | None, role_option("reason")] = None,
    task: Annotated[str | None, role_option("task", "; of a harness the task to keep")] = None,
    source: Annotated[str | None, role_option("source")] = None,
    cluster: Annotated[
        list[str] | None,
        role_option("cluster", "; twice for two crossed columns"),
    ] = None,
    stratum: Annotated[str | None, role_option("stratum")] = None,
    levels: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="The response scale from least to most urgent."),
    ] = None,
    item: Annotated[str | None, item_option()] = None,
    runs: Annotated[bool, runs_option()] = False,
    source_format: Annotated[str | None, from_option()] = None,
    max_bytes: Annotated[int | None, limit_option()] = None,
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
    bayes: Annotated[bool, typer.Option("--bayes", help="Add a Bayesian mixed model of 0/1 scores.")] = False,
    output_format: Annotated[
        Format, typer.Option("--format", help="csv is the tidy table of estimates.")
    ] = "text",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file instead.")] = None,
) -> None:
    """Analyse responses: rates, contrasts, and what clustering changes.

    FILE is a table, result files of a harness, or a folder of them. Columns of a table are recognised by
    their usual names; name others by their role, such as --scenario item. An empty name says that no column
    plays the role.
    """
    given = read_options(locals())
    asked: dict[str, Any] = {
        "reference": _reference(reference),
        "match": match,
        "weights": weights,
        "interval": interval,
        "margin": margin,
        "conf_level": conf_level,
        "n_resamples": n_resamples,
        "seed": seed,
        "bayes": bayes,
    }

    def run() -> Analysis:
        from triagestats.analyze import analyze as analyze_table
        from triagestats.readers.read import read_paths

        table = read_paths(_path(file), given, name=source_format, argument="data")
        if judgments is not None:
            table = table.with_judgments(judgments)
        return analyze_table(table, **asked)

    shown(run, output_format, output, *file, judgments, names=NAMES)


@app.command("import")
def import_(
    path: Annotated[list[Path], paths_argument()],
    judge: Annotated[
        list[str] | None,
        typer.Option(metavar="SCORER", help="A scorer that is a judge, given once each. Default: metrics."),
    ] = None,
    metric: Annotated[str | None, typer.Option(metavar="METRIC", help="The metric to keep.")] = None,
    task: Annotated[list[str] | None, typer.Option(metavar="TASK", help="A task to keep.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the model is called where no file says.")
    ] = None,
    cluster: Annotated[
        list[str] | None,
        role_option("cluster", ", such as metadata.passage_id; twice for two that cross"),
    ] = None,
    stratum: Annotated[str | None, role_option("stratum")] = None,
    item: Annotated[str | None, item_option()] = None,
    runs: Annotated[bool, runs_option()] = False,
    source_format: Annotated[str | None, from_option()] = None,
    max_bytes: Annotated[int | None, limit_option()] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the table to a .parquet, .csv or .jsonl file."),
    ] = None,
) -> None:
    """Read the result files of a harness, and write them as one table.

    Without --output it only says what the files hold.
    """
    given = read_options(locals())

    def run() -> None:
        from triagestats.readers.export import summary, write_table
        from triagestats.readers.read import read_paths

        table = read_paths(_path(path), given, name=source_format)
        if output is not None:
            write_table(table, output)
        typer.echo(summary(table))

    guarded(run, output, *path, names=NAMES)


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

    shown(run, output_format, output, names=NAMES)


@app.command()
def replicate(
    study: Annotated[Study, typer.Argument(help="The study.", show_default=False)],
    data: Annotated[Path, typer.Option(help="The folder of its tables and its expected.json.")],
    output_format: Annotated[Format, typer.Option("--format", help="csv has one row an entry.")] = "text",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file instead.")] = None,
) -> None:
    """Re-run a published study: what was printed, what the library finds, and the clustered answer.

    Ends with code 1 when an entry that expected.json marks as matching does not match.
    """

    def run() -> Replication:
        from triagestats.replicate.run import replicate_study

        return replicate_study(study, data)

    inputs = sorted(data.iterdir()) if data.is_dir() else []
    names = {**NAMES, "data": "--data"}
    if shown(run, output_format, output, *inputs, names=names).failed:
        raise typer.Exit(1)


app.command("collect")(collect_command)
app.command("compare")(compare_command)


NAMES: Final = {
    **{name: "--" + name.replace("_", "-") for name in signature(import_).parameters},
    **{name: "--" + name.replace("_", "-") for name in signature(analyze).parameters},
    "data": "FILE",
    "file": "FILE",
    "path": "PATH",
    "format": "--from",
    "source_format": "--from",
    "output_format": "--format",
    "higher_is_better": "--lower-is-better",
}
"""What an argument of Python is called on the command line."""


def _path(paths: Sequence[Path]) -> Path | list[Path]:
    return paths[0] if len(paths) == 1 else list(paths)


def _reference(values: list[str] | None) -> str | dict[str, str] | None:
    if not values:
        return None
    if len(values) == 1 and "=" not in values[0]:
        return values[0]
    if any("=" not in value for value in values):
        raise typer.BadParameter("give each as COLUMN=LEVEL", param_hint="--reference")
    return {value.partition("=")[0]: value.partition("=")[2] for value in values}
