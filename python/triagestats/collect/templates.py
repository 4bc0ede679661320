"""Prompt templates: Jinja2, where a name that nothing defines is an error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final

from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from triagestats.errors import ArgumentError

__all__ = ["PromptText", "Template", "packaged_prompt"]

# What a scenario holds is a value, not a template: braces in it arrive as they are.
_ENVIRONMENT: Final = SandboxedEnvironment(
    undefined=StrictUndefined,
    autoescape=False,  # prompts are no HTML
    keep_trailing_newline=True,
    trim_blocks=True,
    finalize=lambda value: "" if value is None else value,  # a blank cell is no word
)

# What a prompt holds must be the same each time: its answer is found again by what was sent.
del _ENVIRONMENT.filters["random"], _ENVIRONMENT.globals["lipsum"]


class Template(BaseModel):
    """A prompt with places for what a scenario holds.

    Attributes
    ----------
    source
        The text with `{{ name }}` where a value goes.
    origin
        Where it came from: a file, a prompt of the package, or nothing for text in the study file.

    Examples
    --------
    >>> from triagestats.collect.templates import Template
    >>> template = Template(source="{{ story }} What should I do?")
    >>> sorted(template.names)
    ['story']
    >>> template.render({"story": "My {left} arm hurts."})
    'My {left} arm hurts. What should I do?'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    origin: str | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that must be given; not those that it asks `is defined` of, or has a default for."""
        tree = _ENVIRONMENT.parse(self.source)
        asked: list[nodes.Expr | None] = [
            test.node for test in tree.find_all(nodes.Test) if test.name in ("defined", "undefined")
        ]
        asked += [made.node for made in tree.find_all(nodes.Filter) if made.name in ("default", "d")]
        optional = {node.name for node in asked if isinstance(node, nodes.Name)}
        return frozenset(meta.find_undeclared_variables(tree)) - optional

    def render(self, values: Mapping[str, Any]) -> str:
        """The prompt with the values in their places.

        Raises
        ------
        ArgumentError
            If a name is not defined, or what the template does with a value cannot be done.
        """
        try:
            return str(self._compiled.render(dict(values)))
        except Exception as error:  # noqa: BLE001 - a template can raise whatever Python can
            where = f" {self.origin}" if self.origin else ""
            raise ArgumentError(
                f"`template`{where} cannot be filled in: {error}; the names that it may use are "
                f"{', '.join(sorted(values))}"
            ) from None

    @cached_property
    def _compiled(self) -> Any:
        return _ENVIRONMENT.from_string(self.source)


def packaged_prompt(name: str) -> Template:
    """A prompt of this package, `collect/prompts/NAME.j2`.

    Raises
    ------
    ArgumentError
        If there is none of that name.
    """
    folder = files("triagestats.collect").joinpath("prompts")
    found = folder.joinpath(f"{name}.j2")
    if not found.is_file():
        names = (item.name for item in folder.iterdir())
        known = sorted(name.removesuffix(".j2") for name in names if name.endswith(".j2"))
        raise ArgumentError(f"`prompt` must be one of {', '.join(known)}; got {name!r}")
    return Template(source=found.read_text(encoding="utf-8"), origin=f"prompt {name}")


def _template(value: object, info: ValidationInfo) -> Template:
    """Text, `{ file = "..." }` or `{ prompt = "..." }` as a template whose syntax is right."""
    if isinstance(value, Template):
        return value
    if isinstance(value, str):
        template = Template(source=value)
    elif isinstance(value, dict) and set(value) == {"file"} and isinstance(value["file"], str):
        folder = info.context["setting"].folder if info.context else Path()
        path = folder / value["file"]
        try:
            template = Template(source=path.read_bytes().decode("utf-8"), origin=value["file"])
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{str(path)!r} cannot be read: {error}") from None
    elif isinstance(value, dict) and set(value) == {"prompt"} and isinstance(value["prompt"], str):
        template = packaged_prompt(value["prompt"])  # an ArgumentError is a ValueError
    else:
        raise ValueError(
            f'must be text, {{ file = "..." }} or {{ prompt = "..." }} for one of the package; got {value!r}'
        )
    try:
        _ENVIRONMENT.compile(template.source)  # finds unknown filters, which parsing does not
    except TemplateSyntaxError as error:
        where = f" of {template.origin}" if template.origin else ""
        raise ValueError(f"line {error.lineno}{where} is no template: {error.message}") from None
    return template


PromptText = Annotated[Template, BeforeValidator(_template)]
"""A field that holds a prompt: text, a file of the user, or a prompt of the package."""
