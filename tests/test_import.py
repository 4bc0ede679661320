"""What `import triagestats` costs, and what its names are, in fresh interpreters."""

from __future__ import annotations

import subprocess
import sys

import pytest

import triagestats as ts

HEAVY = {"narwhals", "numpy", "pandas", "rich", "scipy", "typer"}


def fresh(code: str) -> str:
    """Return what a fresh interpreter prints, which sees installed packages only."""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def loaded(code: str) -> set[str]:
    listed = fresh(f"{code}\nimport sys\nprint(*sorted(sys.modules))")
    return {name.partition(".")[0] for name in listed.split()}


def test_import_loads_nothing_heavy_beyond_polars() -> None:
    assert not (loaded("import triagestats") - loaded("import polars")) & HEAVY


def test_listing_and_version_load_nothing_heavy() -> None:
    code = "import triagestats as ts; dir(ts); ts.__all__; ts.__version__; ts.TriagestatsError"
    assert not (loaded(code) - loaded("import polars")) & HEAVY


@pytest.mark.parametrize(
    "code",
    [
        "import triagestats as ts; import triagestats.analyze",
        "import triagestats.analyze; import triagestats as ts",
        "import triagestats as ts; ts.analyze; import triagestats.analyze",
        "import triagestats.analyze, triagestats as ts; import triagestats.analyze",
        "from triagestats.analysis import Analysis; import triagestats as ts",
        "import triagestats.cli, triagestats as ts",
        "import importlib; importlib.import_module('triagestats.analyze'); import triagestats as ts",
        "from triagestats import analyze; import triagestats as ts; assert analyze is ts.analyze",
        "import triagestats as ts; ts.demo_table(); ts.analyze",
    ],
)
def test_analyze_is_the_function_in_any_order(code: str) -> None:
    assert fresh(f"{code}\nprint(type(ts.analyze).__name__, ts.analyze.__name__)") == "function analyze"


def test_the_module_stays_importable_beside_the_function() -> None:
    code = (
        "import importlib, triagestats as ts\n"
        "module = importlib.import_module('triagestats.analyze')\n"
        "print(module.analyze is ts.analyze, module.__name__)"
    )
    assert fresh(code) == "True triagestats.analyze"


def test_public_names_resolve_and_others_do_not() -> None:
    assert set(dir(ts)) == set(ts.__all__)
    assert all(getattr(ts, name) is not None for name in ts.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'analyse'"):
        ts.analyse  # noqa: B018
    with pytest.raises(ImportError):
        exec("from triagestats import analyse")
