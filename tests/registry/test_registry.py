"""The registry as a program sees it, in memory and on disk alike."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

from koi_lang.errors import RegistryError
from koi_lang.js.dates import DateValue
from koi_lang.js.undefined import undefined
from koi_lang.runtime.registry import Registry, open_registry


@pytest.fixture(params=["local", "memory", "keyv-sqlite"])
def registry(request, tmp_path):
    """An empty registry of each backend."""
    with closing(open_registry(tmp_path, {"registry": {"backend": request.param}})) as opened:
        yield opened


def fill(registry, **values):
    """Set several keys, in order."""

    async def set_all():
        for key, value in values.items():
            await registry.set(key, value)

    asyncio.run(set_all())


@pytest.mark.parametrize(
    "value",
    [0, "", False, None, [], {}, 0.5, -0.0, 2**53, 1e21, "ø\0\ud83d", {"a": [1, {"b": None}]}, [True, 1, 1.0]],
    ids=ascii,
)
def test_a_value_comes_back_exactly(registry, value):
    """What was set is what `get` answers, falsy values included, and the key is there."""
    fill(registry, key=value)

    found = asyncio.run(registry.get("key"))

    assert (repr(value), True) == (repr(found), asyncio.run(registry.has("key")))


def test_an_unknown_key_is_null(registry):
    """A key that was never set has no value, is not there, and cannot be deleted."""
    answers = [asyncio.run(ask("nothing")) for ask in (registry.get, registry.has, registry.delete)]

    assert answers == [None, False, False]


def test_deleting_forgets_a_key(registry):
    """`delete` answers true once, and the key is gone."""
    fill(registry, key=0)

    answers = [asyncio.run(registry.delete("key")), asyncio.run(registry.delete("key"))]

    assert [*answers, asyncio.run(registry.has("key"))] == [True, False, False]


def test_keys_keep_the_order_of_their_first_set(registry):
    """A key that is set again keeps its place, one that was deleted goes to the end."""
    fill(registry, b=1, a=1, c=1)
    fill(registry, b=2)
    asyncio.run(registry.delete("a"))
    fill(registry, a=2)

    assert asyncio.run(registry.keys()) == ["b", "c", "a"]


def test_keys_of_a_prefix(registry):
    """A prefix is plain text: signs that mean something to a database stand for themselves."""
    fill(registry, **{"user:1": 1, "user%": 2, "user_": 3, "User:2": 4, "user:\0x": 5})

    found = [asyncio.run(registry.keys(prefix)) for prefix in ("user:", "user%", "", None)]

    every = ["user:1", "user%", "user_", "User:2", "user:\0x"]
    assert found == [["user:1", "user:\0x"], ["user%"], every, every]


def test_search_answers_keys_and_values(registry):
    """A search finds entries in order; entries without the field are not among them."""
    fill(registry, ana={"age": 30}, config={"theme": "dark"}, bo={"age": 17}, count=20, cy={"age": 18}, gone=None)

    found = asyncio.run(registry.search({"age": {"$gte": 18}}))

    assert found == [{"key": "ana", "value": {"age": 30}}, {"key": "cy", "value": {"age": 18}}]


def test_a_malformed_search_fails_in_an_empty_registry(registry):
    """A query is checked even when there is nothing to search."""
    with pytest.raises(RegistryError, match="unknown registry operator"):
        asyncio.run(registry.search({"age": {"$near": 1}}))


def test_clear_counts_what_it_removed(registry):
    """`clear` answers the number of entries and leaves none."""
    fill(registry, a=None, b=2)

    assert [asyncio.run(registry.clear()), asyncio.run(registry.clear()), asyncio.run(registry.keys())] == [2, 0, []]


def test_a_stored_value_is_a_copy(registry):
    """Changing a value after it was set or read does not change the entry."""
    value = {"items": [1]}
    fill(registry, key=value)
    value["items"].append(2)
    asyncio.run(registry.get("key"))["items"].append(3)

    assert asyncio.run(registry.get("key")) == {"items": [1]}


def test_numbers_are_keys(registry):
    """A whole number is the key with the text of that number."""
    asyncio.run(registry.set(7, "seven"))

    assert [asyncio.run(registry.keys()), asyncio.run(registry.get(7))] == [["7"], "seven"]


@pytest.mark.parametrize("key", [None, True, 1.5, ["a"], "\ud83d"], ids=ascii)
def test_other_keys_are_refused(registry, key):
    """A key that is neither whole text nor a whole number raises an error."""
    with pytest.raises(RegistryError, match="key"):
        asyncio.run(registry.set(key, 1))


def cyclic():
    """A list that contains itself."""
    items = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, {"b": {1, 2}}]}, "`k` cannot be stored: a value of type `set` is not a JSON value at `a.1.b`"),
        (cyclic, "`k` cannot be stored: a function is not a JSON value"),
        (undefined, "`k` cannot be stored: undefined is not a JSON value"),
        ({"a": {1: 2}}, "`k` cannot be stored: an object with a value of type `int` as a member name at `a`"),
        ([10**400], "`k` cannot be stored: a whole number of more than 1024 bits at `0`"),
    ],
    ids=["set", "function", "undefined", "number as a name", "huge number"],
)
def test_what_is_not_json_is_refused(registry, value, message):
    """The error names the type and the place inside the value, and nothing is stored."""
    with pytest.raises(RegistryError) as caught:
        asyncio.run(registry.set("k", value))

    assert (message, False) == (caught.value.message, asyncio.run(registry.has("k")))


def test_a_value_is_stored_as_json_stringify_writes_it(registry):
    """Members without a value and functions are left out, numbers without a JSON form are null, dates are texts."""
    fill(registry, k={"a": 1, "b": undefined, "f": cyclic, "n": float("nan"), "d": DateValue(0)})

    found = asyncio.run(registry.get("k"))

    assert found == {"a": 1, "n": None, "d": "1970-01-01T00:00:00.000Z"}


def test_large_numbers_stay_exact_beside_what_is_no_json(registry):
    """A date made the number a double."""
    fill(registry, k={"n": 2**63 + 1, "d": DateValue(0)})

    assert 2**63 + 1 == asyncio.run(registry.get("k"))["n"]


def test_a_value_that_contains_itself_is_refused(registry):
    """A cyclic value raises an error instead of exhausting the stack."""
    with pytest.raises(RegistryError, match="contains itself"):
        asyncio.run(registry.set("k", cyclic()))


def test_programs_see_the_documented_methods():
    """The names a program may use are those of the reference, and each leads to a method."""
    members = Registry.__koi_members__

    assert list(members) == ["get", "set", "delete", "has", "keys", "search", "clear", "stats"]
    assert all(callable(getattr(Registry, name)) for name in members.values())
