"""The state of a run at its restart, made from its entries: outcomes by path, and their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from koi_lang.errors import OverLimitError, ProgramChangedError
from koi_lang.events import (
    PAID,
    AnswerDiscarded,
    ApprovalGiven,
    ApprovalRequested,
    CallEnded,
    CallStarted,
    DoubtSettled,
    Event,
    EventData,
    HandlerEnded,
    HandlerFailed,
    HandlerStarted,
    HookDecided,
    LinePrinted,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelWrote,
    PersonAnswered,
    PersonAsked,
    ReadOnlyFound,
    RetryEnded,
    RetryStarted,
    RunEnded,
    RunResumed,
    StateChanged,
    TimedOut,
    TimerFired,
)
from koi_lang.redaction.redactor import HIDDEN
from koi_lang.runtime.journal.entries import (
    PASSED_ON,
    JournalEntry,
    Redact,
    event_data,
    kind_of,
    plain,
    written_entry,
)
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.runtime.replay.comparison import COMPARED, is_same_entry, is_same_input
from koi_lang.runtime.replay.doubts import Decide, stop_always
from koi_lang.runtime.replay.error_records import class_name
from koi_lang.runtime.replay.location import BRANCH, Path, current_place
from koi_lang.runtime.replay.ordering import BEGIN, END, FIRED, LATE
from koi_lang.runtime.replay.policies import POLICIES, Change, Mode

RESUMED = RunResumed.type
# Classes of the errors of effects that were not permitted.
REFUSALS = frozenset({"PermissionDeniedError", "NobodyAllowsError"})
# Why an answer ended that was not read to its end.
CUT = "cut"
# A mark at the entry of a request; no journal holds it.
KILLED = "killed"
COMPLETIONS = frozenset({"done", "failed", HandlerEnded.type, HandlerFailed.type, TimerFired.type, TimedOut.type})
TURNS = {
    **dict.fromkeys((*COMPLETIONS, ModelAnswered.type, ModelFailed.type), END),
    TimerFired.type: FIRED,
    TimedOut.type: LATE,
}
# What may be told of an error on its way.
ERRORS = frozenset({"failed", HandlerFailed.type, ModelFailed.type, TimedOut.type})
# Errors of the surroundings, by their classes; a request to a model fails for no other reason.
OUTAGES = frozenset({"CallCancelledError", "LimitReachedError", "MissingKeyError", "QuotaReachedError", "RequestError"})
# What an effect tells of the person on its way.
DIALOGUE = frozenset({PersonAsked.type, PersonAnswered.type, ApprovalRequested.type, ApprovalGiven.type})
# What code may have told after an error without having got anything done.
IDLE = ERRORS | {HandlerStarted.type, LinePrinted.type, ModelAsked.type, RetryEnded.type, RetryStarted.type}
# What a handler does, by the kinds of its entries, each with the preposition before what another version puts there.
DEEDS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("begun", "done", "failed", HandlerStarted.type), ("calls `{}`", " with")),
    LinePrinted.type: ("prints", ""),
    HandlerEnded.type: ("returns", ""),
    HandlerFailed.type: ("fails", " with"),
    StateChanged.type: ("changes its state", " to"),
    TimerFired.type: ("waits for a timer", ""),
    ModelAsked.type: ("asks a model", " for"),
}
CHANGES: Mapping[Change, str] = {
    "new": "{0} now {1} where it did not",
    "other": "{0} now {1}{2} something else than before",
    "gone": "{0} no longer {1} where it did",
}


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The recorded answer of a model.

    Attributes:
        text: all that had arrived.
        end: the entry that tells what it took; None when the run was interrupted before the answer had ended.
    """

    text: str
    end: JournalEntry | None

    @property
    def is_whole(self) -> bool:
        """Whether it was read to its end, and not ended from outside."""
        return self.end is not None and self.end.data.get("stop") != CUT


