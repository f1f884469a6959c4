"""How deep programs may recurse when the command runs them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import koi_lang
from koi_lang.runtime.run import MAX_FRAMES
from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

HEAD = "role R { can execute }\nagent A : R {\n  on go(args) {\n"
FORMS = {
    "call": "const sum = n => n === 0 ? 0 : n + sum(n - 1)\nconsole.log(sum(1500))",
    "await": "const sum = async n => n === 0 ? 0 : n + await sum(n - 1)\nconsole.log(await sum(1500))",
}
ENDLESS = {
    "call": "const f = n => f(n + 1)\nf(0)",
    "await": "const f = async n => await f(n + 1)\nawait f(0)",
    "sort": "const f = n => [2, 1].sort(() => f(n + 1))\nf(0)",
    "replace": 'const f = n => "a".replace(/a/, () => f(n + 1))\nf(0)',
    "json": "const f = n => JSON.stringify({ toJSON: () => f(n + 1) })\nf(0)",
    "handle": 'await this.handle("again", {})',
}
AGAIN = '\n}\n  on again(args) { await this.handle("again", args) }\n'


def run(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """What the command does with a handler."""
    file = tmp_path / "deep.koi"
    file.write_text(f"{HEAD}{text}{AGAIN}}}\nrun A.go({{}})\n", encoding="utf-8")
    env = {"HOME": str(tmp_path), "KOI_CACHE_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    command = forks.koi("run", str(file))
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=LIMIT_S)


@pytest.mark.parametrize("form", FORMS)
def test_deep_recursion_works(form: str, tmp_path: Path) -> None:
    """1,500 calls within each other are fine."""
    done = run(tmp_path, FORMS[form])

    assert (done.stdout, done.returncode) == ("1125750\n", 0), done.stderr


async def _limits(file: str) -> list[int]:
    """The recursion limit while two runs are open, while one of them still is, and after both."""
    limits = []
    async with koi_lang.open(file) as first:
        async with koi_lang.open(file):
            limits.append(sys.getrecursionlimit())
        await first.agent("A").go({})
        limits.append(sys.getrecursionlimit())
    return [*limits, sys.getrecursionlimit()]


def test_the_limit_is_that_of_the_process_again(project: Project) -> None:
    """Runs raise the recursion limit while one of them is open; who opened them from Python then has theirs again."""
    file = project.write("deep.koi", f"{HEAD}{FORMS['call']}{AGAIN}}}")
    before = sys.getrecursionlimit()

    assert [MAX_FRAMES, MAX_FRAMES, before] == asyncio.run(_limits(str(file)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ENDLESS)
def test_endless_recursion_is_an_error(form: str, tmp_path: Path) -> None:
    """A program that calls itself forever gets a message; the process does not crash."""
    done = run(tmp_path, ENDLESS[form])

    assert done.returncode == 1
    assert "error: the program calls itself too deeply" in done.stderr
