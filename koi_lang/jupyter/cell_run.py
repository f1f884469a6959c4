"""A program run in a thread beside the event loop of a notebook, which shows its output and asks its questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

from koi_lang.api import entry
from koi_lang.api.program import Program, RunResult, run_to_end
from koi_lang.events import Event, HandlerEnded
from koi_lang.jupyter.cell_result import CellResult
from koi_lang.runtime.concurrency.cancellation import CancelScope


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
        """Run a program to its end. Raises KoiError, and KeyboardInterrupt once what was under way has ended."""
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
        """Do what the run asks of the notebook, until it has ended."""
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
