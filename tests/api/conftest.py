"""Programs that Python opens, in a folder that is the current one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import koi_lang
from koi_lang.api.agent import ProgramAgent
from tests.projects import Project

DESK = '''
    import sys from "python:sys"
    role Editorial { can execute, can delegate, can execute:shell }

    agent Editor : Editorial {
      state { seen: number = 0 }

      on start(args: { topic: string }) {
        playbook """
          Write a brief about ${args.topic}.
        """
      }

      on outline(args: { topic: string }): { title: string, parts: string[] } {
        answer "Outline a text about {{args.topic}}."
      }
      on count() { this.state.seen += 1; return this.state.seen }
      on echo(args: Json) { args.changed = true; return args }
      on stream(args: Json) { return "streamed" }
      on gaps() { return [1, undefined, { a: undefined }] }
      on fail(args: { text: string }) { throw new RangeError(args.text) }
      on leave() { sys.exit(3) }
      on slow(args: Json) {
        console.log("begun")
        try { await new Promise(resolve => setTimeout(resolve, 60000)) } finally { console.log("cleaned up") }
      }
      on name() { return await callAction("prompt_user", { question: "Your name?" }) }
      on list() { return await callAction("shell", { command: "echo listed", description: "to see" }) }
    }

    run Editor.start({ topic: "tea" })
    '''
BRIEF = {"actions": [{"intent": "return", "data": {"brief": "short"}}]}


@pytest.fixture
def desk(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with an agent, in a folder that is the current one."""
    monkeypatch.chdir(project.folder)
    return project.write("desk.koi", DESK)


@pytest.fixture
def anyio_backend() -> str:
    """What tests that are async run on."""
    return "asyncio"


def within(desk: Path, work: Callable[[ProgramAgent], Awaitable[Any]], **options: Any) -> Any:
    """What some work with the agent of a program gives."""

    async def go() -> Any:
        async with koi_lang.open(desk, **options) as program:
            return await work(program.agent("Editor"))

    return asyncio.run(go())
