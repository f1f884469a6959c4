"""The model of a conversation: changed in the middle of it, and used again when it goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.errors import ProviderError
from koi_lang.llm.messages import Request
from koi_lang.settings import read_settings
from koi_lang.setup.availability import require_model
from koi_lang.setup.keys.lookup import Keys
from tests.first.machine import KEY, Machine
from tests.llm.server import ModelServer
from tests.projects import Project

PROGRAM = '''
    role Worker { can execute }
    agent Main : Worker { on chat(args: { message: string }) { playbook """Answer the person.""" } }
    '''
ANSWER = '{"batch":[{"intent":"print","message":"Hello"},{"intent":"return","data":{}}]}'
MODELS = ["first-1", "second-1", "gpt-5.4"]


@pytest.fixture
def machine(project: Project, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a program and a key of OpenAI."""
    machine = Machine(project, project.folder.parent, monkeypatch)
    project.write("a.koi", PROGRAM)
    machine.set(OPENAI_API_KEY=KEY)
    return machine


def asked(machine: Machine, *talks: tuple[str, str]) -> tuple[list[str], list[str]]:
    """The models that conversations have asked, given options and lines, with what came of each."""
    return field_of(machine, "model", *talks)


def efforts_of(machine: Machine, *talks: tuple[str, str]) -> tuple[list[Any], list[str]]:
    """How much models of conversations were to think; None where nothing was said."""
    return field_of(machine, "reasoning_effort", *talks)


def field_of(machine: Machine, name: str, *talks: tuple[str, str]) -> tuple[list[Any], list[str]]:
    """A field of the requests of conversations, with what came of each."""

    async def use() -> tuple[list[Any], list[str]]:
        async with ModelServer([ANSWER], models=MODELS) as server:
            machine.use(server)
            koi = machine.project.koi
            done = [await asyncio.to_thread(koi, "chat", "a.koi", *words.split(), stdin=said) for words, said in talks]
            return [request.body.get(name) for request in server.requests], [each.stderr for each in done]

    return asyncio.run(use())


def test_the_model_changes_in_the_middle(machine: Machine) -> None:
    """What is said behind `/model` goes to the model that it names."""
    models, _ = asked(machine, ("-m openai/first-1", "one\n/model openai/second-1\ntwo\n"))

    assert MODELS[:2] == models


def test_a_mistyped_model_is_refused(machine: Machine) -> None:
    """A name that the provider does not have changes nothing, and the nearest one is told."""
    models, told = asked(machine, ("-m openai/first-1", "/model openai/secnd-1\none\n"))

    assert ["first-1"] == models
    assert "error: `openai` has no model `secnd-1`\n  = help: Did you mean `second-1`?" in told[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "lines", "model"),
    [("", "", "second-1"), ("-m openai/first-1", "", "first-1"), ("", "/model openai/first-1\n", "first-1")],
)
def test_a_conversation_goes_on_with_its_model(machine: Machine, words: str, lines: str, model: str) -> None:
    """What `-m` named counts again with `--resume`, unless another model is named or was chosen meanwhile."""
    first = ("-m openai/second-1", f"{lines}one\n")
    models, _ = asked(machine, first, (f"{words} --resume last", "two\n"))

    assert model == models[-1]


def test_the_model_of_an_earlier_conversation_is_told(machine: Machine) -> None:
    """Who goes on with it sees which model answers."""
    asked(machine, ("-m openai/second-1", "one\n"))
    done = machine.project.koi("rpc", "a.koi", "--resume", "last")

    assert "answers come from openai/second-1, as before\n" in done.stderr


def test_the_model_of_a_branch_is_used_again(machine: Machine) -> None:
    """A conversation that goes on in a journal of its own, and goes on once more, keeps its model."""
    later = ("--resume last", "/tree\n/branch 1\ntwo\n"), ("--resume last", "three\n")
    models, told = asked(machine, ("-m openai/second-1", "one\n"), *later)

    assert ["second-1"] * 3 == models, told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("chat a.koi -m", "`-m` names no model"),
        ("run a.koi -m", "`-m` names no model"),
        ("connect rehearsal", "`rehearsal` stands in for a model within koi, so there is nothing to connect"),
    ],
)
def test_what_names_no_model_is_refused(machine: Machine, words: str, told: str) -> None:
    """An empty name, and the name of a stand-in where a provider is to be connected, are told."""
    done = machine.now(*words.split(), *([""] if words.endswith("-m") else []))

    assert (2, True) == (done.code, told in done.err)


def test_a_model_of_an_extension_can_be_chosen(machine: Machine) -> None:
    """A provider that an extension adds is no maker of a model that others would have to list."""

    class Own:
        provider, model = "acme", "small"

        async def aclose(self) -> None:
            """Nothing is open."""

        def __call__(self, request: Request) -> None:
            """Nobody asks."""

    async def use() -> None:
        async with ModelServer([ANSWER], models=MODELS) as server:
            machine.use(server)
            keys = Keys(read_settings(machine.folder))
            await require_model({"model": "acme/small"}, keys, providers={"acme": lambda options, key: Own()})
            with pytest.raises(ProviderError, match="there is no provider `acme`"):
                await require_model({"model": "acme/small"}, keys)

    asyncio.run(use())


def test_how_much_models_think_changes_in_the_middle(machine: Machine) -> None:
    """`-e` holds for all models, `/effort` from then on; what there is not is refused, and changes nothing."""
    said = "one\n/effort low\ntwo\n/effort lo\nthree\n/effort\n/effort auto\nfour\n"
    efforts, told = efforts_of(machine, ("-m openai/gpt-5.4 -e high", said))

    assert ["high", "low", "low", None] == efforts
    assert "error: there is no effort `lo`\n  = help: Did you mean `low`? " in told[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("lines", "words", "effort"),
    [
        ("", "", "high"),
        ("/effort low\n", "", "low"),
        ("/effort auto\n", "", None),
        ("/effort low\n", "-e none", "none"),
    ],
)
def test_a_conversation_goes_on_thinking_as_much(machine: Machine, lines: str, words: str, effort: str | None) -> None:
    """What was chosen last counts again with `--resume`, unless something is chosen now."""
    first = ("-m openai/gpt-5.4 -e high", f"{lines}one\n")
    efforts, _ = efforts_of(machine, first, (f"{words} --resume last", "two\n"))

    assert effort == efforts[-1]


def test_an_effort_that_does_not_exist_is_refused(machine: Machine) -> None:
    """The words that there are are named."""
    done = machine.project.koi("chat", "a.koi", "-e", "hihg")

    assert 2 == done.returncode
    assert "'none', 'low', 'medium', 'high'" in done.stderr
