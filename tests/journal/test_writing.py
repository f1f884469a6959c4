"""What is written to a journal: every value as JSON, no secret, and a clear word when the disk is full."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import JournalError
from koi_lang.events import ActionEnded, EffectStarted, Event, LinePrinted, UnknownEvent
from koi_lang.js.undefined import undefined
from koi_lang.llm.messages import Message, Request
from koi_lang.redaction.redactor import HIDDEN, redactor
from koi_lang.runtime.events import Events
from koi_lang.runtime.journal.entries import JournalEntry, entry_in, entry_of, line_of
from koi_lang.runtime.journal.reader import End, read
from koi_lang.runtime.journal.store import is_running
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.replay.location import Location
from koi_lang.runtime.replay.request_digest import ToldDigests
from tests.journal.conftest import HEADER, lines_of, printed

LOOP: list[Any] = ["a"]
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (undefined, None),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ([10**5000], [hex(10**5000)]),
        (2**53, 2**53),
        (True, True),
        ("line\nbreak \u2028 ñ", "line\nbreak \u2028 ñ"),
        ("half \ud83d", "half \ud83d"),
        (LOOP, ["a", "[circular]"]),
        ({1: (2, None)}, {"1": [2, None]}),
        ([LOOP[0], LOOP[0]], ["a", "a"]),
        (ValueError("broken"), "broken"),
    ],
)
def test_every_value_has_a_line(value: Any, expected: Any) -> None:
    """Whatever a program computes is written as one line of valid JSON, and read back."""
    line = line_of(entry_of(Event(1, 5.0, "r", "Ada", ActionEnded("shell", value), ("Ada.go#1",)), 1), str)
    found = entry_in(line)

    assert (1, True) == (line.count(b"\n"), line.endswith(b"\n"))
    assert found is not None
    assert ("done", ("Ada.go#1",), expected) == (found.kind, found.path, found.data["result"])


def test_deep_values_are_cut() -> None:
    """A value nested thousands of times does not end the run."""
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]

    assert b"[too deep]" in lines_of(Event(1, 5.0, "r", "", UnknownEvent("a", {"value": deep})))[1]


def test_a_prompt_is_told_once() -> None:
    """Of what a model is told, the system message is there where it changes, and each message of a call once."""
    told, place = ToldDigests(), Location(label="Ada.go#1")
    requests = [("You", "a"), ("You", "abc"), ("She", "ax"), ("She", "ax")]
    asked = [Request(s, tuple(Message("user", m) for m in said)) for s, said in requests]
    news = [told.news(place, request, "Main").as_data() for request in asked]

    first, second = ("You", 0, [["user", "a"]]), (None, 1, [["user", "b"], ["user", "c"]])
    third, fourth = ("She", 1, [["user", "x"]]), (None, 2, [])
    assert [first, second, third, fourth] == [(one.get("system"), one["kept"], one["messages"]) for one in news]
    assert [0, 1, 2, 2] == [[one["request"] for one in news].index(one["request"]) for one in news]


def test_a_call_goes_on_from_the_last_request_of_its_agent() -> None:
    """What stands in the journal is not written again for the next message of a chat; other agents begin anew."""
    told, places = ToldDigests(), [Location(label=f"Ada.go#{n}") for n in range(3)]
    first, second = (
        Request("You", (Message("user", "a"),)),
        Request("You", (Message("user", "a"), Message("user", "b"))),
    )
    before = told.news(places[0], first, "Ada")
    lost = told.news(places[1], second, "Ada")
    told.note_written(places[0], "Ada")
    news, other = told.news(places[2], second, "Ada"), told.news(Location(label="Bo.go#1"), second, "Bo")

    assert ("", 0, "You", 2) == (lost.after, lost.kept, lost.system, len(lost.messages))
    assert (before.fingerprint, 1, None, 1) == (news.after, news.kept, news.system, len(news.messages))
    assert ("", 0, "You", 2) == (other.after, other.kept, other.system, len(other.messages))
    assert 1 == len({lost.fingerprint, news.fingerprint, other.fingerprint})


def test_what_was_told_is_forgotten_with_its_call() -> None:
    """A long run does not keep the conversations of all its calls."""
    told, place, message = ToldDigests(), Location(label="Ada.go#1"), Message("user", "a")
    before = sys.getrefcount(message)
    told.news(place, Request("You", (message,)), "Main")
    known = sys.getrefcount(message)
    del place

    assert (known > before, sys.getrefcount(message)) == (True, before)


@pytest.mark.parametrize("secret", ["topsecretvalue", 'with "quotes" \\ and\nlines', "contraseña-ñandú", "8812345678"])
def test_secrets_are_in_no_byte_of_a_file(tmp_path: Path, secret: str) -> None:
    """Secret values vanish from header, names, texts, JSON inside of texts, and numbers, in every spelling of JSON."""
    redact = redactor({"MY_KEY": secret})
    number = int(secret) if secret.isdigit() else 0
    data = {secret: [f"a {secret} b"], "text": json.dumps({"key": secret}), "numbers": [12, number]}
    writer = Writer(tmp_path / "a.jsonl", HEADER, redact, print)
    events = Events("r")
    events.subscribe(writer)
    events.emit(UnknownEvent("model_answered", data), secret, path=(f"{secret}#1",))
    writer.close()
    written = (tmp_path / "a.jsonl").read_bytes()

    spellings = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    twice = {json.dumps(spelling, ensure_ascii=False)[1:-1] for spelling in spellings}
    assert [] == [spelling for spelling in spellings | twice if spelling.encode() in written]
    assert HIDDEN in read(tmp_path / "a.jsonl").entries[0].data


def test_a_journal_is_readable_while_it_grows(tmp_path: Path) -> None:
    """Every entry can be read as soon as its event was told; a run that goes on is known as such."""
    path = tmp_path / "runs" / "a.jsonl"
    writer = Writer(path, HEADER, str, print)
    seen = []
    for n in range(1, 50):
        writer(printed(n, "x" * n))
        seen.append((len(read(path).entries), read(path).torn, is_running(path)))
    writer.close()

    assert [(n, b"", True) for n in range(1, 50)] == seen
    assert not is_running(path)
    assert 0o600 == path.stat().st_mode & 0o777


def test_a_journal_that_cannot_be_made_stops_the_run(tmp_path: Path) -> None:
    """A file where the folder should be, or one of the same name, is an error that says what to do."""
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "a.jsonl", tmp_path / "file"):
        with pytest.raises(JournalError, match="cannot be written") as caught:
            Writer(path, HEADER, str, print)
        assert caught.value.help is not None


def test_a_full_disk_ends_the_run(tmp_path: Path) -> None:
    """When nothing can be written any more that is told once, nothing unsafe begins, and the file stays as it was."""
    told: list[JournalError] = []
    events = Events("r")
    writer = Writer(tmp_path / "a.jsonl", HEADER, str, told.append)
    events.subscribe(writer)
    events.emit(LinePrinted("one"))
    before = (tmp_path / "a.jsonl").read_bytes()
    with limited_files(len(before) + 20):
        events.emit(LinePrinted("two"))
        events.emit(LinePrinted("three"))
        with pytest.raises(asyncio.CancelledError):
            events.emit(EffectStarted("shell", {}, unsafe=True))
    events.emit(LinePrinted("there is room again"))
    writer.close()

    assert ["the journal cannot be written any more: file too large"] == [error.message for error in told]
    assert before == (tmp_path / "a.jsonl").read_bytes()


def test_a_journal_that_was_removed_ends_the_run(tmp_path: Path) -> None:
    """What may not be done twice is not begun when the file that would know of it is gone."""
    told: list[JournalError] = []
    writer = Writer(tmp_path / "a.jsonl", HEADER, str, told.append)
    (tmp_path / "a.jsonl").unlink()
    writer(printed(1, "one"))
    with pytest.raises(asyncio.CancelledError):
        writer(Event(2, 5.0, "r", "Ada", EffectStarted("shell", {}, unsafe=True)))
    writer.close()

    assert [f"the journal `{tmp_path}/a.jsonl` was removed while it was written"] == [error.message for error in told]


def test_a_journal_without_room_for_its_header_is_not_begun(tmp_path: Path) -> None:
    """Nothing is left of it, neither a file nor its lock."""
    path, opened = tmp_path / "a.jsonl", len(os.listdir("/proc/self/fd"))
    with limited_files(), pytest.raises(JournalError, match="cannot be written: file too large"):
        Writer(path, HEADER, str, print)

    assert (list(tmp_path.iterdir()), len(os.listdir("/proc/self/fd"))) == ([], opened)


def test_a_journal_that_cannot_go_on_is_given_free(tmp_path: Path) -> None:
    """Whoever goes on with a run and cannot write so is told, and the run is not taken for one that goes on."""
    path = tmp_path / "a.jsonl"
    Writer(path, HEADER, str, print).close()
    writer = Writer(path, End(HEADER.run), str, print)
    with limited_files(), pytest.raises(JournalError, match="cannot be written: file too large"):
        writer.note("resumed")

    assert not is_running(path)


@contextmanager
def limited_files(size: int = 0) -> Iterator[None]:
    """Files of this process cannot grow beyond a size meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("fields", "lacks"),
    [
        ({"result": "my topsecretvalue"}, True),
        ({"result": {"topsecretvalue": 1}}, True),
        ({"result": f"it said {HIDDEN}"}, False),
        ({"result": 1, "fields": "topsecretvalue"}, False),
        ({"result": f"it said {HIDDEN}", "recalled": True}, True),
    ],
)
def test_an_entry_tells_what_it_lacks(fields: dict[str, Any], lacks: bool) -> None:
    """Only what a secret was taken out of counts as incomplete; in what is recalled, a mark does, too."""
    line = line_of(JournalEntry(1, 2.0, "done", data=fields), redactor({"MY_KEY": "topsecretvalue"}))
    entry = entry_in(line)

    assert entry is not None
    assert lacks == entry.lacks_secret


def test_an_entry_of_an_older_journal_lacks_what_says_so() -> None:
    """Journals that do not name what they lack are judged by what they contain."""
    entries = [JournalEntry(1, 2.0, "done", data={"result": said}) for said in (f"key {HIDDEN}", "key")]

    assert [True, False] == [entry.lacks_secret for entry in entries]


def test_a_lock_that_is_given_free_soon_is_waited_for(tmp_path: Path) -> None:
    """A command that a run had just started when it was killed may hold its journal for a moment."""
    path = tmp_path / f"{HEADER.run}.jsonl"
    Writer(path, HEADER, str, print).close()
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        timer = threading.Timer(0.1, lambda: fcntl.flock(file, fcntl.LOCK_UN))
        timer.start()
        writer = Writer(path, read(path).end, str, print)
        timer.join()
        is_locked = is_running(path)
        writer.close()

    assert is_locked
