"""Errors that were kept in a journal are what they were when a program meets them again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from koi_lang.errors import AgentError, KoiError, RequestError
from koi_lang.js.errors import ErrorValue, RangeErrorValue, TypeErrorValue
from koi_lang.llm.messages import Request
from koi_lang.runtime.actions.registered import ActionError
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.journal.entries import JournalEntry, entry_in, line_of
from koi_lang.runtime.journal.history import lasting_entries
from koi_lang.runtime.replay.error_records import data_of, from_data
from tests.journal.again import Recorder, each_cut
from tests.playbook.playing import Player, Voice

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


COUNTERS = """
role R { can execute, can delegate }
agent Counter : R {
  on count(args: { n: int }) { playbook "Return one." }
  on double(args: { n: int }) { return 2 * args.n }
}
agent Main : R { on go(x: Json) { BODY } }
"""
# Branches that fail for one reason; the code around them does nothing after that but to fail.
BRANCHES = {
    "all": "const all = await Promise.all([1, 2, 3].map(n => Counter.count({ n }))) console.log(all.join())",
    "functions": """const all = await Promise.all([1, 2, 3].map(async n => { const r = await Counter.count({ n })
        return r })) console.log(all.join())""",
    "settled": """const all = await Promise.allSettled([1, 2, 3].map(n => Counter.count({ n })))
        for (const each of all) { if (each.status === "rejected") { throw each.reason } }
        console.log(all.map(each => each.value).join())""",
    "one after the other": """const all = []
        for (const n of [1, 2, 3]) { try { all.push(await Counter.count({ n })) } catch (e) { all.push(e) } }
        for (const each of all) { if (each !== 1) { throw each } } console.log(all.join())""",
    "in other words": """const all = await Promise.all([1, 2, 3].map(async n => {
        try { return await Counter.count({ n }) } catch (e) { throw new Error(`${n}: ${e.message}`) } }))
        console.log(all.join())""",
}
# The same, with what they print of it.
SPEAKING = {
    "in passing": """const all = await Promise.all([1, 2, 3].map(async n => {
        try { return await Counter.count({ n }) } catch (e) { console.log("bad") throw e } }))
        console.log(all.join())""",
    "settled": """const all = await Promise.allSettled([1, 2, 3].map(n => Counter.count({ n })))
        const bad = all.filter(each => each.status === "rejected")
        if (bad.length) { for (const each of bad) { console.log("bad") } throw bad[0].reason }
        console.log(all.map(each => each.value).join())""",
}


class Recovering:
    """Models of runs, of which those of the first one are refused."""

    def __init__(self) -> None:
        self.voices: list[Voice] = []

    def __call__(self) -> Voice:
        is_first = not self.voices
        self.voices.append(Voice(refuse if is_first else return_one))
        return self.voices[-1]


async def refuse(request: Request) -> AsyncIterator[str]:
    """The key is wrong."""
    raise RequestError("the key is wrong")
    yield ""


async def return_one(request: Request) -> AsyncIterator[str]:
    """The key is right."""
    yield '{"intent":"return","data":1}'


@pytest.mark.parametrize("name", BRANCHES)
def test_all_branches_that_failed_are_tried_again_at_once(play: Player, name: str) -> None:
    """One resume is enough; the failures of the others were given again, one resume after the other."""
    models = Recovering()
    recorder = Recorder(play, COUNTERS.replace("BODY", BRANCHES[name]), models)

    failed = recorder.run({})
    resumed = recorder.again(failed.entries, {})

    assert ("the key is wrong" in failed.played.told, "") == (True, resumed.played.told)
    assert (["1,1,1"], 3) == (resumed.printed, len(models.voices[1].requests))


ASKING = """
role R { can execute, can delegate }
agent Counter : R { on count(args: { n: int }) { playbook "Return one." } }
team Pair { a: Counter  b: Counter }
agent Main : R { uses team Pair  on go(x: Json) { playbook "Ask both." } }
"""


def test_members_that_a_model_asked_at_once_are_tried_again(play: Player) -> None:
    """Their failures are no results that the model had acted on, since it could not be asked either."""
    voices: list[Voice] = []
    group = [{"actionType": "delegate", "intent": f"{name}::count", "id": name, "data": {"n": 1}} for name in "ab"]

    async def answer(request: Request) -> AsyncIterator[str]:
        if len(voices) > 1:
            yield '{"intent":"return","data":1}'
        elif len(voices[0].requests) > 1:
            raise RequestError("the key is wrong")
        else:
            yield json.dumps({"batch": [{"parallel": group}]})

    def make_voice() -> Voice:
        voices.append(Voice(answer))
        return voices[-1]

    recorder = Recorder(play, ASKING, make_voice)
    resumed = recorder.again(recorder.run({}).entries, {})

    assert (1, 3) == (resumed.played.result, len(voices[1].requests))
    assert "[a] a::count -> 1" in str(voices[1].requests[-1].messages[-1])


@pytest.mark.parametrize("name", SPEAKING)
def test_branches_that_told_of_an_outage_are_tried_again(play: Player, name: str) -> None:
    """Printing gets nothing done; what is printed in the same place afterwards is printed, too."""
    models = Recovering()
    recorder = Recorder(play, COUNTERS.replace("BODY", SPEAKING[name]), models)

    resumed = recorder.again(recorder.run({}).entries, {})

    assert (["bad"] * 3 + ["1,1,1"], 3) == (resumed.printed, len(models.voices[1].requests))


def test_an_outage_that_code_only_told_is_tried_again(play: Player) -> None:
    """What a provider refuses is no outcome, as long as nothing was done because of it."""
    body = """let n = 0 try { await Counter.count({ n: 1 }) } catch (e) { console.log("seen") n = 2 }
        console.log(await Counter.count({ n }))"""
    models = Recovering()
    recorder = Recorder(play, COUNTERS.replace("BODY", body), models)

    resumed = recorder.again(recorder.run({}).entries, {})

    assert (["seen", "1"], 2) == (resumed.printed, len(models.voices[1].requests))


SEEN = {
    "caught": """let n = 0 try { await Counter.count({ n: 1 }) } catch (e) { n = await Counter.double({ n: 1 }) }
        console.log(await Counter.count({ n }), n)""",
    "settled": """const all = await Promise.allSettled([1, 2].map(n => Counter.count({ n })))
        const n = await Counter.double({ n: all.filter(each => each.status === "rejected").length })
        console.log(await Counter.count({ n }), n / 2)""",
}


@pytest.mark.parametrize("name", SEEN)
def test_a_failure_that_code_has_acted_on_stays(play: Player, name: str) -> None:
    """What was done after it would not have been done otherwise."""
    models = Recovering()
    recorder = Recorder(play, COUNTERS.replace("BODY", SEEN[name]), models)

    resumed = recorder.again(recorder.run({}).entries, {})

    assert (["1 2"], 1) == (resumed.printed, len(models.voices[1].requests))


@pytest.mark.parametrize("unsafe", [True, False])
def test_an_effect_of_another_branch_that_failed_has_ended(unsafe: bool) -> None:
    """Nobody has to decide about it, and it is not done twice; what changes nothing is tried again."""
    shell, first, second = ("go", "~1", "shell"), ["go", "~1", "error"], ["go", "~2", "error"]
    entries = [
        JournalEntry(1, 0.0, "begun", shell, data={"unsafe": unsafe}),
        JournalEntry(2, 0.0, "failed", shell, data={"origin": first}),
        JournalEntry(3, 0.0, "handler_failed", ("go", "~2", "count"), data={"origin": second}),
        JournalEntry(4, 0.0, "handler_failed", ("go",), data={"origin": second}),
        JournalEntry(5, 0.0, "run_ended", data={"origin": second}),
    ]

    assert [1, 2][: 1 + unsafe] == [entry.n for entry in lasting_entries(entries)]
