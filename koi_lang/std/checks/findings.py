"""The report of a check: findings, bounded in number and length, and counts of tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from koi_lang.runtime.actions.command_output import MAX_SHOWN_BYTES
from koi_lang.runtime.host import clip_text, visible
from koi_lang.runtime.mcp.safe_text import one_line

Item = TypeVar("Item")
Severity = Literal["blocker", "important", "suggestion"]
MAX_FINDINGS = 100
# In characters, of one text of a finding.
MAX_TEXT_CHARS = 300


class UnreadableReportError(Exception):
    """A tool has written no report, or one that is none; the message says why."""


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One thing that a check says against a project.

    Attributes:
        title: one line.
        where: a file with its line, such as `src/a.py:12`; empty where nothing is known of that.
        fix: what to do; empty where nothing is known of that.
    """

    severity: Severity
    title: str
    where: str = ""
    fix: str = ""

    def as_data(self) -> dict[str, Any]:
        """The form for code and models, without unknown fields."""
        known = {"severity": self.severity, "title": one_line(self.title, MAX_TEXT_CHARS)}
        where = {"where": clip_text(visible(self.where), MAX_TEXT_CHARS)} if self.where else {}
        return known | where | ({"fix": one_line(self.fix, MAX_TEXT_CHARS)} if self.fix else {})


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The report of a tool.

    Attributes:
        passed: how many tests did; of other tools, whether the one did.
        failed: as before.
        findings: in the order of the tool.
        output: what was printed for people, where that stands among the report; None where all of it is for them.
    """

    passed: int = 0
    failed: int = 0
    findings: Sequence[CheckFinding] = ()
    output: str | None = None


def first_findings(items: Sequence[Item], finding: Callable[[Item], CheckFinding]) -> list[CheckFinding]:
    """The findings for some items; of very many the first, and one that says how many more there are."""
    known = [finding(item) for item in items[:MAX_FINDINGS]]
    left = len(items) - len(known)
    return [*known, CheckFinding(known[-1].severity, f"{left:,} more are not listed")] if left else known


def clip_ends(text: str) -> str:
    """A text, or its beginning and its end, as `output` of a command is shown."""
    half = MAX_SHOWN_BYTES // 2
    left = len(text) - 2 * half
    return text if left <= 0 else f"{text[:half]}\n… ({left} characters left out) …\n{text[-half:]}"


def name_place(file: str, line: int | str | None, folder: Path) -> str:
    """A file and a line as people write them, from the folder of the project where the file lies in that."""
    if not file:
        return ""
    path = Path(file)
    known = path.relative_to(folder).as_posix() if path.is_absolute() and path.is_relative_to(folder) else file
    return known if line is None else f"{known}:{line}"
