"""Sentences of playbooks and the first action the rehearsal model makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koi_lang.llm.rehearsal import Rehearsal
from koi_lang.llm.rehearsal.sentences import sentences_of
from tests.llm.rehearsing import TASK, next_actions

ARGS = TASK.args


def first_action(sentence: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a playbook of one sentence begins with, and what was noted."""
    model = Rehearsal()
    action = next_actions(model, replace(TASK, playbook=sentence))[0]
    return {key: value for key, value in action.items() if key != "actionType"}, model.notes()


def check(sentence: str, expected: dict[str, Any]) -> None:
    """The sentence is understood completely and comes to this action."""
    assert first_action(sentence) == (expected, ())


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("Ask the user for their name.", "What is your name?"),
        ("First, please ask the user for their favourite colour.", "What is your favourite colour?"),
        ("Ask them for their hobbies", "What are your hobbies?"),
        ("Ask for their age.", "What is your age?"),
        ("Ask the user their address", "What is your address?"),
        ('Ask the user "What is your name?"', "What is your name?"),
        ('Ask: "Ready, {{args.name}}?"', "Ready, Bo?"),
        ("Ask the user how old they are.", "Please say how old you are:"),
        ("Ask the user whether they like tea.", "Please say whether you like tea:"),
        ("Ask the user if they want more.", "Please say if you want more:"),
        ("Ask the user for a number", "Please enter a number:"),
        ("Ask the user to enter a number between 1 and 10.", "Please enter a number between 1 and 10:"),
        ("Prompt the user for their city.", "What is your city?"),
        ("Get the user's name.", "What is your name?"),
        ("Request a date from the user.", "Please enter a date:"),
        ("Pregunta al usuario su nombre.", "¿Cuál es tu nombre?"),
        ("Pregúntale su edad", "¿Cuál es tu edad?"),
        ("Pide al usuario un número.", "Por favor, indica un número:"),
        ("Por favor, pregunta al usuario cuántos años tiene.", "Por favor, responde: cuántos años tiene"),
        ('Pregunta al usuario "¿Cómo te llamas?"', "¿Cómo te llamas?"),
    ],
)
def test_questions(sentence: str, question: str) -> None:
    """Asking the user becomes `prompt_user` with a question addressed to them."""
    check(sentence, {"intent": "prompt_user", "question": question})


@pytest.mark.parametrize(
    "sentence",
    [
        'Ask the user "Go on?" with options "Yes" and "No".',
        'Ask the user "Go on?" (options: Yes, No)',
        'Ask "Go on?" with the choices: ["Yes", "No"]',
        'Pregunta al usuario "Go on?" con las opciones "Yes" y "No"',
    ],
)
def test_questions_with_options(sentence: str) -> None:
    """Options that are written out are offered."""
    check(sentence, {"intent": "prompt_user", "question": "Go on?", "options": ["Yes", "No"]})


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ('Print "Hello".', "Hello"),
        ("Print 'it is fine'", "it is fine"),
        ("Print “curly”", "curly"),
        ('Say "Hi {{args.name}}, {{ args.items[1] }} of ${args.amount}!" to the user.', "Hi Bo, 2 of 5!"),
        ('Show the user the message "Hi"', "Hi"),
        ('Tell the user that "all is well".', "all is well"),
        ('Print the following message: "x"', "x"),
        ("Print: Hello there, friend", "Hello there, friend"),
        ("Print Hello World!", "Hello World!"),
        ("Print {{args.name}}", "Bo"),
        ("Print args.items", "[1, 2]"),
        ("Print the total", "10"),
        ("Print state.count + args.amount", "7"),
        ('Say "<b>bold</b> & {braces}"', "<b>bold</b> & {braces}"),
        ("Say hello to Ada.", "Hello, Ada!"),
        ("Greet the user by name.", "Hello, Bo!"),
        ("Greet {{args.name}}!", "Hello, Bo!"),
        ("Welcome Ada Lovelace.", "Welcome, Ada Lovelace!"),
        ("Thank them", "Thank you, Bo!"),
        ("Saluda al usuario por su nombre.", "¡Hola, Bo!"),
        ("Saluda a Marta", "¡Hola, Marta!"),
        ('Imprime "Hola"', "Hola"),
        ('Muestra el mensaje "x" al usuario', "x"),
        ("Imprime el total", "10"),
        ("Despídete de Marta", "¡Adiós, Marta!"),
    ],
)
def test_printing(sentence: str, message: str) -> None:
    """Printing, saying and greeting become `print` with the references filled in."""
    check(sentence, {"intent": "print", "message": message})


