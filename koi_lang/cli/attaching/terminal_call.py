"""A call that a service carries out, at a terminal: what it prints, what goes on, what it asks, and how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from koi_lang.cli.ui import live_view
from koi_lang.cli.ui.interrupts import SignalError, add_signal_handler, remove_signal_handler
from koi_lang.cli.ui.reporters import CostMeter, as_lines
from koi_lang.cli.ui.terminal import Terminal
from koi_lang.cli.ui.text import period_text
from koi_lang.client import AsyncRemoteRun, RefusedError, RemoteError, RunMessage
from koi_lang.client.following import APPROVAL, CLOSED, QUESTION
from koi_lang.events import LinePrinted
from koi_lang.runtime.host import NobodyToAskError
from koi_lang.sessions.client_host import approval_in

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
CANCEL = "cancel it"
LEAVE = "leave it running"
GO_ON = "go on watching"
STOPPED = "the run goes on in the service; what is to be done?"


@dataclass(frozen=True, slots=True)
class CallView:
    """How much of a call is shown.

    Attributes:
        as_json: what the program prints goes to stderr; stdout has the result only.
    """

    as_json: bool = False
    quiet: bool = False
    plain: bool = False
    verbose: bool = False


class TerminalCall:
    """A call of a service at a terminal.

    Args:
        url: of the service, for what the person is told.
    """

    def __init__(self, run: AsyncRemoteRun, view: CallView, url: str) -> None:
        self._run = run
        self._view = view
        self._url = url
        self._host = Terminal(quiet=view.quiet)
        self._bill = CostMeter()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._open: dict[str, RunMessage] = {}
        self._left = ""
        if view.verbose:
            self._host.status = live_view.PlainView(sys.stderr, str)
        elif sys.stderr.isatty() and not view.quiet:
            self._host.status = live_view.status_for(sys.stderr, str, self._bill, plain=view.plain)
        self._lines = as_lines(self._host.log, str, "brief") if view.verbose else None

    async def carry_out(self) -> Any:
        """Show the call to its end and give its result.

        Raises:
            RemoteCallError: it has failed.
            RemoteError: the service is away for too long, or refuses something.
            SignalError: the person has left; the call may go on.
        """
        try:
            with self._host.status.on_screen():
                return await self._carry_out()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            for name in SIGNALS:
                remove_signal_handler(name)
            self._tell_costs()

    async def _carry_out(self) -> Any:
        async with asyncio.TaskGroup() as self._group:
            watching = self._group.create_task(self._watch())
            for name, handler in zip(SIGNALS, (self._stop, self._leave, self._leave), strict=True):
                add_signal_handler(name, handler, watching, name)
            await asyncio.wait([watching])
            for task in self._asking.values():
                task.cancel()
        if self._left:
            raise SignalError(getattr(signal, self._left))
        return watching.result()

    def _tell_costs(self) -> None:
        line = self._bill.line()
        if line is not None and (self._view.verbose or sys.stderr.isatty()):
            self._host.note(f"{line}, {self._bill.seconds:.1f} s")

    # ------------------------------------------------------------ messages

    async def _watch(self) -> Any:
        with self._host.listening(self._hear):
            async for message in self._run:
                self._show(message)
        return await self._run.result()

    def _show(self, message: RunMessage) -> None:
        event = message.event
        if event is not None:
            if event.data.is_transient or not event.recalled:
                self._bill(event)
            self._host.status(event)
            if self._lines is not None and not event.data.is_transient:
                self._lines(event)
            if isinstance(event.data, LinePrinted) and not event.recalled:
                (self._host.log if self._view.as_json else self._host.print)(event.data.message)
        elif message.type in (QUESTION, APPROVAL):
            self._question(message)
        elif message.type == CLOSED:
            self._close(message.request, str(message.data.get("reason", "")))
        elif message.type == "log":
            self._host.log(str(message.data.get("text", "")))

    # ------------------------------------------------------------ questions

    def _begin(self, request: str, asking: Coroutine[Any, Any, None]) -> None:
        self._asking[request] = self._group.create_task(asking)

    def _question(self, message: RunMessage) -> None:
        """Ask what a message asks, beside all else."""
        self._open[message.request] = message
        self._begin(message.request, self._ask(message) if message.type == QUESTION else self._request(message))

    def _close(self, request: str, why: str) -> None:
        """Somebody else has answered, or it was too late."""
        self._open.pop(request, None)
        task = self._asking.pop(request, None)
        if task is not None and not task.done():
            task.cancel()
            self._host.log("(answered elsewhere)" if why == "answered" else f"(not open any more: {why})")

    async def _ask(self, message: RunMessage) -> None:
        data = message.data
        try:
            if data.get("secret"):
                answer = await self._host.secret(str(data.get("question", "")).rstrip(": "))
            else:
                answer = await self._host.ask(str(data.get("question", "")), [*map(str, data.get("options", []))])
        except NobodyToAskError as error:
            self._leave_to_others(error.message, message)
            return
        self._open.pop(message.request, None)
        await self._send(self._run.answer(message.request, answer))

    async def _request(self, message: RunMessage) -> None:
        try:
            decision = await self._host.approve(approval_in(message.data))
        except NobodyToAskError as error:
            self._leave_to_others(error.message, message)
            return
        self._open.pop(message.request, None)
        await self._send(self._run.approve(message.request, decision.answer, decision.reason))

    def _leave_to_others(self, text: str, message: RunMessage) -> None:
        open_s = message.data.get("timeout_s")
        until = f" within {period_text(open_s)}" if isinstance(open_s, int | float) else ""
        self._host.note(f"{text} here; it can be answered in the pages of the service{until}")

    async def _send(self, sending: Coroutine[Any, Any, None]) -> None:
        """Send an answer; one that came too late is told, and changes nothing."""
        try:
            await sending
        except RefusedError as error:
            self._host.log(error.message)

    # ------------------------------------------------------------ what is typed, and signals

    def _hear(self, line: str) -> None:
        """Say what was typed to the playbook that is at work."""
        if line.strip():
            self._group.create_task(self._steer(line.strip()))

    async def _steer(self, text: str) -> None:
        try:
            await self._run.steer(text)
            self._host.log(f"» said: {text}")
        except RemoteError as error:
            self._host.log(f"» {error.message}")

    def _stop(self, watching: asyncio.Task[Any], signal_name: str) -> None:
        """Ctrl-C: ask what it means; again, or where nobody can be asked, it means to leave."""
        is_asked = STOPPED in self._asking and not self._asking[STOPPED].done()
        if is_asked or not (sys.stdin.isatty() and sys.stderr.isatty()):
            self._leave(watching, signal_name)
            return
        for task in self._asking.values():
            task.cancel()
        self._begin(STOPPED, self._decide(watching, signal_name))

    async def _decide(self, watching: asyncio.Task[Any], signal_name: str) -> None:
        try:
            answer = await self._host.ask(STOPPED, [CANCEL, LEAVE, GO_ON])
        except NobodyToAskError:
            answer = LEAVE
        if answer == CANCEL:
            await self._send(self._run.cancel())
        elif answer != GO_ON:
            self._leave(watching, signal_name)
            return
        for message in [*self._open.values()]:
            self._question(message)

    def _leave(self, watching: asyncio.Task[Any], signal_name: str) -> None:
        self._left = signal_name
        watching.cancel()
        self._host.log(f"left; `koi ask {self._url} --run {self._run.id}` goes on with it")


def result_text(result: Any, *, as_json: bool) -> str | None:
    """What is written of a result to stdout; None for nothing."""
    if as_json:
        return json.dumps(result, ensure_ascii=False)
    if result is None or isinstance(result, str):
        return result
    return json.dumps(result, ensure_ascii=False, indent=2)
