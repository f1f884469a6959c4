"""Requests see a beginning of a conversation that grows, and each sees the same for ever."""

from __future__ import annotations

import pytest

from koi_lang.llm.images import Image
from koi_lang.llm.messages import Message
from koi_lang.llm.transcript import Beginning, Messages, Transcript
from koi_lang.llm.usage import has_images, tokens_of

ONE, TWO, THREE = (Message("user", text) for text in ("one", "two, and 22 more", "三"))
PICTURE = Message("user", "see", (Image("image/png", "aWNo"),))


def test_a_snapshot_stays_as_it_was() -> None:
    """Neither what is said later nor another beginning changes what a request has seen."""
    transcript = Transcript([ONE])
    first = transcript.snapshot()
    transcript.extend([TWO, THREE])
    second = transcript.snapshot()
    transcript.replace_beginning(PICTURE, 2)

    assert ([ONE], [ONE, TWO, THREE], [PICTURE, THREE]) == ([*first], [*second], [*transcript])
    assert first.log is second.log is not transcript.snapshot().log


def test_a_snapshot_is_what_a_tuple_of_it_is() -> None:
    """Whoever reads requests need not know how they are kept."""
    seen, plain = Transcript([ONE, TWO, THREE]).snapshot(), (ONE, TWO, THREE)

    assert (seen == plain, plain == seen, hash(seen), repr(seen)) == (True, True, hash(plain), repr(plain))
    assert (seen[-1], seen[1:], seen[::-1], seen[:-2]) == (plain[-1], plain[1:], plain[::-1], plain[:-2])
    assert [*reversed(seen)] == [*reversed(plain)]
    assert seen != plain[:2]
    with pytest.raises(IndexError):
        _ = seen[3]


def test_what_is_behind_a_beginning_is_not_in_it() -> None:
    """A list may have grown since, and a negative index counts from the end of the beginning."""
    items = [1, 2, 3]
    seen = Beginning(items)
    items.append(4)

    assert (3, 3, (2, 3), (3, 2, 1), False) == (len(seen), seen[-1], seen[1:], seen[::-1], 4 in seen)
    assert seen != Beginning(items)


@pytest.mark.parametrize("said", [[], [ONE], [ONE, PICTURE, THREE, PICTURE]])
def test_running_sums_are_those_of_the_messages(said: list[Message]) -> None:
    """What is known without looking at each message is what looking gives."""
    transcript = Transcript()
    for message in said:
        transcript.append(message)
    seen = transcript.snapshot()

    assert isinstance(seen, Messages)
    assert (tokens_of(said, "system"), has_images(said)) == (tokens_of(seen, "system"), has_images(seen))
