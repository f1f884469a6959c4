"""The model of a conversation: changed in the middle of it, and used again when it goes on."""

from __future__ import annotations

import asyncio

import pytest

from koi_lang.errors import ProviderError
from koi_lang.llm.messages import Request
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
MODELS = ["first-1", "second-1"]


@pytest.fixture
def machine(project: Project, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a program and a key of OpenAI."""
    machine = Machine(project, project.folder.parent, monkeypatch)
    project.write("a.koi", PROGRAM)
    machine.set(OPENAI_API_KEY=KEY)
    return machine


def asked(machine: Machine, *talks: tuple[str, str]) -> tuple[list[str], list[str]]:
    """The models that conversations have asked, given options and lines, with what came of each."""

    async def use() -> tuple[list[str], list[str]]:
        async with ModelServer([ANSWER], models=MODELS) as server:
            machine.use(server)
            koi = machine.project.koi
            done = [await asyncio.to_thread(koi, "chat", "a.koi", *words.split(), stdin=said) for words, said in talks]
            return [request.body["model"] for request in server.requests], [each.stderr for each in done]

    return asyncio.run(use())


def test_the_model_changes_in_the_middle(machine: Machine) -> None:
    """What is said behind `/model` goes to the model that it names."""
    models, _ = asked(machine, ("-m openai/first-1", "one\n/model openai/second-1\ntwo\n"))

    assert MODELS == models


def test_a_mistyped_model_is_refused(machine: Machine) -> None:
    """A name that the provider does not have changes nothing, and the nearest one is told."""
    models, told = asked(machine, ("-m openai/first-1", "/model openai/secnd-1\none\n"))

    assert ["first-1"] == models
    assert "error: `openai` has no model `secnd-1`\n  = help: Did you mean `second-1`?" in told[0]


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
            keys = Keys(machine.folder)
            await require_model("acme/small", keys, providers={"acme": lambda options, key: Own()})
            with pytest.raises(ProviderError, match="there is no provider `acme`"):
                await require_model("acme/small", keys)

    asyncio.run(use())
