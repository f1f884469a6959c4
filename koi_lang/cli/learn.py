"""`koi learn`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from koi_lang import settings
from koi_lang.cli import freeze, memory
from koi_lang.cli.lessons import DecidedLesson, decided_in, decisions_in, proposals_in, refusals_in
from koi_lang.cli.running import run_program
from koi_lang.cli.ui.interrupts import leave
from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError, reason
from koi_lang.events import HandlerEnded, ModelAnswered
from koi_lang.freezing.recordings import playbook_calls, playbook_in, why_unusable
from koi_lang.program import loader
from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.guidance import note_index
from koi_lang.runtime.journal import reader, store
from koi_lang.runtime.journal.entries import LESSON_WORDS, Header, JournalEntry
from koi_lang.runtime.model_calls.frozen_plans import FOLDER as PLANS
from koi_lang.runtime.model_calls.frozen_plans import PROVIDER, plan_path
from koi_lang.runtime.ports import RunPort
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.trust import signed_journals
from koi_lang.settings import read_settings
from koi_lang.settings.lasting_rules import LastingRules
from koi_lang.settings.project_record import ProjectRecord
from koi_lang.std.memory import MAX_COMPARED, is_alike, says_the_same
from koi_lang.system import resources
from koi_lang.system.open_folders import replace_inside
from koi_lang.system.text_width import clean

# How often something was done, allowed or corrected before it is offered.
MIN_CALLS = 3
MIN_ALLOWED = 3
MIN_CORRECTED = 2
MIN_TASKS = 3
# Steps that make a skill, at least; the actions that change a file; the words by which commands are one step.
MIN_STEPS = 2
CHANGING = frozenset({"write_file", "edit_file", "patch_file"})
COMMAND_WORDS = 2
DRAFTS = ".agents/skills/proposed"
FOLDER = "learn"
REFUSED = "refused"
# Signs by which a rule would mean more than one command or file.
PATTERN_SIGNS = frozenset("*?[]{}\n")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something that recorded runs suggest.

    Attributes:
        kind: `freeze`, `rule`, `note`, `lesson` or `skill`.
        what: the words of the command that a yes stands for, the rule, or the runs.
        why: how often it was recorded.
    """

    kind: str
    what: tuple[str, ...]
    why: str

    @property
    def id(self) -> str:
        """A name that stays as long as the offer is the same."""
        return blake2b("\0".join((self.kind, *self.what)).encode("utf-8", "surrogatepass"), digest_size=3).hexdigest()

    @property
    def text(self) -> str:
        """The offer as a person reads it."""
        heads = {
            "freeze": "freeze",
            "rule": "always allow",
            "note": "keep the note",
            "lesson": "keep the lesson",
            "skill": "draft a skill from",
        }
        return f"{heads[self.kind]} {' '.join(self.what)}"


@dataclass(slots=True)
class HandlerCalls:
    """Recorded calls of a handler, and what models took for them.

    Attributes:
        playbook: the text that all of them have.
        calls: those that can be explained.
    """

    playbook: str
    calls: int = 0
    requests: int = 0
    usd: float = 0.0

    def add(self, other: HandlerCalls) -> None:
        """Add other calls of the handler."""
        self.calls += other.calls
        self.requests += other.requests
        self.usd += other.usd


RecordedEntries = tuple[Header, Sequence[JournalEntry]]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@click.option("--yes", "accepted", multiple=True, metavar="ID", help="Do what is offered under an id.")
@click.option("--no", "refused", multiple=True, metavar="ID", help="Never offer it again.")
def command(as_json: bool, accepted: Sequence[str], refused: Sequence[str]) -> None:
    """Offer what recorded runs of this folder suggest: playbooks to freeze, rules, notes and skills.

    Nothing is done without your yes, and no model is asked but for the draft of a skill. What you refuse is not offered
    again. Journals that this machine has not signed count for nothing.
    """
    record = ProjectRecord.of(Path.cwd(), settings.config_folder() / FOLDER)
    never = list(record.read().get(REFUSED, []))
    offers = {offer.id: offer for offer in offers_of(list(recorded_runs(Path.cwd()))) if offer.id not in never}
    unknown = next((id for id in (*accepted, *refused) if id not in offers), None)
    if unknown is not None:
        raise UsageError(
            f"nothing is offered as `{unknown}`", help=suggestion(unknown, list(offers), "offer", "there is")
        )
    if refused:
        record.write({REFUSED: [*never, *refused]})
    for id in accepted:
        accept(offers[id])
    drafted = [id for id in accepted if offers[id].kind == "skill"]
    if drafted:
        record.write({REFUSED: [*never, *refused, *drafted]})
    if accepted or refused:
        return
    if as_json:
        rows = [{"id": id, **asdict(offer), "what": list(offer.what)} for id, offer in offers.items()]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for id, offer in offers.items():
        click.echo(clean(f"{id}  {offer.text}\n        {offer.why}"))
    if not offers:
        click.echo("the recorded runs of this folder suggest nothing", err=True)
    else:
        click.echo("`koi learn --yes ID` does it, and `--no ID` never offers it again", err=True)


