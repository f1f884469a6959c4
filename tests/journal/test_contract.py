"""The contract of a recorder and of what keeps its runs, which any implementation fulfils: here files and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from koi_lang.errors import AgentError, JournalError, KoiError
from koi_lang.events import Event, LinePrinted, TimedOut
from koi_lang.runtime.events import Events
from koi_lang.runtime.journal.history import History, lasting_entries
from koi_lang.runtime.journal.ports import RunsPort
from koi_lang.runtime.journal.writer import FolderRuns
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.replay.doubts import RETRY, SKIP, STOP, Decide, Decision, stop_always
from koi_lang.runtime.replay.error_records import data_of
from koi_lang.runtime.replay.location import enter, enter_run, leave_run
from koi_lang.runtime.replay.policies import Mode
from koi_lang.runtime.replay.ports import Recorder
from koi_lang.runtime.replay.recorded_run import RecordedRun
from koi_lang.runtime.replay.recorder import NotRecordedError, RunRecorder
from tests.journal.conftest import HEADER
from tests.journal.memory import RunsInMemory

SAFE, UNSAFE = Effect("look", {"n": 1}, safe=True), Effect("pay", {"n": 1})
Program = Callable[[Recorder], Awaitable[Any]]


class Halted(BaseException):
    """A run was ended by its recorder; no code of it can catch that."""


def halt(error: KoiError) -> NoReturn:
    """End a run."""
    raise Halted(error.message)


@dataclass
class Recording:
    """One run that is recorded, and goes on; `done` lists what its effects did, in order."""

    runs: RunsPort
    done: list[str] = field(default_factory=list)

    def begin(self, program: Program) -> Any:
        """What a program gives in a new run."""
        return self._play(program, None)

    def go_on(self, program: Program, mode: Mode = "resume", decide: Decide = stop_always) -> Any:
        """What it gives in a run that goes on."""
        entries = lasting_entries(self.runs.read(HEADER.run).entries)
        return self._play(program, History(entries, mode, decide=decide))

    def _play(self, program: Program, history: History | None) -> Any:
        recorded = RecordedRun(history)
        events = Events(HEADER.run, known=None if recorded.is_live else recorded.has_happened)
        recorder: Recorder = RunRecorder(events, halt, recorded, is_kept=True, seed="seed")

        async def run() -> Any:
            token = enter_run()
            try:
                with recorder.slots.ready.count(), enter("Main.go"):
                    return await program(recorder)
            finally:
                leave_run(token)

        if history is not None and not history.policy.is_same_run:
            return asyncio.run(run())
        journal = self.runs.create(HEADER) if history is None else self.runs.open(self.runs.read(HEADER.run).end)
        events.subscribe(journal)
        with closing(journal):
            return asyncio.run(run())

    def work(self, name: str, value: Any = None, seconds: float = 0.0) -> Callable[[], Awaitable[Any]]:
        """Something to do."""

        async def do() -> Any:
            await asyncio.sleep(seconds)
            self.done.append(name)
            if isinstance(value, Exception):
                raise value
            return value

        return do


def performing(effect: Effect, work: Callable[[], Awaitable[Any]]) -> Program:
    """A program of one effect."""
    return lambda recorder: recorder.perform_as_step(effect, work)


@pytest.fixture(params=["file", "memory"])
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> RunsPort:
    """Where runs are kept."""
    return FolderRuns(tmp_path, str, print) if request.param == "file" else RunsInMemory()


@pytest.fixture
def recording(runs: RunsPort) -> Recording:
    """A run that can be begun."""
    return Recording(runs)


# ---------------------------------------------------------------- effects


@pytest.mark.parametrize("effect", [SAFE, UNSAFE])
@pytest.mark.parametrize("mode", ["resume", "branch", "replay"])
def test_an_effect_is_done_once(recording: Recording, effect: Effect, mode: Mode) -> None:
    """Its outcome comes again, whatever a run does with what was recorded."""
    program = performing(effect, recording.work("once", {"a": [1]}))

    assert ({"a": [1]}, {"a": [1]}) == (recording.begin(program), recording.go_on(program, mode))
    assert ["once"] == recording.done


def test_a_failure_comes_again(recording: Recording) -> None:
    """What had failed fails again, with the same error, and is not tried again."""
    program = performing(UNSAFE, recording.work("once", AgentError("broken")))

    for play in (recording.begin, recording.go_on):
        with pytest.raises(AgentError, match="broken"):
            play(program)

    assert ["once"] == recording.done


def test_what_was_seen_is_seen_again(recording: Recording) -> None:
    """The clock of a run that goes on is that of the run which was recorded, and so are its random numbers."""
    looks = iter(range(10))

    async def program(recorder: Recorder) -> Any:
        return [recorder.observe("clock", lambda: next(looks)) for _ in range(2)], recorder.random_bytes(8)

    first = recording.begin(program)

    assert first == recording.go_on(program) == recording.go_on(program, "replay")
    assert ([0, 1], 2) == (first[0], next(looks))


def test_a_line_is_shown_once(recording: Recording) -> None:
    """A person sees a line again only where it says something else than before."""

    def program(text: str) -> Program:
        async def show(recorder: Recorder) -> None:
            recorder.show_once(LinePrinted(text), lambda: recording.done.append(text))

        return show

    recording.begin(program("tea"))
    recording.go_on(program("tea"))
    recording.go_on(program("coffee"), "branch")

    assert ["tea", "coffee"] == recording.done


def test_what_took_too_long_does_so_again(recording: Recording) -> None:
    """Work that a time limit had ended is followed as far as it had got, however fast it is now."""
    with closing(recording.runs.create(HEADER)) as journal:
        journal(Event(1, 1.0, HEADER.run, "Ada", TimedOut(data_of(AgentError("took too long"))), ("Main.go#1",)))

    async def program(recorder: Recorder) -> Any:
        return await recorder.with_recorded_timeout(recorder.perform_as_step(SAFE, recording.work("new")))

    with pytest.raises(AgentError, match="took too long"):
        recording.go_on(program)
    assert [] == recording.done


def test_what_ended_together_ends_in_its_order(recording: Recording) -> None:
    """Completions come again in the order in which they came first, however fast they are now."""
    ends: list[str] = []

    def program(slow: str) -> Program:
        async def one(recorder: Recorder, name: str) -> None:
            with enter(name):
                await recorder.perform_as_step(SAFE, recording.work(name, seconds=0.02 if name == slow else 0.0))
            ends.append(name)

        async def both(recorder: Recorder) -> None:
            await asyncio.gather(one(recorder, "a"), one(recorder, "b"))

        return both

    recording.begin(program(slow="a"))
    recording.go_on(program(slow="b"))

    assert ["b", "a", "b", "a"] == ends


# ---------------------------------------------------------------- what a run does with what was recorded


def test_another_input_stops_a_resumed_run(recording: Recording) -> None:
    """A run goes on with what it did; a branch may do something else; a replay takes what there is."""

    def program(n: int) -> Program:
        return performing(replace(SAFE, given={"n": n}), recording.work(f"n {n}", n))

    recording.begin(program(1))

    with pytest.raises(Halted, match="something else than when it was recorded"):
        recording.go_on(program(2))
    assert (2, 1) == (recording.go_on(program(2), "branch"), recording.go_on(program(2), "replay"))
    assert ["n 1", "n 2"] == recording.done


def test_a_replay_does_nothing_new(recording: Recording) -> None:
    """What was not recorded is refused."""

    async def nothing(recorder: Recorder) -> None:
        """Do nothing."""

    recording.begin(nothing)

    with pytest.raises(NotRecordedError):
        recording.go_on(performing(SAFE, recording.work("new")), "replay")
    assert [] == recording.done


# ---------------------------------------------------------------- effects in doubt


class Killed(BaseException):
    """Stands for the end of a process."""


def begin_and_kill(recording: Recording) -> None:
    """Have an effect begin whose end is not known."""

    async def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        recording.begin(performing(UNSAFE, die))


@pytest.mark.parametrize(
    ("decision", "outcome", "done"),
    [(RETRY, "paid", ["pay"]), (SKIP, AgentError, []), (Decision("done", "known"), "known", []), (STOP, Halted, [])],
)
def test_an_effect_in_doubt_is_decided(recording: Recording, decision: Decision, outcome: Any, done: list[str]) -> None:
    """What had begun and may not be done twice is done again, left out, known, or ends the run, as somebody says."""
    begin_and_kill(recording)
    program = performing(UNSAFE, recording.work("pay", "paid"))

    if isinstance(outcome, type):
        with pytest.raises(outcome):
            recording.go_on(program, decide=lambda doubt: decision)
    else:
        assert outcome == recording.go_on(program, decide=lambda doubt: decision)
    assert done == recording.done


def test_an_effect_is_known_before_it_begins(recording: Recording) -> None:
    """Who reads the journal while an unsafe effect is done finds it there."""
    seen: list[str] = []

    async def look() -> None:
        seen.extend(entry.kind for entry in recording.runs.read(HEADER.run).entries)

    recording.begin(performing(UNSAFE, look))

    assert ["begun"] == seen


# ---------------------------------------------------------------- journals


def printed(number: int) -> Event:
    """An event of a run."""
    return Event(number, 1.0, HEADER.run, "Ada", LinePrinted(f"line {number}"), (f"printed#{number}",))


def test_entries_keep_their_order(runs: RunsPort) -> None:
    """They are counted from 1, also by whoever goes on with the run."""
    for first in (1, 3):
        journal = runs.create(HEADER) if first == 1 else runs.open(runs.read(HEADER.run).end)
        with closing(journal):
            journal(printed(first))
            journal(printed(first + 1))
            journal.settle()

    entries = runs.read(HEADER.run).entries

    assert [(n, f"line {n}") for n in range(1, 5)] == [(entry.n, entry.data["message"]) for entry in entries]


def test_a_run_is_held_by_one(runs: RunsPort) -> None:
    """Nobody else begins it, or goes on with it, while it is held, nor with what has gone on since it was read."""
    with closing(runs.create(HEADER)) as journal:
        start = runs.read(HEADER.run).end
        for hold in (lambda: runs.create(HEADER), lambda: runs.open(start)):
            with pytest.raises(JournalError):
                hold()
        journal(printed(1))

    with pytest.raises(JournalError):
        runs.open(start)
    runs.open(runs.read(HEADER.run).end).close()
