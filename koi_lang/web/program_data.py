"""A program as data for pages: its files in colours, the lines of its handlers, its problems and its graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.compiler.calls.graph import CallGraph
from koi_lang.compiler.calls.routines import Routine
from koi_lang.compiler.program_graph import graph_of
from koi_lang.diagnostics import CompileError, Diagnostic
from koi_lang.lazy import lazy_module
from koi_lang.program import build, loader
from koi_lang.source import Source
from koi_lang.system.resources import standard_skills

if TYPE_CHECKING:
    from koi_lang.highlighting import lexer
else:
    lexer = lazy_module("koi_lang.highlighting.lexer")

# What pages colour, by the kinds of the lexer; the first that fits counts.
COLOURS = (
    ("Comment", "comment"),
    ("String", "text"),
    ("Number", "number"),
    ("Keyword", "keyword"),
    ("Class", "name"),
    ("Function", "function"),
    ("Operator.Word", "keyword"),
)
Redact = Callable[[str], str]


def source_data(path: str, redact: Redact = str) -> dict[str, Any]:
    """The source of a program as data for pages.

    Args:
        path: of its file.
        redact: takes secrets out of texts.

    Returns:
        `files`: each with its `name`, its `text` and its `tokens`, `[start, length, colour]` of characters;
        `handlers` by `Agent.event`: index of the `file`, first and last `line`, line of the `playbook` or null, and the
        lines of its `calls` by what they call; `problems`; `hash`, null where it does not compile.

    Raises:
        UsageError: the file cannot be read.
    """
    checked = build.check(path)
    analysed = checked.analysed or checked.files
    sources = [file.unit.source for file in analysed]
    graph = CallGraph(checked.files) if checked.files else None
    handlers = {} if graph is None else dict(_handlers(graph, [source.path for source in sources]))
    return {
        "files": [_file(source, redact, Path(path)) for source in sources],
        "handlers": handlers,
        "problems": [_problem(each, [source.path for source in sources]) for each in checked.diagnostics],
        "hash": None if checked.errors else loader.load_compiled(path).version(),
    }


def graph_data(path: str) -> dict[str, Any]:
    """The graph of a program: `nodes` and `edges`, as `koi graph FILE --format json`. Raises KoiError."""
    checked = build.check(path)
    if checked.errors:
        raise CompileError(checked.errors)
    return asdict(graph_of(checked.files))


def _file(source: Source, redact: Redact, program: Path) -> dict[str, Any]:
    text = redact(source.text)
    return {"name": _name(Path(source.path), program), "text": text, "tokens": list(_tokens(text))}


def _name(path: Path, program: Path) -> str:
    """The name of a file: relative to the program, or as in its import."""
    for folder, before in ((program.absolute().parent, ""), (standard_skills(), "std/")):
        if path.is_relative_to(folder):
            return before + path.relative_to(folder).as_posix()
    return path.name


def _tokens(text: str) -> Iterator[list[Any]]:
    """The coloured tokens of a text. The lexer counts characters, as pages do below 16 bits."""
    shift = 0
    for start, kind, piece in lexer.KoiLexer(stripnl=False, ensurenl=False).get_tokens_unprocessed(text):
        length = len(piece.encode("utf-16-le")) // 2
        colour = next((colour for part, colour in COLOURS if part in str(kind)), "")
        if colour:
            yield [start + shift, length, colour]
        shift += length - len(piece)


def _handlers(graph: CallGraph, paths: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for routine in graph.routines:
        source = routine.file.unit.source
        if not routine.is_handler or source.path not in paths:
            continue
        playbook = routine.playbook
        yield (
            routine.name,
            {
                "file": paths.index(source.path),
                "line": source.position(routine.node.span.start).line,
                "end": source.position(routine.node.span.end).line,
                "playbook": None if playbook is None else source.position(playbook.span.start).line,
                "calls": _calls(routine, graph),
            },
        )


def _calls(routine: Routine, graph: CallGraph) -> dict[str, list[int]]:
    """The lines of the calls in the code of a handler, by the routine that is called."""
    found: dict[str, list[int]] = {}
    for site in graph.calls(routine).sites:
        line = site.place.source.position(site.place.span.start).line
        for target in () if site.by_model else site.targets:
            lines = found.setdefault(target.name, [])
            lines += [] if line in lines else [line]
    return found


def _problem(problem: Diagnostic, paths: Sequence[str]) -> dict[str, Any]:
    source, span = problem.place.source, problem.place.span
    return {
        "code": problem.code,
        "severity": str(problem.severity),
        "message": problem.message,
        "help": problem.help,
        "file": paths.index(source.path) if source.path in paths else None,
        "line": source.position(span.start).line,
    }
