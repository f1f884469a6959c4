"""The debuggee: loads a program once, and forks a process for each run of it.

So another replay begins at once, with everything imported. The forked process owns the channel to the adapter until
it ends; only then this one reads from it again.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from koi_lang.dap.branching import branch_plan
from koi_lang.dap.breakpoints import Breakpoints
from koi_lang.dap.carrying_out import carry_out
from koi_lang.dap.channel import Channel
from koi_lang.dap.debugger import Debugger, StartPlan
from koi_lang.dap.host import ConsoleHost
from koi_lang.dap.launch import DebuggedProgram, OptionsOf, load
from koi_lang.dap.stop_service import Request, StopService
from koi_lang.dap.trail import Trail, mark_of
from koi_lang.errors import KoiError, UsageError
from koi_lang.runtime.journal.history import until_interrupted

# How long a run that is to end may take to end what it has started.
GRACE_S = 2.0


class Debuggee:
    """Serves the adapter while no run goes on."""

    def __init__(self, channel: Channel, options_of: OptionsOf) -> None:
        self._channel, self._options_of = channel, options_of
        self._program: DebuggedProgram | None = None

    def serve(self) -> None:
        """Answer the adapter until it is gone."""
        while (request := self._channel.read()) is not None:
            try:
                self._answer(request)
            except KoiError as error:
                self._channel.refuse(request, error)

    def _answer(self, request: Request) -> None:
        given = request.get("arguments") or {}
        match request["command"]:
            case "load":
                self._program = load(given, self._options_of)
                result = {"recorded": self._program.journal is not None, "notes": self._program.notes}
                self._channel.reply(request, result)
            case "setBreakpoints":
                breakpoints = Breakpoints(self._require_program().lines)
                result = {"breakpoints": breakpoints.set(str(given["path"]), given["breakpoints"])}
                self._channel.reply(request, result)
            case "start":
                self._start(request, self._require_program(), given)
            case "leave" | "end":
                self._channel.reply(request, {})
            case _:
                raise UsageError("the program is not running")

    def _require_program(self) -> DebuggedProgram:
        if self._program is None:
            raise UsageError("no program is loaded", help="Send `launch` first.")
        return self._program

    def _start(self, request: Request, program: DebuggedProgram, given: Mapping[str, Any]) -> None:
        """Fork a process for a run and wait for its end."""
        self._channel.reply(request, {})
        own, child = os.getpid(), os.fork()
        if child == 0:
            code = 1
            try:
                die_with_parent(own)
                code = _run(self._channel, program, given)
            finally:
                sys.stdout.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        self._channel.tell("ended", code=os.waitstatus_to_exitcode(status))


def _run(channel: Channel, program: DebuggedProgram, given: Mapping[str, Any]) -> int:
    """One run, in the forked process; gives its exit code."""
    breakpoints = Breakpoints(program.lines)
    for path, wanted in given["breakpoints"].items():
        breakpoints.set(path, wanted)
    goal = None if given.get("goal") is None else mark_of(given["goal"])
    plan = StartPlan(goal, stops_at_entry=bool(given.get("stopOnEntry")))
    branch = None if given.get("branch") is None else branch_plan(given["branch"])
    if branch is not None:
        plan.goal, plan.passes_goal = branch.goal, True
    trail = None if program.journal is None else Trail()
    recorded = () if program.journal is None or branch is not None else until_interrupted(program.journal.entries)
    service = StopService(channel, trail, recorded, require_trust=program.require_trust)
    debugger = Debugger(service, breakpoints, plan)
    debugger.filters = frozenset(given.get("filters") or ())
    host = ConsoleHost(channel, int(given.get("shown") or 0))
    threading.Thread(target=_listen, args=(channel, debugger, host), daemon=True).start()
    return carry_out(program, debugger, host, branch)


def _listen(channel: Channel, debugger: Debugger, host: ConsoleHost) -> None:
    """Take requests while a run goes on: some at once, the others by its own thread while it is stopped."""
    while (request := channel.read()) is not None:
        given = request.get("arguments") or {}
        match request["command"]:
            case "setBreakpoints":
                result = debugger.breakpoints.set(str(given["path"]), given["breakpoints"])
                channel.reply(request, {"breakpoints": result})
            case "setExceptionBreakpoints":
                debugger.filters = frozenset(given["filters"])
                channel.reply(request, {})
            case "pause":
                debugger.service.must_pause = True
                channel.reply(request, {})
            case "leave":
                channel.reply(request, {})
                os._exit(0)
            case "end":
                channel.reply(request, {})
                _end(debugger)
            case "evaluate" if not debugger.service.is_stopped and host.take_answer(str(given["expression"])):
                channel.reply(request, {"result": "", "variablesReference": 0})
            case _:
                debugger.service.submit(request)
    _end(debugger)


def _end(debugger: Debugger) -> None:
    """End the run, and the whole group of processes where it does not do that in time."""
    debugger.service.is_ending = True
    debugger.service.requests.put(None)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def serve(descriptor: int, adapter: int, options_of: OptionsOf) -> None:
    """Serve the adapter, a process, at the other end of a socket.

    Args:
        options_of: what the words of a command line say.
    """
    die_with_parent(adapter)
    channel = Channel(socket.socket(fileno=descriptor))
    with suppress(KeyboardInterrupt):
        Debuggee(channel, options_of).serve()


SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, also if it computes and hears nothing.

    Args:
        parent: the process that should still be there; where it is not, this one ends at once.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
