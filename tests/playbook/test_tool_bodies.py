"""Requests that offer tools: held against the types of the SDKs, and against what providers make grammars of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from koi_lang.runtime.playbook.tool_schemas import OPEN
from tests.llm.grammars import LIBRARIES, grammar
from tests.playbook.conversations import CONVERSATIONS, PROGRAM
from tests.playbook.playing import Player, done
from tests.playbook.test_matrix import held, with_server
from tests.playbook.transports import MODELS, WAYS, Said, as_call, talk

TYPES: Mapping[str, Any] = {
    "openai": CompletionCreateParamsStreaming,
    "anthropic": MessageCreateParamsStreaming,
    "responses": ResponseCreateParamsStreaming,
}
IN_ALL_WAYS = pytest.mark.parametrize("way", WAYS, ids="-".join)
# What their requests hold beside plain calls and results.
TELLING = (
    "two functions",
    "two images",
    "an image of a tool",
    "a function that fails",
    "a chat with memory",
    "cut in an action",
    "thoughts",
    "words beside actions",
    "steered beside calls",
    "shortened in the middle",
)
# In which arguments do not fit, or are of a type that models are not told of.
UNUSUAL = {
    "a missing argument",
    "a wrong argument",
    "printed data",
    "a result that is a list",
    "huge arguments",
    "what nobody allows",
}
TOO_DEEP = 4
EVERYTHING = "can execute, can delegate, can call_mcp, can shell, can registry"


@cache
def adapter(provider: str) -> TypeAdapter[Any]:
    """Checks bodies of an SDK."""
    return TypeAdapter(TYPES[provider])


def whole(value: Any) -> Any:
    """A value whose lists were read to their end, so that every item was checked."""
    if isinstance(value, Mapping):
        return {name: whole(item) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [whole(item) for item in value]
    return value


@pytest.mark.sampled(11)
@IN_ALL_WAYS
@pytest.mark.parametrize("name", TELLING)
def test_bodies_have_the_types_of_the_sdk(play: Player, name: str, way: tuple[str, str]) -> None:
    """Nothing is missing in a body, nothing is of another type, and what the SDK does not know does not stand there."""
    for asked in held(play, CONVERSATIONS[name], way).asked:
        read = whole(adapter(way[0]).validate_python(asked.body))
        assert asked.body == read


@pytest.fixture(scope="module")
def tools(play: Player) -> Mapping[str, Mapping[str, Any]]:
    """The schemas of the tools of an agent that may do everything, by their names."""
    source = with_server(PROGRAM).replace("can execute, can delegate, can call_mcp", EVERYTHING)
    _, asked, _ = talk(play, source, [[done()]], ("openai", "tools"))
    functions = [tool["function"] for tool in asked[0].body["tools"]]
    return {function["name"]: function["parameters"] for function in functions}


def calls_in_conversations() -> dict[str, set[str]]:
    """The arguments with which conversations call tools, by their names; those that fit their tools."""
    found: dict[str, set[str]] = {}
    for name, conversation in CONVERSATIONS.items():
        script: Any = conversation.script
        parts = script.values() if isinstance(script, Mapping) else [script]
        turns = [turn for part in parts for turn in part]
        for turn in turns if name not in UNUSUAL else ():
            for action in turn.actions if isinstance(turn, Said) else turn if isinstance(turn, list) else ():
                called, arguments = as_call(action)
                found.setdefault(called, set()).add(arguments)
    return found


@LIBRARIES
def test_tools_become_grammars(library: str, tools: Mapping[str, Mapping[str, Any]]) -> None:
    """Every library makes a grammar of every tool, and what models call in conversations can be written."""
    calls = calls_in_conversations()
    accepts = {name: grammar(library, schema) for name, schema in tools.items()}
    taken = {(name, arguments) for name in accepts.keys() & calls.keys() for arguments in calls[name]}
    if library == "outlines_core":  # what may be any object has no fields there, or is not deep
        taken = {each for each in taken if tools[each[0]] != OPEN and each[1].count("{") < TOO_DEEP}

    assert {"print", "shell", "registry_search", "greeter__greet", "Weather__echo", "files__read", "plan"} <= set(tools)
    assert len(accepts.keys() & calls.keys()) > 15
    assert set() == {(name, arguments) for name, arguments in taken if not accepts[name](arguments)}


@pytest.mark.parametrize("provider", list(MODELS))
def test_a_message_is_a_text(play: Player, provider: str) -> None:
    """Models are told the usual type of what may be anything; the prompt in text says the same as before."""
    played, asked, _ = talk(play, PROGRAM, [[done()]], (provider, "tools"))
    schemas = [tool.get("input_schema") or tool.get("function", tool)["parameters"] for tool in asked[0].body["tools"]]
    schema = next(each for each in schemas if "message" in each["properties"])

    assert {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]} == schema
    assert "- print(message: any)" in played.requests[0].system
