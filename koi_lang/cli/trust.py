"""`koi trust`."""

from __future__ import annotations

from pathlib import Path

import click

from koi_lang.cli.ui.doubts import can_ask
from koi_lang.cli.ui.trust import confirm_folder
from koi_lang.errors import KoiError, UsageError
from koi_lang.health.project import setting_faults
from koi_lang.settings import config_folder, read_settings, trust_in_folder
from koi_lang.settings.folder_trust import forget_trust, trusted_folders


@click.command()
@click.option("--yes", "is_agreed", is_flag=True, help="Trust the folder without a question.")
@click.option("--list", "is_listing", is_flag=True, help="List the folders that you trust.")
@click.option("--remove", "is_removing", is_flag=True, help="Trust this folder no more.")
def command(is_agreed: bool, is_listing: bool, is_removing: bool) -> None:
    """Show what the settings of this folder widen, and have them count.

    What narrows, such as `deny` and `[limits]`, counts in every folder. What allows more counts once you trust the
    folder, until a change of it.
    """
    if is_listing:
        click.echo("\n".join(map(str, trusted_folders(config_folder()))) or "you trust no folder")
    elif is_removing:
        was_known = forget_trust(Path.cwd(), config_folder())
        click.echo("this folder is not trusted any more" if was_known else "this folder was not trusted")
    else:
        show_trust(is_agreed=is_agreed)


def show_trust(*, is_agreed: bool) -> None:
    """Show what the settings of this folder widen; the person agrees by an option, or is asked. Raises KoiError.

    Nobody agrees to what cannot be read.
    """
    settings = read_settings()
    trust = trust_in_folder(settings)
    for _, error in setting_faults(settings):
        if trust.texts:
            click.echo("\n".join(["these settings would count:", *(f"  {text}" for text in trust.texts)]))
        raise error
    if not trust.widenings:
        click.echo("the settings of this folder widen nothing")
        return
    if trust.record.file is None:
        help = "Set `KOI_TRUST_FOLDER=1`, or `KOI_CONFIG_DIR` to a folder outside of it."
        raise UsageError("your configuration lies in this folder, where an agent could write it", help=help)
    listed = [f"  {text}" for text in trust.texts]
    if is_agreed:
        click.echo("\n".join(listed))
        if why := trust.save(is_trusted=True):
            help = "Make it writable, or set `KOI_CONFIG_DIR` to a folder that is."
            raise KoiError(f"the folder is not trusted: {why}", help=help)
    elif trust.answer:
        click.echo("\n".join(["this folder is trusted:", *listed]))
    elif not can_ask():
        raise UsageError("\n".join(["this folder is not trusted:", *listed]), help="Write `koi trust --yes`.")
    else:
        confirm_folder(trust)
