"""Addresses of agents of other programs: `a2a://host/agent`, and `acp://command/argument` of processes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from koi_lang.system.loopback import is_loopback

BEGIN, COMMAND = "a2a://", "acp://"
ADDRESS = re.compile(
    r"a2a://(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9_.-]+)(?P<port>:[0-9]{1,5})?(?P<path>(?:/[A-Za-z0-9_.~-]+)*)/?"
)


@dataclass(frozen=True, slots=True)
class AgentAddress:
    """Where an agent is.

    Attributes:
        place: the host, with its port where there is one.
        path: of the agent there, with a slash before each part; empty for the only agent of a host.
    """

    text: str
    host: str
    place: str
    path: str

    @property
    def origin(self) -> str:
        """As an address of the web: of this machine without encryption, of all others with it."""
        return f"{'http' if is_loopback(self.host) else 'https'}://{self.place}"

    @property
    def name(self) -> str:
        """What the agent is called: the last part of the path, else the host."""
        return self.path.rpartition("/")[2] or self.host


def parse_address(text: str) -> AgentAddress | None:
    """The parts of an address; None where it is none."""
    found = ADDRESS.fullmatch(text)
    if found is None or any(part in (".", "..") for part in found["path"].split("/")):
        return None
    host = found["host"]
    return AgentAddress(text, host, host + (found["port"] or ""), found["path"])


@dataclass(frozen=True, slots=True)
class CommandAddress:
    """The command that starts an agent.

    Attributes:
        words: the program and its arguments.
    """

    text: str
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the agent is called: its program."""
        return self.words[0]


def parse_command(text: str) -> CommandAddress | None:
    """The command in an address, whose arguments stand behind slashes; None where it is none."""
    found = re.fullmatch(r"acp://[A-Za-z0-9_.][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.~-]+)*", text)
    return None if found is None else CommandAddress(text, tuple(text.removeprefix(COMMAND).split("/")))
