"""`koi chat`, at a real terminal and without one."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import time

import pytest

from tests.cli.chatting import ALT_ENTER, CTRL_D, ENTER, ESCAPE, PROGRAM, WAIT, chatting, let_go, prepare, say
from tests.cli.screens import Shown
from tests.limits import LIMIT_S
from tests.playbook.playing import act, done
from tests.projects import Project

RUN = re.compile(r"[0-9a-f]{12}")


def runs(project: Project) -> list[str]:
    """The journals of the folder."""
    return sorted(path.stem for path in (project.folder / ".koi" / "runs").glob("*.jsonl"))


def until_kept(project: Project, text: str) -> None:
    """Wait until a text stands in the journal: what is shown may be written a moment later."""
    journal, end = project.folder / ".koi" / "runs" / f"{runs(project)[0]}.jsonl", time.monotonic() + LIMIT_S
    while text not in journal.read_text("utf-8") and time.monotonic() < end:
        time.sleep(0.02)


# ---------------------------------------------------------------- at a terminal


def test_a_conversation_at_a_terminal(project: Project, terminals: list[Shown]) -> None:
    """What is said stays on the screen with the answers and the actions; the line at the bottom says how it stands."""
    shown = chatting(project, WAIT, say("Tabs it is"), done(), say("And tested"), done(), command="--allow shell")
    terminals.append(shown)
    shown.until("Main.chat of a.koi; /help lists the commands")
    shown.until("$0.0000  idle")
    shown.child.send("Which indentation?\r")
    shown.until("Main: shell cat go")
    shown.child.send("Use tabs." + ENTER)
    shown.until("(1 queued)")
    shown.child.send("And test." + ALT_ENTER)
    shown.until("(2 queued)")
    let_go(project.folder)
    shown.until("And tested")
    shown.until("idle")
    shown.child.send(CTRL_D)
    screen = shown.end()

    expected = """
        > Which indentation?
        > Use tabs.
        will be heard before the next answer of the model
        > And test.
        will be heard at the end
        ✓ Main: shell cat go → exitCode: 0
        `Main` hears: Use tabs.
        Tabs it is
        `Main` hears: And test.
        And tested"""
    lines = [line for line in screen.splitlines() if line.strip(" >")]
    begin = next(n for n, line in enumerate(lines) if line.strip() == "> Which indentation?")
    # On a busy machine a command takes so long that its time is shown.
    told = [line.strip().removesuffix(" #s") for line in lines[begin:-1]]
    assert [line.strip() for line in expected.splitlines() if line] == told
    assert (0, f"`koi chat a.koi --resume {runs(project)[0]}` goes on with it") == (shown.child.exitstatus, lines[-1])


def test_going_back_and_on(project: Project, terminals: list[Shown]) -> None:
    """`/tree` shows the entries, `/branch` gives a message back to be written anew, `/resume` lists and goes on."""
    shown = chatting(project, say("first"), done(), say("second"), done())
    terminals.append(shown)
    for text, answer in (("one", "first"), ("two", "second")):
        shown.until("idle")
        shown.child.send(text + ENTER)
        shown.until(f"\n{answer}")
    (first,) = runs(project)
    shown.child.send("/tree\r")
    screen = shown.until('Main.chat {"message": "two"}')
    at = next(line.split()[0] for line in screen.splitlines() if '"two"' in line)
    shown.child.send(f"/branch {at}\r")
    shown.until("the other branch stays as it is")
    shown.until("> two")
    shown.child.send(" again\r")
    shown.until("> two again\nsecond")
    shown.child.send("/resume\r")
    shown.until(f"/resume\n{first}  ")
    shown.child.send(CTRL_D)
    shown.end()

    assert 2 == len(runs(project))
    assert "two again" in project.koi("runs", "tree", "last").stdout


def test_undoing_what_was_changed(project: Project, terminals: list[Shown]) -> None:
    """`/undo` shows what the conversation has changed, `/undo yes` puts it back, and then nothing is left."""
    command = act("shell", command="echo changed > made.txt", description="d")
    shown = chatting(project, command, say("made it"), done(), command="--allow shell")
    terminals.append(shown)
    shown.until("idle")
    shown.child.send("go" + ENTER)
    shown.until("\nmade it")
    shown.child.send("/undo\r")
    shown.until("remove      made.txt (shell)")
    assert (project.folder / "made.txt").exists()
    shown.child.send("/undo yes\r")
    shown.until("put back 1 path that")
    shown.child.send("/undo\r")
    shown.until("nothing is left to undo")
    shown.child.send(CTRL_D)
    shown.end()

    assert not (project.folder / "made.txt").exists()
    assert "nothing is left" in project.koi("undo").stderr


def test_questions_at_a_terminal(project: Project, terminals: list[Shown]) -> None:
    """Permission and questions are asked for in the input, which says so; their options are offered."""
    question = act("prompt_user", question="Which colour?", options=["red", "green"], id="c")
    shell = act("shell", command="echo ran", description="to see")
    shown = chatting(project, shell, question, say("You chose ${c.output.answer}"), done())
    terminals.append(shown)
    shown.until("idle")
    shown.child.send("go\r")
    asked = shown.until("allow?")
    shown.child.send("yes\r")
    shown.until("Which colour?\n  1. red\n  2. green")
    shown.until("?\n   red\n   green")
    shown.child.send("2\r")
    shown.until("You chose green")
    shown.child.send(CTRL_D)
    shown.end()

    assert (True, 0) == ("`Main` wants to run `echo ran`: to see" in asked, shown.child.exitstatus)


def test_an_abort_at_a_terminal(project: Project, terminals: list[Shown]) -> None:
    """Escape ends the work at once, with its processes, and gives back what was queued."""
    shown = chatting(project, WAIT, say("still here"), done(), command="--allow shell")
    terminals.append(shown)
    shown.until("idle")
    shown.child.send("go\r")
    shown.until("Main: shell cat go")
    shown.child.send("later\r")
    shown.until("(1 queued)")
    shown.child.send(ESCAPE)
    shown.until("\naborted")
    shown.until("> later\n")
    shown.child.send(ENTER)
    shown.until("still here")
    shown.child.send("/quit\r")
    shown.end()

    assert 0 == shown.child.exitstatus


@pytest.mark.sampled(1)
@pytest.mark.parametrize("columns", [20, 40])
def test_a_narrow_terminal(project: Project, terminals: list[Shown], columns: int) -> None:
    """The line at the bottom takes one line, however narrow the terminal is, and nothing is coloured if unwanted."""
    shown = chatting(project, say("Hi"), done(), columns=columns, NO_COLOR="1")
    terminals.append(shown)
    shown.until("\nMain.chat  ")
    shown.child.send("hello\r")
    shown.until("\nHi")
    shown.until("\nMain.chat  scri")
    shown.child.send(CTRL_D)
    shown.end()

    assert not re.search(rb"\x1b\[[\d;]*\b(?:3|9)[0-7]m", shown.written)


def test_a_conversation_that_was_killed_goes_on(project: Project, terminals: list[Shown]) -> None:
    """After `kill -9` the conversation is there, the work that was under way goes on, and nothing is done twice."""
    ran = act("shell", command="echo ran >> ran", description="to see")
    shown = chatting(
        project, say("first"), done(), {"batch": [ran, WAIT]}, say("went on"), done(), command="--allow shell"
    )
    terminals.append(shown)
    shown.until("idle")
    shown.child.send("one\r")
    shown.until("\nfirst")
    shown.child.send("two\r")
    shown.until("shell cat go")
    until_kept(project, '"fields":{"command":"cat go')
    shown.child.kill(signal.SIGKILL)
    shown.end()
    again = chatting(project, command="--allow shell --resume last")
    terminals.append(again)
    screen = again.until("went on")
    again.child.send(CTRL_D)
    again.end()

    assert ("> one\nfirst\n> two" in screen, 1) == (True, len(runs(project)))
    assert "ran\n" == (project.folder / "ran").read_text()


def test_the_terminal_is_left_as_it_was(project: Project, terminals: list[Shown]) -> None:
    """A conversation that is told to end leaves a terminal that shows what is typed."""
    shown = chatting(project)
    terminals.append(shown)
    shown.until("idle")
    shown.child.kill(signal.SIGTERM)
    shown.end()

    assert 143 == shown.child.exitstatus
    assert b"\x1b[?2004l" in shown.written


def test_plain_lines(project: Project, terminals: list[Shown]) -> None:
    """For those who listen nothing is moved or drawn anew; lines that are typed while the agent works are heard."""
    shown = chatting(project, WAIT, say("Tabs"), done(), command="--allow shell --plain")
    terminals.append(shown)
    shown.until("lists the commands")
    shown.child.send("go\r")
    shown.child.send("Use tabs.\r")
    shown.until("will be heard")
    let_go(project.folder)
    shown.until("\nTabs")
    shown.child.send(CTRL_D)
    shown.end()

    assert (0, False) == (shown.child.exitstatus, b"\x1b" in shown.written)


# ---------------------------------------------------------------- without a terminal


def test_lines_of_a_pipe(project: Project) -> None:
    """One message a line, one answer after the other on stdout and nothing else; commands are carried out."""
    prepare(project, say("Hello"), done(), done(text="two\nlines"), say("end"), done())

    outcome = project.koi("chat", "a.koi", "--answers", "answers.json", stdin="hi\nmore\\\nlines\n/cost\nend\n")

    cost = "2 messages, 3 requests, "
    assert ("Hello\ntwo\nlines\n", "end\n", 0, "") == (
        outcome.stdout.partition(cost)[0],
        outcome.stdout.splitlines(True)[-1],
        outcome.returncode,
        outcome.stderr,
    )


def test_questions_of_a_pipe(project: Project) -> None:
    """The next line answers a question; nothing is allowed, and a question that comes too late has no answer."""
    shell = act("shell", command="echo ran > ran", description="to see")
    question = act("prompt_user", question="Name?", id="q")
    prepare(project, shell, {"batch": [question, say("Hi ${q.output.answer}")]}, question, say("end"), done())

    outcome = project.koi("chat", "a.koi", "--answers", "answers.json", stdin="hi\nAda\n")

    assert ("Hi Ada\nend\n", False) == (outcome.stdout, (project.folder / "ran").exists())
    assert "nobody can be asked; see `--allow`" in outcome.stderr
    journal = (project.folder / ".koi" / "runs" / f"{runs(project)[0]}.jsonl").read_text("utf-8")
    assert ("did not allow" in journal, "nobody can be asked to allow `echo ran > ran`" in journal) == (False, True)
    assert (1, True) == (outcome.returncode, "error: nobody answers `Name?`: standard input has" in outcome.stderr)


def test_an_empty_pipe(project: Project) -> None:
    """A conversation in which nobody says anything has failed, and says so."""
    prepare(project)

    outcome = project.koi("chat", "a.koi", "--rehearse")

    assert (1, "") == (outcome.returncode, outcome.stdout)
    assert outcome.stderr.startswith("error: nobody has said anything, since standard input is empty\n  = help: Pipe")


def test_a_failure_in_a_pipe(project: Project) -> None:
    """A message that cannot be answered is told on stderr, the next one is tried, and the exit code says so."""
    prepare(project, "nonsense")

    outcome = project.koi("chat", "a.koi", "--answers", "answers.json", "--max-turns", "1", stdin="hi\n/cost\n")

    assert 1 == project.koi("chat", "a.koi", stdin="/nonsense\n").returncode
    assert ("1 message, 1 request", 1) == (outcome.stdout.partition(", ")[0] + ", 1 request", outcome.returncode)
    assert outcome.stderr.startswith("error: ")


def test_no_model_in_a_pipe(project: Project) -> None:
    """A rehearsal that was asked for is told on stderr; nothing is rehearsed unasked."""
    prepare(project)

    rehearsed = project.koi("chat", "a.koi", "--rehearse", stdin="hi\n")
    quiet = project.koi("chat", "a.koi", "--rehearse", "--quiet", stdin="hi\n")
    refused = [project.koi("chat", *file, stdin="hi\n") for file in (("a.koi",), ())]

    assert "a rehearsal follows the explicit steps" in rehearsed.stderr
    assert ("", 0) == (quiet.stderr, quiet.returncode)
    assert [(1, "error: no model is configured")] * 2 == [(each.returncode, each.stderr[:29]) for each in refused]


def test_a_conversation_is_a_journal(project: Project) -> None:
    """It is listed and replayed as runs are; `koi resume` says which command goes on with it, and that does."""
    prepare(project, say("Hello"), done(), say("again"), done())
    words = ("chat", "a.koi", "--answers", "answers.json")
    project.koi(*words, stdin="hi\n")
    run = runs(project)[0]
    refused, replayed = project.koi("resume", "last"), project.koi("replay", "last")

    assert re.search(rf"{run}.*a\.koi +ok ", project.koi("runs", "list").stdout)
    assert f"`koi chat a.koi --resume {run}`" in refused.stderr
    assert "2 model answers, nothing is different" in replayed.stderr, replayed.stderr
    assert "again\n" == project.koi(*words, "--resume", run[:6], stdin="more\n").stdout


@pytest.mark.parametrize("more", [(), ("--max-turns", "1")])
def test_a_conversation_that_met_a_limit_goes_on(more: tuple[str, ...], project: Project) -> None:
    """Calls end where they ended: limits of the command line count on, whatever `koi.toml` says by then."""
    prepare(project, say("Hello"), done(), {"last_report": "cut"}, done(), done())
    words = ("chat", "a.koi", "--answers", "answers.json")
    cut = project.koi(*words, "--max-turns", "1", stdin="hi\nho\n")
    project.write("koi.toml", "[limits]\nturns = 9\n")
    first, second = (project.koi(*words, "--resume", "last", *more, stdin="more\n") for _ in range(2))

    assert "did not return within 1 turn" in cut.stderr
    assert ["", ""] == [each.stderr if "error" in each.stderr else "" for each in (first, second)]


def test_a_conversation_without_a_program_is_resumed_without_one(project: Project) -> None:
    """What the first command line did not name need not be named; the command that is told goes on."""
    project.write("answers.json", json.dumps([done(text="one"), done(text="two")]))
    words = ("--answers", "answers.json")
    project.koi("chat", *words, stdin="hi\n")
    command = re.findall("`(koi chat [^`]+)`", project.koi("resume", "last").stderr)[0]

    assert f"koi chat --resume {runs(project)[0]}" == command
    assert "two\n" == project.koi(*command.split()[1:], *words, stdin="more\n").stdout


def test_what_cannot_be_resumed_is_told(project: Project) -> None:
    """A session of another program, a run, and nothing at all are told apart."""
    prepare(project, done(text="x"))
    project.write("b.koi", PROGRAM)
    project.write("c.koi", "console.log(1)")
    words = ("--answers", "answers.json", "--resume", "last")
    nothing = project.koi("chat", "a.koi", *words)
    project.koi("chat", "a.koi", "--answers", "answers.json", stdin="hi\n")
    (run,) = runs(project)
    other = project.koi("chat", "b.koi", *words[:3], run)

    assert "there is no earlier session of `a.koi`" in nothing.stderr
    assert "is a session of another program, `a.koi`" in other.stderr
    assert [2, 2] == [each.returncode for each in (nothing, other)] or all(
        "Traceback" not in each.stderr for each in (nothing, other)
    )


def test_whom_to_talk_to_must_be_clear(project: Project) -> None:
    """Where nobody can be asked, a program with several handlers for messages is refused, and they are named."""
    handlers = "on a(args: { text: string }) {} on b(args: string) { console.log(args) }"
    project.write("two.koi", f"role W {{ can execute }} agent A : W {{ {handlers} }}")

    refused = project.koi("chat", "two.koi", stdin="hi\n")

    assert (2, True) == (refused.returncode, "`A.a`, `A.b`" in refused.stderr)
    assert "hi\n" == project.koi("chat", "two.koi", "A", "--event", "b", stdin="hi\n").stdout


def test_no_terminal_no_library_for_terminals(project: Project) -> None:
    """What draws inputs is not loaded where lines are read."""
    prepare(project, done(text="ok"))
    words = ["chat", "a.koi", "--answers", "answers.json"]

    script = f"""
    import atexit, sys
    atexit.register(lambda: print("prompt_toolkit" in sys.modules))
    from koi_lang.cli import main
    main({words!r})
    """

    assert "ok\nFalse\n" == project.python(script, stdin="hi\n").stdout


def test_secrets_stay_out(project: Project) -> None:
    """A key that somebody types is in no file of the folder."""
    prepare(project, done(text="ok"))
    key = "sk-proj-0123456789abcdef0123"

    project.koi("chat", "a.koi", "--answers", "answers.json", stdin=f"my key is {key}\n")

    files = [path for path in project.folder.rglob("*") if path.is_file()]
    assert [] == [path for path in files if key.encode() in path.read_bytes()]
    assert os.stat(project.folder / ".koi/runs" / f"{runs(project)[0]}.jsonl").st_mode & 0o77 == 0


def test_the_command_that_goes_on_can_be_typed(project: Project) -> None:
    """From the folder of the conversation, whatever program it is with."""
    script = project.write("answers.json", json.dumps([act("return", data=each) for each in ("one", "two")]))
    project.write("sub dir/a.koi", PROGRAM)
    answers = ("--answers", str(script))

    for file in (["sub dir/a.koi"], []):
        project.koi("chat", *file, *answers, stdin="hi\n")
        (command,) = re.findall(r"`(koi chat .*)`\.", project.koi("resume", "last").stderr)
        words = shlex.split(command)[1:]

        assert (["chat", *file, "--resume"], True) == (words[:-1], words[-1] in runs(project))
        assert "two\n" == project.koi(*words, *answers, stdin="more\n").stdout


def test_the_end_of_a_conversation_tells_what_changed(project: Project, terminals: list[Shown]) -> None:
    """Files with added and removed lines, how they are put back, and what it took."""
    make = act("shell", command="echo x > made.txt", description="to write")
    prepare(project, {"batch": [make, say("made it"), act("return")]})
    shown = chatting(project, command="--allow shell")
    terminals.append(shown)
    shown.until("Main.chat of a.koi")
    shown.child.send("go" + ENTER)
    shown.until("made it")
    shown.until("idle")
    shown.child.send(CTRL_D)
    screen = " ".join(shown.end().split())

    assert f"1 file changed, +1 −0: made.txt; `koi undo {runs(project)[0]}` puts it back; " in screen


def test_a_conversation_begins_with_its_place(project: Project, terminals: list[Shown]) -> None:
    """The folder, the branch, the model, and what needs no question."""
    prepare(project, act("return"))
    project.write(".git/HEAD", "ref: refs/heads/work/one\n")
    shown = chatting(project, command="--allow write:src/**")
    terminals.append(shown)

    shown.until("idle")
    shown.child.send(CTRL_D)
    screen = "".join(shown.end().split())

    assert f"{project.folder.name}onwork/one;allowed:write:src/**" in screen


def test_commands_in_the_background_are_listed(project: Project) -> None:
    """`/commands` says which command of which agent goes on; nothing of it is left behind."""
    start = act("shell", command="sleep 60", description="to wait", background=True)
    prepare(project, {"batch": [start, say("Begun"), done()]})

    words = ("chat", "a.koi", "--answers", "answers.json", "--allow", "shell")
    outcome = project.koi(*words, stdin="/commands\nhi\n/commands\n")

    listed = ["no command was begun in the background", "Begun", "1  Main  running  sleep 60"]
    assert listed == outcome.stdout.splitlines(), outcome.stderr
