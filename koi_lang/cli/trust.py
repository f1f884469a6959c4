"""Whether a journal may be gone on with: one that this machine has signed, or that the person says yes to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from koi_lang import settings
from koi_lang.cli.doubts import can_ask
from koi_lang.errors import SettingsError, UntrustedJournalError
from koi_lang.runtime.journal.reader import Journal
from koi_lang.runtime.journal.signatures import Signer
from koi_lang.setup.keys.signing import signing_key
from koi_lang.text_width import clean


def signer(folder: Path) -> Signer:
    """What the journals of a folder are signed with. Raises SettingsError where there can be no key."""
    return Signer(signing_key(settings.config_folder()), str(folder))


def signer_or_none(folder: Path) -> Signer | None:
    """The same; where there can be no key that is told, and no journal counts as signed."""
    try:
        return signer(folder)
    except SettingsError as error:
        click.echo(clean(f"warning: {error.message}\n  = help: {error.help}"), err=True)
        return None


def require_trust(journal: Journal, *, trusted: bool, may_ask: bool) -> None:
    """Have the person agree to go on with a journal, unless this machine has written all of it.

    Args:
        trusted: whether they have agreed beforehand.
        may_ask: whether they can be asked here, where they are at the terminal.

    Raises:
        UntrustedJournalError: nobody agrees; says what would.
    """
    wrong = doubt_about(journal)
    if not wrong or trusted:
        return
    run = journal.header.run
    if not (may_ask and can_ask()):
        help = f"Look at it with `koi runs show {run}`; if you trust it, go on with `--trust`."
        raise UntrustedJournalError(f"the journal `{run}` {wrong}, so it is not gone on with", help=help)
    for line in (f"the journal `{run}` {wrong}; it may come from somebody else", *_facts(journal)):
        click.echo(clean(line), err=True)
    if not click.confirm("Go on with it?", err=True):
        help = f"Look at it with `koi runs show {run}`."
        raise UntrustedJournalError(f"the journal `{run}` was not gone on with", help=help)


def doubt_about(journal: Journal) -> str:
    """Why a journal is not known to be of this machine, a clause; empty where it is."""
    found = journal.authenticity
    if found is None:
        return "cannot be checked without a key for signatures"
    if found.is_whole:
        return ""
    if found.signed:
        return f"was changed behind line {found.signed}, or others have added to it"
    if found.has_signatures:
        return "was not written on this machine in this folder, or was changed"
    return "is not signed"


def _facts(journal: Journal) -> Iterator[str]:
    """What going on with a journal would run."""
    header = journal.header
    yield f"  program  {header.program}"
    yield f"  command  koi {' '.join(header.words)}"
    allowed = [str(entry.data.get("rule")) for entry in journal.entries if entry.kind == "allowed"]
    if allowed:
        yield f"  allowed  {', '.join(allowed)}"
