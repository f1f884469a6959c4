"""The clipboard to the image in it, asked for with whatever tool is installed."""

from __future__ import annotations

import asyncio
import re
import shutil
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from koi_lang.errors import UsageError

# For Wayland, X11 and macOS; a tool that has no display, or finds no image, fails, and the next one is asked.
TOOLS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
    ("osascript", "-e", "get the clipboard as «class PNGf»"),
)
# How AppleScript writes data.
WRITTEN = re.compile(rb"\xc2\xabdata PNGf([0-9A-F]+)\xc2\xbb\s*")
LIMIT_S = 3.0
MAX_BYTES = 64 * 2**20


async def clipboard_image(limit_s: float = LIMIT_S) -> bytes:
    """The bytes of the image in the clipboard. Raises UsageError where there is none, or no tool that knows."""
    installed = [tool for tool in TOOLS if shutil.which(tool[0])]
    if not installed:
        help = "Install `wl-paste` (Wayland), `xclip` (X11) or `pngpaste` (macOS), or use `/image PATH`."
        raise UsageError("the clipboard cannot be read here", help=help)
    for tool in installed:
        content = await _output(tool, limit_s)
        if content:
            written = WRITTEN.fullmatch(content)
            return bytes.fromhex(written[1].decode()) if written else content
    raise UsageError("the clipboard holds no image", help="Copy one, or attach a file with `/image PATH`.")


async def _output(tool: tuple[str, ...], limit_s: float) -> bytes:
    """What a tool writes; nothing when it fails, writes too much or takes too long."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(limit_s), _running(tool) as process:
            assert process.stdout is not None, "a pipe was asked for"
            content = b""
            while len(content) <= MAX_BYTES and (piece := await process.stdout.read(1 << 20)):
                content += piece
            return content if len(content) <= MAX_BYTES and await process.wait() == 0 else b""
    return b""


@asynccontextmanager
async def _running(tool: tuple[str, ...]) -> AsyncIterator[Process]:
    """A process that is gone at the end of the block."""
    process = await asyncio.create_subprocess_exec(*tool, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
