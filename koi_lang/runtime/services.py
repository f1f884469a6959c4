"""What a run needs from the world above it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import KoiError
from koi_lang.runtime.agents.declarations import Team
from koi_lang.runtime.hooks.additions import NOTHING_ADDED, Additions
from koi_lang.runtime.host import Host, SilentHost
from koi_lang.runtime.mcp.sign_in import SignIn

if TYPE_CHECKING:
    from koi_lang.llm.embeddings import Embedder
    from koi_lang.llm.messages import Adapter
    from koi_lang.runtime.journal.history import History

Connect = Callable[[Mapping[str, Any]], "Adapter"]
ConnectEmbedder = Callable[[Mapping[str, Any]], "Embedder"]
Evaluate = Callable[[str, Mapping[str, Any]], Any]


def _no_expressions(text: str, names: Mapping[str, Any]) -> Any:
    raise KoiError("expressions are not available in this run")


@dataclass(slots=True)
class Services:
    """What a run needs from the world above it.

    Attributes:
        connect: makes a model from the settings of an `llm` block.
        connect_embedder: makes one for embeddings; None where none is to be asked.
        teams: gives all teams of the program, for agents that use none.
        folder: where the registry of the run is.
        config: the content of `.koi-config.json`.
        consumers: are told every event.
        payload: fields that `run` statements pass on beside their own.
        evaluate: computes an expression over names, safely; for conditions and references in actions.
        limits: from the command line or `koi.toml`: tokens, usd and time (seconds) for the whole run, turns for each
            playbook (counts before what agents declare), and the fields of `Patience`.
        clock: seconds that only grow.
        allow: permissions given beforehand, such as `shell` or `shell:git status`.
        verbatim: whether events carry all that a model is told.
        detailed: whether events carry what handlers and actions are given and give, and what models answer.
        redact: takes secrets out of a text, as whoever keeps the events does.
        past: what an earlier run came to, where this one goes on from it or repeats it.
        id: names the run; empty makes a new name.
        seed: what random numbers of the program follow from; empty makes a new one.
        models: the settings of models by purpose, such as `small`, for agents that declare none for it.
        added: what extensions add; for one run only.
        note: is told what the person may have got wrong, a line each.
        sign_in: how to sign in to MCP servers; None where that is not possible.
    """

    connect: Connect
    host: Host = field(default_factory=SilentHost)
    teams: Callable[[], Sequence[Team]] = tuple
    folder: Path = field(default_factory=Path.cwd)
    config: Mapping[str, Any] = field(default_factory=dict)
    consumers: Sequence[Callable[[Any], None]] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    evaluate: Evaluate = _no_expressions
    limits: Mapping[str, Any] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    allow: Sequence[str] = ()
    verbatim: bool = False
    detailed: bool = False
    redact: Callable[[str], str] = str
    past: History | None = None
    id: str = ""
    seed: str = ""
    models: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    connect_embedder: ConnectEmbedder | None = None
    added: Additions = NOTHING_ADDED
    note: Callable[[str], None] = lambda line: None
    sign_in: SignIn | None = None
