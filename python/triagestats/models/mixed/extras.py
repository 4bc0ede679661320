"""Imports of the libraries that the extra `bayes` installs."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from triagestats.errors import ArgumentError

__all__ = ["bayes_library"]


def bayes_library(name: str) -> Any:
    """The module of that name.

    Raises
    ------
    ArgumentError
        If it is not installed.
    """
    try:
        with warnings.catch_warnings():
            # ArviZ tells once a day of its coming refactoring, and PyTensor of compilers it does not find.
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError as error:
        raise ArgumentError(
            f'this needs {name}, which is not installed ({error}): pip install "triagestats[bayes]"'
        ) from error
