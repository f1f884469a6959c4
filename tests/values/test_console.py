"""The global console."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

import pytest

from koi_lang.js.call_helpers import invoke
from koi_lang.js.clock import use_clock
from koi_lang.js.console_state import duration
from koi_lang.js.environment import Machine, in_environment
from koi_lang.js.globals import GLOBALS


class Recorder:
    """A host that keeps what it is given."""

    def __init__(self) -> None:
        self.printed: list[str] = []
        self.logged: list[str] = []

    def print(self, text: str) -> None:
        """Keep a piece of output."""
        self.printed.append(text)

    def log(self, text: str) -> None:
        """Keep a line that is no output."""
        self.logged.append(text)


@pytest.fixture
def host() -> Recorder:
    """The host that `say` speaks to."""
    return Recorder()


def say(host: Recorder, method: str, *values: Any) -> None:
    """Call a method of the console with a host in place."""

    def speak() -> None:
        with in_environment(Machine(host)):
            invoke(GLOBALS["console"], method, *values)

    copy_context().run(speak)


@pytest.mark.parametrize(
    ("method", "printed"),
    [("log", True), ("info", True), ("dir", True), ("error", False), ("warn", False), ("debug", False)],
)
def test_output_is_printed_and_the_rest_is_logged(host: Recorder, method: str, printed: bool) -> None:
    """Only what the program means as output goes to the output."""
    say(host, method, {"a": 1})

    assert ((host.printed, host.logged) if printed else (host.logged, host.printed)) == (["{ a: 1 }"], [])


def test_several_values_stand_on_one_line(host: Recorder) -> None:
    """Texts come raw, placeholders are filled; nothing at all is an empty line."""
    say(host, "log", "%s has", "Ada", 2, ["x"])
    say(host, "log")

    assert host.printed == ["Ada has 2 [ 'x' ]", ""]


def test_only_failed_assertions_are_logged(host: Recorder) -> None:
    """What follows the condition explains it."""
    say(host, "assert", 1, "fine")
    say(host, "assert", 0, "n is", 0)
    say(host, "assert", False)

    assert host.logged == ["Assertion failed: n is 0", "Assertion failed"]


def test_a_table_has_a_column_for_every_member(host: Recorder) -> None:
    """Rows are set in a box, as Node draws it."""
    say(host, "table", [{"a": 1, "b": "x"}, {"a": 2, "c": True}])

    assert host.printed == [
        "┌─────────┬───┬─────┬──────┐\n"
        "│ (index) │ a │ b   │ c    │\n"
        "├─────────┼───┼─────┼──────┤\n"
        "│ 0       │ 1 │ 'x' │      │\n"
        "│ 1       │ 2 │     │ true │\n"
        "└─────────┴───┴─────┴──────┘"
    ]


def test_plain_values_of_a_table_have_a_column_of_their_own(host: Recorder) -> None:
    """It stands last; a value that is no table is printed as by `log`."""
    say(host, "table", [1, [2, 3]])
    say(host, "table", 5)

    assert [
        host.printed[0].split("\n")[1],
        host.printed[0].split("\n")[3],
        host.printed[1],
    ] == ["│ (index) │ 0 │ 1 │ Values │", "│ 0       │   │   │ 1      │", "5"]


def each(host: Recorder, *calls: tuple[Any, ...], clock: Any = None) -> None:
    """Several calls of methods of one console, each a name and its arguments."""

    def speak() -> None:
        use_clock(clock or (lambda: 0.0))
        with in_environment(Machine(host)):
            for method, *values in calls:
                invoke(GLOBALS["console"], method, *values)

    copy_context().run(speak)


def test_groups_are_indented(host: Recorder) -> None:
    """Every line inside of a group has two more blanks, also lines that are no output; too many ends do no harm."""
    inside = [("log", "x\ny"), ("group",), ("error", "e"), ("groupEnd",), ("table", [1])]
    each(host, ("groupCollapsed", "g", 1), *inside, ("groupEnd",), ("groupEnd",), ("log", "out"))

    assert ["g 1", "  x\n  y", "out"] == [*host.printed[:2], host.printed[-1]]
    assert all(line.startswith("  ") for line in host.printed[2].split("\n"))
    assert ["    e"] == host.logged


def test_calls_are_counted_by_label(host: Recorder) -> None:
    """A count begins anew after it was reset; one that does not exist is told beside the output."""
    each(host, ("count",), ("count",), ("count", 5), ("countReset",), ("count",), ("countReset", "z"))

    assert ["default: 1", "default: 2", "5: 1", "default: 1"] == host.printed
    assert ["Count for 'z' does not exist"] == host.logged


def test_clocks_have_labels(host: Recorder) -> None:
    """The time since `time` is printed, until `timeEnd`; wrong labels are told beside the output."""
    times = iter([0.0, 0.25, 1.5, 1.5])
    timed = [("time", "t"), ("timeLog", "t", "half", 2), ("time", "t"), ("timeEnd", "t"), ("timeEnd", "t")]
    each(host, *timed, clock=lambda: next(times))

    assert ["t: 250ms half 2", "t: 1.500s"] == host.printed
    assert ["Label 't' already exists for console.time()", "No such label 't' for console.timeEnd()"] == host.logged


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.12345, "0.123ms"), (999, "999ms"), (62345, "1:02.345 (m:ss.mmm)"), (3602345.0, "1:00:02.345 (h:mm:ss.mmm)")],
)
def test_durations_are_written_as_by_node(ms: float, text: str) -> None:
    """From a second on a time has three decimals, from a minute on colons."""
    assert text == duration(ms)


@pytest.mark.parametrize(("depth", "shown"), [(None, "{ a: { b: { c: { d: 1 } } } }"), (0, "{ a: [Object] }")])
def test_the_depth_of_an_object_is_asked_for(depth: Any, shown: str, host: Recorder) -> None:
    """`console.dir` passed it over."""
    say(host, "dir", {"a": {"b": {"c": {"d": 1}}}}, {"depth": depth})

    assert shown == " ".join("".join(host.printed).split())
