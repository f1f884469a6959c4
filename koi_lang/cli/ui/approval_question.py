"""A request for approval as a person sees it at a terminal, and what they type to a decision."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from koi_lang.cli.ui.text import CYAN, GREEN, NARROW, RED, WEAK, Theme, count_text, one_line, whole, width
from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest, visible, wish

APPROVALS: dict[str, Approval] = {
    "y": "yes",
    "yes": "yes",
    "a": "always",
    "always": "always",
    "": "no",
    "n": "no",
    "no": "no",
}
# No, and why: `n because it is generated`, `no, use pathlib`.
REFUSAL = re.compile(r"no?(?:[\s,.:;-]+)(?:because\s+)?(?P<reason>\S.*)", re.IGNORECASE | re.DOTALL)
# Shows all of what would change.
EVERYTHING = "d"
# Of those who asked each other, at the beginning and at the end.
FIRST_CALLERS, LAST_CALLERS = 2, 6
# What is shown of a change however low a terminal is, and what stands around it: its end, and the line of the cursor.
MIN_ROWS, OTHER_ROWS = 3, 2
HEADS = 2


@dataclass(frozen=True, slots=True)
class Paper:
    """What a question is shown on.

    Attributes:
        rows: None where nothing has to fit.
    """

    look: Theme
    columns: int
    rows: int | None = None


def decision_in(text: str) -> ApprovalDecision | None:
    """What an answer means; None where that is not clear."""
    answer = APPROVALS.get(text.strip().lower())
    if answer is not None:
        return ApprovalDecision(answer)
    refusal = REFUSAL.fullmatch(text.strip())
    return ApprovalDecision("no", one_line(refusal["reason"])) if refusal else None


def question_of(request: ApprovalRequest, look: Theme) -> str:
    """Who wants to do what, on whose behalf, and what can be answered."""
    return f"{asked_text(request, look)}\n{choices_of(request, look)}"


def asked_text(request: ApprovalRequest, look: Theme) -> str:
    """Who wants to do what, and below it who asked whom."""
    detail = f": {visible(request.detail)}" if request.detail else ""
    lines = [whole(f"{visible(wish(request.what, request.agent))}{detail}")]
    if request.chain:
        lines.append(f"  asked for by {_chain_text(request.chain, look)}")
    return "\n".join(lines)


def choices_of(request: ApprovalRequest, look: Theme) -> str:
    """What can be answered; more is told where there is more to see."""
    if not (request.chain or request.preview):
        return "Allow? [y]es, [a]lways, [N]o"
    always = f"[a]lways ({visible(request.always)}), " if request.always else ""
    return f"Allow? [y]es, {always}[N]o, or `n because {look.more}`"


def words_for(request: ApprovalRequest, look: Theme) -> Sequence[str]:
    """What is told behind `yes`, `always` and `no`, where they are listed."""
    if not (request.chain or request.preview):
        return ()
    return ("", f" ({visible(request.always)})" if request.always else "", f", or `n because {look.more}`")


def preview_lines(preview: str, paper: Paper, other_rows: int = 0) -> list[str]:
    """What would change, coloured and behind a margin, so that no line of it looks like one of ours.

    Args:
        other_rows: what is shown on the same screen.

    Returns:
        Lines no wider than the paper, as many as there is room for; a last one counts what is left out.
    """
    if not preview:
        return []
    rows = _rows(preview.split("\n"), paper)
    room = len(rows) if paper.rows is None else max(paper.rows - other_rows - OTHER_ROWS, MIN_ROWS)
    if len(rows) <= room:
        return rows
    return [*rows[:room], f"({count_text(len(rows) - room, 'more line')}; `{EVERYTHING}` shows all of them)"]


def rows_taken(text: str, columns: int) -> int:
    """How many rows of a terminal a text takes."""
    return sum(max(-(-width(line) // max(columns, 1)), 1) for line in text.split("\n"))


def _chain_text(chain: Sequence[str], look: Theme) -> str:
    names = [f"`{visible(name)}`" for name in chain]
    left = len(names) - FIRST_CALLERS - LAST_CALLERS
    if left > 0:
        names[FIRST_CALLERS : FIRST_CALLERS + left] = [f"({left:,} more)"]
    return f" {look.gives} ".join(names)


def _rows(lines: Sequence[str], paper: Paper) -> list[str]:
    look, shown = paper.look, list[str]()
    margin = look.paint("| ", WEAK)
    for number, line in enumerate(lines):
        pieces = _pieces(visible(line), max(paper.columns - 2, 1))
        code = _colour_of(line, number)
        shown += [margin + (look.paint(piece, code) if code else piece) for piece in pieces]
    return shown


def _pieces(line: str, columns: int) -> list[str]:
    """A line in parts that fit."""
    if NARROW.fullmatch(line):
        return [line[at : at + columns] for at in range(0, len(line), columns)] or [""]
    pieces = [""]
    for character in line:
        if width(pieces[-1] + character) > columns and pieces[-1]:
            pieces.append("")
        pieces[-1] += character
    return pieces


def _colour_of(line: str, number: int) -> int:
    if number < HEADS and line[:4] in ("--- ", "+++ "):
        return WEAK
    return {"+": GREEN, "-": RED, "@": CYAN}.get(line[:1], 0)
