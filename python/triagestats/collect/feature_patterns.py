"""The patterns by which features of English text are told."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "ASKS",
    "CARE",
    "CONDITION",
    "ESCALATION",
    "MEASURES",
    "NOT",
    "OFFER",
    "OTHERS_MEASURE",
    "RHETORICAL",
    "SEEKS",
    "TELL",
]


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_PLACES: Final = (
    r"(?:er|ed|a\s?&\s?e|emergency(?:\s+(?:room|department|services?|care|clinic))?|hospital|casualty"
    r"|urgent\s+care(?:\s+(?:clinic|cent(?:er|re)))?)"
)
_DOCTOR: Final = r"(?:doctor|gp|physician|clinic|provider|surgery)"
_SOON: Final = r"(?:immediately|right\s+away|urgently|at\s+once|same[\s-]day|today|now|promptly)"
_NO_OFFER: Final = r"(?! if (?:you (?:have|need|want|would|['’]d)|there|i can|this|that|anything))"
_QUANTITY: Final = (
    r"(?:temperature|blood pressure|pulse(?: rate)?|heart rate|respiratory rate|breathing rate"
    r"|oxygen(?: (?:level|saturation)s?)?|saturation|spo2|blood (?:sugar|glucose)|glucose|peak flow|ketones?"
    r"|weight|pregnancy test|covid(?:-19)? test|urine output)"
)
_DEVICE: Final = (
    r"(?:thermometer|oximeter|blood pressure (?:cuff|monitor)|glucometer|glucose meter|peak flow meter)"
)

CONDITION: Final = _any(
    r"\b(?:if|unless|in case|as soon as|the moment|should you|until)\b",
    r"\bshould (?:he|she|they|it|any|your|the|symptoms)\b",
    r"\b(?:when to|when(?:ever)? (?:you|he|she|they|symptoms)|any of (?:these|the following|this))\b",
)
ESCALATION: Final = _any(
    r"\b(?:go|come|head|get|drive|taken?|bring|return|be seen|be evaluated|visit|going|coming|heading|getting"
    r"|driving|taking|bringing|returning|being (?:seen|evaluated)|visiting)\b"
    rf"[^.!?\n]{{0,40}}?\b{_PLACES}\b",
    r"\b(?:call|dial|ring|phon)(?:e|ing)?\b[^.!?\n]{0,30}?\b(?:911|999|112|111|000|ambulance|emergency|paramedics?)\b",
    r"\b(?:seek|get|need|find|obtain|require|receive)\w*\s+(?:\w+[\s,]+){0,4}?"
    r"(?:emergency|immediate|urgent|prompt|medical|professional)\s+(?:\w+\s+){0,2}?"
    r"(?:care|help|attention|evaluation|assessment|treatment|advice)\b",
    rf"\b(?:be\s+)?(?:seen|evaluated|assessed|checked)\b[^.!?\n]{{0,40}}?\b{_SOON}\b",
    rf"\b(?:call|contact|see|phon)(?:e|ing)?\b[^.!?\n]{{0,30}}?\b{_DOCTOR}\b[^.!?\n]{{0,30}}?\b{_SOON}\b",
)
CARE: Final = _any(
    r"\b(?:see|visit|contact|call|consult|book|schedul|arrang|mak)(?:e|ing)?\b[^.!?\n]{0,40}?"
    rf"\b(?:{_DOCTOR}|appointment|pharmacist|specialist|nurse|dentist|midwife)\b",
    r"\b(?:stay|rest|remain|manage[sd]?|treat(?:ed)?|care for|recover|watch|monitor(?:ed)?)\b"
    r"[^.!?\n]{0,40}?\bat home\b",
    r"\bstay(?:ing)? home\b",
    r"\b(?:self[\s-]care|home care|wait and see|watchful waiting)\b",
    r"\b(?:can|could|is safe to|it'?s safe to|fine to|okay to|ok to)\s+(?:safely\s+)?"
    r"(?:wait|stay (?:at )?home)\b",
    r"\b(?:does not|doesn['’]t|do not|don['’]t|no)\s+(?:need|require)\b[^.!?\n]{0,40}?"
    r"\b(?:doctor|emergency|er|ed)\b",
    r"\bwithin\s+(?:the\s+next\s+)?(?:\d+|a few|one|two|three)[\s\d–-]*(?:to\s+\d+\s+)?"
    r"(?:hours?|days?|weeks?)\b",
)
NOT: Final = _any(r"\b(?:no need|not|never|without|rather than|instead of)\b", r"n['’]t\b")
OFFER: Final = _any(
    r"\b(?:would you like|do you want|do you need|shall i|should i|want me to|may i|can i|could i)\b",
    r"\b(?:anything else|any other questions|does (?:that|this) (?:help|make sense)|how can i help)\b",
)
RHETORICAL: Final = _any(
    r"^(?:so,?\s+)?(?:what|when|why|how|who|where)\b[^?]{0,80}?(?:\bshould (?:you|i|we)\b"
    r"|\bto (?:do|watch|expect|look|go|call|seek)\b"
    r"|\b(?:does|could|can|might) (?:this|that|it) (?:mean|be|matter|happen)\b"
    r"|\bis (?:this|it|that) (?:happening|serious|important)\b)",
    r"^why\b",
    r"^what (?:now|next|else)\b",
)
ASKS: Final = _any(
    r"^(?:and|but|or|also|so|first|finally|next|then)?,?\s*"
    r"(?:is|are|was|were|do|does|did|have|has|had|can|could|would|will|any|what"
    r"|when|where|which|who|how|since when|on a scale|for how)\b",
    r"\byour?\b",
    r"\b(?:he|she|they|the (?:pain|patient|child))\b",
)
TELL: Final = _any(
    r"^(?:please,?\s+|also,?\s+|and\s+|first,?\s+|just\s+)*(?:tell me|let me know|describe|share|clarify)\b"
    + _NO_OFFER
)
SEEKS: Final = _any(
    r"\b(?:can|could|would|will) you (?:please |also |just )*"
    r"(?:tell|share|describe|provide|clarify|give|confirm|say|let me know|explain)\b",
    r"\b(?:please |just )?(?:let me know|tell me)\b" + _NO_OFFER,
    r"\b(?:i|we)(?:['’]d| would| will|['’]ll)? (?:still )?(?:need|want|like|have) to "
    r"(?:know|ask|understand|clarify|find out|learn)\b",
    # `If you need more information` offers it.
    r"(?<!\byou )(?<!\byou['’]d )\b(?:need|want|require|like)s? (?:some |a (?:bit|little|few) )?"
    r"(?:more|additional|further|other) (?:information|details?|context|facts)\b",
    r"\b(?:more|additional|further) (?:information|details?) (?:is|are|would be) "
    r"(?:needed|required|helpful|useful)\b",
    r"\bit would help (?:me )?(?:to know|if you)\b",
    r"\ba few (?:more |quick |follow-up )*questions\b",
    r"\bplease (?:provide|share|describe|clarify|answer)\b",
    r"\bwithout (?:knowing|more (?:information|details?))\b",
)
MEASURES: Final = _any(
    r"\b(?:check|measure|take|record|monitor|test|read|track|recheck|do|get)\s+(?:[\w'’]+\s+){0,3}?"
    + _QUANTITY
    + r"\b",
    rf"\b(?:what|how high|how low)\b[^.!?\n]{{0,40}}?\b{_QUANTITY}\b[^.!?\n]{{0,60}}?\?",
    r"\b(?:have|did) you (?:\w+\s+){0,2}?(?:check|measur|tak|record|test|monitor)\w*\b"
    rf"[^.!?\n]{{0,40}}?\b{_QUANTITY}\b",
    rf"\b(?:do you have|have you got)\b[^.!?\n]{{0,30}}?\b{_DEVICE}\b",
    rf"\b(?:do you know|tell me|share)\b[^.!?\n]{{0,30}}?\b{_QUANTITY}\b",
)
OTHERS_MEASURE: Final = _any(
    r"\b(?:they|doctors?|nurses?|clinicians?|providers?|team|staff|hospital|er|ed|physicians?|gp|paramedics)\b"
    r"[^.!?\n]{0,30}?\b(?:will|can|may|might|could|should|would|to)\b"
)
