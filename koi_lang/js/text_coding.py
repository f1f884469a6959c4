"""The globals `TextEncoder` and `TextDecoder`: texts to bytes and back."""

from __future__ import annotations

import codecs
from typing import ClassVar

from koi_lang.js.byte_arrays import ByteArrayValue, byte_array
from koi_lang.js.conversions import text, truth
from koi_lang.js.errors import ErrorValue, RangeErrorValue, TypeErrorValue
from koi_lang.js.method_tables import Constructor, holder
from koi_lang.js.own_properties import is_record
from koi_lang.js.undefined import Value, undefined
from koi_lang.js.url_encoding import scalar_text

# The names that encodings go by, with that of the standard.
_LABELS = {
    label: encoding
    for encoding, labels in {
        "utf-8": "utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
        "utf-16le": "utf-16le utf-16 ucs-2 unicode iso-10646-ucs-2 csunicode unicodefeff",
        "utf-16be": "utf-16be unicodefffe",
        "windows-1252": "windows-1252 x-cp1252 cp1252 latin1 l1 ascii us-ascii iso-8859-1 iso8859-1 iso_8859-1",
    }.items()
    for label in labels.split()
}
_CODECS = {"utf-8": "utf-8", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be", "windows-1252": "cp1252"}


class TextEncoderValue:
    """Texts to UTF-8."""

    __slots__ = ()
    __koi_members__: ClassVar[dict[str, str]] = {
        "encoding": "encoding", "encode": "encode", "encodeInto": "encode_into",
    }  # fmt: skip

    def __koi_shape__(self) -> tuple[str, list[tuple[str, Value]]]:
        """How it is shown."""
        return "", [("encoding", self.encoding)]

    @property
    def encoding(self) -> str:
        """There is one."""
        return "utf-8"

    def encode(self, source: Value = undefined) -> ByteArrayValue:
        """The bytes of a text."""
        return byte_array(b"" if source is undefined else scalar_text(text(source)).encode())

    def encode_into(self, source: Value, target: Value) -> dict[str, Value]:
        """Write as many whole characters as there is room for; `read` counts what they are in UTF-16."""
        if not isinstance(target, ByteArrayValue):
            raise _refusal('The "dest" argument must be an instance of Uint8Array.')
        written = scalar_text(text(source)).encode()[: len(target)].decode("utf-8", "ignore")
        target.set(written.encode())
        return {"read": len(written.encode("utf-16-le")) // 2, "written": len(written.encode())}


class TextDecoderValue:
    """Bytes to texts.

    Args:
        encoding: its name in the standard.
        fatal: whether bytes that stand for nothing are an error; otherwise each becomes `\ufffd`.
        keeps_mark: whether a mark at the beginning, which says in what order bytes stand, is part of the text.
    """

    __slots__ = ("_decoder", "_encoding", "_fatal", "_is_begun", "_keeps_mark")
    __koi_members__: ClassVar[dict[str, str]] = {
        "encoding": "encoding", "fatal": "fatal", "ignoreBOM": "keeps_mark", "decode": "decode",
    }  # fmt: skip

    def __init__(self, encoding: str, fatal: bool, keeps_mark: bool) -> None:
        self._encoding = encoding
        self._fatal = fatal
        self._keeps_mark = keeps_mark
        self._is_begun = False
        self._start()

    def __koi_shape__(self) -> tuple[str, list[tuple[str, Value]]]:
        """How it is shown."""
        members = [("encoding", self._encoding), ("fatal", self._fatal), ("ignoreBOM", self._keeps_mark)]
        return "TextDecoder", members

    @property
    def encoding(self) -> str:
        """The name of the encoding."""
        return self._encoding

    @property
    def fatal(self) -> bool:
        """Whether wrong bytes are an error."""
        return self._fatal

    @property
    def keeps_mark(self) -> bool:
        """Whether a mark at the beginning is kept."""
        return self._keeps_mark

    def decode(self, source: Value = undefined, options: Value = undefined) -> str:
        """The text of some bytes; with `stream` a character may go on in the next ones. Raises TypeErrorValue."""
        given = b"" if source is undefined else source
        if not isinstance(given, ByteArrayValue | bytes | bytearray):
            raise _refusal(
                'The "list" argument must be an instance of SharedArrayBuffer, ArrayBuffer or ArrayBufferView.'
            )
        goes_on = is_record(options) and truth(options.get("stream", False))
        try:
            decoded = self._decoder.decode(bytes(given), not goes_on)
        except UnicodeDecodeError as error:
            self._start()
            message = f"The encoded data was not valid for encoding {self._encoding}"
            raise _refusal(message, "ERR_ENCODING_INVALID_ENCODED_DATA") from error
        if not self._is_begun and decoded:
            self._is_begun = True
            decoded = decoded if self._keeps_mark else decoded.removeprefix("\ufeff")
        if not goes_on:
            self._start()
        return decoded

    def _start(self) -> None:
        errors = "strict" if self._fatal else "replace"
        if self._encoding == "windows-1252":
            codecs.register_error("koi.controls", _read_control)
            errors = "koi.controls"
        self._decoder = codecs.getincrementaldecoder(_CODECS[self._encoding])(errors)
        self._is_begun = self._encoding == "windows-1252"


def _read_control(error: UnicodeError) -> tuple[str, int]:
    """The bytes that Python's table of Windows-1252 has no character for are controls."""
    assert isinstance(error, UnicodeDecodeError)
    return chr(error.object[error.start]), error.start + 1


def _refusal(message: str, code: str = "ERR_INVALID_ARG_TYPE") -> ErrorValue:
    refusal = TypeErrorValue(message)
    refusal.__koi_extra__["code"] = code
    return refusal


def _build(label: Value = undefined, options: Value = undefined) -> TextDecoderValue:
    name = "utf-8" if label is undefined else text(label)
    encoding = _LABELS.get(name.strip("\t\n\f\r ").lower())
    if encoding is None:
        refusal = RangeErrorValue(f'The "{name}" encoding is not supported')
        refusal.__koi_extra__["code"] = "ERR_ENCODING_NOT_SUPPORTED"
        raise refusal
    wanted = options if is_record(options) else {}
    return TextDecoderValue(encoding, truth(wanted.get("fatal", False)), truth(wanted.get("ignoreBOM", False)))


TEXTENCODER = Constructor("TextEncoder", TextEncoderValue, None, holder(TextEncoderValue))
TEXTDECODER = Constructor("TextDecoder", _build, None, holder(TextDecoderValue))
