"""Which values a registry query finds, and which queries are refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from koi_lang.errors import RegistryError
from koi_lang.runtime.registry.registry import compile_query, matches

ANA = {"name": "Ana", "age": 30, "vip": True, "tags": ["a", "b"], "address": {"city": "Oslo"}, "note": None, "a.b": 1}

FOUND = [
    {},
    {"name": "Ana"},
    {"age": 30.0},
    {"vip": True},
    {"note": None},
    {"tags": ["a", "b"]},
    {"address": {"$eq": {"city": "Oslo"}}},
    {"address.city": "Oslo"},
    {"tags.1": "b"},
    {"a.b": 1},
    {"age": {"$eq": 30}},
    {"age": {"$ne": 31}},
    {"age": {"$gt": 29, "$lt": 31}},
    {"age": {"$gte": 30}},
    {"age": {"$lte": 30}},
    {"name": {"$gt": "Amy"}},
    {"name": {"$in": ["Bo", "Ana"]}},
    {"name": {"$nin": ["Bo"]}},
    {"name": {"$regex": "^A"}},
    {"note": {"$exists": True}},
    {"name": {}},
    {"$and": [{"name": "Ana"}, {"age": 30}]},
    {"$or": [{"name": "Bo"}, {"age": 30}]},
    {"$not": {"name": "Bo"}},
    {"age": {"$not": {"$gt": 30}}},
    {"$exists": True},
]
NOT_FOUND = [
    {"name": "ana"},
    {"age": "30"},
    {"age": True},
    {"vip": 1},
    {"note": {}},
    {"tags": ["a"]},
    {"tags": "a"},
    {"tags.2": "c"},
    {"tags.-1": "b"},
    {"tags." + "9" * 5000: "b"},
    {"name.0": "A"},
    {"address": {"$eq": {"city": "Oslo", "zip": None}}},
    {"name": "Ana", "age": 31},
    {"age": {"$gt": 29, "$lt": 30}},
    {"age": {"$gt": "29"}},
    {"vip": {"$gte": 1}},
    {"vip": {"$gte": False}},
    {"note": {"$lte": 0}},
    {"tags": {"$gt": []}},
    {"age": {"$in": [True, "30"]}},
    {"name": {"$nin": ["Ana"]}},
    {"age": {"$regex": "3"}},
    {"note": {"$exists": False}},
    {"$or": []},
    {"$and": [{"name": "Ana"}, {"age": 31}]},
    {"$not": {"name": "Ana"}},
]


@pytest.mark.parametrize("query", FOUND, ids=str)
def test_a_query_finds(query):
    """Each of these queries holds for the example entry."""
    assert matches(ANA, query) is True


@pytest.mark.parametrize("query", NOT_FOUND, ids=lambda query: str(query)[:60])
def test_a_query_does_not_find(query):
    """Each of these queries fails for the example entry."""
    assert matches(ANA, query) is False


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (5, False),
        (None, False),
        ({}, False),
        ({"$eq": 5}, False),
        ({"$gt": 5}, False),
        ({"$gte": 5}, False),
        ({"$lt": 5}, False),
        ({"$lte": 5}, False),
        ({"$in": [5, None]}, False),
        ({"$regex": ""}, False),
        ({"$exists": True}, False),
        ({"$ne": 5}, True),
        ({"$nin": [5]}, True),
        ({"$exists": False}, True),
    ],
    ids=str,
)
def test_a_missing_field_matches_no_comparison(condition, expected):
    """Only `$ne`, `$nin` and `$exists: false` hold for a field that is not there."""
    assert [expected, expected] == [matches({"name": "Bo"}, {"age": condition}), matches("text", {"age": condition})]


def test_the_empty_query_finds_all_but_null():
    """`{}` holds for every value except null, also for those that are falsy."""
    found = [value for value in (0, "", False, [], {}, None, 1) if matches(value, {})]

    assert found == [0, "", False, [], {}, 1]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"age": {"$gte2": 1}}, "unknown registry operator `$gte2`"),
        ({"age": {"gt": 1}}, "unknown registry operator `gt`"),
        ({"$nor": []}, "unknown registry operator `$nor`"),
        ("age > 3", "a registry query must be an object, not a value of type `str`"),
        (None, "a registry query must be an object, not null"),
        ({"age": {"$in": 5}}, "`$in` takes a list, not a value of type `int`"),
        ({"age": {"$nin": None}}, "`$nin` takes a list, not null"),
        ({"$or": {"a": 1}}, "`$or` takes a list, not a value of type `dict`"),
        ({"$and": [1]}, "each part of `$and` must be an object, not a value of type `int`"),
        ({"$not": 1}, "the operand of `$not` must be an object, not a value of type `int`"),
        ({"age": {"$exists": 1}}, "`$exists` takes true or false, not a value of type `int`"),
        ({"age": {"$regex": 1}}, "`$regex` takes text or a regular expression, not a value of type `int`"),
    ],
    ids=str,
)
def test_a_malformed_query_is_refused(query, words):
    """A query that cannot be meant raises an error that names the part."""
    with pytest.raises(RegistryError) as caught:
        compile_query(query)

    assert caught.value.message == words


def test_an_unknown_operator_is_answered_with_the_known_ones():
    """The help of the error suggests the nearest operator and lists all of them."""
    with pytest.raises(RegistryError) as caught:
        compile_query({"age": {"gte": 1}})

    assert caught.value.help == (
        "Did you mean `$gte`? The operators are `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$nin`, `$regex`, "
        '`$exists`, `$and`, `$or`, `$not`. For a field inside another write a dotted name: `"outer.gte"`.'
    )


def test_a_query_that_contains_itself_is_refused():
    """A cyclic query raises an error instead of exhausting the stack."""
    query = {}
    query["$not"] = query

    with pytest.raises(RegistryError, match="nested too deep"):
        compile_query(query)


@dataclass
class Expression:
    """What a regular expression of the language looks like from here."""

    source: str
    flags: str


class ShortText:
    """An object that only knows how to test a text."""

    def test(self, text):
        """Whether the text is short."""
        return len(text) < 4


@pytest.mark.parametrize(
    ("operand", "expected"),
    [(Expression("^an", "gi"), [True, False]), (Expression("^an", ""), [False, False]), (ShortText(), [True, False])],
    ids=["ignoring case", "exact", "object with a test"],
)
def test_a_regular_expression_value_is_an_operand(operand, expected):
    """`$regex` takes a regular expression with its flags, or anything that can test a text."""
    test = compile_query({"name": {"$regex": operand}})

    assert expected == [test({"name": "Ana"}), test({"name": "Bert"})]
