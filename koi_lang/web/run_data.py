"""Recorded runs as data for pages: summaries, programs, branches, and differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from koi_lang.errors import JournalError, KoiError
from koi_lang.program import cache, loader
from koi_lang.program.files import absolute
from koi_lang.runtime.journal.entries import Header
from koi_lang.runtime.journal.reader import program_of, read, read_header
from koi_lang.runtime.journal.store import journals
from koi_lang.runtime.journal.summary import RunSummary, summarise
from koi_lang.sessions.branch_preview import preview_branch
from koi_lang.testing.run_comparison import MAX_CHARS, compare_runs
from koi_lang.web.program_data import graph_data, source_data

Redact = Callable[[str], str]


def run_facts(path: Path) -> dict[str, Any]:
    """The summary of a run: `id`, `program`, `state`, `started`, `updated`, `seconds`, and its usage."""
    summary = summarise(path)
    return _facts(path.stem, summary)


def _facts(run: str, summary: RunSummary) -> dict[str, Any]:
    header = summary.header
    times = {"started": header.started, "updated": header.started + summary.seconds, "seconds": summary.seconds}
    return {"id": run, "program": header.program, "state": summary.state, **times, **summary.totals.as_data()}


def header_data(path: Path) -> dict[str, Any]:
    """The header of a journal. Raises JournalError."""
    return read_header(path).as_data()


def run_source(path: Path, redact: Redact = str) -> dict[str, Any]:
    """The source of the program of a run as it is now, with `isChanged`: whether it is another one. Raises KoiError."""
    header = read_header(path)
    source = source_data(str(_program(path, header)), redact)
    return {**source, "isChanged": source["hash"] != header.hash}


def run_graph(path: Path) -> dict[str, Any]:
    """The graph of the program of a run. Raises KoiError."""
    return graph_data(str(_program(path, read_header(path))))


def _program(path: Path, header: Header) -> Path:
    file = program_of(path, header)
    if not file.is_file():
        raise JournalError(
            f"the program `{file.name}` of the run is not there any more", help="Give it its place back."
        )
    return file


def program_path(path: Path) -> Path:
    """The file of the program of a run. Raises JournalError where it is not there."""
    return _program(path, read_header(path))


def tree_data(path: Path) -> dict[str, Any]:
    """The runs that one is connected with by branching, each with the run and the entry it goes on from.

    Returns:
        `current` and `runs`, the earliest first, each with `run`, `started`, `parent` and `entry`.
    """
    headers = dict(_headers(path.parents[2]))
    family = sorted(_family(headers, path.stem), key=lambda run: (headers[run].started, run))
    return {"current": path.stem, "runs": [branch_data(headers[run]) for run in family]}


def _headers(folder: Path) -> Iterator[tuple[str, Header]]:
    for path in journals(folder):
        with suppress(JournalError):  # one that cannot be read has no place in a tree
            yield path.stem, read_header(path)


def _family(headers: Mapping[str, Header], run: str) -> set[str]:
    neighbours: dict[str, set[str]] = {name: set() for name in headers}
    for name, header in headers.items():
        if header.parent is not None and header.parent[0] in headers:
            neighbours[name].add(header.parent[0])
            neighbours[header.parent[0]].add(name)
    found, waiting = {run} & headers.keys(), [run]
    while waiting:
        new = neighbours.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def branch_data(header: Header) -> dict[str, Any]:
    """A run in a tree, with the run and the entry it goes on from; both are None for one that began by itself."""
    parent, entry = header.parent or (None, None)
    return {"run": header.run, "started": header.started, "parent": parent, "entry": entry}


def comparison_data(before: Path, after: Path) -> dict[str, Any]:
    """The differences of two runs: facts of both, `differences`, whether there are `more`. Raises JournalError."""
    found = compare_runs(read(before), read(after), MAX_CHARS + 1)
    facts = {"before": run_facts(before), "after": run_facts(after)}
    return {**facts, "differences": [each.as_data() for each in found[:MAX_CHARS]], "more": len(found) > MAX_CHARS}


def preview_data(path: Path, at: int) -> dict[str, Any]:
    """The reused part of a branch at an entry, and the estimated cost of the rest. Raises KoiError."""
    journal = read(path)
    return preview_branch(journal, at, _load_or_none(program_of(path, journal.header))).as_data()


def _load_or_none(file: Path) -> cache.CachedModule | None:
    try:
        return loader.load_compiled(absolute(str(file)))
    except KoiError:
        return None
