"""Small images for tests."""

from __future__ import annotations

import struct
import zlib

from koi_lang.llm.images import Image


def png(colour: int = 0) -> bytes:
    """A picture of one pixel."""
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes([0, colour, 0, 0]))),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_part, (*parts, (b"IEND", b""))))


def _part(part: tuple[bytes, bytes]) -> bytes:
    name, content = part
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


RED, DARK = Image.of(png(255)), Image.of(png(1))
