"""Names in sentences of playbooks that nothing has, and that something nearly has."""

from __future__ import annotations

import re
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.actions import FIELDS
from koi_lang.compiler.rules.program import AnalysedProgram, handlers
from koi_lang.compiler.rules.prose.abilities import Abilities, abilities_of
from koi_lang.compiler.rules.prose.delegations import asked_in
from koi_lang.compiler.rules.prose.playbooks import PlaybookText, playbook_texts
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.diagnostics import SLIP_IN_FIVE, SLIP_IN_FOUR, nearest

HOLE = re.compile(r"\{\{.*?\}\}|`{3}.*?`{3}", re.DOTALL)
DOTTED = re.compile(r"(?<![\w.$@/:-])(?P<owner>\w+)(?P<separator>\.|::)(?P<name>[A-Za-z_]\w*)(?![\w/@-])")
INTENT = re.compile(r"[\"']intent[\"']\s*:\s*[\"'](?P<name>\w+)[\"']")
# A word that no language has: with an underscore or a capital letter inside.
WRITTEN_NAME = re.compile(r"(?<![\w.$@/:<{-])(?P<name>[a-z]+(?:_[a-z]+)+|[a-z]+(?:[A-Z][a-z]+)+)(?![\w/@:.(-])")
# What stands before somebody who is asked, rather than before another word as in `get started`.
SOMEBODY = re.compile(r"\b(?:the|our|a|al|el|la|en)\s+$", re.IGNORECASE)
# Shorter words are alike by chance.
MIN_CHARS = 5


@dataclass(frozen=True, slots=True)
class NameOwner:
    """What has the names that may stand behind it, and what such a name is called."""

    kind: str
    separator: str
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class SlippedName:
    """A name that nothing has: its offsets in a text, what it is none of, and what is to stand there."""

    name: str
    start: int
    end: int
    kind: str
    near: str


@rule("E0621", "warning")
def misspelt_in_prose(file: Analysis, report: Report) -> None:
    """A sentence of a playbook names something that does not exist, and that nearly does.

    It may be a field of the state (`state.count`), an event of an agent or member (`Adder::add`), a member who is asked
    for something, a function of a skill (`Prices.total`), a tool that is granted (`files.read_file`), or an action that
    is written out. The model is left to guess what is meant, or asks for what nobody has. A name that the file writes
    more than once counts as meant. `[check] prose = false` in `koi.toml` turns warnings about prose off.

    Wrong:

        in agent: state { count = 0 }  on tell(args) { playbook "Add 1 to state.cuont." }

    Right:

        in agent: state { count = 0 }  on tell(args) { playbook "Add 1 to state.count." }
    """
    for text in report.program.for_file(playbook_texts, file):
        owners = report.program.for_file(_owners_of, file)[text.agent]
        seen: set[int] = set()
        for slip in chain(
            _find_dotted(text, owners), _find_members(text, report), _find_actions(text), _find_words(text, owners)
        ):
            is_meant = report.program.for_file(_count_words, file)[slip.name] > 1
            if is_meant or slip.start in seen:
                continue
            seen.add(slip.start)
            message = f"this sentence names `{slip.name}`, which is no {slip.kind}"
            fixes = text.replacement(slip.start, slip.end, slip.near)
            report.add(text.place(slip.start, slip.end), message, help=f"did you mean `{slip.near}`?", fixes=fixes)


def _count_words(file: Analysis, _: AnalysedProgram) -> Counter[str]:
    """How often each word stands in a file."""
    return Counter(re.findall(r"\w+", file.unit.source.text))


def _owners_of(file: Analysis, program: AnalysedProgram) -> dict[n.Agent, Mapping[str, NameOwner]]:
    agents = _agent_owners(file)
    return {agent: ChainMap(_owners(each), agents) for agent, each in program.for_file(abilities_of, file).items()}


def _agent_owners(file: Analysis) -> dict[str, NameOwner]:
    """All agents that a file knows, which the sentences of each of them may name."""
    found = {name: file.table.find("agent", name) for name in file.table.names("agent")}
    nodes = {name: symbol.node for name, symbol in found.items() if symbol is not None}
    return {name: _owner_of_events(name, node) for name, node in nodes.items() if isinstance(node, n.Agent)}