def accept(offer: Proposal) -> None:
    """Do what an offer says. Raises KoiError."""
    if offer.kind == "rule":
        LastingRules.of(Path.cwd()).keep(parse_rule(offer.what[0]).text)
        click.echo(clean(f"allowed from now on: {offer.what[0]}; `koi permissions` takes it back"))
        return
    if offer.kind == "skill":
        draft_skill(offer.what)
        return
    if offer.kind == "freeze":
        freeze.command.main([*offer.what, "--yes"], prog_name="koi freeze", standalone_mode=False)
        return
    kind = "preference" if offer.kind == "note" else offer.kind
    memory.add.main(["--kind", kind, *offer.what], prog_name="koi memory add", standalone_mode=False)


def recorded_runs(folder: Path) -> Iterator[RecordedEntries]:
    """The recorded runs of a folder that this machine has signed."""
    return ((journal.header, journal.entries) for journal in signed_journals(folder))


def offers_of(runs: Sequence[RecordedEntries]) -> list[Proposal]:
    """What some runs suggest."""
    return [
        *plans_to_freeze(runs),
        *rules_to_keep(runs),
        *notes_to_keep(runs),
        *lessons_to_keep(runs),
        *skills_to_draft(runs),
    ]


def plans_to_freeze(runs: Sequence[RecordedEntries]) -> Iterator[Proposal]:
    """Playbooks of this folder that were called often and have no plan, those that cost most first."""
    totals: dict[tuple[str, str], HandlerCalls] = {}
    for header, entries in runs:
        for handler, call in usable_calls(entries):
            total = totals.get((header.program, handler))
            if total is None or total.playbook != call.playbook:
                totals[header.program, handler] = call
            else:
                total.add(call)
    ordered = sorted(totals.items(), key=lambda item: (-item[1].usd, -item[1].requests, item[0]))
    for (program, handler), total in ordered:
        file = Path(program)
        if total.calls < MIN_CALLS or not total.requests or not file.is_file() or not is_own(file):
            continue
        has_plan = plan_path(file.parent / PLANS, *handler.split(".", 1)).exists()
        if not has_plan and freeze.can_freeze(program, handler):
            why = f"{total.calls} calls took {total.requests} requests and ${total.usd:.4f}"
            yield Proposal("freeze", (file.resolve().relative_to(Path.cwd().resolve()).as_posix(), handler), why)


def is_own(program: Path) -> bool:
    """Whether a program belongs to this folder, and is none of those that come with Koi."""
    is_here = program.resolve().is_relative_to(Path.cwd().resolve())
    return is_here and not program.resolve().is_relative_to(resources.standard_skills().resolve())


def usable_calls(entries: Sequence[JournalEntry]) -> Iterator[tuple[str, HandlerCalls]]:
    """The calls in a run that can be explained, each with its handler; requests of calls within count for it, too."""
    for within in playbook_calls(entries):
        if why_unusable(within):
            continue
        answers = [each.data for each in within if each.kind == ModelAnswered.type]
        paid = [each for each in answers if not str(each.get("model", "")).startswith(f"{PROVIDER}/")]
        usd = sum(float(each.get("usd") or 0.0) for each in paid)
        call = HandlerCalls(playbook_in(within), 1, len(paid), usd)
        yield f"{within[0].agent}.{within[0].data.get('event')}", call


def rules_to_keep(runs: Sequence[RecordedEntries]) -> Iterator[Proposal]:
    """Commands and files that the person has allowed again and again, and never refused."""
    allowed: Counter[str] = Counter()
    denied: set[str] = set()
    kept = set(LastingRules.of(Path.cwd()).rules())
    for _, entries in runs:
        begun = {entry.path: entry.data.get("fields") for entry in entries if entry.kind == "begun"}
        for entry in decided_in(entries):
            rule = rule_of(begun, entry.path)
            if rule and entry.data.get("answer") == "no":
                denied.add(rule)
            elif rule:
                allowed[rule] += 1
    for rule, count in allowed.most_common():
        if count >= MIN_ALLOWED and rule not in denied and parse_rule(rule).text not in kept:
            yield Proposal("rule", (rule,), f"you have allowed it {count} times")


def rule_of(begun: dict[tuple[str, ...], Any], path: tuple[str, ...]) -> str:
    """The rule for what an approval was about; empty where it is about neither a command nor a file."""
    for length in range(len(path), 0, -1):
        fields = begun.get(path[:length])
        if not isinstance(fields, dict):
            continue
        for name, kind in (("command", "run"), ("path", "write")):
            value = fields.get(name)
            if isinstance(value, str) and value.strip() and PATTERN_SIGNS.isdisjoint(value):
                return f"{kind}:{value.strip()}"
    return ""


