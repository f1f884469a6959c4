"""Handlers and functions of a program, and the calls in them, as records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.source import Source, Span

# What a routine asks for outside of the program: a model to work on data, an MCP server, Python, or what is not known.
Outside = Literal["model", "server", "python", "unknown"]


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """A handler, a function that has a name, or a `run` statement with what it passes on.

    Attributes:
        name: `Agent.event`, `Skill.function`, or the name of a function.
        root: whose names are resolved together with its own.
        agent: in which it stands; `skill` likewise.
        playbook: what its model carries out; None for code.
    """

    name: str
    node: n.Handler | n.Function | n.Run
    file: Analysis
    root: n.Node
    agent: n.Agent | None = None
    skill: n.Skill | None = None
    playbook: n.Playbook | None = None

    @property
    def is_handler(self) -> bool:
        """Whether it handles an event of an agent."""
        return isinstance(self.node, n.Handler)


@dataclass(frozen=True, slots=True)
class Often:
    """How often something is done when a routine is carried out once.

    Attributes:
        times: None where that is not known before it runs.
        why: that is not known, as a clause: `in a loop`.
    """

    times: int | None = 1
    why: str = ""

    def by(self, times: int) -> Often:
        """The same in a loop of so many rounds."""
        return Often(None if self.times is None else self.times * times, self.why)

    def without_number(self, why: str) -> Often:
        """The same where nobody knows how often; the outermost reason counts."""
        return self if self.times is None else Often(None, why)


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Where something stands."""

    source: Source
    span: Span

    @property
    def line(self) -> str:
        """The name of the file and the line, as `desk.koi:12`."""
        return f"{self.source.path.rpartition('/')[2]}:{self.source.position(self.span.start).line}"


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """A call of routines of the program.

    Attributes:
        targets: those that may be meant, in the order in which they are looked for.
        is_each: whether all of them are called; else one of them.
        by_model: whether a model decides to make it.
    """

    targets: tuple[Routine, ...]
    often: Often
    place: CodePlace
    is_each: bool = False
    by_model: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OutsideCall:
    """A call of something outside of the program; `name` is of a server or a module, or says what is not known."""

    kind: Outside
    name: str
    often: Often
    place: CodePlace


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """What stands in one routine, in source order."""

    sites: tuple[CallSite, ...] = ()
    outside: tuple[OutsideCall, ...] = ()
