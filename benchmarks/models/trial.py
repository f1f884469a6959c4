"""One task, one model, one transport: the program run once, and what came of it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import koi_lang
from benchmarks.models.tasks import AGENT, ANY, EVENT, Task, normalize
from koi_lang.events import Event, StateChanged
from koi_lang.llm.connect import connect
from koi_lang.llm.layers import Layer
from koi_lang.llm.messages import Adapter, Delta, Request, RequestPreview
from koi_lang.program import declarations, loader
from koi_lang.runtime.agents.declarations import Handler

MAX_ANSWER_TOKENS = 256
# A call that its own limit of time does not end is broken off this much later.
GRACE_S = 20.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one trial may take; an answer has at most `MAX_ANSWER_TOKENS`."""

    requests: int = 5
    time_s: float = 60.0


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Setup:
    """The model of a trial and how it is asked.

    Attributes:
        server: base URL of an interface like OpenAI's, with `/v1`.
        transport: a transport of Koi; `auto` leaves it to Koi.
        seed: None for temperature 0, else the seed of an answer at 0.7.
    """

    server: str
    model: str
    transport: str
    seed: int | None = None

    @property
    def sampling(self) -> dict[str, Any]:
        """Temperature and seed as options of an `llm` block."""
        return {"temperature": 0} if self.seed is None else {"temperature": 0.7, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one run of a task.

    Attributes:
        by: the transport, or the name of another library.
        ways: how the answers were asked for in fact: `text`, `schema`, `tools`, or `direct` for a typed result alone.
        output: the lines that it has printed.
        questions: how many it has asked the person.
        error: why there is no result; empty where there is one.
    """

    task: str
    kind: str
    by: str
    seed: int | None
    is_right: bool
    requests: int
    input_tokens: int
    output_tokens: int
    elapsed_s: float
    ways: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    questions: int = 0
    result: Any = None
    error: str = ""


@dataclass(slots=True)
class Effects:
    """What a run prints, asks and sets, collected while it goes on."""

    answers: list[str]
    pieces: list[str] = field(default_factory=list)
    questions: int = 0
    state: dict[str, Any] = field(default_factory=dict)

    def answer(self, question: str, options: object) -> str | None:
        """The next answer of the person; None when there are no more."""
        self.questions += 1
        return self.answers.pop(0) if self.answers else None

    def note(self, event: Event) -> None:
        """Collect the fields of the state that an event changes."""
        if isinstance(event.data, StateChanged):
            self.state |= event.data.updates

    @property
    def output(self) -> tuple[str, ...]:
        """The lines that were printed, without outer blanks."""
        return tuple(line.strip() for line in "\n".join(self.pieces).splitlines())

    def are_right(self, task: Task) -> bool:
        """Whether a task wants these and no others."""
        return (self.output, self.questions, self.state) == (task.output, len(task.answers), dict(task.state))


class ObservedModel(Layer):
    """A model that notes how it is asked.

    Attributes:
        requests: how many there were.
        ways: the ways of those that carry out a playbook, in their order, each once.
    """

    def __init__(self, inner: Adapter) -> None:
        super().__init__(inner)
        self.requests, self.ways = 0, dict[str, None]()

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the answer of the model."""
        self.requests += 1
        if request.task is not None:
            self.ways[way_of(self.preview(request))] = None
        async with aclosing(self.inner(request)) as deltas:  # type: ignore[type-var]
            async for delta in deltas:
                yield delta


def way_of(preview: RequestPreview) -> str:
    """How an answer is asked for: `tools`, `schema`, `text`, or `direct` where the result alone is to be written."""
    form = preview.body.get("response_format") or {}
    if preview.body.get("tools"):
        return "tools"
    if form.get("type") == "json_schema":
        return "schema" if '"intent"' in json.dumps(form) else "direct"
    return "text" if '"intent"' in preview.request.system else "direct"


def write_program(task: Task, folder: Path) -> Path:
    """The path of a task's program in a folder."""
    path = folder / f"{task.name.replace(' ', '-')}.koi"
    path.write_text(task.program, "utf-8")
    return path


def handler_of(task: Task, folder: Path) -> Handler:
    """The handler that a task calls, with the schema of its result; its program is compiled in a folder."""
    agents = declarations.agents_of(loader.load(str(write_program(task, folder))))
    return next(agent.about for agent in agents if agent.about.name == AGENT).handlers[EVENT]


async def run_trial(task: Task, kind: str, setup: Setup, folder: Path, limits: Limits) -> Trial:
    """Run a task once; whatever it raises is its error."""
    effects, model = Effects(list(task.answers)), ObservedModel(_connect(setup))
    program = koi_lang.open(
        write_program(task, folder),
        model=model,
        budget={"requests": limits.requests, "time": limits.time_s},
        ask=effects.answer,
        output=effects.pieces.append,
        folder=folder,
        record=False,
        extensions=False,
    )
    start_s, result, error, tokens = time.monotonic(), None, "", (0, 0)
    try:
        async with program:
            program.subscribe(effects.note)
            try:
                async with asyncio.timeout(limits.time_s + GRACE_S):
                    result = await program.agent(AGENT).call(EVENT, dict(task.args))
            finally:
                tokens = (program.usage.input_tokens, program.usage.output_tokens)
    except TimeoutError:
        error = "the call went on beyond its limit of time"
    except koi_lang.KoiError as failure:
        error = failure.message
    except Exception as failure:  # a defect of Koi ends one trial, and not the bench
        error = f"{type(failure).__name__}: {failure}"
    is_right = not error and effects.are_right(task) and is_right_result(task, result)
    spent = (model.requests, *tokens, round(time.monotonic() - start_s, 2))
    effects_seen = (tuple(model.ways), effects.output, effects.questions)
    return Trial(task.name, kind, setup.transport, setup.seed, is_right, *spent, *effects_seen, result, error)


def is_right_result(task: Task, result: Any) -> bool:
    """Whether a result is the one that a task wants."""
    return task.result is ANY or normalize(result) == normalize(task.result)


def _connect(setup: Setup) -> Adapter:
    options: Mapping[str, Any] = {
        "provider": "openai",
        "model": setup.model,
        "base_url": setup.server,
        "max_tokens": MAX_ANSWER_TOKENS,
        **setup.sampling,
        **({} if setup.transport == "auto" else {"transport": setup.transport}),
    }
    return connect(options, os.environ.get)
