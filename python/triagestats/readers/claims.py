"""Files that claim the same answers, and files of which nobody knows the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from triagestats.errors import DataError
from triagestats.readers.bounded import File
from triagestats.readers.rows import Ask

__all__ = ["claim", "refuse_nameless"]


def claim(owners: dict[str, File], ids: Iterable[str | None], file: File, what: str) -> None:
    """Note that a file holds answers with these ids, which no other file may hold.

    Parameters
    ----------
    owners
        Which file holds what; it is filled in.
    ids
        Ids that are unique wherever the harness ran; None is nobody's.
    file
        The file that claims them.
    what
        What they are the ids of, such as `run`.

    Raises
    ------
    DataError
        If another file holds one of them; the message names both.
    """
    for own in ids:
        if own is None:
            continue
        other = owners.setdefault(own, file)
        if other is not file:
            raise DataError(
                f"`path`: {other.name!r} and {file.name!r} both hold {what} {own!r}; leave one of them out"
            )


def refuse_nameless(models: Mapping[str, str | None], ask: Ask, harness: str) -> None:
    """Several files that do not name their models may be those of several, and are no repetitions.

    Parameters
    ----------
    models
        The model by the name of the file, None where it does not say.
    ask
        What the caller asked, which may name the model.
    harness
        What the files are called.

    Raises
    ------
    DataError
        If a file does not name its model, the caller does not, and there are other files.
    """
    nameless = [name for name, model in models.items() if model is None]
    if nameless and len(models) > 1 and ask.model is None:
        others = [name for name in models if name != nameless[0]]
        raise DataError(
            f"`model`: {nameless[0]!r} does not say which model it is of, which may be another than that of "
            f"{others[0]!r}; read {harness} files one at a time, each with `model=` and a name, or all with "
            "one name if they are runs of one model"
        )
