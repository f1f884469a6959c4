"""Types beside events, and the parameters of the current call."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol import types

from koi_lang.compiler import nodes as n
from koi_lang.compiler.rules.actions import FIELDS
from koi_lang.compiler.rules.program import handlers
from koi_lang.compiler.rules.sends import targets
from koi_lang.lsp.completer import Completer, signature_of
from koi_lang.lsp.workspace import Snapshot
from koi_lang.source import Span

# Characters before the cursor in which a call may begin.
MAX_CHARS_READ = 2000
# The beginning of a call: of an agent, an event, an action, or a function.
CALL = re.compile(
    r"(?:callAction\(\s*[\"'](?P<action>\w+)[\"']\s*,"
    r"|\b\w+(?:\(\s*\w*\s*\))?\.event\(\s*[\"'](?P<event>\w+)[\"']\s*\)(?:\.\w+\([^()]*\))*\("
    r"|\b(?P<owner>[A-Za-z_]\w*)\.(?P<handler>\w+)\(|\b(?P<function>[A-Za-z_]\w*)\()"
)


def inlay_hints(snapshot: Snapshot, range: types.Range) -> list[types.InlayHint]:
    """The types of handlers behind their events; none where they differ or declare nothing."""
    if snapshot.file is None:
        return []
    wanted, found = snapshot.document.map.span(range), []
    for send, _, target in targets(snapshot.file, snapshot.program):
        signatures = {_payload(agent, send.event) for agent, _ in target.handling(send.event)}
        shown = signatures.pop() if len(signatures) == 1 else ""
        if shown and wanted.encloses(Span(send.event_span.start, send.event_span.start)):
            position = snapshot.document.map.position(send.event_span.end)
            found.append(types.InlayHint(position, f": {shown}", kind=types.InlayHintKind.Type))
    return found


def _payload(agent: n.Agent, event: str) -> str:
    """The payload type of an event, in one line; empty for any."""
    handler = next((each for each in handlers(agent) if each.name.name == event), None)
    type = handler.parameters[0].type if handler is not None and handler.parameters else None
    return "" if type is None or type.name.lower() in ("json", "any") else type.one_line


def signature_help(completer: Completer) -> types.SignatureHelp | None:
    """The parameters of the call that is open before the cursor."""
    before = completer.cursor.before[-MAX_CHARS_READ:]
    opened = [match for match in CALL.finditer(before) if not _is_closed(before[match.end() :])]
    if not opened:
        return None
    match = opened[-1]
    signatures = [types.SignatureInformation(label) for label in _labels(match, completer)]
    return types.SignatureHelp(signatures, 0, 0) if signatures else None


def _is_closed(written: str) -> bool:
    """Whether the call has ended in the text behind its parenthesis."""
    depth = 0
    for character in written:
        depth += character in "([{"
        depth -= character in ")]}"
        if depth < 0:
            return True
    return False


def _labels(match: re.Match[str], completer: Completer) -> Iterator[str]:
    file = completer.snapshot.file
    if match["action"] in FIELDS:
        fields = (f"{name}{'' if must else '?'}: {kind}" for name, (must, kind) in FIELDS[match["action"]].items())
        yield f"{match['action']}({{ {', '.join(fields)} }})"
    elif match["event"] and file is not None:
        agents = filter(None, map(completer.agent, file.table.names("agent")))
        yield from _handler_labels(list(agents), match["event"])
    elif match["owner"]:
        agent = completer.agent(match["owner"])
        yield from _handler_labels([agent] if agent is not None else [], match["handler"])
    elif match["function"] and file is not None:
        symbol = file.table.find("function", match["function"])
        if symbol is not None and isinstance(symbol.node, n.Function):
            text = symbol.unit.source.text
            parameters = [text[each.span.start : each.span.end] for each in symbol.node.parameters]
            returns = f": {symbol.node.returns.one_line}" if symbol.node.returns is not None else ""
            yield f"{symbol.name}({', '.join(parameters)}){returns}"


def _handler_labels(agents: list[n.Agent], event: str) -> Iterator[str]:
    for agent in agents:
        for handler in handlers(agent):
            if handler.name.name == event:
                yield f"{agent.name.name}.{event}{signature_of(handler)}"
