"""Front matter to values: what is read means what it looks like, and everything else is refused with its line."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from typing import Any

import pytest

from koi_lang.errors import AgentError
from koi_lang.front_matter import read_front_matter

FULL = """\
name: code-review   # of the project
"quoted name": "a # and a : and \\u00e9"
single: 'it''s'
empty:
numbers: [1, -2, 0.4, .5, 1e3]
constants: [true, False, null, ~]
inside: {a: "x, y", 'b': [1, {c: d}], url: http://a/b}
dimensions:
  # the first
  - name: correctness
    weight: 0.4

  - weight: 0.6
    name: safety
same column:
- a
- - b
  - c
-
  d: e
folded: >-
  one
  two

  three
kept: |
  one
    two

  three
plain: goes
  on here
"""


def read(text: str) -> Any:
    """The value of some lines."""
    return read_front_matter(f"---\n{text}---\n")[0]


def refusal(text: str) -> str:
    """What is said against some lines."""
    with pytest.raises(AgentError) as error:
        read(text)
    return error.value.message


def test_what_such_files_are_written_in_is_read() -> None:
    """Mappings and lists by indentation and in brackets, texts of all forms, numbers, constants and comments."""
    assert read(FULL) == {
        "name": "code-review",
        "quoted name": "a # and a : and é",
        "single": "it's",
        "empty": None,
        "numbers": [1, -2, 0.4, 0.5, 1000.0],
        "constants": [True, False, None, None],
        "inside": {"a": "x, y", "b": [1, {"c": "d"}], "url": "http://a/b"},
        "dimensions": [{"name": "correctness", "weight": 0.4}, {"weight": 0.6, "name": "safety"}],
        "same column": ["a", ["b", "c"], {"d": "e"}],
        "folded": "one two\nthree",
        "kept": "one\n  two\n\nthree\n",
        "plain": "goes on here",
    }


def test_the_text_behind_it_is_given_too() -> None:
    """Lines of `---` further below belong to the text; line ends of Windows are read."""
    assert read_front_matter("---\r\nname: a\r\n---\r\n\r\nOne\r\n---\r\nTwo\r\n") == ({"name": "a"}, "One\n---\nTwo")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &x 1\n", "line 2 holds an anchor"),
        ("a: 1\nb: *x\n", "line 3 holds an alias"),
        ("a: !!python/object/apply:os.system [ls]\n", "line 2 holds a tag"),
        ("a: [1, &x 2]\n", "line 2 holds an anchor"),
        ("a: 1\na: 2\n", "line 3 says `a` a second time"),
        ("a: {b: 1, b: 2}\n", "line 2 has brackets that cannot be read"),
        ("a:\n\tb: 1\n", "line 3 is indented with a tab"),
        ("a: b: c\n", "line 2 has a second `:`"),
        ("a: 'b\n", "line 2 holds a text in quotation marks without its end"),
        ('a: "b" c\n', "line 2 goes on behind a text in quotation marks"),
        ('a: "\\x"\n', "line 2 has an unknown sign behind a backslash"),
        ("a: [1, 2\n", "line 2 has brackets that cannot be read"),
        ("a: 010\n", "line 2 has a number that begins with 0"),
        ("a: >\n  b\n    c\n", "write `|`"),
        ("just words\n", "line 2 is no `name: value`"),
        ("  a: 1\nb: 2\n", "line 3 stands too far to the left or right"),
        ("a:\n    b: 1\n  c: 2\n", "line 4 stands too far to the left or right"),
        ("a: " + "[" * 5000 + "\n", "line 2 has brackets that cannot be read"),
        ("- a\n", "has front matter without names"),
    ],
)
def test_what_would_mean_something_else_is_refused(text: str, told: str) -> None:
    """The message names the line; nothing is guessed, and nothing is carried out."""
    assert told in refusal(text)


def test_deep_lines_are_refused() -> None:
    """Lines that lie ever deeper end in a message, not in the depth of Python."""
    text = "".join(f"{' ' * depth}a:\n" for depth in range(3000))

    assert "lies more than 20 levels deep" in refusal(text)


@pytest.mark.parametrize("text", ["", "# Title\n", "---\nname: a\n", "--- x\nname: a\n---\n"])
def test_a_file_without_front_matter_is_told(text: str) -> None:
    """Its two lines have to be there."""
    with pytest.raises(AgentError, match=r"has (no front matter|front matter without an end)"):
        read_front_matter(text)


def test_whatever_is_typed_is_read_or_refused() -> None:
    """Slips of every kind end in a value or in a message, in a moment."""
    slips, outcomes = random.Random(7), {"read": 0, "refused": 0}
    for _ in range(3000):
        letters = list(FULL)
        letters[slips.randrange(len(letters))] = slips.choice("\n :-#'\"[]{},|>\t&*!\\x")
        try:
            assert isinstance(read("".join(letters)), dict)
            outcomes["read"] += 1
        except AgentError:
            outcomes["refused"] += 1

    assert min(outcomes.values()) > 300


LONG = {
    "blanks behind a name": "a" + " " * 90_000 + "b",
    "blanks in a value": "a: x" + " " * 90_000 + "y",
    "words": "a " * 45_000,
    "digits": "a: " + "1" * 90_000,
    "brackets": "a: " + "[" * 90_000,
    "lines of a value": "a: x\n" + "  b\n" * 22_000,
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_line_takes_no_time(name: str) -> None:
    """What somebody else has written is read or refused at once, and fails in no other way."""
    before = time.process_time()
    with suppress(AgentError):
        read(f"{LONG[name]}\n")

    assert time.process_time() - before < 2
