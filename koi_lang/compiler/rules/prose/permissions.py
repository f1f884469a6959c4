"""Sentences of playbooks that ask for what the role of the agent does not permit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import place_of, with_permission
from koi_lang.compiler.rules.prose.abilities import Abilities, abilities_of
from koi_lang.compiler.rules.prose.delegations import asked_in
from koi_lang.compiler.rules.prose.playbooks import PlaybookProse, PlaybookSentence, PlaybookText, playbook_texts
from koi_lang.compiler.rules.prose.words import Capability, pattern, read_capabilities
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from koi_lang.compiler.rules.prose import static_rehearsal
else:
    # Most of what is compiled has no playbook.
    static_rehearsal = lazy_module("koi_lang.compiler.rules.prose.static_rehearsal")

# Commands of one word; one word in backticks is a name otherwise.
COMMANDS = frozenset(
    {"make", "pytest", "ls", "tox", "ruff", "mypy", "eslint", "tsc", "jest", "vitest", "pwd", "whoami"}
)


@dataclass(frozen=True, slots=True)
class NeededPermission:
    """A permission that a clause of a sentence takes: offsets in the text, and what could do the same."""

    permission: str
    start: int
    end: int


@rule("E0623", "warning")
def not_permitted_in_prose(file: Analysis, report: Report) -> None:
    """A sentence of a playbook asks for something that the role of the agent does not permit.

    The action is not in what the model is told of, and is refused if it is asked for. Looked for are commands, the
    registry, the state, files, pages of the web, and members of a team, in English and Spanish; nothing is said where a
    skill, a server or a member of the team may do it. One message an agent and permission.

    Wrong:

        role Reader { can read }
        agent Clerk : Reader { on check(args) { playbook "Run the tests and say which fail." } }

    Right:

        role Tester { can execute }
        agent Clerk : Tester { on check(args) { playbook "Run the tests and say which fail." } }
    """
    seen: set[tuple[n.Agent, str]] = set()
    for text in report.program.for_file(playbook_texts, file):
        if text.answers:
            continue
        abilities = report.program.for_file(abilities_of, file)[text.agent]
        for needed in find_needed(text, abilities):
            if (text.agent, needed.permission) in seen or abilities.role is None:
                continue
            seen.add((text.agent, needed.permission))
            _report(needed, text, abilities, report)


@rule("E0628", "warning")
def answer_that_asks_for_action(file: Analysis, report: Report) -> None:
    """A handler that is declared with `answer` never acts, and its text asks for an action.

    Its model is asked for the result alone. Nothing is printed, nobody is asked, no member and no skill is called,
    whatever the role permits; a model makes up what it would have come to know.

    Wrong:

        in agent: on name(): { name: string } { answer "Ask the person for their name and return it." }

    Right:

        in agent: on name(): { name: string } { playbook "Ask the person for their name and return it." }
    """
    for text in report.program.for_file(playbook_texts, file):
        if text.answers and static_rehearsal.acts(text, answers=True):
            report.add(
                text.place(0, len(text.text.value)),
                "`answer` never acts, and this text asks for an action",
                help="write `playbook`, or ask for nothing but the result.",
            )


def asks_for_action(playbook: n.Playbook) -> bool:
    """Whether a sentence of a playbook asks for more than a result; prompts, which are not read here, may."""
    return any(not isinstance(part, n.Text) or static_rehearsal.acts(PlaybookProse(part)) for part in playbook.parts)


def _report(needed: NeededPermission, text: PlaybookText, abilities: Abilities, report: Report) -> None:
    role, agent = abilities.role, text.agent.name.name
    assert role is not None
    assert isinstance(role.node, n.Role)
    advice = with_permission(role, needed.permission)
    report.add(
        text.place(needed.start, needed.end),
        f"`{agent}` may not do what this sentence asks for",
        label=f"needs the permission `{needed.permission}`",
        others=[place_of(role, f"the role of `{agent}`")],
        help=advice.help,
        fixes=advice.fixes,
    )


def find_needed(text: PlaybookText, abilities: Abilities) -> Iterator[NeededPermission]:
    """What the sentences of a text take and nothing of an agent has."""
    for needed, capability in needed_in(text):
        can_be_done = not capability.is_own and abilities.can_have_done(capability.means, capability.words)
        if not can_be_done and not abilities.may(capability.means):
            yield needed
    if not abilities.may(["delegate"]):
        for asked in abilities.program.for_file(asked_in, abilities.file)[text]:
            if asked.who in (abilities.members or ()):
                yield NeededPermission("delegate", asked.start, asked.end)


def needed_in(text: PlaybookText) -> Iterator[tuple[NeededPermission, Capability]]:
    """What the sentences of a text take, with the entry of the table that says so."""
    fields = fields_of(text.agent)
    for sentence in text.sentences:
        for begin in sentence.clauses:
            for capability in read_capabilities():
                found = _match(capability.patterns, sentence, begin)
                if found is not None and found.groupdict().get("field") in (None, *fields):
                    at = sentence.start
                    yield NeededPermission(capability.permission, at + begin, at + found.end()), capability


def _match(patterns: tuple[str, ...], sentence: PlaybookSentence, begin: int) -> re.Match[str] | None:
    for each in patterns:
        found = pattern(each).match(sentence.prose, begin)
        if found is not None and _is_command(sentence.written, found):
            return found
    return None


def _is_command(written: str, found: re.Match[str]) -> bool:
    """Whether code in backticks, where a clause ends with some, is a command rather than a name or a query."""
    code = written[found.start() : found.end()].partition("`")[2].strip("`")
    return not code or code in COMMANDS or (" " in code and not code.split()[0].isupper())
