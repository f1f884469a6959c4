"""What came of a run is known from the end of its journal: the same that all of its entries tell."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from koi_lang.events import Event, LinePrinted, RunEnded, RunStarted, decode
from koi_lang.runtime.journal.entries import TOTALS, Header, entry_in, header_of
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import is_running
from koi_lang.runtime.journal.summary import RunSummary, summarise
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.runtime.journal.writer import EVERY, Writer
from tests.journal.conftest import HEADER, lines_of
from tests.projects import Project

Part: TypeAlias = list[tuple[str, dict[str, Any], bool]]
SESSION = replace(HEADER, words=("serve", "http"))
ANSWER = {"text": "ok", "tokens": {"input": 10, "output": 3}, "model": "some", "usd": 0.5}


def entries() -> some.SearchStrategy[tuple[str, dict[str, Any], bool]]:
    """The type and data of events that count, and of some that do not, and whether they are recalled."""
    usd = some.one_of(some.none(), some.floats(0, 1))
    answers = some.builds(lambda usd: {**ANSWER, "usd": usd}, usd)
    paid = some.tuples(some.sampled_from(["model_answered", "texts_embedded"]), answers)
    others = some.tuples(some.sampled_from(["printed", "action_started"]), some.just({"message": "x" * 300}))
    ends = some.tuples(some.just("run_ended"), some.sampled_from([{"ok": True}, {"ok": False}, {"interrupted": True}]))
    return some.tuples(some.one_of(paid, others, ends), some.booleans()).map(lambda pair: (*pair[0], pair[1]))


def written(path: Path, parts: list[Part], header: Header = HEADER) -> None:
    """A journal of a run that was gone on with once for each further part; only the last event of a part may end it."""
    number = 0
    for part in parts:
        writer = Writer(path, read(path).end if number else header, str, print)
        if number:
            writer.note("resumed")
        for type, data, recalled in part:
            number += 1
            if type != "run_ended" or part[-1][1] is data:
                path_of_event = ("Ada.go#1", f"{type}#{number}")
                writer(Event(number, time.time(), HEADER.run, "Ada", decode(type, data), path_of_event, recalled))
        writer.close()


def of_all_lines(path: Path) -> RunSummary:
    """What all entries tell, without the totals that some hold."""
    head, *lines = path.read_bytes().splitlines(keepends=True)
    summary = RunSummary(header_of(head, "a"))
    for line in lines:
        entry = entry_in(line)
        assert entry is not None
        summary.add(replace(entry, data={name: value for name, value in entry.data.items() if name != TOTALS}))
    return summary


@settings(max_examples=100, deadline=None)
@given(
    some.lists(some.lists(entries(), min_size=1, max_size=EVERY * 2), min_size=1, max_size=3),
    some.sampled_from([HEADER, SESSION]),
)
def test_the_end_tells_what_all_entries_tell(parts: list[Part], header: Header) -> None:
    """State, time, requests, tokens and money are the same, also of runs that were killed, resumed, or are branches."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{HEADER.run}.jsonl"
        written(path, parts, header)

        assert of_all_lines(path) == summarise(path)


@pytest.mark.parametrize("ends", [True, False])
def test_a_long_journal_is_not_read_as_a_whole(tmp_path: Path, ends: bool) -> None:
    """Of some megabytes, what came of the run takes less than a hundredth to be read."""
    path = tmp_path / f"{HEADER.run}.jsonl"
    part: Part = [("printed", {"message": "x" * 1000}, False) for _ in range(8_050)]
    written(path, [[*part, *([("run_ended", {"ok": True}, False)] if ends else [])]])
    before = bytes_read()
    summary = summarise(path)

    assert ("ok" if ends else "interrupted") == summary.state
    assert bytes_read() - before < (path.stat().st_size / 100 if ends else path.stat().st_size / 8)


def test_what_tells_nothing_is_not_parsed(tmp_path: Path) -> None:
    """Of an interrupted run with large entries only those are parsed that tell what came of it."""
    path = tmp_path / f"{HEADER.run}.jsonl"
    written(path, [[("printed", {"message": "x" * 1000}, False) for _ in range(EVERY * 3 - 2)]])
    parsed = []
    sys.setprofile(lambda frame, event, _: parsed.append(event) if frame.f_code is entry_in.__code__ else None)
    summary = summarise(path)
    sys.setprofile(None)

    assert ("interrupted", 2) == (summary.state, parsed.count("call"))


def bytes_read() -> int:
    """How many bytes this process has read."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_a_journal_without_totals_is_read_as_a_whole(tmp_path: Path) -> None:
    """What an older version wrote is listed as before."""
    path = tmp_path / f"{HEADER.run}.jsonl"
    events = [
        Event(n, 100.0 + n, HEADER.run, "Ada", decode("model_answered", ANSWER), (f"model#{n}",)) for n in range(1, 400)
    ]
    end = Event(400, 600.0, HEADER.run, "", RunEnded(True))
    path.write_bytes(b"".join(lines_of(*events, end)))
    summary = summarise(path)

    assert RunSummary(HEADER, "ok", 500.0, UsageTotals(399, 399 * 13, 399 * 0.5), 400) == summary


def test_a_run_that_goes_on_is_known_by_its_lock(tmp_path: Path) -> None:
    """Until its process is gone it is running, whatever its last line is."""
    path = tmp_path / f"{HEADER.run}.jsonl"
    writer = Writer(path, HEADER, str, print)
    writer(Event(1, 101.0, HEADER.run, "", RunStarted()))
    states = [summarise(path).state]
    writer.close()

    assert ["running", "interrupted"] == [*states, summarise(path).state]
    assert not is_running(path)


def test_listing_many_runs(project: Project) -> None:
    """The list has a line for each, and `koi resume` finds the last that did not end well, without reading them all."""
    folder = project.folder / ".koi" / "runs"
    folder.mkdir(parents=True)
    for n in range(60):
        header = replace(HEADER, run=f"{n:04}", started=100.0 + n)
        writer = Writer(folder / f"{n:04}.jsonl", header, str, print)
        for k in range(1, 500):
            writer(Event(k, 100.0 + n, header.run, "Ada", LinePrinted("x" * 800), (f"p#{k}",)))
        if n != 7:
            writer(Event(500, 101.0 + n, header.run, "", RunEnded(True)))
        writer.close()
    script = """
        import sys
        from pathlib import Path
        from koi_lang.cli import main
        from koi_lang.cli.resume import _last_unfinished
        before = Path("/proc/self/io").read_text().split()[1]
        print(_last_unfinished().stem, file=sys.stderr)
        try:
            main(["runs", "list"])
        finally:
            print(int(Path("/proc/self/io").read_text().split()[1]) - int(before), file=sys.stderr)
        """
    done = project.fork_python(script)
    found, taken = done.stderr.split()

    assert (61, "0007") == (len(done.stdout.splitlines()), found)
    assert int(taken) < sum(path.stat().st_size for path in folder.iterdir()) / 5
