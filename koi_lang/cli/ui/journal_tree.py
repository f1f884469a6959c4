"""A journal and the branches of its run to a tree of the entries that one can go back to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from koi_lang.cli.ui.activity_text import describe_round
from koi_lang.errors import JournalError
from koi_lang.events import HandlerStarted, LinePrinted, ModelAnswered, RoundEnded, RunResumed, decode
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import Header, JournalEntry
from koi_lang.runtime.journal.reader import read, read_header
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.model_calls.images import replace_images
from koi_lang.system.text_width import clean

MAX_CHARS = 60


def tree(folder: Path, path: Path) -> Iterator[str]:
    """The lines of the tree, from the run that all branches come from. Raises JournalError for a damaged journal."""
    headers = {path: read_header(path), **dict(_headers(folder))}
    yield from _run(_root(path, headers), headers, 0)


def _headers(folder: Path) -> Iterator[tuple[Path, Header]]:
    for path in store.journals(folder):
        try:
            yield path, read_header(path)
        except JournalError:
            continue


def _root(path: Path, headers: Mapping[Path, Header]) -> Path:
    by_run = {header.run: known for known, header in headers.items()}
    seen = {path}
    while (parent := headers[path].parent) and parent[0] in by_run and by_run[parent[0]] not in seen:
        path = by_run[parent[0]]
        seen.add(path)
    return path


def _run(path: Path, headers: Mapping[Path, Header], depth: int) -> Iterator[str]:
    """A run, with its branches behind the entries they go on from."""
    margin, header = "│ " * depth, headers[path]
    branches = [
        (known.parent[1], child) for child, known in headers.items() if known.parent and known.parent[0] == header.run
    ]
    yield f"{margin}{header.run}  {summarise(path).state}  {Path(header.program).name}"
    entries = read(path).entries
    starts = {entry.path: entry.data.get("fields") for entry in entries if entry.kind == "begun"}
    for entry in entries:
        text = _format_entry(entry, starts)
        if text and not entry.data.get("recalled"):
            yield f"{margin}{entry.n:5}  {'  ' * max(0, len(entry.path) - 1)}{text}"
        for at, child in branches:
            if at == entry.n:
                yield from _run(child, headers, depth + 1)


def _format_entry(entry: JournalEntry, inputs: Mapping[tuple[str, ...], Any]) -> str:
    """An entry one can go back to, in a line; empty for all others."""
    data = entry.data
    match entry.kind:
        case HandlerStarted.type:
            return f"{entry.path[-1].partition('#')[0]} {_short(data.get('args'))}{_bounds(data)}"
        case ModelAnswered.type:
            return f"model: {_short(data.get('text'))}"
        case "done" | "failed":
            came = (
                f"-> {_short(data.get('result'))}" if entry.kind == "done" else f"failed: {_short(data.get('error'))}"
            )
            return f"{data.get('intent')} {_short(inputs.get(entry.path, data.get('fields')))} {came}"
        case LinePrinted.type if not entry.path[-2:-1] or not entry.path[-2].startswith("print#"):
            return f"print {_short(data.get('message'))}"
        case RoundEnded.type:
            ended = decode(entry.kind, entry.data)
            return describe_round(ended) if isinstance(ended, RoundEnded) else ""
        case RunResumed.type:
            return "resumed"
        case _:
            return ""


def _bounds(data: Mapping[str, Any]) -> str:
    """The roles that a call is narrowed to; empty where it is not."""
    names = data.get("narrowed_to")
    return f" as {', '.join(map(_short, names))}" if isinstance(names, list) and names else ""


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(replace_images(value), ensure_ascii=False)
    text = " ".join(clean(text).split())
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"
