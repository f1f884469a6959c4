"""A snapshot to the lines of a screen, none of them wider than it; the same lines are printed for pipes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from koi_lang.cli.dashboard.snapshot import CostLine, DashboardSnapshot, OpenRequest, RunLine
from koi_lang.cli.ui.approval_question import Paper, asked_text, preview_lines
from koi_lang.cli.ui.text import CYAN, GREEN, RED, WEAK, YELLOW, Theme, count_text, duration, fit_text, one_line, width
from koi_lang.sessions.client_host import approval_in

BOLD = 1
CHOSEN = re.compile(r"(?:\x1b\[[\d;]*m)*>")
STATE_COLOURS = {
    **dict.fromkeys(("running", "working"), CYAN),
    **dict.fromkeys(("waiting", "paused"), YELLOW),
    **dict.fromkeys(("failed", "interrupted", "cancelled"), RED),
    "ok": GREEN,
}
# Columns of a table of runs but for the program, which has the rest: id, state, start, time, tokens, cost.
WIDTHS = (12, 11, 12, 7, 9, 9)
HEADS = ("run", "state", "began", "time", "tokens", "cost")
MIN_PROGRAM = 8
# What is left out first where there is no room: when it began, tokens, time, cost, state.
DISPENSABLE = (2, 4, 3, 5, 1)
# How many rows the parts beside the recent runs have at most, on a low and on a high screen.
LOW, HIGH = 5, 12
HIGH_ROWS = 34
MIN_RECENT, MAX_NOTES = 3, 3
KEYS = "↑↓ choose  ⏎ open  r look again  q quit"
ANSWER_KEYS = "⏎ send  esc back  ↑↓ scroll"
RUN_KEYS = "esc back  q quit"


@dataclass(frozen=True, slots=True)
class DashboardPlace:
    """What is chosen: a request by its run and id, or a run."""

    run: str
    request: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is drawn on.

    Attributes:
        rows: None where there is no end of them.
        now: seconds since the epoch.
    """

    look: Theme
    columns: int
    rows: int | None
    now: float


def places(snapshot: DashboardSnapshot) -> list[DashboardPlace]:
    """What can be chosen, from top to bottom."""
    runs = (*snapshot.at_work, *snapshot.recent)
    return [*(DashboardPlace(each.run, each.id) for each in snapshot.open), *(DashboardPlace(run.run) for run in runs)]


def list_lines(snapshot: DashboardSnapshot, chosen: DashboardPlace | None, sheet: Sheet) -> list[str]:
    """The whole of it: what is open, what is at work, what was recently, and what it cost."""
    head = _head(snapshot, sheet)
    notes = [_weak(sheet, f"! {one_line(note)}") for note in snapshot.notes[:MAX_NOTES]]
    open_ = _part(sheet, "open", [_open_line(each, chosen, sheet) for each in snapshot.open])
    work = _part(sheet, "at work", _run_lines(snapshot.at_work, chosen, sheet), "nothing")
    costs = _costs(snapshot, sheet)
    recent = _run_lines(snapshot.recent, chosen, sheet)
    if sheet.rows is None:
        return [*head, *notes, *open_, *work, *_part(sheet, "recent", recent, "none was recorded"), *costs]
    most = LOW if sheet.rows < HIGH_ROWS else HIGH
    open_, work = (_cut(part, most, _row_of(part, chosen), sheet) for part in (open_, work))
    costs = costs[: most + 1]
    room = max(sheet.rows - sum(map(len, (head, notes, open_, work, costs))), MIN_RECENT)
    part = _part(sheet, "recent", recent, "none was recorded")
    return [*head, *notes, *open_, *work, *_fill_rows(_cut(part, room, _row_of(part, chosen), sheet), room), *costs]


def request_lines(request: OpenRequest, run: RunLine | None, sheet: Sheet) -> list[str]:
    """All of a question or of a request for approval, each line as wide as the screen at most."""
    program = "" if run is None else f" {one_line(run.program)}"
    head = _heading(sheet, f"{'permission' if request.is_approval else 'question'} of {one_line(request.run)}{program}")
    message = request.message
    if request.is_approval:
        asked = approval_in(message)
        preview = preview_lines(asked.preview, Paper(sheet.look, sheet.columns))
        answers = "y allow it   a always" + (f" ({one_line(asked.always)})" if asked.always else "")
        texts = [asked_text(asked, sheet.look), ""]
        return [
            head,
            "",
            *_wrap_texts(texts, sheet),
            *preview,
            "",
            *_wrap_texts([f"{answers}   n no, `n because …`"], sheet),
        ]
    options = message.get("options")
    numbered = [f"{number}. {one_line(str(each))}" for number, each in enumerate(options or [], 1)]
    return [head, "", *_wrap_texts([_plain(str(message.get("question", ""))), *numbered], sheet)]


