"""Talking to an endpoint: the `openai` client sends and retries, and what went wrong is told apart."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from triagestats.collect.calls import Call, NoChoices, answer_of
from triagestats.collect.contract import Answer
from triagestats.collect.store import Failure
from triagestats.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from triagestats.collect.study_models import Model

__all__ = ["Endpoint", "Refused", "connect"]

_PASSING: Final = (408, 409, 429)
"""Codes below 500 that the client retries: later the same request may be answered."""
_LONGEST: Final = 300


class Refused(Exception):  # noqa: N818 - becomes a row of the store
    """A call was not answered.

    Attributes
    ----------
    failure
        The code and the reason.
    permanent
        Whether the model would refuse every further call.
    """

    def __init__(self, failure: Failure, *, permanent: bool) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.permanent = permanent


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked.

    Attributes
    ----------
    client
        What sends and retries.
    key
        The key, known so that it is kept out of every message.
    own
        Whether the client was made here, and is closed here.
    """

    client: AsyncOpenAI
    key: str | None = field(repr=False)
    own: bool = True

    async def close(self) -> None:
        """Close the connections, where they are ours."""
        if self.own:
            await self.client.close()

    async def send(self, call: Call) -> tuple[Answer, str]:
        """The answer, and the response as it came.

        Raises
        ------
        Refused
            If there is no answer after the client's retries.
        """
        import openai

        body = dict(call.body)
        model, messages = body.pop("model"), body.pop("messages")
        asked_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        start = time.perf_counter()
        try:
            # The response as text: what it holds is kept also where it is not what the client expects.
            raw = await self.client.chat.completions.with_raw_response.create(
                model=model, messages=messages, extra_body=body
            )
            response = _text(raw.http_response)
            latency = time.perf_counter() - start
            return answer_of(call.key, response, latency=latency, asked_at=asked_at), response
        except openai.APIStatusError as error:
            code = error.status_code
            reason = f"HTTP {code}: {self._said(error.message)}"
            raise Refused(Failure(code, reason), permanent=code < 500 and code not in _PASSING) from None
        except openai.APIConnectionError as error:  # a timeout is one, too
            cause = f" ({type(error.__cause__).__name__})" if error.__cause__ else ""
            raise Refused(Failure(None, self._said(error.message + cause)), permanent=False) from None
        except (openai.OpenAIError, NoChoices) as error:
            raise Refused(Failure(None, self._said(str(error))), permanent=False) from None

    def _said(self, message: str) -> str:
        """A message without the key, which some endpoints repeat, and of bounded length."""
        text = " ".join(message.split())
        if self.key:
            text = text.replace(self.key, "***")
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _text(response: Any) -> str:
    """The body as text: JSON is UTF-8 whatever the header says of it; other bytes as the header says."""
    try:
        return str(response.content, "utf-8-sig")
    except UnicodeDecodeError:
        return str(response.text)


def connect(models: Mapping[str, Model], client: Any, places: Mapping[str, str]) -> dict[str, Endpoint]:
    """An endpoint for each model.

    Parameters
    ----------
    models
        Those that will be asked.
    places
        Where the study says which variable holds the key of a model.
    client
        One `AsyncOpenAI` (or a subclass) for all of them, one by name, or None to make them as the study
        says.

    Raises
    ------
    ArgumentError
        If `client` lacks a model, or the variable with a key is not set.
    ArgumentTypeError
        If a client is no `AsyncOpenAI`.
    """
    if isinstance(client, Mapping):
        absent = [name for name in models if name not in client]
        if absent:
            raise ArgumentError(
                f"`client` has no entry for the models {absent}; give one for each, or one client for all"
            )
        return {name: _given(client[name]) for name in models}
    if client is not None:
        return {name: _given(client) for name in models}
    made: dict[tuple[object, ...], Endpoint] = {}
    found = {}
    for name, model in models.items():
        key = _key(model, places[name])
        # Models of one server share its connections.
        how = (model.base_url, key, model.timeout, model.retries)
        if how not in made:
            made[how] = _made(model, key)
        found[name] = made[how]
    return found


def _given(client: Any) -> Endpoint:
    """The endpoint of a client of the caller, who closes it."""
    from openai import AsyncOpenAI

    if not isinstance(client, AsyncOpenAI):
        raise ArgumentTypeError(
            f"`client` must be an openai.AsyncOpenAI, or a mapping of one for each model; got "
            f"{type(client).__name__}"
        )
    key = getattr(client, "api_key", None)
    return Endpoint(client, key if isinstance(key, str) else None, own=False)


def _key(model: Model, place: str) -> str | None:
    key = None
    if model.key is not None and not (key := os.environ.get(model.key)):
        raise ArgumentError(
            f"{place}: the environment variable {model.key!r}, which holds the key of {model.name!r}, is not "
            f"set: set it (export {model.key}=...), or name another"
        )
    return key


def _made(model: Model, key: str | None) -> Endpoint:
    from openai import AsyncOpenAI

    made = AsyncOpenAI(
        base_url=model.base_url,
        api_key=key or "none",  # servers without keys ignore it
        timeout=model.timeout,
        max_retries=model.retries,
    )
    return Endpoint(made, key)