@pytest.mark.parametrize(
    ("sentence", "updates"),
    [
        ("Set state.count to 3.", {"count": 3}),
        ("Set the count to 7", {"count": 7}),
        ("Set `count` to seven", {"count": 7}),
        ('Set state.mood to "fine"', {"mood": "fine"}),
        ('Set state.user.name to "Ada"', {"user": {"name": "Ada"}}),
        ("state.count = 4", {"count": 4}),
        ("Set state.count to state.count + 1", {"count": 3}),
        ("Set state.total to args.amount * 2", {"total": 10}),
        ("Set state.items to args.items", {"items": [1, 2]}),
        ("Set state.rate to args.rate || 0.5", {"rate": 0.5}),
        ("Increase the count by 1", {"count": 3}),
        ("Increment state.count", {"count": 3}),
        ("Increment state.fresh", {"fresh": 1}),
        ("Add args.amount to state.total", {"total": 15}),
        ("Add 5 to the log", {"log": [5]}),
        ('Append "x" to state.log', {"log": ["x"]}),
        ("Decrease state.count by two", {"count": 0}),
        ("Subtract 3 from the total", {"total": 7}),
        ('Update the state with { "count": 5, total: args.amount, }', {"count": 5, "total": 5}),
        ("Store args.name in state.owner", {"owner": "Bo"}),
        ("Pon state.count a 9", {"count": 9}),
        ("Incrementa state.count en 2", {"count": 4}),
        ("Suma args.amount a state.total", {"total": 15}),
        ("Resta 1 de state.total", {"total": 9}),
        ("Guarda args.name en state.owner", {"owner": "Bo"}),
    ],
)
def test_state(sentence: str, updates: dict[str, Any]) -> None:
    """Changing the state becomes `update_state` with the new values."""
    check(sentence, {"intent": "update_state", "updates": updates})


@pytest.mark.parametrize(
    ("sentence", "action"),
    [
        ('Store args.name in the registry under "user:name".', {"key": "user:name", "value": "Bo"}),
        ("Save the name to the registry as user_name", {"key": "user_name", "value": "Bo"}),
        ("Save the name to the registry", {"key": "name", "value": "Bo"}),
        ('Store { "n": args.amount } under "k" in the registry', {"key": "k", "value": {"n": 5}}),
        ('Set the registry key "k{{args.amount}}" to 3', {"key": "k5", "value": 3}),
        ('Guarda args.name en el registro con la clave "k"', {"key": "k", "value": "Bo"}),
        ('Read "user:name" from the registry', {"key": "user:name"}),
        ("Get the value of user:name from the registry as who", {"key": "user:name"}),
        ("Look up user:name in the registry", {"key": "user:name"}),
        ('Lee "k" del registro', {"key": "k"}),
        ('Delete "k" from the registry', {"key": "k"}),
        ('List the registry keys with prefix "user:"', {"prefix": "user:"}),
        ('Search the registry for {"age": {"$gt": 5}}', {"query": {"age": {"$gt": 5}}}),
    ],
)
def test_registry(sentence: str, action: dict[str, Any]) -> None:
    """Storing, reading, deleting and searching become the registry's actions."""
    intent = {"query": "registry_search", "prefix": "registry_keys"}.get(next(iter(action)), "")
    if not intent:
        removes = sentence.startswith("Delete")
        intent = "registry_set" if "value" in action else "registry_delete" if removes else "registry_get"

    check(sentence, {"intent": intent, **action})


@pytest.mark.parametrize(
    ("sentence", "intent", "data"),
    [
        ("Ask worker to process args.", "worker::process", ARGS),
        ("Ask the worker to process the text.", "worker::process", {"text": "hey"}),
        ("Ask the worker agent to process", "worker::process", ARGS),
        ('Delegate to worker::process with { "n": args.amount }', "worker::process", {"n": 5}),
        ("Send args to worker::process", "worker::process", ARGS),
        ("Send the name and the total to worker::process", "worker::process", {"name": "Bo", "total": 10}),
        ('Call worker::process: {"n": 1}', "worker::process", {"n": 1}),
        ("worker::process", "worker::process", ARGS),
        ("Delegate the items to the worker", "worker::process", {"items": [1, 2]}),
        ("Ask mathBot to sum all args.items", "mathBot::sumAll", {"items": [1, 2]}),
        ("Have mathBot to add 3", "mathBot::add", {"value": 3}),
        ("Pide a worker que procese args.items", "worker::process", {"items": [1, 2]}),
        ('Delega en worker::process con {"n": 1}', "worker::process", {"n": 1}),
    ],
)
def test_delegation(sentence: str, intent: str, data: dict[str, Any]) -> None:
    """Work for a member of the team becomes a delegation to the event that is named."""
    check(sentence, {"intent": intent, "data": data})


@pytest.mark.parametrize(
    "sentence",
    [
        'Call the tool read_file of the server files with { "path": "a.txt" }',
        'Use files.read_file with { path: "a.txt" }',
        'Use the files tool read_file with {"path": "a.txt"}',
        'Usa la herramienta read_file de files con {"path": "a.txt"}',
    ],
)
def test_tools(sentence: str) -> None:
    """A tool that is named with its server is called through `call_mcp`."""
    check(sentence, {"intent": "call_mcp", "mcp": "files", "tool": "read_file", "input": {"path": "a.txt"}})


