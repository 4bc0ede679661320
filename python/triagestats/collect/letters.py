"""The letter that an answer states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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

__all__ = ["parse_letter"]

# Case is ignored in words and kept in letters, so that the article `a` is no answer.
_MARKER: Final = (
    r"(?i:\b(?:answer|choice|selection|disposition|recommendation|verdict|decision|conclusion"
    r"|(?:triage|urgency)(?:\s+(?:level|category|decision|letter))?|category|level|letter|option{more})"
    r"(?:\s+(?:letter|choice|option|code))?)"
)
_LINK: Final = (
    r"[\"'’”)\]]{0,4}\s{0,2}(?:\([^()\n]{0,40}\)\s*)?"
    r"(?i:[:=]|-+>|=+>|→|⇒|–|—|-\s|\bis\b(?:\s*:)?|\bwould\s+be\b|\bshould\s+be\b|\bremains\b|\s?\n)[\s:=]{0,6}"
)
_FILLER: Final = (
    r"(?i:(?:the|option|choice|letter|answer|category|level|therefore|thus|clearly|definitely|still|most\s+likely"
    r"|either|between|both)\b[\s:]{0,4}){0,4}"
)
_OPEN: Final = r"[(\[{\"'“‘«<]{0,4}\s{0,2}"
_CLOSE: Final = r"\s{0,2}[)\]}\"'”’»>]{0,4}"
_STRICT_END: Final = r"(?=\s*(?:\Z|\n|[.,;:!?)\]}(\"”’]|[-–—]+(?:\s|>)))"
_LINKING: Final = (
    r"(?=\s+(?:because|since|as|given|due|based|with|for|which|in|at|and|or|but|is|although|though|over)\b)"
)
_NOT_A_LETTER: Final = r"(?!\s*-?\s*(?:cells?|lymphocytes?|section|reactive|sign)\b)"
_NOT: Final = re.compile(
    r"(?:\bnot|n['’]t|\bneither|\bnor|\brather than|\binstead of|\bexclude[sd]?|\brule[sd]? out"
    r"|\bover|\bthan)"
    r"(?:\s+(?:the|be|option|choice|answer|letter|for))*[\s(\"'“]*\Z",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    r"\b(?:vitamin|hepatitis|group|type|plan|stage|class|grade|factor|part|influenza)\s*\Z", re.I
)
_NEAR: Final = 60
_SHORT: Final = 12


@dataclass(frozen=True, slots=True)
class _Statement:
    """Letters that one statement names, and where."""

    start: int
    letters: tuple[str, ...]


def parse_letter(
    text: str,
    options: Sequence[str],
    *,
    label_map: Mapping[str, str] | None = None,
    markers: Iterable[str] = (),
) -> Reading:
    r"""The letter that an answer states last.

    Parameters
    ----------
    text
        The answer, without its thoughts (`visible_text`).
    options
        The letters that may be given.
    label_map
        The label that a letter stands for; the letter itself where it has none.
    markers
        Words that announce an answer, beyond the English ones.

    Returns
    -------
    Reading
        The label, or the reason why there is none.

    Notes
    -----
    Statements are sought in this order, and the first kind that is found decides:

    1. marked ones: `Answer: C`, `The answer is (c)`, `\boxed{C}`, `I would choose C`, `C is the best option`.
       The last one counts, but not one that depends on an `if`.
    2. lines that hold a letter and nothing else;
    3. lines that begin with a letter, such as `C. Go now` or `(C) Go now`;
    4. `option C` or `(C)` within the text, and any letter in an answer of at most twelve words.

    Kinds 2 to 4 count where all of them name one letter. `B or C` in a statement, or different letters
    of one of these kinds, are two answers and not read. A letter that is denied does not count.

    Examples
    --------
    >>> from triagestats.collect.letters import parse_letter
    >>> parse_letter("Not B, since he is breathless. **Answer: (c)**", "ABCD").label
    'C'
    >>> parse_letter("Answer: B or C", "ABCD").reason
    'two different letters: B, C'
    """
    letters = tuple(dict.fromkeys(option.upper() for option in options))
    plain = _plain(text)
    if not plain:
        return unparsed("empty answer")
    marked = _marked(plain, letters, tuple(markers))
    if marked:
        firm = [one for one in marked if not is_conditional(plain, one.start)] or marked
        return _read(firm[-1].letters, letters, label_map, [one.letters[-1] for one in firm])
    for found in (_alone(plain), _at_line_starts(plain), _mentioned(plain, letters)):
        named = tuple(dict.fromkeys(found))
        if named:
            return _read(named, letters, label_map, found)
    return unparsed("refusal" if is_refusal(plain) else "no letter")


def _read(
    named: tuple[str, ...],
    options: tuple[str, ...],
    label_map: Mapping[str, str] | None,
    stated: Iterable[str],
) -> Reading:
    order = tuple(stated)
    inside = tuple(letter for letter in named if letter in options)
    if len(inside) > 1:
        return unparsed(f"two different letters: {', '.join(sorted(inside))}", order)
    if not inside:
        return unparsed(f"letter {named[-1]} is not among {', '.join(options)}", order)
    to_label = label_map or {}
    labels = tuple(to_label.get(letter, letter) for letter in order if letter in options)
    return Reading(to_label.get(inside[0], inside[0]), stated=labels)


def _plain(text: str) -> str:
    """Text without markdown, LaTeX and HTML around words; a box and an answer tag become marks."""
    text = re.sub(r"</?(?:b|strong|i|em|u|p|br|span|div)\s*/?>", " ", text, flags=re.IGNORECASE)
    text = re.sub(r"<(?:final[_ ]?)?answer>", "\nAnswer: ", text, flags=re.IGNORECASE)
    text = re.sub(r"</(?:final[_ ]?)?answer>", "\n", text, flags=re.IGNORECASE)
    text = re.sub(r"\\(?:text|textbf|mathrm|mathbf|mathsf|rm|bf)\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\(?:boxed|fbox)\s*\{([^{}]*)\}", r" answer: \1\n", text)
    text = re.sub(r"\$|\\[()\[\]]|[*`]|__|\bN/A\b", "", text)
    text = re.sub(r"^[ \t]*(?:#+|>+|[-•+])[ \t]+", "", text, flags=re.MULTILINE)
    return single_spaced(text)


@lru_cache(maxsize=256)
def _patterns(options: tuple[str, ...], markers: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Patterns of marked statements; the letter is the last group that is not empty."""
    upper = "".join(re.escape(letter) for letter in options if letter not in ("A", "I"))
    ends = [rf"[A-Za-z](?!\w){_CLOSE}{_STRICT_END}"]
    if upper:
        ends.append(rf"[{upper}](?![\w'’]|-\w|/[^\W\d_]{{2}}){_NOT_A_LETTER}")
    linked = "".join(re.escape(letter) for letter in options if letter in ("A", "I"))
    if linked:
        ends.append(rf"[{linked}]{_CLOSE}{_LINKING}")
    lower = "".join(re.escape(letter.lower()) for letter in options if letter not in ("A", "I"))
    if lower:
        ends.append(rf"[{lower}]{_CLOSE}{_LINKING}")
    token = rf"{_OPEN}(?P<token>{'|'.join(ends)})"
    firm = rf"{_OPEN}(?P<token>[A-Za-z](?!\w){_CLOSE}{_STRICT_END})"
    more = "".join(f"|{re.escape(word)}" for word in markers)
    marker = _MARKER.format(more=more) if not markers else _MARKER.replace("{more}", more)
    known = f"{''.join(map(re.escape, options))}"
    return (
        re.compile(rf"{marker}{_LINK}{_FILLER}{token}"),
        re.compile(
            r"(?i:\b(?:(?:i|we)(?:['’]d|['’]ll|\s+would|\s+will)?\s+(?:chose|answer|say|recommend|opt\s+for)"
            rf"|choose|pick|select|go\s+with)\s+){_FILLER}{token}"
        ),
        re.compile(
            rf"(?<![\w'’]){_OPEN}(?P<token>[{known}])(?!\w){_CLOSE}\s+(?i:(?:is|would\s+be|seems|appears|remains)\s+"
            r"(?:to\s+be\s+)?(?:clearly\s+|definitely\s+)?(?:the\s+|my\s+)?(?:single\s+|most\s+|final\s+)*"
            r"(?:correct|best|right|appropriate|suitable|answer|safest|(?<=most\s)likely))\b"
        ),
        re.compile(
            r"(?i:\b(?:it['’]?s|it\s+is|actually|make\s+(?:it|that)|correction|therefore|thus|hence|so)[,:]?\s+)"
            + _FILLER
            + firm
        ),
    )


