"""Requests to a service and the meaning of its answers, without the sending."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import httpx2

from koi_lang.client.errors import (
    BrokenServiceError,
    ForeignServerError,
    RefusedError,
    RemoteError,
    SignInError,
    UnreachableError,
)
from koi_lang.errors import UsageError, root_reason
from koi_lang.system.certificates import certificates

if TYPE_CHECKING:
    import ssl

# What a service may answer at once; files are given in pieces.
MAX_BYTES = 64 << 20
FIRST_PAUSE_S, MAX_PAUSE_S = 0.2, 5.0
# For a service that has not answered yet, and may have too much to do for that.
FIRST_PATIENCE_S = 2.0
# Statuses of proxies whose service is not there at the moment.
AWAY = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request.

    Attributes:
        path: relative to the address of the service.
        data: JSON; None for none.
        body: bytes in the place of JSON.
        is_repeatable: whether it may be sent again where it is not known whether it has arrived.
    """

    method: str
    path: str
    data: Any = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = False

    def as_arguments(self) -> dict[str, Any]:
        """It as arguments of `httpx2.Client.stream`."""
        arguments = {"json": self.data} if self.data is not None else {"content": self.body}
        return {"method": self.method, "url": self.path, "headers": dict(self.headers), **arguments}


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """An answer to a request.

    Attributes:
        is_again: whether the request was sent before, and may have arrived then.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """The address of a service, and the user.

    Attributes:
        address: of the service, with a slash at its end.
        patience_s: how long it may be away, once it has answered, before a request fails.
        timeout_s: how long it may take for the beginning of an answer.
        verify: what certificates are checked against, as httpx takes it.
    """

    address: str
    token: str | None = field(repr=False)
    patience_s: float = 30.0
    timeout_s: float = 30.0
    verify: ssl.SSLContext | bool = True

    @staticmethod
    def of(url: str, token: str | None, **given: Any) -> Service:
        """The service at an address. Raises UsageError for one that is none."""
        return Service(service_address(url), token or None, **given)

    def client_options(self) -> dict[str, Any]:
        """The options of an httpx client; redirects are not followed, since they would take the token along."""
        headers = {"Accept": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        timeout = httpx2.Timeout(self.timeout_s, pool=None)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        return {
            "base_url": self.address,
            "headers": headers,
            "timeout": timeout,
            "limits": limits,
            "verify": certificates() if self.verify is True else self.verify,
            "follow_redirects": False,
        }


def service_address(url: str) -> str:
    """An address as requests are joined to it. Raises UsageError."""
    help = "Write one such as `http://127.0.0.1:8000`, as `koi serve http` tells it."
    try:
        parts = urlsplit(url.strip())
        is_whole = bool(parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port))
    except ValueError:
        is_whole = False
    if not is_whole:
        raise UsageError(f"`{url}` is no address of a service", help=help)
    if parts.username or parts.password:
        raise UsageError("the address of the service holds a password", help="Give the token by itself.")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}/"


def run_path(run: str, *parts: str) -> str:
    """The path of something of a run; no part of it leads anywhere else."""
    return "/".join(("api/runs", quote(run, safe=""), *(quote(part, safe="") for part in parts)))


def file_path(run: str, name: str) -> str:
    """The path of a file of a run. Raises UsageError for a name that leads out of its folder."""
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts):
        raise UsageError(f"`{name}` is no name of a file of a run", help="Write one such as `notes/a.txt`.")
    return run_path(run, "files", *parts)


def patience_left_s(service: Service, came: ServiceAnswer | httpx2.HTTPError, *, is_known: bool) -> float:
    """How long a service may be away: an address at which nobody has ever been is a wrong one."""
    if is_known:
        return service.patience_s
    return 0.0 if isinstance(came, httpx2.ConnectError) else min(service.patience_s, FIRST_PATIENCE_S)


def pauses_s() -> Iterator[float]:
    """How long to wait before each further attempt: longer and longer, and not all clients at once."""
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s * random.uniform(0.75, 1.25)
        pause_s = min(pause_s * 2, MAX_PAUSE_S)


def may_send_again(outgoing: Outgoing, error: httpx2.HTTPError) -> bool:
    """Whether a request that has failed may succeed later, and does not happen twice."""
    if is_unsafe(error):
        return False
    return outgoing.is_repeatable or isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)


def is_unsafe(error: BaseException) -> bool:
    """Whether a certificate, or a server that speaks no TLS, is why a connection failed."""
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__module__ == "ssl" or "SSL" in type(cause).__name__:
            return True
        cause = cause.__cause__ or cause.__context__
    return "ssl" in str(error).lower()


def unreachable(service: Service, error: httpx2.HTTPError) -> RemoteError:
    """Why a service was not reached, or its answer not read."""
    why, code = root_reason(error), "unreachable"
    help = "Look at the address, and whether `koi serve http` runs there."
    if is_unsafe(error):
        code = "tls_failed"
        help = "Look at its certificate, or write the address with `http://` where it has none."
    elif isinstance(error, httpx2.TimeoutException):
        why = f"no answer within {service.timeout_s:g} s"
    elif isinstance(error, httpx2.RemoteProtocolError):
        why = f"it gives no answer of HTTP ({why.rstrip('.').lower()})"
    elif isinstance(error, httpx2.DecodingError):
        return foreign(service, f"its answer cannot be read ({why})")
    return UnreachableError(f"`{service.address}` cannot be reached: {why}", code=code, help=help)


def foreign(service: Service, why: str) -> ForeignServerError:
    """The error of a server that is none of ours."""
    help = (
        "Look at the address: it is the one that `koi serve http` tells, with the path of a proxy where there is one."
    )
    return ForeignServerError(f"`{service.address}` is no service of Koi: {why}", code="foreign_server", help=help)


def require_success(service: Service, came: ServiceAnswer) -> None:
    """Raise RemoteError for an answer that refuses a request, with the words of the service."""
    status = came.status
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        to = came.headers.get("location", "")
        raise foreign(service, f"it sends requests on to `{to}`" if to else f"it answers with status {status}")
    about = _object_in(came.body)
    if not isinstance(about.get("code"), str) or not isinstance(about.get("message"), str):
        raise _plain_refusal(service, status)
    help = about.get("help")
    kind: type[RemoteError] = RefusedError
    if status in (401, 403):
        kind = SignInError
    elif status >= 500:
        kind = BrokenServiceError
    raise kind(about["message"], code=about["code"], help=help if isinstance(help, str) else None, status=status)


def _plain_refusal(service: Service, status: int) -> RemoteError:
    """The error for a refusal that is not in the words of a service."""
    if status in AWAY:
        message = f"`{service.address}` cannot be reached: a proxy before it answers with status {status}"
        help = "Look whether `koi serve http` runs behind it."
        return UnreachableError(message, code="unreachable", help=help, status=status)
    if status in (401, 403):
        message = f"`{service.address}` lets nobody in without other credentials (status {status})"
        help = "A proxy may ask for them; or the address is not that of a service of Koi."
        return SignInError(message, code="not_signed_in", help=help, status=status)
    return foreign(service, f"it answers with status {status}")


def json_of(service: Service, outgoing: Outgoing, came: ServiceAnswer) -> Any:
    """The JSON of an answer. Raises ForeignServerError where it holds none."""
    if came.status == 204 or (not came.body and outgoing.method == "DELETE"):
        return None
    try:
        return json.loads(came.body)
    except (ValueError, RecursionError):
        raise foreign(service, "its answer is no JSON") from None


def fields_of(service: Service, answer: Any, *names: str) -> Any:
    """An answer that is an object with some fields. Raises ForeignServerError for any other."""
    if not isinstance(answer, dict) or not all(name in answer for name in names):
        raise foreign(service, f"its answer lacks {', '.join(f'`{name}`' for name in names)}")
    return answer


def _object_in(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
