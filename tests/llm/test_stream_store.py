"""Streams that are kept while an adapter reads them: each as it arrived, without a word of it being slower or lost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpus.replaying import read_again
from koi_lang.errors import RequestError
from koi_lang.llm.messages import TextDelta
from koi_lang.llm.recorded_stream import read_entry
from koi_lang.llm.sdk_model import SdkModel
from koi_lang.llm.stream_recording import StreamStore
from tests.llm.flaky import REQUEST
from tests.llm.server import Answer, ModelServer
from tests.llm.test_adapters import KEY, adapter

KINDS = {"openai": "chat", "responses": "responses", "anthropic": "messages"}


async def _text(model: SdkModel) -> str:
    return "".join([delta.text async for delta in model(REQUEST) if isinstance(delta, TextDelta)])


def _ask(
    kind: str, folder: Path, *answers: Answer | str, times: int = 1, **options: Any
) -> tuple[list[Any], list[str]]:
    """What comes of asking several times at once, and what is told."""
    told: list[str] = []

    async def run() -> list[Any]:
        async with ModelServer(answers) as server:
            model = adapter(kind, server.url, **options)
            model.streams = StreamStore(folder, lambda text: text.replace(KEY, "[redacted]"), told.append)
            try:
                return await asyncio.gather(*(_text(model) for _ in range(times)), return_exceptions=True)
            finally:
                await model.aclose()

    return asyncio.run(run()), told


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_reads_alike(kind: str, tmp_path: Path) -> None:
    """The text, and the count of tokens, are those that were read at first."""
    texts, told = _ask(kind, tmp_path, Answer(("tea ", "is a plant"), usage=(7, 3, 2)))
    stream = read_entry(tmp_path / "0001")
    read = asyncio.run(read_again(stream))

    assert (["tea is a plant"], []) == (texts, told)
    assert "tea is a plant" == read["text"]
    assert 3 == read["usage"]["output_tokens"]
    assert KINDS[kind] == stream.about.wire


FAULTS: Mapping[str, tuple[Answer, Mapping[str, Any]]] = {
    "cut": (Answer(("tea", "plant"), cut_after=3), {"ending": "cut"}),
    "status": (Answer(status=429, error={"error": {"message": "slow down"}}), {"status": 429}),
    "document": (Answer(document={"error": {"message": "busy", "code": 503}}), {"content_type": "application/json"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_kept(fault: str, tmp_path: Path) -> None:
    """How a stream ended is known, so that it ends in the same sentence when it is read again."""
    answer, expected = FAULTS[fault]
    (error,), _ = _ask("openai", tmp_path, answer)
    stream = read_entry(tmp_path / "0001")
    read = asyncio.run(read_again(stream))

    assert isinstance(error, RequestError)
    assert error.message == read["fault"]
    assert expected == {name: getattr(stream.about, name) for name in expected}


def test_extra_fields_are_not_kept(tmp_path: Path) -> None:
    """No texts of `extra_body` stand in what is kept of a request, however JSON writes them."""
    extra = {"metadata": {"note": 'say "hello\nworld", please'}}
    texts, _ = _ask("openai", tmp_path, "tea", extra_body=extra)
    body = read_entry(tmp_path / "0001").body

    assert ["tea"] == texts
    assert {"model", "stream", "messages"} <= body.keys()
    assert "metadata" not in body


def test_forty_at_once_have_a_folder_each(tmp_path: Path) -> None:
    """Nothing is written over."""
    texts, told = _ask("openai", tmp_path, "tea", times=40)

    assert (["tea"] * 40, []) == (texts, told)
    assert 40 == len([read_entry(folder) for folder in tmp_path.iterdir()])


def test_an_answer_does_not_depend_on_what_is_kept(tmp_path: Path) -> None:
    """Where nothing can be written, a line says so."""
    (tmp_path / "streams").write_text("no folder")
    texts, told = _ask("openai", tmp_path / "streams", "tea")

    assert ["tea"] == texts
    assert ["a stream is not kept: file exists"] == told


def test_a_link_to_another_folder_is_not_followed(tmp_path: Path) -> None:
    """Nothing is written where a link leads."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "streams").symlink_to(tmp_path / "elsewhere")
    texts, told = _ask("openai", tmp_path / "streams", "tea")

    assert (["tea"], 1) == (texts, len(told))
    assert [] == list((tmp_path / "elsewhere").iterdir())


def test_a_reader_that_goes_away_ends_a_stream(tmp_path: Path) -> None:
    """A stream that never ends is given up with its reader, and kept as far as it came."""

    async def run() -> None:
        async with ModelServer([Answer(("tea", "plant"), pause=True)]) as server:
            model = adapter("openai", server.url)
            model.streams = StreamStore(tmp_path, str, lambda line: None)
            async with aclosing(model(REQUEST)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, TextDelta):
                        break
            await model.aclose()

    asyncio.run(run())

    assert "tea" in read_entry(tmp_path / "0001").text
