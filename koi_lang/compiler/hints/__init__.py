"""The parser's errors to messages in the words of the person who wrote the program.

A hint is a function that recognises one mistake; the first that does has the word. Its docstring is the long
explanation of its code.
"""

from __future__ import annotations

import inspect

from lark.exceptions import UnexpectedInput

from koi_lang.compiler.hints import (
    absent,
    agents,
    brackets,
    characters,
    code,
    declarations,
    files,
    general,
    misuses,
    testing,
    texts,
    words,
)
from koi_lang.compiler.hints.failure import Failure, Finding, failure_of
from koi_lang.diagnostics import Diagnostic, Place
from koi_lang.source import Source, Span

ORDER = (
    *texts.HINTS,
    *characters.HINTS,
    *brackets.HINTS,
    *files.FIRST,
    *absent.HINTS,
    *words.HINTS,
    *testing.HINTS,
    *files.HINTS,
    *declarations.HINTS,
    *agents.HINTS,
    *code.HINTS,
    *brackets.AFTER,
)
# What is wrong with two statements on one line.
BESIDE = (
    ("E0199", texts.quote_beside),
    ("E0189", words.fails_beside), ("E0180", words.triple_single), ("E0194", absent.own_error_beside),
    ("E0166", words.foreign_beside), ("E0164", words.arrow_beside), ("E0179", absent.tagged_beside),
)  # fmt: skip
# After one of these, reading goes on behind the place: behind opening quotes, `export`, or a declaration in code.
PASSED = frozenset(("E0103", "E0130", "E0195", "E0196", "E0197", "E0603"))


def explain(source: Source, error: UnexpectedInput, read: Span) -> Diagnostic:
    """One diagnostic for the place where reading stopped."""
    failure = failure_of(source, error, read)
    name, found = _recognise(failure)
    return _diagnostic(source, name, found)


def explain_neighbours(source: Source, first: Span, second: Span) -> Diagnostic:
    """One diagnostic for two statements on one line that cannot be meant as two."""
    for name, find in BESIDE:
        found = find(source, first, second)
        if found is not None:
            return _diagnostic(source, name, found)
    return _diagnostic(source, "E0181", words.beside(source, first, second))


def nested_too_deeply(source: Source, read: Span) -> Diagnostic:
    """One diagnostic for a program whose nesting is beyond what can be read."""
    return _diagnostic(source, "E0104", misuses.nested_too_deeply(source, read))


def explanations() -> dict[str, str]:
    """Every code of a syntax error with its explanation: a sentence, details, a wrong and a right example."""
    found = {hint.code: hint.explanation for hint in ORDER}
    found |= {"E0101": inspect.getdoc(general.unrecognised) or "", "E0181": inspect.getdoc(words.beside) or ""}
    found |= {code: inspect.getdoc(find) or "" for code, find in BESIDE if code in ("E0180", "E0189")}
    found |= {"E0104": inspect.getdoc(misuses.nested_too_deeply) or ""} | misuses.EXPLANATIONS
    return dict(sorted(found.items()))


def resume_after(diagnostic: Diagnostic) -> int:
    """The offset from which the next declaration is looked for."""
    span = diagnostic.place.span
    if diagnostic.code == "E0122":
        return len(diagnostic.place.source.text)
    return span.end if diagnostic.code in PASSED else span.start


def _recognise(failure: Failure) -> tuple[str, Finding]:
    for hint in ORDER:
        found = hint.find(failure)
        if found is not None:
            return hint.code, found
    return "E0101", general.unrecognised(failure)


def _diagnostic(source: Source, name: str, found: Finding) -> Diagnostic:
    place = Place(source, _one_line(source, found.span), found.label)
    others = tuple(Place(source, _one_line(source, span), label) for span, label in found.others)
    return Diagnostic(name, "error", found.message, place, others, found.help)


def _one_line(source: Source, span: Span) -> Span:
    """A span without the lines after its first one."""
    end = source.text.find("\n", span.start, span.end)
    return span if end < 0 else Span(span.start, max(end, span.start + 1))
