"""`koi_lang.open` and `koi_lang.run`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutinefunction
from pathlib import Path
from reprlib import Repr
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, Unpack

from koi_lang.api.advice import advising
from koi_lang.api.program import Program, RunResult, run_to_end
from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError
from koi_lang.lazy import lazy_module
from koi_lang.llm.messages import Adapter
from koi_lang.program import declarations, loader
from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest, Host, NobodyToAskError, choose_option
from koi_lang.runtime.journal.calls import PYTHON
from koi_lang.runtime.outside_calls import opens_programs
from koi_lang.sessions.options import LIMITS, PYTHON_HELP, RunOptions, is_rule
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.settings import project, read_settings, trust_in_folder
from koi_lang.settings.efforts import EFFORTS, effort_help

if TYPE_CHECKING:
    from koi_lang.cli.ui import terminal
else:
    terminal = lazy_module("koi_lang.cli.ui.terminal")

Place = str | os.PathLike[str]
# How values are shown that are none.
SHORT = Repr()


class OpenOptions(TypedDict, total=False):
    """The options of an opened program.

    Attributes:
        model: `provider/model`, or an object that answers, such as `koi_lang.ScriptedModel([…])`. Without one
            `koi.toml` and the program decide.
        effort: how much models think: `none`, `low`, `medium` or `high`. Without it the program decides.
        budget: the most that all calls together may take: `usd`, `tokens`, `requests`; `turns` of each playbook,
            `time` in seconds of each call, and `concurrency`, requests at once. They add to what agents declare.
        payload: fields that `run` statements pass on beside their own.
        allow: what is allowed without asking, such as `shell:git status` or `mcp:files:write_*`.
        ask: gives the answer to a question, given that and the answers to choose from; may be async.
        approve: whether something is allowed, given what, with what and by which agent: True, False, or `"always"`; may
            be async. Without it nothing is allowed that is not allowed beforehand.
        output: takes what the program prints, and is not async; `print` without one.
        folder: where `koi.toml`, `.env` and the registry are looked for, and journals are written; the current one
            without.
        record: whether a journal is written; by default it is, where that is possible.
        keys: a file with lines NAME=VALUE whose keys come before all others.
        rehearse: whether playbooks are followed without a model; without it, one that has none is an error.
        extensions: whether installed extensions are used, which they are by default.
        trust_folder: whether all settings of the folder count; without it, those that widen what the program may do
            count where the person trusts the folder (`koi trust`).
    """

    model: str | Adapter | None
    effort: str | None
    budget: Mapping[str, float] | None
    payload: Mapping[str, Any] | None
    allow: Sequence[str]
    ask: Ask | None
    approve: Approve | None
    output: Callable[[str], object] | None
    folder: Place | None
    record: bool | None
    keys: Place | None
    rehearse: bool
    extensions: bool
    trust_folder: bool


@opens_programs
def open(program: Place | ModuleType, **options: Unpack[OpenOptions]) -> Program:
    """A program for `async with`, inside of which its agents are called; see `OpenOptions`.

    Args:
        program: the path of a `.koi` file, or its module.

    Raises:
        CompileError: the program has errors.
        UsageError: there is no such file, or an option is none.
    """
    with advising():
        return Program(_prepare_program(program, options, PYTHON), _host(options))


def run(program: Place | ModuleType, **options: Unpack[OpenOptions]) -> RunResult:
    """Carry out the `run` statements of a program to their end, as `koi run` does; see `OpenOptions`.

    Questions go to the person at the terminal, unless there are callbacks.

    Raises:
        KoiError: the program fails.
        UsageError: it runs nothing, or an event loop is running.
        KeyboardInterrupt: Ctrl-C has ended it.
    """
    with advising():
        ready = _prepare_program(program, options, "run")
        _require_no_loop(ready)
    is_answered = any(options.get(name) for name in ("ask", "approve", "output"))
    host = _host(options) if is_answered else terminal.Terminal()
    return run_interruptible(run_to_end(Program(ready, host)))


def _require_no_loop(ready: Prepared) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    name = Path(ready.path).name
    help = f'Write `async with koi_lang.open("{name}") as program: await program.run()`.'
    raise UsageError("`koi_lang.run` cannot be used where an event loop is running, as in a notebook", help=help)


def _host(options: OpenOptions) -> Host:
    return CallbackHost(options.get("ask"), options.get("approve"), options.get("output") or print)


def _prepare_program(program: Place | ModuleType, options: OpenOptions, command: str) -> Prepared:
    check_options(program, options)
    folder = Path(options.get("folder") or Path.cwd()).absolute()
    model = options.get("model")
    keys = options.get("keys")
    path = os.fspath(str(program.__file__) if isinstance(program, ModuleType) else program)
    settings = read_settings(folder)
    if options.get("trust_folder", False):
        settings = replace(settings, is_trusted=True)
    elif settings.files and not settings.is_trusted:
        print(f"warning: {trust_in_folder(settings).note}", file=sys.stderr)
    said = RunOptions(
        rehearse=options.get("rehearse", False),
        missing_model_help="" if options.get("rehearse", False) else PYTHON_HELP,
        allow=_rules(options.get("allow", ())),
        limits=_limits(options.get("budget") or {}),
        payload=dict(options.get("payload") or {}),
        record=options.get("record"),
        model=model if isinstance(model, str) else None,
        effort=options.get("effort"),
        keys=None if keys is None else os.fspath(keys),
        no_extensions=not options.get("extensions", True),
        settings=settings,
    )
    said = replace(said, words=(command, os.path.abspath(path), *_words(said)))
    adapter = None if model is None or isinstance(model, str) else model
    entry = loader.load_compiled(path)
    loader.unload_changed(entry)
    ready = prepare_program(path, entry, said, adapter)
    declarations.require_servers(ready.module, said.settings)
    return ready


def _words(said: RunOptions) -> Iterator[str]:
    """The equivalent words of a command line, for resuming the run."""
    args = json.dumps(said.payload) if said.payload else None
    values = {"-m": said.model, "-e": said.effort, "--keys": said.keys, "--args": args}
    values |= {f"--max-{name}": str(most) for name, most in said.limits.items()}
    for option, value in values.items():
        yield from () if value is None else (option, value)
    for rule in said.allow:
        yield from ("--allow", rule)
    yield from (["--rehearse"] if said.rehearse else []) + (["--no-extensions"] if said.no_extensions else [])


def _rules(given: Sequence[str]) -> tuple[str, ...]:
    for rule in given:
        if not is_rule(rule):
            help = "Write `run`, `run:ls *`, `mcp:files:write_*`, or `mcp:files:model` to have a server ask the model."
            raise UsageError(f"the rule `{rule}` allows nothing", help=help)
    return tuple(given)


def _limits(budget: Mapping[str, float]) -> dict[str, Any]:
    for name, most in budget.items():
        if name not in LIMITS:
            raise UsageError(f"a budget has no `{name}`", help=suggestion(name, list(LIMITS), "limit"))
        is_whole = name in project.WHOLE
        if type(most) not in ((int,) if is_whole else (int, float)) or most <= 0:
            kind = "whole number" if is_whole else "number"
            raise UsageError(f"`{name}` of a budget is {most!r}", help=f"Give a {kind} above 0.")
    return dict(budget)


# What is asked, and the answers to choose from; gives the answer, or None where nobody answers.
Ask: TypeAlias = Callable[[str, Sequence[str]], "str | Awaitable[str | None] | None"]
# What is wanted, with what, and by which agent; gives whether that is allowed, `always` for the rest of the run.
Approve: TypeAlias = Callable[[str, str, str], "bool | str | Awaitable[bool | str | None] | None"]
ANSWERS: dict[Any, Approval] = {True: "yes", False: "no", None: "no", "yes": "yes", "always": "always", "no": "no"}
LOG = logging.getLogger("koi_lang")


@dataclass(frozen=True, slots=True)
class CallbackHost:
    """A host that asks callbacks, which may be async. Without one nobody answers, and nothing is allowed.

    Attributes:
        output: takes what the program prints, a piece at a time.
    """

    on_question: Ask | None = None
    on_approval: Approve | None = None
    output: Callable[[str], object] = print

    def print(self, text: str) -> None:
        """Hand on a piece of output."""
        self.output(text)

    def log(self, text: str) -> None:
        """Log a line that is not output as `koi_lang`."""
        LOG.warning("%s", text)

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask; an option may be named by its number. Raises NobodyToAskError."""
        on_question = self.on_question
        answer = None if on_question is None else await _answer_of(lambda: on_question(question, options))
        if answer is None:
            help = "Give `koi_lang.open` a callback: `ask=lambda question, options: …`."
            raise NobodyToAskError(f"nobody answers the question `{question.strip()}`", help=help)
        return choose_option(str(answer).strip(), options)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask for permission. Raises NobodyToAskError without a callback."""
        on_approval = self.on_approval
        if on_approval is None:
            help = "Give `koi_lang.open` a callback: `approve=lambda what, detail, agent: …`."
            raise NobodyToAskError(f"nobody can be asked for permission to {request.what}", help=help)
        answer = await _answer_of(lambda: on_approval(request.what, request.detail, request.agent))
        if isinstance(answer, bool | str | None) and answer in ANSWERS:
            return ApprovalDecision(ANSWERS[answer])
        raise UsageError(f"`approve` gave {answer!r}", help='Give True, False, or "always".')

    async def secret(self, name: str) -> str:
        """Ask for a value that is not shown. Raises NobodyToAskError."""
        return await self.ask(f"{name}:")


async def _answer_of(callback: Callable[[], Any]) -> Any:
    """The result of a callback, sync or async. Raises NobodyToAskError if it was cancelled, but the asker was not."""
    try:
        given = callback()
        return await given if isawaitable(given) else given
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        help = "Have the callback give None, or False, where there is no answer."
        raise NobodyToAskError("nobody answers: the callback was cancelled", help=help) from error


T = TypeVar("T")


class Interrupt:
    """The handler of SIGINT: the first one ends the work in order, also where it computes; the next one at once."""

    def __init__(self) -> None:
        self._scope = CancelScope()
        self._is_asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Cancel the work at the first signal; raise KeyboardInterrupt at the next one."""
        if self._is_asked:
            raise KeyboardInterrupt
        self._is_asked = True
        self._scope.cancel()

    async def around(self, work: Coroutine[Any, Any, T]) -> tuple[T] | None:
        """The result of some work; None when it was ended."""
        async with self._scope:
            return (await work,)
        return None


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """The result of some work in its own event loop, like `asyncio.run`.

    Raises:
        KeyboardInterrupt: SIGINT has ended it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return asyncio.run(work)
    interrupt = Interrupt()
    signal.signal(signal.SIGINT, interrupt)
    try:
        outcome = asyncio.run(interrupt.around(work))
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if outcome is None:
        raise KeyboardInterrupt
    return outcome[0]


def _is_place(given: Any) -> bool:
    return isinstance(given, str) or (isinstance(given, os.PathLike) and isinstance(os.fspath(given), str))


def _is_program(given: Any) -> bool:
    return _is_place(given) or (isinstance(given, ModuleType) and isinstance(given.__file__, str))


def _is_model(given: Any) -> bool:
    return isinstance(given, str) or (callable(given) and not isinstance(given, type))


def _is_output(given: Any) -> bool:
    return callable(given) and not iscoroutinefunction(given) and not iscoroutinefunction(type(given).__call__)


def _is_object(given: Any) -> bool:
    return isinstance(given, Mapping) and all(isinstance(name, str) for name in given)


def _is_list_of_texts(given: Any) -> bool:
    return isinstance(given, list | tuple | set | frozenset) and all(isinstance(rule, str) for rule in given)


def _is_switch(given: Any) -> bool:
    return isinstance(given, bool)


# Of each option: whether it may be None, what a value has to be, and what to give.
CHECKS: dict[str, tuple[bool, Callable[[Any], bool], str]] = {
    "model": (True, _is_model, 'Give `"provider/model"`, or an object such as `koi_lang.ScriptedModel([…])`.'),
    "effort": (True, lambda given: given in EFFORTS, effort_help(None)),
    "budget": (True, _is_object, 'Give limits by their names, such as `budget={"usd": 0.1}`.'),
    "payload": (True, _is_object, 'Give fields by their names, such as `payload={"topic": "tea"}`.'),
    "allow": (False, _is_list_of_texts, 'Give a list of rules, such as `allow=["run"]`.'),
    "ask": (True, callable, "Give a function: `ask=lambda question, options: …`."),
    "approve": (True, callable, "Give a function: `approve=lambda what, detail, agent: …`."),
    "output": (True, _is_output, "Give a function that takes a text and is not async, such as `print`."),
    "folder": (True, _is_place, "Give the path of a folder."),
    "record": (True, _is_switch, "Give True or False."),
    "keys": (True, _is_place, "Give the path of a file."),
    "rehearse": (False, _is_switch, "Give True or False."),
    "extensions": (False, _is_switch, "Give True or False."),
    "trust_folder": (False, _is_switch, "Give True or False."),
}


def check_options(program: Any, options: Mapping[str, Any]) -> None:
    """Check the options of a program. Raises UsageError for an invalid one."""
    if not _is_program(program):
        help = "Give the path of a `.koi` file, or its module."
        raise UsageError(f"{SHORT.repr(program)} is no program", help=help)
    for name, given in options.items():
        if name not in CHECKS:
            raise UsageError(f"there is no option `{name}`", help=suggestion(name, list(CHECKS), "option"))
        may_be_none, is_right, help = CHECKS[name]
        if not (is_right(given) if given is not None else may_be_none):
            raise UsageError(f"the option `{name}` cannot be {SHORT.repr(given)}", help=help)
