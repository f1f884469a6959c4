"""`koi audit`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from koi_lang.cli.completing.values import complete_program
from koi_lang.cli.options import (
    add_options,
    allow_option,
    inspecting_command,
    no_extensions_option,
    options_from,
    spending_options,
)
from koi_lang.cli.ui.cost_text import show_costs
from koi_lang.cli.ui.text import period_text
from koi_lang.errors import UsageError
from koi_lang.grants import EVERYTHING
from koi_lang.program import declarations, loader
from koi_lang.runtime.guards.permissions import explain_rules
from koi_lang.runtime.guards.policy import describe_sources
from koi_lang.sessions.audit import ALLOW, DENY, audit
from koi_lang.sessions.prepared import prepare_program
from koi_lang.system.text_width import clean

# Rows that are lists of names.
LISTS = ("actions", "answers", "guards", "state", "delegates")
# What has a row only where there is something in it.
OFTEN_EMPTY = ("answers", "guards")
TITLE = 10
COUNTS = ("turns", "requests", "tokens")


@click.command()
@click.argument("file", shell_complete=complete_program)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@click.option("--cost", is_flag=True, help="Show what a call of each handler can cost at most.")
@click.option("-m", "--model", metavar="MODEL", help="With `--cost`: use `provider/model`, whatever the program says.")
@add_options(allow_option, *spending_options("the whole run", "the whole run"))
@no_extensions_option
@inspecting_command
def command(file: str, as_json: bool, cost: bool, **given: Any) -> None:
    """Show what a model may do on behalf of each agent of FILE, if it is run in this folder.

    Listed are actions, agents it can delegate to, skills, MCP servers, commands, hosts, and what it may spend. No
    server is started, and no model is asked.
    """
    options = replace(options_from(given), missing_model_help="")
    redact = options.redact
    if options.model is not None and not cost:
        raise UsageError("`-m` says whose prices count, and no costs are wanted", help="add `--cost`.")
    if cost:
        show_costs(prepare_program(file, loader.load_compiled(file), options), as_json=as_json)
        return
    audited = audit(file, options)
    lines = explain_rules(options.allowed_here, options.restrictions_here, options.folder)
    for line in (*declarations.explain_unused_rules(loader.load(file), options.allow, options.settings), *lines):
        click.echo(line, err=True)
    if as_json:
        click.echo(redact(json.dumps(audited, indent=2, default=str)))
        return
    click.echo(redact("\n\n".join(map(_describe_agent, audited))))
    names = ", ".join(name for name, _ in describe_sources())
    click.echo(f"\nThe first of these that applies decides: {names}. If none does, you are asked.")


def _describe_agent(audited: Mapping[str, Any]) -> str:
    """What a person reads of an agent: its name, and a row for each kind of thing."""
    head = f"{audited['agent']} : {audited['role']} {{ {', '.join(audited['capabilities'])} }}"
    rows = {title: [", ".join(audited[title])] for title in LISTS if audited[title] or title not in OFTEN_EMPTY}
    rows["skills"] = _function_lines(audited["functions"])
    rows |= {"refused": _function_lines(audited["refused"])} if audited["refused"] else {}
    if audited["texts"]:
        rows["texts"] = [f"{kind}: {', '.join(names) or 'none here'}" for kind, names in audited["texts"].items()]
    rows["mcp"] = [_server_line(server) for server in audited["mcp"]]
    rules = audited.get("rules", {})
    rows["commands"] = [_commands_line(**audited["commands"], is_restricted=bool(rules.keys() - {"allow"}))]
    if rules:
        rows["rules"] = [f"{name}: {', '.join(texts)}" for name, texts in rules.items()]
    hosts = audited["hosts"]
    rows["hosts"] = [", ".join(["public ones", *hosts["allowed"]]) if hosts["public"] else ""]
    rows["budgets"] = [_budgets_line(**audited["budgets"])]
    if audited["narrowed"]:
        rows["narrowed"] = [line for call in audited["narrowed"] for line in _narrowed_lines(call)]
    return "\n".join([head, *(_row(title, lines) for title, lines in rows.items())])


def _row(title: str, lines: Sequence[str]) -> str:
    """A title and what stands beside it; what files of the folder say can neither hide anything nor add lines."""
    plain = [clean(" ".join(line.split())) for line in lines if line]
    return f"  {title:<{TITLE}} " + f"\n{' ' * (TITLE + 3)}".join(plain or ["none"])


def _function_lines(functions: Mapping[str, Sequence[str]]) -> list[str]:
    """Functions of skills, a line for each permission that they need, those that need none first."""
    lines = [(permission, ", ".join(names)) for permission, names in functions.items()]
    ordered = sorted(lines, key=lambda line: bool(line[0]))
    return [f"{permission}: {names}" if permission else names for permission, names in ordered]


def _server_line(server: Mapping[str, Any]) -> str:
    name = server.get("member", server["server"])
    if "problem" in server:
        return f"{name}: {server['problem']}. {server['help']}".strip()
    args = server.get("args", [])
    words = [server.get("command", server.get("url", "")), *(args if isinstance(args, list) else [args])]
    granted = "" if "member" in server else _patterns(server["granted"])
    rules = {"asks first for": server["ask"], "denied": server["deny"], "allowed without asking": server["allowed"]}
    parts = [f"{title} {_patterns(patterns)}" for title, patterns in rules.items() if patterns]
    model = "may ask the model" if server["may_ask_model"] else ""
    reached = f"{name} ({' '.join([server['transport'], *map(str, words)])})"
    return "; ".join(part for part in (reached, granted, *parts, model) if part)


def _narrowed_lines(call: Mapping[str, Any]) -> Iterator[str]:
    """Who answers a narrowed call as what, and what a model may do in it, each in a line."""
    roles = " and ".join(call["as"]) or "a role that the program chooses"
    for agent in call["agents"]:
        may = [*agent["actions"], *agent["delegates"], *agent["skills"]]
        yield f"{agent['agent']}.{call['event'] or '…'} as {roles}: {', '.join(may)}"
    if not call["agents"]:
        yield f"`{call['event'] or '…'}` of whoever answers, as {roles}"


def _patterns(patterns: Sequence[str]) -> str:
    return "everything" if tuple(patterns) == EVERYTHING else ", ".join(patterns) or "nothing"


def _commands_line(allowed: Sequence[str], others: str, reason: str = "", *, is_restricted: bool) -> str:
    if others == DENY:
        return reason and f"none: {reason}"
    if others == ALLOW:
        return f"all, without asking{', but for what other rules deny or ask about' if is_restricted else ''}"
    return f"{', '.join(allowed)}; asks first for all others" if allowed else "asks first for each"


def _budgets_line(handlers: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Handlers that have the same limits together, then the whole run."""
    alike: dict[str, list[str]] = {}
    for event, budget in handlers.items():
        alike.setdefault(_limits(budget["limits"]), []).append(event)
    clauses = [f"{', '.join(events)}: {limits}" for limits, events in alike.items() if limits]
    return "; ".join([*clauses, *([f"the whole run: {_limits(run)}"] if run else [])])


def _limits(limits: Mapping[str, float]) -> str:
    counts = {name: limits[name] for name in COUNTS if name in limits}
    amounts = [f"{most:,} {name if most != 1 else name.removesuffix('s')}" for name, most in counts.items()]
    amounts += [f"${limits['usd']:g}"] if "usd" in limits else []
    return ", ".join([*amounts, *([period_text(limits["time_s"])] if "time_s" in limits else [])])
