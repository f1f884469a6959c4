"""`koi corpus`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from koi_lang.cli.ui.text import count_text
from koi_lang.errors import EXIT_FAILED, CorpusError
from koi_lang.llm.corpus.checking import StreamCheck, check_entry, entry_folders
from koi_lang.text_width import clean

FOLDER = "corpus"


@click.group()
def command() -> None:
    """Keep what providers sent, and hold the readers against it."""


@command.command()
@click.argument("folder", type=click.Path(path_type=Path), default=FOLDER)
@click.pass_context
def check(ctx: click.Context, folder: Path) -> None:
    """Read every stream of a folder again, `corpus` by default, and show what is read otherwise than expected.

    Nothing is sent. The exit code is 1 where a stream is read otherwise.
    """
    found = entry_folders(folder)
    if not found:
        raise CorpusError(f"there is no stream in `{folder}`", help="Name a folder whose folders hold `about.json`.")
    checked = asyncio.run(_check_all(folder, found))
    failing = [each for each in checked if each.problems]
    click.echo(f"{count_text(len(checked) - len(failing), 'stream')} read as expected")
    if failing:
        click.echo(f"{count_text(len(failing), 'stream')} read otherwise")
        ctx.exit(EXIT_FAILED)


async def _check_all(corpus: Path, folders: list[Path]) -> list[StreamCheck]:
    """What came of each stream; what is wrong is told at once, a line each."""
    checked = []
    for folder in folders:
        checked.append(await check_entry(corpus, folder))
        if checked[-1].problems:
            line = f"{checked[-1].name}: {'; '.join(checked[-1].problems)}"
            click.echo(" ".join(clean(line).split()))  # a name of a folder may hold line breaks
    return checked
