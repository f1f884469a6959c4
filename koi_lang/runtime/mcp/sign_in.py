"""The needs of signing in to MCP servers: a place for tokens, a browser, and the person's consent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from koi_lang.errors import KoiError
from koi_lang.runtime.host import Host


class TokenStore(Protocol):
    """Keeps secrets by name; both functions may wait for the system."""

    def value(self, name: str) -> str | None:
        """The value under a name. Raises KoiError."""

    def keep(self, name: str, value: str) -> str:
        """Keep a secret instead of any earlier one; says where. Raises KoiError."""


def _learn_nothing(name: str, secret: str) -> None:
    """Takes secrets that nobody has to hide."""


@dataclass(slots=True, eq=False)
class SignIn:
    """How to sign in to servers; shared by all runs of a process, so that a person is asked once.

    Attributes:
        open_page: opens a page in the person's browser; whether there is one.
        learn: is told of each secret, so that it is kept out of what is shown and written.
        read_redirect: reads the address that a browser elsewhere was led to; None where the browser is here.
    """

    tokens: TokenStore
    open_page: Callable[[str], bool]
    learn: Callable[[str, str], None] = _learn_nothing
    read_redirect: Callable[[], Awaitable[str]] | None = None
    _turns: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = field(default_factory=dict)

    def turn(self, url: str) -> asyncio.Lock:
        """The lock of a sign-in to a server; the others use its result."""
        return self._turns.setdefault((asyncio.get_running_loop(), url), asyncio.Lock())


@dataclass(frozen=True, slots=True)
class PersonSignIn:
    """The same for a run, with its person.

    Attributes:
        failures: by address, why nobody has signed in there; a person is not asked again in the same run.
    """

    sign_in: SignIn
    host: Host
    failures: dict[str, KoiError] = field(default_factory=dict)


def token_name(url: str) -> str:
    """The name under which the tokens of a server are kept: that of its address, since another must not get them."""
    return f"MCP_TOKENS {url}"
