"""Analysed files to everything that is wrong with them, and codes of problems to explanations.

A rule is one function in one of the modules here. Its decorator names the code and the severity; its docstring is the
long explanation, with a wrong and a right example. An example is a program, or a part of one that begins with
`in agent:` or `in handler:`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from textwrap import dedent, indent

from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules import (
    access,
    actions,
    agents,
    duplicates,
    evals,
    expressions,
    failures,
    files,
    flow,
    jobs,
    limits,
    models,
    names,
    needs,
    payloads,
    phases,
    placeholders,
    promises,
    prompts,
    prose,
    results,
    roles,
    sends,
    servers,
    spelling,
    state,
    templates,
    tests,
    types,
    unused,
    variables,
)
from koi_lang.compiler.rules.program import AnalysedProgram, Library
from koi_lang.compiler.rules.table import RULES, Report
from koi_lang.compiler.syntax_errors import explanations as syntax_explanations
from koi_lang.diagnostics import Diagnostic

__all__ = ["check", "explanation", "explanations"]

# Each of these enters its rules into the table when it is imported.
MODULES = (
    names, actions, access, duplicates, variables, sends, unused, flow, promises, prompts, templates, agents,
    models, spelling, tests, evals, types, state, roles, payloads, results, expressions, limits, placeholders,
    servers, needs, jobs, phases, prose,
)  # fmt: skip


def check(analyses: Sequence[Analysis], library: Library = dict) -> list[Diagnostic]:
    """All problems of a program, file by file, in the order of the source.

    Args:
        analyses: every file of the program without syntax errors; first the one that was asked for.
        library: gives what the standard library offers, by name; it is asked when a name is unknown.
    """
    if not analyses:
        return []
    program = AnalysedProgram(tuple(analyses), library)
    found: list[Diagnostic] = []
    for file in analyses:
        for rule in RULES.values():
            rule.find(file, Report(rule, file.unit.source, program, found))
    order = {file.unit.path: number for number, file in enumerate(analyses)}
    return sorted(found, key=lambda item: (order.get(item.place.source.path, len(order)), item.place.span, item.code))


def explanation(code: str) -> str | None:
    """The long form of a problem: what is wrong, why it matters, a wrong and a right example."""
    return explanations().get(code.upper())


def explanations() -> dict[str, str]:
    """Every code that a message may have, also one of a failed run, in order, with its explanation."""
    found = {code: write_out(inspect.getdoc(rule.find) or "") for code, rule in RULES.items()}
    return dict(sorted({**syntax_explanations(), **files.EXPLANATIONS, **failures.EXPLANATIONS, **found}.items()))


ROLE = "role Worker { can execute }"
MAX_COLUMNS = 112
# `in agent: …` and `in handler: …`, or `in handler(a, b): …`, where the part begins on the same line or the next one.
SHORT = re.compile(
    r"^    in (?P<place>agent|handler)(?:\((?P<parameters>.*?)\))?:"
    r"(?: (?P<line>.+)|(?P<lines>(?:\n {6}.*|\n(?=\n* {6}))+))$",
    re.MULTILINE,
)


def write_out(explanation: str) -> str:
    """An explanation whose examples are whole programs."""
    return SHORT.sub(lambda found: indent(_program(found), "    "), explanation)


def _program(found: re.Match[str]) -> str:
    body = found["line"] or dedent(found["lines"]).strip("\n")
    if found["place"] == "handler":
        body = _block(f"on work({found['parameters'] or 'args'})", body)
    return f"{ROLE}\n{_block('agent Clerk : Worker', body)}"


def _block(head: str, body: str) -> str:
    line = f"{head} {{ {body} }}"
    return line if "\n" not in body and len(line) <= MAX_COLUMNS else f"{head} {{\n{indent(body, '  ')}\n}}"
