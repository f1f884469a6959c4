"""`koi runs attach`: a terminal at a run of another process."""

from __future__ import annotations

import json
import signal

from tests.live.following import (
    at_terminal,
    following,
    let_go,
    program,
    question,
    socket_of,
    started,
    wait_for,
)
from tests.playbook.playing import act, done
from tests.projects import Project

ASKS = program(f'console.log("one"); const given = {question("Name?")}; console.log(`hello ${{given.answer}}`)')
WORKS = "run a.koi --allow shell".split()
PLAYBOOK = '''
    role W { can execute }
    agent Main : W { on go(args: Json) { playbook """Do the work.""" } }
    run Main.go({})
    '''


def test_a_question_is_answered_from_another_terminal(project: Project) -> None:
    """The past is shown first; both terminals go on with the answer, and the end is told."""
    project.write("a.koi", ASKS)
    with at_terminal(project, "run", "a.koi") as first:
        first.expect_exact("Name?")
        with at_terminal(project, "runs", "attach") as second:
            second.expect_exact("one")
            second.expect_exact("Name?")
            second.sendline("Zoe")
            second.expect_exact("hello Zoe")
            second.expect("the run `[0-9a-f]+` has ended well")
            assert 0 == second.wait()
        first.expect_exact("» answered elsewhere: Zoe")


def test_an_answer_at_the_first_terminal_ends_the_prompt(project: Project) -> None:
    """The second one is told, and not asked again."""
    project.write("a.koi", ASKS)
    with at_terminal(project, "run", "a.koi") as first:
        first.expect_exact("Name?")
        with at_terminal(project, "runs", "attach", "last") as second:
            second.expect_exact("Name?")
            first.sendline("Ann")
            second.expect_exact("» answered elsewhere\r\n")
            second.expect_exact("hello Ann")
            second.expect_exact("has ended well")
            assert "Name?" not in second.before


def test_without_a_terminal_it_is_told_what_the_run_waits_for(project: Project) -> None:
    """Nobody can be asked there; the run goes on when it is answered elsewhere, and both see the answer."""
    project.write("a.koi", ASKS)
    with at_terminal(project, "run", "a.koi") as first:
        first.expect_exact("Name?")
        with started(project, "runs", "attach") as second:
            assert second.stderr is not None
            assert "» waits for an answer that only a terminal can give: Name?\n" in iter(second.stderr.readline, "")
            first.sendline("Zoe")
            assert (0, "one\nhello Zoe\n") == (second.wait(), second.stdout and second.stdout.read())


def test_approval_is_given_from_another_terminal(project: Project) -> None:
    """With all that the first terminal would show, and a no with its reason."""
    shell = 'await callAction("shell", { command: "echo done > done.txt", description: "to test" })'
    project.write("a.koi", program(f"{wait_for(project)}; try {{ {shell} }} catch (e) {{ console.log(e.message) }}"))
    with started(project, "run", "a.koi", "--allow", "shell:cat *") as run:
        socket_of(project)
        with at_terminal(project, "runs", "attach") as terminal:
            terminal.expect_exact("Ctrl-C detaches")
            let_go(project)
            terminal.expect_exact("wants to run `echo done > done.txt`")
            terminal.sendline("y")
            terminal.expect_exact("has ended well")
        assert 0 == run.wait()
    assert (project.folder / "done.txt").exists()


def test_ctrl_c_detaches(project: Project) -> None:
    """The run goes on, and can be followed again; its question is still open."""
    project.write("a.koi", ASKS)
    with at_terminal(project, "run", "a.koi") as first:
        first.expect_exact("Name?")
        with at_terminal(project, "runs", "attach") as second:
            second.expect_exact("Name?")
            second.sendintr()
            second.expect(r"detached; `[0-9a-f]+` goes on")
            assert 0 == second.wait()
        with at_terminal(project, "runs", "attach") as third:
            third.expect_exact("Name?")
            third.sendline("Zoe")
            third.expect_exact("hello Zoe")
        first.expect_exact("hello Zoe")


def test_what_is_typed_steers(project: Project) -> None:
    """`/steer`, a line alone, `/queue`, `/pause`, `/continue` and `/abort` do what they do in the run's terminal."""
    project.write("a.koi", PLAYBOOK)
    wait_for(project)
    wait = act("shell", command="cat go", description="to wait")
    project.write("answers.json", json.dumps([wait, wait, done()]))
    with started(project, *WORKS, "--answers", "answers.json") as run:
        socket_of(project)
        with at_terminal(project, "runs", "attach") as terminal, following(project, answers=False) as client:
            client.until("action_started")
            terminal.sendline("/pause")
            terminal.expect_exact("» paused before the next request")
            terminal.sendline("/steer use tabs")
            terminal.expect_exact("» ")
            terminal.sendline("/nothing")
            terminal.expect_exact("there is no command `/nothing`")
            let_go(project)
            client.until("action_ended")
            terminal.sendline("/continue")
            lines = ["» going on", "`Main` hears: use tabs"]  # the run may be the quicker one
            lines.pop(terminal.expect_exact(lines))
            terminal.expect_exact(lines)
            terminal.sendline("/abort")
            terminal.expect_exact("» aborted")
            terminal.expect(r"error.*the run `[0-9a-f]+` has not ended well")
            assert 1 == terminal.wait()
        assert 130 == run.wait()


def test_a_run_that_is_killed_is_told(project: Project) -> None:
    """And cannot be attached any more; its socket is removed by whoever comes next."""
    project.write("a.koi", ASKS)
    with at_terminal(project, "run", "a.koi") as first:
        first.expect_exact("Name?")
        name = socket_of(project).stem
        with at_terminal(project, "runs", "attach") as second:
            second.expect_exact("Name?")
            first.kill(signal.SIGKILL)
            second.expect_exact(f"the run `{name}` is gone")


def test_a_run_that_is_over_cannot_be_attached(project: Project) -> None:
    """The message says how to look at it."""
    project.write("a.koi", program('console.log("one")'))
    project.koi("run", "a.koi")

    told = project.koi("runs", "attach", "last").stderr
    nothing = project.koi("runs", "attach").stderr

    assert "does not work any more (ok)" in told
    assert "`koi runs show " in told
    assert "no run of this folder can be followed" in nothing


def test_the_list_says_which_can_be_attached(project: Project) -> None:
    """In words below it, and in its data."""
    project.write("a.koi", program(f'console.log("one"); {wait_for(project)}'))
    with started(project, *WORKS):
        name = socket_of(project).stem

        assert f"`koi runs attach ID` follows `{name}`" in project.koi("runs").stderr
        (run,) = json.loads(project.koi("runs", "list", "--json").stdout)
        assert (name, True) == (run["run"], run["attachable"])
        let_go(project)
