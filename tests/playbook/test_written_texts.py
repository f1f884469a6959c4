"""Texts for people, told while a model writes them."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from koi_lang.events import Event, OutputDelta
from koi_lang.llm.messages import Request
from koi_lang.program import declarations, loader
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.playbook.reply_parser import ReplyReader
from koi_lang.runtime.playbook.written_answer import WrittenAnswer, plain_text
from koi_lang.runtime.playbook.written_texts import WrittenTexts
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.playbook.playing import Speak, Voice, act

Texts = dict[tuple[str, str, int], str]


def follow(answer: Any, size: int) -> tuple[Texts, list[str]]:
    """The texts that were told of an answer that arrives in pieces, and the pieces of them."""
    told: list[OutputDelta] = []
    reader = ReplyReader(listener=WrittenTexts(told.append))
    text = answer if isinstance(answer, str) else json.dumps(answer)
    for start in range(0, len(text), size):
        list(reader.feed(text[start : start + size]))
    texts: Texts = defaultdict(str)
    for delta in told:
        texts[delta.action, delta.field, delta.number] += delta.text
    return dict(texts), [delta.text for delta in told]


SAID = 'Tabs "and"\nblanks \N{FISH}'


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        (act("print", message=SAID), {("print", "message", 1): SAID}),
        ({"message": SAID, "intent": "print", "actionType": "direct"}, {("print", "message", 1): SAID}),
        (act("prompt_user", question="Why?", options=["a"]), {("prompt_user", "question", 1): "Why?"}),
        (act("return", data={"text": SAID}), {("return", "text", 1): SAID}),
        (act("shell", command="ls", description="to see"), {}),
        ({"actionType": "delegate", "intent": "b::print", "data": {"message": "x"}}, {}),
        (
            {"batch": [act("print", message="a"), {"parallel": [act("print", message="b")]}]},
            {("print", "message", 1): "a", ("print", "message", 2): "b"},
        ),
        ('Some prose {"intent": "print", "message": "quoted"}', {}),
    ],
)
def test_texts_for_people_are_told(answer: Any, texts: Texts, size: int) -> None:
    """What is printed, asked or returned is told as it arrives, without escapes, and nothing else is."""
    assert texts == follow(answer, size)[0]


def test_a_text_does_not_wait_for_its_end() -> None:
    """Each piece is told at once where the name of the action has come first; no piece is half a character."""
    _, pieces = follow(act("print", message="one two \N{FISH} three"), 3)

    assert len(pieces) > 4
    assert all(piece.isprintable() for piece in pieces)


PLAIN = [
    ("one two three", "one two three"),
    ("  one ` two\n\n``x`` \n", "one ` two\n\n``x``"),
    ("```json\n  {}\n```\n", "  {}"),
    ("<think>so `that` > 1</think>\n\n```\ncode\n```", "code"),
    ("<thinking>no end", "<thinking>no end"),
    ("[a] <b> ```c``` d", "[a] <b> ```c``` d"),
    ("```", ""),
    ("<", "<"),
    (" \n", ""),
]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("answer", "text"), PLAIN)
def test_a_plain_answer_is_told_as_it_will_be_given(answer: str, text: str, size: int) -> None:
    """Thoughts at the beginning and the fence around it are left out of what is told, as of the whole."""
    told: list[str] = []
    written = WrittenAnswer(told.append)
    for start in range(0, len(answer), size):
        written.add(answer[start : start + size])
    written.end()

    assert text == plain_text(answer) == "".join(told)


def test_a_plain_answer_is_told_in_time_proportional_to_its_length() -> None:
    """Neither a long thought nor a long row of blanks is looked through again with each piece."""
    told: list[str] = []
    written = WrittenAnswer(told.append)
    start_s = time.process_time()
    for piece in ("<think>", *("thought " for _ in range(100_000)), "</think>x", *(" " for _ in range(200_000)), "y"):
        written.add(piece)

    assert "x" == told[0]
    assert time.process_time() - start_s < 5


CODE = """
role Worker { can execute }
agent Main : Worker {
    on go(args: Json) {
        const said = await callAction("call_llm", { instruction: "Tell it.", data: "koi" })
        return said.result
    }
}
"""


async def tell(folder: Path, speak: Speak, look_on: Consumer | None = None) -> Any:
    """What the program gives, with somebody who looks on or without."""
    (folder / "a.koi").write_text(CODE, "utf-8")
    module = loader.load(str(folder / "a.koi"))
    async with Run(Services(lambda _: Voice(speak), teams=lambda: declarations.teams_of(module))) as run:
        if look_on is not None:
            run.events.subscribe(look_on, transient=True)
        return await run.call(module.Main, "go", {})


def test_what_code_has_a_model_write_is_told(tmp_path: Path) -> None:
    """Code's `call_llm` is told piece by piece, with the agent; the pieces are what code is given."""
    seen: list[Event] = []

    async def speak(request: Request) -> AsyncIterator[str]:
        for piece in ("```text\n", "Koi ", "are ", "fish.\n", "```"):
            yield piece

    result = asyncio.run(tell(tmp_path, speak, seen.append))
    told = [event for event in seen if isinstance(event.data, OutputDelta)]

    assert "Koi are fish." == result == "".join(event.fields["text"] for event in told)
    assert {("Main", "call_llm", "result")} == {
        (each.agent, each.fields["action"], each.fields["field"]) for each in told
    }
    assert len(told) > 1


def test_nobody_pays_for_what_nobody_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anybody who looks on, nothing is made of the pieces of an answer for people."""
    monkeypatch.setattr(WrittenAnswer, "add", None)

    async def speak(request: Request) -> AsyncIterator[str]:
        yield "x"

    assert "x" == asyncio.run(tell(tmp_path, speak))
