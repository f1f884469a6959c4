"""Programs with pieces that could not be read: which problems such a gap may have caused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.build import RESERVED
from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Span

NAME = r"[A-Za-z_$][\w$]*"
WORD = re.compile(NAME)
# What names something in code: these words, patterns that are assigned, and parameters.
DECLARING = re.compile(r"\b(?:const|let|var|function|catch|for|class|def|on)\b(?:\s*\(|\s+function)?\s*")
ASSIGNED = re.compile(
    rf"(?<![\w$])({NAME})\s*\??\s*(?::|=(?!=))|[{{\[]([^{{}}=\n]*)[}}\]]\s*=(?!=)|\(([^()\n]*)\)\s*(?:=>|{{)"
)
NO_NAME = re.compile(r"[,({\[]\s*=[^=>]")
COMMENT = re.compile(r"//[^\n]*|/\*(?s:.)*?\*/")
HEAD = re.compile(r"\s*(?:(?:export\s+)?(?:agent|role|team|skill|mcp|prompt|run|package)\s|test\b)", re.IGNORECASE)
NAMING = re.compile(r"\b(?:agent|role|team|skill|mcp|prompt)\b\s*")
# Problems of a name that a gap may declare; the second ones may come from an import, too.
MISSING = frozenset(
    "E0205 E0210 E0222 E0223 E0232 E0234 E0235 E0239 E0245 E0307 E0311 E0312 E0316 E0413 E0434 E0621".split()
)
IMPORTABLE = frozenset("E0201 E0202 E0203 E0204 E0206 E0207 E0208 E0221 E0226 E0231 E0244 E0321 E0624".split())
# Problems of something that a gap may use or set.
UNUSED = frozenset("E0228 E0229 E0243 E0246 E0251 E0317 E0318".split())
# Problems of what is missing altogether, each with a word that a gap holds if it may be there.
ABSENT = {"E0241": "", "E0242": "agent", "E0402": "agent", "E0401": "can", "E0403": "can"}
# Problems of a handler, which a gap among the parts of an agent may be.
HANDLERS = frozenset({"E0207", "E0239", "E0210", "E0231", "E0413"})
# A name of another platform, which an import that failed may have brought.
FOREIGN = "E0223"
# A variable that nothing reads, which a gap in the same handler may have read.
UNREAD = "E0246"
# Problems of the order of two steps, between which a gap may be.
ORDER = frozenset({"E0303", "E0304"})


def without_follow_ups(found: Iterable[Diagnostic], files: Sequence[Analysis], *, is_open: bool) -> list[Diagnostic]:
    """The problems that what could not be read has not caused; `is_open`: files are missing that imports name."""
    gaps = _Gaps([_Gap(file, span) for file in files for span in file.unit.program.gaps], is_open)
    gaps.imported = {each.name.name for file in files for each, _ in file.index.of(n.Import) if each.name}
    return [problem for problem in found if not gaps.has_caused(problem)]


@dataclass(frozen=True, eq=False)
class _Gap:
    file: Analysis
    span: Span

    @cached_property
    def text(self) -> str:
        """What could not be read, without comments."""
        return COMMENT.sub(" ", self.file.unit.source.text[self.span.start : self.span.end])

    @cached_property
    def is_in_code(self) -> bool:
        """Whether the gap is a step of a handler, function or test."""
        return any(self._is_in(kind) for kind in (n.Handler, n.Function, n.Test, n.Eval))

    @cached_property
    def is_top(self) -> bool:
        """Whether the gap is a declaration of its own, or several."""
        return not any(node.span.encloses(self.span) for node in self.file.unit.program.declarations)

    def _is_in(self, kind: type[n.Handler] | type[n.Function] | type[n.Test] | type[n.Eval]) -> bool:
        return any(node.span.encloses(self.span) for node, _ in self.file.index.of(kind))

    @cached_property
    def is_nameless(self) -> bool:
        """Whether something is declared in the gap whose name is not there."""
        is_missing = any(self._has_no_name(match.end()) for match in DECLARING.finditer(self.text))
        return is_missing or NO_NAME.search(self.text) is not None

    @cached_property
    def may_be_import(self) -> bool:
        """Whether the gap is no declaration that its first words tell, or one without its name."""
        has_no_name = any(self._has_no_name(match.end()) for match in NAMING.finditer(self.text))
        return self.is_top and (has_no_name or HEAD.match(self.text) is None)

    def _has_no_name(self, offset: int) -> bool:
        found = WORD.match(self.text, offset)
        return found is None or found[0] in RESERVED

    @property
    def names(self) -> Iterator[str]:
        """The names that the gap may declare: in code those that look like it, elsewhere all words."""
        if not self.is_in_code or DECLARING.search(self.text):
            yield from WORD.findall(self.text)
            return
        for match in ASSIGNED.finditer(self.text):
            yield from (word for group in match.groups() for word in WORD.findall(group or ""))

    def hides_name(self, problem: Diagnostic) -> bool:
        """Whether a name that is unknown, or not read, may be missing in the gap, in the same handler or function."""
        place = problem.place
        is_hidden = problem.code == UNREAD or (problem.code == "E0221" and self.is_nameless)
        if not is_hidden or place.source is not self.file.unit.source:
            return False
        roots = (root for root in self.file.code if root.span.encloses(self.span))
        return not self.is_in_code or any(root.span.encloses(place.span) for root in roots)


class _Gaps:
    def __init__(self, gaps: list[_Gap], is_open: bool) -> None:
        self.gaps = gaps
        self.names = {name for gap in gaps for name in gap.names}
        self.words = {word for gap in gaps for word in WORD.findall(gap.text)}
        self.imported: set[str] = set()
        self.is_open = is_open or any(gap.may_be_import for gap in gaps)
        self.hides_parts = any(not gap.is_in_code and not gap.is_top for gap in gaps)

    def has_caused(self, problem: Diagnostic) -> bool:
        """Whether a problem may be one because of a gap."""
        if not self.gaps and not self.is_open:
            return False
        code, place = problem.code, problem.place
        named = set(WORD.findall(place.source.text[place.span.start : place.span.end]))
        if code == FOREIGN and not named.isdisjoint(self.imported):
            return True
        if code in ABSENT:
            return self.is_open or self.hides_parts or not ABSENT[code] or ABSENT[code] in self.words
        if any(gap.hides_name(problem) for gap in self.gaps):
            return True
        if code in UNUSED:
            return self.is_open or not named.isdisjoint(self.words)
        if code in HANDLERS and self.hides_parts:
            return True
        is_open = self.is_open and code in IMPORTABLE
        is_missing = code in MISSING or code in IMPORTABLE
        return is_open or (is_missing and not named.isdisjoint(self.names)) or self._is_between(problem)

    def _is_between(self, problem: Diagnostic) -> bool:
        """Whether a gap follows the step that a problem of the order is about."""
        source, span = problem.place.source, problem.place.span
        return problem.code in ORDER and any(
            gap.file.unit.source is source and source.text[span.end : gap.span.start].isspace() for gap in self.gaps
        )
