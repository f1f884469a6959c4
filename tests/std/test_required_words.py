"""Words that every text holds which a regular expression fits."""

from __future__ import annotations

import random
import re

import pytest

from koi_lang.std.code.searching import required_words


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("handle_request", (("handle_request",),)),
        (r"def\s+\w+_handler\(", (("_handler(", "def"),)),
        ("foo|bar+s|(x)yz", (("foo",), ("bar",), ("yz",))),
        ("foo|b.r", ()),
        ("colou?r", (("colo",),)),
        ("ab*cde{2}f", (("cd",),)),
        ("(?:foo)+", ()),
        ("(?!foo)bar", (("bar",),)),
        ("[foo]bar[^]]xy", (("bar", "]xy"),)),
        (r"a\.b\/c", (("a.b/c",),)),
        (r"\x41bc", ()),
        (r"\bword\b", (("word",),)),
        ("größe", ()),
        ("", ()),
        ("(abc", ()),
        ("abc\\", ()),
        ("xy{abc", (("abc",),)),
    ],
)
def test_words(pattern: str, words: tuple[tuple[str, ...], ...]) -> None:
    """The longest piece that cannot be missing, one for each alternative; none where that is not sure."""
    assert words == required_words(pattern)


def test_no_text_that_fits_lacks_them() -> None:
    """On random patterns and texts, whatever the pattern fits holds one of the words."""
    chance = random.Random(1)
    parts = ["ab", "c", "b", "(ab|c)", "(?:abc)?", "[ab]", "a*", "b+", "c?", "a{2}", "b{0,1}", ".", "|", "^", "$"]
    parts += [r"\w", r"\.", "(?=a)", "(?<!b)", "ab", "ba", "ca"]
    fitting = with_words = 0
    for _ in range(40_000):
        pattern = "".join(chance.choices(parts, k=chance.randint(1, 6)))
        alternatives = required_words(pattern)
        text = "".join(chance.choices("aabbcc. ", k=chance.randint(0, 16)))
        if alternatives and re.search(pattern, text):
            fitting += 1
            with_words += any(all(word in text for word in words) for words in alternatives)

    assert fitting == with_words > 500