class ProgramFit:
    """How far a changed program fits the calls of a session that were recorded before.

    Args:
        entries: what is known of the session.

    Attributes:
        call: that is made again; None before the first one, and behind the last one.
        has_ended: whether that call had ended by itself, so that it does nothing new.
        is_past: whether it had ended by itself or from outside.
        is_whole: whether all of them fit, so that the session goes on from there.
        error: why they do not; None as long as they do.
        untold: entries that are to be told again, and are not yet.
    """

    def __init__(self, entries: Sequence[JournalEntry]) -> None:
        self.call: JournalEntry | None = None
        self.has_ended = self.is_past = False
        self.is_whole = False
        self.error: ProgramChangedError | None = None
        inside = [entry for entry in entries if entry.path]
        self.untold = {
            (entry.kind, entry.path): entry for entry in inside if entry.kind in DEEDS and entry.kind in COMPARED
        }
        # When each handler that a client has called did its first step.
        self._first = {entry.path[0]: entry.n for entry in reversed(inside)}

    def begin_call(self, call: JournalEntry, end: JournalEntry | None) -> None:
        """Note which call is made next, and how it had ended."""
        self.call, self.is_past = call, end is not None
        self.has_ended = end is not None and not is_cut(end)

    def is_in_call(self, path: Path) -> bool:
        """Whether a path is in the call that is made again, and not in the background of an earlier one."""
        return self.call is not None and self._first.get(path[0], self.call.n) >= self.call.n

    def lacks(self, end: int) -> JournalEntry | None:
        """The first entry of the call that is not told again, of those before the n-th; None where there is none."""
        return next((entry for entry in self.untold.values() if entry.n < end and self.is_in_call(entry.path)), None)

    def end_call(self) -> None:
        """Note that the call has been made again as far as it was recorded."""
        self.call = None
        self.has_ended = self.is_past = False

    def fail(self, how: str) -> ProgramChangedError:
        """Note where they do not fit; gives the error that says so."""
        entry = 0 if self.call is None else self.call.n - 1
        self.error = self.error or ProgramChangedError(f"the program has changed since: {how}", entry=entry)
        return self.error


