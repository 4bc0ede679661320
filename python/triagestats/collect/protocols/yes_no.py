"""Yes and no as models write them."""

from __future__ import annotations

__all__ = ["as_bool", "as_texts"]


def as_bool(value: object) -> bool | None:
    """A truth value from JSON or a word; None where it is neither.

    Examples
    --------
    >>> from triagestats.collect.protocols.yes_no import as_bool
    >>> as_bool("Yes"), as_bool(0), as_bool("perhaps")
    (True, False, None)
    """
    if isinstance(value, bool):
        return value
    word = str(value).strip().strip(".").lower()
    if word in ("true", "yes", "y", "1"):
        return True
    return False if word in ("false", "no", "n", "0") else None


def as_texts(value: object) -> tuple[str, ...] | None:
    """A list of short texts; one text is a list of one, null and words for nothing are none.

    None stands for what is no list, such as a number.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return None
    texts = (str(item).strip() for item in value if item is not None)
    return tuple(text for text in texts if text and text.lower().strip(".") not in ("none", "n/a", "nothing"))
