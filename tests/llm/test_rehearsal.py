"""Whole playbooks followed by the rehearsal model, round by round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koi_lang.errors import PlaybookError
from koi_lang.llm.messages import ActionResult, DelegateInfo, Request
from koi_lang.llm.rehearsal import Rehearsal
from tests.llm.rehearsing import TASK, answer_text, next_actions, play


def test_an_answer_is_used_by_name() -> None:
    """What was asked for can be spoken of by its name in later sentences, in braces and in objects."""
    ended = play(
        'Ask the user for their name. Greet them by name. Print "Bye {{name}}". Return { who: <name>, it: name }',
        {"prompt_user": ["Ada"]},
    )

    assert ended.printed == ["Hello, Ada!", "Bye Ada"]
    assert ended.result == {"who": "Ada", "it": "Ada"}
    assert [len(actions) for actions in ended.rounds] == [1, 3]


def test_spanish_from_question_to_result() -> None:
    """A Spanish playbook works like an English one."""
    ended = play(
        "Pregunta al usuario su nombre y salúdale por su nombre.\n"
        "Luego imprime la respuesta. Devuelve { nombre: nombre }",
        {"prompt_user": ["Ana"]},
    )

    assert (ended.printed, ended.result, ended.notes) == (["¡Hola, Ana!", "Ana"], {"nombre": "Ana"}, ())


def test_independent_steps_go_out_together() -> None:
    """Steps that need nothing of each other are one batch, ending with the result."""
    ended = play('Print "a", then print "b" and set state.count to 5. Return { ok: true }')

    assert [[a["intent"] for a in round] for round in ended.rounds] == [["print", "print", "update_state", "return"]]


def test_a_step_waits_for_the_state_it_reads() -> None:
    """A sentence that reads the state after a change sees the changed value."""
    ended = play("Increase the count by 1. Increase the count by 1. Print the count. Return the count.")

    assert (ended.printed, ended.result, len(ended.rounds)) == (["4"], 4, 3)


def test_results_of_members_are_used() -> None:
    """`the result` is what the member answered; its fields can be named."""
    ended = play(
        "Ask worker to process the items. Print the result. Print the verdict. Return it.",
        {"worker::process": [{"verdict": "good"}]},
    )

    assert ended.printed == ['{"verdict": "good"}', "good"]
    assert ended.result == {"verdict": "good"}


def test_what_was_stored_can_be_read() -> None:
    """A value read from the registry goes by the end of its key."""
    ended = play(
        'Store the name in the registry under "user:owner". Read "user:owner" from the registry. Print the owner.',
        {"registry_get": [{"success": True, "key": "user:owner", "value": "Bo", "found": True}]},
    )

    assert ended.printed == ["Bo"]
    assert ended.intents == ["registry_set", "registry_get", "print", "return"]


def test_an_answer_can_be_given_a_name() -> None:
    """`save it as …` names the last answer without an action of its own."""
    ended = play(
        'Ask the user "Where to?" and save the answer as city. Ask the user for a day. Print "{{city}} on {{day}}"',
        {"prompt_user": ["Rome", "Monday"]},
    )

    assert ended.printed == ["Rome on Monday"]
    assert ended.notes == ()


def test_two_things_are_two_questions() -> None:
    """`their name and age` asks one thing at a time."""
    ended = play("Ask the user for their name and age. Return { name: name, age: age }", {"prompt_user": ["Ada", "36"]})

    assert ended.result == {"name": "Ada", "age": "36"}


def test_numbers_in_answers_count() -> None:
    """An answer that is a number can be calculated with."""
    ended = play("Ask the user for a number. Add the number to state.total. Return the total.", {"prompt_user": ["5"]})

    assert ended.result == 15


@pytest.mark.parametrize(
    "playbook",
    [
        'Print "x" 3 times.',
        'Repeat three times: print "x"',
        'Repeat {{args.n}} times:\n  - print "x"',
        'Repite 3 veces: imprime "x"',
        'Imprime "x" tres veces',
        '1. Repeat this 3 times:\n   - Print "x"\n2. Return nothing',
    ],
)
def test_repetitions(playbook: str) -> None:
    """A step that is to be done N times is done N times."""
    assert play(playbook, args={"n": 3}).printed == ["x", "x", "x"]


def test_a_repeated_question_uses_each_answer() -> None:
    """Every round of a repetition sees its own answer."""
    ended = play(
        'Repeat 2 times:\n  - Ask the user for a word.\n  - Print "{{word}}!"\nReturn { last: word }',
        {"prompt_user": ["one", "two"]},
    )

    assert (ended.printed, ended.result) == (["one!", "two!"], {"last": "two"})


def test_the_last_result_is_returned_where_nothing_is_said() -> None:
    """A playbook without a return sentence ends with the last result, else with an empty object."""
    asked = play('Ask the user for a word. Print "thanks".', {"prompt_user": ["hm"]})
    printed = play('Print "x".')

    assert (asked.result, printed.result) == ({"answer": "hm"}, {})


def test_it_means_nothing_after_a_sentence_that_was_left_out() -> None:
    """`it` after a sentence for a model would be that sentence's result, so it is left out as well."""
    ended = play(
        "Ask the user for a topic. Write a poem about it. Print it. Print the topic.", {"prompt_user": ["tea"]}
    )

    assert ended.printed == ["tea"]
    assert ended.notes == ("Write a poem about it", "Print it")


