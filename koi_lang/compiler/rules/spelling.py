"""Spellings of Koi 1.0 that are still read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.source import Span

WORDS = re.compile(r"[A-Za-z]+")
# What begins with a keyword that was once read in any letter case.
SPELLED: tuple[type[n.Node], ...] = (
    n.Import, n.Role, n.Team, n.Agent, n.Skill, n.Mcp, n.Prompt, n.Run, n.Uses, n.ExposeMcp, n.ExposeA2a,
    n.Affordance, n.Llm, n.Amnesia, n.Handler, n.State, n.NamedPlaybook, n.Playbook, n.Resilience,
)  # fmt: skip


@rule("E0421", "warning")
def capital_keyword(file: Analysis, report: Report) -> None:
    """A keyword is written with capital letters, as in Koi 1.0.

    It is still understood, and will not be for ever. One message a file.

    Wrong:

        Role Worker { can execute }

    Right:

        role Worker { can execute }
    """
    spans = sorted(_capitals(file))
    if spans:
        word = file.unit.source.text[spans[0].start : spans[0].end]
        count = len(spans) - 1
        more = f" (and {count} more in this file)" if count else ""
        help = f"write `{word.lower()}`."
        report.add(spans[0], f"`{word}`{more} is written with capital letters, as in Koi 1.0", help=help)


@rule("E0422", "warning")
def package_line(file: Analysis, report: Report) -> None:
    """A file begins with `package`, as in Koi 1.0.

    The line has no meaning any more: a file is known by its path.

    Wrong:

        package "demo"

    Right:

        import "./roles.koi"
    """
    for package, _ in file.index.of(n.Package):
        report.add(package.span, "`package` has no meaning any more", help="remove the line.")


def _capitals(file: Analysis) -> Iterator[Span]:
    """Where keywords with capital letters stand."""
    for kind in SPELLED:
        for node, _ in file.index.of(kind):
            match = WORDS.match(file.unit.source.text, node.span.start)
            if match is not None and not match[0].islower():
                yield Span(*match.span())
