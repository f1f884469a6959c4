"""The context of a completion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.imports import Files
from koi_lang.compiler.rules.kinds import value_types
from koi_lang.compiler.rules.members import OF_KINDS
from koi_lang.compiler.rules.program import AnalysedProgram, handlers
from koi_lang.compiler.scope import AGENT_NAMES, GLOBALS, RUN_NAMES
from koi_lang.compiler.symbols import Kind
from koi_lang.lsp.cursor import Cursor
from koi_lang.lsp.text_names import type_of_path
from koi_lang.lsp.workspace import Snapshot

STATEMENTS = "const let if for while return throw try await playbook switch break continue".split()
LOCALS = re.compile(r"\b(?:const|let|var|function)\s+(?:\{([^}=]*)\}|\[([^\]=]*)\]|(\w+))|[(,{]\s*(\w+)\s*(?=[:,})])")


@dataclass(frozen=True, slots=True)
class CompletionCandidate:
    """One thing that may be written."""

    name: str
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Completer:
    """The context of a completion.

    Attributes:
        snapshot: the program, perhaps as it was before the last change.
    """

    snapshot: Snapshot
    cursor: Cursor
    files: Files

    @property
    def program(self) -> AnalysedProgram:
        """The files of the program."""
        return self.snapshot.program

    def names(self, kind: Kind) -> list[CompletionCandidate]:
        """The names of a kind that the file knows."""
        file = self.snapshot.file
        return [] if file is None else [CompletionCandidate(name, kind, kind) for name in file.table.names(kind)]

    def agent(self, name: str) -> n.Agent | None:
        """An agent by its name; `this` is the one around."""
        file = self.snapshot.file
        symbol = None if file is None else file.table.find("agent", self.cursor.agent if name == "this" else name)
        return symbol.node if symbol is not None and isinstance(symbol.node, n.Agent) else None

    def handler(self) -> n.Handler | None:
        """The handler around."""
        agent = self.agent("this")
        found = () if agent is None else handlers(agent)
        return next((each for each in found if each.name.name == self.cursor.event), None)

    def members_of(self, name: str) -> list[n.Agent]:
        """The agents that a sentence may mean by a name: one that is called so, or members of the agent's teams."""
        agent, own = self.agent(name), self.agent("this")
        file = self.snapshot.file
        if agent is not None or own is None or file is None:
            return [] if agent is None else [agent]
        teams = self.program.teams_of(own, file) or ()
        named = [(member, home) for team, home in teams for member in team.members if member.key.name == name]
        return [found[0] for member, home in named if (found := self.program.agent_of(member, home)) is not None]

    def fields_at(self, path: str) -> Iterator[CompletionCandidate]:
        """The fields of a value by its path, or the members of a text, a list or a number."""
        file, handler = self.snapshot.file, self.handler()
        type = None if file is None else type_of_path(path, file, self.program, handler, self.agent("this"))
        if file is None or type is None:
            return
        types = self.program.for_file(value_types, file)
        for name, field in (types.fields_of(type) or {}).items():
            yield CompletionCandidate(name, "field", field.one_line)
        for name in sorted(OF_KINDS.get(types.kind_of_options(type) or "", ())):
            yield CompletionCandidate(name, "field")


Rule = Callable[[re.Match[str], Completer], Iterable[CompletionCandidate]]


def names_in_code(completer: Completer) -> Iterator[CompletionCandidate]:
    """The names for code: variables of the declaration, declarations, and globals."""
    for groups in LOCALS.findall(completer.cursor.before):
        yield from (
            CompletionCandidate(name, "variable") for group in groups for name in re.findall(r"[A-Za-z_]\w*", group)
        )
    kinds: tuple[Kind, ...] = ("agent", "team", "prompt", "function", "module", "role")
    for kind in kinds:
        yield from completer.names(kind)
    yield from (CompletionCandidate(name, "value") for name in sorted(AGENT_NAMES | RUN_NAMES | GLOBALS))
    yield from (CompletionCandidate(word, "keyword") for word in STATEMENTS)


def signature_of(handler: n.Handler) -> str:
    """How a handler is called: its parameters and its result, as far as they are declared."""
    typed = [each.type.one_line for each in handler.parameters if each.type is not None]
    returns = f": {handler.returns.one_line}" if handler.returns is not None else ""
    return f"({', '.join(typed)}){returns}"
