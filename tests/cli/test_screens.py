"""What a run shows in a terminal, seen as the screen that a person would see."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests import forks
from tests.cli.screens import Shown, golden
from tests.llm.server import Answer, Asked, ModelServer
from tests.playbook.playing import act, ask, done
from tests.projects import Project

MEMBERS = ("Ann", "Bob", "Cid", "Dee")
MEMBER = 'agent NAME : Worker { on check(args: Json) { playbook """Check as NAME.""" } }'
TEAM = "\n".join(
    (
        "role Worker { can execute, can delegate }",
        *(MEMBER.replace("NAME", name) for name in MEMBERS),
        f"team All {{ {', '.join(f'{name.lower()}: {name}' for name in MEMBERS)} }}",
        'agent Lead : Worker { uses team All  on go(args: Json) { playbook """Lead them.""" } }',
        "run Lead.go({})",
    )
)
RUN = ("run", "a.koi", "--answers", "answers.json", "--allow", "shell")
KOI = (sys.executable, "-m", "koi_lang", "run", "a.koi")
ECHO = 3  # the local modes, in what `tcgetattr` gives
Start = Callable[..., Shown]


def waiting(name: str) -> dict[str, Any]:
    """An action that waits for what is written to a pipe, and gives that."""
    return act("shell", command=f"cat {name}", description="to wait")


def team() -> dict[str, list[Any]]:
    """The answers of a lead who asks four others at the same time, each of whom waits for a pipe."""
    checks = {f"as {name}": [waiting(name.lower()), done(found=name)] for name in MEMBERS}
    together = {"parallel": [ask(f"{name.lower()}::check") for name in MEMBERS]}
    return {"Lead them": [together, act("print", message="All are done."), done()], **checks}


@pytest.fixture
def start(project: Project) -> Iterator[Start]:
    """Runs the team in a terminal; `project.folder` has a pipe for each of its members."""
    project.write("a.koi", TEAM)
    for name in MEMBERS:
        os.mkfifo(project.folder / name.lower())
    begun: list[Shown] = []

    def begin(answers: Any, words: Sequence[str] = RUN, columns: int = 70, rows: int = 12, **how: Any) -> Shown:
        project.write("answers.json", json.dumps(answers))
        begun.append(Shown(project.folder, [*words], columns, rows, **how))
        return begun[-1]

    yield begin
    for shown in begun:
        shown.child.close(force=True)


def let_go(project: Project, *names: str) -> None:
    """Have the actions that wait for these pipes end."""
    for name in names:
        (project.folder / name).write_text(f"{name} is fine\n")


def alone(*actions: Any) -> dict[str, list[Any]]:
    """The answers of a lead who does everything alone, one action an answer."""
    return {"Lead them": [*actions, done()]}


def test_one_agent(project: Project, start: Start, accept: bool) -> None:
    """While an action runs, one line says who does what; when it has ended, a line says what came of it."""
    shown = start(alone(waiting("ann"), act("registry_get", key="x"), act("print", message="Done.")))

    during = shown.until("Lead: shell")
    let_go(project, "ann")
    actual = f"{during}=====\n{shown.end()}"

    assert golden("alone", actual, accept) == actual


def test_a_team(project: Project, start: Start, accept: bool) -> None:
    """Four who work at the same time have a line each, below the one they work for, which counts who is done."""
    shown = start(team())

    screens = [shown.until("Dee: shell")]
    let_go(project, "bob")
    screens.append(shown.until("1 of 4 done"))
    let_go(project, "dee")
    screens.append(shown.until("2 of 4 done"))
    let_go(project, "ann")
    shown.until("3 of 4 done")
    let_go(project, "cid")
    # What takes a second has its time behind it; on a busy machine that may be anything.
    actual = "=====\n".join([*screens, shown.end()]).replace(" #s\n", "\n")

    assert golden("team", actual, accept) == actual


def test_a_narrow_terminal(project: Project, start: Start, accept: bool) -> None:
    """In 20 columns every line still is one line."""
    shown = start(team(), columns=20)

    during = shown.until("Dee: sh")
    let_go(project, "ann")
    actual = f"{during}=====\n{shown.until('1 of 4')}"

    assert golden("narrow", actual, accept) == actual


def test_a_low_terminal(start: Start, accept: bool) -> None:
    """Those for whom there is no line left are counted; the first line of the screen stays free."""
    actual = start(team(), rows=5).until("Bob: shell")

    assert golden("low", actual, accept) == actual


def test_a_terminal_that_changes(project: Project, start: Start, accept: bool) -> None:
    """The lines follow the size of the terminal while the run goes on."""
    shown = start(team())
    shown.until("Dee: shell")

    shown.resize(30, 4)
    smaller = shown.until("more")
    shown.resize(60, 10)
    actual = f"{smaller}=====\n{shown.until('Dee: shell')}"

    assert golden("resized", actual, accept) == actual


@pytest.mark.parametrize(("environment", "has_colours"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours(project: Project, start: Start, environment: dict[str, str], has_colours: bool) -> None:
    """There are colours unless NO_COLOR is set; the rest is the same."""
    shown = start(alone(waiting("ann")), **environment)
    shown.until("● Lead: shell cat ann")
    let_go(project, "ann")

    assert "✓ Lead: shell cat ann → exitCode: 0, stdout: ann is fine\n" == shown.end()
    assert has_colours == (re.search(rb"\x1b\[\d*m", shown.written) is not None)


def test_a_terminal_without_unicode(project: Project, start: Start, accept: bool) -> None:
    """Where the marks cannot be written there are others, and a question mark for each character of a text."""
    answers = {**team(), "as Ann": [act("registry_get", key="größe"), done(found="naïve")]}
    shown = start(answers, alone=True, PYTHONIOENCODING="ascii", PYTHONUTF8="0", columns=120)

    shown.until("1 of 4 done")
    actual = shown.until("Dee: shell").replace(" #s", "")

    assert golden("ascii", actual, accept) == actual
    assert shown.written.isascii()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", [{"words": (*RUN, "--plain")}, {"KOI_PLAIN": "1"}, {"TERM": "dumb"}])
def test_plain_lines(project: Project, start: Start, accept: bool, how: dict[str, Any]) -> None:
    """For screen readers, and where the cursor cannot be moved, there are finished lines and nothing else."""
    shown = start(team(), rows=30, **how)
    shown.until("Dee: shell")
    for count, name in enumerate(("ann", "bob", "cid", "dee"), 1):
        let_go(project, name)
        shown.until(f"{name}::check done") if count < 4 else None

    # How long something took is told where it was worth it, which on a busy machine may be anything.
    actual = shown.end().replace(" after #s", "")

    assert golden("plain", actual, accept) == actual
    assert b"\x1b" not in shown.written


def test_an_interrupted_run(start: Start, accept: bool) -> None:
    """Ctrl-C leaves what was told, takes away what was live, and gives the keyboard back as it was."""
    shown = start(team())
    shown.until("Dee: shell")
    taken = termios.tcgetattr(shown.child.child_fd)[ECHO]

    shown.child.sendintr()
    actual = shown.until("goes on")
    given_back = termios.tcgetattr(shown.child.child_fd)[ECHO]

    assert golden("interrupted", actual, accept) == actual
    assert (0, termios.ECHO) == (taken & termios.ECHO, given_back & termios.ECHO)


def test_a_stopped_run(start: Start) -> None:
    """Ctrl-Z takes the live lines away and gives the keyboard back; they come again when the run goes on."""
    shown = start(team(), alone=True)
    shown.until("Dee: shell")

    shown.child.send("\x1a")
    os.waitid(os.P_PID, shown.child.pid, os.WSTOPPED | os.WNOWAIT)
    assert "\n" == shown.until_gone("shell")
    assert termios.tcgetattr(shown.child.child_fd)[ECHO] & termios.ECHO

    os.kill(shown.child.pid, signal.SIGCONT)
    shown.until("Dee: shell")
    assert not termios.tcgetattr(shown.child.child_fd)[ECHO] & termios.ECHO


def test_typed_text_stays_whole(project: Project, start: Start, accept: bool) -> None:
    """What is being typed stands above the live lines, however these change; what is sent stays."""
    shown = start(team())
    shown.until("Dee: shell")

    shown.child.send("Use tbs\x7f\x7fabs, and a long wörd\x1b[D that is one too many\x17\x17\x17")
    let_go(project, "bob")
    shown.until("1 of 4 done")
    during = shown.until("that is\n")
    shown.child.send("\x15Use tabs.\r")
    actual = f"{during}=====\n{shown.until('will be heard')}"

    assert golden("typed", actual, accept) == actual


def test_a_question_has_the_terminal_for_itself(project: Project, start: Start, accept: bool) -> None:
    """While a question is open nothing else changes there; what has ended meanwhile is told after the answer."""
    asking = [act("prompt_user", question="Which?", options=["red", "blue"]), waiting("dee"), done()]
    shown = start({**team(), "as Dee": asking})
    shown.until("  2. blue\nWhich?")

    let_go(project, "ann")
    shown.child.send("2")
    during = shown.until("Which? 2")
    shown.child.send("\r")
    actual = f"{during}=====\n{shown.until('1 of 4 done')}"

    assert golden("question", actual, accept) == actual


def test_nothing_known_is_shown_again(project: Project, start: Start) -> None:
    """A run that goes on shows what it does now, not what it had done before."""
    first = start(alone(act("registry_set", key="x", value=1), waiting("ann")))
    first.until("Lead: shell")
    first.child.kill(signal.SIGKILL)
    first.end()

    shown = start(alone(act("registry_set", key="x", value=1), waiting("ann")), ("resume", "--on-doubt", "retry"))

    assert "registry_set" not in shown.until("Lead: shell")


def test_a_killed_run_does_not_hear_of_a_closed_terminal(project: Project, start: Start) -> None:
    """A screen ends when a command that was killed has: however late that is, the command does nothing more."""
    shown = start(alone(waiting("ann")))
    shown.until("Lead: shell")
    (forking,) = forks.forking_processes()
    assert forking is not None

    os.kill(forking, signal.SIGSTOP)
    threading.Timer(0.5, os.kill, (forking, signal.SIGCONT)).start()
    shown.child.kill(signal.SIGKILL)
    shown.end()

    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    assert "run_ended" not in journal.read_text("utf-8")


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[9;9H\x9b31mred\x1b[32mgreen\x1b[0m\r\b!"


def test_printed_text_cannot_steer_the_terminal(project: Project, start: Start) -> None:
    """At a terminal, what models print loses control characters; colours stay, and a file gets everything."""
    shown = start(alone(act("print", message=ESCAPES)))
    piped = project.koi(*RUN)

    assert ("31mredgreen!\n", "") == (shown.end(), shown.screen.title)
    assert b"\x1b[32mgreen" in shown.written
    assert f"{ESCAPES}\n".replace("\r", "\n") == piped.stdout


def test_told_text_cannot_steer_the_terminal(project: Project, start: Start) -> None:
    """Names, results, failures and questions of models are shown without control characters."""
    question = act("prompt_user", question=f"Sure?{ESCAPES}", options=[ESCAPES])
    shown = start(alone(act(f"no{ESCAPES}such", x=ESCAPES), act("registry_get", key=ESCAPES), question))
    shown.until("Sure?")

    assert "" == shown.screen.title
    assert b"\x1b[9;9H" not in shown.written
    assert b"\xc2\x9b" not in shown.written
    assert b"\x1b[32mgreen" not in shown.written


def test_many_printed_lines_cost_little(project: Project, start: Start) -> None:
    """The live lines are drawn some ten times a second, however much is printed meanwhile."""
    project.write(
        "a.koi",
        """
        role Worker { can execute }
        agent Busy : Worker {
          on go(args: Json) {
            for (let i = 0; i < 50; i++) {
              for (let j = 0; j < 100; j++) { console.log("line " + (i * 100 + j)) }
              await new Promise(r => setTimeout(r, 1))
            }
          }
        }
        run Busy.go({})
        """,
    )
    shown = start({}, ("run", "a.koi"))

    assert "line 4999" in shown.end()
    assert b"\r\n".join(b"line %d" % number for number in range(20)) in shown.written
    assert shown.written.count(b"\x1b[J") < 2 * (shown.seconds * 10 + 2)


def test_what_cannot_be_written_is_replaced(project: Project) -> None:
    """Output in an encoding that lacks a character has a question mark there, and half a character is no error."""
    project.write(
        "a.koi", r'role R { can execute } agent A : R { on go(args) { console.log("é\ud800!") } } run A.go({})'
    )

    written = [project.run(*KOI, PYTHONIOENCODING=encoding).stdout for encoding in ("ascii", "utf-8")]

    assert ["??!\n", "é\ufffd!\n"] == written


SECRET = "abcdefgh12345678"
WRITTEN = f'{{"intent": "print", "message": "The password of the house is {SECRET} and a '


def test_what_a_model_writes(project: Project, start: Start, accept: bool) -> None:
    """The end of what is being written is shown up to its last whole word, without secrets; the end tells the costs."""

    async def run() -> str:
        first, last = '{"intent": "print", "message": "First."}', '{"intent": "return"}'
        answers = [first, Answer((WRITTEN, 'long story"}'), pause=True), last]
        async with ModelServer(answers, ["gpt-4o"]) as server:
            shown = start({}, ("run", "a.koi", "-m", "openai/gpt-4o"), MY_PASSWORD=SECRET, **key_for(server))
            during = await asyncio.to_thread(shown.until, "house")
            server.go_on.set()
            return f"{during}=====\n{await asyncio.to_thread(shown.end)}"

    actual = asyncio.run(run())

    assert golden("writing", actual, accept) == actual


def test_a_question_is_not_seen_before_it_can_be_answered(start: Start) -> None:
    """While a model writes it only its action is: what is typed then steers, and who sees a question answers it."""
    pieces = ('{"intent": "prompt_user", "question": "Which colour is it to be ', 'then?"}')

    async def run() -> tuple[bytes, str]:
        answers = [Answer(pieces, pause=True), '{"intent": "return"}']
        async with ModelServer(answers, ["gpt-4o"]) as server:
            shown = start({}, ("run", "a.koi", "-m", "openai/gpt-4o"), **key_for(server))
            await asyncio.to_thread(shown.until, "writing prompt_user")
            before = shown.written
            server.go_on.set()
            await asyncio.to_thread(shown.until, "then?")
            shown.child.send("blue\r")
            return before, await asyncio.to_thread(shown.end)

    before, after = asyncio.run(run())

    assert b"Which" not in before
    assert "will be heard" not in after
    assert "Which colour is it to be then? blue" in after


LONG = "\\n\\n".join(f"**{number}** \\u001b[2Jline" for number in range(1, 92))


def test_a_long_text_scrolls_above_those_at_work(start: Start) -> None:
    """The end of a text, rendered, has at most half of the terminal; its line only names the action."""
    pieces = (f'{{"intent": "print", "message": "{LONG}', '"}')

    async def run() -> str:
        async with ModelServer([Answer(pieces, pause=True), '{"intent": "return"}'], ["gpt-4o"]) as server:
            shown = start({}, ("run", "a.koi", "-m", "openai/gpt-4o"), **key_for(server))
            during = await asyncio.to_thread(shown.until, "90 line")
            server.go_on.set()
            await asyncio.to_thread(shown.end)
            return during

    *lines, worker = asyncio.run(run()).splitlines()

    assert ["89 line", "", "90 line", "", "91"] == lines
    assert worker.startswith("● Lead: writing print #s")


def test_what_is_written_for_another_agent_stays_in_its_line(start: Start) -> None:
    """A delegate's `return` is not for the person, and neither is what it thinks, of which the end is shown."""
    thoughts = ("one thought\n", "and another one\n" * 20, "the end of it ")

    def answer(asked: Asked) -> Answer:
        if "Lead them" in json.dumps(asked.body):
            return Answer((json.dumps(ask("ann::check")),))
        return Answer(('{"intent": "return", "data": {"text": "for Lead alone ', '"}}'), pause=True, thoughts=thoughts)

    async def run() -> str:
        async with ModelServer(answer, ["gpt-4o"]) as server:
            shown = start({}, ("run", "a.koi", "-m", "openai/gpt-4o"), columns=100, **key_for(server))
            during = await asyncio.to_thread(shown.until, "for Lead")
            server.go_on.set()
            return during

    screen = asyncio.run(run())

    assert '● Ann: writing return "for Lead alone…"' in screen
    assert 3 == len(screen.splitlines())


