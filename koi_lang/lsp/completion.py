"""Completion: names of the program, words of the language, and actions at the cursor."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator

from lsprotocol import types

from koi_lang.compiler.imports import STANDARD
from koi_lang.compiler.rules.actions import FIELDS
from koi_lang.compiler.rules.jobs import CHOICES
from koi_lang.compiler.rules.members import MEMBERS, OF_AGENTS
from koi_lang.compiler.rules.program import handlers
from koi_lang.compiler.rules.roles import PERMISSIONS
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.rules.types import SHOWN
from koi_lang.compiler.syntax_errors.agents import ITEMS
from koi_lang.compiler.syntax_errors.files import DECLARATIONS
from koi_lang.lsp.completer import Completer, CompletionCandidate, Rule, names_in_code, signature_of
from koi_lang.schedules.days import DAY_WORDS
from koi_lang.schedules.job import OPTIONS, Trigger
from koi_lang.schedules.triggers import KINDS

MAX_FILES = 200
# What stands before the words of a job.
JOB = r"\brun\s+\w+\.\w+\([^\n]*\)\s*(?P<trigger>every|when)\s*"
RULES: list[tuple[re.Pattern[str], tuple[str, ...], Rule]] = []


def rule(pattern: str, *regions: str) -> Callable[[Rule], Rule]:
    """Register the completions behind a pattern, in certain regions, or in all."""

    def enter(find: Rule) -> Rule:
        RULES.append((re.compile(rf"(?:{pattern})(?P<typed>[\w$]*)$"), regions, find))
        return find

    return enter


@rule(r"\bimport\b[^\"'\n]*[\"'](?P<path>[^\"'\n]*?)")
def _imports(match: re.Match[str], completer: Completer) -> Iterator[CompletionCandidate]:
    written = match["path"]
    if not written.startswith("."):
        yield from (
            CompletionCandidate(STANDARD + name, "file", "standard library") for name in completer.files.names("std")
        )
        return
    folder = posixpath.join(posixpath.dirname(completer.snapshot.document.path), posixpath.dirname(written))
    for name in completer.files.names(posixpath.normpath(folder))[:MAX_FILES]:
        if name.endswith((".koi", ".py", ".prompt", ".md")) or "." not in name:
            yield CompletionCandidate(name, "file")


@rule(r"\bcan\s+|\bneeds\s+", "code", "item", "top")
def _permissions(_: re.Match[str], completer: Completer) -> Iterator[CompletionCandidate]:
    own = set(completer.program.permissions.values()) - set(PERMISSIONS)
    yield from (CompletionCandidate(name, "permission", "permission") for name in (*PERMISSIONS, *sorted(own)))


@rule(r"\bagent\s+\w+\s*:\s*|\.(?:role|as)\(\s*|\bas:\s*")
def _roles(_: re.Match[str], completer: Completer) -> Iterable[CompletionCandidate]:
    return completer.names("role")


@rule(r"\buses\s+(?P<kind>skill|team|mcp)\s+(?:\w+\s*,\s*)*")
def _names_of_uses(match: re.Match[str], completer: Completer) -> Iterable[CompletionCandidate]:
    return completer.names(match["kind"])  # type: ignore[arg-type]


@rule(r"\buses\s+")
def _uses(_: re.Match[str], _completer: Completer) -> Iterator[CompletionCandidate]:
    words = ("skill", "team", "mcp", "skills", "instructions", "memory")
    yield from (CompletionCandidate(word, "keyword") for word in words)


@rule(r"(?P<base>peers|\w+)(?:\(\s*(?P<team>\w+)\s*\))?\s*\.event\(\s*[\"']")
def _events(match: re.Match[str], completer: Completer) -> Iterator[CompletionCandidate]:
    file, agent = completer.snapshot.file, completer.agent("this")
    name = match["team"] or match["base"]
    if file is None:
        return
    if name == "peers":
        teams = (completer.program.teams_of(agent, file) if agent is not None else None) or []
    else:
        found = completer.program.team(name, file)
        teams = [found] if found is not None else []
    for team, home in teams:
        members = completer.program.members(team, home)
        for event, handling in members.by_event.items() if members is not None else ():
            yield CompletionCandidate(event, "event", ", ".join(each.name.name for each, _ in handling))


@rule(r"\bcallAction\(\s*[\"']|[\"']intent[\"']\s*:\s*[\"']")
def _actions(_: re.Match[str], completer: Completer) -> Iterator[CompletionCandidate]:
    for name, fields in FIELDS.items():
        yield CompletionCandidate(name, "action", ", ".join(fields))
    for agent in completer.names("agent") if completer.cursor.region == "prose" else ():
        node = completer.agent(agent.name)
        yield from (
            CompletionCandidate(each.name.name, "event", agent.name) for each in (handlers(node) if node else ())
        )


@rule(
    r"[\"']intent[\"']\s*:\s*[\"'](?P<action>\w+)[\"'][^{}]*[,{]\s*[\"']|\bcallAction\(\s*[\"'](?P<called>\w+)[\"']\s*,\s*\{(?:[^{}]*,)?\s*"
)
def _fields_of_action(match: re.Match[str], _: Completer) -> Iterator[CompletionCandidate]:
    fields = FIELDS.get(match["action"] or match["called"], {})
    yield from (
        CompletionCandidate(name, "field", f"{kind}{'' if must else ', may be left out'}")
        for name, (must, kind) in fields.items()
    )


@rule(r"\brun\s+\w+\.\w+\((?:[^()]|\([^()]*\))*\)[ \t]+")
def _triggers(_: re.Match[str], _completer: Completer) -> Iterator[CompletionCandidate]:
    yield from (CompletionCandidate(word, "keyword") for word in OPTIONS)


@rule(rf"{JOB}[\"'](?:[^\"']*[\s,])?")
def _words_of_job(match: re.Match[str], _: Completer) -> Iterator[CompletionCandidate]:
    words = DAY_WORDS if match["trigger"] == "every" else KINDS
    yield from (CompletionCandidate(word, "keyword") for word in words)


@rule(rf"{JOB}(?:\"[^\"]*\"|'[^']*')\s*\{{(?:[^{{}}]*,)?\s*")
def _options_of_job(match: re.Match[str], _: Completer) -> Iterator[CompletionCandidate]:
    trigger: Trigger = "every" if match["trigger"] == "every" else "when"
    yield from (CompletionCandidate(name, "field") for name in OPTIONS[trigger])


@rule(rf"{JOB}(?:\"[^\"]*\"|'[^']*')\s*\{{[^{{}}]*\b(?P<option>missed|overlap)\s*[:=]\s*[\"']")
def _values_of_option(match: re.Match[str], _: Completer) -> Iterator[CompletionCandidate]:
    yield from (CompletionCandidate(value, "keyword") for value in CHOICES[match["option"]])


@rule(r"\b(?P<owner>[A-Za-z_]\w*)(?:::)", "prose", "text")
@rule(r"\b(?P<owner>this|[A-Za-z_]\w*)\.handle\(\s*[\"']")
@rule(r"\brun\s+(?P<owner>\w+)\.")
def _handlers(match: re.Match[str], completer: Completer) -> Iterator[CompletionCandidate]:
    for agent in completer.members_of(match["owner"]):
        yield from (CompletionCandidate(each.name.name, "handler", signature_of(each)) for each in handlers(agent))


@rule(r"(?:\bthis\.|\{\{\s*|\$\{\s*|[\s(])state\.")
def _state(_: re.Match[str], completer: Completer) -> Iterator[CompletionCandidate]:
    agent = completer.agent("this")
    for name, field in fields_of(agent).items() if agent is not None else ():
        yield CompletionCandidate(name, "field", field.type.one_line if field.type is not None else "")


@rule(r"\b(?P<path>(?:args|(?:this\.)?state\.\w+)(?:\.\w+|\[\w*\])*)\.")
@rule(r"\b(?P<path>[A-Za-z_]\w*(?:\.\w+|\[\w*\])+)\.", "code")
def _fields(match: re.Match[str], completer: Completer) -> Iterator[CompletionCandidate]:
    return completer.fields_at(match["path"])


@rule(r"\{\{\s*", "prose")
def _holes(_: re.Match[str], completer: Completer) -> Iterator[CompletionCandidate]:
    for field in completer.fields_at("args"):
        yield CompletionCandidate(f"args.{field.name}", "field", field.detail)
    agent = completer.agent("this")
    yield from (
        CompletionCandidate(f"state.{name}", "field") for name in (fields_of(agent) if agent is not None else ())
    )
    yield from (CompletionCandidate(name, "variable") for name in ("args", "state", "agentName", "userMessage"))


@rule(r"^\s*@", "prose")
def _directives(_: re.Match[str], _completer: Completer) -> Iterator[CompletionCandidate]:
    yield from (CompletionCandidate(word, "keyword") for word in ("if", "else", "let"))


@rule(r"\b(?P<owner>[A-Za-z_]\w*)\.", "code")
def _members(match: re.Match[str], completer: Completer) -> Iterator[CompletionCandidate]:
    owner = match["owner"]
    agent = completer.agent(owner)
    if agent is not None:
        yield from (CompletionCandidate(each.name.name, "handler", signature_of(each)) for each in handlers(agent))
        yield from (CompletionCandidate(name, "field") for name in sorted(OF_AGENTS))
    elif owner in MEMBERS:
        yield from (CompletionCandidate(name, "field") for name in sorted(MEMBERS[owner]))
    else:
        yield from completer.fields_at(owner)
        yield from _result_fields(owner, completer)


@rule(r"\bplaybook\s+(?:\w+\s*\+\s*)*|\bprompt\s+\w+\s*=\s*(?:\w+\s*\+\s*)*", "code", "top")
def _prompts(_: re.Match[str], completer: Completer) -> Iterable[CompletionCandidate]:
    return completer.names("prompt")


@rule(r"[\w)?]\s*:\s*", "code", "item", "top")
def _types(match: re.Match[str], completer: Completer) -> Iterable[CompletionCandidate]:
    if not re.search(r"\b(?:on|function|state|type)\b|=>", match.string):
        return names_in_code(completer)
    return [*completer.names("type"), *(CompletionCandidate(name, "type") for name in SHOWN)]


def _result_fields(variable: str, completer: Completer) -> Iterator[CompletionCandidate]:
    """The fields of a handler's result, where a variable was set to it and the type is declared."""
    given = rf"\b{re.escape(variable)}\s*=\s*await\s+(?:(\w+)\.(\w+)\(|send\b[^\n]*?\.event\(\s*[\"'](\w+))"
    found = re.search(given, completer.cursor.before)
    file = completer.snapshot.file
    if found is None or file is None:
        return
    event = found[2] or found[3]
    agents = [found[1]] if found[1] else file.table.names("agent")
    for agent in filter(None, map(completer.agent, agents)):
        for handler in handlers(agent):
            if handler.name.name == event and handler.returns is not None:
                fields = handler.returns.fields
                yield from (CompletionCandidate(each.name, "field", each.type.one_line) for each in fields)


