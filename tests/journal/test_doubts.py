"""Effects of which nobody knows whether they took place: decided when they are met, and every run can go on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pexpect
import pytest

import koi_lang
from koi_lang.errors import JournalError
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.replay.doubts import Choice
from tests import forks
from tests.journal.again import Recorder, Tape
from tests.journal.commands import Commands
from tests.playbook.playing import Player
from tests.projects import LIMIT_S

ROLE = "role R { can execute, can delegate }\n"
MODULE = """
import asyncio
from pathlib import Path
async def slow(log, name, ms):
    await asyncio.sleep(ms / 1000)
    note(log, name)
    return name
async def behind(log, name, other):
    while not Path(log).exists() or other not in Path(log).read_text():
        await asyncio.sleep(0.001)
    return note(log, name)
def note(log, name):
    with open(log, "a") as file:
        file.write(f"{name}\\n")
    return name
def fails(): raise ValueError("it fails")
def thing(): return object()
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What functions of Python leave outside."""
    return tmp_path / "log"


def code(play: Player, body: str, more: str = "") -> Recorder:
    """The recorder of a program whose `Main.go` has some code, with a Python module."""
    (play.folder / "doubtful.py").write_text(MODULE)
    source = f'import py from "./doubtful.py"\n{ROLE}{more}agent Main : R {{ {body} }}'
    return Recorder(play, source, services={"folder": play.folder})


def behind(tape: Tape, text: str) -> Sequence[JournalEntry]:
    """The entries up to a line of output."""
    return tape.entries[: next(e.n for e in tape.entries if e.kind == "printed" and e.data["message"] == text)]


def decided(cut: Sequence[JournalEntry], choice: Choice) -> Mapping[tuple[str, ...], Choice]:
    """The same decision about everything."""
    return {entry.path: choice for entry in cut}


# ---------------------------------------------------------------- runs that can be gone on with

RACE = """
    on race(x: Json) { return await Promise.race([py.behind(x.log, "slow", "more"), py.note(x.log, "fast")]) }
    on go(x: Json) {
      console.log(await this.handle("race", x))
      await py.note(x.log, "more")
      await py.behind(x.log, "end", "slow")
    }
"""


def test_the_loser_of_a_race_whose_handler_has_ended(play: Player, log: Path) -> None:
    """It was under way when the run was killed: it is in doubt when it is met, and then the run goes on."""
    recorder, payload = code(play, RACE), {"log": str(log)}
    cut = behind(recorder.run(payload), "fast")
    log.unlink()
    with pytest.raises(JournalError, match="had begun and its end is not known"):
        recorder.again(cut, payload)
    log.unlink(missing_ok=True)
    again = recorder.again(cut, payload, decided(cut, "retry"))

    assert ("", ["fast"]) == (again.played.told, again.printed)
    assert ["more", "slow", "end"] == log.read_text().split()


GROUP = (
    """
    uses team T
    on go(x: Json) {
      try { await send peers.event("work").all()(x) } catch (e) { console.log("caught") }
      await py.slow(x.log, "after", 1)
    }
""",
    """
