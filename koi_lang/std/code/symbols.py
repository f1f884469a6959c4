"""The places where a name is declared in a project: `find_symbol` of `std/code`."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.std.code.outlines import ending_of, is_known, is_parsed, koi_symbols, symbols_of
from koi_lang.std.code.project_files import MayRead, View, files_below, read_all
from koi_lang.std.code.symbol_records import FoundSymbols
from koi_lang.std.code.time_limits import Tick, TimeOverError, tick_for
from koi_lang.std.code.tree_texts import TreeTexts
from koi_lang.system.open_folders import OpenFolders

MAX_FOUND, MAX_NAME_CHARS = 50, 200
# Files of Koi are parsed where programs run, one after the other; patterns are used for further ones.
MAX_KOI = 20
KOI_WORDS = "agent|skill|role|team|mcp|prompt|type|function|on|const|let|var|test|eval"
# How long the search may take, in seconds of the processor.
MAX_S = 10.0
PARTS = re.compile(r"(?:(?P<inside>[^\s]+?)(?:\.|::|#))?(?P<name>[^\s.#:]+)")


async def find_symbol(root: Path, name: str, *, may_read: MayRead = read_all) -> dict[str, Any]:
    """Where a name is declared: as a class, a function, a method, a variable or the like.

    Args:
        root: the folder of the project.
        name: with letter case; `Order.total` is only what is called so in an `Order`.
        may_read: says what rules leave of it.

    Returns:
        `success`, `count`, `truncated`, and `results` with `file`, `method` and what outlines tell of a symbol.

    Raises:
        AgentError: it is no name.
    """
    wanted = _parse_name(name)
    found = await run_in_thread(lambda stop: _SymbolSearch(View(root.resolve(), may_read, stop), wanted).run())
    for path, text in found.unparsed:
        found.add(path, koi_symbols(path, text), wanted)
        await asyncio.sleep(0)
    results = sorted(found.results, key=lambda each: (each["file"], each["line"]))
    is_cut = found.is_cut or len(results) > MAX_FOUND
    result: dict[str, Any] = {"success": True, "count": min(len(results), MAX_FOUND), "truncated": is_cut}
    result["results"] = results[:MAX_FOUND]
    if not results:
        result["hint"] = f"no declaration of `{name}` is found; `grep` tells where the word stands"
    elif is_cut:
        result["hint"] = "there may be more; `grep` for the declaration in a folder finds all"
    return result


@dataclass(frozen=True, slots=True)
class _WantedName:
    name: str
    inside: str

    def looked_for(self, ending: str) -> re.Pattern[str]:
        """A pattern for files that declare the name."""
        name = re.escape(self.name)
        if ending in ("py", "pyi"):
            word = rf"(?<![\w.]){name}\b"
            # The first place in a line is enough, since a line that is looked at from each takes a square of time.
            return re.compile(rf"\b(?:def|class)[\s\\]+{name}\b|(?m:^(?:(?!{word}).)*+{word}[^:=\n]*+[:=])")
        if ending == "koi":
            return re.compile(rf"""\b(?:{KOI_WORDS})\s+["']?{name}\b|(?<![\w$.]){name}\s*[:?=,}}]""")
        return re.compile(rf"(?<![\w$]){name}(?![\w$])")


def _parse_name(name: str) -> _WantedName:
    found = PARTS.fullmatch(name.strip()) if isinstance(name, str) and len(name) <= MAX_NAME_CHARS else None
    if found is None:
        shown = f"{name[:40]}…" if isinstance(name, str) and len(name) > MAX_NAME_CHARS else name
        raise AgentError(f"{shown!r} is no name", help="Give one such as `parse` or `Parser.parse`.")
    return _WantedName(found["name"], found["inside"] or "")


@dataclass(slots=True)
class _FoundPlaces:
    """The results of a search.

    Attributes:
        unparsed: files of Koi that hold the name, with their texts.
    """

    results: list[dict[str, Any]] = field(default_factory=list)
    unparsed: list[tuple[str, str]] = field(default_factory=list)
    is_cut: bool = False

    def add(self, path: str, found: FoundSymbols, wanted: _WantedName) -> None:
        """Note the declarations of the name in a file."""
        for symbol in found.symbols:
            if symbol.is_called(wanted.name, wanted.inside):
                self.results.append({"file": path, "method": found.method, **symbol.as_data()})


class _SymbolSearch:
    def __init__(self, view: View, wanted: _WantedName) -> None:
        self._view, self._wanted = view, wanted
        self._tick: Tick = tick_for(view.stop, MAX_S)
        self._found = _FoundPlaces()

    def run(self) -> _FoundPlaces:
        """The results within the time limit."""
        try:
            for path, text in self._texts():
                ending = ending_of(path)
                if is_parsed(ending, text) and len(self._found.unparsed) < MAX_KOI:
                    self._found.unparsed.append((path, text))
                else:
                    self._found.add(path, symbols_of(ending, text, self._tick), self._wanted)
                if len(self._found.results) > MAX_FOUND:
                    break
        except TimeOverError:
            self._found.is_cut = True
        return self._found

    def _texts(self) -> Iterator[tuple[str, str]]:
        """The files that may declare the name, with their texts."""
        looked_for = cache(self._wanted.looked_for)
        name = self._wanted.name.encode("utf-8", "replace")
        with OpenFolders(self._view.root) as folders:
            texts = TreeTexts(folders, Counter())
            for path in files_below(self._view):
                self._tick()
                ending = ending_of(path)
                text = texts.text(path, lambda data: name in data) if is_known(ending) else ""
                if text and looked_for(ending).search(text):
                    yield path, text
