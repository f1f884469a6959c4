"""Playbooks of examples and tests followed by the rehearsal model, each in English and in Spanish."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from koi_lang.llm.messages import DelegateInfo
from tests.llm.rehearsing import Play, play
from tests.projects import Project
from tests.running import run_file
from tests.test_examples import FOLDER, NAMES, PRINTED, STDIN

# What the rehearsal says on its own in each language.
SAID = {
    "What is your favourite dish?": "¿Cuál es tu plato favorito?",
    "What is your name?": "¿Cuál es tu nombre?",
    "What is your age?": "¿Cuál es tu edad?",
    "Please enter the city:": "Por favor, indica una ciudad:",
    "Please enter a day:": "Por favor, indica un día:",
    "Please enter a number:": "Por favor, indica un número:",
    "Please enter a word:": "Por favor, indica una palabra:",
    "Please enter a topic:": "Por favor, indica un tema:",
    "Hello, Ada!": "¡Hola, Ada!",
    "Hello, Bo!": "¡Hola, Bo!",
}
NEEDS_A_MODEL = {"prompts": ("Be friendly",)}
TWO_AGENTS = """
    role Poet { can execute }
    prompt Task = "Write a poem about
      spring. Judge it."
    agent One : Poet {
      llm default = { provider: "openai", model: "a" }
      on start() { playbook 'Print "one". ' + Task }
    }
    agent Two : Poet {
      llm default = { provider: "openai", model: "b" }
      on start() { playbook 'Print "two". ' + Task }
    }
    run One.start()
    run One.start()
    run Two.start()
    """
PLAYBOOK = re.compile(r'playbook """(.*?)"""', re.S)


@dataclass(frozen=True, slots=True)
class Twin:
    """One playbook in two languages.

    Attributes:
        results: what actions bring, by intent.
        task: what differs from the usual task.
    """

    english: str
    spanish: str
    results: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)

    def played(self) -> tuple[Play, Play]:
        """Both followed to their end."""
        return play(self.english, self.results, **self.task), play(self.spanish, self.results, **self.task)


ADA = {"prompt_user": ["Ada", "36"]}
FOUND = {"stock::look": [{"item": "tea", "pieces": 2, "price": 3.5}]}
PLAN = """
{"actions": [
{"id": "found", "actionType": "delegate", "intent": "stock::look", "data": {"item": "{{args.item}}"}},
{"intent": "print", "message": "${found.output.pieces} × ${found.output.item} for ${found.output.price} each"},
{"intent": "print", "condition": "${found.output.pieces} < ${args.wanted}", "message": "Fewer than wanted."},
{"intent": "repeat", "count": 2, "actions": [
{"intent": "print", "message": "Order ${iteration} of ${found.output.item}"}
]},
{"intent": "print", "message": "Paid ${found.output.price * 2}"},
{"intent": "return", "data": {"paid": "${found.output.price * 2}"}}
]}
"""
OF_EXAMPLES = (
    Twin(
        "Ask the user for their name.\nGreet them by name.\nReturn { greeted: <name> }",
        "Pregunta al usuario su nombre.\nSalúdale por su nombre.\nDevuelve { greeted: <nombre> }",
        ADA,
    ),
    Twin(
        "Ask the user for their favourite dish.\nReturn { table: {{args.table}}, likes: <favourite dish> }",
        "Pregunta al usuario su plato favorito.\nDevuelve { table: {{args.table}}, likes: <plato favorito> }",
        {"prompt_user": [{"answer": "soup"}]},
        {"args": {"table": 3}},
    ),
    Twin(
        'Print "Resetting from {{state.count}}".\nSet the count to 0.',
        'Imprime "Resetting from {{state.count}}".\nPon el count a 0.',
    ),
    Twin(
        'Print "Welcome, {{args.name}}!"\nIncrease the visitors by 1.',
        'Di "Welcome, {{args.name}}!"\nIncrementa los visitors en 1.',
        task={"state": {"visitors": 1}},
    ),
    Twin(
        'Print "{{args.total}} pieces of fruit, most of them {{args.most}}".\nReturn { written: true }',
        'Escribe "{{args.total}} pieces of fruit, most of them {{args.most}}".\nDevuelve { written: true }',
        task={"args": {"total": 49, "most": "cherries"}},
    ),
    Twin(
        'Read "book:3" from the registry.\nPrint the title.',
        'Lee "book:3" del registro.\nImprime el title.',
        {"registry_get": [{"value": {"title": "Beloved"}}]},
    ),
    Twin(
        'Delegate to gardener::water with { plant: "{{args.plant}}" }.\nPrint the result.',
        'Delega en gardener::water con { plant: "{{args.plant}}" }.\nImprime el resultado.',
        {"gardener::water": [{"watered": "the fern"}]},
        {"args": {"plant": "the fern"}, "members": (DelegateInfo("gardener", "", ("suggest", "water")),)},
    ),
    Twin(
        'Ask the user "Your square? Open are {{args.open}}".\nReturn { square: <answer> }',
        'Pregunta al usuario "Your square? Open are {{args.open}}".\nDevuelve { square: <respuesta> }',
        {"prompt_user": ["2"]},
        {"args": {"open": [1, 2]}},
    ),
    Twin(PLAN, f"Haz lo siguiente: {PLAN}", FOUND, {"members": (DelegateInfo("stock", "", ("look",)),)}),
)
OF_TESTS = (
    Twin(
        "1. Ask the user for their name.\n2. Increase the count by {{args.amount}}.\n"
        '3. Print "<name>, you are number {{state.count}}".\n'
        "4. Return { name: <name>, count: state.count }",
        "1. Pregunta al usuario su nombre.\n2. Incrementa el count en {{args.amount}}.\n"
        '3. Imprime "<nombre>, you are number {{state.count}}".\n'
        "4. Devuelve { name: <nombre>, count: state.count }",
        ADA,
    ),
    Twin(
        'Ask the user "Your name?". Print "Hello <answer>". Return {}.',
        'Pregunta al usuario "Your name?". Imprime "Hello <respuesta>". Devuelve {}.',
        ADA,
    ),
    Twin(
        'Ask the user for their name. Greet them by name. Print "Bye {{name}}". Return { who: <name>, it: name }',
        "Pregunta al usuario su nombre. Salúdalo por su nombre. Imprime «Bye {{nombre}}». "
        "Devuelve { who: <nombre>, it: nombre }",
        ADA,
    ),
    Twin(
        'Ask the user for their name\n   and print "Dear {{name}},\nwelcome".',
        'Pregunta al usuario su nombre\n   e imprime "Dear {{nombre}},\nwelcome".',
        ADA,
    ),
    Twin(
        "Ask the user for their name and age. Return { name: name, age: age }",
        "Pregunta al usuario su nombre y edad. Devuelve { name: nombre, age: edad }",
        ADA,
    ),
    Twin("Ask for the city. Print it.", "Pide una ciudad. Imprímela.", {"prompt_user": ["Rome"]}),
    Twin("Greet {{args.name}}.", "Saluda a {{args.name}}."),
    Twin("Greet the user. Print args. Return state.", "Saluda al usuario. Imprime args. Devuelve state."),
    Twin(
        'Print "a", then print "b" and set state.count to 5. Return { ok: true }',
        'Imprime "a", luego imprime "b" y pon state.count a 5. Devuelve { ok: true }',
    ),
    Twin(
        "Increase the count by 1. Increase the count by 1. Print the count. Return the count.",
        "Aumenta el count en 1. Aumenta el count en 1. Muestra el count. Devuelve el count.",
    ),
    Twin(
        "Ask worker to process the items. Print the result. Print the verdict. Return it.",
        "Pide a worker que procese los items. Imprime el resultado. Imprime el verdict. Devuélvelo.",
        {"worker::process": [{"verdict": "good"}]},
    ),
    Twin(
        'Store the name in the registry under "user:owner". Read "user:owner" from the registry. Print the owner.',
        'Guarda el name en el registro como "user:owner". Lee "user:owner" del registro. Imprime el owner.',
        {"registry_get": [{"value": "Bo"}]},
    ),
    Twin(
        'Ask the user "Where to?" and save the answer as city. Ask the user for a day. Print "{{city}} on {{day}}"',
        'Pregunta al usuario "Where to?" y guarda la respuesta como ciudad. Pregunta al usuario un día. '
        'Imprime "{{ciudad}} on {{día}}"',
        {"prompt_user": ["Rome", "Monday"]},
    ),
    Twin(
        "Ask the user for a number. Add the number to state.total. Return the total.",
        "Pide al usuario un número. Suma el número a state.total. Devuelve el total.",
        {"prompt_user": ["5"]},
    ),
    Twin('Print "x" 3 times.', 'Imprime "x" 3 veces.'),
    Twin('Repeat three times: print "x"', 'Repite tres veces: imprime "x"'),
    Twin('Repeat {{args.amount}} times:\n  - print "x"', 'Repite {{args.amount}} veces:\n  - imprime "x"'),
    Twin(
        '1. Repeat this 3 times:\n   - Print "x"\n2. Return nothing',
        '1. Repite esto 3 veces:\n   - Imprime "x"\n2. No devuelvas nada',
    ),
    Twin(
        'Repeat 2 times:\n  - Ask the user for a word.\n  - Print "{{word}}!"\nReturn { last: word }',
        'Repite 2 veces:\n  - Pide al usuario una palabra.\n  - Imprime "{{palabra}}!"\nDevuelve { last: palabra }',
        {"prompt_user": ["one", "two"]},
    ),
    Twin(
        'Ask the user for a word. Print "thanks". Return it as word.',
        'Pide al usuario una palabra. Imprime "thanks". Devuélvela como word.',
        {"prompt_user": ["hm"]},
    ),
    Twin("Ask worker to process args.", "Pide a worker que procese args."),
)
LEFT_OUT = (
    Twin("Be friendly.", "Sé amable."),
    Twin("Print.", "Imprime."),
    Twin("Delegate.", "Delega."),
    Twin("Try everything.", "Inténtalo todo."),
    Twin("Lead the crew.", "Dirige al equipo."),
    Twin("Let them meet.", "Haz que se reúnan."),
    Twin("Do something impossible.", "Haz algo imposible."),
    Twin("Contemplate the meaning of it all.", "Contempla el sentido de todo."),
    Twin("Analyse the text.", "Analiza el text."),
    Twin("Compute the sum of 5 and 7 and print it.", "Calcula la suma de 5 y 7 e imprímela."),
    Twin("Double {{args.amount}} and print it.", "Duplica {{args.amount}} e imprímelo."),
    Twin("Count from 2 one step on, and store it in the state.", "Cuenta desde 2 un paso más y guárdalo en el estado."),
    Twin("If the count is 3, print it.", "Si el count es 3, imprímelo."),
    Twin("Do not print the name.", "No imprimas el nombre."),
    Twin("Ask worker to process args.", "Pide a worker que procese args.", task={"members": ()}),
    Twin("Set state.count to 1.", "Pon state.count a 1.", task={"actions": ("print",)}),
)


def in_spanish(rounds: list[list[dict[str, Any]]]) -> Any:
    """Actions with what the rehearsal says on its own in Spanish."""
    text = json.dumps(rounds, ensure_ascii=False)
    for english, spanish in SAID.items():
        text = text.replace(english, spanish)
    return json.loads(text)


@pytest.mark.parametrize("twin", OF_EXAMPLES + OF_TESTS, ids=lambda twin: twin.spanish)
def test_a_spanish_playbook_comes_to_the_same(twin: Twin) -> None:
    """A playbook is followed to its end in both languages, with the same actions in the same rounds."""
    english, spanish = twin.played()

    assert in_spanish(english.rounds) == spanish.rounds
    assert (english.notes, spanish.notes) == ((), ())


@pytest.mark.parametrize("twin", LEFT_OUT, ids=lambda twin: twin.spanish)
def test_what_needs_a_model_does_so_in_both_languages(twin: Twin) -> None:
    """A sentence for a model leads to no action in any language, and is told."""
    english, spanish = twin.played()

    assert [["return"], ["return"]] == [english.intents, spanish.intents]
    assert len(english.notes) == len(spanish.notes) > 0


# The examples that bring neither answers nor a plan.
REHEARSED = [name for name in NAMES if not (FOLDER / f"{name}.answers.json").exists() and name != "frozen"]


@pytest.mark.parametrize("name", REHEARSED)
def test_every_playbook_of_an_example_has_a_twin(name: str) -> None:
    """What an example that needs no model tells one is in the table above."""
    texts = PLAYBOOK.findall((FOLDER / f"{name}.koi").read_text("utf-8"))
    known = [_lines(twin.english) for twin in OF_EXAMPLES]

    assert [] == [text for text in texts if _lines(text) not in known]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", REHEARSED)
def test_an_example_is_followed_completely(name: str, tmp_path: Path) -> None:
    """Nothing in an example needs a model, apart from what is no step."""
    outcome = run_file(FOLDER / f"{name}.koi", tmp_path, stdin=STDIN.get(name, "").splitlines())

    assert outcome.logged == NEEDS_A_MODEL.get(name, ())
    assert (list(outcome.printed), outcome.error) == (PRINTED[name], "")


def test_each_sentence_for_a_model_is_told_once(project: Project) -> None:
    """Sentences that need a model stand on stderr, one a line and once, however often and by whomever they are met."""
    project.write("main.koi", TWO_AGENTS)
    done = project.koi("run", "main.koi", "--rehearse")

    assert done.stderr.splitlines() == [
        "a rehearsal follows the explicit steps of playbooks",
        "a model would be needed for: Write a poem about spring",
        "a model would be needed for: Judge it",
    ]
    assert done.stdout.splitlines() == ["one", "one", "two"]
