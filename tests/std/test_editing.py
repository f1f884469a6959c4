"""Edits as models describe them: what is meant is done, and what is not certain is refused with the lines."""

from __future__ import annotations

import time

import pytest

from koi_lang.errors import AgentError
from koi_lang.std.code.editing import apply_diff, replace_piece
from koi_lang.std.code.text_files import decode_file, encode_file

TEXT = "def one():\n    a = 1\n    return a\n\n\ndef two():\n    b = 2\n    return b\n"
TWINS = "class A:\n    def go(self):\n        return 1\n\n\nclass B:\n    def go(self):\n        return 1\n"


def test_a_piece_that_stands_once_is_replaced() -> None:
    """The rest stays, and the result says which lines are new."""
    edit = replace_piece(TEXT, "b = 2\n", "b = 3\n    b += 1\n")

    assert TEXT.replace("b = 2", "b = 3\n    b += 1") == edit.text
    assert ((7, 8),) == edit.ranges


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("return ", "x", "`before` stands 2 times in the file: at lines 3 and 8"),
        ("c = 3", "d", "`before` stands nowhere in the file"),
        ("a = 7", "    a = 1", "seems done"),
        ("", "x", "`before` is empty, and the file is not"),
        ("a", "a", "are the same"),
        ("def one():\n    a = 5\n    return a", "x", "nearest is line 1, where line 2 is `    a = 1`, not `    a = 5`"),
    ],
)
def test_a_piece_that_cannot_be_replaced_is_told_with_its_lines(before: str, after: str, words: str) -> None:
    """One sentence says what stands where instead."""
    with pytest.raises(AgentError) as caught:
        replace_piece(TEXT, before, after)

    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_blanks_are_passed_over_where_one_place_fits() -> None:
    """Lines shown without their indentation, or with blanks for tabs, are replaced as the file indents them."""
    tabs = TEXT.replace("    ", "\t")

    assert TEXT.replace("b = 2", "b = 3") == replace_piece(TEXT, "b = 2\nreturn b\n", "b = 3\nreturn b\n").text
    assert tabs.replace("b = 2", "b = 3") == replace_piece(tabs, "    b = 2\n", "    b = 3\n").text


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("b = 2\n", "b = 3\nb += 1\n", "    b = 3\n    b += 1\n"),
        ("b = 2\n", "b = 3\n    b += 1\n", "    b = 3\n    b += 1\n"),
        ("b = 2\n", "", ""),
    ],
)
def test_lines_without_their_first_blanks_keep_them(before: str, after: str, expected: str) -> None:
    """A piece that begins behind the indentation of a line leaves no new line without its own."""
    assert TEXT.replace("    b = 2\n", expected) == replace_piece(TEXT, before, after).text


def test_blanks_behind_lines_that_stay_are_kept() -> None:
    """What a model does not show of a line that it does not change is not lost."""
    assert "one  \nTWO\n" == replace_piece("one  \ntwo\n", "one\ntwo\n", "one\nTWO\n").text


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("\ta\n\tb\n", "a\nb\n", "a\n    c\n"),  # how wide a tab is nobody can know
        ("one \nx\n\none\nx\n", "one\nx\n", "two\nx\n"),  # the other one was shown without its blank, perhaps
        ("if x:\n    if y:\n        z\n", "if y:\n", "if y:\n    new\n"),  # within the new block, or before it
        ("\ta\n\tb\n\n    a\n    b\n", "    a\n    b\n", "    c\n    b\n"),
    ],
)
def test_blanks_that_leave_a_doubt_are_refused(text: str, before: str, after: str) -> None:
    """Where two places or two indentations might be meant, none is taken."""
    with pytest.raises(AgentError):
        replace_piece(text, before, after)


HUNK = " def two():\n-    b = 2\n+    b = 3\n     return b\n"
NUMBERED = f"--- a/x.py\n+++ b/x.py\n@@ -6,3 +6,3 @@\n{HUNK}"


@pytest.mark.parametrize(
    "diff",
    [
        NUMBERED,
        NUMBERED.replace("-6,3 +6,3", "-60,3 +61,9"),
        NUMBERED.replace("@@ -6,3 +6,3 @@", "@@"),
        HUNK,
        f"```diff\n{NUMBERED}```",
        NUMBERED.replace("\n", "\r\n"),
        NUMBERED.replace("\n def", "\ndef"),
        NUMBERED.replace("\n def", "\ndef").replace("\n     return", "\n    return"),
        NUMBERED.replace(" def two", " def deux"),
        "*** Begin Patch\n*** Update File: x.py\n@@ def two():\n-    b = 2\n+    b = 3\n     return b\n*** End Patch",
        "@@ @@\n-b = 2\n+b = 3\n return b\n",
        "@@ -6,3 +6,3 @@\n def two():\n-    b = 2\n+    b = 3\n     return b\n\n\n",
    ],
)
def test_a_diff_is_read_as_models_write_it(diff: str) -> None:
    """Wrong or missing numbers, headers, marks and fences change nothing of what is meant."""
    assert TEXT.replace("b = 2", "b = 3") == apply_diff(TEXT, diff).text


