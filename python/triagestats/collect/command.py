"""`triagestats collect STUDY` on the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from triagestats.errors import TriagestatsError

if TYPE_CHECKING:
    from triagestats.collect.session import Collected, Session

__all__ = ["collect_command"]

_NAMES: Final = {
    "study": "STUDY",
    "output": "--output",
    "store": "--store",
    "metric": "--metric",
    "resume": "--resume",
    "reparse": "--reparse",
}
"""What an argument of Python is called on the command line."""
_REASONS: Final = 5


def collect_command(
    study: Annotated[Path, typer.Argument(help="A toml file that says what is asked of whom.")],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check the study, print the number of calls a model, ask nothing."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a store that is there, with what it lacks.")
    ] = False,
    reparse: Annotated[
        bool,
        typer.Option("--reparse", help="Ask nothing: read the stored answers again, print what changes."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The parquet file of the table. [default: beside STUDY]"),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="The SQLite file of the answers. [default: beside STUDY]")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What to count in the summary, where judges measure several things.")
    ] = None,
) -> None:
    """Ask models and judges as a study file says, and write the response table.

    Every answer is stored before it is used: after a crash, a limit or Ctrl-C, --resume asks what is left.
    """
    try:
        try:
            from triagestats.collect.session import Session
        except ImportError as error:
            raise TriagestatsError(
                f'collecting needs {error.name}, which is not installed: pip install "triagestats[collect]"'
            ) from error
        place = study.with_suffix(".parquet") if output is None else output
        session = Session.of(study, store=store, output=place)
        if dry_run:
            typer.echo(_plan_text(session))
            return
        left = session.run(None, resume=resume, reparse=reparse, metric=metric, shown=True)
    except TriagestatsError as error:
        said = re.sub("`([^`]+)`", lambda found: _NAMES.get(found[1], found[0]), str(error))
        typer.echo(f"triagestats: {said}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("Stopped. What was answered is stored; --resume asks what is left.", err=True)
        raise typer.Exit(130) from None
    typer.echo(_summary(left, session))
    if left.n_absent:
        raise typer.Exit(1)


def _plan_text(session: Session) -> str:
    """Calls a model, as they are planned."""
    from triagestats.collect.plan import n_units, planned_calls

    study = session.study
    planned = [one for one in planned_calls(study) if one.at_most]
    width = max(len(one.model) for one in planned)
    counts = {
        "scenarios": len(study.scenarios),
        "conditions": len(study.conditions),
        "repetitions": study.repetitions,
        "judges": len(study.judges),
    }
    said = ", ".join(f"{count:,} {word[:-1] if count == 1 else word}" for word, count in counts.items())
    lines = [f"{study.name}: {said}; {n_units(study):,} answers."]
    for one in planned:
        most = f"{one.at_most:,} calls"
        calls = most if one.at_least == one.at_most else f"{one.at_least:,} to {most}"
        lines.append(f"  {one.model:<{width}}  {calls}")
    return "\n".join(lines)


def _summary(left: Collected, session: Session) -> str:
    """Rows by status, why answers are absent, and where everything is."""
    lines = [str(left.rereading)] if left.rereading is not None else []
    counts = (
        left.table.frame["status"].value_counts(sort=True).sort("count", "status", descending=[True, False])
    )
    statuses = ", ".join(f"{count:,} {status}" for status, count in counts.iter_rows())
    lines.append(f"{left.table.frame.height:,} rows: {statuses}.")
    failed = left.table.frame.filter(left.table.frame["status"] == "error")
    reasons = failed["reason"].value_counts(sort=True)
    lines += [f"  error: {reason} ({count:,})" for reason, count in reasons.head(_REASONS).iter_rows()]
    lines += [f"  {note}" for note in left.table.notes]
    if left.n_absent:
        lines.append(f"{left.n_absent:,} answers are not complete: --resume asks what is left.")
    lines.append(f"Table: {session.output}; answers: {session.store}.")
    return "\n".join(lines)
