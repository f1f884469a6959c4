"""The corpus: each stream is read as it says, and what is wrong with one is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.corpus.checking import check_entry, entry_folders
from benchmarks.corpus.replaying import read_again
from koi_lang.llm.recorded_stream import WIRES, CorpusStream, StreamAbout, read_entry, write_entry

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
NAMES = [folder.relative_to(CORPUS).as_posix() for folder in entry_folders(CORPUS)]
ABOUT = StreamAbout("openai", "chat", "gpt-5.4-mini", "recorded")
TEXT = 'data: {"choices":[{"delta":{"content":"tea"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def _problems(corpus: Path, entry: Path) -> tuple[str, ...]:
    return asyncio.run(check_entry(corpus, entry)).problems


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_is_read_as_expected(name: str) -> None:
    """The SDK and the readers give what is written beside it."""
    assert () == _problems(CORPUS, CORPUS / name)


@pytest.mark.sampled(60)
@pytest.mark.parametrize("name", NAMES)
def test_pieces_do_not_matter(name: str) -> None:
    """What is read does not depend on where the network cuts, within a character or a line break, too."""
    stream = read_entry(CORPUS / name)

    assert asyncio.run(read_again(stream)) == asyncio.run(read_again(stream, piece=7))


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_says_where_it_is_from(name: str) -> None:
    """None of them was recorded, and each names the page that it was written from, and its variant."""
    about = read_entry(CORPUS / name).about

    assert about.source.startswith(("written from the documentation: ", "written without the page at hand: "))
    assert about.variant
    assert "2026-01-01" < about.date


def test_the_wire_formats_are_there() -> None:
    """There are as many streams as the manual says, of each format that can be kept."""
    assert len(NAMES) > 160
    assert set(WIRES) == {read_entry(CORPUS / name).about.wire for name in NAMES}


def _entry(folder: Path, **expected: object) -> Path:
    entry = folder / "entry"
    entry.mkdir()
    write_entry(entry, CorpusStream(ABOUT, TEXT, {"model": "gpt-5.4-mini"}), expected)
    return entry


def test_what_is_read_otherwise_is_told(tmp_path: Path) -> None:
    """The field, what was read and what was expected, from where they differ."""
    entry = _entry(tmp_path, text="coffee", stop_reason="stop")

    assert ('`text` is "tea" instead of "coffee"',) == _problems(tmp_path, entry)


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("about.json", "[]", "`about.json` does not say `provider`, `wire`, `model` and `source`"),
        ("about.json", "{", "`about.json` is no JSON"),
        ("about.json", "[" * 100_000, "`about.json` is no JSON"),
        (
            "about.json",
            json.dumps({"provider": "a", "wire": "fax", "model": "b", "source": "c"}),
            "`wire` in `about.json` is none of chat, messages, responses",
        ),
        (
            "about.json",
            json.dumps({"provider": "a", "wire": "chat", "model": "b", "source": "c", "status": "200"}),
            "`status` in `about.json` is a str",
        ),
        ("expected.json", "3", "`expected.json` holds no object"),
        ("stream.txt", None, "there is no file `stream.txt`"),
        ("stream.txt", b"\xff", "`stream.txt` is no text in UTF-8"),
        ("stream.txt", b"x" * (20 << 20), "`stream.txt` is larger than 16 MiB"),
    ],
)
def test_a_broken_entry_is_told(tmp_path: Path, file: str, content: str | bytes | None, told: str) -> None:
    """A file that is missing, too large or no JSON is the problem of its stream."""
    path = _entry(tmp_path, text="tea", stop_reason="stop") / file
    path.unlink()
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    assert (told,) == _problems(tmp_path, path.parent)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "text",
    ["data: " + "[" * 1_000_000 + "\n\n", "data: " + "x" * (8 << 20), "\0\x1b]0;x\a" * 10_000, "\n" * (4 << 20)],
    ids=["nested", "one long line", "control characters", "line breaks"],
)
def test_a_hostile_stream_ends_in_a_fault(text: str) -> None:
    """It is read to its end, and what came of it is one sentence."""
    read = asyncio.run(read_again(CorpusStream(ABOUT, text)))

    assert {"fault", "repeatable"} == read.keys()
    assert read["fault"].isprintable()


def test_an_entry_that_hangs_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes longer than the limit is given up."""
    monkeypatch.setattr("benchmarks.corpus.replaying.LIMIT_S", 0.05)

    read = asyncio.run(read_again(CorpusStream(ABOUT, ": waiting\n\n" * 500_000), piece=1))

    assert {"fault": "it was not read within 0.05 s"} == read
