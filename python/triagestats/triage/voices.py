"""Methods and voices of a comparison of gaps: which condition levels they are, and what was read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from triagestats.canonical import Factor
from triagestats.design import Design
from triagestats.errors import ArgumentError, ArgumentTypeError, DesignError
from triagestats.labels import counted, label_of, listed
from triagestats.results import Note
from triagestats.triage.text import in_words

__all__ = [
    "Voices",
    "marked_voices",
    "models_named",
    "read_voices",
    "unread_models",
    "unscored",
    "voice_factor",
]

_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class Voices:
    """What is compared.

    Attributes
    ----------
    baseline, methods
        Levels of the method; each of the methods is compared with the baseline.
    control, marked
        Levels of the voice.
    codes
        Codes of the joint condition levels by method and voice, one for each combination of the other
        conditions that has all of them.
    """

    baseline: str
    methods: tuple[str, ...]
    control: str
    marked: tuple[str, ...]
    codes: dict[tuple[str, str], tuple[int, ...]]

    @property
    def voices(self) -> tuple[str, ...]:
        """The control, then the marked voices."""
        return (self.control, *self.marked)

    def columns(self, method: str) -> tuple[tuple[int, ...], ...]:
        """Codes of the voices at the baseline, then with the method, one row a combination of the others."""
        sides = [(one, voice) for one in (self.baseline, method) for voice in self.voices]
        return tuple(zip(*(self.codes[side] for side in sides), strict=True))

    def levels(self, method: str) -> tuple[str, ...]:
        """What the levels of `columns` are called."""
        return tuple(level_name(one, voice) for one in (self.baseline, method) for voice in self.voices)


def level_name(method: str, voice: str) -> str:
    """What a voice under a method is called."""
    return f"{method}: {voice}"


def read_voices(
    design: Design,
    *,
    method: object,
    voice: object,
    control: object,
    marked: object,
    baseline: object,
    methods: object,
) -> Voices:
    """Methods and voices from the arguments.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If they name no condition column or level.
    DesignError
        If a voice is not there under a method.
    """
    by_method, by_voice = voice_factor(design, method, "method"), voice_factor(design, voice, "voice")
    if by_method.name == by_voice.name:
        raise ArgumentError(
            f"`method` and `voice` are both {by_voice.name!r}; they are two condition columns"
        )
    base = _level(baseline, by_method, "baseline")
    if methods is None:
        compared = tuple(level for level in by_method.levels if level != base)
    else:
        compared = _several(methods, by_method, "methods")
        if base in compared:
            raise ArgumentError(f"`methods` holds the baseline {base!r}; leave it out")
    if not compared:
        raise DesignError(f"`method` {by_method.name!r} has the level {base!r} alone: nothing is compared")
    standard, others = marked_voices(by_voice, control, marked)
    codes = _codes(design, by_method, by_voice, (base, *compared), (standard, *others))
    return Voices(base, compared, standard, others, codes)


def voice_factor(design: Design, name: object, argument: str) -> Factor:
    """The condition column that an argument names.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If there is none.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"`{argument}` must name a condition column; got {name!r}")
    for factor in design.factors:
        if factor.name == name:
            return factor
    raise ArgumentError(
        f"`{argument}` names {name!r}; choose from the condition columns "
        f"{[factor.name for factor in design.factors]}, or make the table with it in `condition=[...]`"
    )


def marked_voices(by_voice: Factor, control: object, marked: object) -> tuple[str, tuple[str, ...]]:
    """The control and the marked voices; all others where `marked` is None.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If they are no levels of the voice, or the control is marked.
    """
    standard = _level(control, by_voice, "control")
    if marked is None:
        others = tuple(level for level in by_voice.levels if level != standard)
    else:
        others = _several(marked, by_voice, "marked")
    if standard in others:
        raise ArgumentError(f"`marked` holds the control {standard!r}; leave it out")
    if not others:
        raise ArgumentError(f"`marked` is empty, and a gap needs a voice beside the control {standard!r}")
    return standard, others


def _level(value: object, factor: Factor, argument: str) -> str:
    label = label_of(value) if isinstance(value, str | int | float) else None
    if label is None or label not in factor.levels:
        raise ArgumentError(
            f"`{argument}` is {value!r}; choose from the levels of {factor.name!r}, {listed(factor.levels)}"
        )
    return label


def _several(values: object, factor: Factor, argument: str) -> tuple[str, ...]:
    several = [values] if isinstance(values, str | int | float) else values
    if not isinstance(several, Sequence):
        raise ArgumentTypeError(f"`{argument}` must list levels of {factor.name!r}; got {values!r}")
    found = tuple(_level(value, factor, argument) for value in several)
    if len(set(found)) < len(found):
        raise ArgumentError(f"`{argument}` must list each level once; got {list(found)}")
    return found


