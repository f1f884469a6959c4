"""Bytes of files to texts and back: what an edit does not mean stays as it is."""

from __future__ import annotations

import random

import pytest

from koi_lang.errors import AgentError
from koi_lang.std.code.line_changes import (
    EditedText,
    LineChange,
    apply_changes,
    changes_between,
    join_lines,
    split_lines,
)
from koi_lang.std.code.text_files import MAX_BYTES, decode_file, encode_file, encode_new, plain_ends, require_size

UNCHANGED: tuple[LineChange, ...] = ()


def change(data: bytes, *changes: LineChange, text: str) -> bytes:
    """The bytes of a file whose text becomes another."""
    return encode_file(decode_file(data, "a.txt"), EditedText(text, changes), "a.txt")


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a", b"a\n", b"a\r\nb\r\n", b"a\r\nb\nc", b"\xef\xbb\xbfa\r\n", b"a\rb\n", b"a\r\r\nb\n\n"]
)
def test_what_is_not_changed_is_kept_to_the_byte(data: bytes) -> None:
    """Ends of lines, byte order mark and a missing last end come back as they were."""
    file = decode_file(data, "a.txt")

    assert data == encode_file(file, EditedText(file.text, UNCHANGED), "a.txt")


def test_random_files_are_kept_to_the_byte() -> None:
    """Whatever ends and separators a text mixes, nothing of it is lost."""
    chance = random.Random(1)
    for _ in range(2000):
        data = "".join(chance.choices(["a", "é", "\r", "\n", "\r\n", "\u2028", "\x0c", "\ufeff"], k=8)).encode()
        file = decode_file(data, "a.txt")

        assert data == encode_file(file, EditedText(file.text, UNCHANGED), "a.txt")
        assert "\r\n" not in file.text.replace("\r\r\n", "") or "\r\r\n" in data.decode()


def test_new_lines_end_like_those_around_them() -> None:
    """In a file with mixed ends every old line keeps its own, and a new one has that of its neighbour."""
    data = b"one\r\ntwo\r\nthree\nfour\n"
    after_two, after_three = LineChange(2, 2, ("x",)), LineChange(2, 3, ("y", "z"))

    assert b"one\r\ntwo\r\nx\r\nthree\nfour\n" == change(data, after_two, text="one\ntwo\nx\nthree\nfour\n")
    assert b"one\r\ntwo\r\ny\nz\nfour\n" == change(data, after_three, text="one\ntwo\ny\nz\nfour\n")


def test_a_missing_last_end_follows_the_text() -> None:
    """The last line is ended where the new text ends it, as its neighbour is."""
    data = b"a\nb\r\nc"

    assert b"a\nb\r\nc\r\nd" == change(data, LineChange(3, 3, ("d",)), text="a\nb\nc\nd")
    assert b"a\nb\r\nc\r\n" == change(data, text="a\nb\nc\n")
    assert b"a\nb" == change(data, LineChange(2, 3, ()), text="a\nb")
    assert b"" == change(data, LineChange(0, 3, ()), text="")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("Grüße".encode("latin-1"), "not in UTF-8 but, it seems, in Latin-1 (line 1)"),
        ("one\n“two”".encode("cp1252"), "in Windows-1252 (line 2)"),
        ("one two".encode("utf-16"), "in UTF-16"),
        ("one two".encode("utf-16-le"), "in UTF-16LE"),
        ("one two".encode("utf-16-be"), "in UTF-16BE"),
        ("one two".encode("utf-32"), "in UTF-32"),
        (b"\x7fELF\0\1\2\3", "is binary"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is binary"),
        (bytes(range(1, 256)), "is binary"),
        (b"text\0text", "is binary"),
        (b"\xed\xa0\x80", "not in UTF-8"),
    ],
)
def test_other_encodings_are_refused_by_name(data: bytes, words: str) -> None:
    """Nothing but UTF-8 is changed, and the person is told what it is."""
    with pytest.raises(AgentError) as caught:
        decode_file(data, "a.txt")

    assert words in caught.value.message


def test_the_size_is_bounded_both_ways() -> None:
    """A file too large is refused with both sizes, before and after an edit."""
    with pytest.raises(AgentError, match="would be 5,000,001 bytes, and 5,000,000 is the most"):
        require_size(MAX_BYTES + 1, "a.txt")
    with pytest.raises(AgentError, match="is the most"):
        encode_new("é" * 2_500_001, "a.txt")


@pytest.mark.parametrize("text", ["a\ud800", "a\0b"])
def test_what_could_not_be_read_again_is_not_written(text: str) -> None:
    """Halves of characters and NUL are refused, each in a sentence."""
    with pytest.raises(AgentError, match="holds"):
        encode_new(text, "a.txt")


def test_the_ends_that_models_write_do_not_count() -> None:
    """A model that writes CRLF or a byte order mark changes neither in the file."""
    assert "a\nb" == plain_ends("\ufeffa\r\nb")


def test_ranges_are_those_of_the_new_text() -> None:
    """Each change says which lines of the new text it stands in; one that only removes has none."""
    edit = EditedText("", (LineChange(0, 1, ("a", "b")), LineChange(4, 6, ()), LineChange(8, 8, ("c",))))

    assert ((1, 2), (6, 5), (8, 8)) == edit.ranges


def test_changes_between_lead_from_one_to_the_other() -> None:
    """Whatever two texts are, their changes turn the first into the second."""
    chance = random.Random(2)
    for _ in range(500):
        before, after = (chance.choices("abcd", k=chance.randrange(12)) for _ in "xy")

        assert after == apply_changes(before, changes_between(before, after))


@pytest.mark.parametrize("text", ["", "a", "a\n", "\n", "\n\n", "a\n\nb"])
def test_lines_make_their_text_again(text: str) -> None:
    """Splitting and joining loses nothing."""
    assert text == join_lines(*split_lines(text))
