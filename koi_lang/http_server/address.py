"""The address of a server over HTTP, and its reachability."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen.

    Attributes:
        port: 0 takes any that is free.
        known_as: further names under which clients reach the host.
        token: what clients must show; None lets everybody in.
        origins: of pages of others that may call the server, as browsers send them.
        public_url: where clients reach it through a proxy, without a slash at the end; empty where they call it here.
        is_new: whether the token was made just now, so that somebody has to be told.
    """

    host: str
    port: int
    token: str | None
    known_as: tuple[str, ...] = field(default=())
    is_new: bool = False
    origins: tuple[str, ...] = field(default=())
    public_url: str = ""

    @property
    def public_origin(self) -> str:
        """The origin of its pages behind the proxy; empty for none."""
        return self.public_url.removesuffix(self.public_path)

    @property
    def public_path(self) -> str:
        """The path of the proxy below which it is; empty for none."""
        return urlsplit(self.public_url).path

    @property
    def advice(self) -> str:
        """The advice for the operator; a token that they gave is not shown."""
        if self.token is None:
            return ""
        which = f"this token: {self.token}" if self.is_new else "the token that was given"
        return f"clients must send `Authorization: Bearer TOKEN` with {which}\n"
