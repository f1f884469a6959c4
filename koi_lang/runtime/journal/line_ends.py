"""Checksums and signatures at the ends of a journal's lines.

A checksum tells a line that was changed from one that was written so. A signature is of a line and all lines before it,
made with a key of the machine, for the folder that the run works in, or with the key of a service. Nobody else can
write a line, change one, or add one behind others, so that the last signature is right; only the last lines can be cut
off unnoticed.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from zlib import crc32

MAC_BYTES = 12
# A line may have a signature behind its checksum.
END = re.compile(rb',"crc":"([0-9a-f]{8})"(?:(,"mac":"([\w-]{16})"))?\}\n\Z')
MAX_END_BYTES = len(b',"crc":"01234567","mac":"0123456789abcdef"}\n')


# ---------------------------------------------------------------- checksums


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


# ---------------------------------------------------------------- signatures


@dataclass(frozen=True, slots=True)
class Signer:
    """The key that signs the journals of a folder."""

    key: bytes
    folder: str


class Chain:
    """Signs one line after the other.

    Args:
        state: what all lines before have come to; empty before the first one.

    Attributes:
        state: what all lines up to now have come to.
    """

    def __init__(self, signer: Signer, state: bytes = b"") -> None:
        self._key, folder = signer.key, signer.folder.encode("utf-8", "surrogateescape")
        self.state = state or hmac.digest(self._key, b"koi journal in " + folder, "sha256")

    def sign(self, line: bytes) -> bytes:
        """A line, which has no signature, with one."""
        return b'%s,"mac":"%s"}\n' % (line[:-2], self.add(line[:-2]))

    def add(self, content: bytes) -> bytes:
        """The signature of a line with some content."""
        self.state = hmac.digest(self._key, self.state + content, "sha256")
        return urlsafe_b64encode(self.state[:MAC_BYTES])


class Authenticity:
    """Up to where a journal was signed by somebody, of the whole lines that were added.

    Attributes:
        signer: whose signatures are looked for.
        lines: how many there are.
        signed: how many of them the last right signature is for.
        has_signatures: whether any line has one, right or not.
    """

    def __init__(self, signer: Signer) -> None:
        self.signer, self._chain = signer, Chain(signer)
        self.lines = self.signed = 0
        self.has_signatures = False

    def add(self, line: bytes) -> None:
        """Take the next line; one that was not written to its end does not count."""
        if not line.endswith(b"\n"):
            return
        content, signature = parts(line)
        self.lines += 1
        self.has_signatures |= bool(signature)
        if hmac.compare_digest(self._chain.add(content), signature):
            self.signed = self.lines

    @property
    def is_whole(self) -> bool:
        """Whether the signature of the last line is right, and so that of all."""
        return 0 < self.signed == self.lines

    @property
    def state(self) -> bytes:
        """The running digest of all lines."""
        return self._chain.state
