"""Examples of explanations: the program around a part of one, which docstrings leave out."""

from __future__ import annotations

import re
from textwrap import dedent, indent

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