def test_what_is_missing_is_named_as_it_was_written() -> None:
    """A value in a list has no field to be called by, so its words are told."""
    ended = play("Return { facts: [<fact>] }")

    assert ended.notes == ("`fact` in: Return { facts: [<fact>] }",)


def test_notes_are_told_once_and_as_they_come() -> None:
    """Each sentence for a model is reported once, however many requests a playbook takes."""
    told: list[str] = []
    model = Rehearsal(told.append)
    task = replace(TASK, playbook="Be nice. Ask the user for a word. Return it.")

    next_actions(model, task)
    next_actions(model, replace(task, results=(ActionResult("prompt_user", {}, True, {"answer": "x"}),)))

    assert told == ["Be nice"] == list(model.notes())


def test_actions_that_are_not_allowed_are_left_out() -> None:
    """What the role does not allow is neither proposed nor hidden."""
    ended = play('Set state.count to 1. Print "x".', actions=("print",))

    assert ended.intents == ["print", "return"]
    assert ended.notes == ("Set state.count to 1 (the agent may not use `update_state`)",)


def test_a_failed_action_ends_the_rehearsal() -> None:
    """There is no model to find another way, so the run says what failed."""
    task = replace(TASK, playbook='Print "x".', results=(ActionResult("print", {}, False, "no paper"),))

    with pytest.raises(PlaybookError, match="`print` failed, and a rehearsal cannot find another way: no paper"):
        next_actions(Rehearsal(), task)


def test_foreign_results_do_not_stall_it() -> None:
    """Results that no sentence has asked for are passed over."""
    results = (ActionResult("_llm_error", {}, False), ActionResult("shell", {}, True), ActionResult("print", {}, True))
    task = replace(TASK, playbook='Print "x". Return { ok: true }', results=results)

    assert next_actions(Rehearsal(), task) == [{"actionType": "direct", "intent": "return", "data": {"ok": True}}]


def test_a_written_batch_is_followed_in_order() -> None:
    """Actions written out as a batch are proposed one after the other, groups included."""
    ended = play(
        '{"batch": [{"intent": "print", "message": "a"}, {"parallel": [{"intent": "print", "message": "b"}]},'
        ' {"intent": "return", "data": {"n": 1}}]}'
    )

    assert (ended.printed, ended.result) == (["a", "b"], {"n": 1})


