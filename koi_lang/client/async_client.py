"""A service of Koi for programs of Python that run an event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any, TypeAlias

import httpx2

from koi_lang.client import requests_of_runs as requests
from koi_lang.client.exchange import (
    AWAY,
    MAX_BYTES,
    Outgoing,
    Service,
    ServiceAnswer,
    fields_of,
    file_path,
    json_of,
    may_send_again,
    patience_left_s,
    pauses_s,
    require_success,
    run_path,
    unreachable,
)
from koi_lang.client.following import APPROVAL, QUESTION, RunFollower, RunMessage
from koi_lang.client.following import MAX_BYTES as LONGEST_MESSAGE

# What is asked, and the answers to choose from; gives the answer, or None to leave it to others.
Ask: TypeAlias = Callable[[str, Sequence[str]], "str | Awaitable[str | None] | None"]
# What is wanted, with what, and by which agent; gives whether that is allowed, or None to leave it to others.
Approve: TypeAlias = Callable[[str, str, str], "bool | str | Awaitable[bool | str | None] | None"]


class AsyncClient:
    """A service of Koi, an async context; `Client` has the same methods for programs without an event loop.

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
        self._service = Service.of(url, token, patience_s=patience_s, timeout_s=timeout_s, verify=verify)
        self._has_answered = False
        self._http = httpx2.AsyncClient(**self._service.client_options())

    def __repr__(self) -> str:
        return f"<koi service {self._service.address}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; runs go on."""
        await self._http.aclose()

    # ------------------------------------------------------------ runs

    async def start(
        self,
        handler: str | None = None,
        payload: Any = None,
        *,
        message: str | None = None,
        program: str | None = None,
        key: str | None = None,
    ) -> AsyncRemoteRun:
        """Begin a run, and give it as soon as the service has taken it.

        Args:
            handler: such as `Writer.write`; with a message the one that it is for, without both the run waits.
            payload: what the handler is given, of JSON values.
            message: what a person says to the program.
            program: its name, where the service has several.
            key: begins one run however often it is given; a new one each time by default.

        Raises:
            RemoteError: the service refuses it, or cannot be asked.
        """
        outgoing = requests.start_request(handler, payload, message, program, key)
        response = fields_of(self._service, await self.request(outgoing), "id", "program")
        return AsyncRemoteRun(self, str(response["id"]), str(response["program"]), str(response.get("call") or ""))

    async def ask(
        self,
        handler: str,
        payload: Any = None,
        *,
        program: str | None = None,
        ask: Ask | None = None,
        approve: Approve | None = None,
    ) -> Any:
        """Call a handler in a run of its own, wait for its end, and give its result.

        Args:
            ask: answers its questions; without it they are open for others, until the service closes them.
            approve: says what it may do; without it others may, until the service denies it.

        Raises:
            RemoteCallError: the handler has failed.
            RemoteError: the service refuses the call, or cannot be asked.
        """
        return await (await self.start(handler, payload, program=program)).result(ask=ask, approve=approve)

    def run(self, id: str, *, call: str | None = "") -> AsyncRemoteRun:
        """A run by its id, which is not looked up.

        Args:
            call: the call whose end is waited for; empty for none, None for the one that the run was begun with.
        """
        return AsyncRemoteRun(self, id, "", call)

    async def runs(
        self, *, program: str | None = None, state: str | None = None, user: str | None = None, limit: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """The runs that the user may see, the latest first, each as the service describes it. Raises RemoteError."""
        before: str | None = None
        left = limit
        while left is None or left > 0:
            page = None if left is None else min(left, 100)
            asked = requests.look_request(
                "api/runs", program=program, state=state, user=user, limit=page, before=before
            )
            response = fields_of(self._service, await self.request(asked), "runs", "next")
            for run in response["runs"][:left]:
                yield run
            left = None if left is None else left - len(response["runs"])
            before = response["next"]
            if before is None:
                return

    async def status(self) -> dict[str, Any]:
        """The user, and the present state of the service. Raises RemoteError."""
        response: dict[str, Any] = fields_of(
            self._service, await self.request(requests.look_request("api/status")), "user"
        )
        return response

    async def programs(self) -> list[dict[str, Any]]:
        """The programs that the service has, with their agents and handlers. Raises RemoteError."""
        response = fields_of(self._service, await self.request(requests.look_request("api/program")), "programs")
        programs: list[dict[str, Any]] = response["programs"]
        return programs

    async def costs(self, by: str = "day") -> dict[str, Any]:
        """The cost of models, by `day`, `model`, `user` or `program`. Raises RemoteError."""
        response: dict[str, Any] = await self.request(requests.look_request("api/cost", by=by))
        return response

    # ------------------------------------------------------------ sending

    async def request(self, outgoing: Outgoing) -> Any:
        """Send a request and give the JSON of its answer. Raises RemoteError."""
        return json_of(self._service, outgoing, await self._exchange(outgoing))

    async def command(self, outgoing: Outgoing) -> Any:
        """Send a command of `koi rpc` and return its data. Raises RemoteError."""
        return requests.data_of_command(self._service, outgoing, await self._exchange(outgoing))

    async def request_bytes(self, outgoing: Outgoing) -> bytes:
        """Send a request and give its answer as it is. Raises RemoteError."""
        return (await self._exchange(outgoing)).body

    async def _exchange(self, outgoing: Outgoing) -> ServiceAnswer:
        """Send a request, again while the service is away and that does no harm. Raises RemoteError."""
        service, waited_s = self._service, 0.0
        for pause_s in pauses_s():
            came = await self._send(outgoing)
            if isinstance(came, ServiceAnswer) and not (came.status in AWAY and outgoing.is_repeatable):
                require_success(service, came)
                return replace(came, is_again=bool(waited_s))
            is_over = waited_s + pause_s > patience_left_s(service, came, is_known=self._has_answered)
            if isinstance(came, ServiceAnswer) and is_over:
                require_success(service, came)
            if isinstance(came, httpx2.HTTPError) and (is_over or not may_send_again(outgoing, came)):
                raise unreachable(service, came) from came
            waited_s += pause_s
            await asyncio.sleep(pause_s)
        raise AssertionError("pauses have no end")

    async def _send(self, outgoing: Outgoing) -> ServiceAnswer | httpx2.HTTPError:
        try:
            async with self._http.stream(**outgoing.as_arguments()) as response:
                answer = await _read(response)
        except httpx2.HTTPError as error:
            return error
        self._has_answered = True
        return answer

    async def follow(self, follower: RunFollower) -> AsyncIterator[RunMessage]:
        """The messages of a run, over breaks of the connection, until there is nothing more. Raises RemoteError."""
        follower.has_contact = self._has_answered
        while not follower.is_over:
            error = None
            try:
                async with self._http.stream(**follower.request()) as response:
                    if follower.must_read(response.status_code):
                        await asyncio.sleep(follower.pause_after_refusal(await _read(response)))
                        continue
                    async for sent in httpx2.EventSource(response, LONGEST_MESSAGE):
                        for message in follower.take(sent):
                            yield message
                        if follower.must_wake and not follower.is_over:
                            follower.must_wake = False
                            await self.command(requests.wake_request(follower.run))
                        if follower.is_over:
                            return
            except httpx2.HTTPError as broken:
                error = broken
            await asyncio.sleep(follower.pause_after_break(error))

    @property
    def service(self) -> Service:
        """The address of the service, and the user."""
        return self._service


class AsyncRemoteRun:
    """A run of a service.

    Iterating over it gives its messages, over breaks of the connection, each once, until its call has ended:

        async for message in run:
            if message.event is not None:
                print(message.event.type)

    Attributes:
        id: as `koi runs` tells it where the service runs.
        program: its name; empty where it is not known.
        call: the call whose end is waited for; empty for none, None for the one that it was begun with.
    """

    def __init__(self, client: AsyncClient, id: str, program: str, call: str | None) -> None:
        self._client = client
        self.id = id
        self.program = program
        self.call = call
        self._follower: RunFollower | None = None

    def __repr__(self) -> str:
        return f"<koi run {self.id}>"

    def __aiter__(self) -> AsyncIterator[RunMessage]:
        return self.messages()

    def messages(self, since: int = 0) -> AsyncIterator[RunMessage]:
        """Its messages, from the beginning, or behind an entry of its journal. Raises RemoteError."""
        self._follower = RunFollower(self._client.service, self.id, since, self.call)
        return self._client.follow(self._follower)

    async def result(self, *, ask: Ask | None = None, approve: Approve | None = None) -> Any:
        """Wait for the end of its call, and return the result. Raises RemoteCallError, and RemoteError.

        Args:
            ask, approve: as of `AsyncClient.ask`.
        """
        if not self.has_ended:
            async for message in self.messages():
                await self._respond(message, ask, approve)
        assert self._follower is not None, "its messages were followed"
        return self._follower.result()

    @property
    def has_ended(self) -> bool:
        """Whether the end of its call is known here."""
        return self._follower is not None and self._follower.ended is not None

    async def _respond(self, message: RunMessage, ask: Ask | None, approve: Approve | None) -> None:
        if message.type == QUESTION and ask is not None:
            answer = await _await_if_needed(ask(*message.question))
            if answer is not None:
                await self.answer(message.request, str(answer))
        elif message.type == APPROVAL and approve is not None:
            decision = await _await_if_needed(approve(*message.access_request))
            if decision is not None:
                await self.approve(message.request, decision)

    # ------------------------------------------------------------ commands

    async def answer(self, request: str, answer: str) -> None:
        """Answer a question, which a message has told by its id. Raises RefusedError where it is not open any more."""
        await self._command(requests.answer_request(self.id, request, answer))
        self._settle(request)

    async def approve(self, request: str, decision: bool | str = "yes", reason: str = "") -> None:
        """Allow a request, once or `always`, or deny it with a reason. Raises RefusedError, UsageError."""
        await self._command(requests.approve_request(self.id, request, decision, reason))
        self._settle(request)

    async def steer(self, message: str) -> None:
        """Say something to the playbook that is at work. Raises RemoteError."""
        await self._command(requests.command_request(self.id, "steer", message=message))

    async def cancel(self) -> None:
        """End the current work; its call then fails as cancelled. Raises RemoteError."""
        await self._client.request(requests.cancel_request(self.id))

    async def pause(self) -> None:
        """Have it do nothing more until it is to go on. Raises RemoteError."""
        await self._command(requests.command_request(self.id, "pause"))

    async def go_on(self) -> None:
        """Go on after a pause. Raises RemoteError."""
        await self._command(requests.command_request(self.id, "continue"))

    async def describe(self) -> dict[str, Any]:
        """The description of the run: `state`, `requests`, `tokens`, `usd` and more. Raises RemoteError."""
        response: dict[str, Any] = await self._client.request(requests.look_request(run_path(self.id)))
        return response

    async def delete(self) -> None:
        """Remove it, with its files. Raises RemoteError."""
        await self._client.request(requests.delete_request(run_path(self.id)))

    async def _command(self, outgoing: Outgoing) -> Any:
        return await self._client.command(outgoing)

    def _settle(self, request: str) -> None:
        if self._follower is not None:
            self._follower.settle(request)

    # ------------------------------------------------------------ files

    async def files(self) -> list[dict[str, Any]]:
        """Its files, each with `path`, `bytes` and `changed`, in seconds since the epoch. Raises RemoteError."""
        return requests.file_list(
            self._client.service, await self._client.request(requests.look_request(run_path(self.id, "files")))
        )

    async def read_file(self, name: str) -> bytes:
        """The content of a file. Raises RemoteError."""
        return await self._client.request_bytes(requests.look_request(file_path(self.id, name)))

    async def write_file(self, name: str, content: bytes) -> None:
        """Give it a file. Raises RemoteError."""
        await self._client.request_bytes(requests.put_file_request(self.id, name, content))

    async def delete_file(self, name: str) -> None:
        """Remove a file. Raises RemoteError."""
        await self._client.request_bytes(requests.delete_request(file_path(self.id, name)))


async def _read(response: httpx2.Response) -> ServiceAnswer:
    """An answer as a whole, unless it is longer than any of a service. Raises HTTPError."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_BYTES:
            raise httpx2.DecodingError("its answer has no end", request=response.request)
    return ServiceAnswer(response.status_code, response.headers, bytes(body))


async def _await_if_needed(given: Any) -> Any:
    """The result of a callback, which may be async."""
    return await given if isawaitable(given) else given
