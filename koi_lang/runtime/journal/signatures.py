"""Signatures of a journal's lines, each of a line and all lines before it.

They are made with a key of the machine, for the folder that the run works in, or with the key of a service. Nobody else
can write a line, change one, or add one behind others, so that the last signature is right; only the last lines can be
cut off unnoticed.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass

from koi_lang.runtime.journal.checksums import parts

MAC_BYTES = 12


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