@lru_cache(maxsize=256)
def _continuation(options: tuple[str, ...]) -> re.Pattern[str]:
    """A second letter that belongs to the same statement: `B/C`, `B or C`, `B-C`, `B, C.`."""
    known = "".join(map(re.escape, options))
    known = f"{known}{known.lower()}"
    near = (
        r"(?:\s*/\s*|\s*&\s*|\s*\+\s*|[-–]|\s*,?\s*\(?(?i:and/or|or|and|to|versus|vs\.?)\s+"
        r"(?i:(?:possibly|maybe|perhaps|even|option|choice|the)\s+)*)"
    )
    far = r"(?:\s*[,;]\s*|\s+[-–—]\s+)"
    end = rf"(?!\w)(?:{_CLOSE}{_STRICT_END}|(?<![aAiI])(?=\s))"
    return re.compile(
        rf"{_CLOSE}(?:{near}{_OPEN}(?P<near>[{known}]){end}|{far}{_OPEN}(?P<far>[{known}])(?!\w){_CLOSE}{_STRICT_END})"
    )


def _marked(text: str, options: tuple[str, ...], markers: tuple[str, ...]) -> list[_Statement]:
    more = _continuation(options)
    found: dict[int, _Statement] = {}
    for pattern in _patterns(options, markers):
        for match in pattern.finditer(text):
            at = match.start("token")
            if _NAMED.search(text[max(0, at - _NEAR) : at]):
                continue
            letters = [text[at].upper()]
            following = more.match(text, at + 1) if letters[0] in options else None
            while following is not None:
                group = "near" if following["near"] else "far"
                letters.append(following[group].upper())
                following = more.match(text, following.end(group))
            found[at] = _Statement(at, tuple(dict.fromkeys(letters)))
    return [found[at] for at in sorted(found)]


