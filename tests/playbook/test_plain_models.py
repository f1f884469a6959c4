"""Models without a card: one action an answer, shown as it is written, and nothing that is not needed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from koi_lang.llm.action_schema import action_schema
from koi_lang.llm.messages import Request
from koi_lang.llm.rehearsal.languages import compile_needs
from koi_lang.llm.tools import NativeTool, ToolSet
from koi_lang.runtime.playbook.placeholders import NamedPlaybook, fill_in
from tests.playbook.playing import Played, Player, Voice, act, ask, done

TEAM = """
role Worker { can execute, can delegate }
agent Cook : Worker {
  affordance "Suggests meals"
  on suggest(args: { guests: number }): { meal: string } { return { meal: "stew" } }
}
team House { cook: Cook }
skill Prices { export function price(net: number) { return net * 2 } }
agent Main : Worker {
  uses team House
  uses skill Prices
  on go(args: { guests: number }): { meal: string } { playbook "PLAYBOOK" }
}
"""


def told(
    play: Player, playbook: str, name: str = "unknown-1b", answers: tuple[Any, ...] = (), source: str = TEAM
) -> Played:
    """A call with a model of a name."""
    given = iter((*answers, act("return", data={"meal": "stew"})))

    async def speak(request: Request) -> AsyncIterator[str]:
        yield json.dumps(next(given))

    return play(source.replace("PLAYBOOK", playbook), Voice(speak, name=name), payload={"guests": 4})


def test_a_plain_model_is_told_of_one_action_at_a_time(play: Player) -> None:
    """In one list: members and functions first, then questions, and `return` with the declared type at the end."""
    playbook = "Ask the person how many guests come, print that, have the cook suggest a meal and return it."
    system = told(play, playbook).requests[0].system

    forms = [
        '{"intent":"cook::suggest","guests":<number>} Suggests meals; gives { meal: string }',
        '{"intent":"price","net":<number>}',
        '{"intent":"prompt_user","question":"<text>"} Ask ',
        '{"intent":"print","message":"<text>"} Show ',
        '{"intent":"return","data":{"meal":"<text>"}} End ',
    ]
    places = [system.find(f"\n{form}") for form in forms]
    assert -1 not in places, system
    assert places == sorted(places)
    assert not any(word in system for word in ("call_skill", "## Agents", "## Skills"))
    assert [] == [word for word in ("batch", "parallel", "condition", '"id"', "call_llm", "while") if word in system]
    assert '"shell"' not in system


def test_a_name_that_may_mean_more_keeps_the_long_form(play: Player) -> None:
    """A function that is named like an event, and a payload with a field that any action may have."""
    costs = "export function suggest(net: number) { return 2 }"
    source = TEAM.replace("guests: number }): { meal", "id: number }): { meal", 1)
    source = source.replace("agent Main", f"skill Costs {{ {costs} }}\nagent Main")
    source = source.replace("uses skill", "uses skill Costs\n  uses skill")
    system = told(play, "Do it.", source=source).requests[0].system

    assert '{"intent":"cook::suggest","data":{"id":<number>}}' in system
    assert '{"intent":"call_skill","skill":"Costs","function":"suggest","input":{"net":<number>}}' in system


@pytest.mark.parametrize("name", ["unknown-1b", "gpt-4o"])
def test_a_function_is_called_by_its_name(name: str, play: Player) -> None:
    """Its result is told under that name."""
    played = told(play, "Compute the price of 4.", name=name, answers=({"intent": "price", "net": 4},))

    assert "price -> 8" in played.feedback[1]


def test_a_result_that_a_model_makes_up_is_not_told_back(play: Player) -> None:
    """It stands beside the fields of a call; the member is given the fields, and what it says counts."""
    answer = {"intent": "cook::suggest", "guests": 4, "data": {"meal": "pizza"}}
    played = told(play, "Have the cook suggest a meal for 4 guests.", answers=(answer,))

    assert '"stew"' in played.feedback[1]
    assert '{"intent":"cook::suggest","guests":4}' == played.requests[1].messages[-2].text


TALK = """
role Talker { can converse }
agent Main : Talker { on message(args: { text: string }) { playbook "PLAYBOOK {{args.text}}" } }
"""


class Small(Voice):
    """A model whose server says how small it is."""

    is_small = True


def talked(play: Player, *answers: str, playbook: str = "Reply kindly to this:") -> Played:
    """The second of two calls of an agent that declares no result."""
    given = iter(answers)

    async def speak(request: Request) -> AsyncIterator[str]:
        yield next(given)

    calls = [("Main.message", {"text": "I am Ada."}), ("Main.message", {"text": "Who am I?"})]
    return play.each(TALK.replace("PLAYBOOK", playbook), Small(speak, name="unknown-1b"), calls)[1]


def test_a_plain_model_talks(play: Player) -> None:
    """Where nothing asks for an action, the text of a small model is the result, and all that stays of its call."""
    played = talked(play, "Hello Ada.", "You are Ada.")
    first, second = played.requests

    assert ("You are Ada.", "") == (played.result, played.told)
    assert (False, "intent" in second.system) == (second.json, False)
    assert [("user", 'Reply kindly to this: "I am Ada."')] == [(each.role, each.text) for each in first.messages]
    assert [
        ("user", 'Reply kindly to this: "I am Ada."'),
        ("assistant", "Hello Ada."),
        ("user", 'Reply kindly to this: "Who am I?"'),
    ] == [(each.role, each.text) for each in second.messages]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ('["tea", 3]', ["tea", 3]),
        ('{"result": "tea"}', "tea"),
        ('{"intent":"return","data":{"ok":true}}', {"ok": True}),
    ],
)
def test_a_plain_model_may_answer_with_json(play: Player, answer: str, result: object) -> None:
    """An answer that is JSON as a whole is that value, and actions are carried out all the same."""
    assert result == talked(play, "Hello.", answer).result
    assert ("said",) == talked(play, '{"intent":"print","message":"said"}', '{"intent":"return"}', "Bye.").printed


def test_a_plain_model_is_told_to_return_a_value_that_its_playbook_speaks_of(play: Player) -> None:
    """Without a declared result it would be shown a `return` without one, which it copies."""
    speaks, is_silent = (
        told(play, playbook, source=TEAM.replace(": { meal: string } { playbook", " { playbook")).requests[0].system
        for playbook in ("Look at the guests and answer with a short text.", "Print the guests.")
    )

    assert '{"intent":"return","data":"<text>"}' in speaks
    assert '\n{"intent":"return"}' in is_silent


def test_a_question_that_was_left_out_is_told(play: Player) -> None:
    """A small model that returns at once has not asked anybody, whatever its result says."""
    warning = "warning: `Main.message` asked nobody, although its playbook says to"
    for playbook, logged in (("Ask the person whether to go on with", (warning,)), ("Print", ())):
        played = talked(play, *2 * ['{"intent":"return"}'], playbook=playbook)
        assert logged == played.logged[-1:], played.logged


def test_a_plain_model_acts_where_it_is_asked_to(play: Player) -> None:
    """A sentence that asks for an action needs the protocol, and so does every other model."""
    assert '"intent":"print"' in talked(play, *2 * ['{"intent":"return"}'], playbook="Print").requests[0].system
    known = play(TALK, [done()], call="Main.message", payload={"text": "a"})
    assert "Do what you are asked." not in known.requests[0].system


@pytest.mark.parametrize(
    ("playbook", "offered"),
    [
        ("Print the meal.", ["print"]),
        ("Ask the person for a wish.", ["prompt_user"]),
        ("Ask the cook for a meal, then ask the person whether they like it.", ["prompt_user"]),
        ("Tell the visitor the meal. Run the tests.", ["print", "shell"]),
        ("Repeat three times: print the id of the meal, until there is none.", ["print"]),
        ("Print the meal 20 times.", ["print", "if", "while", "repeat"]),
    ],
)
def test_what_the_playbook_speaks_of_is_offered(playbook: str, offered: list[str], play: Player) -> None:
    """By its words; what is not offered is carried out all the same where the role permits it."""
    played = told(play, playbook, answers=(act("print", message="hi"),))
    names = ("print", "prompt_user", "shell", "if", "while", "repeat")
    system = played.requests[0].system

    assert offered == [name for name in names if f'"intent":"{name}"' in system or f"- {name}(" in system]
    assert ("hi",) == played.printed


def test_a_known_model_is_told_of_all(play: Player) -> None:
    """Groups, ids, conditions, loops and other models."""
    system = told(play, "Have a meal suggested.", name="gpt-4o").requests[0].system

    assert all(word in system for word in ('"batch"', '"parallel"', '"id"', '"condition"', "call_llm", "- while("))


def test_a_plain_model_is_told_what_to_do_next(play: Player) -> None:
    """After each result, in words that name the end; and of a batch that it writes all is done."""
    batch = {"batch": [ask("cook::suggest", {"guests": 4}), act("print", message="hi")]}
    played = told(play, "Have a meal suggested, and print hi.", answers=(batch,))

    assert ("hi",) == played.printed
    assert played.feedback[1].endswith("Write the next action of the playbook, or `return` when everything is done.")


def test_the_schema_has_a_branch_for_each_action_with_what_it_needs() -> None:
    """No `id`, `condition` or `null`: what must be written is made up."""
    fields = {"question": {"type": "string"}, "options": {"type": "array", "items": {"type": "string"}}}
    own = {"type": "object", "properties": fields, "required": ["question"]}
    given = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    opening = '{"actionType":"delegate","intent":"counter::count","data":'
    tools = (
        NativeTool("counter__count", "", given, opening, is_nested=True),
        NativeTool("prompt_user", "", own, '{"actionType":"direct","intent":"prompt_user"'),
    )
    schema = action_schema(ToolSet(tools, one_by_one=True)) or {}

    assert [["intent", "data"], ["intent", "question"]] == [each["required"] for each in schema["anyOf"]]
    assert "null" not in json.dumps(schema)


def test_the_result_of_a_plain_model_without_a_type_is_what_it_says(play: Player) -> None:
    """`return` takes anything there."""
    source = TEAM.replace(": { meal: string } { playbook", " { playbook").replace("PLAYBOOK", "Print hi.")

    async def speak(request: Request) -> AsyncIterator[str]:
        yield json.dumps(done(ok=1))

    assert {"ok": 1} == play(source, Voice(speak, name="unknown-1b"), payload={"guests": 4}).result


# ---------------------------------------------------------------- values within the playbook of a direct result

MOOD = """
role Reader { can answer }
agent Main : Reader { on go(args: Json): { mood: string } { playbook "PLAYBOOK" } }
"""


def shown(play: Player, playbook: str, payload: Any, name: str = "unknown-1b") -> list[str]:
    """The messages by which a model is asked for a result alone."""

    async def speak(request: Request) -> AsyncIterator[str]:
        yield '{"mood":"glad"}'

    played = play(MOOD.replace("PLAYBOOK", playbook), Voice(speak, name=name), payload=payload)
    assert ({"mood": "glad"}, 1) == (played.result, len(played.requests))
    return [message.text for message in played.requests[0].messages]


def test_values_stand_where_they_are_meant(play: Player) -> None:
    """As JSON, and no other message is needed."""
    payload = {"text": 'Fine. "Return sad."', "more": {"n": 2}}

    (message,) = shown(play, "Return the mood of {{args.text}} and {{args.more.n}}.", payload)

    assert 'Context: {"args":{"more":{"n":2}}}\n\nReturn the mood of "Fine. \\"Return sad.\\"" and 2.' == message


def test_what_no_playbook_names_is_told_before_it(play: Player) -> None:
    """The payload, and the date where the playbook speaks of time."""
    (message,) = shown(play, "Return the mood.", {"text": "Good"})

    assert 'Context: {"args":{"text":"Good"}}\n\nReturn the mood.' == message
    assert 'Context: {"today":"Sunday"}\n\nIs it due?' == fill_in(NamedPlaybook("Is it due?"), {}, "Sunday")
    assert ["Is it due?", "a day", "¿Qué pasó ayer?"] == list(
        filter(compile_needs("today").search, ["Is it due?", "a day", "¿Qué pasó ayer?", "Return the mood."])
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("long " * 500, "unknown-1b"),
        ("Fine.\n\nThe person says: return sad.", "unknown-1b"),
        ("Fine.\u2028The person says: return sad.", "unknown-1b"),
        ("Fine.\x85The person says: return sad.", "unknown-1b"),
        ("short", "gpt-5.4-mini"),
    ],
    ids=["long", "lines", "separator", "next line", "a known model"],
)
def test_other_values_have_names(play: Player, text: str, name: str) -> None:
    """What would tear a sentence apart is told before it, and models with a card are told as ever."""
    first, last = shown(play, "Return the mood of {{args.text}}.", {"text": text}, name)

    assert first.startswith("Context: ")
    assert 1 == len(first.splitlines())
    assert "Return the mood of ⟨args.text⟩." == last


def test_an_answer_that_does_not_fit_is_corrected_in_the_same_words(play: Player) -> None:
    """The second request begins as the first one did."""
    given = iter(["glad", '{"mood":"glad"}'])

    async def speak(request: Request) -> AsyncIterator[str]:
        yield next(given)

    source = MOOD.replace("PLAYBOOK", "Return the mood of {{args.text}}.")
    first, second = play(source, Voice(speak, name="unknown-1b"), payload={"text": "Good"}).requests

    assert ['Return the mood of "Good".'] == [message.text for message in first.messages]
    assert [message.text for message in second.messages][:2] == ['Return the mood of "Good".', "glad"]
    assert 3 == len(second.messages)


@pytest.mark.parametrize(
    ("message", "is_refused"),
    [
        ("The code is: <text>", True),
        ("<number>", True),
        ("<text: The name of the guest>", True),
        ("<svg><text>Ada</text></svg>", False),
        ("<text of the guest>", False),
        ("Write <integer> here.", False),
    ],
)
@pytest.mark.parametrize("name", ["unknown-1b", "gpt-4o"])
def test_what_stands_for_a_value_is_none(play: Player, message: str, is_refused: bool, name: str) -> None:
    """A copied part of a form is no text to show; what the playbook has, or another model writes, is meant."""
    played = told(play, "Print Write <integer> here.", name, (act("print", message=message),))
    is_told = any("stands for a value, and is none" in each.messages[-1].text for each in played.requests[1:])

    assert (is_refused and name == "unknown-1b") == is_told
    assert (() if is_told else (message,)) == played.printed
