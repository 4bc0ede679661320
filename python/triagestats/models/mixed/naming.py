"""Names of what a mixed model estimates: dimensions of its arrays, and labels of thresholds."""

from __future__ import annotations

from typing import Final

from triagestats.models.mixed.matrix import MixedMatrix, RandomPart

__all__ = [
    "correlation_name",
    "deviation_name",
    "dimension",
    "effect_dimension",
    "grouped",
    "threshold_names",
    "written",
]

_TAKEN: Final = ("chain", "draw", "term", "threshold", "cell", "level", "coefficients", "thresholds", "sigma")


def dimension(part: RandomPart) -> str:
    """Name of the dimension of the levels of a part."""
    name = ":".join(part.parts)
    return f"{name}_" if name in _TAKEN else name


def effect_dimension(part: RandomPart) -> str:
    """Name of the dimension of the effects that a level has."""
    return f"effect of {part.name}"


def threshold_names(matrix: MixedMatrix) -> tuple[str, ...]:
    """`A|B` for the threshold between two levels."""
    return tuple(f"{low}|{high}" for low, high in zip(matrix.levels, matrix.levels[1:], strict=False))


def deviation_name(part: RandomPart, effect: int) -> str:
    """What the standard deviation of an effect of a part is called: the part, or the effect in it."""
    return part.name if part.width == 1 else f"{part.z_names[effect]} | {':'.join(part.parts)}"


def correlation_name(part: RandomPart, one: int, other: int) -> str:
    """What the correlation of two effects of a part is called."""
    return f"{part.z_names[one]}, {part.z_names[other]} | {':'.join(part.parts)}"


def written(name: str) -> str:
    """A column as a formula names it."""
    return name if name.isidentifier() else f"`{name}`"


def grouped(matrix: MixedMatrix, name: str) -> list[int]:
    """Places of the random parts with the same grouping as the one of that name."""
    parts = next(part.parts for part in matrix.random if part.name == name)
    return [place for place, part in enumerate(matrix.random) if part.parts == parts]
