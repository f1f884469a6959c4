"""`Uint8Array`, `TextEncoder` and `TextDecoder`, against Node."""

from __future__ import annotations

import pytest

from koi_lang.js.byte_arrays import byte_array
from koi_lang.js.call_helpers import get, has, invoke, new
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.undefined import undefined
from tests.differential.engines import koi_outputs, node_outputs
from tests.support import HERE

# Prints what their members give, one thing after the other.
BODY = (HERE / "data" / "bytes.js").read_text("utf-8")


@pytest.mark.needs("node", "npm")
def test_bytes_and_encodings_do_what_they_do_in_node() -> None:
    """Making, reading, writing and showing bytes; texts to UTF-8, and bytes of four encodings to texts."""
    assert node_outputs([BODY]) == koi_outputs([BODY])


def test_bytes_of_python_are_read() -> None:
    """What a module gives as `bytes` is decoded, and an array is `bytes` for a module."""
    decoder = new(GLOBALS["TextDecoder"])

    assert ("é", b"\x01\x02") == (invoke(decoder, "decode", b"\xc3\xa9"), bytes(byte_array([1, 2])))


def test_windows_1252_has_characters_where_latin_1_has_controls() -> None:
    """The name `latin1` means it, by the standard; five bytes are controls there, too."""
    decoder = new(GLOBALS["TextDecoder"], "latin1")

    assert ("windows-1252", "€\x81é") == (get(decoder, "encoding"), invoke(decoder, "decode", b"\x80\x81\xe9"))


def test_their_number_stays() -> None:
    """Members of arrays that would change it are not there; what is written behind the end is dropped."""
    items = byte_array([1, 2])

    assert [undefined, undefined, True, False] == [get(items, "push"), get(items, 2), has(1, items), has(2, items)]
    with pytest.raises(TypeErrorValue, match="`push` of a Uint8Array is not a function"):
        invoke(items, "push", 1)