def run_lines(run: RunLine, sheet: Sheet) -> list[str]:
    """What is known of a run."""
    facts = {
        "run": run.run, "program": run.program, "owner": run.owner, "state": run.state,
        "began": _moment(run.started, "%Y-%m-%d %H:%M:%S"), "time": duration(run.seconds),
        "models": f"{count_text(run.requests, 'request')}, {run.tokens:,} tokens, {_dollars(run.usd)}",
    }  # fmt: skip
    shown = [f"{name:8} {one_line(str(text))}" for name, text in facts.items() if text]
    more = _weak(sheet, fit_text(f"koi runs show {one_line(run.run)} tells what happened", sheet.columns, "…"))
    return [_heading(sheet, one_line(run.program)), "", *_wrap_texts(shown, sheet), "", more]


# ---------------------------------------------------------------- parts


def _head(snapshot: DashboardSnapshot, sheet: Sheet) -> list[str]:
    day = datetime.fromtimestamp(sheet.now).strftime("%Y-%m-%d")
    today = next((line for line in snapshot.days if line.name == day), None)
    counts = [f"{len(snapshot.at_work)} at work", f"{len(snapshot.open)} open"]
    summary = "  ".join([*counts, f"today {'$0.00' if today is None else _cost(today)}"])
    room = sheet.columns - width(summary) - 2
    place = fit_text(f"koi  {one_line(snapshot.place)}", max(room, 0), sheet.look.more)
    gap = " " * max(sheet.columns - width(place) - width(summary), 1)
    return [sheet.look.paint(fit_text(f"{place}{gap}{summary}", sheet.columns, sheet.look.more), BOLD), ""]


def _part(sheet: Sheet, title: str, lines: Sequence[str], otherwise: str = "") -> list[str]:
    """A part with its title; nothing where it is empty and nothing is said of that."""
    if not lines and not otherwise:
        return []
    return [_heading(sheet, title), *(lines or [_weak(sheet, f"  {otherwise}")])]


def _cut(part: list[str], most: int, row: int | None, sheet: Sheet) -> list[str]:
    """A part in some rows: its title, what is chosen, and how many lines are out of sight."""
    if len(part) <= most:
        return part
    room = max(most - 2, 1)
    first = min(max(1, (row or 1) - room + 1), len(part) - room)
    left = len(part) - 1 - room
    return [part[0], *part[first : first + room], _weak(sheet, f"  {sheet.look.more} and {left:,} more")][:most]


def _row_of(part: Sequence[str], chosen: DashboardPlace | None) -> int | None:
    """Where in a part the chosen line is."""
    if chosen is None:
        return None
    return next(
        (row for row, line in enumerate(part) if row and line.lstrip("\x1b[0123456789;m").startswith(">")), None
    )


def _fill_rows(part: list[str], rows: int) -> list[str]:
    return [*part, *([""] * (rows - len(part)))]


def _open_line(request: OpenRequest, chosen: DashboardPlace | None, sheet: Sheet) -> str:
    message, look = request.message, sheet.look
    who = one_line(str(message.get("agent", ""))) or "somebody"
    what = f"may {who} {message.get('what', '')}?" if request.is_approval else str(message.get("question", ""))
    mark = _mark(chosen == DashboardPlace(request.run, request.id))
    text = fit_text(one_line(what), sheet.columns - WIDTHS[0] - 4, look.more)
    run = _cell(one_line(request.run), min(WIDTHS[0], sheet.columns - 2))
    return _line(f"{mark} {run}  {look.paint(text, YELLOW)}".rstrip(), mark, sheet)


def _run_lines(runs: Iterable[RunLine], chosen: DashboardPlace | None, sheet: Sheet) -> list[str]:
    return [_run_line(run, chosen == DashboardPlace(run.run), sheet) for run in runs]


def _run_line(run: RunLine, is_chosen: bool, sheet: Sheet) -> str:
    mark, seconds = _mark(is_chosen), run.seconds
    if run.is_at_work and run.started:
        seconds = max(sheet.now - run.started, 0.0)
    state = sheet.look.paint(_cell(run.state, WIDTHS[1]), STATE_COLOURS.get(run.state, WEAK))
    start = _moment(run.started, "%d %b %H:%M")
    texts = (start, duration(seconds), f"{run.tokens:,}", _dollars(run.usd))
    cells = (_cell(text, size) for text, size in zip(texts, WIDTHS[2:], strict=True))
    values = (_cell(one_line(run.run), min(WIDTHS[0], sheet.columns - 2)), state, *cells)
    hidden = _hidden_cells(sheet.columns)
    kept = [value for at, value in enumerate(values) if at not in hidden]
    room = sheet.columns - _columns_taken(hidden)
    program = fit_text(one_line(run.program), room, sheet.look.more) if room >= MIN_PROGRAM else ""
    return _line("  ".join([f"{mark} {kept[0]}", *kept[1:], program]).rstrip(), mark, sheet)


