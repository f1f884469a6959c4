"""Equal requests are answered from disk, where that is switched on."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import SettingsError
from koi_lang.llm.answer_cache import TextDisk, with_answer_cache
from koi_lang.llm.connect import ModelEnvironment, connect
from koi_lang.llm.connection import ProviderConnection, Secret
from koi_lang.llm.messages import Adapter, Message, Request, StreamEnd, TextDelta, Usage
from koi_lang.llm.providers import provider_named
from tests.llm.flaky import REQUEST, Flaky, Listener, deltas_of, failing, heard
from tests.llm.server import Answer, ModelServer

OPENAI = ProviderConnection(provider_named("openai"), Secret("k"), "gpt-4o")


async def _texts(model: Adapter, requests: tuple[Request, ...]) -> list[str]:
    try:
        return ["".join([d.text async for d in model(each) if isinstance(d, TextDelta)]) for each in requests]
    finally:
        await model.aclose()


def texts(model: Adapter, *requests: Request) -> list[str]:
    """The answers to requests one after the other; the model is closed then."""
    return asyncio.run(_texts(model, requests))


def test_an_equal_request_is_answered_from_disk(tmp_path: Path) -> None:
    """Also by another model of the same name in another run, which is not asked."""
    second = Flaky()

    assert texts(with_answer_cache(Flaky("kept"), tmp_path, OPENAI), REQUEST) == ["kept"]
    assert texts(with_answer_cache(second, tmp_path, OPENAI), replace(REQUEST)) == ["kept"]
    assert second.requests == []


@pytest.mark.parametrize(
    "change",
    [
        {"model": "gpt-4o-mini"},
        {"system": "Another."},
        {"messages": (Message("user", "Begin!"),)},
        {"messages": (Message("assistant", "Begin."),)},
        {"temperature": 0.5},
        {"max_tokens": 5},
        {"json": True},
        {"schema": {"type": "object"}},
    ],
    ids=str,
)
def test_a_different_request_is_asked(tmp_path: Path, change: dict[str, Any]) -> None:
    """Whatever can change the answer is part of the key."""
    model = with_answer_cache(Flaky("one", "two"), tmp_path, OPENAI)

    assert texts(model, REQUEST, replace(REQUEST, **change)) == ["one", "two"]


@pytest.mark.parametrize(
    "change",
    [{"provider": provider_named("groq")}, {"base_url": "http://other"}, {"model": "gpt-5"}, {"temperature": 1.0}],
    ids=str,
)
def test_another_connection_is_asked(tmp_path: Path, change: dict[str, Any]) -> None:
    """What the `llm` block says counts where the request leaves it open."""
    texts(with_answer_cache(Flaky("one"), tmp_path, OPENAI), REQUEST)

    assert texts(with_answer_cache(Flaky("two"), tmp_path, replace(OPENAI, **change)), REQUEST) == ["two"]


def test_a_replayed_answer_says_so_and_costs_nothing(tmp_path: Path) -> None:
    """Usage comes back as it was told, marked."""
    usage = Usage(7, 3, 2)
    texts(with_answer_cache(Flaky("kept", usage=usage), tmp_path, OPENAI), REQUEST)
    model = with_answer_cache(Flaky(), tmp_path, OPENAI)

    deltas = deltas_of(model)
    asyncio.run(model.aclose())

    assert deltas == [TextDelta("kept"), StreamEnd(usage, "stop", replayed=True)]


def test_broken_answers_are_not_kept(tmp_path: Path) -> None:
    """Half an answer would be half for ever."""
    texts_of_broken = heard(with_answer_cache(Flaky(["half", failing(None)]), tmp_path / "a", OPENAI))[0]
    model = with_answer_cache(Flaky("whole"), tmp_path / "a", OPENAI)

    assert (texts_of_broken, texts(model, REQUEST)) == ("half", ["whole"])


def test_answers_that_were_cut_short_are_not_kept(tmp_path: Path) -> None:
    """An answer that hit its limit of tokens is asked for anew."""

    async def run() -> list[str]:
        async with ModelServer([Answer(pieces=("cut",), stop_reason="length"), Answer(pieces=("whole",))]) as server:
            options = {"provider": "openai", "base_url": server.url, "cache": True}
            model = connect(options, lambda name: "k", around=ModelEnvironment(cache_folder=tmp_path))
            return await _texts(model, (REQUEST, REQUEST, REQUEST))

    assert asyncio.run(run()) == ["cut", "whole", "whole"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of POSIX")
def test_nobody_else_reads_the_folder(tmp_path: Path) -> None:
    """It is made for its owner only, and closed to others if it was open."""
    folder = tmp_path / "new" / "answers"
    folder.mkdir(parents=True, mode=0o755)

    texts(with_answer_cache(Flaky("x"), folder, OPENAI), REQUEST)

    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners are those of POSIX")
def test_a_folder_of_somebody_else_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another user wrote is never read as an answer."""
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)

    with pytest.raises(SettingsError, match="belongs to somebody else"):
        texts(with_answer_cache(Flaky("x"), tmp_path, OPENAI), REQUEST)


