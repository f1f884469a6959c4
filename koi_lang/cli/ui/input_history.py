"""What a person has typed in a folder, kept without secrets for the next time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory

from koi_lang.system.open_folders import STATE_FOLDER, make_state_file

CHAT = "chat-history"
# Characters of the file; what is older is left out when it is read.
MAX_BYTES = 1 << 19


class InputHistory(FileHistory):
    """A history in a file that only its owner can read; one that cannot be written lasts as long as the process.

    Args:
        redact: takes secrets out of a text.
        counts: whether what is typed now is to be kept.
        name: of the file, beside the journals of the folder.
    """

    def __init__(
        self, folder: Path, redact: Callable[[str], str], counts: Callable[[], bool], name: str = CHAT
    ) -> None:
        self._path = folder / STATE_FOLDER / name
        super().__init__(str(self._path))
        self._redact, self._counts = redact, counts

    def append_string(self, string: str) -> None:
        """Keep what was typed, once if it is typed several times in a row."""
        newest = self.get_strings()[-1:]
        if self._counts() and string.strip() and newest != [string]:
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """What was kept, the newest first."""
        if self._path.is_file() and self._path.stat().st_size > MAX_BYTES:
            self._drop_older_half()
        try:
            return list(super().load_history_strings())
        except OSError:  # it belongs to somebody else
            return []

    def store_string(self, string: str) -> None:
        """Write what was typed, without secrets."""
        try:
            make_state_file(self._path)
            super().store_string(self._redact(string))
        except OSError:  # a folder that cannot be written is no reason to end a conversation
            return

    def _drop_older_half(self) -> None:
        """Leave the older half away."""
        try:
            text = self._path.read_bytes()[-MAX_BYTES // 2 :]
            self._path.write_bytes(text[text.find(b"\n# ") + 1 :])
        except OSError:  # as above
            return