def notes_to_keep(runs: Sequence[RecordedEntries]) -> Iterator[Proposal]:
    """Reasons of refusals that were given in at least two runs, and are in no note and no decided lesson."""
    groups: list[list[str]] = []
    decided = list(decided_lessons(runs))
    for _, entries in runs:
        for refusal in dict.fromkeys(refusals_in(entries)):
            if any(each.rests_on(refusal) for each in decided):
                continue
            group = next((each for each in groups if is_alike(each[0], refusal)), None)
            if group is None:
                groups.append([refusal])
            else:
                group.append(refusal)
    with closing(note_index.open_notes(Path.cwd())) as notes:
        for group in groups:
            if len(group) >= MIN_CORRECTED and not is_kept(notes, group[-1]):
                yield Proposal("note", (group[-1],), f"you have said it in {len(group)} runs")


def lessons_to_keep(runs: Sequence[RecordedEntries]) -> Iterator[Proposal]:
    """The lessons of unattended work that are no notes yet, each once; what the person decided about stays decided."""
    lessons: dict[str, str] = {}
    for header, entries in runs:
        if tuple(header.words) == LESSON_WORDS:
            lessons |= dict(proposals_in(entries))
    decided = [each.lesson for each in decided_lessons(runs)]
    lessons = {text: why for text, why in lessons.items() if not any(says_the_same(text, each) for each in decided)}
    with closing(note_index.open_notes(Path.cwd())) as notes:
        for text, source in lessons.items():
            if not is_kept(notes, text):
                yield Proposal("lesson", (text,), source)


def is_kept(notes: note_index.NoteIndex, text: str) -> bool:
    """Whether a note of this folder says the same."""
    return any(says_the_same(text, each.note.text) for each in notes.search(text, MAX_COMPARED))


def decided_lessons(runs: Sequence[RecordedEntries]) -> Iterator[DecidedLesson]:
    """The lessons that the person has decided about."""
    for header, entries in runs:
        if tuple(header.words) == LESSON_WORDS:
            yield from decisions_in(entries)


def skills_to_draft(runs: Sequence[RecordedEntries]) -> Iterator[Proposal]:
    """Groups of tasks of `koi do` that took the same steps."""
    tasks: dict[tuple[str, ...], list[Header]] = defaultdict(list)
    for header, entries in runs:
        steps = steps_of(entries) if list(header.words[:1]) == ["do"] else []
        kinds = [step if is_file else " ".join(step.split()[:COMMAND_WORDS]) for step, is_file in steps]
        tasks[tuple(kind for kind, _ in groupby(kinds))].append(header)
    for order, headers in tasks.items():
        if len(order) >= MIN_STEPS and len(headers) >= MIN_TASKS:
            why = f"{len(headers)} tasks took the same steps: {', '.join(order)}"
            yield Proposal("skill", tuple(header.run for header in headers[:MIN_TASKS]), why)


def steps_of(entries: Sequence[JournalEntry]) -> list[tuple[str, bool]]:
    """The commands that ended well and the files that were changed, in order; with each whether it is a file."""
    results = {entry.path: entry.data.get("result") for entry in entries if entry.kind == "done"}
    steps = []
    for entry in entries:
        fields, result = entry.data.get("fields"), results.get(entry.path)
        if entry.kind != "begun" or not isinstance(fields, dict) or not isinstance(result, dict):
            continue
        is_file = entry.data.get("intent") in CHANGING and result.get("success") is not False
        value = fields.get("path" if is_file else "command")
        if isinstance(value, str) and value.strip() and (is_file or result.get("exitCode") == 0):
            steps.append((" ".join(value.split()), is_file))
    return steps


def draft_skill(ids: Sequence[str]) -> None:
    """Have the model for `small` word a skill from recorded tasks; no agent reads the draft. Raises KoiError."""
    found = {header.run: (header, entries) for header, entries in recorded_runs(Path.cwd()) if header.run in ids}
    payload = {
        "tasks": [str(found[id][0].payload.get("task", "")) for id in ids],
        "steps": [[step for step, _ in steps_of(found[id][1])] for id in ids],
    }
    file = str(resources.standard_skills() / "programs/skill_draft.koi")
    runs: list[str] = []

    def note(run: RunPort) -> str:
        runs.append(run.id)
        return ""

    options = RunOptions(
        settings=read_settings(Path.cwd()), payload=payload, as_result=False, report=note, words=("learn", "skill")
    )
    if code := run_program(file, loader.load_compiled(file), options):
        leave(code)
    entries = reader.read(store.find(Path.cwd(), runs[0])).entries
    draft = next(
        each.data["result"] for each in entries if each.kind == HandlerEnded.type and each.data["event"] == "draft"
    )
    path = f"{DRAFTS}/{draft['name']}/SKILL.md"
    try:
        replace_inside(Path.cwd(), Path.cwd().resolve() / path, draft["text"].encode())
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written: {reason(error)}", help="Look what is in its place.") from error
    click.echo(f"drafted {path}; move its folder to .agents/skills to have agents use it")