# The library leaves the connection to a damaged file open, which Python tells from 3.13 on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broken_store_costs_time_but_no_answer(tmp_path: Path) -> None:
    """Where nothing can be kept the model is asked, and the listener learns why."""
    listener = Listener()
    (tmp_path / "cache.db").write_bytes(b"this is no database" * 100)
    model = with_answer_cache(Flaky("one", "two"), tmp_path, OPENAI, listener.on_event)

    assert texts(model, REQUEST, REQUEST) == ["one", "two"]
    assert {name for name, _ in listener.events} == {"answer_cache_failed"}
    gc.collect()


class Planted:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def plant(folder: Path, **row: Any) -> None:
    """Change every entry of a cache behind its back."""
    with sqlite3.connect(folder / "cache.db") as opened:
        opened.execute(f"UPDATE Cache SET {', '.join(f'{name} = ?' for name in row)}", tuple(row.values()))
    opened.close()


@pytest.mark.parametrize("place", ["row", "file", "key", "elsewhere"])
def test_nothing_is_unpickled_from_the_folder(tmp_path: Path, place: str) -> None:
    """An entry that is a pickle, or lies elsewhere, is dropped: the model is asked, and its answer kept."""
    folder, marker, name = tmp_path / "answers", tmp_path / "owned", "00/11/" + "a" * 28 + ".val"
    pickled = pickle.dumps(Planted(marker))
    texts(with_answer_cache(Flaky("old"), folder, OPENAI), REQUEST)
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_bytes(pickled)
    (tmp_path / "secret").write_text('{"text": "secret", "usage": null}')
    rows: dict[str, dict[str, Any]] = {
        "row": {"mode": 4, "value": pickled},
        "file": {"mode": 4, "value": None, "filename": name},
        "key": {"key": pickled, "raw": 0},
        "elsewhere": {"mode": 3, "value": None, "filename": "../secret"},
    }
    plant(folder, **rows[place])

    assert texts(with_answer_cache(Flaky("new"), folder, OPENAI), REQUEST) == ["new"]
    assert texts(with_answer_cache(Flaky("newer"), folder, OPENAI), REQUEST) == ["new"]
    assert (marker.exists(), (tmp_path / "secret").exists()) == (False, True)


def test_a_long_answer_is_kept(tmp_path: Path) -> None:
    """Texts that do not fit into the table are in files of their own."""
    long = "é" * 100_000

    assert texts(with_answer_cache(Flaky(long), tmp_path, OPENAI), REQUEST) == [long]
    assert texts(with_answer_cache(Flaky("other"), tmp_path, OPENAI), REQUEST) == [long]
    assert list(tmp_path.glob("*/*/*.val")) != []


@pytest.mark.parametrize("value", [b"x", 5, None, ["text"]])
def test_only_texts_are_stored(tmp_path: Path, value: Any) -> None:
    """What would be pickled is refused as key and as value."""
    disk = TextDisk(str(tmp_path))

    with pytest.raises(TypeError, match="holds texts"):
        disk.put(value)
    with pytest.raises(TypeError, match="holds texts"):
        disk.store(value, False)


def test_it_is_off_unless_switched_on(tmp_path: Path) -> None:
    """Without `cache: true` nothing is written, and the package is not imported."""
    code = (
        "import sys; from pathlib import Path; from koi_lang.llm.connect import ModelEnvironment, connect\n"
        f"around = ModelEnvironment(cache_folder=Path({str(tmp_path)!r}))\n"
        "connect({'provider': 'openai'}, lambda key: 'k', around=around)\n"
        "print([name for name in ('diskcache', 'sqlite3', 'koi_lang.llm.answer_cache') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert (shown.strip(), list(tmp_path.iterdir())) == ("[]", [])
