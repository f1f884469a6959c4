"""The parser's errors to messages in the words of the person who wrote the program.

A hint is a function that recognises one mistake; the first that does has the word. Its docstring is the long
explanation of its code.
"""

from __future__ import annotations

import inspect

from lark.exceptions import UnexpectedInput

from koi_lang.compiler.syntax_errors import (
    agents,
    brackets,
    build_errors,
    characters,
    code,
    declarations,
    fallback,
    files,
    foreign_keywords,
    missing,
    permissions,
    strings,
    test_blocks,
)
from koi_lang.compiler.syntax_errors.context import Failure, Surroundings, SyntaxHelp, failure_of
from koi_lang.diagnostics import Diagnostic, LabeledSpan, replacement
from koi_lang.source import Source, Span

ORDER = (
    *declarations.JOB_HINTS,
    *foreign_keywords.FIRST,
    *strings.HINTS,
    *characters.HINTS,
    *brackets.HINTS,
    *files.FIRST,
    *missing.HINTS,
    *foreign_keywords.HINTS,
    *test_blocks.HINTS,
    *permissions.HINTS,
    *files.HINTS,
    *declarations.HINTS,
    *agents.HINTS,
    *code.HINTS,
    *brackets.AFTER,
)
__all__ = [
    "Surroundings", "explain", "explain_neighbours", "explanations", "nested_too_deeply", "resume_after",
]  # fmt: skip

# What is wrong with two statements on one line.
BESIDE = (
    ("E0145", foreign_keywords.form_beside), ("E0199", strings.quote_beside), ("E0150", agents.item_beside),
    ("E0189", foreign_keywords.fails_beside), ("E0180", foreign_keywords.triple_single),
    ("E0456", test_blocks.option_beside), ("E0194", missing.own_error_beside), ("E0159", declarations.answer_beside),
    ("E0166", foreign_keywords.foreign_beside), ("E0164", foreign_keywords.arrow_beside),
    ("E0179", missing.tagged_beside), ("E0179", foreign_keywords.prefix_beside),
)  # fmt: skip
# After one of these, reading goes on behind the place: behind opening quotes, `export`, or a declaration in code.
PASSED = frozenset(("E0103", "E0130", "E0195", "E0196", "E0197", "E0603"))


def explain(source: Source, error: UnexpectedInput, read: Span, around: Surroundings) -> Diagnostic:
    """One diagnostic for the place where reading stopped."""
    failure = failure_of(source, error, read, around)
    name, found = _recognise(failure)
    return _diagnostic(source, name, found)


def explain_neighbours(source: Source, first: Span, second: Span) -> Diagnostic:
    """One diagnostic for two statements on one line that cannot be meant as two."""
    for name, find in BESIDE:
        found = find(source, first, second)
        if found is not None:
            return _diagnostic(source, name, found)
    return _diagnostic(source, "E0181", foreign_keywords.beside(source, first, second))


def nested_too_deeply(source: Source, read: Span) -> Diagnostic:
    """One diagnostic for a program whose nesting is beyond what can be read."""
    return _diagnostic(source, "E0104", build_errors.nested_too_deeply(source, read))


def explanations() -> dict[str, str]:
    """Every code of a syntax error with its explanation: a sentence, details, a wrong and a right example."""
    found = {hint.code: hint.explanation for hint in ORDER}
    found |= {
        "E0101": inspect.getdoc(fallback.fallback_help) or "",
        "E0181": inspect.getdoc(foreign_keywords.beside) or "",
    }
    found |= {code: inspect.getdoc(find) or "" for code, find in BESIDE if code in ("E0180", "E0189")}
    found |= {"E0104": inspect.getdoc(build_errors.nested_too_deeply) or ""} | build_errors.EXPLANATIONS
    return dict(sorted(found.items()))


def resume_after(diagnostic: Diagnostic) -> int:
    """The offset from which the next declaration is looked for."""
    span = diagnostic.place.span
    if diagnostic.code == "E0122":
        return len(diagnostic.place.source.text)
    return span.end if diagnostic.code in PASSED else span.start


def _recognise(failure: Failure) -> tuple[str, SyntaxHelp]:
    for hint in ORDER:
        found = hint.find(failure)
        if found is not None:
            return hint.code, found
    return "E0101", fallback.fallback_help(failure)


def _diagnostic(source: Source, name: str, found: SyntaxHelp) -> Diagnostic:
    place = LabeledSpan(source, source.first_line(found.span), found.label)
    others = tuple(LabeledSpan(source, source.first_line(span), label) for span, label in found.others)
    fixes = replacement(source, found.span, found.meant)
    return Diagnostic(name, "error", found.message, place, others, found.help, fixes=fixes)
