"""Options that several commands have, and what they are as arguments of Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import typer

from triagestats.roles import ROLE_ARGUMENTS
from triagestats.schema import ROLES

__all__ = [
    "from_option",
    "item_option",
    "limit_option",
    "paths_argument",
    "read_options",
    "role_option",
    "runs_option",
]


def role_option(name: str, more: str = "", metavar: str = "COLUMN") -> Any:
    """The option that names the column of a role."""
    return typer.Option(
        metavar=metavar, help=f"{ROLES[name].meaning[:1].upper()}{ROLES[name].meaning[1:]}{more}."
    )


def paths_argument() -> Any:
    """The files or folders to read."""
    return typer.Argument(help="Files or folders: tables, or the logs and results of a harness.")


def item_option() -> Any:
    """The field that names the items."""
    return typer.Option(
        metavar="FIELD", help="The field that names the items, where a harness leaves that open."
    )


def runs_option() -> Any:
    """Whether files that claim the same epoch are runs of their own."""
    return typer.Option("--runs", help="Files that claim the same epoch are runs of their own.")


def from_option() -> Any:
    """The format of the files."""
    return typer.Option(
        "--from",
        metavar="FORMAT",
        help="The format, such as inspect or lm_eval. Default: told from the content.",
    )


def limit_option() -> Any:
    """The bound of what is unpacked."""
    return typer.Option(help="Bytes that one line, one JSON value or one member of an archive may have.")


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the command line as those of `read`; what was not given is left out."""
    given: dict[str, Any] = {role: _columns(options[role]) for role in ROLE_ARGUMENTS if role in options}
    given |= {name: options.get(name) for name in ("item", "max_bytes")}
    if options.get("levels") is not None:
        given["levels"] = [level.strip() for level in options["levels"].split(",")]
    if options.get("lower_is_better"):
        given["higher_is_better"] = False
    given |= {"runs": True} if options.get("runs") else {}
    if options.get("unparsed", "as scored") != "as scored":
        given["unparsed"] = options["unparsed"]
    return {name: value for name, value in given.items() if value is not None}


def _columns(values: str | list[str] | None) -> str | list[str] | Literal[False] | None:
    """A column or several; an empty name says that no column plays the role."""
    if isinstance(values, list):
        values = values if len(values) > 1 else "".join(values) if values else None
    return False if values == "" else values
