"""Texts that are too long to be told: which these are, how they are counted, and what stands for them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from koi_lang.js.tagged_json import as_fields, from_fields
from koi_lang.runtime.outputs.ends import result_text
from koi_lang.runtime.outputs.long_texts import (
    KeptOutput,
    LongText,
    count_rows,
    is_long,
    long_texts_in,
    references,
    replace_texts,
)
from koi_lang.runtime.outputs.output_files import OutputFiles, delete_outputs

IMAGE = {"type": "image", "mimeType": "image/png", "data": "x" * 60_000}
KEPT = KeptOutput(3, "abc", 60_000, 1, "d1", "xx", "yy")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * 50_000, False),
        ("x" * 50_001, True),
        ("ü" * 25_000, False),
        ("ü" * 25_001, True),
        ("\n" * 2000, False),
        ("\n" * 2001, True),
        ("\ud800" * 20_000, True),
    ],
)
def test_what_is_long(text: str, expected: bool) -> None:
    """More than 50,000 bytes in UTF-8, or more than 2,000 lines."""
    assert expected == is_long(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\nb", 2), ("a\nb\n", 2), ("x" * 2000, 1), ("x" * 2001, 2), ("a\n" + "x" * 6001 + "\nb", 6)],
)
def test_long_lines_count_as_several(text: str, expected: int) -> None:
    """So that every part of a text has a line by which it can be read."""
    assert expected == count_rows(text)


def test_data_of_images_is_no_text() -> None:
    """Models are shown images, however large these are."""
    assert [] == list(long_texts_in({"content": [IMAGE]}))


def test_references_come_back_from_a_journal() -> None:
    """What stands for a text in a value is the same after it was written as JSON and read."""
    value = replace_texts({"a": ["x" * 60_000, 1]}, lambda text: LongText(KEPT, text))
    written = json.loads(json.dumps(as_fields(value)))

    assert [KEPT] == [each.kept for each in references(from_fields(written))]
    assert len(json.dumps(written)) < 400


@pytest.mark.parametrize("content", [None, [], "x", {"id": "x"}, {"id": 1, "bytes": [], "lines": 1}])
def test_a_damaged_reference_is_no_reference(content: Any) -> None:
    """What somebody has changed in a journal is taken as it stands there."""
    told = {"result": {"$koi": "koi_lang.runtime.outputs.long_texts.LongText", "of": content}, "tagged": True}

    assert [] == list(references(from_fields(told)))


@pytest.mark.parametrize("text", ["x" * 90_000, '"' * 90_000, "\x00" * 90_000, "🦎" * 90_000, "line\n" * 20_000])
def test_ends_take_as_much_room_as_there_is(text: str) -> None:
    """Whatever has to be escaped counts; both ends are there."""
    fields = {"stdout": LongText(KEPT, text), "stderr": LongText(KEPT, text)}

    for value in (fields, {"nested": fields}):
        shown = result_text(value, 6000).text
        assert 5000 < len(shown) < 6400
        assert 2 == shown.count("output 3: 60,000 bytes, 1 lines, both ends shown")


@pytest.mark.parametrize("text", ["line\n" * 9_000, "\n" * 1_900 + "x" * 45_000])
def test_both_ends_of_what_no_file_keeps(text: str) -> None:
    """What is more than an action may show is left out in the middle; what is short has all the room it needs."""
    shown = result_text({"exitCode": 1, "stdout": f"begin\n{text}end\n", "stderr": "one\ntwo\n"}, 30_000).text

    assert 29_000 < len(shown) <= 30_000
    assert shown.startswith('{"exitCode":1}\n"stdout":\n> begin\n')
    assert shown.endswith('end\n"stderr":\n> one\n> two')
    assert re.search(r"\n… [\d,]+ characters left out …\n", shown)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\nb\n", "\n> a\n> b"),
        ("one line\n", '"one line\\n"'),
        ({"text": "a\n\tb"}, '\n"text":\n> a\n> \tb'),
        ({"n": 1, "a: b": "x\u2028y\nz"}, '{"n":1}\n"a: b":\n> x\n> y\n> z'),
        ({"deep": {"text": "a\nb"}}, '{"deep":{"text":"a\\nb"}}'),
        ({"": "a\nb"}, '{"":"a\\nb"}'),
        ("\x1b[31mred\n\ud800\0", "\n> \\u001b[31mred\n> \\ud800\\u0000"),
    ],
)
def test_texts_of_several_lines_are_told_as_text(value: Any, expected: str) -> None:
    """Line by line below the JSON of the rest, without escapes; only a sign that is no text has one."""
    assert expected == result_text(value, 6000).text


@pytest.mark.parametrize("run", ["../x", "..", "", "a/b", ".hidden", "x" * 101])
def test_names_of_runs_lead_nowhere(tmp_path: Path, run: str) -> None:
    """What is no name of a run has no files, and nothing is removed."""
    (tmp_path / ".koi/outputs").mkdir(parents=True)
    (tmp_path / ".koi/x").mkdir()
    delete_outputs(tmp_path, run)

    with pytest.raises(OSError, match="no run"):
        OutputFiles(tmp_path, run).write(1, b"x")
    assert {"x", "outputs"} == {each.name for each in (tmp_path / ".koi").iterdir()}


def test_what_a_link_leads_to_is_not_removed(tmp_path: Path) -> None:
    """Outputs that somebody has moved elsewhere stay there, as does a file in place of an output."""
    (tmp_path / "other/abc").mkdir(parents=True)
    (tmp_path / "other/abc/1").write_text("x")
    (tmp_path / ".koi").mkdir()
    (tmp_path / ".koi/outputs").symlink_to(tmp_path / "other")
    delete_outputs(tmp_path, "abc")

    with pytest.raises(OSError, match=r"outputs|2|link|directory"):
        OutputFiles(tmp_path, "abc").read(1)
    assert (tmp_path / "other/abc/1").exists()


def test_a_link_in_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    """A file that has become a link is not there."""
    files = OutputFiles(tmp_path, "abc")
    files.write(1, b"x")
    (tmp_path / "secret").write_text("y")
    (tmp_path / ".koi/outputs/abc/2").symlink_to(tmp_path / "secret")

    assert b"x" == files.read(1)
    with pytest.raises(OSError, match=r"outputs|2|link|directory"):
        files.read(2)
    with pytest.raises(FileExistsError):
        files.write(2, b"z")
