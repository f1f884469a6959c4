"""`koi run` with a model behind the official SDKs, on a server that speaks their wire formats."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from types import ModuleType

import koi_lang
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests import forks
from tests.limits import LIMIT_S
from tests.llm.server import Answer, ModelServer
from tests.llm.test_adapters import adapter
from tests.projects import Project

PROGRAM = '''
    role Worker { can execute }
    agent Greeter : Worker {
      llm default = { provider: "openai", model: "gpt-4o-mini" }
      on hello(args: Json) { playbook """Greet {{args.name}}.""" }
    }
    run Greeter.hello({ name: "Ada" })
    '''
GREETING = '{"batch":[{"intent":"print","message":"Hello Ada"},{"intent":"return","data":{}}]}'
KEY = "sk-test-0123456789abcdef"


async def koi(project: Project, *words: str, **environment: str) -> tuple[int | None, str, str]:
    """The outcome of a `koi` command, while a server of this process answers it."""
    process = await started(project, *words, **environment)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def started(project: Project, *words: str, **environment: str) -> asyncio.subprocess.Process:
    """A `koi` command that runs."""
    return await asyncio.create_subprocess_exec(
        *forks.koi(*words),
        cwd=project.folder,
        env={**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def test_a_playbook_is_carried_out_by_a_model(project: Project) -> None:
    """The answer of the provider becomes output; the request carries the playbook."""
    project.write("a.koi", PROGRAM)

    async def run() -> tuple[tuple[int | None, str, str], str]:
        async with ModelServer([GREETING]) as server:
            done = await koi(project, "run", "a.koi", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=f"{server.url}/v1")
            return done, json.dumps(server.requests[0].body, ensure_ascii=False)

    (code, out, err), body = asyncio.run(run())

    assert (code, out, err) == (0, "Hello Ada\n", "")
    assert ("Greet ⟨args.name⟩." in body, '\\"name\\":\\"Ada\\"' in body) == (True, True)


def test_a_refused_key_is_one_sentence(project: Project) -> None:
    """A wrong key ends the run with exit code 1, says what to do, and never shows the key."""
    project.write("a.koi", PROGRAM)
    refused = Answer(status=401, error={"message": f"Incorrect API key provided: {KEY}"})

    async def run() -> tuple[int | None, str, str]:
        async with ModelServer([refused]) as server:
            return await koi(project, "run", "a.koi", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=f"{server.url}/v1")

    code, out, err = asyncio.run(run())

    assert (code, out) == (69, "")
    assert "key" in err
    assert KEY not in err
    assert "Traceback" not in err


def test_a_missing_key_names_the_variable(project: Project) -> None:
    """A provider named without its key is wrong usage that says which variable to set."""
    project.write("a.koi", PROGRAM)

    code, out, err = asyncio.run(koi(project, "run", "a.koi", OPENAI_API_KEY=""))

    assert (code, out) == (2, "")
    assert "OPENAI_API_KEY" in err


def test_ctrl_c_ends_a_run_that_waits_for_its_model(project: Project) -> None:
    """The process ends with 130, while the provider stays silent."""
    project.write("a.koi", PROGRAM)

    async def run() -> tuple[int | None, bytes]:
        async with ModelServer([Answer(silent=True)]) as server:
            environment = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.url}/v1"}
            process = await started(project, "run", "a.koi", **environment)
            await asyncio.wait_for(server.asked.wait(), LIMIT_S)
            process.send_signal(signal.SIGINT)
            _, err = await asyncio.wait_for(process.communicate(), LIMIT_S)
            return process.returncode, err

    code, err = asyncio.run(run())

    assert (130, True) == (code, b"it at once\n`koi resume " in err)


def test_a_cancelled_run_leaves_nothing_behind(project: Project) -> None:
    """Cancelling a run while its model is silent takes few turns of the event loop and leaves no task."""
    module = project.load("a.koi", PROGRAM)

    async def run() -> tuple[int, int]:
        async with ModelServer([Answer(silent=True)]) as server:
            services = Services(connect=lambda llm: adapter("openai", server.url), evaluate=evaluate)
            task = asyncio.create_task(called(services, module))
            await asyncio.wait_for(server.asked.wait(), LIMIT_S)
            task.cancel()
            turns = 0
            while not task.done():
                await asyncio.sleep(0)
                turns += 1
            ours = asyncio.all_tasks() - server.tasks
            return len(ours) - 1, turns

    left, turns = asyncio.run(run())

    assert left == 0
    assert turns < 100


async def called(services: Services, module: ModuleType) -> None:
    """One call of the program's handler."""
    async with Run(services) as run:
        await run.call(module.Greeter, "hello", {"name": "Ada"})