team T { one: One, two: Two }
agent One : R { on work(x: Json) { await py.slow(x.log, "cancelled", 3000) } }
agent Two : R { on work(x: Json) { await py.slow(x.log, "first", 5); py.fails() } }
""",
)


def test_what_was_cancelled_is_not_in_doubt(play: Player, log: Path) -> None:
    """A member of a group that another one ended had begun something: it is ended again, before anybody is asked."""
    recorder, payload = code(play, *GROUP), {"log": str(log)}
    cut = behind(recorder.run(payload), "caught")
    again = recorder.again(cut, payload)

    assert ("", ["caught"]) == (again.played.told, again.printed)
    assert ["first", "after", "after"] == log.read_text().split()


def test_each_decision_about_a_doubt_is_written_down(play: Player, log: Path) -> None:
    """A run that was killed again before the effect had ended asks again, and its journal holds both decisions."""
    recorder, payload = code(play, 'on go(x: Json) { await py.slow(x.log, "a", 1) }'), {"log": str(log)}
    whole = recorder.run(payload)
    cut = whole.entries[: next(entry.n for entry in whole.entries if entry.kind == "begun")]
    once = recorder.again(cut, payload, decided(cut, "retry")).entries
    settled = [entry.n for entry in once if entry.kind == "doubt_settled"]
    twice = recorder.again(once[: settled[0]], payload, decided(cut, "retry")).entries

    assert (1, 2) == (len(settled), sum(entry.kind == "doubt_settled" for entry in twice))


@pytest.mark.parametrize("is_caught", [True, False])
def test_a_run_goes_on_after_something_was_left_out(play: Player, log: Path, is_caught: bool) -> None:
    """Whether or not the program caught the error of `skip`, the next resume can decide anew."""
    call = 'py.note(x.log, "a")'
    guarded = f'try {{ {call} }} catch (e) {{ console.log("left out") }}' if is_caught else call
    body = f'on go(x: Json) {{ {guarded}; await py.slow(x.log, "b", 1) }}'
    recorder, payload = code(play, body), {"log": str(log)}
    whole = recorder.run(payload)
    cut = whole.entries[: next(entry.n for entry in whole.entries if entry.kind == "begun")]
    skipped = recorder.again(cut, payload, decided(cut, "skip"))
    log.write_text("")
    rest = behind(skipped, "left out") if is_caught else skipped.entries
    again = recorder.again(rest, payload, decided(cut, "retry"))

    assert is_caught == (skipped.played.told == "")
    assert ("", ["b"] if is_caught else ["a", "b"]) == (again.played.told, log.read_text().split())


# ---------------------------------------------------------------- decisions

PROGRAM = f"""
import py from "./doubtful.py"
{ROLE}agent Main : R {{ on go(x: Json) {{
  console.log(py.note("log", "one"))
  console.log(py.note("log", "two"))
}} }}
run Main.go({{}})
"""


@pytest.fixture
def doubtful(koi: Commands) -> Commands:
    """A run that was killed while a function of Python was called."""
    koi.project.write("doubtful.py", MODULE)
    koi.record(PROGRAM)
    koi.cut_behind("begun", "doubtful.note#1")
    return koi


def test_a_person_knows_what_came_of_it(doubtful: Commands) -> None:
    """`result=` gives what took place: it is written down, and a later resume knows it."""
    done = doubtful("resume", "last", "--on-doubt", 'result={"n": [1]}', "--on-doubt", "stop")
    doubtful.cut_behind("printed", nth=1)
    again = doubtful("resume", "last")

    assert (0, "{ n: [ 1 ] }\ntwo\n", "two\n") == (done.code, done.out, again.out), done.err
    assert ["one", "two", "two", "two"] == doubtful.lines("log")


@pytest.mark.parametrize("words", ["result=", "result={", "again", "result"])
def test_a_decision_is_one_of_four(doubtful: Commands, words: str) -> None:
    """Anything else is refused before anything happens."""
    done = doubtful("resume", "last", "--on-doubt", words)

    assert (2, "", True) == (done.code, done.out, f"`{words}` is neither ask, retry, skip" in done.err), done.err


def test_each_doubt_has_a_decision_of_its_own(doubtful: Commands) -> None:
    """Several values of `--on-doubt` are for one effect each; the last one counts for the rest."""
    doubtful.record(PROGRAM.replace('py.note("log", "one")', 'py.thing(), py.thing(), "one"'))
    doubtful.cut_behind("printed", nth=1)
    options = ("--on-doubt", "result=1", "--on-doubt", "retry")
    run = doubtful.journal.stem
    none, one, both = (doubtful("resume", run, "--branch", *options[:n]) for n in (0, 2, 4))

    assert [1, 1, 0] == [none.code, one.code, both.code], both.err
    assert [1, 2, 2] == [done.err.count("what it gave cannot be kept") for done in (none, one, both)]


def test_the_person_tells_the_result_in_a_terminal(doubtful: Commands) -> None:
    """What is typed is asked for again until it is a decision."""
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), "TERM": "xterm"}
    (python, *words), folder = forks.koi("resume", "last"), str(doubtful.folder)
    with pexpect.spawn(python, words, cwd=folder, env=environment, encoding="utf-8", timeout=LIMIT_S) as child:
        child.expect("stop.*: ")
        child.sendline("well")
        child.expect("is neither retry.*: ")
        child.sendline('result="told"')
        child.expect(pexpect.EOF)

    assert (0, True) == (child.exitstatus, "told\r\ntwo\r\n" in child.before), child.before


def test_a_doubt_is_met_while_the_run_goes_on(doubtful: Commands) -> None:
    """At a terminal the person is asked when an object of Python is needed that the journal cannot hold."""
    program: Any = PROGRAM.replace('console.log(py.note("log", "one"))', 'py.thing(); console.log("one")')
    doubtful.record(program)
    doubtful.cut_behind("printed", nth=1)
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), "TERM": "xterm"}
    (python, *words), folder = forks.koi("resume", "last"), str(doubtful.folder)
    with pexpect.spawn(python, words, cwd=folder, env=environment, encoding="utf-8", timeout=LIMIT_S) as child:
        child.expect("cannot be kept in a journal.*stop.*: ")
        child.sendline("retry")
        child.expect(pexpect.EOF)

    assert (0, True) == (child.exitstatus, "two\r\n" in child.before), child.before
