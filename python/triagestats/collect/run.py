"""Collect: a study file in, a response table out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triagestats.errors import ArgumentError

if TYPE_CHECKING:
    from triagestats.table import ResponseTable

__all__ = ["collect"]


def collect(
    study: str | Path | Mapping[str, Any],
    client: Any = None,
    *,
    resume: bool = False,
    reparse: bool = False,
    store: str | Path | None = None,
    output: str | Path | None = None,
    metric: str | None = None,
    progress: bool = True,
) -> ResponseTable:
    r"""Ask the models and judges of a study, and give the response table back.

    Every answer is stored before it is used, under a hash of everything that was sent and the repetition.
    Nothing is asked twice; a run that was cut off, however hard, goes on with `resume=True`.

    Parameters
    ----------
    study
        A toml file, or a mapping of what it holds: `scenarios`, `models`, `conditions`, and where wanted
        `levels`, `repetitions`, `seed`, `judges`, `limits`.
    client
        An `openai.AsyncOpenAI` for all models, or a mapping of one for each by name. By default they are
        made from `base_url` and `key` of each model, a `key` being the environment variable that holds it.
    resume
        Go on with a store that is there, with what it has no answer to.
    reparse
        Ask nothing: read the stored answers again, for instance after a change of a contract.
    store
        The SQLite file of the answers. Default beside the study file, under its name with the ending
        `.sqlite`; a study that is no file needs one.
    output
        A parquet file for the table, beside which `manifest.json` says what it was made of.
    metric
        What the table measures, where judges measure several things. `output` has them all.
    progress
        Say how far it has come: a bar on a terminal, a line every 30 seconds elsewhere.

    Returns
    -------
    ResponseTable
        One row an answer, or a judgment of it. Planned answers that were not asked have the status
        `missing`, those that could not be had `error`; `notes` say why models stopped.

    Raises
    ------
    ArgumentError
        If the study says something that cannot be used, with the key and its line, has changed since the
        store was made, or a key is not set.
    ArgumentTypeError
        If `study` or `client` is something else.
    ReadError
        If a file cannot be read or written.

    Notes
    -----
    The `openai` client sends and retries: 429 (as `Retry-After` says, up to a bound), 5xx, timeouts, cut
    connections. What stays unanswered is asked again by the next run with `resume`. An error that repeating
    does not mend (400, 401, 404 and the other 4xx) stops that model, as do 20 failed calls in a row (twice
    its concurrency, if that is more); the others go on.

    Two conditions that send the same share the answer. With `repetitions`, a fixed `seed` among the
    parameters may give the same answer each time.

    Examples
    --------
    A server that speaks the protocol, which answers as the models of this study would:

    >>> import json, threading
    >>> from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    >>> class Model(BaseHTTPRequestHandler):
    ...     def do_POST(self):
    ...         message = {"role": "assistant", "content": "It may be the heart.\nAnswer: C"}
    ...         body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    ...         self.send_response(200)
    ...         self.send_header("content-length", str(len(body)))
    ...         self.end_headers()
    ...         self.wfile.write(body)
    ...     def log_message(self, *said): pass
    >>> server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    >>> threading.Thread(target=server.serve_forever, daemon=True).start()

    The study, and what comes of it:

    >>> import triagestats as ts
    >>> study = {
    ...     "levels": ["A", "B", "C"],
    ...     "scenarios": {"rows": [{"id": "s1", "story": "My chest hurts.", "gold": "C"}]},
    ...     "models": [{"name": "m", "base_url": f"http://127.0.0.1:{server.server_port}/v1"}],
    ...     "conditions": [
    ...         {"name": "letter", "protocol": "prompt", "template": "{{ story }} A, B or C?",
    ...          "answer": {"kind": "letter"}},
    ...     ],
    ... }
    >>> table = ts.collect(study, store=":memory:")
    >>> table.frame.select("scenario", "condition", "response", "score").rows()
    [('s1', 'letter', 'C', 1.0)]
    >>> server.shutdown()
    >>> server.server_close()
    """
    try:
        from triagestats.collect.session import Session
    except ImportError as error:
        raise ArgumentError(
            f'collecting needs {error.name}, which is not installed: pip install "triagestats[collect]"'
        ) from error
    session = Session.of(study, store=store, output=output)
    return session.run(client, resume=resume, reparse=reparse, metric=metric, shown=progress).table