@pytest.mark.parametrize(
    ("text", "diff", "words"),
    [
        (
            TWINS,
            "@@\n     def go(self):\n-        return 1\n+        return 2\n",
            "in more than one place: at lines 2 and 7",
        ),
        (TEXT, "@@\n-    c = 3\n+    d = 3\n", "hunk 1 fits nowhere"),
        (TEXT, "@@\n+import os\n", "hunk 1 does not say where it belongs"),
        (TEXT, "@@\n def one():\n", "the diff changes nothing"),
        (TEXT, "", "the diff changes nothing"),
        (TEXT, "@@\n def one():\n-    a = 0\n+    a = 1\n", "seems to be done already: what it makes stands at line 1"),
        (TEXT, "@@\n-    a = 1\n+    a = 2\n@@\n-    a = 1\n+    a = 3\n", "both change line 2"),
        (TEXT, f"{NUMBERED}{NUMBERED.replace('x.py', 'y.py')}", "changes more than one file"),
        (TEXT, "rename from a\nrename to b\n", "neither move nor remove"),
        ("", NUMBERED, "the file is empty"),
        (TEXT, "@@\n-    a = 1\n+    a = 2\n" * 201, "201 hunks"),
        (TEXT, "+" * 1_000_001, "longer than 1,000,000"),
    ],
)
def test_a_diff_that_does_not_fit_is_told(text: str, diff: str, words: str) -> None:
    """One sentence names the hunk and the lines; nothing is changed."""
    with pytest.raises(AgentError) as caught:
        apply_diff(text, diff)

    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_a_heading_or_a_right_number_tells_twins_apart() -> None:
    """Of two places that look the same, the one below the heading is meant, or the one at the number."""
    hunk = "     def go(self):\n-        return 1\n+        return 2\n"
    second = TWINS[:-2] + "2\n"

    assert second == apply_diff(TWINS, f"@@ class B:\n{hunk}").text
    assert second == apply_diff(TWINS, f"@@ -7,2 +7,2 @@\n{hunk}").text


def test_the_same_hunk_for_all_its_places_changes_them_all() -> None:
    """Two hunks that are the same mean the two places there are."""
    hunk = "@@\n     def go(self):\n-        return 1\n+        return 2\n"

    assert TWINS.replace("1", "2") == apply_diff(TWINS, hunk * 2).text


def test_what_is_done_already_is_told_and_the_rest_is_done() -> None:
    """A hunk whose result stands there is left out, with a note."""
    edit = apply_diff(TEXT, f"@@\n def one():\n-    a = 0\n+    a = 1\n@@\n{HUNK}")

    assert TEXT.replace("b = 2", "b = 3") == edit.text
    assert "hunk 1 seems to be done already at line 1" in edit.notes


def test_a_diff_makes_and_empties_files() -> None:
    """New lines alone fill an empty file, and a diff may remove all lines."""
    assert "a\nb\n" == apply_diff("", "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n").text
    assert "" == apply_diff("a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n").text


def test_a_missing_last_end_is_kept_unless_the_diff_says_otherwise() -> None:
    """Only the line that says so changes whether the last line is ended."""
    note = "\\ No newline at end of file\n"

    assert "a\nc" == apply_diff("a\nb", "@@\n a\n-b\n+c\n").text
    assert "a\nc\n" == apply_diff("a\nb", f"@@\n a\n-b\n{note}+c\n").text
    assert "a\nc" == apply_diff("a\nb\n", f"@@\n a\n-b\n+c\n{note}").text


def test_removed_and_new_lines_may_look_like_names_of_files() -> None:
    """`-- x` that goes and `++ y` that comes are lines."""
    text = "one\n-- x\ntwo\n"

    assert "one\n++ y\ntwo\n" == apply_diff(text, "@@ -1,3 +1,3 @@\n one\n--- x\n+++ y\n two\n").text


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "before"),
    [("a" * 1_000_000, "a" * 500_000), ("\n" * 200_000 + "x", "\n" * 100_000), ("a\n" * 200_000, "a\n" * 100_000)],
)
def test_texts_made_to_take_long_do_not(text: str, before: str) -> None:
    """Repetitions in both the file and the piece take no time with the square of their length."""
    start_s = time.process_time()
    with pytest.raises(AgentError):
        replace_piece(text, before, "b")
    with pytest.raises(AgentError):
        apply_diff(text, "".join(f"-{line}\n" for line in before.split("\n")) + "-zz\n")

    assert time.process_time() - start_s < 5


def test_an_edit_of_a_long_file_is_quick() -> None:
    """A piece and a diff of three hunks in 5,000 lines take a few milliseconds, bytes to bytes."""
    lines = [f"    value_{number} = compute({number})  # of {number % 7}" for number in range(5000)]
    data = "\n".join(lines).encode()
    hunks = "".join(f"@@\n {lines[at]}\n-{lines[at + 1]}\n+    x = {at}\n {lines[at + 2]}\n" for at in (9, 2500, 4990))
    taken_s = []
    for _ in range(5):
        start_s = time.process_time()
        file = decode_file(data, "x")
        encode_file(file, replace_piece(file.text, f"{lines[4000]}\n", "    y = 1\n"), "x")
        encode_file(file, apply_diff(file.text, hunks), "x")
        taken_s.append(time.process_time() - start_s)

    assert min(taken_s) < 0.1
