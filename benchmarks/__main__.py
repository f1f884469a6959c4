"""Subjects to one table of figures: `python -m benchmarks`, or `python -m benchmarks NAME` for one subject."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    asking,
    chats,
    compiling,
    computing,
    debugging,
    editing,
    editors,
    formatting,
    journal,
    load,
    mcp,
    playbooks,
    recalling,
    registry,
    searching,
    sending,
    starting,
    talking,
    workspace,
)
from benchmarks.measuring import Figure

SUBJECTS = {
    "compiling": compiling,
    "formatting": formatting,
    "computing": computing,
    "starting": starting,
    "sending": sending,
    "registry": registry,
    "playbooks": playbooks,
    "asking": asking,
    "chats": chats,
    "talking": talking,
    "journal": journal,
    "mcp": mcp,
    "workspace": workspace,
    "editing": editing,
    "editors": editors,
    "searching": searching,
    "recalling": recalling,
    "debugging": debugging,
    "load": load,
}
COLUMNS = f"{'figure':44} {'target':>16} {'median':>15}   {'spread':<23} verdict"


def main(names: Sequence[str]) -> int:
    """Print a line for each figure; gives 1 when one of them misses its target, 2 for an unknown name."""
    unknown = [name for name in names if name not in SUBJECTS]
    if unknown:
        print(f"there is no subject `{unknown[0]}`; known are {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    print(COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        _keep_caches_in(Path(folder))
        return max(_measure(name, Path(folder)) for name in names or SUBJECTS)


def _keep_caches_in(folder: Path) -> None:
    """Leave the user's caches alone, and let Python keep its compiled modules even in a checkout it cannot write to."""
    os.environ["KOI_CACHE_DIR"] = str(folder / "koi")
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "python")


def _measure(name: str, folder: Path) -> int:
    figures = SUBJECTS[name].figures(folder)
    for figure in figures:
        print(_line(figure), flush=True)
    return 0 if all(figure.is_ok for figure in figures) else 1


def _line(figure: Figure) -> str:
    bound = "at least" if figure.at_least else "at most"
    spread = f"{_number(min(figure.values))} – {_number(max(figure.values))} ({len(figure.values)})"
    median = f"{_number(figure.median)} {figure.unit}"
    verdict = "ok" if figure.is_ok else "OVER"
    return f"{figure.name:44} {bound} {_number(figure.target):>7} {median:>15}   {spread:<23} {verdict}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3f}" if value < 1 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
