"""The labelled disposition that an answer states, such as `ED_NOW`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from triagestats.collect.answer_text import (
    Reading,
    is_conditional,
    is_refusal,
    sentence_before,
    single_spaced,
    unparsed,
)

__all__ = ["parse_disposition"]

_MARKER: Final = (
    r"\b(?:answer|disposition|recommendation|recommended\s+(?:action|disposition|level|care)|triage|urgency|acuity"
    r"|category|classification|level|label|decision|verdict|conclusion|choice|assessment{more})"
    r"(?:\s+(?:level|category|label|code|decision|recommendation|disposition))?"
)
_LINK: Final = (
    r"[\s\"')\]|]{0,6}(?:\([^()\n]{0,60}\)\s*)?"
    r"(?:[:=|]|-+>|=+>|→|⇒|–|—|-\s|\bis\b|\bwould\s+be\b|\bshould\s+be\b|\n)[\s:=\"'(\[{|]{0,6}"
    r"(?:(?:the|therefore|clearly|still|most\s+likely|either)\b\s{0,2}){0,4}[\"'(\[{]{0,4}"
)
_NOT: Final = re.compile(
    r"(?:\bnot|n['’]t|\bno need (?:for|to)|\bneither|\bnor|\brather than|\binstead of|\bwithout|\bthan"
    r"|\bunlike|\brule[sd]? out)"
    r"(?:\s+(?:a|an|the|be|go|need|for|to|require|requires|currently|yet)){0,4}[\s\"'(\[]{0,4}\Z",
    re.IGNORECASE,
)
_NEAR: Final = 60
_BETWEEN: Final = re.compile(
    r"[\s\"')\]]{0,4}(?:/|\bor\b|\band\b|&|\bto\b|–|,)[\s\"'(\[]{0,4}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    label: str


def parse_disposition(text: str, labels: Mapping[str, str], *, markers: Iterable[str] = ()) -> Reading:
    """The label that an answer states last.

    Parameters
    ----------
    text
        The answer, without its thoughts (`visible_text`).
    labels
        What may be written, such as `ED_NOW`, and the label that it stands for. Spaces, hyphens and
        underscores in it are one, and so are capital and small letters in places that announce an answer.
    markers
        Words that announce an answer, beyond the English ones.

    Returns
    -------
    Reading
        The label, or the reason why there is none.

    Notes
    -----
    The first kind of statement that is found decides: announced ones (`Triage: **ED_NOW**`), of which the
    last counts, but not one that depends on an `if`; lines that hold a label and nothing else; labels within
    the text, written as they were asked for or, where they have several words, in any case. The longest label
    wins: `NON_URGENT` holds no `URGENT`. A label that is denied (`not ED_NOW`) does not count.

    Examples
    --------
    >>> from triagestats.collect.dispositions import parse_disposition
    >>> labels = {"ED_NOW": "D", "GP_SOON": "C", "HOME": "A"}
    >>> parse_disposition("It is not ED_NOW. **Disposition:** `GP soon`", labels).label
    'C'
    >>> parse_disposition("Either ED_NOW or HOME.", labels).reason
    'two different labels: ED_NOW, HOME'
    """
    plain = _plain(text)
    if not plain:
        return unparsed("empty answer")
    loose, exact = _patterns(tuple(labels))
    by_form = {_form(written): written for written in labels}

    def place(match: re.Match[str], group: str | int = 0) -> _Place:
        return _Place(match.start(group), match.end(group), by_form[_form(match[group])])

    announced = re.compile(
        _MARKER.replace("{more}", "".join(f"|{re.escape(word)}" for word in markers))
        + _LINK
        + f"(?P<label>{loose.pattern})",
        re.IGNORECASE,
    )
    marked = [place(match, "label") for match in announced.finditer(plain)]
    if marked:
        firm = [one for one in marked if not is_conditional(plain, one.start)] or marked
        named = _with_neighbours(plain, firm[-1], loose, by_form)
        return _read(named, labels, [one.label for one in firm])
    lines = re.finditer(
        rf"^[ \t\"'(\[]*({loose.pattern})[ \t\"')\].!]*$", plain, re.MULTILINE | re.IGNORECASE
    )
    alone = [place(match, 1) for match in lines]
    for found in (alone, _within(plain, [place(match) for match in exact.finditer(plain)])):
        if found:
            return _read([one.label for one in found], labels, [one.label for one in found])
    return unparsed("refusal" if is_refusal(plain) else "no label")


def _plain(text: str) -> str:
    text = re.sub(r"</?(?:b|strong|i|em|u|p|br|span|div)\s*/?>", " ", text, flags=re.IGNORECASE)
    text = re.sub(r"\\_", "_", text)
    text = re.sub(r"[*`$]|(?<!\w)__|__(?!\w)", "", text)
    text = re.sub(r"^[ \t]*(?:#+|>+|[-•+])[ \t]+", "", text, flags=re.MULTILINE)
    return single_spaced(text)


def _form(written: str) -> str:
    """The form in which two spellings of a label are one."""
    return re.sub(r"[\s_-]+", " ", written).strip().lower()


@lru_cache(maxsize=256)
def _patterns(written: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Labels in any spelling, and labels that count wherever they stand; longer ones first."""
    order = sorted(written, key=len, reverse=True)
    any_case = [r"[\s_-]+".join(map(re.escape, _form(label).split())) for label in order]
    anywhere = [
        f"(?i:{loose})" if len(_form(label).split()) > 1 else re.escape(label)
        for label, loose in zip(order, any_case, strict=True)
    ]
    before, after = r"(?<![\w-])(?<!\b[Nn]on )(?<!\bNON )", r"(?![\w]|-\w)"
    return (
        re.compile(f"{before}(?:{'|'.join(any_case)}){after}", re.IGNORECASE),
        re.compile(f"{before}(?:{'|'.join(anywhere)}){after}"),
    )


def _with_neighbours(
    text: str, first: _Place, loose: re.Pattern[str], by_form: Mapping[str, str]
) -> list[str]:
    """A label and those that the same statement joins to it with `or`, `/` or `,`."""
    found, end = [first.label], first.end
    while (joint := _BETWEEN.match(text, end)) and (match := loose.match(text, joint.end())):
        found.append(by_form[_form(match[0])])
        end = match.end()
    return found


def _within(text: str, places: Iterable[_Place]) -> list[_Place]:
    """Labels within the text that are neither denied nor, if others are there, conditional."""
    affirmed = [one for one in places if not _NOT.search(sentence_before(text, one.start)[-_NEAR:])]
    return [one for one in affirmed if not is_conditional(text, one.start)] or affirmed


def _read(named: Iterable[str], labels: Mapping[str, str], stated: Iterable[str]) -> Reading:
    order = tuple(labels[written] for written in stated)
    different = {labels[written]: written for written in reversed(list(named))}
    if len(different) > 1:
        return unparsed(f"two different labels: {', '.join(sorted(different.values()))}", order)
    return Reading(next(iter(different)), stated=order)
