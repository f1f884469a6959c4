"""Commands above declarations: run, debug, test, and how many actions a model may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lsprotocol import types

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.lsp.documents import OpenDocument
from koi_lang.source import Span

# How many actions the permissions of a role allow.
CountActions = Callable[[Sequence[str]], int]


def code_lenses(file: Analysis, document: OpenDocument, count_actions: CountActions) -> list[types.CodeLens]:
    """The commands of a document; the editor carries them out with `{uri, target}`."""
    return [
        types.CodeLens(
            document.map.range(span),
            types.Command(title, command, arguments=[{"uri": document.uri, "target": target}]),
        )
        for span, title, command, target in _commands(file, count_actions)
    ]


def _commands(file: Analysis, count_actions: CountActions) -> Iterator[tuple[Span, str, str, str]]:
    for run, _ in file.index.of(n.Run):
        if run.job is not None:
            continue  # a service starts it
        target = f"{run.agent.name}.{run.handler.name}"
        yield run.span, "run", "koi.run", target
        yield run.span, "debug", "koi.debug", target
    for test, _ in file.index.of(n.Test):
        yield test.name.span, "test", "koi.test", test.name.value
    for agent, _ in file.index.of(n.Agent):
        role = file.table.find("role", agent.role.name)
        if role is not None and isinstance(role.node, n.Role):
            count = count_actions([name.name for name in role.node.capabilities])
            title = f"audit: {count} action{'' if count == 1 else 's'}"
            yield agent.name.span, title, "koi.audit", agent.name.name