class History:
    """The recorded outcomes of an earlier run of a program.

    Args:
        entries: what counts of its journal.
        mode: what its outcomes are for. To `resume` the run they must be what the program asks for; a `branch` leaves
            them where the program, or an answer, has changed; a `rerun` is a branch that its person sees from the
            beginning; a `replay` takes them and nothing else. An `upgrade`, in
            the same journal or in a branch, has another version of the program go on from where the session is.
        redact: takes secrets out of a text, as it did when the journal was written.
        decide: says what becomes of an effect in doubt, when it is met.
        parent: for a branch, all entries of the run that it goes on from, also those that do not count for it.
        is_of_changed_program: whether the program is another one than when the run was recorded.
        keeps_models: whether agents are to be answered by the models that have answered them, and by no others.

    Attributes:
        policy: what its outcomes are for.
        fit: how far a program that has changed fits; None where it may not have changed, or leaves what does not fit.
        order: what happened at a moment that the clock decided, each as its kind of turn and its path.
    """

    def __init__(
        self,
        entries: Iterable[JournalEntry],
        mode: Mode,
        redact: Redact = str,
        decide: Decide = stop_always,
        parent: Sequence[JournalEntry] = (),
        *,
        is_of_changed_program: bool = False,
        keeps_models: bool = False,
    ) -> None:
        self.is_of_changed_program = is_of_changed_program
        self.policy = POLICIES[mode]
        self._redact = redact
        self.decide = decide
        self.entries = tuple(entries)
        self.fit = ProgramFit(self.entries) if self.policy.is_of_past else None
        self._found = {(entry.kind, entry.path): entry for entry in self.entries}
        self._left = unsafe_effects(parent) if self.policy.is_branch else []
        self._models = _models_by_agent(self.entries) if keeps_models else {}
        self._passes_on = any(entry.kind in PASSED_ON and entry.lacks_secret for entry in self.entries)
        self._wrote: dict[Path, list[str]] = {}
        self._dialogues: dict[Path, list[JournalEntry]] = {}
        for entry in self.entries:
            if entry.kind == ModelWrote.type:
                self._wrote.setdefault(entry.path, []).append(str(entry.data.get("text", "")))
            elif entry.kind in DIALOGUE and self.policy.is_branch:
                self._dialogues.setdefault(entry.path, []).append(entry)
        self._paid: dict[Path, tuple[int, float, int]] | None = None
        self.order = [(event, entry.path) for entry in self.entries if (event := _turn_of(entry))]

    def has(self, kind: str, path: Path) -> bool:
        """Whether there is an entry."""
        return (kind, path) in self._found

    def has_happened(self, type: str, path: Path) -> bool:
        """Whether an event had happened, where what was recorded still counts for the current code."""
        if self.policy.is_branch and type == ApprovalRequested.type and not self.has(ApprovalGiven.type, path):
            return False  # it is open in the branch, too
        place = current_place()
        return self.has(kind_of(type), path) and (place is None or not place.state.has_diverged)

    @property
    def is_settled(self) -> bool:
        """Whether nothing new may happen at the moment, since what goes on is a call that had ended."""
        return self.fit is not None and self.fit.has_ended

    def find(self, kind: str, path: Path) -> JournalEntry | None:
        """An entry; of several the latest."""
        return self._found.get((kind, path))

    def was_late(self, path: Path) -> bool:
        """Whether the work at a path was ended by its limit of time; the empty path is the whole run."""
        ended = self.find(RunEnded.type, path)
        return self.find(TimedOut.type, path) is not None or (ended is not None and is_early_end(ended))

    def outcome(self, path: Path) -> JournalEntry | None:
        """How an action or effect ended: its entry `done` or `failed`, the later one; None when it did not."""
        done, failed = self.find("done", path), self.find("failed", path)
        return failed if done is None or (failed is not None and failed.n > done.n) else done

    def forget(self, path: Path) -> None:
        """Have an outcome count no more, so that the one it comes to now is written down and paid for."""
        for kind in ("done", "failed", DoubtSettled.type, ModelAnswered.type):
            self._found.pop((kind, path), None)

    def answer(self, path: Path) -> RecordedAnswer | None:
        """The recorded answer of a model; None if no action of it had begun."""
        end = self.find(ModelAnswered.type, path)
        if end is not None:
            return RecordedAnswer(str(end.data.get("text", "")), end)
        written = "".join(self._wrote.get(path, ()))
        return RecordedAnswer(written, None) if written else None

    def was_killed_at(self, path: Path) -> bool:
        """Whether a request was under way when the process was killed, so that nobody has counted it."""
        asked = self.find(ModelAsked.type, path)
        return self.policy.is_same_run and asked is not None and bool(asked.data.get(KILLED))

    def expected_models(self, agent: str) -> list[str]:
        """The models that an agent has asked, the latest last, where it may ask no others; else none."""
        return self._models.get(agent, [])

    def only_reads(self, path: Path) -> bool:
        """Whether it was found out, when an effect took place, that it changes nothing."""
        return self.has(ReadOnlyFound.type, path)

    def dialogue(self, path: Path) -> Iterator[tuple[EventData, str]]:
        """What the person was asked by an effect, and answered, for the journal of a branch; each with its agent."""
        for entry in self._dialogues.get(path, ()):
            yield Event.of_data(event_data(entry, "")).data, entry.agent

    def waits_for_leave(self, path: Path) -> bool:
        """Whether the person had been asked to allow an effect, and had not said so: then nothing of it was done."""
        asked = self.find(ApprovalRequested.type, path)
        return asked is not None and _is_open_request(asked) and not self.has(ApprovalGiven.type, path)

    def left_behind(self) -> list[JournalEntry]:
        """The parent's unrepeatable effects that this branch has neither reused nor done; refused ones never were."""
        refused = {entry.path for entry in self.entries if entry.data.get("class") in REFUSALS}
        return [entry for entry in self._left if entry.path not in refused]

    def misfit_of(self, event: Event) -> str | None:
        """How an event differs from the record of a program that has changed; empty where it does not, or is new.

        Nothing is new in a call of a session that had ended. None where what was recorded counts no more.
        """
        place = current_place()
        if place is not None and place.state.has_diverged:
            return None
        fit, kind, path = self.fit, event.data.journal_kind, event.path
        if not path or kind not in DEEDS:
            return ""
        before, is_untold = self.find(kind, path), fit is not None and bool(fit.untold.pop((kind, path), None))
        if before is None:
            if fit is None:
                return ""
            # What is untold counts no more, and why a call fails is told at its end.
            is_misfit = fit.has_ended and fit.is_in_call(path) and not is_untold and kind != HandlerFailed.type
            return self.describe("new", path, kind, callee_of(event.fields)) if is_misfit else ""
        if kind == LinePrinted.type and before.data.get("message") == event.fields["message"]:
            return ""  # as most entries are, so that what is written need not be made of them
        if kind not in COMPARED or self.is_same_entry(before, written_entry(event, self._redact)):
            return ""
        return self.describe("other", path, kind, callee_of(event.fields))

    def untold_before(self, end: int) -> str:
        """Like `misfit_of`, for entries of the current call before the n-th one that are not told again."""
        lacking = None if self.fit is None else self.fit.lacks(end)
        return "" if lacking is None else self.describe("gone", lacking.path, lacking.kind, callee_of(lacking.data))

    def describe(self, how: Change, path: Path, kind: str, callee: str = "") -> str:
        """How a handler does something else than before, a clause.

        Args:
            path: of an entry.
            kind: that of the entry.
            callee: the action or effect that it is of.
        """
        around = beginnings(path)
        if kind == HandlerStarted.type:
            callee = _name_in(around.pop())
        inner = (_name_in(each) for each in reversed(around) if self.has(HandlerStarted.type, each))
        call = None if self.fit is None or self.fit.call is None else str(self.fit.call.data.get("name", ""))
        handler = next(inner, call)
        does, preposition = DEEDS[kind]
        subject = "the program" if handler is None else f"`{handler}`"
        return CHANGES[how].format(subject, does.format(callee), preposition)

    def take_over(self, name: str, given: Any) -> bool:
        """Whether the parent has done an effect that is recalled, or done again, now; each counts once."""
        fields = plain(given, self._redact)
        found = next((entry for entry in self._left if _is_effect(entry, name, fields)), None)
        if found is not None:
            self._left.remove(found)
        return found is not None

    def can_give(self, entry: JournalEntry) -> bool:
        """Whether the program can be given the content of an entry: not without its secrets, except in a replay."""
        return not self.policy.has_outside or not entry.lacks_secret

    def passes_mark_on(self, given: Any) -> bool:
        """Whether something that is given to an effect now has the mark of a secret, and may have it from here."""
        return self._passes_on and self.policy.has_outside and HIDDEN in str(given)

    def paid(self, path: Path) -> tuple[int, float, int]:
        """Tokens, usd (where known) and number of requests spent at a path and below it."""
        if self._paid is None:
            self._paid = _paid_by_path(self.entries)
        return self._paid.get(path, (0, 0.0, 0))

    def usage(self) -> UsageTotals:
        """The earlier usage of the run itself; zero for a branch and for a replay."""
        return UsageTotals.of(self.entries if self.policy.is_same_run else ())

    def is_same_entry(self, recorded: JournalEntry, now: JournalEntry) -> bool:
        """Whether two entries of a kind say the same, apart from secrets."""
        if is_same_entry(recorded, now):
            return True
        # Older journals hold what is taken out today.
        return is_same_entry(replace(recorded, data=plain(recorded.data, self._redact)), now)

    def is_same(self, recorded: Any, now: Any) -> bool:
        """Whether a value equals the recorded one, apart from secrets."""
        shown = plain(now, self._redact)
        # Older journals hold what is taken out today.
        return is_same_input(recorded, shown) or is_same_input(plain(recorded, self._redact), shown)


