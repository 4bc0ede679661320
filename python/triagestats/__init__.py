"""Statistics for evaluations of language models, with uncertainty that respects shared scenarios."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from triagestats.errors import TriagestatsError

if TYPE_CHECKING:
    from triagestats.analysis import Analysis
    from triagestats.analyze import analyze
    from triagestats.bootstraps import bootstrap, cluster_bootstrap, paired_bootstrap
    from triagestats.demo import demo_table
    from triagestats.estimands import AnchoringGap, Difference, Estimand, Function, Gap, Mean
    from triagestats.estimates import Estimates
    from triagestats.permute import permutation_test
    from triagestats.permute_table import PermutationTests, permutation_tests
    from triagestats.results import Note, Test
    from triagestats.table import ResponseTable

__all__ = [
    "Analysis",
    "AnchoringGap",
    "Difference",
    "Estimand",
    "Estimates",
    "Function",
    "Gap",
    "Mean",
    "Note",
    "PermutationTests",
    "ResponseTable",
    "Test",
    "TriagestatsError",
    "__version__",
    "analyze",
    "bootstrap",
    "cluster_bootstrap",
    "demo_table",
    "paired_bootstrap",
    "permutation_test",
    "permutation_tests",
]

# Each name loads its module on first use: numpy, scipy and narwhals stay out of `import triagestats`.
_HOMES = {
    "Analysis": "analysis",
    "AnchoringGap": "estimands",
    "Difference": "estimands",
    "Estimand": "estimands",
    "Estimates": "estimates",
    "Function": "estimands",
    "Gap": "estimands",
    "Mean": "estimands",
    "Note": "results",
    "PermutationTests": "permute_table",
    "ResponseTable": "table",
    "Test": "results",
    "analyze": "analyze",
    "bootstrap": "bootstraps",
    "cluster_bootstrap": "bootstraps",
    "demo_table": "demo",
    "paired_bootstrap": "bootstraps",
    "permutation_test": "permute",
    "permutation_tests": "permute_table",
}


class _Package(ModuleType):
    """Keeps `triagestats.analyze` the function: an import of the module of that name would replace it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _HOMES and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("triagestats")
    if name in _HOMES:
        value = getattr(import_module(f"triagestats.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
