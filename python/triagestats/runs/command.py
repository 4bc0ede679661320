"""`triagestats compare A B` on the command line."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from triagestats import defaults
from triagestats.cli_options import (
    from_option,
    item_option,
    limit_option,
    read_options,
    role_option,
    runs_option,
)
from triagestats.cli_output import Format, shown
from triagestats.schema import Interval, Match, Unparsed, Weights

if TYPE_CHECKING:
    from triagestats.runs.comparison import RunComparison

__all__ = ["compare_command"]


def _path(text: str) -> Path:
    """A path; an empty one, as of a variable that is not set, would be the current folder."""
    if not text.strip():
        raise typer.BadParameter("it is empty; expected a file or a folder")
    return Path(text)


def compare_command(
    a: Annotated[
        Path,
        typer.Argument(
            metavar="A", parser=_path, help="The baseline: a table, files of a harness, or a folder."
        ),
    ],
    b: Annotated[Path, typer.Argument(metavar="B", parser=_path, help="The candidate.")],
    margin: Annotated[
        float | None, typer.Option(help="The largest loss that is accepted, on the scale of the scores.")
    ] = None,
    gate: Annotated[
        bool,
        typer.Option(
            "--gate",
            help="End with 0 if B is not worse by the margin, 1 if worse, 3 if undecided, 2 if unusable.",
        ),
    ] = False,
    metric: Annotated[
        str | None, role_option("metric", "; or the one to keep", metavar="COLUMN|VALUE")
    ] = None,
    judge: Annotated[
        list[str] | None, role_option("judge", "; of a harness the scorers that are judges")
    ] = None,
    cluster: Annotated[list[str] | None, role_option("cluster", "; twice for two crossed columns")] = None,
    scenario: Annotated[str | None, role_option("scenario")] = None,
    model: Annotated[str | None, role_option("model")] = None,
    condition: Annotated[list[str] | None, role_option("condition", ", given once each")] = None,
    variant: Annotated[str | None, role_option("variant")] = None,
    repetition: Annotated[str | None, role_option("repetition")] = None,
    response: Annotated[str | None, role_option("response")] = None,
    gold: Annotated[list[str] | None, role_option("gold", "; twice for its two ends in two columns")] = None,
    score: Annotated[str | None, role_option("score")] = None,
    status: Annotated[str | None, role_option("status")] = None,
    reason: Annotated[str | None, role_option("reason")] = None,
    task: Annotated[str | None, role_option("task", "; of a harness the task to keep")] = None,
    source: Annotated[str | None, role_option("source")] = None,
    stratum: Annotated[str | None, role_option("stratum")] = None,
    levels: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="The response scale from least to most urgent."),
    ] = None,
    item: Annotated[str | None, item_option()] = None,
    runs: Annotated[bool, runs_option()] = False,
    source_format: Annotated[str | None, from_option()] = None,
    max_bytes: Annotated[int | None, limit_option()] = None,
    names: Annotated[
        str | None, typer.Option(metavar="OLD,NEW", help="What the runs are called. Default: A,B.")
    ] = None,
    match: Annotated[
        Match, typer.Option(help="What pairs: row is item and epoch, cell the mean over epochs.")
    ] = "row",
    weights: Annotated[Weights, typer.Option(help="What weighs the same.")] = "scenario",
    interval: Annotated[Interval, typer.Option(help="The interval to show.")] = "auto",
    unparsed: Annotated[
        Unparsed, typer.Option(help="What becomes of answers that could not be read.")
    ] = "as scored",
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="A smaller score is better.")
    ] = False,
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
    """Compare two runs: the difference B - A, paired by item and epoch, by cluster.

    A and B are tables, result files of a harness, or folders of them; options speak of both. With --gate the
    exit code says whether B may replace A; without it, it is 0 for every comparison that can be made, else 2.
    """
    asked = read_options(locals()) | {
        "names": None if names is None else [name.strip() for name in names.split(",")],
        "format": source_format,
        "margin": margin,
        "match": match,
        "weights": weights,
        "interval": interval,
        "conf_level": conf_level,
        "n_resamples": n_resamples,
        "seed": seed,
    }

    def run() -> RunComparison:
        from triagestats.runs.compare import compare

        return compare(a, b, **asked)

    code = _ended(run, output_format, output, a, b, gate=gate)
    if code:
        raise typer.Exit(code)


_NAMES: Final = {
    **{name: "--" + name.replace("_", "-") for name in signature(compare_command).parameters},
    "a": "A",
    "b": "B",
    "format": "--from",
    "source_format": "--from",
    "output_format": "--format",
    "higher_is_better": "--lower-is-better",
}
"""What an argument of Python is called on the command line."""


def _ended(run: Any, output_format: Format, output: Path | None, a: Path, b: Path, *, gate: bool) -> int:
    """Show the comparison, and say with which code to end.

    A gate reads 1 as worse. So whatever goes wrong otherwise, a defect of this program included, is 2, and a
    reader of the output that stops early changes nothing of what was decided.
    """
    decided: list[RunComparison] = []

    def kept() -> RunComparison:
        decided.append(run())
        return decided[0]

    try:
        shown(kept, output_format, output, a, b, names=_NAMES)
        sys.stdout.flush()
    except BrokenPipeError:
        if not gate:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
    except (typer.Exit, typer.Abort, KeyboardInterrupt):
        raise
    except BaseException:  # noqa: BLE001  # also a panic of polars: 1 would be read as a decision
        with suppress(OSError):
            traceback.print_exc()
        return 2
    if not gate:
        return 0
    found = decided[0]
    if found.exit_code:
        with suppress(OSError):  # what was decided stands where it cannot be said
            typer.echo(f"triagestats: gate {found.gate}: {found.decision.reason}", err=True)
    return found.exit_code
