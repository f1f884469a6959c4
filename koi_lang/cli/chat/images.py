"""The images of a conversation: pasted, dropped, named or in the clipboard, and the marks that stand for them."""

from __future__ import annotations

import asyncio
import re
import shutil
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shlex import split
from typing import Any
from urllib.parse import unquote, urlsplit

from koi_lang.cli.ui.text import one_line
from koi_lang.errors import UsageError, reason
from koi_lang.llm.images import FORMS, BadImageError, Image, require_small, size_text
from koi_lang.runtime.model_calls.images import image_in

DATA = re.compile(r"data:image/[\w.+-]+;base64,(?P<data>[\w+/=\s]+)")
MARK = re.compile(r"\[image (\d+): [^\[\]\n]*\]")
BRACKETS = str.maketrans("[]", "()")
# Also those that models do not read, so that a person learns of it.
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif"})
MAX_PATH_CHARS = 16_384
PASTED = "pasted"
# For Wayland, X11 and macOS; a tool that has no display, or finds no image, fails, and the next one is asked.
TOOLS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
    ("osascript", "-e", "get the clipboard as «class PNGf»"),
)
# How AppleScript writes data.
WRITTEN = re.compile(rb"\xc2\xabdata PNGf([0-9A-F]+)\xc2\xbb\s*")
CLIPBOARD_S = 3.0
MAX_CLIPBOARD_BYTES = 64 * 2**20


class Attached:
    """The images of a conversation by their marks, such as `[image 1: photo.png, 12 kB]`; a text has those it names."""

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}

    def add(self, name: str, image: Image) -> str:
        """Give an image a mark."""
        number = max((int(mark[1]) for mark in map(MARK.match, self._images) if mark), default=0) + 1
        shown = one_line(name).translate(BRACKETS)
        mark = f"[image {number}: {shown}, {size_text(image.size)}]"
        self._images[mark] = image
        return mark

    def recall(self, text: str, values: Sequence[Any]) -> None:
        """Know the images of a text that was written earlier, as values; nothing where they are not one a mark."""
        marks = _marks(text)
        for mark, image in zip(marks, map(image_in, values), strict=False) if len(marks) == len(values) else ():
            if image is not None:
                self._images.setdefault(mark, image)

    def of(self, text: str) -> list[Image]:
        """The images that a text names, in its order."""
        return [self._images[mark] for mark in _marks(text) if mark in self._images]

    def mark_before(self, text: str) -> str:
        """The mark that a text ends with, and the blank behind it; empty where it ends otherwise."""
        ends = (mark + blank for mark in self._images for blank in ("", " "))
        return next((end for end in ends if text.endswith(end)), "")


def _marks(text: str) -> list[str]:
    """The marks in a text, each once."""
    return list(dict.fromkeys(mark[0] for mark in MARK.finditer(text)))


def pasted_images(text: str) -> list[tuple[str, Image]]:
    """The images, with names, that a text is nothing but; none for other texts. Raises UsageError or BadImageError."""
    data = DATA.fullmatch(text.strip())
    if data is not None:
        return [(PASTED, Image.from_base64("".join(data["data"].split()), PASTED))]
    return [(path.name, image_file(path)) for path in pasted_files(text)]


def pasted_files(text: str) -> list[Path]:
    """The image files that a text is nothing but paths of, as terminals write what is dropped on them."""
    if len(text) > MAX_PATH_CHARS:
        return []
    paths = [path for line in text.splitlines() if line.strip() for path in _paths(line.strip())]
    return [] if None in paths else [path for path in paths if path is not None]


def _paths(line: str) -> list[Path | None]:
    """The files of a line: the line itself where it is a path, else its words, quoted as for a shell."""
    whole = _file(line)
    if whole is not None:
        return [whole]
    try:
        return [_file(word) for word in split(line)]
    except ValueError:  # a quote without its end
        return [None]


def _file(word: str) -> Path | None:
    """The image file that a word names, as a path or as a `file:` address."""
    try:
        path = Path(unquote(urlsplit(word).path)) if word.startswith("file:") else Path(word).expanduser()
        return path if path.suffix.lower() in SUFFIXES and path.is_file() else None
    except (ValueError, OSError, RuntimeError):  # no path at all
        return None


def named_file(text: str) -> Path:
    """The file that a person names, in any of the ways it may be pasted."""
    files = pasted_files(text)
    try:
        return files[0] if len(files) == 1 else Path(text).expanduser()
    except RuntimeError:  # the home of somebody who is not known
        return Path(text)


def image_file(path: Path) -> Image:
    """The image in a file. Raises UsageError or BadImageError."""
    try:
        if path.exists() and not path.is_file():
            raise BadImageError(f"`{path}` is no file", help=FORMS)
        require_small(path.stat().st_size, path.name)
        return Image.of(path.read_bytes(), path.name)
    except (OSError, ValueError) as error:
        problem = reason(error) if isinstance(error, OSError) else "this is no path"
        raise UsageError(f"cannot read `{path}`: {problem}", help="Name a file: `/image photo.png`.") from error


# ---------------------------------------------------------------- the clipboard


async def clipboard_image(limit_s: float = CLIPBOARD_S) -> bytes:
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
            while len(content) <= MAX_CLIPBOARD_BYTES and (piece := await process.stdout.read(1 << 20)):
                content += piece
            return content if len(content) <= MAX_CLIPBOARD_BYTES and await process.wait() == 0 else b""
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
