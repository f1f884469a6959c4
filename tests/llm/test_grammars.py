"""What providers hold models to: nothing that the prompt teaches may be shut out by it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koi_lang.llm.connect import ModelEnvironment, connect
from koi_lang.llm.connection import Provider
from koi_lang.llm.json_schemas import COMPACT, can_be_sent
from koi_lang.llm.providers import PROVIDERS
from koi_lang.mcp_server.tools import exposed_agents, offers
from koi_lang.program import declarations
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.actions.lookup import all_actions
from koi_lang.runtime.playbook.reply_parser import read_reply
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.llm.grammars import ANY, LIBRARIES, grammar
from tests.llm.server import ModelServer
from tests.playbook.playing import Player, act, ask, done, solo
from tests.running import RecordingHost


def written(value: Any) -> str:
    """JSON as models write it: some libraries know no escapes of letters."""
    return json.dumps(value, ensure_ascii=False)


# Every form that the prompt teaches, and fields of every kind in them.
FORMS = tuple(
    written(form)
    for form in (
        act("print", message="hi"),
        act("print", id="x", condition="${a.output.n} > 3", message={"deep": [{"er": [None, 1.5, True]}]}),
        ask("crew::work", {"text": 'a "quoted" ü', "n": [1, {"b": None}]}),
        {"batch": [act("a"), {"parallel": [act("b"), ask("c::d")]}, act("if", condition="true", then=[act("e")])]},
        {"actions": [act("repeat", count=2, actions=[act("a")])]},
        done(total=3, lines=["a"]),
        act("return", data="text"),
    )
)
# What was sent before: it names some properties and says nothing of others.
OPEN = {
    "type": "object",
    "properties": {
        "actionType": {"enum": ["direct", "delegate"]},
        "intent": {"type": "string"},
        **{name: {"type": "array", "items": {"type": "object"}} for name in ("batch", "actions", "parallel")},
    },
}
# Everything in which a model is asked something, once.
ASKING = [
    {"batch": [act("call_llm", data="d", instruction="i"), act("format", data="d", instruction="i")]},
    act("if", condition={"llm_eval": True, "instruction": "i", "data": "d"}, then=[act("print", message="yes")]),
    done(ok=True),
]
ANSWERS = [json.dumps(ASKING[0]), "text", "text", json.dumps(ASKING[1]), "true", json.dumps(ASKING[2])]


def closed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with just these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


async def asked_for(row: Provider, module: ModuleType, folder: Path) -> list[Mapping[str, Any]]:
    """The bodies of all requests that a run makes of a provider."""
    row = replace(row, style="anthropic") if row.style == "bedrock" else row  # Amazon's needs its own packages
    async with ModelServer(ANSWERS) as server:
        options = {"provider": row.name, "base_url": server.url}
        around = ModelEnvironment(providers={row.name: row})
        services = Services(
            connect=lambda llm: connect(options, lambda name: "k", around=around),
            host=RecordingHost(),
            evaluate=evaluate,
            folder=folder,
        )
        async with Run(services) as run:
            assert {"ok": True} == await run.call(module.Main, "go", {})
        return [request.body for request in server.requests]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.name)
def test_the_form_that_goes_out(play: Player, row: Provider) -> None:
    """No provider is sent a schema; actions are asked for as JSON where that can be said, everything else as text."""
    bodies = asyncio.run(asked_for(row, play.load(solo("execute")), play.folder))
    forms = [body.get("response_format", body.get("output_config")) for body in bodies]
    json_mode = {"type": "json_object"} if row.json_mode else None

    assert [json_mode, None, None, json_mode, None, json_mode] == forms
    assert not any("schema" in json.dumps(form) or "tools" in body for form, body in zip(forms, bodies, strict=True))


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Player:
    """A folder for one program."""
    return Player(tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize("library", ["llguidance", "xgrammar"])
def test_json_of_any_kind_can_say_all_that_is_taught(library: str) -> None:
    """What `json_object` is held to lets a model write every form; the reader takes each of them."""
    accepts = grammar(library, ANY)

    assert [] == [form for form in FORMS if not accepts(form)]
    assert all(read_reply(form) for form in FORMS)


@pytest.mark.parametrize("library", ["outlines_core", "xgrammar"])
def test_a_schema_that_is_open_shuts_out_what_is_taught(library: str) -> None:
    """Libraries take properties that are not named for forbidden, so such a schema never goes out."""
    accepts = grammar(library, OPEN)

    assert not any(accepts(form) for form in (FORMS[0], FORMS[2], FORMS[5]))
    assert not can_be_sent(OPEN)


# ---------------------------------------------------------------- schemas that may be sent

LEAVES = st.sampled_from(
    [
        ({"type": "string"}, 'a "b" ü'),
        ({"type": "integer"}, -3),
        ({"type": "number"}, 1.5),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"enum": ["a", "b"]}, "b"),
        ({"const": "c"}, "c"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
    ]
)
NAMES = st.sampled_from(["intent", "data", "n", "text"])


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists and objects of what a strategy gives: pairs of a schema and a value that fits it."""
    lists = inner.map(lambda pair: ({"type": "array", "items": pair[0]}, [pair[1], pair[1]]))
    choices = inner.map(lambda pair: ({"anyOf": [pair[0], {"type": "null"}]}, pair[1]))
    return st.one_of(lists, choices, st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(joined))


def joined(fields: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """An object of pairs of a schema and a value."""
    schema = closed({name: pair[0] for name, pair in fields.items()})
    return schema, {name: pair[1] for name, pair in fields.items()}


OBJECTS = st.dictionaries(NAMES, st.recursive(LEAVES, larger, max_leaves=4), min_size=1, max_size=3).map(joined)


@LIBRARIES
@given(OBJECTS)
@settings(max_examples=30, deadline=None)
def test_whatever_may_be_sent_becomes_a_grammar(library: str, pair: tuple[dict[str, Any], Any]) -> None:
    """Every library makes a grammar of every schema that is closed; it takes what fits, and no field more."""
    schema, value = pair
    accepts = grammar(library, schema)

    assert can_be_sent(schema)
    assert accepts(written(value))
    assert not accepts(written({**value, "more": 1}))


@LIBRARIES
def test_local_servers_may_be_told_to_leave_out_blanks(library: str) -> None:
    """LLGuidance shuts out blanks, which a model could write for ever; the others take no notice of the option."""
    schema = closed({"lines": {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer"}})
    value = {"lines": ["a b", "c"], "n": 3}
    compact, spacious = json.dumps(value, separators=(",", ":")), json.dumps(value, indent=40)

    assert grammar(library, {**schema, **COMPACT})(compact)
    if library == "llguidance":
        assert grammar(library, schema)(spacious)
        assert not grammar(library, {**schema, **COMPACT})(spacious)


@LIBRARIES
def test_schemas_of_served_tools_become_grammars(library: str, play: Player) -> None:
    """Clients hold their models to the schemas of the tools that `koi serve mcp` offers: arguments can be written."""
    handlers = "on add(args: { a: number, b?: number, tags: string[] }) { return 1 } on any(args: Json) { return 1 }"
    module = play.load(f"role R {{ can think }}\nagent Main : R {{ expose mcp\n{handlers} }}\n")
    tools = {
        each.name: each.schema
        for each in offers(exposed_agents(declarations.agents_of(module), "a.koi"), all_actions())
    }

    assert {"add", "any"} == set(tools)
    assert grammar(library, tools["add"])('{"a": 1, "b": 2.5, "tags": ["x"]}')
    assert grammar(library, tools["any"])("{}")
