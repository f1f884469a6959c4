"""The question whether a journal of unknown origin may be gone on with, at the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import click

from koi_lang.cli.ui.doubts import can_ask
from koi_lang.events import RuleAllowed
from koi_lang.runtime.journal.reader import Journal
from koi_lang.text_width import clean


def confirm_trust(journal: Journal, wrong: str) -> bool | None:
    """Whether the person agrees to go on with a journal; None where nobody is at the terminal."""
    if not can_ask():
        return None
    for line in (f"the journal `{journal.header.run}` {wrong}; it may come from somebody else", *_facts(journal)):
        click.echo(clean(line), err=True)
    return click.confirm("Go on with it?", err=True)


def _facts(journal: Journal) -> Iterator[str]:
    """What going on with a journal would run."""
    header = journal.header
    yield f"  program  {header.program}"
    yield f"  command  koi {' '.join(header.words)}"
    allowed = [str(entry.data.get("rule")) for entry in journal.entries if entry.kind == RuleAllowed.type]
    if allowed:
        yield f"  allowed  {', '.join(allowed)}"
