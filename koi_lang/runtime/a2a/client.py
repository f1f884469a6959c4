"""A client of the A2A protocol over JSON-RPC.

Hosts are guarded as those of all requests of programs: public ones, and what `koi.toml` allows. What a server says of
itself leads to no other host.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

import httpx2

from koi_lang.agent_address import AgentAddress
from koi_lang.errors import AgentError
from koi_lang.runtime.a2a.replies import Reply, reply_of
from koi_lang.runtime.guards.hosts import Allowed
from koi_lang.runtime.guards.transport import Guarded

CARD = "/.well-known/agent-card.json"
VERSION = "1.0"
# How long one request may take, and how large its answer may be; a task may take as long as its caller waits.
REQUEST_S, MAX_BYTES = 60.0, 4_000_000
# The pauses between questions whether a task is done.
FIRST_PAUSE_S, MAX_PAUSE_S = 0.05, 2.0


class AgentClient:
    """Asks one agent; an async context.

    Args:
        allowed: what may be reached beside public hosts.
        token: shown as a bearer; empty where there is none.
    """

    def __init__(self, address: AgentAddress, allowed: Allowed, token: str = "") -> None:
        self._address = address
        bearer = {"authorization": f"Bearer {token}"} if token else {}
        headers = {"user-agent": "koi", "accept": "application/json", "a2a-version": VERSION, **bearer}
        self._http = httpx2.AsyncClient(
            transport=Guarded(allowed), trust_env=False, timeout=REQUEST_S, headers=headers, follow_redirects=False
        )
        self._url = ""

    async def __aenter__(self) -> AgentClient:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._http.__aexit__(*error)

    async def ask(self, part: Mapping[str, Any], before: Reply | None = None) -> Reply:
        """Send a message and wait for the reply of the agent.

        A task that nobody waits for any more is cancelled.

        Args:
            part: of the message: `{"text": …}` or `{"data": …}`.
            before: what is replied to.

        Raises:
            AgentError: it cannot be reached, or does not speak the protocol.
            PermissionDeniedError: its host is not public, and not allowed.
        """
        ids = {"taskId": before.task, "contextId": before.context} if before is not None else {}
        message = {"messageId": uuid4().hex, "role": "ROLE_USER", "parts": [dict(part)], **ids}
        sent = {"message": message, "configuration": {"returnImmediately": True}}
        reply, pause_s = reply_of(await self._call("SendMessage", sent), self._address.text), FIRST_PAUSE_S
        try:
            while reply.is_working:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, MAX_PAUSE_S)
                reply = reply_of(await self._call("GetTask", {"id": reply.task}), self._address.text)
        except asyncio.CancelledError:
            await self._cancel(reply.task)
            raise
        return reply

    async def _cancel(self, task: str) -> None:
        """Tell the agent that nobody waits any more; it has a second to hear of it."""
        try:
            async with asyncio.timeout(1.0):
                await self._call("CancelTask", {"id": task})
        except (TimeoutError, AgentError):
            return  # it is none of its callers' business any more

    # ------------------------------------------------------------ requests

    async def _call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a call. Raises AgentError."""
        if not self._url:
            self._url = await self._find_url()
        body = {"jsonrpc": "2.0", "id": uuid4().hex, "method": method, "params": params}
        answer = await self._send("POST", self._url, json=body)
        if isinstance(error := answer.get("error"), Mapping):
            raise AgentError(f"`{self._address.text}` refuses: {error.get('message') or 'it does not say why'}")
        return answer.get("result")

    async def _find_url(self) -> str:
        """Where the agent takes calls, by the card under its own path, else by that of its host, if that is its own."""
        address = self._address
        card = await self._card(f"{address.origin}{address.path}{CARD}")
        if card is None and address.path:
            card = await self._card(f"{address.origin}{CARD}")
            card = card if card is not None and str(card.get("name", "")).lower() == address.name.lower() else None
        if card is None:
            help = "Its address is that of its card, without `/.well-known/agent-card.json`."
            raise AgentError(f"there is no agent at `{address.text}`", help=help)
        return self._url_in(card)

    async def _card(self, url: str) -> Mapping[str, Any] | None:
        return await self._send("GET", url, may_miss=True) or None

    def _url_in(self, card: Mapping[str, Any]) -> str:
        """The address for calls in a card. Raises AgentError for one on another host, or of another protocol."""
        offered = card.get("supportedInterfaces")
        for each in offered if isinstance(offered, list) else ():
            fits = isinstance(each, Mapping) and each.get("protocolBinding") == "JSONRPC"
            if fits and str(each.get("protocolVersion", "")).startswith("1."):
                url = urljoin(self._address.origin, str(each.get("url", "")))
                if urlsplit(url).netloc.lower() != urlsplit(self._address.origin).netloc.lower():
                    raise AgentError(f"the card of `{self._address.text}` leads to another host: {url}")
                return self._address.origin + (urlsplit(url).path or "/")
        raise AgentError(f"`{self._address.text}` does not speak version 1 of A2A over JSON-RPC")

    async def _send(self, method: str, url: str, *, may_miss: bool = False, **given: Any) -> Mapping[str, Any]:
        """The object that a server answers with; empty where there is nothing and that may be."""
        try:
            async with asyncio.timeout(REQUEST_S), self._http.stream(method, url, **given) as answer:
                if may_miss and answer.status_code in (404, 405):
                    return {}
                self._require_ok(answer.status_code)
                return self._object_in(await self._body(answer))
        except TimeoutError as error:
            raise AgentError(f"`{self._address.text}` did not answer within {REQUEST_S:g} s") from error
        except httpx2.HTTPError as error:
            why = str(error) or type(error).__name__
            raise AgentError(f"`{self._address.text}` cannot be reached: {why}") from error

    def _require_ok(self, status: int) -> None:
        if status in (401, 403):
            help = f'Write `[a2a.tokens]` and `"{self._address.place}" = "${{TOKEN}}"` in `koi.toml`.'
            raise AgentError(f"`{self._address.text}` wants a token, or another one", help=help)
        if status != 200:
            raise AgentError(f"`{self._address.text}` answered with the status {status}")

    async def _body(self, answer: httpx2.Response) -> bytes:
        data = bytearray()
        async for chunk in answer.aiter_bytes():
            data += chunk
            if len(data) > MAX_BYTES:
                raise AgentError(f"`{self._address.text}` answers with more than {MAX_BYTES:,} bytes")
        return bytes(data)

    def _object_in(self, body: bytes) -> Mapping[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise AgentError(f"`{self._address.text}` does not answer with JSON") from error
        if not isinstance(found, dict):
            raise AgentError(f"`{self._address.text}` does not answer with an object")
        return found
