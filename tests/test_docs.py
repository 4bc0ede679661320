"""Documentation: every public name shows how it is used, and every example runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import triagestats as ts

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(ts.__path__, "triagestats.")
    if not module.name.endswith("_native")
)
PUBLIC = sorted(set(ts.__all__) - {"__version__"})


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_an_example(name: str) -> None:
    documented = inspect.getdoc(getattr(ts, name)) or ""
    assert "Examples\n--------" in documented, f"`{name}` has no section Examples"
    assert doctest.DocTestParser().get_examples(documented), f"the example of `{name}` shows nothing"


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.FAIL_FAST)
    assert result.failed == 0


def test_the_parameters_of_analyze_are_documented() -> None:
    documented = inspect.getdoc(ts.analyze) or ""
    section = documented.partition("Parameters\n")[2].partition("Returns\n")[0]
    names = set()
    for line in section.replace("\\\n", "").splitlines():
        if line and not line.startswith((" ", "-")):
            names |= {name.strip() for name in line.split(",")}
    assert names == set(inspect.signature(ts.analyze).parameters)


def test_the_code_of_the_readme_runs() -> None:
    readme = Path(__file__).parents[1] / "README.md"
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 3
    exec(compile("\n".join(blocks), str(readme), "exec"), {})  # each block goes on from the one before
