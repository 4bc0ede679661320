"""What a command of the command line prints or writes, and how it refuses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import typer

from triagestats.cli_messages import as_options
from triagestats.errors import ReadError, TriagestatsError

if TYPE_CHECKING:
    from triagestats.analysis import Analysis
    from triagestats.replicate.run import Replication
    from triagestats.runs.comparison import RunComparison

__all__ = ["Format", "guarded", "shown"]

Format = Literal["text", "json", "csv"]
Result = TypeVar("Result", "Analysis", "Replication", "RunComparison")


def shown(
    run: Callable[[], Result],
    output_format: Format,
    output: Path | None,
    *inputs: Path | None,
    names: Mapping[str, str],
) -> Result:
    """Run, print or write what comes out, and give it back; refusals as in `guarded`."""
    found: list[Result] = []

    def show() -> None:
        fit = run()
        if output is not None:
            _write(_rendered(fit, output_format), output)
        elif output_format == "text":
            _print_summary(fit)
        else:
            typer.echo(_rendered(fit, output_format).encode(), nl=False)
        found.append(fit)

    guarded(show, output, *inputs, names=names)
    return found[0]


def guarded(
    run: Callable[[], None], output: Path | None, *inputs: Path | None, names: Mapping[str, str]
) -> None:
    """Run; one message and exit code 2 for input that cannot be used.

    Parameters
    ----------
    output, inputs
        The file to write, and those that are read.
    names
        What an argument of Python is called on the command line.
    """
    try:
        if output is not None:
            _check_output(output, [path for path in inputs if path is not None])
        run()
    except TriagestatsError as error:
        typer.echo(f"triagestats: {as_options(str(error), names)}", err=True)
        raise typer.Exit(2) from None


def _check_output(output: Path, inputs: Sequence[Path]) -> None:
    """Refuse before the analysis what could not be written after it, or would destroy what is read."""
    if not output.parent.is_dir():
        raise ReadError(f"{str(output)!r} cannot be written: there is no folder {str(output.parent)!r}")
    if output.exists() and any(path.exists() and output.samefile(path) for path in inputs):
        raise ReadError(f"{str(output)!r} is the file to analyse; choose another name for the output")


def _print_summary(fit: Analysis | Replication | RunComparison) -> None:
    """Print in the width and the colours of the terminal; plain and of fixed width where there is none."""
    from triagestats.analysis import Analysis
    from triagestats.report.text import print_summary

    if not isinstance(fit, Analysis) or not sys.stdout.isatty():
        text = repr(fit)
        utf = (sys.stdout.encoding or "").lower().startswith("utf")
        sys.stdout.write((text if utf else text.replace("\u2500", "-")) + "\n")
        return
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    print_summary(fit, Console(color_system=None if plain else "auto", force_terminal=True))


def _rendered(fit: Analysis | Replication | RunComparison, output_format: Format) -> str:
    from triagestats.replicate.run import Replication

    if output_format == "json":
        return fit.to_json() + "\n"
    if output_format == "csv":
        return (fit.frame if isinstance(fit, Replication) else fit.tidy()).write_csv()
    return repr(fit) + "\n"


def _write(text: str, output: Path) -> None:
    try:
        output.write_bytes(text.encode())
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise ReadError(f"{str(output)!r} cannot be written: {reason}") from error