def _agent_words(file: Analysis, _: AnalysedProgram) -> frozenset[str]:
    """The names of all agents in lower case."""
    return frozenset(map(str.lower, file.table.names("agent")))


def _owner_of_events(name: str, agent: n.Agent) -> NameOwner:
    return NameOwner(f"event of `{name}`", "::", tuple(each.name.name for each in handlers(agent)))


def _owners(abilities: Abilities) -> dict[str, NameOwner]:
    """What else a sentence may name a part of: the state, members, skills and servers that the agent uses."""
    found = {"state": NameOwner("field of the state", ".", tuple(fields_of(abilities.agent)))}
    for key, (member, _) in (abilities.members or {}).items():
        if isinstance(member, n.Agent):
            found[key] = _owner_of_events(key, member)
    for name, functions in abilities.functions.items():
        found[name] = NameOwner(f"function of `{name}`", ".", tuple(each.name for each in functions if each.name))
    for name, tools in abilities.tools.items():
        if tools is not None:
            found[name] = NameOwner(f"tool that `uses mcp {name}(…)` grants", ".", tools)
    return found


def _find_dotted(text: PlaybookText, owners: Mapping[str, NameOwner]) -> Iterator[SlippedName]:
    """Names such as `state.count` and `member::event` outside of placeholders and examples of code."""
    if "." not in text.text.value and "::" not in text.text.value:
        return
    prose = HOLE.sub(lambda found: " " * len(found[0]), text.text.value)
    for found in DOTTED.finditer(prose):
        owner = owners.get(found["owner"])
        name = found["name"]
        separator = found["separator"]
        if owner is None and separator == "::":
            keys = [key for key, each in owners.items() if each.separator == "::"]
            near = nearest(found["owner"], keys, alike=SLIP_IN_FOUR)
            if near is not None:
                yield SlippedName(found["owner"], *found.span("owner"), "member of the team", near)
        elif owner is not None and owner.separator == separator and name not in owner.names:
            near = nearest(name, owner.names, alike=SLIP_IN_FOUR)
            if near is not None:
                yield SlippedName(name, *found.span(), owner.kind, f"{found['owner']}{separator}{near}")


def _find_members(text: PlaybookText, report: Report) -> Iterator[SlippedName]:
    """Those who are asked for something in plain words."""
    members = report.program.for_file(abilities_of, text.file)[text.agent].members or {}
    agents = report.program.for_file(_agent_words, text.file)
    for asked in report.program.for_file(asked_in, text.file)[text] if members else ():
        near = None if asked.who.lower() in members else nearest(asked.who, members, alike=SLIP_IN_FOUR)
        is_somebody = SOMEBODY.search(text.prose[asked.start : asked.name_start])
        if is_somebody and len(asked.who) >= MIN_CHARS and asked.who.lower() not in agents and near is not None:
            yield SlippedName(asked.who, asked.name_start, asked.name_end, "member of the team", near)


def _find_actions(text: PlaybookText) -> Iterator[SlippedName]:
    """Actions that are written out as JSON."""
    for found in INTENT.finditer(text.text.value):
        near = None if found["name"] in FIELDS else nearest(found["name"], FIELDS, alike=SLIP_IN_FIVE)
        if near is not None:
            yield SlippedName(found["name"], *found.span("name"), "action", near)


def _find_words(text: PlaybookText, owners: Mapping[str, NameOwner]) -> Iterator[SlippedName]:
    """Words that look like names of code, and are nearly one of those that the agent has."""
    found = list(WRITTEN_NAME.finditer(text.prose))
    if not found:
        return
    known = {name for owner in owners.values() for name in owner.names} | FIELDS.keys()
    for word in found:
        near = None if word["name"] in known else nearest(word["name"], known, alike=SLIP_IN_FIVE)
        if near is not None:
            yield SlippedName(word["name"], *word.span("name"), "name of anything here", near)
