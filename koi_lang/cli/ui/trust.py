"""The questions at the terminal whether a journal of unknown origin, and the settings of a folder, are trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from koi_lang.cli.ui.doubts import can_ask
from koi_lang.events import RuleAllowed
from koi_lang.runtime.journal.reader import Journal
from koi_lang.settings import ProjectSettings, trust_in_folder
from koi_lang.system.text_width import clean

if TYPE_CHECKING:
    from koi_lang.settings.folder_trust import FolderTrust

# Where the context of a command keeps that the person has said `--trust-folder`, and what holds of folders by digest.
AGREED, SETTLED = "koi_lang.trust_folder", "koi_lang.settled_folders"


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


def settle_trust(settings: ProjectSettings) -> ProjectSettings:
    """The settings of a folder, which count as a whole where the person agrees; they are asked, once.

    A command that reads them several times asks again only where what they widen has changed meanwhile.

    Raises:
        SettingsError: a file nests too deeply.
    """
    context = click.get_current_context(silent=True)
    meta = {} if context is None else context.meta
    settled: dict[Path, tuple[str, bool]] = meta.setdefault(SETTLED, {})
    if settings.is_trusted:
        settled.setdefault(settings.folder, ("trusted", True))
        return settings
    trust = trust_in_folder(settings)
    digest, is_trusted = settled.get(settings.folder, ("", bool(meta.get(AGREED))))
    if digest != trust.digest:
        if is_trusted := is_trusted and not digest:
            trust.save(is_trusted=True)
        elif trust.answer is None and can_ask():
            is_trusted = confirm_folder(trust)
        settled[settings.folder] = (trust.digest, is_trusted)
        if not is_trusted:
            click.echo(f"warning: {trust.note}", err=True)
    return replace(settings, is_trusted=is_trusted)


def confirm_folder(trust: FolderTrust) -> bool:
    """Show what a folder would widen, and keep the answer of the person."""
    click.echo(f"the settings of {clean(str(trust.record.project))} would widen what programs may do:", err=True)
    for text in trust.texts:
        click.echo(f"  {text}", err=True)
    is_trusted = click.confirm("Trust this folder? Otherwise they do not count.", err=True)
    if why := trust.save(is_trusted=is_trusted):
        click.echo(clean(f"warning: you are asked again next time: {why}"), err=True)
    return is_trusted
