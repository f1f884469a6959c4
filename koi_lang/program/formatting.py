"""Files of programs in the layout of Koi: read, laid out, and replaced at once."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from koi_lang.compiler.formatter import format_source
from koi_lang.diagnostics import CompileError, Diagnostic, LabeledSpan
from koi_lang.errors import KoiError, UsageError, reason
from koi_lang.source import Source, Span, decode


@dataclass(frozen=True, slots=True)
class Formatted:
    """A program before and after it was laid out.

    Attributes:
        path: as it was given.
        read: the bytes of the file; `text` is what they say, `after` what they are to say.
    """

    path: str
    read: bytes
    text: str
    after: str

    @property
    def is_changed(self) -> bool:
        """Whether the layout is another one than that of the file."""
        return self.after.encode("utf-8") != self.read


def format_file(path: str) -> Formatted:
    """Lay out a file, which stays as it is.

    Raises:
        UsageError: it cannot be read.
        CompileError: it has errors, or is no UTF-8.
        FormattingError: a mistake of the formatter.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {reason(error)}") from error
    return format_bytes(data, path)


def format_bytes(data: bytes, path: str) -> Formatted:
    """Lay out the content of a file; raises what `format_file` does but UsageError."""
    try:
        source = decode(data, path)
    except UnicodeDecodeError as error:
        raise CompileError([_not_utf8(data, path, error.start)]) from error
    return Formatted(path, data, source.text, format_source(source))


def replace_file(formatted: Formatted) -> None:
    """Write a layout to its file: whoever reads it sees the old text or the new one.

    Links stay links, and the file keeps its permissions. Raises KoiError where it has changed since it was read, or
    cannot be written.
    """
    file = Path(formatted.path).resolve()
    beside = file.with_name(f".{file.name[:100]}.{secrets.token_hex(4)}")
    try:
        _write(beside, formatted.after.encode("utf-8"), like=file)
        if file.read_bytes() != formatted.read:
            help = "Run the command again."
            raise KoiError(f"`{formatted.path}` was changed by somebody else meanwhile, and is left alone", help=help)
        os.replace(beside, file)
    except OSError as error:
        raise KoiError(f"`{formatted.path}` cannot be written: {reason(error)}") from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _write(beside: Path, data: bytes, *, like: Path) -> None:
    """A new file with the permissions, and where that is allowed the owner, of another one."""
    known = like.stat()
    with open(beside, "xb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    with suppress(OSError, AttributeError):
        os.chown(beside, known.st_uid, known.st_gid)
    beside.chmod(known.st_mode & 0o7777)


def _not_utf8(data: bytes, path: str, start: int) -> Diagnostic:
    source = Source(path, data.decode("utf-8", "replace"))
    at = len(data[:start].decode("utf-8", "replace"))
    place = LabeledSpan(source, Span(at, at + 1))
    return Diagnostic(
        "E0105", "error", "this file is not UTF-8 text", place, help="save the file with the encoding UTF-8."
    )
