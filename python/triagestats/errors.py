"""Exceptions, with one root: `except TriagestatsError` catches everything raised on purpose."""

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "DataError",
    "DesignError",
    "ReadError",
    "RoleError",
    "TriagestatsError",
]


class TriagestatsError(Exception):
    """Root of every error that triagestats raises on purpose.

    The message names the argument, says what was expected and what came, and how to fix it.

    Examples
    --------
    >>> import triagestats as ts
    >>> try:
    ...     ts.ResponseTable({"scenario": ["a"], "score": ["perhaps"]})
    ... except ts.TriagestatsError as error:
    ...     print(str(error).partition(";")[0])
    `score` cannot be read in 1 row, such as 'perhaps'
    """


class ArgumentError(TriagestatsError, ValueError):
    """An argument has a value that cannot be used."""


class ArgumentTypeError(TriagestatsError, TypeError):
    """An argument has a type that cannot be used."""


class ReadError(TriagestatsError, ValueError):
    """A file cannot be read as the table it is said to be."""


class DataError(TriagestatsError, ValueError):
    """The rows of a table contradict each other or cannot be scored."""


class RoleError(DataError):
    """A column role has no column, or more than one candidate."""


class DesignError(TriagestatsError, ValueError):
    """The data cannot answer what was asked, for instance with one cluster."""