def _alone(text: str) -> list[str]:
    pattern = rf"^[ \t]*{_OPEN}([A-Za-z]){_CLOSE}[ \t]*[.!]?{_CLOSE}[ \t]*$"
    return [match[1].upper() for match in re.finditer(pattern, text, re.MULTILINE)]


def _at_line_starts(text: str) -> list[str]:
    # `(B) is possible` speaks of an option and gives none.
    pattern = (
        r"^[ \t]*(?:\(([A-Za-z])\)(?!\s[a-z])|\[([A-Za-z])\](?!\s[a-z])"
        r"|([A-Za-z])(?:[.):]|[ \t]+[-–—]))(?=\s)"
    )
    return [(match[1] or match[2] or match[3]).upper() for match in re.finditer(pattern, text, re.MULTILINE)]


def _mentioned(text: str, options: tuple[str, ...]) -> list[str]:
    known = "".join(map(re.escape, options))
    pattern = (
        rf"(?i:\b(?:option|choice|letter|answer))\s+\(?([{known}{known.lower()}])(?![\w'’])|\(([{known}])\)"
    )
    found = _affirmed(text, re.finditer(pattern, text))
    if found or len(text.split()) > _SHORT:
        return found
    bare = rf"(?<![\w'’-])([{known}])(?![\w'’]|-\w){_NOT_A_LETTER}"
    word = re.compile(rf"[AI](?!\w)(?!{_CLOSE}{_STRICT_END}|\s*(?i:/|&|or\b|and\b)\s*[{known}]\b)")
    return _affirmed(
        text, (match for match in re.finditer(bare, text) if not word.match(text, match.start()))
    )


def _affirmed(text: str, matches: Iterable[re.Match[str]]) -> list[str]:
    """Letters that are not denied (`not B`, `rather than B`) and not part of a name (`vitamin C`)."""
    found = []
    for match in matches:
        before = sentence_before(text, match.start())
        if not (_NOT.search(before[-_NEAR:]) or _NAMED.search(before[-_NEAR:])):
            found.append(next(part for part in match.groups() if part).upper())
    return found
