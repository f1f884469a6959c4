"""A file to the names that it declares: `outline` of `std/code`."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from koi_lang.errors import UnreadableFileError
from koi_lang.lazy import lazy_module
from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.std.code.access import failure
from koi_lang.std.code.opened_files import open_named
from koi_lang.std.code.project_files import MayRead, View, read_all
from koi_lang.std.code.reading import text_lines
from koi_lang.std.code.symbol_records import FoundSymbols, OutlineSymbol
from koi_lang.std.code.text_files import decode_file
from koi_lang.std.code.time_limits import Tick, TimeOverError, tick_for

if TYPE_CHECKING:
    from koi_lang.program import declared_names as koi_names
else:
    koi_names = lazy_module("koi_lang.program.declared_names")


MAX_SYMBOLS = 1000
# Longer files of Koi are not parsed, in characters; that happens where programs run, and takes 0.1 s here.
MAX_KOI_CHARS = 40_000
# How long the search for patterns may take, in seconds of the processor.
MAX_S = 5.0
KNOWN = "Python, Koi, JavaScript, TypeScript, Go, Rust, Java, Kotlin, C#, C, C++, Ruby and Markdown"


async def outline(root: Path, path: str, *, may_read: MayRead = read_all) -> dict[str, Any]:
    """The outline of a file: classes, functions, methods, headings and the like, with their lines.

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
        message = f"nobody here knows what `{path}` declares by its name"
        return failure(message, f"Known are {KNOWN}; `read_file` shows any text.")
    found = koi_symbols(name, text) if is_parsed(ending, text) else None
    if found is None:
        try:
            found = await run_in_thread(lambda stop: symbols_of(ending, text, tick_for(stop, MAX_S)))
        except TimeOverError:
            return failure(f"the patterns take more than {MAX_S:.0f} s for `{path}`", "Use `grep` on it.")
    symbols = [symbol.as_data() for symbol in found.symbols[:MAX_SYMBOLS]]
    result: dict[str, Any] = {"success": True, "path": name, "method": found.method}
    result |= {"totalLines": len(text_lines(text)), "symbols": symbols}
    if len(found.symbols) > MAX_SYMBOLS:
        result |= {"truncated": True, "hint": f"these are the first {MAX_SYMBOLS:,} of {len(found.symbols):,}"}
    return result


def ending_of(name: str) -> str:
    """The ending of a name behind its last dot, in lower case."""
    return name[name.rfind(".") + 1 :].lower() if "." in name else ""


def is_known(ending: str) -> bool:
    """Whether files with an ending can be outlined."""
    return ending in LANGUAGES or ending in MARKDOWN


def is_parsed(ending: str, text: str) -> bool:
    """Whether a file is one for the parser of Koi."""
    return ending == "koi" and len(text) <= MAX_KOI_CHARS


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
        return file.name, decode_file(file.content(), path).text


# With a larger limit, trees of code that is nested without end could exhaust the stack of a thread.
MAX_FRAMES = 20_000
MAX_TRIES = 5
# What the code is called that is read: warnings about it, such as of `"\d"`, are none of the person's business.
READ_CODE = "<code to outline>"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Statements in whose blocks names of the module or class are declared.
BRANCHES = (ast.If, ast.Try, ast.TryStar, ast.With, ast.For, ast.While)


def python_symbols(text: str) -> list[OutlineSymbol] | None:
    """Classes, functions, methods, and variables of modules and classes; None for a text that is no code."""
    if sys.getrecursionlimit() > MAX_FRAMES or "\r" in text:  # which ends lines for Python, and for nobody else
        return None
    warnings.filterwarnings("ignore", module=READ_CODE)
    # Before 3.11.8 Python counts the depth of all trees that are made at a time in one place, and parsing ends with a
    # SystemError where another thread parses between two nodes (python/cpython#106905).
    for _ in range(MAX_TRIES):
        try:
            return [*_Declarations(text.split("\n")).of(ast.parse(text, READ_CODE).body, "")]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        except SystemError:
            continue
    return None


@dataclass(frozen=True, slots=True)
class _Declarations:
    lines: list[str]

    def of(self, body: list[ast.stmt], inside: str) -> Iterator[OutlineSymbol]:
        """The names that statements declare, in order."""
        for node in body:
            match node:
                case ast.ClassDef():
                    yield self._definition(node, "class", inside)
                    yield from self.of(node.body, f"{inside}.{node.name}" if inside else node.name)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield self._definition(node, "method" if inside else "function", inside)
                case ast.Assign(targets=targets):
                    yield from self._variables(node, targets, inside)
                case ast.AnnAssign(target=target):
                    yield from self._variables(node, [target], inside)
                case _ if isinstance(node, BRANCHES):
                    yield from self.of(_blocks(node), inside)

    def _definition(self, node: Definition, kind: str, inside: str) -> OutlineSymbol:
        text = self._signature(node)
        return OutlineSymbol(node.name, kind, node.lineno, text, node.end_lineno or 0, inside)

    def _signature(self, node: Definition) -> str:
        """The source before the body."""
        last = max(node.lineno, node.body[0].lineno - 1)
        while last > node.lineno and self.lines[last - 1].lstrip().startswith(("#", "@")):
            last -= 1
        head = " ".join(line.strip() for line in self.lines[node.lineno - 1 : min(last, node.lineno + 9)])
        return head.rstrip().removesuffix(":")

    def _variables(self, node: ast.stmt, targets: list[ast.expr], inside: str) -> Iterator[OutlineSymbol]:
        kind = "field" if inside else "variable"
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            for name in names:
                if isinstance(name, ast.Name):
                    text = self.lines[node.lineno - 1].strip()
                    yield OutlineSymbol(name.id, kind, node.lineno, text, node.end_lineno or 0, inside)


