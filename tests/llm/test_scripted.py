"""The scripted model and the files its answers come from."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from koi_lang.errors import ProviderError, SettingsError
from koi_lang.llm.messages import Request, StreamEnd, Task, TextDelta, Usage
from koi_lang.llm.scripted import ScriptedModel, read_answers, scripted_model
from tests.llm.rehearsing import answer_text

REQUEST = Request("Be brief.", ())


def test_answers_come_in_order_and_in_pieces() -> None:
    """Each request gets the next answer, JSON values as JSON, split into small deltas."""
    model = ScriptedModel([{"a": "é"}, "text"], size=3, usage=Usage(1, 2))

    async def run() -> list[object]:
        return [delta async for delta in model(REQUEST)]

    assert asyncio.run(run()) == [*map(TextDelta, ['{"a', '": ', '"é"', "}"]), StreamEnd(Usage(1, 2), "stop")]
    assert answer_text(model, REQUEST) == "text"
    assert model.requests == [REQUEST, REQUEST]


def test_a_script_that_is_too_short_says_how_many_were_asked_for() -> None:
    """The error counts, so that the missing answer can be written."""
    model = scripted_model(["only"])
    answer_text(model, REQUEST)

    with pytest.raises(ProviderError, match="answer 2 was asked for and the script has 1"):
        answer_text(model, REQUEST)


def test_answers_may_be_chosen_by_the_playbook() -> None:
    """With a mapping, the text of system message and playbook decides; each list has its own place."""
    model = scripted_model({"brief": ["system"], "poem": ["playbook"]})

    assert answer_text(model, Request("", (), task=Task("Write a poem."))) == "playbook"
    assert answer_text(model, REQUEST) == "system"
    with pytest.raises(ProviderError, match="no answers for this request"):
        answer_text(model, Request("something else", ()))


@pytest.mark.parametrize(
    ("name", "text", "answers"),
    [
        ("a.json", '[{"x": 1}, "t"]', [{"x": 1}, "t"]),
        ("a.jsonl", '{"x": 1}\n\n"t"\n', [{"x": 1}, "t"]),
        ("a.json", '{"poem": ["t"]}', {"poem": ["t"]}),
    ],
)
def test_answers_are_read_from_files(tmp_path: Path, name: str, text: str, answers: object) -> None:
    """A list, one answer a line, or lists by playbook."""
    (tmp_path / name).write_text(text, encoding="utf-8")

    assert read_answers(tmp_path / name) == answers


@pytest.mark.parametrize("text", ["{", '"text"', '{"poem": "t"}', None])
def test_unusable_files_are_told(tmp_path: Path, text: str | None) -> None:
    """A file that is missing, broken or holds something else is named."""
    path = tmp_path / "answers.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    with pytest.raises(SettingsError, match="answers"):
        read_answers(path)