@pytest.mark.parametrize(
    ("sentence", "action"),
    [
        ('Run the shell action with {"command": "ls"}', {"intent": "shell", "command": "ls"}),
        ('Use `registry_keys` with {"prefix": "a"}', {"intent": "registry_keys", "prefix": "a"}),
        ('{"actionType": "direct", "intent": "print", "message": "raw"}', {"intent": "print", "message": "raw"}),
        (
            'Do this:\n```json\n{"intent": "print",\n "message": "{{args.name}}"}\n```',
            {"intent": "print", "message": "Bo"},
        ),
        ('{"intent": "unheard_of", "x": [1, {"y": null}]}', {"intent": "unheard_of", "x": [1, {"y": None}]}),
    ],
)
def test_actions_by_name(sentence: str, action: dict[str, Any]) -> None:
    """An action that is called by name, or written out in JSON, is proposed as it stands."""
    check(sentence, action)


@pytest.mark.parametrize(
    ("sentence", "data"),
    [
        (
            'Return { "ok": true, n: args.amount, "who": "{{args.name}}" }',
            {"ok": True, "n": 5, "who": "Bo"},
        ),
        ('Return JSON: { "raw": "{{args.items}}" }', {"raw": [1, 2]}),
        ('Return the result as JSON:\n{ "a": -1.5e2 }', {"a": -150.0}),
        ("Return { amount, total }", {"amount": 5, "total": 10}),
        ("Return { who: <name>, rest: [args.amount, 'x'] }", {"who": "Bo", "rest": [5, "x"]}),
        ('Respond with {"a": "Hi <name>"}', {"a": "Hi Bo"}),
        ("Return the total", 10),
        ("Return the total as sum", {"sum": 10}),
        ("Return the name and the total", {"name": "Bo", "total": 10}),
        ('Return "done"', "done"),
        ("Return nothing", {}),
        ("Devuelve { ok: true }", {"ok": True}),
        ("Devuelve el total", 10),
    ],
)
def test_returning(sentence: str, data: object) -> None:
    """The result is the object or value that is named, with its references replaced by values of their type."""
    check(sentence, {"intent": "return", "data": data})


@pytest.mark.parametrize(
    "sentence",
    [
        "Analyse the sentiment of the text",
        "Print a summary of the data",
        "Ask the user a question",
        "Set the mood to happy",
        "Greet the stranger",
        "Ask nobody to fly",
        "Ask the worker to fly",
        "Call worker::nothing",
        "Call the unheard_of action",
        'If the count is 3, print "three" and return 5',
        "When done, return { ok: true }",
        "For each item print it",
        'Ask the user for a number and if it is even print "even"',
        "Repeat until the user says stop: ask the user for a number",
        "Do not print the name",
        'For example, print "x"',
        'Si el total es 3, imprime "tres"',
        "Print the result",
        "Print the file name",
        'Add "x" to the total',
        "Increase the text by 1",
    ],
)
def test_what_would_need_a_model(sentence: str) -> None:
    """A sentence that is not understood completely is left out and reported as it was written."""
    assert first_action(sentence) == ({"intent": "return", "data": {}}, (sentence,))


@pytest.mark.parametrize(
    "text", ["# Greeting", "Steps:", "You are a friendly greeter.", "Eres un saludador.", "", "---"]
)
def test_what_is_no_step(text: str) -> None:
    """Headings and descriptions of the agent are neither done nor reported."""
    check(text, {"intent": "return", "data": {}})


@pytest.mark.parametrize(
    ("sentence", "missing"),
    [
        ('Return JSON: { "text": "...", "n": 1 }', "text"),
        ('Return { "text": "formal|casual", "n": 1 }', "text"),
        ('Return { "text": "your greeting here", "n": 1 }', "text"),
        ('Return { "text": "<the summary>", "n": 1 }', "text"),
        ("Return { text: summary, n: 1 }", "text"),
    ],
)
def test_what_a_model_would_have_written_is_null(sentence: str, missing: str) -> None:
    """Fields of the result that only a model could fill are null and reported, the others are filled."""
    action, notes = first_action(sentence.replace("{ text: summary", "{ text: verdict"))

    assert action == {"intent": "return", "data": {"text": None, "n": 1}}
    assert [note.partition(" in: ")[0] for note in notes] == [f"`{missing}`"]


def test_a_sentence_has_its_place() -> None:
    """A sentence knows where it stands, over quotes, fences, bullets and ends of lines."""
    playbook = """
  First, ask the user "What. Is it?" for
  their {{args.name}}. Then greet them!
  2. Repeat this 3 times:
     ```
     - print <what. it>
     ```
  Return:
  { a: 1, b: "two" }
"""

    assert [playbook[sentence.start : sentence.end] for sentence in sentences_of(playbook)] == [
        'First, ask the user "What. Is it?" for\n  their {{args.name}}.',
        "Then greet them!",
        "Repeat this 3 times:",
        "print <what. it>",
        'Return:\n  { a: 1, b: "two" }',
    ]
