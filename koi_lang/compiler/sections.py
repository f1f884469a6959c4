"""The text of a file to sections, each of which holds whole declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from koi_lang.compiler.syntax_errors.scanner import scan_until

# Declarations at the start of a line, outside of texts in triple quotes and comments. An open comment takes the rest.
STARTS = re.compile(
    r'"{6}(?!")|(?P<fence>"{3,}+)(?s:.)*?(?P=fence)|"{3,}+|//[^\n]*|/\*(?s:.)*?(?:\*/|\Z)'
    r"|(?P<declaration>^(?:export[ \t]+)?(?:(?:import|package|role|team|agent|skill|mcp|prompt|run|test|eval|type)"
    r"[ \t]+[\w\"'({:\[]|(?P<foreign>class|interface|enum|struct)[ \t]+\w+(?=[^\n]*[{=])))",
    re.MULTILINE | re.IGNORECASE,
)


def section_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Where declarations may begin behind the place where one begins."""
    return (
        match.start() for match in STARTS.finditer(text, start, end) if match["declaration"] and match.start() > start
    )


def section_end(text: str, start: int) -> int:
    """The end of the section that begins at an offset: the next beginning of a declaration."""
    return next(section_starts(text, start, len(text)), len(text))


def closed_section_end(text: str, start: int, end: int) -> int | None:
    """The end of a section that holds beginnings of declarations within its brackets or texts; None if it never ends.

    Args:
        end: the beginning of the next declaration, at which something is still open.
    """
    stops = [end, *section_starts(text, end, len(text)), len(text)]
    return scan_until(text, start, stops)


def resume(text: str, start: int, failed: int, end: int) -> int | None:
    """The next declaration at or after a failure, and after the start of the section; None where there is none."""
    for match in STARTS.finditer(text, max(failed, start), end):
        is_told = match["foreign"] and match.start() == failed
        if match["declaration"] and match.start() > start and not is_told:
            return match.start()
    return None
