"""A file to the names that it declares: `outline` of `std/code`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.lazy import lazy_module
from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.std.code.arguments import failure
from koi_lang.std.code.opened_files import UnreadableFileError, open_named
from koi_lang.std.code.project_files import MayRead, View, read_all
from koi_lang.std.code.python_symbols import python_symbols
from koi_lang.std.code.reading import text_lines, text_of
from koi_lang.std.code.symbol_patterns import LANGUAGES, MARKDOWN, pattern_symbols
from koi_lang.std.code.symbol_records import FoundSymbols, OutlineSymbol
from koi_lang.std.code.time_limits import Tick, TimeOverError, tick_for

if TYPE_CHECKING:
    from koi_lang.program import declared_names as koi_names
else:
    koi_names = lazy_module("koi_lang.program.declared_names")

MOST_SYMBOLS = 1000
# Longer files of Koi are not parsed, in characters; that happens where programs run, and takes 0.1 s here.
LONGEST_KOI = 40_000
# How long the search for patterns may take, in seconds of the processor.
MOST_S = 5.0
KNOWN = "Python, Koi, JavaScript, TypeScript, Go, Rust, Java, Kotlin, C#, C, C++, Ruby and Markdown"


async def outline(root: Path, path: str, *, may_read: MayRead = read_all) -> dict[str, Any]:
    """What a file declares: classes, functions, methods, headings and the like, with their lines.

    Args:
        root: the folder of the project.
        path: of a file.
        may_read: says what rules leave of the project.

    Returns:
        `success`, `path`, `method`, how the names were found (`ast`, `parser` or `patterns`), `totalLines`, and the
        `symbols`, each with `name`, `kind`, `line`, `text`, and `end` and `inside` where these are known; or `error`.

    Raises:
        AgentError: the path is none.
        PermissionDeniedError: it leads out of the project, or to something closed.
    """
    try:
        name, text = await run_in_thread(lambda stop: _text(View(root.resolve(), may_read, stop), path))
    except UnreadableFileError as error:
        return failure(error.message, error.help)
    ending = ending_of(name)
    if not is_known(ending):
        told = f"nobody here knows what `{path}` declares by its name"
        return failure(told, f"Known are {KNOWN}; `read_file` shows any text.")
    found = koi_symbols(name, text) if is_parsed(ending, text) else None
    if found is None:
        try:
            found = await run_in_thread(lambda stop: symbols_of(ending, text, tick_for(stop, MOST_S)))
        except TimeOverError:
            return failure(f"the patterns take more than {MOST_S:.0f} s for `{path}`", "Use `grep` on it.")
    symbols = [symbol.as_data() for symbol in found.symbols[:MOST_SYMBOLS]]
    result: dict[str, Any] = {"success": True, "path": name, "method": found.method}
    result |= {"totalLines": len(text_lines(text)), "symbols": symbols}
    if len(found.symbols) > MOST_SYMBOLS:
        result |= {"truncated": True, "hint": f"these are the first {MOST_SYMBOLS:,} of {len(found.symbols):,}"}
    return result


def ending_of(name: str) -> str:
    """What stands after the last dot of a name, in small letters."""
    return name[name.rfind(".") + 1 :].lower() if "." in name else ""


def is_known(ending: str) -> bool:
    """Whether files with an ending can be outlined."""
    return ending in LANGUAGES or ending in MARKDOWN


def is_parsed(ending: str, text: str) -> bool:
    """Whether a file is one for the parser of Koi."""
    return ending == "koi" and len(text) <= LONGEST_KOI


def symbols_of(ending: str, text: str, tick: Tick) -> FoundSymbols:
    """The names that a file of another language declares, by its syntax tree or by patterns. Raises TimeOverError."""
    if ending in ("py", "pyi"):
        by_tree = python_symbols(text)
        if by_tree is not None:
            return FoundSymbols("ast", by_tree)
    return FoundSymbols("patterns", pattern_symbols(ending, text, tick))


def koi_symbols(name: str, text: str) -> FoundSymbols:
    """The names that a file of Koi declares; only the thread that runs programs may call this."""
    lines = text.split("\n")
    found: list[OutlineSymbol] = []
    for each in koi_names.declared_names(name, text):
        first, last = each.lines
        written = lines[first - 1].strip().removesuffix("{").rstrip()
        found.append(OutlineSymbol(each.name, each.kind, first, written, last, each.inside))
    return FoundSymbols("parser", found)


def _text(view: View, path: str) -> tuple[str, str]:
    """The name of a file from the project, and its text. Raises UnreadableFileError."""
    with open_named(view, path) as file:
        return file.name, text_of(file.content(), path)
