"""`koi replay`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from koi_lang.cli.completing.values import complete_program_or_run
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import NOTHING, plain
from koi_lang.testing.recorded import replay


@click.command()
@click.argument("run", metavar="ID|FILE", shell_complete=complete_program_or_run)
@click.option("-q", "--quiet", is_flag=True, help="Do not show what the program prints.")
@click.option("--json", "as_json", is_flag=True, help="Print what is different as one JSON object, and nothing else.")
def command(run: str, quiet: bool, as_json: bool) -> None:
    """Run the program of a recorded run against its answers, without network or keys, and show what is different.

    The exit code is 1 when the program does something else than when it was recorded.
    """
    path = Path(run) if run.endswith(store.SUFFIX) and Path(run).is_file() else store.find(Path.cwd(), run)
    outcome = replay(path, (lambda line: None) if quiet or as_json else click.echo)
    if as_json:
        click.echo(json.dumps(plain(outcome.as_data(), NOTHING), ensure_ascii=False))
    else:
        click.echo(outcome.text(), err=True)
    sys.exit(0 if outcome.is_same else 1)
