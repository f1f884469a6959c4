"""The keys that koi keeps: in the keyring of the system, or where there is none in a file that only its owner reads.

The file also lists which keys the keyring has, so that nobody has to ask it for keys that were never stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.errors import KoiError, SettingsError, reason
from koi_lang.setup.keys import system
from koi_lang.system.file_locks import locked_folder

FILE, BEGUN = "keys.json", ".keys-"
KEYRING, IN_FILE = "keyring", "file"


@dataclass(frozen=True, slots=True)
class KeyStore:
    """The keys kept for one person, by the name of their environment variable.

    Attributes:
        folder: where the file is; it need not exist.
    """

    folder: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / FILE

    def places(self) -> dict[str, str]:
        """Where each key is kept: `keyring` or `file`. Raises SettingsError when the file is damaged."""
        return {name: KEYRING if entry is None else IN_FILE for name, entry in self._entries().items()}

    def in_file(self) -> dict[str, str]:
        """The keys in the file, for redaction; none where it cannot be read."""
        with suppress(KoiError):
            return {name: key for name, key in self._entries().items() if key}
        return {}

    def value(self, name: str) -> str | None:
        """A key; None when it is not kept. Raises KoiError when file or keyring cannot be read."""
        entries = self._entries()
        if name not in entries:
            return None
        return entries[name] or system.read(name)

    def keep(self, name: str, value: str, *, is_secret: bool = True) -> str:
        """Store a key in place of any earlier one; returns the place. Public values go to the file. Raises KoiError."""
        with self._alone():
            entries = self._entries()
            entry: str | None = value
            with suppress(system.KeyringError):
                if is_secret:
                    system.write(name, value)
                    entry = None
            self._write({**entries, name: entry})
        return IN_FILE if entry else KEYRING

    def forget(self, name: str) -> list[str]:
        """Remove every copy of a key; gives the places it was in. Raises KoiError when one cannot be removed."""
        if not self.folder.is_dir():
            return [KEYRING] if system.delete(name) else []
        with self._alone():
            entries = self._entries()
            found = [KEYRING] if _delete_key(name, listed=name in entries and entries[name] is None) else []
            if name in entries:
                found += [IN_FILE] if entries[name] else []
                self._write({other: entry for other, entry in entries.items() if other != name})
        return found

    def _entries(self) -> dict[str, str | None]:
        """The file: a key, or None where the keyring has it."""
        try:
            loaded = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            help = "Set `KOI_CONFIG_DIR` to a folder you may read."
            raise SettingsError(f"the file of keys `{self.path}` cannot be read: {reason(error)}", help=help) from error
        except ValueError:
            loaded = None
        if not isinstance(loaded, dict) or not all(map(_is_entry, loaded.values())):
            help = f"Remove it with `rm {self.path}`, then store the keys again with `koi connect`."
            raise SettingsError(f"the file of keys `{self.path}` cannot be read", help=help) from None
        return {name: entry.get("key") for name, entry in loaded.items()}

    def _write(self, entries: Mapping[str, str | None]) -> None:
        """Write all entries beside the file, readable by nobody else from the beginning, and rename."""
        document = {
            name: {"in": KEYRING} if key is None else {"in": IN_FILE, "key": key} for name, key in entries.items()
        }
        temporary = self.folder / f"{BEGUN}{os.getpid()}"
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the folder against other commands; remains of a killed one are removed."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_folder(self.folder):
                for begun in self.folder.glob(f"{BEGUN}*"):
                    begun.unlink()
                yield
        except OSError as error:
            help = "Set `KOI_CONFIG_DIR` to a folder you may write."
            raise KoiError(f"keys cannot be kept in `{self.folder}`: {reason(error)}", help=help) from error


def _delete_key(name: str, *, listed: bool) -> bool:
    """Whether the keyring had a key, which is then gone. A keyring that fails matters only for a listed key."""
    try:
        return system.delete(name)
    except system.KeyringError:
        if listed:
            raise
        return False


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("key", ""), str)
