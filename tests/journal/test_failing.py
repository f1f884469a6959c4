"""Errors that were kept in a journal are what they were when a program meets them again."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.errors import AgentError, KoiError, RequestError
from koi_lang.js.errors import ErrorValue, RangeErrorValue, TypeErrorValue
from koi_lang.runtime.actions.registered import ActionError
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.journal.entries import JournalEntry, entry_in, line_of
from koi_lang.runtime.replay.error_records import data_of, from_data
from tests.journal.again import Recorder, each_cut
from tests.playbook.playing import Player

LIMIT = LimitReachedError("time", "`A.go`", "took too long", "Raise it.")


class OddError(KoiError):
    """An error whose attributes are more than a journal can hold."""

    def __init__(self, message: str, thing: object) -> None:
        super().__init__(message)
        self.thing = thing


def kept(error: BaseException) -> dict[str, Any]:
    """What is read back of an error."""
    entry = entry_in(line_of(JournalEntry(1, 2.0, "failed", data=data_of(error)), str))
    assert entry is not None
    return dict(entry.data)


@pytest.mark.parametrize(
    "error", [LIMIT, ActionError("no", help="Do it."), AgentError("a"), RequestError("b", status=3)]
)
def test_an_error_comes_back_as_what_it_was(error: KoiError) -> None:
    """Its class, message, help and attributes are the same, wherever the class stands."""
    found = from_data(kept(error))
    own = {name: value for name, value in vars(error).items() if not name.startswith("__")}

    assert (type(error), error.args, own) == (type(found), found.args, vars(found))


@pytest.mark.parametrize("error", [OddError("odd", object()), LIMIT])
def test_what_is_not_known_whole_is_an_ordinary_error(error: KoiError) -> None:
    """An error that lacks attributes, as in older journals, is no half of its class."""
    data = {name: value for name, value in kept(error).items() if name != "attributes"}
    found = from_data(data)

    assert (AgentError, error.message) == (type(found), str(found))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (kept(TypeErrorValue("a")), TypeErrorValue),
        ({"error": "a", "name": "RangeError"}, RangeErrorValue),
        ({"error": "a", "name": "ValueError"}, ErrorValue),
        ({"error": "a", "name": "Mine", "kind": "TypeError"}, TypeErrorValue),
    ],
)
def test_an_error_of_code_keeps_its_kind(data: dict[str, Any], kind: type[ErrorValue]) -> None:
    """`instanceof` and `e.name` say the same as before."""
    found = from_data(data)

    assert isinstance(found, ErrorValue)
    assert (kind, data["name"]) == (type(found), found.name)


def test_a_failed_request_is_caught_in_the_same_way(play: Player) -> None:
    """What `catch` does with the error of a `fetch`, its class and its cause, is the same when the run goes on."""
    body = """try { await fetch("http://127.0.0.1:1/") } catch (e) {
        console.log(e.name, e instanceof TypeError, e.cause instanceof Error, e.cause.message.length > 0) }"""
    source = f"role R {{ can execute }}\nagent Main : R {{ on go(x: Json) {{ {body} }} }}\nrun Main.go({{}})"

    for tape in each_cut(Recorder(play, source)):
        assert ["TypeError true true true"] == tape.printed