def _name_in(path: Path) -> str:
    return path[-1].partition("#")[0]


def callee_of(data: Mapping[str, Any]) -> str:
    """The action or effect that the fields of an entry are of; empty for none."""
    return str(data.get("intent", ""))


def unsafe_effects(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """The effects that took place and may not be done twice, by the entries of their beginning."""
    ended = {entry.path for entry in entries if entry.kind in ("done", "failed")}
    ended -= {entry.path for entry in entries if entry.kind == ReadOnlyFound.type}
    return [entry for entry in entries if entry.kind == "begun" and entry.data.get("unsafe") and entry.path in ended]


def _is_effect(entry: JournalEntry, name: str, fields: Any) -> bool:
    return entry.data.get("intent") == name and is_same_input(entry.data.get("fields"), fields)


def _turn_of(entry: JournalEntry) -> str:
    """The kind of slot that an entry takes; empty for none."""
    if entry.kind == "begun":
        return BEGIN if "id" in entry.data else ""  # only an action of a playbook begins when it is told to
    if entry.kind == CallStarted.type:
        return BEGIN
    if entry.kind in (CallEnded.type, RunEnded.type):
        return LATE if is_cut(entry) or is_early_end(entry) else ""
    if entry.kind == ModelAnswered.type and entry.data.get("stop") == CUT:
        return ""  # nobody read it to its end
    return TURNS.get(entry.kind, "")


def is_cut(entry: JournalEntry) -> bool:
    """Whether an entry is the end of a call of a session that was ended from outside."""
    return entry.kind == CallEnded.type and bool(entry.data.get("aborted") or entry.data.get("timed_out"))


def is_early_end(entry: JournalEntry) -> bool:
    """Whether an entry is the end of a run that was interrupted, or that reached its limit of time."""
    # Every other limit ends a handler first, so that its error begins there.
    is_late = entry.data.get("code") == OverLimitError.failure_code and len(entry.data.get("origin", ())) == 1
    return entry.kind == RunEnded.type and (is_late or bool(entry.data.get("interrupted")))


def _paid_by_path(entries: Iterable[JournalEntry]) -> dict[Path, tuple[int, float, int]]:
    paid: dict[Path, tuple[int, float, int]] = {}
    # Of an answer that was told twice the latest counts, as everywhere; half of one was paid for beside the whole.
    latest = {(entry.kind, entry.path, entry.data.get("stop") == CUT): entry for entry in entries if entry.kind in PAID}
    for entry in latest.values():
        if entry.data.get("replayed"):
            continue
        counted, cost = entry.data.get("tokens") or {}, entry.data.get("usd") or 0.0
        taken = int(counted.get("input", 0)) + int(counted.get("output", 0))
        for length in range(len(entry.path) + 1):
            tokens, usd, requests = paid.get(entry.path[:length], (0, 0.0, 0))
            paid[entry.path[:length]] = (tokens + taken, usd + cost, requests + 1)
    return paid


# ---------------------------------------------------------------- what counts of a journal


def in_doubt(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Unrepeatable effects without an end, unless a call around them has ended."""
    over = {entry.path for entry in entries if entry.kind in COMPLETIONS or entry.kind == ReadOnlyFound.type}
    allowed = {entry.path for entry in entries if entry.kind == ApprovalGiven.type}
    # Whoever still waits for leave has done nothing.
    over |= {entry.path for entry in entries if _is_open_request(entry)} - allowed
    begun = {entry.path: entry for entry in entries if entry.kind == "begun" and entry.data.get("unsafe")}
    return [entry for path, entry in begun.items() if not any(path[:n] in over for n in range(1, len(path) + 1))]


def _is_open_request(entry: JournalEntry) -> bool:
    """Whether an entry asks for permission; what a branch has taken over was decided in its parent."""
    return entry.kind == ApprovalRequested.type and not entry.data.get("recalled")


def lasting_entries(entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    """The entries that count when a run goes on: without the errors that ended it, and without its ends."""
    kept = until_interrupted(entries)
    _drop_unwinding(kept)
    return kept


def _models_by_agent(entries: Iterable[JournalEntry]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in entries:
        if entry.kind == ModelAsked.type:
            found.setdefault(entry.agent, []).append(str(entry.data.get("model", "")))
    return found


def until_interrupted(entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    """The entries of the whole run as one that was never interrupted: errors that were followed by a new start left."""
    kept: list[JournalEntry] = []
    start = 0
    for entry in entries:
        if entry.kind == RESUMED:
            kept[start:] = _with_killed(kept[start:])
            _drop_unwinding(kept)
            start = len(kept)
        else:
            kept.append(entry)
    kept[start:] = _with_killed(kept[start:])
    return kept


def _with_killed(entries: list[JournalEntry]) -> list[JournalEntry]:
    """One part of a run, with a mark at the requests that were under way when it ended without an end."""
    if any(entry.kind == RunEnded.type for entry in entries):
        return entries
    over = {entry.path for entry in entries if entry.kind in (ModelAnswered.type, ModelFailed.type, ModelWrote.type)}
    over |= {
        entry.path[:-1] for entry in entries if entry.kind == AnswerDiscarded.type and entry.data.get("stop") == CUT
    }
    killed = [entry.kind == ModelAsked.type and entry.path not in over for entry in entries]
    return [
        replace(entry, data={**entry.data, KILLED: True}) if was_killed else entry
        for entry, was_killed in zip(entries, killed, strict=True)
    ]


def _drop_unwinding(entries: list[JournalEntry]) -> None:
    """Remove the end of a run: its last entry, and the reports of the error that led there.

    So are errors of other branches that nothing was done after. What a hook denied there was not done, so that it is
    neither in doubt nor decided.
    """
    origin = _take_end(entries)
    origins = set[tuple[str, ...]]() if origin is None else {tuple(origin), *_unanswered_errors(entries, tuple(origin))}
    errors = [entry for entry in entries if _origin_of(entry) in origins]
    failed = {entry.path for entry in errors} | {entry.path[:-1] for entry in entries[-1:]}
    denials = [
        entry
        for entry in entries
        if entry.kind == HookDecided.type and entry.data.get("decision") == "deny" and entry.path[:-1] in failed
    ]
    denied = {entry.path[:-1] for entry in denials}
    dropped = {*map(id, errors), *map(id, denials)}
    dropped |= {id(entry) for entry in entries if entry.kind == "begun" and entry.path in denied}
    # What is asked again, and printed after that, may be something else by now.
    unanswered = {entry.path for entry in errors if entry.kind == ModelFailed.type}
    dropped |= {id(entry) for entry in entries if entry.kind == ModelAsked.type and entry.path in unanswered}
    dropped |= {id(entry) for entry in _printed_after(errors, entries)}
    entries[:] = [entry for entry in entries if id(entry) not in dropped]


def _printed_after(errors: Sequence[JournalEntry], entries: Sequence[JournalEntry]) -> Iterator[JournalEntry]:
    """The lines printed after some errors by the code around them, and by calls that it began then."""
    numbers = {id(entry): n for n, entry in enumerate(entries)}
    failed, begun = dict[Path, int](), dict[Path, int]()
    for entry in reversed(errors):
        failed |= dict.fromkeys(_waiting_places(entry.path), numbers[id(entry)])
    for n, entry in enumerate(entries):
        for path in beginnings(entry.path):
            begun.setdefault(path, n)
    for entry in entries:
        if entry.kind == LinePrinted.type and any(
            failed.get(path[:-1], len(entries)) < begun[path]
            for path in beginnings(entry.path)
            if not path[-1].startswith(BRANCH)
        ):
            yield entry


def beginnings(path: Path) -> list[Path]:
    """A path, and those that it lies in, the outermost first."""
    return [path[:length] for length in range(1, len(path) + 1)]


def _waiting_places(path: Path) -> Iterator[Path]:
    """The places where code waits for an effect at a path: around it, and around its parallel branches."""
    yield path[:-1]
    while len(path) > 1 and path[-2].startswith(BRANCH):
        path = path[:-1]
        yield path[:-1]


def _take_end(entries: list[JournalEntry]) -> Any:
    """Take the end of a run off; gives where the error that ended it was first told, None where there was none."""
    end = next((n for n in range(len(entries) - 1, -1, -1) if entries[n].kind == RunEnded.type), None)
    if end is None:
        return None
    data = entries.pop(end).data
    if "origin" in data or data.get("interrupted") or not end:
        return data.get("origin")
    # Whoever called a handler from outside of the program may have looked after its error.
    last = entries[end - 1]
    return last.data.get("origin") if last.kind in ERRORS else None


def _origin_of(entry: JournalEntry) -> tuple[str, ...] | None:
    """Where the error of an entry was first told; None for other entries."""
    origin = entry.data.get("origin") if entry.kind in ERRORS else None
    return None if origin is None else tuple(origin)


def _unanswered_errors(entries: Sequence[JournalEntry], end: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The origins of the errors after which the code around them has done nothing: several branches had failed.

    After an outage, it has done nothing either where it only printed, or began what failed as well. What may not be
    done twice has failed for good, and so has all that led to an error that stays.

    Args:
        end: the origin of the error that ended the run, which is no question.
    """
    outermost: dict[tuple[str, ...], int] = {}
    outages, unsafe = set[tuple[str, ...]](), {entry.path for entry in unsafe_effects(entries)}
    for n, entry in enumerate(entries):
        origin = _origin_of(entry)
        if origin not in (None, end) and entry.path:
            outer_n = outermost.get(origin, n)
            outermost[origin] = n if len(entry.path) <= len(entries[outer_n].path) else outer_n
            if entry.kind == ModelFailed.type or class_name(entry.data) in OUTAGES:
                outages.add(origin)
    working = [entry.kind not in IDLE and (entry.kind != "begun" or entry.path in unsafe) for entry in entries]
    last_begun = _last_begun(entries, [_origin_of(entry) is None for entry in entries], among_all=True)
    last_work = _last_begun(entries, working)
    final = {_origin_of(entry) for entry in entries if entry.path in unsafe}
    lasting = set[Path]()
    for origin, n in sorted(outermost.items(), key=lambda each: len(entries[each[1]].path)):
        path, (own, direct) = entries[n].path, last_work if origin in outages else last_begun
        place, *outer = _waiting_places(path)
        has_gone_on = own[place] > n or any(direct[each] > n for each in outer)
        if has_gone_on or origin in final or not lasting.isdisjoint(beginnings(place)):
            lasting.add(path)
        else:
            yield origin


def _last_begun(
    entries: Sequence[JournalEntry], counts: Sequence[bool], *, among_all: bool = False
) -> tuple[Counter[Path], Counter[Path]]:
    """When something was begun in each path the last time, or told of it, by the numbers of entries that count.

    Args:
        among_all: whether a path is begun by any entry in it, also by one that does not count.

    Returns:
        That, and the same without the branches that were begun in it.
    """
    counting = (entry for entry, does_count in zip(entries, counts, strict=True) if does_count or among_all)
    with_work = {path for entry in counting for path in beginnings(entry.path)}
    own = Counter[Path]()
    direct = Counter[Path]()
    visited = set[Path]()
    for n, entry in enumerate(entries):
        if counts[n]:
            own[entry.path] = direct[entry.path] = n
        for path in beginnings(entry.path):
            if path not in visited and path in with_work:
                own[path] = direct[path] = own[path[:-1]] = n
                if not path[-1].startswith(BRANCH):
                    direct[path[:-1]] = n
            visited.add(path)
    return own, direct


def until(entries: Sequence[JournalEntry], n: int) -> list[JournalEntry]:
    """The entries up to the n-th one, with the ends of the answers that were under way before it.

    What had begun and ended later is not in doubt: it is to be done anew, as everything after it.
    """
    asked = {entry.path for entry in entries if entry.kind == ModelAsked.type and entry.n < n}
    anew = {entry.path for entry in entries if entry.kind in ("done", "failed") and entry.n > n}
    kept = [entry for entry in entries if entry.n <= n or (entry.kind == ModelAnswered.type and entry.path in asked)]
    return [entry for entry in kept if entry.kind != "begun" or entry.path not in anew]


def with_answer(entries: Sequence[JournalEntry], n: int, field: str, value: Any) -> list[JournalEntry]:
    """The entries with another text in a field of the n-th one."""
    return [
        replace(entry, data={**entry.data, field: value, "changed": True}) if entry.n == n else entry
        for entry in entries
    ]
