"""URLs as records of their parts, and their text."""

from __future__ import annotations

from dataclasses import dataclass, replace

PORTS: dict[str, int | None] = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": None}


@dataclass(frozen=True, slots=True)
class UrlRecord:
    """The parts of a URL, each as it is written, without the marks between them.

    Attributes:
        host: None where there is none, as in `mailto:`.
        port: None for that of the scheme.
        path: the segments, or a text where there are none, as in `data:`.
        query: None where there is no `?`.
        fragment: None where there is no `#`.
    """

    scheme: str
    username: str = ""
    password: str = ""
    host: str | None = None
    port: int | None = None
    path: tuple[str, ...] | str = ()
    query: str | None = None
    fragment: str | None = None

    @property
    def is_special(self) -> bool:
        """Whether the scheme is one whose paths and hosts are known."""
        return self.scheme in PORTS

    @property
    def has_credentials(self) -> bool:
        """Whether there is a user or a password."""
        return bool(self.username or self.password)

    @property
    def can_have_credentials(self) -> bool:
        """Whether there may be a user, a password and a port."""
        return bool(self.host) and self.scheme != "file"

    @property
    def path_text(self) -> str:
        """The path as it is written."""
        return self.path if isinstance(self.path, str) else "".join([f"/{segment}" for segment in self.path])

    @property
    def host_text(self) -> str:
        """The host, with the port where it is not that of the scheme."""
        return (self.host or "") + ("" if self.port is None else f":{self.port}")

    @property
    def origin(self) -> str:
        """Scheme and host, `null` where they say nothing."""
        known = self.is_special and self.scheme != "file"
        return f"{self.scheme}://{self.host_text}" if known else "null"

    def without_tail(self) -> UrlRecord:
        """The same without query and fragment."""
        return replace(self, query=None, fragment=None)

    def __str__(self) -> str:
        password = f":{self.password}" if self.password else ""
        user = f"{self.username}{password}@" if self.has_credentials else ""
        if self.host is not None:
            front = f"//{user}{self.host_text}"
        else:
            # Otherwise the first segment would be read as a host.
            front = "/." if isinstance(self.path, tuple) and len(self.path) > 1 and not self.path[0] else ""
        query = "" if self.query is None else f"?{self.query}"
        fragment = "" if self.fragment is None else f"#{self.fragment}"
        return f"{self.scheme}:{front}{self.path_text}{query}{fragment}"
