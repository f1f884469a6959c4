"""The signing keys of a machine and of its services, for files such as journals.

That of the machine is a file beside the keys of providers and never in the keyring, which may be locked or missing, or
ask the person: every run needs it. That of a service lies in its folder, and goes where the folder goes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from koi_lang import settings
from koi_lang.errors import SettingsError, reason
from koi_lang.settings.service_keys import MAX_KEY_BYTES, counts, fingerprint, note_key
from koi_lang.system.file_locks import locked_folder
from koi_lang.system.open_folders import KEY_FILE, STATE_FOLDER, make_state_folder, read_regular_file

BYTES = 32
OTHERS = 0o077


def signing_key(folder: Path, note_new: Callable[[str], None] = lambda text: None) -> bytes:
    """The key that is kept in a folder, made when it is first asked for. Raises SettingsError.

    Args:
        note_new: is told of the text of a new key before anybody can use it. Raises OSError where there can be none.
    """
    path = folder / KEY_FILE
    try:
        text = _text(path) or _make_key(path, note_new)
    except OSError as error:
        help = "Set `KOI_CONFIG_DIR` to a folder you may write."
        raise SettingsError(f"the key `{path}` cannot be used: {reason(error)}", help=help) from error
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != BYTES:
        help = f"Remove it with `rm {path}`; journals from before then count as unsigned."
        raise SettingsError(f"the key `{path}` is damaged", help=help)
    return key


def service_key(folder: Path) -> bytes | None:
    """The key of the service of a folder, which nobody else can read. Raises SettingsError.

    Args:
        folder: of the project.

    Returns:
        None where it may have come with files of others: this person has neither made it nor trusted its folder.
    """
    place, config = folder / STATE_FOLDER, settings.config_folder()
    is_trusted = settings.variable(settings.TRUST_VARIABLE) == "1"

    def note_new(text: str) -> None:
        with suppress(*((OSError,) if is_trusted else ())):
            note_key(fingerprint(text), folder, config)

    key, path = signing_key(place, note_new), place / KEY_FILE
    if os.name == "posix" and path.stat().st_mode & OTHERS:
        help = f"If it is yours, `chmod 600 {path}`; remove it if it came with files of somebody else."
        raise SettingsError(f"the key `{path}` can be read by others, so it does not count", help=help)
    if counts(key.hex(), folder, config):
        return key
    if not is_trusted:
        return None
    with suppress(OSError):
        note_key(fingerprint(key.hex(), folder), folder, config)
    return key


def _text(path: Path) -> str:
    """The content of the file, no longer than a key; empty where there is none. Raises OSError."""
    try:
        content = read_regular_file(path, MAX_KEY_BYTES)
    except FileNotFoundError:
        return ""
    return content.decode("ascii", "replace").strip() or "-"


def _make_key(path: Path, note_new: Callable[[str], None]) -> str:
    """A new key, unless another process has made one meanwhile; nobody sees half of it. Raises OSError."""
    make_state_folder(path.parent, 0o700)
    with ExitStack() as undo:
        undo.enter_context(locked_folder(path.parent))
        known = _text(path)
        if known:
            return known
        text = os.urandom(BYTES).hex()
        beside = path.with_name(f".{path.name}-{os.urandom(4).hex()}")
        undo.callback(beside.unlink, missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        note_new(text)
        os.replace(beside, path)
        return text
