"""Programs run inside the test process: their text to what they should do, and a run to what it did."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from koi_lang.errors import exit_code
from koi_lang.events import Event
from koi_lang.llm.connect import connect
from koi_lang.llm.messages import Adapter, Request
from koi_lang.llm.scripted import Answers, ScriptedModel, read_answers
from koi_lang.program import declarations, loader
from koi_lang.program.error_report import explain
from koi_lang.program.files import absolute
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.host import SilentHost
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from koi_lang.settings import read_settings
from tests.limits import LIMIT_S

MARK = re.compile(r"//\s*(expect|expect-log|expect-told|expect-error|expect-warning|stdin|answers):(?: (.*))?$")


@dataclass(frozen=True, slots=True)
class Script:
    """What a program states about its run, in comments at the ends of lines.

    Attributes:
        printed: `expect:`, lines on stdout.
        logged: `expect-log:`, lines on stderr.
        told: `expect-told:`, lines of the playbooks that a model was given, one request after the other.
        error: `expect-error:`, a text in the message the run ends with; None when it ends well.
        warnings: `expect-warning:`, texts in the warnings of the compiler, in order.
        stdin: `stdin:`, what the person answers.
        answers: `answers:`, JSON, or a file `….answers.json` beside the program; None without a script.
    """

    printed: tuple[str, ...]
    logged: tuple[str, ...]
    told: tuple[str, ...]
    error: str | None
    warnings: tuple[str, ...]
    stdin: tuple[str, ...]
    answers: Answers | None

    @property
    def states_something(self) -> bool:
        """Whether the program says what comes of it."""
        return bool(self.printed or self.logged or self.told or self.error)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did.

    Attributes:
        error: the message a person gets, empty when the run ended well.
        code: the exit code.
        requests: what the model was asked, where it was scripted.
    """

    printed: tuple[str, ...]
    logged: tuple[str, ...]
    warnings: tuple[str, ...]
    error: str
    code: int
    requests: tuple[Request, ...]
    events: tuple[Event, ...]

    @property
    def told(self) -> tuple[str, ...]:
        """The lines of the playbooks in the requests."""
        playbooks = [request.task.playbook for request in self.requests if request.task is not None]
        return tuple(line for playbook in playbooks for line in playbook.split("\n"))


@dataclass(slots=True)
class RecordingHost(SilentHost):
    """A host that keeps what it is given and answers questions from a list."""

    answers: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)

    def print(self, text: str) -> None:
        """Keep the lines of a piece of output."""
        self.printed += text.split("\n")

    def log(self, text: str) -> None:
        """Keep the lines of something that is not output."""
        self.logged += text.split("\n")

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """The next answer. Raises NobodyToAskError when there is none."""
        if self.answers:
            return self.answers.pop(0)
        return await SilentHost.ask(self, question, options)


def read_script(path: Path) -> Script:
    """What a program states about its run."""
    found: dict[str, list[str]] = {}
    for match in filter(None, map(MARK.search, path.read_text(encoding="utf-8").split("\n"))):
        found.setdefault(match[1], []).append(match[2] or "")
    errors = found.get("expect-error", [None])
    return Script(
        tuple(found.get("expect", ())),
        tuple(found.get("expect-log", ())),
        tuple(found.get("expect-told", ())),
        errors[0],
        tuple(found.get("expect-warning", ())),
        tuple(found.get("stdin", ())),
        _answers(path, found.get("answers", [])),
    )


def _answers(path: Path, lines: Sequence[str]) -> Answers | None:
    beside = path.with_suffix(".answers.json")
    if beside.is_file():
        return read_answers(beside)
    if not lines:
        return None
    values = [json.loads(line) for line in lines]
    if isinstance(values[0], dict):
        return {key: answers for value in values for key, answers in value.items()}
    return [answer for value in values for answer in value]


def run_file(
    path: Path, folder: Path, *, stdin: Sequence[str] = (), answers: Answers | None = None, allow: Sequence[str] = ()
) -> Outcome:
    """Compile a program anew and run it.

    Args:
        folder: where the registry is.
        stdin: what the person answers.
        answers: a script for the model; without one the program's own `llm` block decides, offline.
        allow: what is allowed without asking the person.
    """
    host, model = RecordingHost(list(stdin)), None if answers is None else ScriptedModel(answers)
    events: list[Event] = []
    entry = loader.load_compiled(str(path), fresh=True)
    try:
        module = loader.module_of(absolute(str(path)), None, entry)
        services = Services(
            connect=lambda llm: _model(llm, model, host),
            host=host,
            teams=lambda: declarations.teams_of(module),
            folder=folder,
            settings=read_settings(),
            evaluate=evaluate,
            consumers=(events.append,),
            allow=allow,
        )
        error = asyncio.run(_failure_of(module, services))
    finally:
        loader.unload()
    return Outcome(
        tuple(host.printed),
        tuple(host.logged),
        entry.warnings,
        "" if error is None else explain(error),
        0 if error is None else exit_code(error),
        () if model is None else tuple(model.requests),
        tuple(events),
    )


def _model(llm: Mapping[str, Any], scripted: ScriptedModel | None, host: RecordingHost) -> Adapter:
    return connect(llm, lambda name: None, on_note=host.log) if scripted is None else scripted


async def _failure_of(module: ModuleType, services: Services) -> Exception | None:
    """Run a program; gives the error it ends with, None when it ends well."""
    try:
        async with asyncio.timeout(LIMIT_S), Run(services):
            await module.main()
    except Exception as error:  # becomes part of the outcome
        return error
    return None
