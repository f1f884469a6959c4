"""A keyring of the kind that systems have, kept in a file for tests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class FileKeyring(KeyringBackend):
    """A keyring in the file that TEST_KEYRING names; keeps nothing where that is empty."""

    priority: Any = 1
    name: Any = "file for tests"

    def get_password(self, service: str, username: str) -> str | None:
        """A value."""
        return self._all().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a value."""
        self._write({**self._all(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        """Remove a value."""
        kept = self._all()
        if kept.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError("it is not there")
        self._write(kept)

    def _all(self) -> dict[str, str]:
        path = Path(os.environ["TEST_KEYRING"])
        return json.loads(path.read_text()) if path.exists() else {}

    def _write(self, kept: dict[str, str]) -> None:
        Path(os.environ["TEST_KEYRING"]).write_text(json.dumps(kept))
