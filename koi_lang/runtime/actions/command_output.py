"""The output of a command: all of it within bounds, and its ends where there is no room for more."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import TYPE_CHECKING

from koi_lang.runtime.outputs.long_texts import MAX_BYTES, is_long
from koi_lang.runtime.outputs.run_outputs import MAX_OUTPUT_BYTES, MAX_RUN_BYTES
from koi_lang.system.open_folders import STATE_FOLDER

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort

# All sizes are in bytes. Both ends of a stream of which there is no more.
MAX_SHOWN_BYTES = 30_000
# The beginning of one that nobody keeps as an output; and the ends of one that is longer than an output may be.
MAX_HEAD_BYTES = 5_000_000
MAX_TAIL_OF_LONG_BYTES = 500_000
MAX_HEAD_OF_LONG_BYTES = MAX_OUTPUT_BYTES - MAX_TAIL_OF_LONG_BYTES - 1000
READ_SIZE = 65_536
# Colours, movements of the cursor, titles and links for terminals: models and programs read the text alone.
CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")


class Output:
    """A stream of a command, with bounded memory.

    Args:
        most_kept: of its beginning, in bytes.
        most_of_end: of its end.
        run: whose room for long outputs counts; None where none does.
    """

    def __init__(
        self, most_kept: int = MAX_HEAD_BYTES, most_of_end: int = MAX_SHOWN_BYTES // 2, run: RunPort | None = None
    ) -> None:
        self._most_kept = most_kept
        self._most_of_end = most_of_end
        self._run = run
        self._all = bytearray()
        self._end: deque[bytes] = deque()
        self._length = self._kept = self._taken = 0
        self._is_refused = False

    @staticmethod
    def of_run(run: RunPort) -> Output:
        """One of which a run keeps as much as there is room for."""
        return Output(MAX_HEAD_OF_LONG_BYTES, MAX_TAIL_OF_LONG_BYTES, run)

    @property
    def is_long(self) -> bool:
        """Whether it is not shown as a whole."""
        return self._length > MAX_SHOWN_BYTES

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Read to the end."""
        while piece := await stream.read(READ_SIZE):
            self.add(piece)

    def add(self, piece: bytes) -> None:
        """Take in the next piece."""
        self._length += len(piece)
        self._all += piece[: self._room_for(len(piece))]
        self._keep(piece)

    def _room_for(self, size: int) -> int:
        """How many of so many further bytes are kept of its beginning."""
        size = min(size, self._most_kept - len(self._all))
        if self._is_refused:
            return 0
        if self._run is None or len(self._all) + size <= MAX_BYTES:
            return size
        needed = len(self._all) + size - self._taken
        taken = self._run.outputs.take_room(needed)
        self._taken += taken
        self._is_refused = taken < needed
        return max(0, size - needed + taken)

    def _keep(self, piece: bytes) -> None:
        self._end.append(piece)
        self._kept += len(piece)
        while self._kept - len(self._end[0]) >= self._most_of_end:
            self._kept -= len(self._end.popleft())

    def beginning_bytes(self) -> bytes:
        """As much of it as is kept."""
        return bytes(self._all)

    def text(self) -> str:
        """It, or its beginning and its end."""
        if not self.is_long:
            return self._all.decode("utf-8", "replace")
        return self._ends(MAX_SHOWN_BYTES // 2, MAX_SHOWN_BYTES // 2)

    def whole_text(self) -> str:
        """The stored text, with a note on the omitted part in its place."""
        if self._length <= len(self._all):
            return self._all.decode("utf-8", "replace")
        return self._ends(len(self._all), min(self._most_of_end, self._length - len(self._all)))

    def _ends(self, first: int, last: int) -> str:
        begin = self._all[:first].decode("utf-8", "replace")
        end = b"".join(self._end)[-last:].decode("utf-8", "replace")
        left_out = self._length - min(first, len(self._all)) - last
        return f"{begin}\n… ({left_out} bytes left out{self._why()}) …\n{end}" if left_out > 0 else begin + end

    def _why(self) -> str:
        """Which bound was reached, as the end of a sentence."""
        if self._is_refused:
            return f"; a run keeps {MAX_RUN_BYTES:,} bytes of output, and this one has"
        is_too_long = self._run is not None and self._length > self._most_kept
        return f"; of one output {MAX_OUTPUT_BYTES:,} bytes are kept" if is_too_long else ""

    def release(self) -> None:
        """Give back the room that was taken for it."""
        if self._run is not None and self._taken:
            self._run.outputs.give_back(self._taken)
            self._taken = 0


async def output_fields(run: RunPort, outputs: dict[str, Output]) -> dict[str, str]:
    """The fields of a result for some streams: `stdoutFile` and the like for long ones, then their texts.

    What cannot be kept is there by its ends.
    """
    files: dict[str, str] = {}
    texts: dict[str, str] = {}
    for name, output in outputs.items():
        text = CONTROL.sub("", output.whole_text())
        output.release()
        kept = await run.outputs.keep_text(text) if is_long(text) else None
        if kept is not None:
            files[f"{name}File"] = f"{STATE_FOLDER}/outputs/{run.id}/{kept.number}"
        texts[name] = text if kept is not None or not is_long(text) else CONTROL.sub("", output.text())
    return files | texts
