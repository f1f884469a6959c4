"""One playbook over three transports: a JSON Schema, JSON mode, and plain text with whatever a model wraps around."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.expressions import evaluate
from koi_lang.llm.anthropic import Anthropic
from koi_lang.llm.connection import Connection, Secret
from koi_lang.llm.messages import Adapter
from koi_lang.llm.openai import OpenAI
from koi_lang.llm.providers import provider_named
from koi_lang.runtime.engine import Run, Services
from tests.llm.server import ModelServer
from tests.projects import Project
from tests.running import RecordingHost
from tests.test_faulty_runs import PROGRAM

ACTIONS = '{"batch":[{"intent":"print","message":"one"},{"parallel":[{"intent":"print","message":"two"}]}]}'
END = '{"intent":"return","data":{"done":true}}'
WRAPPED = f"Of course! Here is what I do:\n```json\n{ACTIONS}\n```\nAnd then I will return."


def connection(name: str, url: str, **row: Any) -> Connection:
    """A connection to the server whose provider has some other abilities."""
    return Connection(replace(provider_named(name), **row), Secret("k" * 20), "some-model", url)


def transport(name: str, url: str) -> Adapter:
    """An adapter that asks for answers in one of the three ways."""
    if name == "schema":
        return OpenAI(connection("openai", f"{url}/v1", json_schema=True))
    if name == "mode":
        return OpenAI(connection("openai", f"{url}/v1", json_schema=False))
    return Anthropic(connection("anthropic", url))


def played(project: Project, name: str, answer: str) -> tuple[list[str], Any, list[Mapping[str, Any]]]:
    """What the program prints and gives, and what the server was sent."""
    module, host = project.load("count.koi", PROGRAM), RecordingHost()

    async def run() -> tuple[Any, list[Mapping[str, Any]]]:
        async with ModelServer([answer, END]) as server:
            services = Services(connect=lambda llm: transport(name, server.url), host=host, evaluate=evaluate)
            async with Run(services) as run:
                result = await run.call(module.Counter, "count")
            return result, [request.body for request in server.requests]

    result, bodies = asyncio.run(run())
    return host.printed, result, bodies


@pytest.mark.parametrize(
    ("name", "answer", "kind"),
    [("schema", ACTIONS, "json_schema"), ("mode", ACTIONS, "json_object"), ("text", WRAPPED, None)],
)
def test_the_same_actions_result(project: Project, name: str, answer: str, kind: str | None) -> None:
    """Whatever the provider can be held to, the same is carried out."""
    printed, result, bodies = played(project, name, answer)

    assert (["one", "two"], {"done": True}) == (printed, result)
    assert [kind, kind] == [body.get("response_format", {}).get("type") for body in bodies]