def test_a_written_plan_keeps_its_references() -> None:
    """What refers to results by id, to arguments or to a loop is left as it is, since the runtime resolves it."""
    ended = play(
        'Carry this out: {"actions": [{"id": "a", "intent": "prompt_user", "question": "How many?"},'
        ' {"intent": "repeat", "count": 2, "actions": [{"intent": "print", "message": "${iteration}"}]},'
        ' {"intent": "print", "condition": "${a.output.answer} > ${args.amount}", "message": "{{args.name}}"},'
        ' {"intent": "return", "data": "${Number(a.output.answer) + 1}"}]}'
    )

    assert ended.rounds == [
        [
            {"id": "a", "intent": "prompt_user", "question": "How many?"},
            {"intent": "repeat", "count": 2, "actions": [{"intent": "print", "message": "${iteration}"}]},
            {"intent": "print", "condition": "${a.output.answer} > ${args.amount}", "message": "Bo"},
            {"intent": "return", "data": "${Number(a.output.answer) + 1}"},
        ]
    ]


def test_a_written_action_uses_answers_by_name() -> None:
    """Where a reference is the name of an answer, it is filled in when the answer is there."""
    ended = play(
        'Ask the user for their name. Then do this: {"intent": "print", "message": "Hi ${name}"}',
        {"prompt_user": ["Ada"]},
    )

    assert (ended.printed, ended.notes) == (["Hi Ada"], ())


def test_an_unanswered_question_says_how_to_answer() -> None:
    """Where nobody answers a question, the advice is about answering it."""
    failed = ActionResult("prompt_user", {}, False, "nobody answers")
    task = replace(TASK, playbook="Ask the user for their name.", results=(failed,))

    with pytest.raises(PlaybookError) as raised:
        next_actions(Rehearsal(), task)

    assert raised.value.help == "Run the program in a terminal, or pipe one line for each question into it."


def test_lines_may_be_wrapped() -> None:
    """A sentence that goes on in the next line is one sentence; a quote may span lines."""
    ended = play('Ask the user for their name\n   and print "Dear {{name}},\nwelcome".', {"prompt_user": ["Ada"]})

    assert ended.printed == ["Dear Ada,\nwelcome"]


def test_members_are_not_invented() -> None:
    """Without a team nothing is delegated."""
    ended = play("Ask worker to process args.", members=())

    assert (ended.intents, ended.notes) == (["return"], ("Ask worker to process args",))


def test_a_member_with_several_events_must_be_told_which() -> None:
    """`Delegate … to` a member names no event, so there must be exactly one."""
    two = (DelegateInfo("worker", "", ("a", "b")),)
    ended = play("Delegate the items to worker.", members=two)

    assert ended.notes == ("Delegate the items to worker",)


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, "{ " * 5000, "“" * 5000, "${a " * 5000, "then " * 5000])
def test_odd_texts_are_only_odd(text: str) -> None:
    """Text that a payload has brought into a playbook neither breaks nor stalls the rehearsal."""
    ended = play(f"Analyse {text}\n\nReturn {{ ok: true }}")

    assert ended.result == {"ok": True}


def test_the_same_playbook_gives_the_same_answer() -> None:
    """Two rehearsals of one request do not differ by a character."""
    request = Request("", (), json=True, task=replace(TASK, playbook="Greet the user. Print args. Return state."))

    assert answer_text(Rehearsal(), request) == answer_text(Rehearsal(), request)


@pytest.mark.parametrize("as_json", [False, True])
def test_requests_outside_of_a_playbook_are_refused_politely(as_json: bool) -> None:
    """Without a task there is nothing to follow: the answer says so, and it is reported."""
    model = Rehearsal()
    text = answer_text(model, Request("Summarise.", (), json=as_json))

    assert "No model is configured" in text
    assert text.startswith("{") is as_json
    assert model.notes() == ("a request outside of a playbook",)
