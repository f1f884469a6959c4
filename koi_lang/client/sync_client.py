"""A service of Koi for programs of Python without an event loop: the asynchronous client, driven in a thread."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any, TypeAlias, TypeVar

from anyio.from_thread import BlockingPortal

from koi_lang.client.async_client import AsyncClient, AsyncRemoteRun
from koi_lang.client.exchange import Outgoing, Service
from koi_lang.client.following import APPROVAL, QUESTION, RunFollower, RunMessage
from koi_lang.errors import undone_by

T = TypeVar("T")
# A question with its options; returns the answer, or None to leave it to others.
SyncAsk: TypeAlias = Callable[[str, Sequence[str]], "str | None"]
# An action, its details and its agent; returns the permission, or None to leave it to others.
SyncApprove: TypeAlias = Callable[[str, str, str], "bool | str | None"]


class EventLoopThread:
    """An event loop in a daemon thread, which starts with the first call; a forked process gets its own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._portal: BlockingPortal | None = None
        self._process = 0

    def call(self, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """The result of a coroutine function. Raises as it does; an interrupted caller cancels it."""
        future: Future[T] = self._running_portal().start_task_soon(function, *arguments)
        with undone_by(future.cancel):
            return future.result()

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items of an asynchronous iterator, each fetched on demand."""
        while (item := self.call(_next_item, items)) is not None:
            yield item[0]

    def stop(self) -> None:
        """End the thread; the next call starts another one."""
        with self._lock:
            if self._portal is not None and self._process == os.getpid():
                self._portal.start_task_soon(self._portal.stop)
            self._portal = None

    def _running_portal(self) -> BlockingPortal:
        with self._lock:
            if self._portal is None or self._process != os.getpid():
                started: Future[BlockingPortal] = Future()
                Thread(target=lambda: asyncio.run(_serve(started)), name="koi client", daemon=True).start()
                self._portal = started.result()
                self._process = os.getpid()
            return self._portal


async def _serve(started: Future[BlockingPortal]) -> None:
    async with BlockingPortal() as portal:
        started.set_result(portal)
        await portal.sleep_until_stopped()


async def _next_item(items: AsyncIterator[T]) -> tuple[T] | None:
    """The next item in a tuple; None at the end."""
    try:
        return (await anext(items),)
    except StopAsyncIteration:
        return None


class SyncClient:
    """A service of Koi, a context; `AsyncClient` has the same methods for programs with an event loop.

    Args:
        url: of the service, as `koi serve http` tells it, with the path of a proxy where there is one.
        token: of the user; None where the service needs none.
        patience_s: how long the service may be away once it has answered, as when it is restarted, before a request
            fails.
        timeout_s: how long it may take for the beginning of an answer.
        verify: False takes any certificate; an `ssl.SSLContext` says which ones.

    Raises:
        UsageError: `url` is no address.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience_s: float = 30.0,
        timeout_s: float = 30.0,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._client = AsyncClient(url, token, patience_s=patience_s, timeout_s=timeout_s, verify=verify)
        self._thread = EventLoopThread()

    def __repr__(self) -> str:
        return repr(self._client)

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; runs go on."""
        self._thread.call(self._client.close)
        self._thread.stop()

    # ------------------------------------------------------------ runs

    def start(
        self,
        handler: str | None = None,
        payload: Any = None,
        *,
        message: str | None = None,
        program: str | None = None,
        key: str | None = None,
    ) -> RemoteRun:
        """Begin a run; for the parameters and errors see `AsyncClient.start`."""
        run = self._thread.call(lambda: self._client.start(handler, payload, message=message, program=program, key=key))
        return RemoteRun(run, self._thread)

    def ask(
        self,
        handler: str,
        payload: Any = None,
        *,
        program: str | None = None,
        ask: SyncAsk | None = None,
        approve: SyncApprove | None = None,
    ) -> Any:
        """Call a handler in a run of its own and return its result; for the rest see `AsyncClient.ask`.

        Args:
            ask, approve: are called in the thread of the caller.
        """
        return self.start(handler, payload, program=program).result(ask=ask, approve=approve)

    def run(self, id: str, *, call: str | None = "") -> RemoteRun:
        """A run by its id, which is not looked up; for `call` see `AsyncClient.run`."""
        return RemoteRun(self._client.run(id, call=call), self._thread)

    def runs(
        self, *, program: str | None = None, state: str | None = None, user: str | None = None, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """The runs that the user may see, the latest first, each as the service describes it. Raises RemoteError."""
        return self._thread.iterate(self._client.runs(program=program, state=state, user=user, limit=limit))

    def status(self) -> dict[str, Any]:
        """The user, and the present state of the service. Raises RemoteError."""
        return self._thread.call(self._client.status)

    def programs(self) -> list[dict[str, Any]]:
        """The programs of the service, with their agents and handlers. Raises RemoteError."""
        return self._thread.call(self._client.programs)

    def costs(self, by: str = "day") -> dict[str, Any]:
        """The cost of models, by `day`, `model`, `user` or `program`. Raises RemoteError."""
        return self._thread.call(self._client.costs, by)

    # ------------------------------------------------------------ sending

    def request(self, outgoing: Outgoing) -> Any:
        """Send a request and return the JSON of its answer. Raises RemoteError."""
        return self._thread.call(self._client.request, outgoing)

    def command(self, outgoing: Outgoing) -> Any:
        """Send a command of `koi rpc` and return its data. Raises RemoteError."""
        return self._thread.call(self._client.command, outgoing)

    def request_bytes(self, outgoing: Outgoing) -> bytes:
        """Send a request and return the body of its answer. Raises RemoteError."""
        return self._thread.call(self._client.request_bytes, outgoing)

    def follow(self, follower: RunFollower) -> Iterator[RunMessage]:
        """The messages of a run, over breaks of the connection, until there is nothing more. Raises RemoteError."""
        return self._thread.iterate(self._client.follow(follower))

    @property
    def service(self) -> Service:
        """The address of the service, and the user."""
        return self._client.service


class RemoteRun:
    """A run of a service.

    Iterating over it yields its messages, over breaks of the connection, each once, until its call has ended:

        for message in run:
            if message.event is not None:
                print(message.event.type)

    Attributes:
        id: as `koi runs` tells it where the service runs.
        program: its name; empty where it is not known.
        call: the call whose end is waited for; empty for none, None for the one that it was begun with.
    """

    def __init__(self, run: AsyncRemoteRun, thread: EventLoopThread) -> None:
        self._run = run
        self._thread = thread
        self.id = run.id
        self.program = run.program
        self.call = run.call

    def __repr__(self) -> str:
        return repr(self._run)

    def __iter__(self) -> Iterator[RunMessage]:
        return self.messages()

    def messages(self, since: int = 0) -> Iterator[RunMessage]:
        """Its messages, from the beginning, or behind an entry of its journal. Raises RemoteError."""
        return self._thread.iterate(self._run.messages(since))

    def result(self, *, ask: SyncAsk | None = None, approve: SyncApprove | None = None) -> Any:
        """Wait for the end of its call, and return the result. Raises RemoteCallError, and RemoteError.

        Args:
            ask, approve: as of `Client.ask`.
        """
        if not self._run.has_ended:
            for message in self.messages():
                self._respond(message, ask, approve)
        return self._thread.call(self._run.result)

    def _respond(self, message: RunMessage, ask: SyncAsk | None, approve: SyncApprove | None) -> None:
        if message.type == QUESTION and ask is not None:
            answer = ask(*message.question)
            if answer is not None:
                self.answer(message.request, str(answer))
        elif message.type == APPROVAL and approve is not None:
            decision = approve(*message.access_request)
            if decision is not None:
                self.approve(message.request, decision)

    # ------------------------------------------------------------ commands

    def answer(self, request: str, answer: str) -> None:
        """Answer an open question by its id. Raises RefusedError where it is not open any more."""
        self._thread.call(self._run.answer, request, answer)

    def approve(self, request: str, decision: bool | str = "yes", reason: str = "") -> None:
        """Allow a request, once or `always`, or deny it with a reason. Raises RefusedError, UsageError."""
        self._thread.call(self._run.approve, request, decision, reason)

    def steer(self, message: str) -> None:
        """Say something to the playbook that is at work. Raises RemoteError."""
        self._thread.call(self._run.steer, message)

    def cancel(self) -> None:
        """End the current work; its call then fails as cancelled. Raises RemoteError."""
        self._thread.call(self._run.cancel)

    def pause(self) -> None:
        """Hold the run before its next step. Raises RemoteError."""
        self._thread.call(self._run.pause)

    def go_on(self) -> None:
        """Go on after a pause. Raises RemoteError."""
        self._thread.call(self._run.go_on)

    def describe(self) -> dict[str, Any]:
        """The description of the run: `state`, `requests`, `tokens`, `usd` and more. Raises RemoteError."""
        return self._thread.call(self._run.describe)

    def delete(self) -> None:
        """Remove it, with its files. Raises RemoteError."""
        self._thread.call(self._run.delete)

    # ------------------------------------------------------------ files

    def files(self) -> list[dict[str, Any]]:
        """Its files, each with `path`, `bytes` and `changed`, in seconds since the epoch. Raises RemoteError."""
        return self._thread.call(self._run.files)

    def read_file(self, name: str) -> bytes:
        """The content of a file. Raises RemoteError."""
        return self._thread.call(self._run.read_file, name)

    def write_file(self, name: str, content: bytes) -> None:
        """Create or replace a file. Raises RemoteError."""
        self._thread.call(self._run.write_file, name, content)

    def delete_file(self, name: str) -> None:
        """Remove a file. Raises RemoteError."""
        self._thread.call(self._run.delete_file, name)
