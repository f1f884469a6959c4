"""The role `embedding` of `koi.toml`, from the command line: runs, replays, `koi models` and `koi doctor`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.first.machine import KEY, Machine, Outcome
from tests.llm.meanings import meaning
from tests.llm.server import ModelServer

MODEL = "text-embedding-3-small"
MODELS = ("gpt-4o-mini", MODEL)
PROGRAM = '''
    role Lead { can delegate, can execute }
    role Worker { can execute }
    agent Editor : Worker { on condense(args) { affordance "Leaves out what does not matter"  return "shorter" } }
    agent Painter : Worker { on portray(args) { affordance "Makes a picture"  return "painted" } }
    team Crew { editor: Editor, artist: Painter }
    agent Main : Lead {
      llm default = { provider: "openai", model: "gpt-4o-mini" }
      uses team Crew
      on go(args: Json) { playbook """Have the text made shorter and print it.""" }
    }
    run Main.go({})
    '''
ANSWER = json.dumps(
    {
        "batch": [
            {"id": "x", "actionType": "delegate", "intent": "make my text brief", "data": {}},
            {"intent": "print", "message": "${x.output}"},
            {"intent": "return", "data": {}},
        ]
    }
)


def commands(machine: Machine, *lines: Sequence[str], models: Sequence[str] = MODELS) -> tuple[list[Outcome], Any]:
    """What some commands come to while a server answers for OpenAI."""

    async def run() -> tuple[list[Outcome], ModelServer]:
        machine.set(OPENAI_API_KEY=KEY)
        async with ModelServer([ANSWER], models=models, embed=meaning) as server:
            machine.use(server)
            return [await machine.koi(*words) for words in lines], server

    machine.project.write("a.koi", PROGRAM)
    return asyncio.run(run())


def findings(done: Outcome) -> list[tuple[str, str, str]]:
    """What `koi doctor --json` tells of models."""
    found = [each for each in json.loads(done.out) if each["about"] == "models"]
    return [(each["level"], each["text"], each["fix"]) for each in found]


def test_a_run_a_second_run_and_a_replay(machine: Machine) -> None:
    """Meaning decides; vectors are kept for the next run; a replay needs neither server nor settings."""
    toml = machine.project.write("koi.toml", f'[models]\nembedding = "openai/{MODEL}"\n')
    (first, second, runs), server = commands(
        machine, ["run", "--verbose", "--record", "a.koi"], ["run", "--no-record", "a.koi"], ["runs", "list", "--json"]
    )
    toml.unlink()
    machine.set(OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    (journal,) = machine.folder.glob(".koi/runs/*.jsonl")
    replay = machine.now("replay", str(journal))

    assert ["shorter\n", "shorter\n", 1] == [first.out, second.out, len(server.embedded)]
    assert "2 requests, " in first.err
    assert 2 == json.loads(runs.out)[0]["requests"]
    assert (0, "shorter\n") == (replay.code, replay.out)
    assert "nothing is different" in replay.err


@pytest.mark.parametrize("words", [["--rehearse"], ["--answers", "answers.json"]])
def test_a_run_without_models_asks_for_no_embeddings(machine: Machine, words: list[str]) -> None:
    """Where answers come from this process, vectors are not asked for elsewhere."""
    machine.project.write("koi.toml", f'[models]\nembedding = "openai/{MODEL}"\n')
    machine.project.write("answers.json", json.dumps([json.loads(ANSWER), {"intent": "return", "data": {}}]))
    _, server = commands(machine, ["run", *words, "a.koi"])

    assert ([], []) == (server.embedded, server.requests)


def test_another_model_for_answers_leaves_this_one(machine: Machine) -> None:
    """`-m` is about answers."""
    machine.project.write("koi.toml", f'[models]\nembedding = "openai/{MODEL}"\n')
    _, server = commands(machine, ["run", "-m", "openai/gpt-4o-mini", "a.koi"])

    assert [MODEL] == [request.body["model"] for request in server.embedded]


def test_a_provider_without_embeddings_is_told_at_the_start(machine: Machine) -> None:
    """Nothing is run with settings that cannot be meant."""
    machine.project.write("koi.toml", '[models]\nembedding = "anthropic/haiku"\n')
    (done,), server = commands(machine, ["run", "a.koi"])

    assert (2, []) == (done.code, server.requests)
    assert "error: `embedding` in `[models]` of `koi.toml`: `anthropic` makes no embeddings" in done.err
    assert "These do: `openai`, `gemini`" in done.err


def test_a_mistyped_model_is_told_and_not_asked(machine: Machine) -> None:
    """The person hears what may have been meant; the run goes on by words."""
    machine.project.write("koi.toml", '[models]\nembedding = "openai/text-embeding-3-small"\n')
    (done,), server = commands(machine, ["run", "a.koi"])

    assert [] == server.embedded
    assert (
        f"`openai` has no model `text-embeding-3-small`, so words decide who is meant. Did you mean `{MODEL}`"
        in done.err
    )


def test_the_doctor_looks_for_the_model(machine: Machine) -> None:
    """It names the model and says whether its provider has it; offline it asks nobody."""
    toml = machine.project.write("koi.toml", f'[models]\nembedding = "openai/{MODEL}"\n')
    (good, offline), _ = commands(machine, ["doctor", "--json"], ["doctor", "--offline", "--json"])
    toml.write_text('[models]\nembedding = "openai/text-embeding-3-small"\n')
    (bad,), _ = commands(machine, ["doctor", "--json"])
    named = ("ok", f"embedding: openai/{MODEL}", "")

    assert [named, ("ok", f"embedding: openai answers for `{MODEL}`", "")] == findings(good)
    assert [named] == findings(offline)
    assert ("error", "embedding: `openai` has no model `text-embeding-3-small`") == findings(bad)[1][:2]
    assert f"edit koi.toml: Did you mean `{MODEL}`?" in findings(bad)[1][2]


def test_the_doctor_tells_what_is_missing(machine: Machine) -> None:
    """Without a key there is one finding that says what to do."""
    machine.project.write("koi.toml", f'[models]\nembedding = "openai/{MODEL}"\n')

    (_, missing) = findings(machine.now("doctor", "--json"))

    assert ("error", "embedding: the provider `openai` needs a key, and `OPENAI_API_KEY` is not set") == missing[:2]


def test_the_list_of_models_names_those_in_use(machine: Machine) -> None:
    """`koi models` ends with the roles of `koi.toml`; the list of one provider does not."""
    machine.project.write("koi.toml", f'[models]\nsmall = "openai/gpt-4o-mini"\nembedding = "openai/{MODEL}"\n')
    (every, one), _ = commands(machine, ["models"], ["models", "openai"])

    assert [
        "koi.toml",
        "  small        openai/gpt-4o-mini",
        f"  embedding    openai/{MODEL}",
    ] == every.out.splitlines()[-3:]
    assert "koi.toml" not in one.out


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("min_score = 2", "`embedding` in `[models]` of `koi.toml` has a `min_score` 2"),
        ("query_prefix = 1", "`embedding` in `[models]` of `koi.toml` has a `query_prefix` that is no text"),
    ],
)
def test_a_scale_that_makes_no_sense(machine: Machine, settings: str, told: str) -> None:
    """What is wrong is told before anything runs."""
    machine.project.write("koi.toml", f'[models]\nembedding = {{ model = "openai/{MODEL}", {settings} }}\n')

    assert told in machine.now("models").err


def test_a_scale_of_koi_toml_counts(machine: Machine) -> None:
    """Texts are sent with their prefixes; a score that nothing reaches leaves it to words."""
    scale = 'min_score = 1, query_prefix = "query: "'
    machine.project.write("koi.toml", f'[models]\nembedding = {{ model = "openai/{MODEL}", {scale} }}\n')

    (done,), server = commands(machine, ("run", "a.koi"))

    assert server.embedded[0].body["input"][0] == "query: make my text brief"
    assert "shorter" not in done.out
