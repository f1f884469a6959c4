"""Requests to servers that want a person to sign in (OAuth): with a token, renewed when it has expired."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)

from koi_lang.errors import McpServerError
from koi_lang.runtime.guards.permissions import Permissions
from koi_lang.runtime.guards.policy import Access, Policy
from koi_lang.runtime.host import ApprovalRequest
from koi_lang.runtime.mcp.client_grants import exchange_request, provider_for_client, read_assertion, secrets_of
from koi_lang.runtime.mcp.safe_text import one_line
from koi_lang.runtime.mcp.sign_in import PersonSignIn, token_name
from koi_lang.system.loopback import is_loopback

# How long a person may take.
LIMIT_S = 300.0
# A token is renewed when it has no longer to live than this.
SPARE_S = 10.0


@dataclass(slots=True)
class Credentials:
    """The stored credentials of a sign-in; the storage that the library uses.

    Attributes:
        expires_at: seconds since 1970; None where the server has not said.
        metadata: of the server that gives tokens, which has to be known to renew them.
    """

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    expires_at: float | None = None
    metadata: OAuthMetadata | None = None
    is_changed: bool = field(default=False, compare=False)

    @classmethod
    def read(cls, text: str | None) -> Credentials:
        """The stored credentials; empty where they cannot be read."""
        with suppress(ValueError, TypeError, AttributeError):
            data = json.loads(text or "{}")
            return cls(
                data.get("tokens") and OAuthToken.model_validate(data["tokens"]),
                data.get("client") and OAuthClientInformationFull.model_validate(data["client"]),
                data.get("expires_at"),
                data.get("metadata") and OAuthMetadata.model_validate(data["metadata"]),
            )
        return cls()

    def to_json(self) -> str:
        """All of it as JSON."""
        records = {"tokens": self.tokens, "client": self.client, "metadata": self.metadata}
        data = {name: one.model_dump(mode="json", exclude_none=True) for name, one in records.items() if one}
        return json.dumps({**data, "expires_at": self.expires_at})

    @property
    def access_token(self) -> str | None:
        """A token that has not expired."""
        is_old = self.expires_at is not None and self.expires_at - SPARE_S < time.time()
        return None if self.tokens is None or is_old else self.tokens.access_token

    @property
    def can_renew(self) -> bool:
        """Whether a new token can be had without a person."""
        return self.tokens is not None and bool(self.tokens.refresh_token) and self.client is not None

    def secrets(self) -> Mapping[str, str | None]:
        """The secret values, by name."""
        tokens, client = self.tokens, self.client
        return {
            "ACCESS_TOKEN": tokens.access_token if tokens else None,
            "REFRESH_TOKEN": tokens.refresh_token if tokens else None,
            "CLIENT_SECRET": client.client_secret if client else None,
        }

    async def get_tokens(self) -> OAuthToken | None:
        """For the library."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """For the library."""
        self.tokens, self.is_changed = tokens, True
        self.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """For the library."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """For the library."""
        self.client, self.is_changed = client_info, True


@dataclass(frozen=True, slots=True)
class SignInContext:
    """Whose sign-in it is.

    Attributes:
        waits: is told when somebody is waited for, and when no longer.
    """

    person: PersonSignIn
    waits: Callable[[bool], None]


class Authorization(httpx2.Auth):
    """The authentication of requests to one server.

    A server that wants none is asked without; the library, which lets one request through at a time, is only asked
    where one was refused or a token has expired.

    Args:
        client: a client that was registered by hand, `{ client_id, client_secret }`; empty to register one. A
            `client_id` that is an address describes the client. With `grant` and `issuer` no person signs in.
    """

    def __init__(self, name: str, url: str, client: Mapping[str, Any], around: SignInContext) -> None:
        self._name = name
        self._url = url
        self._client = client
        client_id = str(client.get("client_id", ""))
        self._description = client_id if client_id.startswith("https://") else None
        self._person, self._waits = around.person, around.waits
        self._known: Credentials | None = None
        self._has_agreed = False

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The request with a token; refused, it is sent again when somebody has signed in. Raises McpServerError."""
        known = self._known or await self._load()
        used, response = known.access_token, None
        if used is not None or known.tokens is None:
            response = yield _with_token(request, used)
            if not _wants_sign_in(response):
                return
        async with self._patient(), self._person.sign_in.turn(self._url):
            newer = await self._load()
            if newer.access_token not in (None, used):  # somebody else has signed in meanwhile
                response = yield _with_token(request, newer.access_token)
                if not _wants_sign_in(response):
                    return
            self._require_hope()
            request.headers.pop("Authorization", None)
            lacks_scope = response is not None and response.status_code == 403
            if "grant" not in self._client and (not newer.can_renew or lacks_scope):
                await self._agree(lacks_scope=lacks_scope)
            async with aclosing(self._signed_in(request, newer)) as outgoings:
                async for outgoing in outgoings:
                    outgoing.response = yield outgoing.request

    @asynccontextmanager
    async def _patient(self) -> AsyncIterator[None]:
        self._waits(True)
        try:
            yield
        finally:
            self._waits(False)

    # ------------------------------------------------------------ what is kept

    async def _load(self) -> Credentials:
        known = Credentials.read(await asyncio.to_thread(self._person.sign_in.tokens.value, token_name(self._url)))
        if self._client and self._description is None:
            known.client = _client_information(self._client)
        self._known = known
        self._learn(known)
        return known

    async def _save(self, known: Credentials, metadata: OAuthMetadata | None) -> None:
        known.metadata = metadata or known.metadata
        self._known = known
        self._learn(known)
        if known.is_changed:
            await asyncio.to_thread(self._person.sign_in.tokens.keep, token_name(self._url), known.to_json())

    def _learn(self, known: Credentials) -> None:
        for name, secret in {**known.secrets(), **secrets_of(self._client)}.items():
            if secret:
                self._person.sign_in.learn(f"{name} {secret[:6]} {self._url}", secret)

    # ------------------------------------------------------------ signing in

    def _require_hope(self) -> None:
        """Raise McpServerError where signing in is not safe, or has failed in this run: nobody is asked again."""
        parts = urlsplit(self._url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            message = f"the MCP server `{self._name}` wants you to sign in, and others could read what is sent to it"
            raise McpServerError(message, help=f"Use an address that begins with `https://` instead of `{self._url}`.")
        before = self._person.failures.get(self._url)
        if before is not None:
            raise McpServerError(before.message, help=before.help) from before

    async def _signed_in(self, request: httpx2.Request, known: Credentials) -> AsyncGenerator[_Outgoing, None]:
        """The requests of the library until there is a token, and then the one that wants it."""
        port = _port_of(known.client)
        async with loopback(port) as redirect:
            is_taken = _port_of_url(redirect.url) != port
            if is_taken and not self._client and not known.can_renew:
                known.client = None  # it was registered with an address that somebody else has now
            assertion = str(self._client.get("assertion", ""))
            try:
                if (exchange := exchange_request(self._url, self._client)) is not None:
                    outgoing = _Outgoing(exchange)
                    yield outgoing
                    assert outgoing.response is not None
                    assertion = await read_assertion(outgoing.response)
            except OAuthFlowError as error:
                raise self._failure_error(one_line(str(error), 500)) from error
            provider = self._provider(known, redirect, assertion)
            flow = provider.async_auth_flow(request)
            try:
                outgoing = _Outgoing(await anext(flow))
                while True:
                    yield outgoing
                    assert outgoing.response is not None
                    outgoing = _Outgoing(await flow.asend(outgoing.response))
            except StopAsyncIteration:
                return
            except OAuthFlowError as error:
                raise self._failure_error(one_line(str(error), 500)) from error
            except McpServerError as error:
                self._person.failures[self._url] = error
                raise
            finally:
                await flow.aclose()
                await self._save(known, provider.context.oauth_metadata)

    def _provider(self, known: Credentials, redirect: Loopback, assertion: str) -> OAuthClientProvider:
        if "grant" in self._client:
            return provider_for_client(self._url, self._client, known, assertion)

        async def lead(url: str) -> None:
            redirect.state = next(iter(parse_qs(urlsplit(url).query).get("state", [])), "")
            await self._lead(url)

        async def wait() -> AuthorizationCodeResult:
            return await self._wait(redirect)

        metadata = OAuthClientMetadata.model_validate({"client_name": "Koi", "redirect_uris": [redirect.url]})
        provider = OAuthClientProvider(self._url, metadata, known, lead, wait, client_metadata_url=self._description)
        provider.context.oauth_metadata = known.metadata
        if known.can_renew:
            provider.context.token_expiry_time = 1  # whatever it was: the token was refused, or is old
        return provider

    async def _agree(self, *, lacks_scope: bool = False) -> None:
        """Have the person agree to sign in. Raises McpServerError when there is nobody, or they do not.

        Args:
            lacks_scope: whether somebody has signed in, and a call needs more than they have agreed to.
        """
        if self._has_agreed:
            return
        request = ApprovalRequest(f"sign in to the MCP server `{self._name}`", self._url, "")
        # No rule allows it beforehand: the person signs in themselves.
        verdict = await Policy(self._person.host, Permissions()).decide(Access(request=request))
        if verdict.outcome == "refused":
            self._person.failures[self._url] = self._sign_in_error(lacks_scope)
        if not verdict.is_allowed:
            raise self._sign_in_error(lacks_scope)
        self._has_agreed = True

    def _sign_in_error(self, lacks_scope: bool) -> McpServerError:
        if lacks_scope:
            message = f"the MCP server `{self._name}` wants you to agree to more than you have when you signed in"
            return McpServerError(message, help="Run the program once in a terminal, where you can be asked.")
        help = f"Sign in with `koi connect {self._url}`; what expects a key instead gets it in `headers`."
        return McpServerError(f"the MCP server `{self._name}` wants you to sign in", help=help)

    async def _lead(self, url: str) -> None:
        """Open the page where the person signs in."""
        await self._agree()
        sign_in = self._person.sign_in
        self._person.host.log(f"sign in to `{self._name}` at {url}")
        if sign_in.read_redirect is None and not await asyncio.to_thread(sign_in.open_page, url):
            help = (
                f"Sign in with `koi connect {self._url} --no-browser`, which works with a browser on another machine."
            )
            raise McpServerError(f"there is no browser to sign in to the MCP server `{self._name}`", help=help)

    async def _wait(self, redirect: Loopback) -> AuthorizationCodeResult:
        read = self._person.sign_in.read_redirect
        if read is not None and not redirect.take(await read()):
            raise self._failure_error("this is not the address to which the page has led")
        try:
            fields = await redirect.wait(LIMIT_S)
        except TimeoutError:
            raise self._failure_error(f"nobody signed in within {LIMIT_S:g} s") from None
        if "code" not in fields:
            reason = fields.get("error_description") or fields.get("error") or "no code came back"
            raise self._failure_error(one_line(reason))
        return AuthorizationCodeResult(code=fields["code"], state=fields.get("state"), iss=fields.get("iss"))

    def _failure_error(self, why: str) -> McpServerError:
        """The error of a sign-in that came to nothing, which stands for the rest of the run."""
        error = McpServerError(f"signing in to the MCP server `{self._name}` failed: {why}")
        self._person.failures[self._url] = error
        return error


@dataclass(slots=True)
class _Outgoing:
    """A request to be sent, and its response."""

    request: httpx2.Request
    response: httpx2.Response | None = None


def _with_token(request: httpx2.Request, token: str | None) -> httpx2.Request:
    if token is not None:
        request.headers["Authorization"] = f"Bearer {token}"
    return request


def _wants_sign_in(response: httpx2.Response) -> bool:
    """Whether a token is missing, refused, or not good enough."""
    wants_more = "insufficient_scope" in response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (response.status_code == 403 and wants_more)


def _client_information(client: Mapping[str, Any]) -> OAuthClientInformationFull:
    secret = client.get("client_secret")
    method = "client_secret_basic" if secret else "none"
    return OAuthClientInformationFull(
        client_id=str(client["client_id"]), client_secret=secret, token_endpoint_auth_method=method
    )


def _port_of(client: OAuthClientInformationFull | None) -> int:
    """The port that a client was registered with; 0 where there is none."""
    uris = (client.redirect_uris if client else None) or []
    return _port_of_url(str(uris[0])) if uris else 0


def _port_of_url(url: str) -> int:
    return urlsplit(url).port or 0


HOST, PATH = "127.0.0.1", "/callback"
MAX_BYTES = 16_384
DONE = "You are signed in. This page can be closed."
FAILED = "Signing in did not succeed; the program says why. This page can be closed."


class Loopback:
    """Waits for one redirect; requests for anything else, or with another state, are turned away.

    Attributes:
        url: where the browser is to be led.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.state = ""
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    async def wait(self, limit_s: float) -> Mapping[str, str]:
        """The fields of the redirect: `code`, or `error`. Raises TimeoutError."""
        async with asyncio.timeout(limit_s):
            return await asyncio.shield(self._answer)

    def take(self, address: str) -> bool:
        """Whether an address is the redirect that is waited for."""
        parts = urlsplit(address)
        fields = dict(parse_qsl(parts.query))
        if parts.path != PATH or not self.state or fields.get("state") != self.state:
            return False
        if not self._answer.done():
            self._answer.set_result(fields)
        return True

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser."""
        with suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(5):
                target = (await reader.readuntil(b"\r\n")).decode("ascii", "replace").split(" ")
                is_ours = len(target) == 3 and target[0] == "GET" and self.take(target[1])
                text = (FAILED if "error=" in target[1] else DONE) if is_ours else "There is nothing here."
                status = "200 OK" if is_ours else "404 Not Found"
                head = "Content-Type: text/plain; charset=utf-8\r\nConnection: close"
                writer.write(f"HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
                await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def loopback(port: int) -> AsyncIterator[Loopback]:
    """An address at a port, or, if that is taken or 0, at another one."""
    holder: list[Loopback] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await holder[0].answer(reader, writer)

    try:
        server = await asyncio.start_server(answer, HOST, port, limit=MAX_BYTES)
    except OSError:
        server = await asyncio.start_server(answer, HOST, 0, limit=MAX_BYTES)
    holder.append(Loopback(f"http://{HOST}:{server.sockets[0].getsockname()[1]}{PATH}"))
    try:
        yield holder[0]
    finally:
        server.close()
        await server.wait_closed()
