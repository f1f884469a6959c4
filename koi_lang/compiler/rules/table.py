"""The table of all rules, and what a rule reports into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.diagnostics import Diagnostic, Fix, LabeledSpan, Severity, replacement
from koi_lang.source import Source, Span

Find: TypeAlias = "Callable[[Analysis, Report], None]"


@dataclass(frozen=True, slots=True)
class Rule:
    """One check of a file; the docstring of `find` explains it at length."""

    code: str
    severity: Severity
    find: Find


@dataclass(frozen=True, slots=True)
class Report:
    """Takes what one rule finds in one file; `program` holds all files."""

    rule: Rule
    source: Source
    program: AnalysedProgram
    found: list[Diagnostic]

    def add(
        self,
        span: Span | LabeledSpan,
        message: str,
        *,
        label: str = "",
        others: Sequence[LabeledSpan] = (),
        help: str | None = None,
        fixes: Sequence[Fix] = (),
    ) -> None:
        """Report a problem at a place; a bare span is one of the file that is checked."""
        place = span if isinstance(span, LabeledSpan) else self.place(span, label)
        rule, found = self.rule, self.found
        found.append(Diagnostic(rule.code, rule.severity, message, place, tuple(others), help=help, fixes=tuple(fixes)))

    def replacement(self, span: Span, text: str | None, *more: Span) -> tuple[Fix, ...]:
        """The fix that writes another text in place of spans of the file that is checked; none without a text."""
        return replacement(self.source, span, text, *more)

    def inside(self, text: n.Text) -> Span:
        """A text without its quotes."""
        if text.start is not None:
            return Span(text.start, text.start + len(text.value))
        return Span(text.span.start + 1, text.span.end - 1)

    def place(self, span: Span, label: str) -> LabeledSpan:
        """A place in the file that is checked, without the lines after its first one."""
        return LabeledSpan(self.source, self.source.first_line(span), label)


RULES: dict[str, Rule] = {}


def rule(code: str, severity: Severity) -> Callable[[Find], Find]:
    """Enter a function into the table; its docstring is what `koi check --explain` shows."""

    def enter(find: Find) -> Find:
        if code in RULES:
            raise AssertionError(f"two rules are called {code}")
        RULES[code] = Rule(code, severity, find)
        return find

    return enter
