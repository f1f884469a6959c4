"""The output of a command: its ends for whoever asked for it, and all of it in a file where that is long."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from koi_lang.runtime.journal.store import output_folder, remove_output

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort

# All sizes are in bytes. What is shown of one stream.
MOST_OUTPUT = 30_000
# Of one stream in a file, and of all files of a run.
MOST_IN_A_FILE = 5_000_000
MOST_OF_A_RUN = 50_000_000
READ_SIZE = 65_536


class Output:
    """What a command writes to one stream; what is kept in memory stays bounded however much that is.

    Args:
        most_kept: of its beginning, in bytes; what a file may have, unless told.
    """

    def __init__(self, most_kept: int | None = None) -> None:
        self._most_kept = MOST_IN_A_FILE if most_kept is None else most_kept
        self._all = bytearray()
        self._end: deque[bytes] = deque()
        self._length = self._kept = 0

    @property
    def is_long(self) -> bool:
        """Whether it is not shown as a whole."""
        return self._length > MOST_OUTPUT

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Read to the end."""
        while piece := await stream.read(READ_SIZE):
            self._length += len(piece)
            self._all += piece[: self._most_kept - len(self._all)]
            self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        self._end.append(piece)
        self._kept += len(piece)
        while self._kept - len(self._end[0]) >= MOST_OUTPUT // 2:
            self._kept -= len(self._end.popleft())

    def beginning_bytes(self) -> bytes:
        """As much of it as is kept."""
        return bytes(self._all)

    def beginning(self) -> str:
        """As much of it as a file may have, as text."""
        return self._all.decode("utf-8", "replace")

    def text(self, file: str | None = None) -> str:
        """It, or its beginning and its end.

        Args:
            file: where more of it is.
        """
        if not self.is_long:
            return self.beginning()
        half = MOST_OUTPUT // 2
        begin = self._all[:half].decode("utf-8", "replace")
        end = b"".join(self._end)[-half:].decode("utf-8", "replace")
        return f"{begin}\n… ({self._length - 2 * half} bytes left out{self._where(file)}) …\n{end}"

    def _where(self, file: str | None) -> str:
        if file is None:
            return ""
        what = "all of it" if self._length <= MOST_IN_A_FILE else f"the first {MOST_IN_A_FILE:,} bytes"
        return f"; {what} in `{file}`"


async def output_fields(run: RunPort, outputs: dict[str, Output]) -> dict[str, str]:
    """The fields of a result for some streams: `stdoutFile` and the like for what is long, then their texts."""
    files = {name: await _file_of(run, name, output) for name, output in outputs.items() if output.is_long}
    known = {f"{name}File": file for name, file in files.items() if file is not None}
    return known | {name: output.text(files.get(name)) for name, output in outputs.items()}


async def _file_of(run: RunPort, name: str, output: Output) -> str | None:
    """A new file of a run with an output, without secrets, by its path from the folder of the run.

    Without a journal the files last as long as the run does, else as long as the journal.

    Returns:
        None where the run has kept as much as it may, or the file cannot be written.
    """
    text = await asyncio.to_thread(run.redact, output.beginning())
    folder = output_folder(run.folder, run.id)
    try:
        if not folder.exists() and not run.detailed:
            run.keep_until_end(lambda: asyncio.to_thread(remove_output, folder))
        return str(_write_file(folder, name, text.encode("utf-8", "replace")).relative_to(run.folder))
    except OSError:
        return None


def _write_file(folder: Path, name: str, data: bytes) -> Path:
    """A new file with some data. Raises OSError, also where there is no room for more files of the run."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = list(folder.iterdir())
    if folder.is_symlink() or sum(path.lstat().st_size for path in known) + len(data) > MOST_OF_A_RUN:
        raise OSError(f"no more output is kept in {folder}")
    path = folder / f"{len(known) + 1}-{name}.txt"
    with ExitStack() as undo, os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        undo.callback(path.unlink)
        file.write(data)
        file.flush()
        undo.pop_all()
    return path
