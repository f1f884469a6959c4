"""The cell magic `%%koi`."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import click
from IPython.core.magic import Magics, cell_magic, magics_class

from koi_lang.api import entry
from koi_lang.api.program import Program, ProgramUsage, RunResult, run_to_end
from koi_lang.cli.options import add_options, allow_option, fields_of, limiting_options, seconds
from koi_lang.errors import ProgramError
from koi_lang.events import Event, HandlerEnded
from koi_lang.llm import scripted
from koi_lang.program import typed_code
from koi_lang.program.error_report import explain
from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.sessions.options import LIMITS
from koi_lang.system.text_width import clean


@click.command("%%koi", add_help_option=False)
@click.option("--name", metavar="NAME", help="The variable that the result is bound to.")
@click.option("--arg", "pairs", multiple=True, metavar="NAME=VALUE", help="Set a field of what `run` passes on.")
@click.option("--answers", metavar="FILE", help="Take the model's answers from a file.")
@click.option("--rehearse", is_flag=True, help="Follow playbooks without a model.")
@add_options(allow_option, *limiting_options("the whole run", "until the last playbook ends"))
def line_options(**given: Any) -> dict[str, Any]:
    """The command line of `%%koi`."""
    return given


class CellError(Exception):
    """A cell has failed; it is shown in Koi's words alone."""

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows instead of a traceback."""
        return str(self).split("\n")


@magics_class
class KoiMagics(Magics):
    """Programs in cells."""

    @cell_magic
    def koi(self, line: str, cell: str) -> CellResult | None:
        """Run the program in a cell: declarations with `run`, or statements, which may follow declarations.

        Options are those of `koi run`: `-m MODEL`, `-e EFFORT`, `--arg NAME=VALUE`, `--answers FILE`, `--rehearse`,
        `--allow RULE`, `--max-usd USD` and further limits; `--name x` binds the result to `x` instead of showing it.
        """
        name = ""
        result = None
        failure = None
        try:
            name, result = _run_cell(line, cell)
        except Exception as error:  # told to the person; the cell has failed
            failure = CellError(clean(_explain(error)))
        if failure is not None:  # raised here, since IPython shows what an error came from where that is a group
            raise failure
        if not name:
            return result
        assert self.shell is not None, "magics are called by a shell"
        self.shell.user_ns[name] = result
        return None


def _run_cell(line: str, cell: str) -> tuple[str, CellResult]:
    """Run a cell; gives the name for its result, and that. Raises as its program does."""
    given = line_options.main(shlex.split(line), standalone_mode=False)
    return given["name"] or "", CellRun(print, input).run(typed_code.keep(cell, Path.cwd()), _options(given))


def _options(given: dict[str, Any]) -> entry.OpenOptions:
    limits = {name: given[f"max_{name}"] for name in LIMITS if given[f"max_{name}"] is not None}
    if "time" in limits:
        limits["time"] = seconds("--max-time", limits["time"])
    model = given["model"]
    if given["answers"]:
        model = scripted.ScriptedModel(scripted.read_answers(Path(given["answers"])))
    return {
        "model": model,
        "effort": given["effort"],
        "payload": fields_of(given["pairs"]),
        "allow": list(given["allow"]),
        "budget": limits,
        "rehearse": given["rehearse"],
    }


def _explain(error: BaseException) -> str:
    """An error as `koi run` shows it."""
    if isinstance(error, click.ClickException):
        return error.format_message()
    cause = error.__cause__ if isinstance(error, ProgramError) else None
    return explain(cause or error, Path.cwd().as_posix())


@dataclass(slots=True)
class CellRun:
    """One run of a program of a cell.

    Attributes:
        show: shows a piece of output.
        ask: asks the person; both are called in the thread of the notebook.
    """

    show: Callable[[str], object]
    ask: Callable[[str], str]
    _errands: SimpleQueue[Callable[[], object] | None] = field(default_factory=SimpleQueue)
    _scope: CancelScope = field(default_factory=CancelScope)
    _output: list[str] = field(default_factory=list)
    _value: Any = None

    def run(self, file: str, options: entry.OpenOptions) -> CellResult:
        """Run a program to its end. Raises KoiError, and KeyboardInterrupt once the current work has ended."""
        options |= {"ask": self._ask, "approve": self._approve, "output": self._print}
        program = entry.open(file, **options)
        program.subscribe(self._follow)
        ended: Future[RunResult | None] = Future()
        thread = Thread(target=self._carry_out, args=(program, ended), name="koi-cell", daemon=True)
        thread.start()
        try:
            self._do_errands()
        except KeyboardInterrupt:
            self._scope.cancel()
            thread.join()
            raise
        result = ended.result()
        assert result is not None, "a run that was not interrupted"
        run = "" if result.journal is None else result.journal.stem
        return CellResult(self._value, tuple(self._output), result.usage, run)

    def _carry_out(self, program: Program, ended: Future[RunResult | None]) -> None:
        try:
            ended.set_result(asyncio.run(self._within_scope(program)))
        except BaseException as error:  # raised where the result is asked for
            ended.set_exception(error)
        finally:
            self._errands.put(None)

    async def _within_scope(self, program: Program) -> RunResult | None:
        async with self._scope:
            return await run_to_end(program)
        return None

    def _do_errands(self) -> None:
        """Serve requests of the run to the notebook, until it has ended."""
        while (errand := self._errands.get()) is not None:
            errand()

    def _follow(self, event: Event) -> None:
        if isinstance(event.data, HandlerEnded) and len(event.path) == 1:
            self._value = event.fields.get("result")

    def _print(self, text: str) -> None:
        self._output.extend(text.split("\n"))
        self._errands.put(partial(self.show, text))

    async def _ask(self, question: str, options: Sequence[str]) -> str:
        listed = "".join(f"\n  {number}. {option}" for number, option in enumerate(options, 1))
        return await self._ask_notebook(f"{question}{listed} ")

    async def _approve(self, what: str, detail: str, agent: str) -> str:
        said = await self._ask_notebook(f"{agent} wants: {what} {detail}\nAllow it? (yes, no, always) ")
        return said if said in ("yes", "always") else "no"

    async def _ask_notebook(self, question: str) -> str:
        answer: Future[str] = Future()

        def ask() -> None:
            answer.set_result(self.ask(question))

        self._errands.put(ask)
        return (await asyncio.wrap_future(answer)).strip()


@dataclass(frozen=True, slots=True, repr=False)
class CellResult:
    """The result of a program in a cell.

    Attributes:
        value: the result of its last `run` statement; None where it has none.
        output: the lines that it printed.
        usage: what its models have taken.
        run: id of the run, which `koi runs show` takes; empty where it was not recorded.
    """

    value: Any
    output: tuple[str, ...]
    usage: ProgramUsage
    run: str = ""

    def __repr__(self) -> str:
        return f"{self._text}\n{self._about}" if self._text else self._about

    def _repr_html_(self) -> str:
        """The result for a notebook; texts of models are escaped."""
        shown = f"<pre>{escape(self._text)}</pre>" if self._text else ""
        return f"<div>{shown}<small>{escape(self._about)}</small></div>"

    @property
    def _text(self) -> str:
        if self.value is None or isinstance(self.value, str):
            return self.value or ""
        return json.dumps(self.value, indent=2, ensure_ascii=False, default=str)

    @property
    def _about(self) -> str:
        usage = self.usage
        tokens = usage.input_tokens + usage.output_tokens
        cost = f"${usage.cost_usd:.4f}{'' if usage.is_cost_known else ' or more'}"
        run = f"run {self.run}: " if self.run else ""
        return f"{run}{usage.requests:,} request{'' if usage.requests == 1 else 's'}, {tokens:,} tokens, {cost}"
