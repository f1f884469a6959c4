"""`koi_lang.js.value_bounds`: bounds that values keep, their words, and patterns that take too long."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from koi_lang.js.bounded_regex import SearchTime
from koi_lang.js.value_bounds import bounds_text, expected_words, is_within

# Each with a value that keeps it, one that does not, its words, and how programs write it.
CASES: list[tuple[dict[str, Any], Any, Any, str, str]] = [
    ({"minimum": 0, "maximum": 1}, 1, 1.5, " from 0 to 1", " in 0..1"),
    ({"minimum": 0}, 0, -0.5, " of at least 0", " in 0.."),
    ({"maximum": -1.5}, -2, 0, " of at most -1.5", " in ..-1.5"),
    ({"minimum": 2, "maximum": 2}, 2, 3, " of exactly 2", " in 2..2"),
    ({"minLength": 1}, "a", "", " of at least 1 character", " in 1.."),
    ({"maxLength": 2}, "👍👍", "abc", " of at most 2 characters", " in ..2"),
    ({"minItems": 1, "maxItems": 2}, [0], [], " of 1 to 2 items", " in 1..2"),
    ({"pattern": "^a"}, "ab", "ba", " matching /^a/", " matching /^a/"),
]


@pytest.mark.parametrize(("bounds", "fits", "misfits", "words", "text"), CASES, ids=[case[-1] for case in CASES])
def test_bounds_are_checked_and_said(bounds: dict[str, Any], fits: Any, misfits: Any, words: str, text: str) -> None:
    """Ends belong to a range, and lengths count characters."""
    time_left = SearchTime()

    assert (True, False) == (is_within(fits, bounds, time_left), is_within(misfits, bounds, time_left))
    assert (words, text) == (expected_words(bounds), bounds_text(bounds))


def test_patterns_that_take_too_long_fit_nothing() -> None:
    """All that is matched with one time shares half a second of processor time."""
    time_left, begin = SearchTime(), process_time()
    found = [is_within("a" * 20_000 + "!", {"pattern": "(?:.*a){20}b"}, time_left) for _ in range(20)]

    assert [False] * 20 == found
    assert process_time() - begin < 1.5
