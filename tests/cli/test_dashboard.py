"""`koi dashboard`: printed for pipes, and as a full screen in a pseudo-terminal, over a folder and over a service."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from koi_lang.cli.dashboard.folder_source import FolderSource
from koi_lang.cli.dashboard.screen import DashboardPlace, Sheet, list_lines, places, request_lines, run_lines
from koi_lang.cli.dashboard.snapshot import CostLine, DashboardSnapshot, OpenRequest, RunLine
from koi_lang.cli.ui.messages import exit_code_of
from koi_lang.cli.ui.text import COLOUR, Theme, width
from koi_lang.events import Event, ModelAnswered, RunEnded, RunStarted
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.writer import Writer
from tests.cli.screens import Shown
from tests.client.stand_in import Reply, StandIn, refused, serving, told
from tests.journal.conftest import HEADER
from tests.journal.test_costs import write
from tests.journal.test_summaries import bytes_read
from tests.live.following import at_terminal, let_go, program, question, started, wait_for
from tests.projects import Project

RUN = {
    "id": "r1", "program": "desk", "owner": "ann", "state": "waiting", "title": "Write of the sea", "requests": 3,
    "tokens": 1200, "usd": 0.5, "parent": None, "hosted": True, "started": time.time() - 100, "updated": time.time(),
}  # fmt: skip
QUESTION = {"type": "question", "id": "q1", "question": "Who signs?", "options": ["Ann", "Bob"]}
APPROVAL = {"type": "approval_request", "id": "q2", "agent": "Ada", "what": "edit `a.py`", "detail": "",
            "preview": "\n".join(["--- a/a.py", "+++ b/a.py", *(f"+line {n}" for n in range(60))])}  # fmt: skip
DONE = told({"type": "response", "success": True})


@pytest.fixture
def desk() -> Iterator[StandIn]:
    """A service with a run that waits for two answers, and one that has ended."""
    with serving() as stand_in:
        ended = {**RUN, "id": "r2", "state": "failed", "title": "Count", "usd": None}
        stand_in.reply("/api/runs", told({"runs": [RUN, ended], "next": None}))
        stand_in.reply("/api/runs/r1", told({**RUN, "open": [QUESTION, APPROVAL]}))
        spent = {"requests": 3, "tokens": 1200, "usd": 0.5, "unpriced": True}
        day, model = ({by: name, **spent} for by, name in (("day", time.strftime("%Y-%m-%d")), ("model", "one")))
        costs = (told({"by": by, "groups": [group]}) for by, group in (("day", day), ("model", model)))
        stand_in.reply("/api/cost", *costs)
        stand_in.reply("/api/command", DONE)
        yield stand_in


@pytest.fixture
def screens(tmp_path: Path) -> Iterator[Any]:
    """Begins `koi dashboard` in terminals of some size, which are closed afterwards."""
    shown: list[Shown] = []

    def show(columns: int, rows: int, *words: str, **environment: str) -> Shown:
        given = {"KOI_SERVE_TOKEN": "secret", **environment}
        shown.append(Shown(tmp_path, ["dashboard", *words], columns, rows, **given))
        return shown[-1]

    yield show
    for each in shown:
        each.child.close(force=True)


def commands(desk: StandIn) -> list[Any]:
    """What runs were told, without their names."""
    return [{name: value for name, value in each.items() if name != "run"} for each in desk.commands]


# ---------------------------------------------------------------- printed


def test_a_folder_is_printed(project: Project) -> None:
    """Without a terminal everything is printed once, without colours and keys."""
    write(project.folder, "aaaa", "a.koi", ("Ada", "openai/one", 1.25, time.time()))
    done = project.koi("dashboard")
    lines = [re.sub(r" +", " ", line.strip("─ ")) for line in done.stdout.splitlines()]

    assert (0, "") == (done.returncode, done.stderr)
    assert "0 at work 0 open today $1.25" in lines[0]
    assert ["at work", "nothing", "recent"] == lines[2:5]
    assert re.fullmatch(r"aaaa interrupted .* \$1\.25 a\.koi", lines[5])
    assert f"{time.strftime('%Y-%m-%d')} $1.25 openai/one $1.25" == lines[7]
    assert "\x1b" not in done.stdout


def test_a_folder_as_json(project: Project) -> None:
    """The same for programs: runs, what is open, and costs."""
    write(project.folder, "aaaa", "a.koi", ("Ada", "local/one", None, time.time()))
    path_of(project.folder, "bbbb").write_bytes(b"nothing\n")
    told = json.loads(project.koi("dashboard", "--json").stdout)

    assert ["aaaa"] == [run["run"] for run in told["recent"]]
    assert ([], []) == (told["at_work"], told["open"])
    assert [(None, True)] == [(line["usd"], line["unpriced"]) for line in told["costs"]["model"]]
    assert ["1 of the journals cannot be read; `koi runs list` says why"] == told["notes"]


def test_a_service_is_printed(desk: StandIn, project: Project) -> None:
    """Runs, open requests and costs of a service look like those of a folder."""
    desk.reply("/api/cost", refused(404, "not_found", "there is nothing"))
    done = project.koi("dashboard", "--once", "--url", desk.url)

    assert "r1            may Ada edit `a.py`?" in done.stdout
    assert "r1            Who signs?" in done.stdout
    assert "! costs are not told: there is nothing" in done.stdout


@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        (refused(401, "no_token", "a bearer token is needed"), 2, "a bearer token is needed"),
        (Reply(200, b"<html>"), 1, "is no service of Koi"),
    ],
)
def test_a_service_that_is_none(desk: StandIn, project: Project, reply: Reply, code: int, message: str) -> None:
    """What is wrong with an address is one message."""
    desk.reply("/api/runs", reply)
    done = project.koi("dashboard", "--once", "--url", desk.url)

    assert (code, "") == (done.returncode, done.stdout)
    assert message in done.stderr


# ---------------------------------------------------------------- a full screen


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50)])
def test_a_question_is_answered(desk: StandIn, screens: Any, columns: int, rows: int) -> None:
    """What is open is chosen, opened with Enter, and answered; the keys stand at the bottom."""
    screen = screens(columns, rows, "--url", desk.url)
    text = screen.until("q quit")
    assert ("1 at work  2 open  today $0.50" in text, text.index("open ──") < text.index("at work ──")) == (True, True)
    assert "q quit" in text.splitlines()[rows - 1]
    screen.child.send("\r")
    text = screen.until("esc back")
    assert "Who signs?\n1. Ann\n2. Bob" in text
    screen.child.send("2\r")
    screen.until("sent")

    assert [{"type": "answer", "request": "q1", "answer": "2"}] == commands(desk)
    screen.child.send("q")
    screen.end()
    assert 0 == screen.child.exitstatus


def test_a_permission_is_given(desk: StandIn, screens: Any) -> None:
    """All of what would change can be read before it is allowed, and a key pressed by mistake allows nothing."""
    screen = screens(80, 24, "--url", desk.url)
    screen.until("q quit")
    screen.child.send("y\x1b[B\r")
    assert "+line 0" in screen.until("esc back")
    screen.child.send("\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b[6~")
    assert "n because" in screen.until("+line 59")
    screen.child.send("perhaps\r")
    screen.until("answer y, a, n")
    assert [] == commands(desk)
    screen.child.send("\x15n because it is generated\r")
    screen.until("sent")

    assert [{"type": "approve", "request": "q2", "decision": "no", "reason": "it is generated"}] == commands(desk)


def test_what_was_opened_stays_what_it_was(desk: StandIn, screens: Any) -> None:
    """Where somebody else answers meanwhile, nothing else takes its place: that is said, and nothing is answered."""
    screen = screens(80, 24, "--url", desk.url)
    screen.until("q quit")
    screen.child.send("\r")
    screen.until("esc back")
    desk.reply("/api/runs/r1", told({**RUN, "open": [APPROVAL]}))
    assert "Who signs?" in screen.until("it is not open any more")
    desk.reply("/api/command", told({"success": False, "error_code": "unknown_request", "error": "it is answered"}))
    screen.child.send("y\r")
    screen.until("it is answered")

    assert [{"type": "answer", "request": "q1", "answer": "y"}] == commands(desk)


def test_a_screen_of_another_size(desk: StandIn, screens: Any) -> None:
    """A window that grows or shrinks is drawn anew, and Esc leads back and out."""
    screen = screens(80, 24, "--url", desk.url)
    screen.until("q quit")
    screen.resize(50, 16)
    assert "q quit" in screen.until("by model").splitlines()[15]
    screen.resize(120, 30)
    text = screen.until("Write of the sea")
    assert "q quit" in text.splitlines()[29]
    screen.child.send("\x1b[F\r")
    assert "koi runs show r2 tells what happened" in screen.until("esc back")
    screen.child.send("\x1b")
    screen.until("q quit")
    screen.child.send("\x03")
    screen.end()

    assert 0 == screen.child.exitstatus


def test_a_screen_without_colours(desk: StandIn, screens: Any) -> None:
    """With NO_COLOR no colour is written, and what is chosen has a mark all the same."""
    screen = screens(80, 24, "--url", desk.url, NO_COLOR="1")
    assert "\n> r1" in screen.until("q quit")
    codes = {code for found in re.findall(rb"\x1b\[([\d;]*)m", screen.written) for code in found.split(b";")}

    assert codes <= {b"", b"0"}


def test_a_service_that_goes_away(desk: StandIn, screens: Any) -> None:
    """The last that was known stays on the screen, with what is wrong, and the screen goes on when it is back."""
    screen = screens(100, 24, "--url", desk.url)
    screen.until("q quit")
    desk.reply("/api/runs", refused(500, "failed", "the disk is full"))
    assert "Who signs?" in screen.until("the disk is full")
    desk.reply("/api/runs", told({"runs": [{**RUN, "title": "Write again"}], "next": None}))

    assert "the disk is full" not in screen.until("Write again")


ASKING = f"const given = {question('Name?')}; console.log(`hello ${{given.answer}}`)"


def test_a_run_of_another_process_is_answered(project: Project) -> None:
    """Its question is seen as soon as it is asked, is answered here, and the run goes on to its end."""
    project.write("a.koi", program(f"{wait_for(project)}; {ASKING}"))
    screen = Shown(project.folder, ["dashboard"], 100, 24)
    screen.until("none was recorded")
    with started(project, "run", "a.koi", "--allow", "shell") as run:
        screen.until("working")
        let_go(project)
        screen.until("Name?")
        assert re.search(r"1 at work  1 open", screen.text())
        screen.child.send("\r")
        screen.until("esc back")
        screen.child.send("Ada\r")
        screen.until("sent")
        assert run.stdout is not None
        assert "hello Ada\n" == run.stdout.readline()
        assert " ok " in screen.until("0 at work  0 open")
    screen.child.send("q")
    screen.end()

    assert 0 == screen.child.exitstatus


def test_looking_once_keeps_nothing_waiting(project: Project) -> None:
    """What a run at a terminal asks is printed with all else; it is that of the terminal as before."""
    project.write("a.koi", program(ASKING))
    with at_terminal(project, "run", "a.koi") as terminal:
        terminal.expect("Name\\?")
        seen = json.loads(project.koi("dashboard", "--json").stdout)
        terminal.sendline("Eve")
        terminal.expect("hello Eve")

    assert [("waiting", "a.koi")] == [(run["state"], run["program"]) for run in seen["at_work"]]
    assert ["Name?"] == [request["question"] for request in seen["open"]]


# ---------------------------------------------------------------- what is drawn, and what is looked at


def snapshots() -> some.SearchStrategy[DashboardSnapshot]:
    """Whatever may be shown: long and wide texts, control characters, many runs."""
    text, money = some.text(max_size=20), some.one_of(some.none(), some.floats(0, 1e6))
    state = some.sampled_from(["running", "working", "waiting", "paused", "ok", "failed", "idle", "?"])
    counts = some.integers(0, 10**9)
    runs = some.builds(
        RunLine, text, text, state, some.floats(0, 2e9), some.floats(0, 1e6), counts, counts, money, text
    )
    costs = some.builds(CostLine, text, money, some.booleans(), counts, counts)
    asked = some.fixed_dictionaries({"type": some.just("question"), "id": text, "question": text})
    allowed = some.fixed_dictionaries(
        {"type": some.just("approval_request"), "id": text, "what": text, "preview": text}
    )
    requests = some.builds(OpenRequest, text, some.one_of(asked, allowed))
    lists = (some.lists(each, max_size=12).map(tuple) for each in (runs, requests, costs, costs, text))
    return some.builds(DashboardSnapshot, text, *lists)


@settings(max_examples=25, deadline=None)
@given(snapshots(), some.integers(12, 220), some.integers(10, 60), some.booleans(), some.randoms())
def test_everything_fits(snapshot: DashboardSnapshot, columns: int, rows: int, colour: bool, random: Any) -> None:
    """No line is wider than the screen or has control characters, and what is chosen is in sight, where it is high."""
    sheet = Sheet(Theme(colour=colour), columns, rows, 2e9)
    chosen = random.choice(places(snapshot) or [None])
    lines = list_lines(snapshot, chosen, sheet)
    pages = [request_lines(each, None, sheet) for each in snapshot.open[:3]]
    pages += [run_lines(each, sheet) for each in snapshot.runs[:3]]

    for line in [*lines, *(line for page in pages for line in page)]:
        plain = COLOUR.sub("", line)
        assert width(plain.rstrip()) <= columns
        assert plain.isprintable() or not any(ord(character) < 32 for character in plain)
    if rows >= 30 and len(snapshot.notes) < 5 and chosen is not None:
        assert any(COLOUR.sub("", line).startswith(">") for line in lines[:rows])


def test_unchanged_journals_are_not_read_again(tmp_path: Path) -> None:
    """Of a hundred journals only that of the run at work is looked at, and a new one is seen at once."""
    for n in range(100):
        write(tmp_path, f"{n:04}", "a.koi", ("Ada", "openai/one", 0.25, time.time()))
    writer = Writer(path_of(tmp_path, HEADER.run), HEADER, str, print)
    writer(Event(1, 101.0, HEADER.run, "", RunStarted()))
    source = FolderSource(tmp_path)
    first = asyncio.run(source.look())
    before = bytes_read()
    second = asyncio.run(source.look())
    taken = bytes_read() - before
    writer(Event(2, time.time(), HEADER.run, "Ada", ModelAnswered("m", {"input": 1, "output": 1}, 2.0), ("m#1",)))
    third = asyncio.run(source.look())
    writer(Event(3, time.time(), HEADER.run, "", RunEnded(True)))
    writer.close()
    fourth = asyncio.run(source.look())

    assert taken < 10_000
    assert [[HEADER.run]] * 3 == [[run.run for run in each.at_work] for each in (first, second, third)]
    assert [2, 2.0] == [third.at_work[0].tokens, third.models[1].usd or third.models[0].usd]
    assert ((), "ok") == (fourth.at_work, next(run.state for run in fourth.recent if run.run == HEADER.run))
    write(tmp_path, "ffff", "a.koi")
    assert "ffff" in [run.run for run in asyncio.run(source.look()).runs]


def test_a_place_is_kept_while_others_come(tmp_path: Path) -> None:
    """What can be chosen is what is open, then the runs, from top to bottom."""
    line = RunLine("r1", "a.koi", "running", 1.0, 1.0, 0, 0, 0.0)
    ended = RunLine("r0", "a.koi", "ok", 1.0, 1.0, 0, 0, 0.0)
    snapshot = DashboardSnapshot("here", (ended, line), (OpenRequest("r1", QUESTION),))

    assert [DashboardPlace("r1", "q1"), DashboardPlace("r1"), DashboardPlace("r0")] == places(snapshot)


def test_a_reader_that_has_left_needs_no_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`koi dashboard --once | head` ends without a word, as every command does; another broken pipe is told."""
    reading, writing = os.pipe()
    os.close(reading)

    def fail() -> None:
        raise BrokenPipeError("of a server")

    with open(writing, "w") as left:
        monkeypatch.setattr(sys, "stdout", left)
        with pytest.raises(BrokenPipeError):
            exit_code_of(lambda: click.echo("a line"), debug=False)
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)
        code = exit_code_of(fail, debug=False)

    assert (1, True) == (code, "of a server" in capsys.readouterr().err)
