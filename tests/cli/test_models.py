"""`koi run` with a model behind the official SDKs, on a server that speaks their wire formats."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import koi_lang
from tests.llm.server import Answer, ModelServer
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
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "koi_lang", *words),
        cwd=project.folder,
        env={**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


def test_a_playbook_is_carried_out_by_a_model(project: Project) -> None:
    """The answer of the provider becomes output; the request carries the playbook."""
    project.write("a.koi", PROGRAM)

    async def run() -> tuple[tuple[int | None, str, str], str]:
        async with ModelServer([GREETING]) as server:
            done = await koi(project, "run", "a.koi", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=f"{server.url}/v1")
            return done, json.dumps(server.requests[0].body)

    (code, out, err), body = asyncio.run(run())

    assert (code, out, err) == (0, "Hello Ada\n", "")
    assert "Greet Ada." in body


def test_a_refused_key_is_one_sentence(project: Project) -> None:
    """A wrong key ends the run with exit code 1, says what to do, and never shows the key."""
    project.write("a.koi", PROGRAM)
    refused = Answer(status=401, error={"message": f"Incorrect API key provided: {KEY}"})

    async def run() -> tuple[int | None, str, str]:
        async with ModelServer([refused]) as server:
            return await koi(project, "run", "a.koi", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=f"{server.url}/v1")

    code, out, err = asyncio.run(run())

    assert (code, out) == (1, "")
    assert "key" in err
    assert KEY not in err
    assert "Traceback" not in err


def test_a_missing_key_names_the_variable(project: Project) -> None:
    """A provider named without its key is wrong usage that says which variable to set."""
    project.write("a.koi", PROGRAM)

    code, out, err = asyncio.run(koi(project, "run", "a.koi", OPENAI_API_KEY=""))

    assert (code, out) == (2, "")
    assert "OPENAI_API_KEY" in err
