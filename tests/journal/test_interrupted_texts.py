"""Texts of models that break off while they arrive: the run that goes on asks for them again, whoever wants them."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import pytest

from tests.journal.commands import Done
from tests.journal.test_resume import DONE, Machine, ended, say
from tests.llm.server import Answer, Asked, ModelServer
from tests.projects import Project

AGENT = """role R { can execute }
agent Main : R {
  llm default = { provider: "openai", model: "gpt-4o-mini", transport: "text" }
"""
CODE = """
  on go(x: Json) { console.log((await callAction("call_llm", { data: "tea", instruction: "Sum up." })).result) }
}
run Main.go({})
"""
PLAYBOOK = '  on go(x: Json) { playbook "Work." }\n}\nrun Main.go({})\n'
JUDGE = """
  on go(x: Json) { console.log((await judged("prose-quality", "Write.", "Come.")).score) }
}
run Main.go({})
"""
SUM_UP = {"intent": "call_llm", "data": "tea", "instruction": "Sum up.", "id": "a"}
IN_WORDS = {"llm_eval": True, "instruction": "Is it nice?", "data": "sun"}
NAMES = ("clarity", "accuracy", "tone", "structure")
GRADES = {"dimensions": [{"name": name, "score": 1} for name in NAMES], "findings": [], "resolved": []}
# The program, the actions that its playbook answers with, the text that breaks off the first time, and what is printed.
CASES: dict[str, tuple[str, list[Any], str, str]] = {
    "code": (AGENT + CODE, [], "a whole text", "a whole text\n"),
    "action": (AGENT + PLAYBOOK, [SUM_UP, say("${a.output.result}"), DONE], "a whole text", "a whole text\n"),
    "condition": (
        AGENT + PLAYBOOK,
        [{"intent": "if", "condition": IN_WORDS, "then": [say("nice")]}, DONE],
        "true",
        "nice\n",
    ),
    "judge": (
        'import "std/judge"\n' + AGENT + JUDGE,
        [],
        json.dumps({"intent": "return", "data": GRADES}),
        "1\n",
    ),
}


async def break_off(project: Project, name: str, how: str) -> tuple[Done, Done]:
    """A run that ends in the middle of a text, by a signal or since its server dies, and the run that goes on."""
    program, actions, text, _ = CASES[name]
    project.write("main.koi", program)
    texts: list[Asked] = []

    def answer(asked: Asked) -> Answer:
        if actions and "## Playbook" in json.dumps(asked.body["messages"]):
            return Answer(pieces=(json.dumps({"batch": actions}),))
        texts.append(asked)
        half = (
            Answer(pieces=(text[:2], text[2:]), cut_after=1)
            if how == "death"
            else Answer(pieces=(text[:2],), pause=True)
        )
        return Answer(pieces=(text,)) if len(texts) > 1 else half

    async with ModelServer(answer) as server:
        machine = Machine(project, server)
        process = await machine.start("run", "main.koi")
        while not texts:
            assert process.returncode is None
            await asyncio.sleep(0.005)
        if how != "death":
            await asyncio.sleep(0.1)  # the first piece arrives, which nothing outside shows; either way must go on
            process.send_signal(signal.Signals[how])
        return await ended(process), await machine.koi("resume")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("code", "SIGINT"),
        pytest.param("code", "SIGKILL", marks=pytest.mark.thorough),
        ("code", "death"),
        ("action", "SIGINT"),
        pytest.param("condition", "SIGINT", marks=pytest.mark.thorough),
        ("judge", "SIGINT"),
    ],
)
def test_a_text_that_broke_off_is_asked_for_again(name: str, how: str, project: Project) -> None:
    """It was the failure of each resume: half a text has done nothing."""
    first, resumed = asyncio.run(break_off(project, name, how))

    assert ({"SIGINT": 130, "SIGKILL": -9, "death": 69}[how], "") == (first.code, first.out)
    assert (0, CASES[name][3]) == (resumed.code, resumed.out), resumed.err
