"""Sentences of playbooks that let somebody else work: whom they ask, and whether somebody like that is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.prose.abilities import abilities_of
from koi_lang.compiler.rules.prose.playbooks import PlaybookSentence, PlaybookText, playbook_texts
from koi_lang.compiler.rules.prose.words import pattern, read_words
from koi_lang.compiler.rules.table import Report, rule


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody who is asked for something.

    Attributes:
        start: where the clause begins in the text.
        name_start: where the name of who is asked begins; `end` is where the clause is understood to.
        is_helper: whether it is said of agents, and hardly of the person at the terminal.
    """

    who: str
    start: int
    name_start: int
    end: int
    is_helper: bool

    @property
    def name_end(self) -> int:
        """Where the name ends."""
        return self.name_start + len(self.who)


@rule("E0624", "warning")
def asked_without_team(file: Analysis, report: Report) -> None:
    """A sentence of a playbook asks somebody for help whom the agent cannot reach.

    An agent delegates to members of the teams that it uses, else of those that it belongs to; without one, nobody but
    the person at the terminal is there. Found are members and agents of the program that are in other teams, and
    helpers such as a reviewer where there is no team at all, in English and Spanish. One message an agent and name.

    Wrong:

        role Writer { can delegate }
        agent Author : Writer { on write(args) { playbook "Ask the reviewer to read your draft." } }

    Right:

        role Writer { can delegate }
        agent Critic : Writer { on review(args) { return { good: true } } }
        team Desk { reviewer: Critic }
        agent Author : Writer {
          uses team Desk
          on write(args) { playbook "Ask the reviewer to read your draft." }
        }
    """
    abilities = report.program.for_file(abilities_of, file)
    seen: set[tuple[n.Agent, str]] = set()
    for text, everybody in report.program.for_file(asked_in, file).items():
        members = abilities[text.agent].members
        if members is None:
            continue
        for asked in everybody:
            if (text.agent, asked.who) in seen:
                continue
            seen.add((text.agent, asked.who))
            team = _team_with(asked.who, report.program)
            if asked.who in members or not (team or (asked.is_helper and not members)):
                continue
            help = f"write `uses team {team}` in the agent." if team else "declare a team with it that the agent uses."
            message = f"this sentence asks `{asked.who}`, whom `{text.agent.name.name}` cannot reach"
            report.add(text.place(asked.start, asked.end), message, help=help)


def asked_in(file: Analysis, program: AnalysedProgram) -> dict[PlaybookText, tuple[Asked, ...]]:
    """Everybody whom each playbook asks for something, whether they are there or not; asked for by `for_file`."""
    return {
        text: tuple(asked for each in text.sentences for begin in each.clauses for asked in _find_asked(each, begin))
        for text in program.for_file(playbook_texts, file)
    }


def _find_asked(sentence: PlaybookSentence, begin: int) -> Iterator[Asked]:
    forms = read_words()["delegation"]
    for form in (forms["qualified"], *forms["patterns"]):
        found = pattern(form).match(sentence.prose, begin)
        if found is not None:
            start, (at, _), end = (sentence.start + begin, found.span("who"), sentence.start + found.end())
            yield Asked(found["who"], start, sentence.start + at, end, _is_helper(found.groupdict()))
            return


def _is_helper(words: dict[str, str | None]) -> bool:
    """Whether an agent is meant, whatever the program declares."""
    forms = read_words()["delegation"]
    if words.get("event") or words.get("sure"):
        return pattern(rf"(?:{forms['helper']}|agent|member|team)").match(words["who"] or "") is not None
    if words.get("told"):
        return False
    is_person = pattern(forms["enters"]).match(words.get("what") or "") is not None
    return not is_person and pattern(forms["helper"]).match(words["who"] or "") is not None


def _team_with(who: str, program: AnalysedProgram) -> str | None:
    """The name of a team of the program that has a member of this name, or an agent so called."""
    for file in program.files:
        for team, _ in file.index.of(n.Team):
            for member in team.members:
                names = {member.key.name, getattr(member.value, "name", "").lower()}
                if who in names:
                    return team.name.name
    return None