def test_a_request_that_is_repeated(start: Start) -> None:
    """While a request to a model waits to be repeated, its line says so and why."""

    async def run() -> str:
        busy = Answer(status=503, headers={"retry-after": "20"}, error={"error": {"message": "too busy\x1b[2J"}})
        async with ModelServer([busy]) as server:
            shown = start({}, ("run", "a.koi"), columns=100, **key_for(server))
            return await asyncio.to_thread(shown.until, "asks again")

    assert "Lead: asks again in #s: " in asyncio.run(run())


def key_for(server: ModelServer) -> dict[str, str]:
    """The variables that have models asked of a server."""
    return {"OPENAI_API_KEY": "sk-not-a-real-key-000000", "OPENAI_BASE_URL": f"{server.url}/v1"}


def test_a_plan_is_decided_about_and_ticked_off(start: Start) -> None:
    """The person sees all of a plan, edits it, and each step that is done is a line that stays."""
    steps = [{"text": "read the parser", "touches": ["src/parse.py"]}, {"text": "run the tests"}]
    finish = [act("finish_step", step=1), act("finish_step", step=2)]
    shown = start([act("propose_plan", steps=steps), {"batch": finish}, done()], (*RUN, "--plan"), rows=24)

    shown.until("2. run the tests")
    shown.until("accept")
    shown.child.send("2: run pytest\r")
    shown.until("2. run pytest")
    shown.child.send("accept\r")
    screen = shown.until("step 2 of 2")

    assert "1. read the parser (src/parse.py)" in screen
    assert "✓ step 1 of 2: read the parser (src/parse.py)" in screen
    assert "✓ step 2 of 2: run pytest" in screen
    shown.end()
