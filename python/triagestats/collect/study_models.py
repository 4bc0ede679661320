"""What a study file may say: its tables as pydantic models."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, field_validator, model_validator

from triagestats.collect.contract import Strict

__all__ = ["Draw", "Limits", "Model", "ScenarioSource", "StudyFile"]

_OPENAI: Final = "https://api.openai.com/v1"
_OPENAI_KEY: Final = "OPENAI_API_KEY"
_OURS: Final = ("messages", "model", "n", "stream")
_KEYS: Final = ("api_key", "authorization", "extra_headers", "headers")
"""Where a key might be put by mistake: what is sent as a parameter is stored."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Column = Annotated[str, StringConstraints(min_length=1)]


class Draw(Strict):
    """A random part of the scenarios, the same for the same seed whatever their order.

    Attributes
    ----------
    n
        How many: in all where `allocation` is proportional, of each stratum where it is equal.
    by
        Columns whose values make the strata; none draws from all.
    allocation
        Whether strata get their share of the scenarios, or the same number each.
    seed
        Default the seed of the study.
    """

    n: int = Field(ge=1)
    by: tuple[Column, ...] = ()
    allocation: Literal["proportional", "equal"] = "proportional"
    seed: int | None = None


class ScenarioSource(Strict):
    """Where the scenarios are: a csv or jsonl file, or rows in the study file.

    Attributes
    ----------
    file, rows
        One of the two.
    id, gold, stratum, cluster
        Columns; recognised by their usual spellings where not named. `gold` takes two for a range.
    carry
        Further columns to have in the response table, such as age or sex.
    draw
        Asks a random part of them only.
    """

    file: str | None = None
    rows: tuple[dict[str, Any], ...] | None = None
    id: Column | None = None
    gold: Column | tuple[Column, Column] | None = None
    stratum: Column | None = None
    cluster: Column | None = None
    carry: tuple[Column, ...] = ()
    draw: Draw | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.file is None) == (self.rows is None):
            raise ValueError("`file` or `rows` must be given, and not both")
        return self


class Model(Strict):
    """A model and where it is asked.

    Attributes
    ----------
    name
        The model in the table.
    model
        What the endpoint calls it; default its name.
    base_url
        Any endpoint that speaks the chat completions of OpenAI; default OpenAI.
    key
        The environment variable that holds the key. Default OPENAI_API_KEY for OpenAI, and none elsewhere.
    parameters
        Sent as they are: `temperature`, `reasoning_effort`, `seed`, `max_tokens`.
    concurrency
        Calls under way at once.
    timeout
        Seconds in which a try must connect, and then in which each next part of the response must come.
    retries
        How often the client tries again after 429, 5xx, a timeout or a cut connection.
    answers
        False for a model that only judges, audits or matches.
    """

    name: Name
    model: Name = ""
    base_url: str = _OPENAI
    key: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    concurrency: int = Field(default=8, ge=1, le=1000)
    timeout: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    retries: int = Field(default=5, ge=0)
    answers: bool = True

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, values: Any) -> Any:
        if isinstance(values, dict):
            values = {"model": values.get("name"), **values}
            if str(values.get("base_url", _OPENAI)).rstrip("/") == _OPENAI:
                values.setdefault("key", _OPENAI_KEY)
        return values

    @field_validator("key")
    @classmethod
    def _variable(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch("[A-Z_][A-Z0-9_]*", value):
            raise ValueError(
                f"must be the name of an environment variable, such as {_OPENAI_KEY}, and never the key "
                f"itself"
            )
        return value

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be a URL such as 'http://localhost:8000/v1'")
        if parts.username or parts.password or parts.query:
            raise ValueError("holds more than an address; give keys by an environment variable with `key`")
        return value.rstrip("/")

    @field_validator("parameters")
    @classmethod
    def _sendable(cls, value: dict[str, Any]) -> dict[str, Any]:
        ours = [name for name in _OURS if name in value]
        if ours:
            raise ValueError(f"cannot set {', '.join(ours)}, which the study sets itself")
        if any(name.lower() in _KEYS for name in value):
            raise ValueError(
                "are sent in the body and stored; give a key by an environment variable with `key`"
            )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"cannot be sent as JSON: {error}") from None
        return value


class Limits(Strict):
    """Where collecting stops. They count what the store holds, so that resuming does not start them anew.

    Attributes
    ----------
    calls
        No call beyond this many.
    tokens
        No call after this many tokens were used; those under way are finished.
    """

    calls: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)


class StudyFile(Strict):
    """The study file as it is written; conditions and judges are read by their own modules."""

    name: Name | None = None
    levels: tuple[Name, ...] | None = None
    repetitions: int = Field(default=1, ge=1)
    seed: int = 1
    scenarios: ScenarioSource
    models: tuple[Model, ...] = Field(min_length=1)
    conditions: tuple[dict[str, Any], ...] = Field(min_length=1)
    judges: tuple[dict[str, Any], ...] = ()
    limits: Limits = Limits()

    @field_validator("levels")
    @classmethod
    def _scale(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (len(value) < 2 or len(set(value)) < len(value)):
            raise ValueError("must hold two or more different labels, from least to most urgent")
        return value
