"""Koi programs that Python opens, calls and runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import koi_lang
from koi_lang.system import resources
from tests.api.conftest import BRIEF, DESK
from tests.projects import Project


async def use_desk(desk: Path) -> None:
    """What a Python program writes first."""
    model = koi_lang.ScriptedModel([BRIEF, BRIEF])
    async with koi_lang.open(desk, model=model, budget={"usd": 0.10}) as program:
        brief = await program.agent("Editor").start({"topic": "tea"})
        types = [event.type async for event in program.agent("Editor").stream("start", {"topic": "koi"})]

        assert {"brief": "short"} == brief
        assert ("handler_started", "handler_ended") == (types[0], types[-1])
        assert (2, 0.0) == (program.usage.requests, program.usage.cost_usd)
    assert program.journal is not None
    assert program.journal.read_text().count('"handler_ended"') == 2


def test_a_program_is_opened_and_called(desk: Path) -> None:
    """An agent's events are methods, what happens in a call is an async iterator, and all of it is recorded."""
    asyncio.run(use_desk(desk))


def test_a_program_is_run(desk: Path) -> None:
    """`koi_lang.run` does what `koi run` does, without asyncio."""
    result = koi_lang.run(desk, model=koi_lang.ScriptedModel([BRIEF]))

    assert 1 == result.usage.requests
    assert result.journal is not None


def test_runs_are_made_in_one_place() -> None:
    """What a run needs is put together by one function, whatever the run is for."""
    places = [
        path.name for path in resources.PACKAGE.rglob("*.py") for _ in re.findall(r"\bServices\(", path.read_text())
    ]

    assert ["runs.py"] == places


def test_the_terminal_answers_runs(project: Project) -> None:
    """`koi_lang.run` asks where `koi run` does, unless functions answer."""
    project.write("desk.koi", DESK.replace('run Editor.start({ topic: "tea" })', "run Editor.name()"))
    script = "import koi_lang; koi_lang.run('desk.koi')"

    asked = project.fork_python(script, stdin="Ada\n")
    unanswered = project.fork_python(script, stdin="")

    assert (0, "") == (asked.returncode, asked.stderr)
    assert "nobody answers the question `Your name?`" in unanswered.stderr


ASKING = """
    role R { can execute }
    agent A : R {
      on go(args: Json) {
        console.log("before", args.x)
        const answer = await callAction("prompt_user", { question: "Name?" })
        console.log(answer.answer)
      }
    }
    run A.go({})
    """


def test_koi_resume_goes_on_with_a_run(project: Project) -> None:
    """A run that `koi_lang.run` has begun is resumed with all that was said about it; one that ended well is not."""
    project.write("main.koi", ASKING)
    options = "payload={'x': 5}, budget={'usd': 0.5, 'time': 60}, allow=['shell:ls *'], rehearse=True, extensions=False"
    die = "lambda *_: sys.stdout.flush() or os._exit(9)"
    began = project.fork_python(f"import koi_lang, os, sys\nkoi_lang.run('main.koi', ask={die}, {options})")
    resumed = project.koi("resume", stdin="Ada\n")
    project.fork_python(
        "import asyncio, koi_lang\nasync def main():\n  async with koi_lang.open('main.koi'): pass\nasyncio.run(main())"
    )
    newest = max((project.folder / ".koi" / "runs").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)

    assert (9, "before 5\n") == (began.returncode, began.stdout), began.stderr
    assert (0, "Ada\n") == (resumed.returncode, resumed.stdout), resumed.stderr
    assert "allowed as before: shell:ls *" in resumed.stderr
    assert "has ended well" in project.koi("resume", newest.stem).stderr


@pytest.mark.anyio
async def test_a_playbook_is_rehearsed_only_when_asked(project: Project) -> None:
    """Without a model it fails, and says how to connect one: a script in a timetable would look as if it had worked."""
    path = project.write(
        "a.koi",
        '''
        role Worker { can execute }
        agent Greeter : Worker { on hello(args: Json) { playbook """Return { ok: true }.""" } }
        ''',
    )

    async with koi_lang.open(path) as program:
        with pytest.raises(koi_lang.KoiError, match="no model is configured, and this is no rehearsal") as failed:
            await program.agent("Greeter").hello({})
    async with koi_lang.open(path, rehearse=True) as program:
        assert await program.agent("Greeter").hello({}) == {"ok": True}

    help = failed.value.help or ""
    assert ("koi connect" in help, 'model="provider/model"' in help, "rehearse=True" in help) == (True, True, True)
