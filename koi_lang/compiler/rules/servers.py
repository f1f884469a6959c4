"""Code that calls what its agent may not use of an MCP server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.diagnostics import nearest, suggestion
from koi_lang.grants import covers
from koi_lang.source import Span

# Members of a server in code that take the name of what they are about; others are tools.
KINDS = {"call": "", "resource": "resource", "prompt": "prompt"}
# Patterns that need no quotation marks.
PLAIN = re.compile(r"[\w.:/*-]+")
# What every value has.
COMMON = frozenset({"toString", "toJSON", "valueOf", "constructor", "then"})


@rule("E0441", "error")
def tool_not_granted(file: Analysis, report: Report) -> None:
    """Code of an agent calls a tool that its `uses mcp` does not grant.

    `uses mcp files(read_*)` grants the tools whose names the patterns cover, and nothing else of the server: neither
    other tools nor its documents (`resource:…`) and prompts (`prompt:…`). Models do not see them, and calls from code
    would fail when they are made.

    Wrong:

        role Caller { can call_mcp }
        mcp files = { command: "files-server" }
        agent Clerk : Caller { uses mcp files(read_*)  on go(args) { return await files.write_file(args) } }

    Right:

        role Caller { can call_mcp }
        mcp files = { command: "files-server" }
        agent Clerk : Caller { uses mcp files(read_*, write_file)  on go(args) { return await files.write_file(args) } }
    """
    granted = {agent: found for agent, _ in file.index.of(n.Agent) if (found := _granted_tools(agent))}
    servers = {
        id(name): (server, patterns)
        for handler, around in file.index.of(n.Handler)
        for server, patterns in (granted.get(around.agent, {}) if around.agent is not None else {}).items()
        for name in file.code[handler].outer.get(server, ())
    }
    for span, owner, name, kind in _find_mentions(file) if servers else ():
        server, patterns = servers.get(id(owner), ("", None))
        if patterns is not None and not covers(patterns, name, kind):
            wanted = f"{kind}:{name}" if kind else name
            shown = ", ".join(pattern if PLAIN.fullmatch(pattern) else json.dumps(pattern) for pattern in patterns)
            wanted = wanted if PLAIN.fullmatch(wanted) else json.dumps(wanted, ensure_ascii=False)
            help = f"add it: `uses mcp {server}({shown}, {wanted})`."
            report.add(span, f"`uses mcp {server}(…)` does not grant `{name}`", help=help)


@rule("E0442", "error")
def exposed_handler(file: Analysis, report: Report) -> None:
    """What an agent exposes is made by a handler that it does not have, or is named twice.

    `expose mcp { … }` names a handler of the agent for each resource and each prompt. It may be private, if it is not
    to be a tool as well.

    Wrong:

        role Reader { can execute }
        agent Shelf : Reader { expose mcp { resource "notes://today" = today }  on todays() { return "Nothing." } }

    Right:

        role Reader { can execute }
        agent Shelf : Reader { expose mcp { resource "notes://today" = today }  on today() { return "Nothing." } }
    """
    for agent, _ in file.index.of(n.Agent):
        handlers = [item.name.name for item in agent.items if isinstance(item, n.Handler) and not item.guard]
        seen: set[tuple[str, str]] = set()
        for each in (one for item in agent.items if isinstance(item, n.ExposeMcp) for one in item.items):
            if each.handler.name not in handlers:
                message = f"`{agent.name.name}` does not handle `{each.handler.name}`"
                help = suggestion(each.handler.name, handlers, "handler")
                fixes = report.replacement(each.handler.span, nearest(each.handler.name, handlers))
                report.add(each.handler.span, message, help=help, fixes=fixes)
            if (each.kind, each.target.name) in seen:
                help = "give each of them another name."
                report.add(each.target.span, f"the {each.kind} `{each.target.name}` is exposed twice", help=help)
            seen.add((each.kind, each.target.name))


def _granted_tools(agent: n.Agent) -> Mapping[str, tuple[str, ...]]:
    """The servers of which an agent may use only a part, with the patterns."""
    uses = [item for item in agent.items if isinstance(item, n.Uses) and item.kind == "mcp"]
    listed = [each for item in uses for each in item.tools]
    whole = {id(name) for item in uses for name in item.names} - {id(each.server) for each in listed}
    names = {name.name for item in uses for name in item.names if id(name) in whole}
    found: dict[str, tuple[str, ...]] = {}
    for each in listed:
        if each.server.name not in names:
            patterns = tuple(pattern.value for pattern in each.patterns)
            found[each.server.name] = found.get(each.server.name, ()) + patterns
    return found


def _find_mentions(file: Analysis) -> Iterator[tuple[Span, n.Expression, str, str]]:
    """What code says to use of something by name: where, of what, its name and its kind."""
    for call, _ in file.index.of(n.Call):
        callee, first = call.callee, next(iter(call.arguments), None)
        if isinstance(callee, n.Member) and callee.name in KINDS and isinstance(first, n.Text):
            yield first.span, callee.object, first.value, KINDS[callee.name]
    for member, _ in file.index.of(n.Member):
        if member.name not in KINDS and member.name not in COMMON:
            yield member.name_span, member.object, member.name, ""
    for index, _ in file.index.of(n.Index):
        if isinstance(index.index, n.Text):
            yield index.index.span, index.object, index.index.value, ""
