"""`expect`: what holds, what does not, and what is told then."""

from __future__ import annotations

import pytest

from koi_lang.errors import ExpectationError
from koi_lang.js.dates import DateValue
from koi_lang.js.errors import RangeErrorValue, Thrown
from koi_lang.js.keyed_collections import MapValue, SetValue
from koi_lang.js.undefined import undefined
from koi_lang.runtime.test_blocks.expect import compare, difference, expect, expect_failure
from tests.projects import Project
from tests.testing.trying import outcomes

NAN = float("nan")


def filled(kind: type, *entries: object) -> object:
    """A Map or Set with some entries."""
    made = kind()
    for entry in entries:
        made.set(*entry) if isinstance(entry, tuple) else made.add(entry)
    return made


@pytest.mark.parametrize(
    ("operator", "left", "right"),
    [
        ("==", {"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}),
        ("===", {"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ("==", {"a": 1, "b": undefined}, {"a": 1}),
        ("==", [NAN, 1.0], [NAN, 1]),
        ("==", (1, 2), [1, 2]),
        ("==", "1", 1),
        ("==", None, undefined),
        ("!=", [1], [1, undefined]),
        ("!=", {"a": 1}, {"a": "1"}),
        ("!==", {}, []),
        ("!=", {"a": None}, {"a": undefined}),
        ("==", DateValue(5), DateValue(5)),
        ("!=", DateValue(5), DateValue(6)),
        ("==", filled(SetValue, 1, 2), filled(SetValue, 1, 2)),
        ("!=", filled(MapValue, ("a", 1)), filled(MapValue, ("a", 2))),
        ("<", 1, 2),
        (">=", "b", "a"),
        ("in", "a", {"a": 1}),
    ],
)
def test_a_comparison_that_holds(operator: str, left: object, right: object) -> None:
    """Objects and arrays are compared by content, everything else as the language does; the opposite does not hold."""
    compare(operator, left, right)

    opposite = {"==": "!=", "!=": "==", "===": "!==", "!==": "===", "<": ">=", ">=": "<"}.get(operator)
    if opposite is not None:
        with pytest.raises(ExpectationError):
            compare(opposite, left, right)


@pytest.mark.parametrize(
    ("left", "right", "where"),
    [
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, (".a.b[1]", 2, 3)),
        ([1, [2]], [1, {"0": 2}], ("[1]", [2], {"0": 2})),
        ({"a": 1}, {"b": 1}, (".a", 1, undefined)),
    ],
)
def test_the_first_difference_is_found(left: object, right: object, where: tuple[str, object, object]) -> None:
    """The path of the first difference, in the order of the left side, with what stands there."""
    assert where == difference(left, right)


@pytest.mark.parametrize("count", [50, 100])
def test_a_difference_deep_inside_maps_is_found(count: int) -> None:
    """However many maps lie before it."""

    def nested(last: int) -> object:
        inner = [filled(MapValue, ("a", filled(MapValue, ("b", n)))) for n in (*range(count - 1), last)]
        return filled(MapValue, *enumerate(inner))

    for last in range(count, count + 20):
        assert difference(nested(last), nested(last)) is None
        assert difference(nested(last), nested(-1)) is not None, last


def test_values_inside_themselves_are_compared() -> None:
    """Two objects that contain themselves in the same way have the same content."""
    left: dict[str, object] = {"a": 1}
    right: dict[str, object] = {"a": 1}
    left["self"], right["self"] = left, right

    assert difference(left, right) is None


@pytest.mark.parametrize("value", [0, "", None, undefined, NAN, False])
def test_a_value_that_is_not_true_fails(value: object) -> None:
    """`expect value` says what the value is."""
    with pytest.raises(ExpectationError, match="this is not true, it is `"):
        expect(value)


@pytest.mark.parametrize("error", [RangeErrorValue("no unicorn"), Thrown("a unicorn"), ValueError("unicorn")])
def test_a_failure_with_the_text_holds(error: Exception) -> None:
    """The text is a part of what the error says, whoever raised it."""
    expect_failure("unicorn", error)


@pytest.mark.parametrize(
    ("error", "told", "details"),
    [
        (None, "this did not fail", ("expected a failure with: oh",)),
        (RangeErrorValue("ah"), "this failed with another message", ("expected: oh", "failed with: RangeError: ah")),
    ],
)
def test_another_failure_or_none_fails(error: Exception | None, told: str, details: tuple[str, ...]) -> None:
    """What was expected is told beside what came."""
    with pytest.raises(ExpectationError) as raised:
        expect_failure("oh", error)

    assert (told, details) == (raised.value.message, raised.value.details)


def test_an_expectation_is_no_failure_of_the_program() -> None:
    """`fails` does not hold because another `expect` inside has failed."""
    failed = ExpectationError("inside")

    with pytest.raises(ExpectationError) as raised:
        expect_failure("inside", failed)

    assert failed is raised.value


def test_expectations_in_programs(project: Project) -> None:
    """The forms of `expect` do in a program what they say; a promise is no value."""
    found = outcomes(
        project,
        """
        test "holds" {
          expect await Clerk.fail() fails "no unicorn"
          expect Clerk.fail() fails "no unicorn"
          expect null.x fails "null"
          expect (await Clerk.greet({ name: "Ada" })).greeted === "Ada"
          expect !(1 > 2) && [1].includes(1)
          for (const each of [1, 2]) expect each > 0
          [1].forEach(each => { expect each == 1 })
        }
        test "promise" { const later = Promise.resolve(5)
          expect later == 5 }
        test "did not fail" { expect await Clerk.count() fails "unicorn" }
        test "inside" { [0].forEach(each => { expect each }) }
        """,
    )

    assert ["", "error: this is a promise, whose value comes later [E0500]"] == [
        found[name].message.split("\n")[0] for name in ("holds", "promise")
    ]
    assert "this did not fail" in found["did not fail"].message
    assert "this is not true, it is `0`" in found["inside"].message
