"""The token that a person has for a service."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import click

from koi_lang import settings
from koi_lang.cli.completing.values import complete_file
from koi_lang.errors import UsageError, reason
from koi_lang.system.loopback import is_loopback

VARIABLE = "KOI_SERVE_TOKEN"
token_file_option = click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    shell_complete=complete_file,
    help="A file with the token for the service.",
)


def token_for(file: Path | None) -> str | None:
    """The token in a file, else that of the environment; None where there is none. Raises UsageError."""
    if file is None:
        return settings.variable(VARIABLE)
    try:
        token = file.read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"`{file}` cannot be read: {why}", help="It holds the token and nothing else.") from error
    if not token or len(token.split()) != 1 or not token.isascii():
        raise UsageError(f"`{file}` holds no token", help="It holds the token and nothing else, on one line.")
    return token


def warning_of(url: str, token: str | None) -> str | None:
    """What is to be said of an address to which a token is sent; None where that is safe."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if token is None or parts.scheme != "http" or is_loopback(host):
        return None
    return f"the token is sent to `{host}` without encryption, and can be read on the way; use https"