def _codes(
    design: Design, by_method: Factor, by_voice: Factor, methods: Sequence[str], voices: Sequence[str]
) -> dict[tuple[str, str], tuple[int, ...]]:
    names = [factor.name for factor in design.factors]
    place = {name: names.index(name) for name in (by_method.name, by_voice.name)}
    found: dict[tuple[str, ...], dict[tuple[str, str], int]] = {}
    for code, level in enumerate(design.levels):
        other = tuple(part for name, part in zip(names, level.parts, strict=True) if name not in place)
        side = level.parts[place[by_method.name]], level.parts[place[by_voice.name]]
        found.setdefault(other, {})[side] = code
    wanted = [(method, voice) for method in methods for voice in voices]
    complete = [sides for sides in found.values() if all(side in sides for side in wanted)]
    if not complete:
        seen = {side for sides in found.values() for side in sides}
        absent = [level_name(*side) for side in wanted if side not in seen]
        raise DesignError(
            f"the table has no {', '.join(absent[:_SHOWN]) or 'combination of the other conditions'} "
            f"({by_method.name}: {by_voice.name}) to compare; name fewer of them with `methods=` or `marked=`"
        )
    return {side: tuple(sides[side] for sides in complete) for side in wanted}


def models_named(design: Design, names: object) -> tuple[int, ...]:
    """Codes of the models that are named.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If they are no models of the table, or all of them.
    """
    several = [names] if isinstance(names, str) else names
    if not isinstance(several, Sequence) or not all(isinstance(name, str) for name in several):
        raise ArgumentTypeError(f"`without` must list names of models; got {names!r}")
    unknown = [name for name in several if name not in design.models]
    if unknown:
        raise ArgumentError(
            f"`without` names {', '.join(map(repr, unknown))}; the models are {listed(design.models)}"
        )
    if set(several) == set(design.models):
        raise ArgumentError("`without` names all models; leave at least one")
    return tuple(sorted({design.models.index(name) for name in several}))


def unscored(design: Design, voices: Voices, method: str, model: int | None = None) -> str:
    """In which voices under the baseline and a method no answer has a score, in words; empty if in none.

    Of one model, or of all.
    """
    scored = design.responses.filter(pl.col("score").is_not_null())
    if model is not None:
        scored = scored.filter(pl.col("model") == model)
    there = set(scored["level"].unique())
    found = []
    for one in (voices.baseline, method):
        lost = [voice for voice in voices.voices if not there.intersection(voices.codes[one, voice])]
        if lost:
            found.append(f"under {one} in {in_words(lost)}")
    return in_words(found)


def unread_models(design: Design, voices: Voices) -> tuple[tuple[int, ...], tuple[Note, ...]]:
    """Models with a voice that counts as wrong as nothing of it could be read; notes on unread answers."""
    method_of = {code: side[0] for side, codes in voices.codes.items() for code in codes}
    voice_of = {code: side[1] for side, codes in voices.codes.items() for code in codes}
    unread = pl.col("status") == "unparsed"
    cells = (
        design.responses.filter(pl.col("level").is_in(list(method_of)))
        .with_columns(
            pl.col("level").replace_strict(method_of, return_dtype=pl.String).alias("method"),
            pl.col("level").replace_strict(voice_of, return_dtype=pl.String).alias("voice"),
        )
        .group_by("model", "method", "voice")
        .agg(
            pl.len().alias("n"),
            unread.sum().alias("unread"),
            (unread & pl.col("score").is_not_null()).any().alias("scored"),
            (pl.col("score").fill_null(0) == 0).all().alias("wrong"),
        )
        .sort("model", "method", "voice")
    )
    lost = cells.filter(pl.col("unread") == pl.col("n"))
    notes = [
        Note(
            "unread_method",
            f"{design.models[model]} under {method}: none of {n:,} answers could be read in {in_words(which)}"
            + (", and they count as wrong" if scored else "")
            + "; its gap there says nothing of the method.",
            "caution",
        )
        for model, method, which, n, scored in lost.group_by("model", "method", maintain_order=True)
        .agg("voice", pl.col("n").sum(), pl.col("scored").any())
        .iter_rows()
    ]
    partly = cells.filter((pl.col("unread") > 0) & (pl.col("unread") < pl.col("n")))
    if partly.height:
        worst = partly.sort(pl.col("unread") / pl.col("n"), descending=True).row(0, named=True)
        number = int(partly["unread"].sum())
        noun = f"{'further ' if lost.height else ''}answer"
        wrong = partly["scored"].any()
        how = ("counts as wrong", "count as wrong") if wrong else ("is missing", "are missing")
        where = f"{design.models[worst['model']]}, {level_name(worst['method'], worst['voice'])}"
        message = (
            f"{counted(number, noun)} could not be read and {how[number != 1]}; at most "
            f"{worst['unread'] / worst['n']:.1%} of a model's answers in a voice ({where.strip(', ')})."
        )
        notes.append(Note("unread_answers", message, "caution"))
    silent = cells.group_by("model", "method", maintain_order=True).agg(
        pl.col("wrong").all(), (pl.col("unread") == pl.col("n")).any().alias("lost")
    )
    for model, method in silent.filter(pl.col("wrong") & ~pl.col("lost")).select("model", "method").rows():
        message = f"{design.models[model]} under {method}: every answer scores 0; was its output read?"
        notes.append(Note("all_wrong", message, "caution"))
    as_wrong = lost.filter("scored")["model"]
    return tuple(sorted(set(as_wrong.to_list()))), tuple(notes)
