"""Runs that their limits ended go on with others, and with another model."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.cli.test_models import KEY
from tests.cli.test_models import koi as outcome_of
from tests.journal.commands import Commands
from tests.journal.test_resume import say
from tests.llm.server import ModelServer
from tests.projects import Project

PLAYBOOK = '''
role R { can execute }
agent A : R { on go(x: Json) { playbook """Count to three.""" } }
run A.go({})
'''
ANSWERS = [
    *({"batch": [{"intent": "shell", "command": f"echo {n} >> effects", "description": "count"}]} for n in range(3)),
    {"intent": "return", "data": {}},
]
MODELS = ("gpt-4o-mini", "gpt-4o")
CODE = """
role R { can execute }
agent A : R { on go(x: Json) {
  console.log("one")
  await this.callAction("shell", { command: "echo 0 >> effects", description: "count" })
  await new Promise(done => setTimeout(done, 3500))
  console.log("two")
} }
run A.go({})
"""


@pytest.mark.parametrize(
    ("low", "high"), [("--max-tokens 1400", "--max-tokens 90000"), ("--max-requests 2", "--max-requests 9")]
)
def test_a_run_that_its_budget_ended_goes_on(koi: Commands, low: str, high: str) -> None:
    """With more it comes to its end and does nothing twice; with no more it ends as before; a replay does the same."""
    stopped = koi.record(PLAYBOOK, ANSWERS, "--allow", "shell", *low.split())
    begun = len(koi.lines("effects"))
    same = koi("resume")
    assert (4, 4, begun) == (stopped.code, same.code, len(koi.lines("effects")))
    done = koi("resume", *high.split())

    assert (0, ["0", "1", "2"]) == (done.code, koi.lines("effects")), done.err
    assert 0 < begun < 3
    assert "nothing is different" in koi("replay", "last").err


CAUGHT = """
role Worker { can execute }
agent Counter : Worker {
  on count(args: Json) { playbook "Count." }
  on retried(args: Json) { playbook "Count." }
  resilience "retried" { retry_max_attempts = 2, retry_delay = 1 }
}
agent Main : Worker {
  on start() {
    try { await Counter.count() } catch (error) { console.log(error.message) }
    try { await Counter.retried() } catch (error) { console.log(error.message) }
    console.log(await Counter.count())
    console.log(await Counter.count())
  }
}
run Main.start()
"""


def test_a_caught_limit_stays(koi: Commands) -> None:
    """A call that a limit of turns has ended, and after which the run went on, does not go on with a higher one."""
    end, three = {"intent": "return", "data": 7}, [say("1"), say("2"), say("3")]
    failed = koi.record(CAUGHT, [*three, *three, end, *three, say("4"), end], "--max-turns", "3")
    resumed = koi("resume", "last", "--max-turns", "9")
    caught = [f"1\n2\n3\n`Counter.{name}` did not return within 3 turns\n" for name in ("count", "retried")]

    assert (4, f"{''.join(caught)}7\n1\n2\n3\n") == (failed.code, failed.out)
    assert (0, "4\n7\n") == (resumed.code, resumed.out), resumed.err
    assert "nothing is different" in koi("replay", "last").err


def test_a_limit_ends_with_the_changed_files(koi: Commands) -> None:
    """A run that a limit ends names the files that it has changed; one without changes, or limit, names none."""
    limited = koi.record(PLAYBOOK, ANSWERS, "--allow", "shell", "--max-requests", "2")
    idle = koi.record(PLAYBOOK, ANSWERS, "--max-requests", "2")
    ended = koi.record(PLAYBOOK, ANSWERS, "--allow", "shell")

    assert "1 file changed, +2 −0: effects; `koi undo " in limited.err
    assert (4, 0) == (idle.code, ended.code)
    assert "changed" not in idle.err + ended.err


def test_what_was_raised_once_stays_so(koi: Commands) -> None:
    """A run that goes on with more tokens, is killed, and goes on again need not be told twice; nor its branches."""
    assert 4 == koi.record(PLAYBOOK, ANSWERS, "--allow", "shell", "--max-requests", "2").code
    assert 0 == koi("resume", "--max-requests", "9").code
    koi.cut_behind("done", nth=3)
    again = koi("resume")
    branch = koi("resume", "last", "--branch")

    assert (0, 0) == (again.code, branch.code), again.err + branch.err
    assert "--max-requests 9" in koi("runs", "show", "last").out


def test_limits_that_stay_are_said(koi: Commands) -> None:
    """One line says which limits of the first command still count; one that is given anew is not among them."""
    limits = ("--max-requests", "2", "--max-time", "5m", "--max-usd", "0.5")
    assert 4 == koi.record(PLAYBOOK, ANSWERS, "--allow", "shell", *limits).code
    silent = koi("resume", "--quiet").err
    same = koi("resume").err
    raised = koi("resume", "--max-requests", "9").err

    assert "limits as before" not in silent
    advice = "--max-usd 0.5 --max-time 300s; a larger value here raises one\n"
    assert f"\nlimits as before: --max-requests 2 {advice}" in same
    assert f"\nlimits as before: {advice}" in raised


def test_a_run_that_took_too_long_goes_on(koi: Commands) -> None:
    """The time counts from now on."""
    stopped = koi.record(CODE, None, "--allow", "shell", "--max-time", "3s")
    done = koi("resume", "--max-time", "300s")

    assert (4, "one\n") == (stopped.code, stopped.out)
    assert (0, "two\n", ["0"]) == (done.code, done.out, koi.lines("effects")), done.err


def test_another_model_goes_on(project: Project) -> None:
    """What the first one has answered is kept; all further requests are for the one that `-m` names."""
    project.write("main.koi", PLAYBOOK)
    answers = [json.dumps(answer) for answer in ANSWERS]

    async def run() -> tuple[tuple[int | None, str, str], tuple[int | None, str, str], list[str]]:
        async with ModelServer(answers, MODELS) as server:
            at = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": KEY}
            words = ("run", "-m", "openai/gpt-4o-mini", "--max-requests", "2", "--allow", "shell", "main.koi")
            first = await outcome_of(project, *words, **at)
            again = await outcome_of(project, "resume", "-m", "openai/gpt-4o", "--max-requests", "9", **at)
            return first, again, [str(asked.body["model"]) for asked in server.requests]

    first, again, models = asyncio.run(run())

    assert (4, 0) == (first[0], again[0]), first[2] + again[2]
    assert [*["gpt-4o-mini"] * 2, *["gpt-4o"] * 2] == models
    assert ["0", "1", "2"] == (project.folder / "effects").read_text().split()


def test_a_rehearsal_goes_on_with_a_model(project: Project) -> None:
    """`-m` counts before what stood in for a model."""
    source = PLAYBOOK.replace("Count to three.", 'Print "hello".\n    Think of a name for a cat.')
    project.write("main.koi", source)
    assert 0 == project.koi("run", "--rehearse", "main.koi").returncode

    async def run() -> tuple[tuple[int | None, str, str], int]:
        async with ModelServer([json.dumps({"intent": "return", "data": {"name": "Tom"}})], MODELS) as server:
            at = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": KEY}
            done = await outcome_of(project, "resume", "last", "--at", "2", "-m", "openai/gpt-4o", **at)
            return done, len(server.requests)

    done, asked = asyncio.run(run())

    assert (0, 1) == (done[0], asked), done[2]


@pytest.mark.parametrize("words", ["--max-tokens 0", "--max-usd -1", "--max-time never", "-m ''"])
def test_limits_that_are_none(koi: Commands, words: str) -> None:
    """They are refused as by `koi run`, and nothing is added to the journal."""
    koi.record(PLAYBOOK, ANSWERS, "--allow", "shell", "--max-requests", "2")
    before = koi.journal.read_bytes()
    done = koi("resume", *(word.strip("'") for word in words.split()))

    assert (2, before) == (done.code, koi.journal.read_bytes())
