"""`-k`: which names a text chooses."""

from __future__ import annotations

import pytest

from koi_lang.errors import UsageError
from koi_lang.testing.selection import selection

NAMES = ["team.koi: greets Ada", "team.koi: greets Bo slowly", "shop.koi: sells"]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("greets", [0, 1]),
        ("GREETS ada", [0]),
        ("greets and not slow", [0]),
        ("sells or ada", [0, 2]),
        ("not greets", [2]),
        ("not (ada or shop)", [1]),
        ("team and (ada or slowly)", [0, 1]),
        ("not not sells", [2]),
        ("unknown", []),
    ],
)
def test_a_text_chooses(text: str, chosen: list[int]) -> None:
    """Words beside each other are one piece of text; `and` binds more tightly than `or`."""
    selects = selection(text)

    assert [NAMES[index] for index in chosen] == [name for name in NAMES if selects(name)]


@pytest.mark.parametrize("text", ["", "and", "a and", "(a", "a)", "not", "a (b)", "()"])
def test_an_unreadable_text_is_refused(text: str) -> None:
    """What cannot be read is wrong usage, with an example."""
    with pytest.raises(UsageError, match="cannot be read") as raised:
        selection(text)

    assert raised.value.help == "write -k 'greets and not (slow or old)'."