def _blocks(node: ast.stmt) -> list[ast.stmt]:
    """The statements in the blocks of a statement, error handlers included."""
    found: list[ast.stmt] = []
    for name in ("body", "handlers", "orelse", "finalbody"):
        for each in getattr(node, name, ()):
            found += each.body if isinstance(each, ast.ExceptHandler) else [each]
    return found


# No more of a line is looked at.
MAX_LINE_CHARS = 300
# What the names of members are looked for in.
CONTAINERS = frozenset(
    "class interface enum struct trait impl module namespace mod object record union agent skill def".split()
)
NO_NAMES = frozenset(
    "if else for while switch catch return new throw do try case default with await typeof sizeof delete in of"
    " function defined elif elsif unless until when match".split()
)


@dataclass(frozen=True, slots=True)
class Language:
    """How declarations of a language begin.

    Attributes:
        patterns: with a group `name`, and a kind, or an empty one where the group `kind` says it; tried in order.
        comments: what lines of nothing but a comment begin with.
        has_blocks: whether comments stand between `/*` and `*/`.
    """

    patterns: tuple[tuple[re.Pattern[str], str], ...]
    comments: tuple[str, ...] = ("//",)
    has_blocks: bool = True


def _language(*patterns: tuple[str, str], comments: tuple[str, ...] = ("//",), has_blocks: bool = True) -> Language:
    return Language(tuple((re.compile(text), kind) for text, kind in patterns), comments, has_blocks)


_ID = r"(?P<name>[A-Za-z_$][\w$]*)"
_JS_START = r"\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?"
_JAVA_WORDS = r"(?:(?:public|private|protected|internal|static|final|abstract|sealed|override|virtual|async)\s+)*+"

