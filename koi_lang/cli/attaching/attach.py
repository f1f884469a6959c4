"""`koi runs attach`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from koi_lang.cli.completing.values import complete_run
from koi_lang.cli.options import plain_option
from koi_lang.cli.ui.interrupts import leave
from koi_lang.cli.ui.messages import exit_code_of
from koi_lang.errors import JournalError
from koi_lang.lazy import lazy_module
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.summary import UNFINISHED, summarise
from koi_lang.service.live.addresses import is_there, socket_path

if TYPE_CHECKING:
    from koi_lang.cli.attaching import attached_terminal
else:
    attached_terminal = lazy_module("koi_lang.cli.attaching.attached_terminal")


@click.command()
@click.argument("run", metavar="[ID]", required=False, shell_complete=complete_run)
@plain_option
def attach(run: str | None, plain: bool) -> None:
    """Follow a run of another process that works, answer what it asks, and steer it.

    Without ID it is the last one that can be followed. What is typed is heard by whoever is at work. Ctrl-C detaches,
    and the run goes on.
    """
    path = store.find(Path.cwd(), run) if run else _last_attachable(Path.cwd())
    require_attachable(path)
    leave(exit_code_of(lambda: attached_terminal.attach(path, plain=plain), debug=False))


def _last_attachable(folder: Path) -> Path:
    """The journal of the last run of a folder that takes followers. Raises JournalError where there is none."""
    found = [path for path in reversed(store.journals(folder)) if is_attachable(path) and store.is_running(path)]
    if not found:
        raise JournalError("no run of this folder can be followed", help="`koi runs` shows which ones work.")
    return found[0]


def require_attachable(path: Path) -> None:
    """Raise JournalError unless the run of a journal works and takes followers."""
    summary, name = summarise(path), path.stem
    if not summary.is_running:
        goes_on = f"; `koi resume {name}` goes on with it" if summary.state in UNFINISHED else ""
        help = f"`koi runs show {name}` tells what happened{goes_on}."
        raise JournalError(f"the run `{name}` does not work any more ({summary.state})", help=help)
    if not is_attachable(path):
        help = f"`koi runs tail -f {name}` shows what it writes down."
        raise JournalError(f"the run `{name}` takes nobody who would follow it", help=help)


def is_attachable(path: Path) -> bool:
    """Whether the run of a journal, which works, has a socket."""
    return is_there(socket_path(path.parents[2], path.stem))
