"""Lines that look like declarations, for languages without a parser here: the patterns of each, and the search."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from koi_lang.std.code.symbol_records import OutlineSymbol

# No more of a line is looked at.
LONGEST_LINE = 300
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
    """The first pattern that fits a line, and what it declares."""
    for pattern, kind in language.patterns:
        found = pattern.match(line)
        if found and found["name"] not in NO_NAMES:
            return found, kind or found["kind"]
    return None, ""


def _code_lines(language: Language, lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, but for blank ones and those of comments."""
    is_comment = False
    for number, whole in enumerate(lines, 1):
        line = whole[:LONGEST_LINE]
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
        found = HEADING.match(line[:LONGEST_LINE])
        if found is None:
            continue
        level, title = len(found[1]), found[2]
        while above and above[-1][0] >= level:
            above.pop()
        yield OutlineSymbol(title, "heading", number, f"{found[1]} {title}", inside=above[-1][1] if above else "")
        above.append((level, title))
