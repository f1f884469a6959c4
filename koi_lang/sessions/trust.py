"""Whether a journal may be gone on with: one that this machine has signed, or that the person says yes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from koi_lang import settings
from koi_lang.errors import JournalError, SettingsError, UntrustedJournalError
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.calls import SERVE
from koi_lang.runtime.journal.line_ends import Signer
from koi_lang.runtime.journal.reader import Journal, read, read_header
from koi_lang.settings import ProjectSettings
from koi_lang.setup.keys.signing import service_key, signing_key

# Asks the person about a journal; the text says why it is not known to be of this machine. None where nobody is there.
Confirm = Callable[[Journal, str], bool | None]


def signer(folder: Path, words: Sequence[str] = ()) -> Signer:
    """The signer of the journals of a folder. Raises SettingsError where there can be no key.

    Those of a service are signed with the key in its folder: they go on where the folder is moved or restored. Where
    that key came with files of others, the key of the machine signs what this person's service begins there.

    Args:
        words: of the command line that began the journal.
    """
    if tuple(words[:1]) == (SERVE,) and (key := service_key(folder)) is not None:
        return Signer(key, "")
    return Signer(signing_key(settings.config_folder()), str(folder))


def service_signer(project: ProjectSettings) -> Signer:
    """The signer of the journals of a service. Raises SettingsError."""
    return signer(project.folder, (SERVE,))


def signer_or_none(folder: Path, note: Callable[[str], None], words: Sequence[str] = ()) -> Signer | None:
    """The same; where there can be no key that is told, and no journal counts as signed."""
    try:
        return signer(folder, words)
    except SettingsError as error:
        note(f"warning: {error.message}\n  = help: {error.help}")
        return None


def read_signed(path: Path, folder: Path, note: Callable[[str], None]) -> Journal:
    """A journal of a folder with its signatures checked. Raises JournalError.

    Services signed with the key of the machine before they had one of their own, for a folder above the program.

    Args:
        note: is told why there can be no key.
    """
    header = read_header(path)
    journal = read(path, signer_or_none(folder, note, header.words))
    if header.words[:1] != (SERVE,) or not doubt_about(journal):
        return journal
    machine = signer_or_none(folder, lambda line: None)
    if machine is None:
        return journal
    for place in (folder, *Path(header.program).parents):
        earlier = read(path, replace(machine, folder=str(place)))
        if not doubt_about(earlier):
            return earlier
    return journal


def signed_journals(folder: Path, words: tuple[str, ...] = ()) -> Iterator[Journal]:
    """The journals of a folder that this machine has signed; those that cannot be read are left out.

    Args:
        words: only those that this command line began, where there is one.
    """
    for path in store.journals(folder):
        try:
            if words and tuple(read_header(path).words) != words:
                continue
            journal = read_signed(path, folder, lambda line: None)
        except JournalError:
            continue
        if not doubt_about(journal):
            yield journal


def nobody_confirms(journal: Journal, wrong: str) -> None:
    """There is nobody to ask."""


def require_trust(journal: Journal, *, trusted: bool, confirm: Confirm = nobody_confirms) -> None:
    """Have the person agree to go on with a journal, unless this machine has written all of it.

    Args:
        trusted: whether they have agreed beforehand.

    Raises:
        UntrustedJournalError: nobody agrees; says what would.
    """
    wrong = doubt_about(journal)
    if not wrong or trusted:
        return
    run = journal.header.run
    agreed = confirm(journal, wrong)
    if agreed is None:
        help = f"Look at it with `koi runs show {run}`; if you trust it, go on with `--trust`."
        raise UntrustedJournalError(f"the journal `{run}` {wrong}, so it is not gone on with", help=help)
    if not agreed:
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
