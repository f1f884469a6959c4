"""Bodies of requests: what is read is bounded, and what is not read says why."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from koi_lang.web.json_bodies import BadBodyError, json_of, object_in, read_body

BOMBS = {
    "lists in lists": b"[" * 100_000 + b"]" * 100_000,
    "objects in objects": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "101 levels": b"[" * 102 + b"]" * 102,
    "values": b"[" + b"[]," * 2_000_000 + b"[]]",
    "fields": b"{" + b",".join(b'"%d":{}' % n for n in range(200_000)) + b"}",
    "digits": b"9" * 1_000_000,
    "exponent": b'{"a": 1e999}',
    "NaN": b'{"a": NaN}',
    "infinity": b"[-Infinity]",
    "half a pair": rb'{"a": "\ud800"}',
    "half a name": rb'{"\uDC00": 1}',
    "no UTF-8": b'{"a": "\xff"}',
    "no JSON": b"{a: 1}",
    "more behind it": b"{} {}",
    "UTF-16": '{"a": 1}'.encode("utf-16"),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_and_take_nothing(bomb: bytes) -> None:
    """Whatever would take much memory or no JSON can hold is refused, within a few times its own bytes."""
    tracemalloc.start()
    with pytest.raises(BadBodyError) as refused:
        json_of(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert refused.value.status in (400, 413)
    assert most < 20 * len(bomb) + 1_000_000


def test_what_is_right_is_read() -> None:
    """Whole pairs, deep values within the bound and long numbers are what they are."""
    deep = b"[" * 100 + b"]" * 100
    assert "\U0001f600" == json_of(rb'"\ud83d\ude00"')
    assert 2**1000 == json_of(str(2**1000).encode())
    assert [[]] == json_of(b"[[]]")
    assert isinstance(json_of(deep), list)
    assert {} == object_in(b" \n")
    with pytest.raises(BadBodyError, match="no object"):
        object_in(b"[]")


def test_a_body_is_read_up_to_its_bound() -> None:
    """Nothing is taken of what is said to be far too large; else a little is thrown away: the answer arrives."""
    taken = []

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            taken.append(1)
            yield b"x" * (1 << 20)

    for size, most in (("2000000000", 0), ("9" * 5000, 0), (None, 66), ("12", 66), (f"{6 << 20}", 65)):
        taken.clear()
        with pytest.raises(BadBodyError):
            asyncio.run(read_body(pieces(), size, 1000))
        assert len(taken) == most
