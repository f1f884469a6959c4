"""`python -m benchmarks.corpus`: recorded streams of providers, and the check that Koi still reads them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from benchmarks.corpus.adding import add_stream
from benchmarks.corpus.checking import StreamCheck, check_entry, entry_folders
from koi_lang.cli.ui.text import count_text
from koi_lang.errors import EXIT_FAILED, CorpusError, KoiError
from koi_lang.runtime.journal import store
from koi_lang.sessions.options import RunOptions
from koi_lang.system.text_width import clean

FOLDER = "corpus"


@click.group()
def command() -> None:
    """Collect streams of providers, and check that they are read as expected."""


@command.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=FOLDER,
    help="Instead of `corpus`.",
)
def add(runs: tuple[str, ...], folder: Path) -> None:
    """Add the streams of recorded runs, which were kept with KOI_KEEP_STREAMS=1, to the folder `corpus`.

    RUN is the beginning of an id, or `last`. What is read of each stream stands beside it, to be looked at.
    """
    redact = RunOptions().redact
    added = 0
    for source, name in [found for run in runs for found in _kept_streams(run)]:
        try:
            asyncio.run(add_stream(source, folder / name, redact))
        except CorpusError as error:
            click.echo(clean(f"{name} left out: {error.message}"), err=True)
        else:
            added += 1
    where = clean(str(folder))
    click.echo(f"{count_text(added, 'stream')} added to {where}; look at what they say before you hand them on")


def _kept_streams(run: str) -> list[tuple[Path, str]]:
    """The folders of the streams of a run, each with its name in a corpus. Raises CorpusError when there are none."""
    journal = store.find(Path.cwd(), run)
    found = entry_folders(journal.with_suffix(store.STREAMS))
    if not found:
        help = "They are kept while a program runs with `KOI_KEEP_STREAMS=1` in the environment."
        raise CorpusError(f"no stream of the run `{journal.stem}` was kept", help=help)
    return [(each, f"{journal.stem}-{each.name}") for each in found]


@command.command()
@click.argument("folder", type=click.Path(path_type=Path), default=FOLDER)
@click.pass_context
def check(ctx: click.Context, folder: Path) -> None:
    """Read every stream of a folder again, `corpus` by default, and show what is read otherwise than expected.

    Nothing is sent. The exit code is 1 where a stream is read otherwise.
    """
    found = entry_folders(folder)
    if not found:
        raise CorpusError(f"there is no stream in `{folder}`", help="`python -m benchmarks.corpus add RUN` makes one.")
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


if __name__ == "__main__":
    try:
        sys.exit(command.main(prog_name="python -m benchmarks.corpus", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KoiError as error:
        sys.exit(clean(f"error: {error.message}" + (f"\n  = help: {error.help}" if error.help else "")))
