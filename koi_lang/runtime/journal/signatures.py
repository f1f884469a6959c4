"""Signatures of a journal's lines, each of a line and all lines before it.

They are made with a key of the machine, for the folder that the run works in, or with the key of a service. Nobody else
can write a line, change one, or add one behind others, so that the last signature is right; only the last lines can be
cut off unnoticed.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256

from koi_lang.runtime.journal.checksums import parts

MAC_BYTES = 12
# Of SHA-256, in bytes, and what HMAC combines a key with.
BLOCK = 64
INNER = 0x36
OUTER = 0x5C


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
        # An HMAC, of which the part that is the same for all lines is computed once.
        self._inner, self._outer = (sha256(_pad_key(signer.key, pad)) for pad in (INNER, OUTER))
        folder = signer.folder.encode("utf-8", "surrogateescape")
        self.state = state or self._digest(b"koi journal in " + folder)

    def sign(self, line: bytes) -> bytes:
        """A line, which has no signature, with one."""
        return b'%s,"mac":"%s"}\n' % (line[:-2], self.add(line[:-2]))

    def add(self, content: bytes) -> bytes:
        """The signature of a line with some content."""
        self.state = self._digest(self.state + content)
        return urlsafe_b64encode(self.state[:MAC_BYTES])

    def _digest(self, content: bytes) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(content)
        outer.update(inner.digest())
        return outer.digest()


def _pad_key(key: bytes, pad: int) -> bytes:
    """The first block of one of the two hashes of an HMAC."""
    block = key if len(key) <= BLOCK else sha256(key).digest()
    return bytes(byte ^ pad for byte in block.ljust(BLOCK, b"\0"))


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
