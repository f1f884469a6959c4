"""Bytes of a file to its text and back, with all that an edit must leave as it is: ends of lines, byte order mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from koi_lang.errors import AgentError, UnreadableFileError
from koi_lang.std.code.line_changes import EditedText, LineChange, split_lines

MAX_BYTES = 5_000_000
MARK = b"\xef\xbb\xbf"
WIDE_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
# What `iconv` calls by another name.
ICONV = {"Latin-1": "ISO-8859-1"}
CONTROLS = bytes(set(range(32)) - set(b"\b\t\n\f\r\x1b")) + b"\x7f"
LOOKED_AT = 100_000


@dataclass(frozen=True, slots=True)
class TextFile:
    r"""The text of a file.

    Attributes:
        text: lines end with `\n`, whatever they end with in the file.
        end: what lines end with in the file, `\n` or `\r\n`; for mixed files what most of them end with.
        own_ends: the end of every line, the last one's empty where it has none; empty where all have `end`.
        has_mark: whether the file begins with a byte order mark, which `text` does not.
    """

    text: str
    end: str = "\n"
    own_ends: tuple[str, ...] = ()
    has_mark: bool = False


def require_size(size: int, name: str) -> None:
    """Raise AgentError for more bytes than a file may have to be read or changed as a text."""
    if size > MAX_BYTES:
        help = "Use `grep` or a command for a file of this size."
        raise AgentError(f"`{name}` would be {size:,} bytes, and {MAX_BYTES:,} is the most for a text", help=help)


def decode_file(data: bytes, name: str) -> TextFile:
    """The text of a file, with all that an edit is to leave. Raises as `text_in`, and AgentError for a large one."""
    require_size(len(data), name)
    text, has_mark = text_in(data, name), data.startswith(MARK)
    lines, windows = text.count("\n"), text.count("\r\n")
    if windows in (0, lines):
        return TextFile(text.replace("\r\n", "\n"), "\r\n" if windows else "\n", (), has_mark)
    pieces = text.split("\n")
    ends = tuple("\r\n" if each.endswith("\r") else "\n" for each in pieces[:-1]) + ("",) * bool(pieces[-1])
    return TextFile(text.replace("\r\n", "\n"), "\r\n" if 2 * windows > lines else "\n", ends, has_mark)


def text_in(data: bytes, name: str) -> str:
    """Bytes in UTF-8 as they are, without a byte order mark.

    Raises:
        UnreadableFileError: they are in another encoding, which is named, or binary.
    """
    try:
        text = data.removeprefix(MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _no_text(data, name, 1 + data.count(b"\n", 0, error.start)) from error
    if "\0" in text:
        raise _no_text(data, name, 1)
    return text


def encode_file(file: TextFile, edit: EditedText, name: str) -> bytes:
    """The bytes of a file after an edit of its text. Raises AgentError for an unencodable one."""
    if file.own_ends:
        lines, is_ended = split_lines(edit.text)
        ends = _ends_after(file, edit.changes)
        text = "".join(line + end for line, end in zip(lines, ends, strict=True))
        text = text if is_ended else text.removesuffix(ends[-1])
    else:
        text = edit.text if file.end == "\n" else edit.text.replace("\n", file.end)
    return _encode(text, name, file.has_mark)


def encode_new(text: str, name: str) -> bytes:
    """The bytes of a new file. Raises AgentError for an unencodable text."""
    return _encode(text, name, has_mark=False)


def plain_ends(text: str) -> str:
    """A text of a model with plain line ends and no byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _encode(text: str, name: str, has_mark: bool) -> bytes:
    if "\0" in text:
        raise AgentError(f"the new text of `{name}` holds a NUL character, with which it were no text any more")
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = 1 + text.count("\n", 0, error.start)
        raise AgentError(f"line {line} of the new text of `{name}` holds half of a character") from error
    require_size(len(data), name)
    return MARK + data if has_mark else data


def _ends_after(file: TextFile, changes: Sequence[LineChange]) -> list[str]:
    """The ends of all lines: old lines keep theirs, new ones have that of the line they replace or stand behind."""
    old = [*file.own_ends[:-1], file.own_ends[-1] or file.own_ends[-2]]
    out: list[str] = []
    at = 0
    for change in changes:
        out += old[at : change.start]
        own = old[change.start : change.end][: len(change.lines)]
        near = own or out[-1:] or old[change.end : change.end + 1] or [file.end]
        out += own + near[-1:] * (len(change.lines) - len(own))
        at = change.end
    return out + old[at:]


def _no_text(data: bytes, name: str, line: int) -> UnreadableFileError:
    encoding = _guess_encoding(data)
    if encoding is None:
        return UnreadableFileError(f"`{name}` is binary, and only texts are read and changed here")
    help = f"Convert it first, as `iconv -f {ICONV.get(encoding, encoding)} -t UTF-8` does."
    return UnreadableFileError(f"`{name}` is not in UTF-8 but, it seems, in {encoding} (line {line})", help=help)


def _guess_encoding(data: bytes) -> str | None:
    """The most likely encoding; None for binary data."""
    for mark, encoding in WIDE_MARKS.items():
        if data.startswith(mark):
            return encoding
    part = data[:LOOKED_AT]
    if b"\0" in data:
        return _wide_encoding(part)
    controls = len(part) - len(part.translate(None, CONTROLS))
    if controls * 100 > len(part):
        return None
    return "Windows-1252" if any(0x80 <= byte < 0xA0 for byte in part) else "Latin-1"


def _wide_encoding(part: bytes) -> str | None:
    """Which of the two UTF-16, by where the empty halves of letters are; None where they are elsewhere, too."""
    even, odd = part[::2].count(0), part[1::2].count(0)
    if len(part) % 2 or max(even, odd) * 4 < len(part) or min(even, odd) * 50 > len(part):
        return None
    return "UTF-16LE" if odd > even else "UTF-16BE"
