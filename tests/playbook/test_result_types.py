"""Result types of playbooks: what models are told of them, of what does not fit, and where that ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.playbook.playing import Player, act
from tests.playbook.transports import WAYS, talk

PROGRAM = """
role Worker { can execute }
role Lead { can delegate }
/** What a review found. */
type Finding = { line: int, text: string, severity: "blocker" | "note", fix?: string }
agent Reviewer : Worker {
  state { seen: number = 0 }
  on review(args: { text: string }): { verdict: "pass" | "change", findings: Finding[] } { playbook "Review." }
}
team Reviewers { reviewer: Reviewer }
agent Main : Lead { uses team Reviewers  on go(args) { playbook "Have it reviewed." } }
"""
GOOD = {"verdict": "pass", "findings": []}
ONE = {"line": 1, "text": "a", "severity": "note"}

# Eight kinds of misfit: what is returned, and what the model is told.
MISFITS: dict[str, tuple[Any, str]] = {
    "a field is missing": ({"verdict": "pass"}, "`findings` is missing"),
    "another choice": ({**GOOD, "verdict": "ok"}, '`verdict` must be "pass" or "change", not "ok"'),
    "a list is none": ({**GOOD, "findings": ONE}, "`findings` must be a list, not {"),
    "an item is none": ({**GOOD, "findings": ["a"]}, '`findings[0]` must be an object, not "a"'),
    "deep in a list": (
        {**GOOD, "findings": [ONE, ONE, {**ONE, "severity": "high"}]},
        '`findings[2].severity` must be "blocker" or "note", not "high"',
    ),
    "no whole number": (
        {**GOOD, "findings": [{**ONE, "line": 1.5}]},
        "`findings[0].line` must be a whole number, not 1.5",
    ),
    "null": ({**GOOD, "verdict": None}, '`verdict` must be "pass" or "change", not null'),
    "no object": ("pass", 'the result must be an object, not "pass"'),
}


@pytest.mark.parametrize(("result", "told"), MISFITS.values(), ids=MISFITS)
def test_a_misfit_is_told_and_answered_again(result: Any, told: str, play: Player) -> None:
    """The model reads path, expected and found; its next answer is the result."""
    played = play(
        PROGRAM, [act("return", data=result), act("return", data=GOOD)], call="Reviewer.review", payload={"text": "a"}
    )

    assert GOOD == played.result
    assert f"❌ return failed: {told}" in played.requests[1].messages[-1].text


SEARCH = """
role Worker { can execute }
type One = { kind: "one", size?: int }
type Two = { kind: "two", name: string, size?: int }
agent Main : Worker {
  on go(args): { query: string, limit?: int, tags?: string[], parts?: { a: int, b?: string }[], of?: One | Two } {
    playbook "Return the search."
  }
}
"""
# Results that a schema asks for, or that some models write, and what they are read as.
READ: dict[str, tuple[Any, Any]] = {
    "null": ({"query": "a", "limit": None, "tags": None, "parts": None, "of": None}, {"query": "a"}),
    "null in a list": ({"query": "a", "parts": [{"a": 1, "b": None}]}, {"query": "a", "parts": [{"a": 1}]}),
    "null in a union": (
        {"query": "a", "of": {"kind": "two", "name": "b", "size": None}},
        {"query": "a", "of": {"kind": "two", "name": "b"}},
    ),
    "a text of JSON": ('{"query":"a","limit":1}', {"query": "a", "limit": 1}),
    "texts of JSON in it": ({"query": "a", "limit": "1", "tags": '["b"]'}, {"query": "a", "limit": 1, "tags": ["b"]}),
}


@pytest.mark.parametrize(("given", "result"), READ.values(), ids=READ)
def test_a_result_with_one_meaning_is_read(given: Any, result: Any, play: Player) -> None:
    """Closed schemas require every field, and null stands there for what may be left out."""
    played = play(SEARCH, [act("return", data=given)])

    assert (None, result, 1) == (played.error, played.result, len(played.requests))


@pytest.mark.parametrize(
    ("type", "given", "told"),
    [
        ("One | Two", {"kind": "three"}, '`kind` must be "one" or "two", not "three"'),
        ("One | Two", {"size": 1}, "`kind` is missing"),
        ("One | Two", {"kind": "two"}, "`name` is missing"),
        ("{ a: int } | { b: int }", {"a": "x"}, "the result must be { a: integer } or { b: integer }, not { a: 'x' }"),
        ("int[] | string[]", [1, "a"], "the result must be integer[] or string[], not [ 1, 'a' ]"),
        ("-1 | 1", -2, "the result must be -1 or 1, not -2"),
        ("One | string", 1.5, "the result must be an object or a text, not 1.5"),
    ],
)
def test_a_choice_is_told_by_the_part_that_is_wrong(type: str, given: Any, told: str, play: Player) -> None:
    """An object among several is known by its literals; without any, all types are told."""
    source = SEARCH.replace(SEARCH[SEARCH.index("{ query") : SEARCH.index(" {\n    playbook")], type)
    played = play(source, [act("return", data=given), act("return", data=given)])

    assert f"asked for: {told}. Answer" in played.feedback[1]


def test_null_for_a_field_that_is_needed_is_refused(play: Player) -> None:
    """Nothing can be left out there."""
    played = play(SEARCH, [act("return", data={"query": None}), act("return", data={"query": "a"})])

    assert "`query` must be a text, not null" in played.feedback[1]


@pytest.mark.parametrize("result", [result for result, _ in MISFITS.values()], ids=MISFITS)
def test_the_same_misfit_twice_ends_the_call(result: Any, play: Player) -> None:
    """Nothing that does not fit is ever a result, and nobody is asked a third time for the same."""
    played = play(PROGRAM, [act("return", data=result)] * 9, call="Reviewer.review", payload={"text": "a"})

    assert played.result is None
    assert 2 == len(played.requests)
    assert "gave up after two answers with the same mistake; the last: return: " in str(played.error)


def test_the_third_misfit_ends_the_call(play: Player) -> None:
    """Also where each is another one."""
    wrong = [act("return", data={"verdict": verdict}) for verdict in ("a", "b", "c")]
    played = play(PROGRAM, wrong, call="Reviewer.review", payload={"text": "a"})

    assert 3 == len(played.requests)
    assert "gave up after 3 results that are not of its type; the last: " in str(played.error)


def test_the_type_stands_in_the_prompt_once(play: Player) -> None:
    """The result type of a playbook, and what its author says of a declared type."""
    played = play(PROGRAM, [act("return", data=GOOD)], call="Reviewer.review", payload={"text": "a"})

    system = played.requests[0].system
    assert 1 == system.count('{"intent":"return","data":{"verdict":"pass" | "change","findings":[<Finding>, …]}}')
    assert 1 == system.count("Finding = { line: integer, text: string, ") == system.count("// What a review found.")


def test_others_are_told_what_a_member_gives(play: Player) -> None:
    """The signature of a member says its result type, with the declared types behind all members."""
    played = play(PROGRAM, [act("return", data="ok")])

    system = played.requests[0].system
    assert "- reviewer::review(text: string): { verdict: 'pass' | 'change', findings: Finding[] }" in system
    assert "## Types\nFinding = { line: integer, text: string, severity: 'blocker' | 'note', fix?: string }" in system


def test_an_object_without_an_intent_is_the_result(play: Player) -> None:
    """A model that writes nothing but an object of the declared type has returned it."""
    played = play(PROGRAM, [GOOD], call="Reviewer.review", payload={"text": "a"})

    assert GOOD == played.result


THINKING = PROGRAM.replace("role Worker { can execute }", "role Worker { can think }")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_misfits_are_mended_over_the_wire(way: tuple[str, str], play: Player) -> None:
    """Through both SDKs and every transport each kind of misfit is told, and mended by the next answer."""
    script = [[act("return", data=result)] for kind in MISFITS.values() for result in (kind[0], GOOD)]
    calls = [("Reviewer.review", {"text": name}) for name in MISFITS]

    done = talk(play, THINKING, script, way, calls=calls)

    failed = [event.fields["error"] for event in done.played.events if event.type == "action_failed"]
    assert (GOOD, 2 * len(MISFITS)) == (done.played.result, len(done.asked)), done.played.told
    assert [True] * len(MISFITS) == [told in error for (_, told), error in zip(MISFITS.values(), failed, strict=True)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_what_never_fits_ends_over_the_wire(way: tuple[str, str], play: Player) -> None:
    """The same misfit twice ends the call with what was wrong with it."""
    done = talk(
        play, THINKING, [[act("return", data={"verdict": "ok"})]], way, calls=[("Reviewer.review", {"text": "a"})]
    )

    assert 2 == len(done.asked)
    assert "with the same mistake; the last: return: `findings` is missing" in done.played.told


@pytest.mark.parametrize("way", [way for way in WAYS if way[1] != "text"], ids="-".join)
def test_providers_are_sent_the_type(way: tuple[str, str], play: Player) -> None:
    """Where a provider takes tools or a schema, `return` has the declared fields, and no reference is left."""
    done = talk(play, THINKING, [[act("return", data=GOOD)]], way, calls=[("Reviewer.review", {"text": "a"})])

    sent = done.asked[0].sent.decode()
    assert '"enum":["blocker"' in sent.replace(" ", "") or '"enum":["note"' in sent.replace(" ", "")
    assert '"required":["verdict","findings"]' in sent.replace(" ", "")
    assert "#/$defs/Finding" not in sent


ORDERS = """
role Worker { can execute }
role Lead { can delegate }
type Item = { name: string, pieces: int, gift?: boolean }
type Order = { items: Item[], note?: string | null }
skill Shop { export function total(order: Order, first?: Item): int { return order.items.length } }
agent Clerk : Worker { on order(args: Order): int { return args.items[0].pieces + 1 } }
team Staff { clerk: Clerk }
agent Main : Lead { uses team Staff  uses skill Shop  on go(args) { playbook "Order tea." } }
"""


def test_slips_in_declared_types_are_read(play: Player) -> None:
    """What a model gives a member, or a function, is read kindly within declared types, too."""
    item = {"name": "tea", "pieces": "2", "gift": None}
    answers = [
        {"actionType": "delegate", "intent": "clerk::order", "data": {"items": [item]}, "id": "a"},
        act("call_skill", skill="Shop", function="total", input={"order": {"items": [item]}}, id="b"),
        act("return", data="${a.output} ${b.output}"),
    ]

    played = play(ORDERS, [{"batch": answers}])

    assert "3 1" == played.result, played.told


def test_models_are_told_declared_types_of_functions(play: Player) -> None:
    """The signature of a function names them, and a line says what they are."""
    system = play(ORDERS, [act("return", data=1)]).requests[0].system

    assert "- Shop.total(order: { items: Item[], note?: string }, first?: {" in system
    assert "## Types\nItem = { name: string, pieces: integer, gift?: boolean }" in system


NULLS = """
role Worker { can execute }
role Lead { can delegate }
agent Clerk : Worker {
  on text(): string | null { playbook "Return the name, if there is one." }
  on anything(): any { playbook "Return it." }
  on thing() { playbook "Return it." }
  on record(): { name?: string | null } | null { playbook "Return it." }
  on name(): string | null { answer "Who is it, if anybody?" }
}
team Office { clerk: Clerk }
agent Main : Lead {
  uses team Office
  on typed(args) { return await Clerk.handle("thing", {}, { returns: { type: ["string", "null"] } }) }
  on chosen(args) { return await Clerk.handle("thing", {}, { returns: { enum: ["a", null] } }) }
  on sent(args) { return await send peers.event("thing").any()({}) }
  on asked(args) { playbook "Have the clerk return the text, and return that." }
}
"""
NULL = act("return", data=None)


@pytest.mark.parametrize("event", ["text", "anything", "thing", "record", "name"])
@pytest.mark.parametrize("answer", [NULL, act("return", result=None)], ids=str)
def test_null_is_a_result(answer: Any, event: str, play: Player) -> None:
    """It came as an empty object, which is neither a text nor null."""
    played = play(NULLS, [answer], call=f"Clerk.{event}")

    assert (None, None, 1) == (played.error, played.result, len(played.requests))


@pytest.mark.parametrize("event", ["text", "name"])
def test_null_is_an_answer(event: str, play: Player) -> None:
    """A result that is no object stands in a field of an answer without actions."""
    assert play(NULLS, [{"result": None}], call=f"Clerk.{event}").result is None


@pytest.mark.parametrize("event", ["typed", "chosen", "sent"])
def test_null_reaches_the_caller(event: str, play: Player) -> None:
    """A schema that allows it refused the empty object that came instead."""
    played = play(NULLS, [NULL], call=f"Main.{event}")

    assert (None, None) == (played.error, played.result)


def test_a_member_gives_null(play: Player) -> None:
    """Its result is a value like others, for references, too."""
    asked = {"actionType": "delegate", "intent": "clerk::text", "data": {}, "id": "c"}
    played = play(NULLS, [asked, NULL, act("return", data={"name": "${c.output}"})], call="Main.asked")

    assert (None, {"name": None}) == (played.error, played.result)


@pytest.mark.parametrize(("event", "result"), [("thing", {}), ("anything", {}), ("text", None)])
def test_a_return_without_a_result(event: str, result: Any, play: Player) -> None:
    """It gives an empty object where one may be, else null."""
    assert result == play(NULLS, [act("return")], call=f"Clerk.{event}").result


def test_a_field_that_may_be_null(play: Player) -> None:
    """It is kept, and is not taken for one that was left out."""
    assert {"name": None} == play(NULLS, [act("return", data={"name": None})], call="Clerk.record").result


WHOLE = """
role Worker { can execute }
type Item = { n: int, part: number }
agent Main : Worker {
  on told(): { n: int, items: Item[], some: int | string | null, either: int | number } { playbook "Count." }
  on coded(): int { return 2 ** 60 / 1.5 * 1.5 }
}
"""


def test_whole_numbers_are_integers(play: Player) -> None:
    """What is declared `int` leaves as one, however a model writes it, and at any depth; a `number` stays as it is."""
    data = {"n": 7.0, "items": [{"n": 2.0, "part": 2.0}], "some": 3.0, "either": 1.5}

    told = play(WHOLE, [act("return", data=data)], call="Main.told").result
    coded = play(WHOLE, [], call="Main.coded").result

    assert [int, int, float, int, float] == [
        type(value) for value in (told["n"], *told["items"][0].values(), told["some"], told["either"])
    ]
    assert (int, "1152921504606847000") == (type(coded), str(coded))
