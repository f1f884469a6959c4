"""Lessons at the end of `koi do` and `koi chat`: what the person said against something, offered as notes."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from koi_lang.cli.running import run_program
from koi_lang.errors import JournalError
from koi_lang.events import ApprovalGiven, HandlerEnded, HandlerStarted, MessageDelivered, PersonAnswered
from koi_lang.program import loader
from koi_lang.runtime.actions.planning import PLAN_QUESTION
from koi_lang.runtime.guidance.notes import FOLDER
from koi_lang.runtime.journal import reader, store
from koi_lang.runtime.journal.entries import LESSON_WORDS, JournalEntry
from koi_lang.runtime.playbook.steering import PERSON
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.trust import signed_journals
from koi_lang.settings.project import proposes_lessons
from koi_lang.std.memory import is_alike, says_the_same
from koi_lang.system import resources

# The handler whose result is proposals.
PROPOSING = "propose"
# How the question about a lesson, and its line with the evidence, begin in `programs/lessons.koi`.
ASKING, RESTING = "Lesson: ", "from: "
# How the question about a command goes on behind it.
CONFINED = re.compile(r"` in the sandbox, with(?:out)? network(?:, .*)?$")
BECAUSE = ", because "
MAX_EVIDENCE = 12
MAX_CHARS = 300
# Answers to a plan that say nothing about it.
PLAIN_ANSWERS = frozenset({"accept", "edit", "refuse", "yes", "no", "y", "n", ""})


def offer_lessons(run: str, options: RunOptions) -> None:
    """Offer lessons of a recorded run to the person at a terminal.

    The model for `small` words them, in a run of its own. Where nobody is at a terminal nothing is kept; with
    `[memory] keep = "propose"` the journal of that run holds them for `koi learn`.

    Args:
        run: its id.
        options: of the run.
    """
    is_seen = sys.stdin.isatty() and sys.stderr.isatty() and not (options.quiet or options.as_json)
    has_stand_in = options.rehearse or options.answers is not None
    if has_stand_in or options.record is False or options.no_memory:
        return
    if not is_seen and not proposes_lessons(options.settings):
        return
    try:
        entries = [line.entry for line in reader.lines(store.find(options.folder, run)) if line.entry is not None]
    except JournalError:
        return
    decided = [
        each for journal in signed_journals(options.folder, LESSON_WORDS) for each in decisions_in(journal.entries)
    ]
    news = (line for line in evidence_in(entries) if not any(says_the_same(line, each.source) for each in decided))
    evidence = list(islice(news, MAX_EVIDENCE))
    if evidence:
        file = str(resources.standard_skills() / "programs/lessons.koi")
        wished = replace(
            options,
            payload={"evidence": evidence, "asks": is_seen, "decided": [each.lesson for each in decided]},
            allow=(*options.allow, f"write:{FOLDER}/**"),
            report=None,
            plan=False,
            as_result=False,
            words=LESSON_WORDS,
        )
        run_program(file, loader.load_compiled(file), wished)


def proposals_in(entries: Iterable[JournalEntry]) -> Iterator[tuple[str, str]]:
    """The lessons that a run proposes, each with the line that it rests on."""
    for entry in entries:
        if entry.kind == HandlerEnded.type and entry.data.get("event") == PROPOSING:
            yield from ((_line(each["text"]), _line(each["source"])) for each in entry.data.get("result") or ())


class DecidedLesson(NamedTuple):
    """A lesson that the person has decided about, and the line that it rests on."""

    lesson: str
    source: str

    def rests_on(self, refusal: str) -> bool:
        """Whether its line tells of a refusal with nearly this reason."""
        return is_alike(self.source.rpartition(BECAUSE)[2], refusal)


def decisions_in(entries: Iterable[JournalEntry]) -> Iterator[DecidedLesson]:
    """The lessons of a run that the person has decided about."""
    for entry in entries:
        question = str(entry.data.get("question")) if entry.kind == PersonAnswered.type else ""
        if question.startswith(ASKING):
            lines = [*question.removeprefix(ASKING).splitlines(), "", ""]
            yield DecidedLesson(_line(lines[0]), _line(lines[1].strip().removeprefix(RESTING)))


def refusals_in(entries: Iterable[JournalEntry]) -> Iterator[str]:
    """The reasons of the person for refusing something, in order."""
    for entry in decided_in(entries):
        if entry.data.get("reason"):
            yield _line(entry.data["reason"])


def decided_in(entries: Iterable[JournalEntry]) -> Iterator[JournalEntry]:
    """The decisions of the person about permissions; those that a branch has taken over count for its parent."""
    return (each for each in entries if each.kind == ApprovalGiven.type and not each.data.get("recalled"))


def evidence_in(entries: Iterable[JournalEntry]) -> Iterator[str]:
    """What was said against something in a run, a line each, and findings that came back in a later round."""
    findings: Counter[str] = Counter()
    for entry in entries:
        data = entry.data
        if entry.kind == ApprovalGiven.type and data.get("reason"):
            yield f"refused to {_line(CONFINED.sub('`', str(data.get('what'))))}{BECAUSE}{_line(data['reason'])}"
        elif entry.kind == MessageDelivered.type and data.get("from") == PERSON:
            yield f"said meanwhile: {_line(data.get('text'))}"
        elif entry.kind == "done" and data.get("intent") == PLAN_QUESTION:
            if str(data.get("result", "")).strip().lower() not in PLAIN_ANSWERS:
                yield f"said about the plan: {_line(data.get('result'))}"
        elif entry.kind == HandlerStarted.type and data.get("event") == "change":
            findings.update(set(_findings(data.get("args"))))
    yield from (f"found in {count} rounds: {finding}" for finding, count in findings.items() if count > 1)


def _findings(args: Any) -> Iterator[str]:
    for finding in (args.get("findings") or []) if isinstance(args, dict) else []:
        yield _line(finding.get("text", "") if isinstance(finding, dict) else finding)


def _line(text: Any) -> str:
    return " ".join(str(text).split())[:MAX_CHARS]
