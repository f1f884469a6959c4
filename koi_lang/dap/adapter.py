"""The adapter: it sends requests of a DAP client to a debuggee, and makes events of its messages."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from koi_lang.dap.framing import encode, read_message
from koi_lang.errors import KoiError, UsageError

# A program runs in one thread, as DAP sees it; what is done at the same time are calls on one logical stack each.
THREAD = 1
FILTERS = (
    ("refused", "Refused actions", "An action of a playbook that the role does not permit."),
    ("misfit", "Misfit results", "A result that is not of the declared type."),
    ("failed", "Failed handlers", "A handler that ends with an error."),
)
CAPABILITIES: Mapping[str, Any] = {
    "supportsConfigurationDoneRequest": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsEvaluateForHovers": True,
    "supportsSetVariable": True,
    "supportsTerminateRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsRestartRequest": True,
    "supportsStepBack": False,
    "supportsRestartFrame": False,
    "exceptionBreakpointFilters": [
        {"filter": name, "label": label, "description": about, "default": name == "failed"}
        for name, label, about in FILTERS
    ],
}
BACKWARDS = {"supportsStepBack": True, "supportsRestartFrame": True, "supportsSetVariable": False}
FORWARDS = {name: bool(CAPABILITIES[name]) for name in BACKWARDS}
# Answered by the debuggee as they are.
FORWARDED = frozenset(
    "stackTrace scopes variables evaluate setVariable continue next stepIn stepOut pause "
    "koi/place koi/branch koi/fields koi/skip koi/result".split()
)
BACK = frozenset({"stepBack", "reverseContinue", "restartFrame"})
Send = Callable[[bytes], None]


class DapAdapter:
    """One debug session of one client.

    Args:
        send: takes the bytes of a message.
        defaults: fields of `launch` that a client need not give.
    """

    def __init__(self, send: Send, defaults: Mapping[str, Any]) -> None:
        self._send, self._defaults = send, defaults
        self._numbers = itertools.count(1)
        self._process: DebuggeeProcess | None = None
        self._loaded = asyncio.Event()
        self._breakpoints: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._are_changed = False
        self._filters: Sequence[str] = ()
        self._stops_at_entry = False
        self._shown = 0
        self._is_leaving = False
        self._is_over = False
        self._silent: asyncio.Event | None = None
        self._failure: Mapping[str, Any] = {}

    async def serve(self, stream: asyncio.StreamReader) -> None:
        """Serve the client until it disconnects or is gone; nothing of the session is left then."""
        self._process = await DebuggeeProcess.start()
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._process.follow(self._on_event))
            try:
                while (message := await read_message(stream)) is not None:
                    if message.get("type") != "request":
                        continue
                    if message.get("command") == "disconnect":
                        await self._process.end()
                        self._respond(message, {})
                        break
                    group.create_task(self._answer(message))
            except KoiError as error:
                self._tell("output", output=f"error: {error.message}\n", category="stderr")
            finally:
                await self._process.end()
                await following

    # ------------------------------------------------------------ to the client

    def _tell(self, event: str, **body: Any) -> None:
        self._send(encode({"seq": next(self._numbers), "type": "event", "event": event, "body": body}))

    def _respond(self, request: Mapping[str, Any], body: Any) -> None:
        about = {"type": "response", "request_seq": request.get("seq"), "command": request.get("command")}
        self._send(encode({"seq": next(self._numbers), **about, "success": True, "body": body}))

    def _refuse(self, request: Mapping[str, Any], error: KoiError) -> None:
        about = {"type": "response", "request_seq": request.get("seq"), "command": request.get("command")}
        text = error.message if error.help is None else f"{error.message}. {error.help}"
        body = {"error": {"id": 1, "format": text, "showUser": True}}
        self._send(encode({"seq": next(self._numbers), **about, "success": False, "message": text, "body": body}))

    def _on_event(self, event: str, body: dict[str, Any]) -> None:
        match event:
            case "stopped":
                self._on_stop(body)
            case "output":
                self._shown += body.pop("counted", False)
                self._tell("output", **body)
            case "continued":
                self._tell("continued", threadId=THREAD, allThreadsContinued=True)
            case "ended" if not self._is_leaving:
                self._on_end(body.get("code", 1))
            case "gone":
                self._on_end(1)

    def _on_stop(self, body: Mapping[str, Any]) -> None:
        self._failure = body if body["reason"] == "exception" else {}
        if self._silent is not None:
            self._silent.set()
        else:
            self._tell("stopped", threadId=THREAD, allThreadsStopped=True, **body)

    def _on_end(self, code: int) -> None:
        if not self._is_over:
            self._is_over = True
            self._tell("exited", exitCode=code)
            self._tell("terminated")

    # ------------------------------------------------------------ requests

    async def _answer(self, request: Mapping[str, Any]) -> None:
        given = request.get("arguments") or {}
        try:
            body = await self._carry_out(str(request.get("command")), given)
        except KoiError as error:
            self._refuse(request, error)
        except (LookupError, TypeError, ValueError) as error:
            self._refuse(request, UsageError(f"the request lacks something, or has it wrong: {error}"))
        else:
            self._respond(request, body)
            await self._follow_up(str(request.get("command")))

    async def _carry_out(self, command: str, given: Mapping[str, Any]) -> Any:
        if command in FORWARDED:
            return await self._forward(command, given)
        if command in BACK:
            return await self._go_back(command, given)
        known: Mapping[str, Callable[[Mapping[str, Any]], Awaitable[Any]]] = {
            "initialize": self._initialize,
            "launch": self._launch,
            "setBreakpoints": self._set_breakpoints,
            "setExceptionBreakpoints": self._set_filters,
            "configurationDone": self._begin,
            "threads": self._threads,
            "exceptionInfo": self._exception,
            "restart": self._restart,
            "terminate": self._terminate,
        }
        if command not in known:
            raise UsageError(f"`{command}` is not known here")
        return await known[command](given)

    async def _forward(self, command: str, given: Mapping[str, Any]) -> Any:
        """The answer of the debuggee; a branch that follows from it is begun."""
        body = await self._debuggee.request(command, **given)
        branch = body.pop("branch", None) if isinstance(body, dict) else None
        if branch is not None:
            await self._leave()
            await self._start(None, branch=branch)
            self._tell("capabilities", capabilities=FORWARDS)
            self._tell("continued", threadId=THREAD, allThreadsContinued=True)
        return body

    @property
    def _debuggee(self) -> DebuggeeProcess:
        assert self._process is not None, "a session that is served"
        return self._process

    async def _initialize(self, given: Mapping[str, Any]) -> Any:
        return {**CAPABILITIES, **(BACKWARDS if self._defaults.get("run") else {})}

    async def _launch(self, given: Mapping[str, Any]) -> Any:
        # The fields of an editor may be those of a file in the folder, which allows nothing: a person does.
        fields = {name: value for name, value in given.items() if value is not None and name != "allow"}
        wanted = {**self._defaults, **fields}
        self._stops_at_entry = bool(wanted.get("stopOnEntry"))
        try:
            response = await self._debuggee.request("load", **wanted)
        except DebuggeeError:
            self._on_end(1)
            raise
        for note in response["notes"]:
            self._tell("output", output=f"note: {note}\n", category="important")
        if response["recorded"]:
            self._tell("capabilities", capabilities=BACKWARDS)
        self._loaded.set()
        return {}

    async def _follow_up(self, command: str) -> None:
        if command == "launch":
            self._tell("initialized")

    async def _set_breakpoints(self, given: Mapping[str, Any]) -> Any:
        await self._loaded.wait()
        path = str(given["source"]["path"])
        self._breakpoints[path] = wanted = given.get("breakpoints") or []
        self._are_changed = True
        return await self._debuggee.request("setBreakpoints", path=path, breakpoints=wanted)

    async def _set_filters(self, given: Mapping[str, Any]) -> Any:
        await self._loaded.wait()
        self._filters = list(given.get("filters") or ())
        with suppress(DebuggeeError):  # nothing runs yet
            await self._debuggee.request("setExceptionBreakpoints", filters=self._filters)
        return {}

    async def _begin(self, given: Mapping[str, Any]) -> Any:
        await self._loaded.wait()
        return await self._start(None, stops_at_entry=self._stops_at_entry)

    async def _threads(self, given: Mapping[str, Any]) -> Any:
        return {"threads": [{"id": THREAD, "name": "run"}]}

    async def _exception(self, given: Mapping[str, Any]) -> Any:
        name, text = self._failure.get("description", "exception"), self._failure.get("text", "")
        return {"exceptionId": name, "description": text, "breakMode": "always"}

    async def _restart(self, given: Mapping[str, Any]) -> Any:
        await self._leave()
        self._shown = 0
        return await self._start(None, stops_at_entry=self._stops_at_entry)

    async def _terminate(self, given: Mapping[str, Any]) -> Any:
        return await self._debuggee.request("end")

    # ------------------------------------------------------------ runs

    async def _start(self, goal: Any, *, stops_at_entry: bool = False, branch: Any = None) -> Any:
        self._debuggee.ended.clear()
        self._are_changed = False
        return await self._debuggee.request(
            "start",
            breakpoints=self._breakpoints,
            filters=self._filters,
            goal=goal,
            branch=branch,
            stopOnEntry=stops_at_entry,
            shown=self._shown,
        )

    async def _leave(self) -> None:
        """End the process of the run, in any state."""
        self._is_leaving = True
        try:
            await self._debuggee.request("leave")
            await self._debuggee.ended.wait()
        finally:
            self._is_leaving = False

    async def _go_back(self, command: str, given: Mapping[str, Any]) -> Any:
        """Replay to an earlier place, in another process."""
        if command == "reverseContinue" and self._are_changed:
            await self._come_here_again()
        response = await self._debuggee.request(command, **given)
        await self._leave()
        return await self._start(response["goal"])

    async def _come_here_again(self) -> None:
        """Replay to where the program is, so that the breakpoints of now have been met on the way."""
        response = await self._debuggee.request("koi/place")
        self._silent = asyncio.Event()
        try:
            await self._leave()
            await self._start(response["goal"])
            await self._silent.wait()
        finally:
            self._silent = None


# Bytes of a line of the channel.
MAX_MESSAGE_BYTES = 64 << 20
# How long a debuggee that is to end may take, with the grace that it gives its run.
END_S = 4.0
OnEvent = Callable[[str, dict[str, Any]], None]


class DebuggeeError(KoiError):
    """The debuggee does not carry out a request, or is gone."""


class DebuggeeProcess:
    """A debuggee; `start` makes one.

    Attributes:
        ended: is set while no run goes on.
    """

    def __init__(self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.ended = asyncio.Event()
        self.ended.set()

    @staticmethod
    async def start() -> DebuggeeProcess:
        """Start a debuggee; it imports its modules while the client configures it."""
        here, there = socket.socketpair()
        with there:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "koi_lang", "debug", "--debuggee", f"{there.fileno()},{os.getpid()}",
                stdin=DEVNULL, stdout=PIPE, stderr=PIPE, pass_fds=(there.fileno(),), start_new_session=True,
            )  # fmt: skip
        reader, writer = await asyncio.open_unix_connection(sock=here, limit=MAX_MESSAGE_BYTES)
        return DebuggeeProcess(process, reader, writer)

    async def follow(self, on_event: OnEvent) -> None:
        """Pass on its messages and output, until it is gone."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        async with asyncio.TaskGroup() as group:
            group.create_task(_follow_output(self._process.stdout, "stdout", on_event))
            group.create_task(_follow_output(self._process.stderr, "stderr", on_event))
            group.create_task(self._follow_channel(on_event))

    async def _follow_channel(self, on_event: OnEvent) -> None:
        with suppress(OSError):
            while line := await self._reader.readline():
                message = json.loads(line)
                if "event" in message:
                    self._note(message["event"])
                    on_event(message["event"], message["body"])
                else:
                    self._take(message)
        self._note("ended")
        on_event("gone", {})

    def _note(self, event: str) -> None:
        if event != "ended":
            return
        self.ended.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(DebuggeeError("the program has ended"))
        self._waiting.clear()

    def _take(self, message: Mapping[str, Any]) -> None:
        waiting = self._waiting.pop(message["id"], None)
        if waiting is None or waiting.done():
            return
        if "error" in message:
            waiting.set_exception(DebuggeeError(message["error"], help=message.get("help")))
        else:
            waiting.set_result(message["body"])

    async def request(self, command: str, **arguments: Any) -> Any:
        """Its answer to a request. Raises DebuggeeError."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "command": command, "arguments": arguments}
        self._writer.write(json.dumps(message).encode() + b"\n")
        return await answer

    async def end(self) -> None:
        """End it: its run as if interrupted, and the whole group of processes where that takes too long."""
        if not self.ended.is_set():
            with suppress(DebuggeeError, TimeoutError):
                async with asyncio.timeout(END_S):
                    await self.request("end")
                    await self.ended.wait()
        self._writer.close()
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        """End the group of its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


async def _follow_output(stream: asyncio.StreamReader, category: str, on_event: OnEvent) -> None:
    """Pass on output that bypasses the channel, such as Python's own."""
    while piece := await stream.read(1 << 16):
        on_event("output", {"output": piece.decode("utf-8", "replace"), "category": category})
