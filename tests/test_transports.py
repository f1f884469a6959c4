"""One playbook over three transports: JSON mode, JSON mode that is refused, and plain text with prose before it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from koi_lang.llm.anthropic import Anthropic
from koi_lang.llm.connect import provider_named
from koi_lang.llm.connection import ProviderConnection, Secret
from koi_lang.llm.messages import Adapter
from koi_lang.llm.openai import OpenAI
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.llm.server import Answer, ModelServer
from tests.projects import Project
from tests.running import RecordingHost
from tests.test_faulty_runs import PROGRAM

ACTIONS = '{"batch":[{"intent":"print","message":"one"},{"parallel":[{"intent":"print","message":"two"}]}]}'
END = '{"intent":"return","data":{"done":true}}'
WRAPPED = f"Of course! Here is what I do:\n```json\n{ACTIONS}\n```"
REFUSAL = Answer(status=400, error={"error": {"message": "'response_format' is not supported"}})


def transport(name: str, url: str) -> Adapter:
    """An adapter of a provider."""
    base_url = f"{url}/v1" if name == "openai" else url
    connection = ProviderConnection(provider_named(name), Secret("k" * 20), "some-model", base_url)
    return OpenAI(connection) if name == "openai" else Anthropic(connection)


def played(
    project: Project, name: str, answers: Sequence[Answer | str]
) -> tuple[list[str], Any, list[Mapping[str, Any]]]:
    """What the program prints and gives, and what the server was sent."""
    module, host = project.load("count.koi", PROGRAM), RecordingHost()

    async def run() -> tuple[Any, list[Mapping[str, Any]]]:
        async with ModelServer([*answers, END]) as server:
            services = Services(connect=lambda llm: transport(name, server.url), host=host, evaluate=evaluate)
            async with Run(services) as run:
                result = await run.call(module.Counter, "count")
            return result, [request.body for request in server.requests]

    result, bodies = asyncio.run(run())
    return host.printed, result, bodies


@pytest.mark.parametrize(
    ("name", "answers", "kinds"),
    [
        ("openai", [ACTIONS], ["json_object", "json_object"]),
        ("openai", [REFUSAL, ACTIONS], ["json_object", None, None]),
        ("anthropic", [WRAPPED], [None, None]),
    ],
    ids=["mode", "refused", "text"],
)
def test_the_same_actions_result(
    project: Project, name: str, answers: Sequence[Answer | str], kinds: list[str | None]
) -> None:
    """Whatever the provider can be held to, the same is carried out."""
    printed, result, bodies = played(project, name, answers)

    assert (["one", "two"], {"done": True}) == (printed, result)
    assert kinds == [body.get("response_format", {}).get("type") for body in bodies]