Item = types.CompletionItemKind
ITEM_KINDS: dict[str, types.CompletionItemKind] = {
    "role": Item.Interface, "agent": Item.Class, "team": Item.Struct, "skill": Item.Module, "mcp": Item.Module,
    "prompt": Item.Constant, "function": Item.Function, "module": Item.Module, "type": Item.TypeParameter,
    "handler": Item.Method, "event": Item.Event, "field": Item.Field, "action": Item.Event,
    "permission": Item.EnumMember, "keyword": Item.Keyword, "variable": Item.Variable,
    "file": Item.File, "value": Item.Value,
}  # fmt: skip


def complete(completer: Completer) -> list[types.CompletionItem]:
    """The completions at the cursor, each once, the likeliest first."""
    found: dict[str, types.CompletionItem] = {}
    for candidate in _candidates(completer):
        if candidate.name not in found:
            found[candidate.name] = types.CompletionItem(
                candidate.name,
                kind=ITEM_KINDS[candidate.kind],
                detail=candidate.detail or None,
                sort_text=f"{len(found):04}",
            )
    return list(found.values())


def _candidates(completer: Completer) -> Iterable[CompletionCandidate]:
    cursor = completer.cursor
    for pattern, regions, find in RULES:
        match = pattern.search(cursor.line) if not regions or cursor.region in regions else None
        if match is not None:
            return find(match, completer)
    if cursor.region == "top":
        return [CompletionCandidate(word, "keyword") for word in (*DECLARATIONS, "export")]
    if cursor.region == "item":
        return [CompletionCandidate(word, "keyword") for word in ITEMS]
    return names_in_code(completer) if cursor.region == "code" else ()