def _hidden_cells(columns: int) -> tuple[int, ...]:
    """The columns of a table of runs that are left out so that the program has room."""
    counts = range(len(DISPENSABLE) + 1)
    fits = (n for n in counts if _columns_taken(DISPENSABLE[:n]) + MIN_PROGRAM <= columns)
    return DISPENSABLE[: next(fits, len(DISPENSABLE))]


def _columns_taken(hidden: Sequence[int]) -> int:
    return 2 + sum(size + 2 for at, size in enumerate(WIDTHS) if at not in hidden)


def _costs(snapshot: DashboardSnapshot, sheet: Sheet) -> list[str]:
    """Costs by day, the latest first, and by model, side by side."""
    left, right = (
        [(one_line(line.name), _cost(line)) for line in lines] for lines in (reversed(snapshot.days), snapshot.models)
    )
    half = sheet.columns // 2
    rows = [_heading(sheet, "cost", half) + _heading(sheet, "by model", sheet.columns - half)]
    if not left and not right:
        return [rows[0], _weak(sheet, "  no model was asked")]
    for at in range(max(len(left), len(right))):
        cells = (side[at] if at < len(side) else ("", "") for side in (left, right))
        rows.append("".join(_pair(cell, half, sheet) for cell in cells).rstrip())
    return rows


def _pair(cell: tuple[str, str], columns: int, sheet: Sheet) -> str:
    """A name at the left of a half, and money at its right."""
    name, cost = cell
    name = fit_text(name, max(columns - width(cost) - 5, 1), sheet.look.more)
    return f"  {name}{' ' * max(columns - width(name) - width(cost) - 4, 1)}{cost}  "[:columns]


# ---------------------------------------------------------------- texts


def _cost(line: CostLine) -> str:
    return f"{_dollars(line.usd)}{'' if line.is_all or line.usd is None else '+'}"


def _dollars(usd: float | None) -> str:
    if usd is None:
        return "unknown"
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"


def _moment(seconds: float, form: str) -> str:
    try:
        return datetime.fromtimestamp(seconds).strftime(form) if seconds else ""
    except (OverflowError, ValueError, OSError):
        return ""


def _cell(text: str, columns: int) -> str:
    """A text in a column, cut or filled."""
    cut = fit_text(text, columns, "…")
    return cut + " " * (columns - width(cut))


def _mark(is_chosen: bool) -> str:
    return ">" if is_chosen else " "


def _line(text: str, mark: str, sheet: Sheet) -> str:
    return sheet.look.paint(text, BOLD) if mark == ">" and "\x1b" not in text else text


def _heading(sheet: Sheet, title: str, columns: int | None = None) -> str:
    room = sheet.columns if columns is None else columns
    text = fit_text(title, room, sheet.look.more)
    return sheet.look.paint(f"{text} ", BOLD) + _weak(sheet, "─" * max(room - width(text) - 2, 0)) + " "


def _weak(sheet: Sheet, text: str) -> str:
    return sheet.look.paint(fit_text(text, sheet.columns, sheet.look.more), WEAK)


def _plain(text: str) -> str:
    """A text on several lines, without what would steer the terminal."""
    return "\n".join(one_line(line) for line in text.split("\n"))


def _wrap_texts(texts: Iterable[Any], sheet: Sheet) -> list[str]:
    """Texts on lines that are no wider than the screen."""
    lines = [line for text in texts for line in str(text).split("\n")]
    return [piece for line in lines for piece in _pieces(line, sheet.columns)]


def _pieces(line: str, columns: int) -> list[str]:
    pieces = [""]
    for word in line.split(" "):
        joined = f"{pieces[-1]} {word}" if pieces[-1] else word
        if width(joined) <= columns:
            pieces[-1] = joined
            continue
        pieces += [""] if pieces[-1] else []
        while width(word) > columns:
            cut = word[:columns]
            while width(cut) > columns:
                cut = cut[:-1]
            pieces[-1], word = cut, word[len(cut) :]
            pieces.append("")
        pieces[-1] = word
    return pieces
