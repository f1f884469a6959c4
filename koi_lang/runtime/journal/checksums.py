"""Checksums at the ends of a journal's lines, which tell a line that was changed from one that was written so."""

from __future__ import annotations

import re
from zlib import crc32

# A line may have a signature behind its checksum.
END = re.compile(rb',"crc":"([0-9a-f]{8})"(?:(,"mac":"([\w-]{16})"))?\}\n\Z')
MAX_END_BYTES = len(b',"crc":"01234567","mac":"0123456789abcdef"}\n')


def seal_line(line: bytes, run: str) -> bytes:
    """A line with the checksum of a journal of a run; a line of another run's journal does not pass for one of it."""
    return b'%s,"crc":"%08x"}\n' % (line[:-2], _checksum(line[:-2], run))


def unseal_line(line: bytes) -> bytes:
    """A line as it was before it got its checksum; older journals have none."""
    found = _end(line)
    return line if found is None else line[: found.start()] + b"}\n"


def is_sealed(line: bytes) -> bool:
    """Whether a line has a checksum."""
    return _end(line) is not None


def is_changed(line: bytes, run: str) -> bool:
    """Whether a line has another checksum than it ought to have."""
    found = _end(line)
    return found is not None and int(found[1], 16) != _checksum(line[: found.start()], run)


def parts(line: bytes) -> tuple[bytes, bytes]:
    """The signed part of a line, and its signature; that is empty where the line has none."""
    found = _end(line)
    if found is None or found[3] is None:
        return line.removesuffix(b"}\n"), b""
    return line[: found.start(2)], found[3]


def _end(line: bytes) -> re.Match[bytes] | None:
    return END.search(line, max(0, len(line) - MAX_END_BYTES))


def _checksum(body: bytes, run: str) -> int:
    return crc32(body, crc32(run.encode("utf-8", "surrogatepass")))