JAVASCRIPT = _language(
    (rf"{_JS_START}(?:abstract\s+)?(?P<kind>class|interface|enum|namespace)\s+{_ID}", ""),
    (rf"{_JS_START}type\s+{_ID}[^=]{{0,80}}=", "type"),
    (rf"{_JS_START}(?:async\s+)?function\s*\*?\s*{_ID}", "function"),
    (
        rf"{_JS_START}(?:const|let|var)\s+{_ID}\s*(?::[^=]{{1,120}})?=\s*(?:async\s+)?"
        r"(?:function\b|\([^()]{0,200}\)\s*(?::[^=]{1,80})?=>|\(\s*$|[\w$]+\s*=>)",
        "function",
    ),
    (rf"(?:export\s+)?(?:declare\s+)?(?:const|let|var)\s+{_ID}", "variable"),
    (
        r"\s+(?:(?:public|private|protected|static|async|override|readonly|get|set)\s+)*+\*?"
        r"(?P<name>#?[A-Za-z_$][\w$]*)\s*(?:<[^<>]{0,80}>)?\((?:[^;]*\)\s*(?::[^;{]{1,120})?\{|[^;)]*$)",
        "method",
    ),
)
GO = _language(
    (r"func\s+\(\s*(?:\w+\s+)?\*?(?P<inside>\w+)[^)]*\)\s*(?P<name>\w+)", "method"),
    (r"func\s+(?P<name>\w+)", "function"),
    (r"type\s+(?P<name>\w+)(?:\[[^\]]*\])?\s+(?P<kind>struct|interface)\b", ""),
    (r"type\s+(?P<name>\w+)", "type"),
    (r"(?:var|const)\s+(?P<name>\w+)", "variable"),
)
RUST = _language(
    (
        r'\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|const|unsafe|default|extern(?:\s+"[^"]*")?)\s+)*+fn\s+(?P<name>\w+)',
        "function",
    ),
    (r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?P<kind>struct|enum|trait|union|mod|type)\s+(?P<name>\w+)", ""),
    (r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(?:mut\s+)?(?P<name>\w+)\s*:", "variable"),
    (r"\s*macro_rules!\s*(?P<name>\w+)", "macro"),
    (r"\s*(?:unsafe\s+)?(?P<kind>impl)\b(?:<[^{]{0,80}>)?\s*(?:[^{]{0,120}\sfor\s+)?(?P<name>[A-Za-z_]\w*)", ""),
)
JAVA = _language(
    (rf"\s*{_JAVA_WORDS}(?P<kind>class|interface|enum|record|@interface|struct|namespace)\s+(?P<name>\w+)", ""),
    (
        rf"\s+{_JAVA_WORDS}(?:<[^<>]{{0,60}}>\s+)?(?!(?:return|new|throw|else|case)\b)"
        r"(?:[\w.]+(?:<[^()]{0,80}>)?(?:\[\])*\s+)?(?P<name>\w+)\s*\([^;=]*(?:\)[^;]*)?$",
        "method",
    ),
)
C = _language(
    (r"#\s*define\s+(?P<name>\w+)", "macro"),
    (r"(?:typedef\s+)?(?P<kind>struct|enum|union|class|namespace)\s+(?P<name>\w+)[^;()]*$", ""),
    (
        r"(?!(?:return|else|typedef|using|case)\b)(?:[A-Za-z_][\w:<>,]*[\s*&]+)+?(?P<name>[\w:~]+)\s*\([^;]*$",
        "function",
    ),
)
RUBY = _language(
    (r"\s*(?P<kind>class|module)\s+(?P<name>[\w:]+)", ""),
    (r"\s*def\s+(?:self\.)?(?P<name>\w+[?!=]?)", "method"),
    (r"\s*(?P<name>[A-Z]\w*)\s*=[^=~>]", "constant"),
    comments=("#",),
    has_blocks=False,
)
PYTHON = _language(
    (r"\s*(?:async\s+)?def\s+(?P<name>\w+)", "function"),
    (r"\s*class\s+(?P<name>\w+)", "class"),
    comments=("#",),
    has_blocks=False,
)
KOI = _language(
    (r"\s*(?P<kind>agent|skill|role|team|mcp|prompt|type)\s+(?P<name>\w+)", ""),
    (r"\s*(?:private\s+)?on\s+(?P<name>\w+)\s*\(", "handler"),
    (r"\s*(?:export\s+)?(?:async\s+)?function\s+(?P<name>\w+)", "function"),
)
LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        **dict.fromkeys("js jsx mjs cjs ts tsx mts cts".split(), JAVASCRIPT),
        **dict.fromkeys("java kt cs".split(), JAVA),
        **dict.fromkeys("c h cc cpp cxx hh hpp hxx".split(), C),
        **dict.fromkeys("py pyi".split(), PYTHON),
        **dict.fromkeys("rb rake".split(), RUBY),
        "go": GO,
        "rs": RUST,
        "koi": KOI,
    }
)
MARKDOWN = frozenset("md markdown mdx".split())
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*\s*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def pattern_symbols(ending: str, text: str, tick: Callable[[], None]) -> list[OutlineSymbol]:
    """The names that lines of a language seem to declare.

    Args:
        ending: of the file's name, in small letters, such as `ts`; one of `LANGUAGES` or `MARKDOWN`.
        tick: is called now and then.
    """
    lines = text.split("\n")
    if ending in MARKDOWN:
        return [*_headings(lines)]
    return [*_declarations(LANGUAGES[ending], lines, tick)]


def _declarations(language: Language, lines: list[str], tick: Callable[[], None]) -> Iterator[OutlineSymbol]:
    around: list[tuple[int, str]] = []
    for number, line in _code_lines(language, lines):
        if number % 100 == 0:
            tick()
        found, kind = _match(language, line)
        if found is None:
            continue
        indent = len(line) - len(line.lstrip())
        while around and around[-1][0] >= indent:
            around.pop()
        own = found.groupdict().get("inside")
        inside = own or (around[-1][1] if around else "")
        kind = "method" if kind == "function" and inside else kind
        yield OutlineSymbol(found["name"], kind, number, line.strip().removesuffix("{").rstrip(), inside=inside)
        if kind in CONTAINERS:
            around.append((indent, found["name"]))


def _match(language: Language, line: str) -> tuple[re.Match[str] | None, str]:
    """The first pattern that fits a line, and the kind of its declaration."""
    for pattern, kind in language.patterns:
        found = pattern.match(line)
        if found and found["name"] not in NO_NAMES:
            return found, kind or found["kind"]
    return None, ""


def _code_lines(language: Language, lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, but for blank ones and those of comments."""
    is_comment = False
    for number, whole in enumerate(lines, 1):
        line = whole[:MAX_LINE_CHARS]
        start = line.lstrip()
        if is_comment:
            is_comment = "*/" not in whole
            continue
        if not start or start.startswith(language.comments):
            continue
        if language.has_blocks and "/*" in whole and "*/" not in whole[whole.rfind("/*") :]:
            is_comment = True
        if not start.startswith("/*"):
            yield number, line


def _headings(lines: list[str]) -> Iterator[OutlineSymbol]:
    """The headings of a text in Markdown, each inside of the one above it."""
    above: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate(lines, 1):
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        if mark:
            fence = mark[1]
            continue
        found = HEADING.match(line[:MAX_LINE_CHARS])
        if found is None:
            continue
        level, title = len(found[1]), found[2]
        while above and above[-1][0] >= level:
            above.pop()
        yield OutlineSymbol(title, "heading", number, f"{found[1]} {title}", inside=above[-1][1] if above else "")
        above.append((level, title))
