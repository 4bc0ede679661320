"""The tables of a study's folder, and names in it that a paper shortens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import polars as pl

from triagestats.errors import TriagestatsError
from triagestats.replicate.entry import Found, NotDerivableError
from triagestats.replicate.published import Published

__all__ = ["Folder", "Recipe", "Recipes", "best_named", "called"]

T = TypeVar("T")

_ODD: Final = (ArithmeticError, LookupError, TypeError, ValueError)
"""What code runs into where rows that it counts on are not there; one entry must not end the others."""


@dataclass(slots=True)
class Folder:
    """A folder of tables, each read once; what is computed from them is kept as well.

    Attributes
    ----------
    path
        Where it is.
    """

    path: Path
    _tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    _kept: dict[tuple[object, ...], object] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether there is a table of a name, plain or packed."""
        return self._file(name) is not None

    def table(self, name: str) -> pl.DataFrame:
        """A table with all columns as text.

        Raises
        ------
        NotDerivableError
            If the folder has no such file, or it has no row.
        """
        if name not in self._tables:
            path = self._file(name)
            if path is None:
                raise NotDerivableError(f"rows are not in the folder: there is no {name}")
            rows = pl.read_csv(path, infer_schema=False)
            if rows.is_empty():
                raise NotDerivableError(f"rows are not in the folder: {name} holds none")
            self._tables[name] = rows
        return self._tables[name]

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """What `make` gives, made once for a key."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]  # type: ignore[return-value]  # one kind of value a key

    def need(self, published: Published) -> None:
        """Refuse an entry one of whose tables is absent.

        Raises
        ------
        NotDerivableError
            If the folder lacks a file that the entry names.
        """
        for name in re.findall(r"[\w.-]+\.csv(?:\.gz)?", published.table):
            if not self.has(name):
                raise NotDerivableError(f"rows are not in the folder: there is no {name}")

    def _file(self, name: str) -> Path | None:
        stem = name.removesuffix(".gz")
        return next((path for path in (self.path / stem, self.path / f"{stem}.gz") if path.is_file()), None)


Recipe = Callable[[Published, "re.Match[str]"], Found]


@dataclass(frozen=True, slots=True)
class Recipes:
    """Recipes by a pattern of ids; the first that fits is taken."""

    by_id: Sequence[tuple[str, Recipe]]

    def found(self, published: Published) -> Found | NotDerivableError:
        """What the library finds, or why it finds nothing."""
        for pattern, recipe in self.by_id:
            if match := re.fullmatch(pattern, published.id):
                try:
                    return recipe(published, match)
                except NotDerivableError as error:
                    return error
                except TriagestatsError as error:
                    return NotDerivableError(f"the library refuses: {error}")
                except (*_ODD, pl.exceptions.PolarsError) as error:
                    return NotDerivableError(
                        f"the tables are not as this entry needs them ({type(error).__name__}: {error})"
                    )
        if published.kind == "published" and published.recomputed is None:
            return NotDerivableError(published.recipe or "the folder does not say how it is computed")
        return NotDerivableError("no recipe of the library stands for this kind of entry")


def called(name: str) -> str:
    """A name without case and signs: `GPT-5.2` and `gpt_5_2` are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def best_named(short: str, names: Iterable[str]) -> str | None:
    """The name that a short form stands for: the form is in it, or begins its words; the shortest such.

    Examples
    --------
    >>> models = ["claude-opus-4.6", "claude-opus-4.6-nothink", "gpt-5.2-thinking-high"]
    >>> best_named("gpt_5_2", models), best_named("opus_nothink", models), best_named("opus_think", models)
    ('gpt-5.2-thinking-high', 'claude-opus-4.6-nothink', 'claude-opus-4.6')
    """
    ordered = sorted(names, key=lambda name: (len(name), name))
    whole = called(short)
    for name in ordered:
        if called(name) == whole:
            return name
    for name in ordered:
        if whole in called(name):
            return name
    parts = [called(part) for part in re.split(r"[_\s]+", short) if part]
    for wanted in (parts, [part for part in parts if part != "think"]):  # thinking variants are not marked
        for name in ordered:
            tokens = [called(token) for token in re.split(r"[^A-Za-z0-9]+", name)]
            if wanted and all(any(token.startswith(part) for token in tokens) for part in wanted):
                return name
    return None
