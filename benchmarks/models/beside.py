"""The same tasks by pydantic-ai, run by a Python of its own that has it: requests in on stdin, results out on stdout.

Nothing of Koi is imported here, and the project does not depend on pydantic-ai.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

SCALARS = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}


def type_of(schema: Mapping[str, Any], name: str = "Result") -> Any:
    """The Python type of a JSON Schema; objects are models of pydantic."""
    pydantic: Any = import_module("pydantic")
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]  # type: ignore[misc]
    if "const" in schema:
        return Literal[schema["const"]]  # type: ignore[misc]
    if options := schema.get("anyOf"):
        union: Any = type_of(options[0], name)
        for option in options[1:]:
            union = union | type_of(option, name)
        return union
    if schema.get("type") == "array":
        return list[type_of(schema["items"], f"{name}Item")]  # type: ignore[misc]
    if schema.get("type") == "object":
        required = schema.get("required", ())
        fields = {
            key: (type_of(part, key.title()), ...) if key in required else (type_of(part, key.title()) | None, None)
            for key, part in schema["properties"].items()
        }
        return pydantic.create_model(name, **fields)
    return SCALARS[schema["type"]]


def output_type_of(schema: Mapping[str, Any]) -> Any:
    """The type that an agent is asked for: a choice stands in a field `value`, since it is no type of its own there."""
    type = type_of(schema)
    if schema.keys() & {"enum", "const", "anyOf"}:
        return import_module("pydantic").create_model("Result", value=(type, ...))
    return type


@dataclass(slots=True)
class Doings:
    """What a run does by functions, which stand for the actions, members and skills of the same task in Koi."""

    answers: list[str]
    output: list[str] = field(default_factory=list)
    questions: int = 0
    state: dict[str, Any] = field(default_factory=dict)

    def print_line(self, text: str) -> str:
        """Print a line for the person."""
        self.output.append(text.strip())
        return "printed"

    def ask_person(self, question: str) -> str:
        """Ask the person one question; returns the answer."""
        self.questions += 1
        return self.answers.pop(0) if self.answers else "nobody answers"

    def set_state(self, name: str, value: int | str) -> str:
        """Set a field of the state."""
        self.state[name] = value
        return "set"

    def ask_cook(self, guests: int) -> str:
        """Ask the cook, who knows about food, to suggest a meal."""
        return f"stew 7Q for {guests}"

    def order_flowers(self, guests: int) -> dict[str, int]:
        """Have the gardener, who knows about flowers, order flowers."""
        return {"tulips": guests * 3 + 1}

    def price(self, net: float) -> float:
        """The price with taxes."""
        return net * 2 + 7

    def code(self, name: str) -> str:
        """The code of a product."""
        return f"{name}-7Q"

    def functions(self, names: list[str]) -> list[Callable[..., Any]]:
        """Those that a task may use."""
        return [getattr(self, name) for name in names]


async def answer(run: Mapping[str, Any], setup: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a task; what it took, what it did, and the result or the error.

    A typed answer alone is asked for by a schema (`NativeOutput`). With functions it is a tool, too: servers such as
    that of llama.cpp take no schema beside tools.
    """
    ai: Any = import_module("pydantic_ai")
    usage, start_s, result, error = ai.RunUsage(), time.monotonic(), None, ""
    doings, type = Doings(list(run["answers"])), output_type_of(run["schema"]) if run["schema"] else str
    agent = ai.Agent(
        _model(setup),
        output_type=type if run["functions"] else ai.NativeOutput(type),
        tools=doings.functions(run["functions"]),
        retries=2,
        model_settings={**run["sampling"], "max_tokens": setup["max_tokens"]},
    )
    try:
        async with asyncio.timeout(setup["time_s"]):
            limits = ai.UsageLimits(request_limit=setup["requests"])
            result = (await agent.run(run["prompt"], usage=usage, usage_limits=limits)).output
    except TimeoutError:
        error = "timeout"
    except Exception as failure:  # whatever it is, it is the result of this run
        error = f"{failure.__class__.__name__}: {failure}"[:300]
    spent = (usage.requests, usage.input_tokens, usage.output_tokens, round(time.monotonic() - start_s, 2))
    dump: Any = import_module("pydantic").TypeAdapter(Any).dump_python
    result, fields = dump(result, mode="json", exclude_none=True), run["schema"].get("properties", {})
    if isinstance(result, dict) and result.keys() == {"value"} != fields.keys():
        result = result["value"]
    did = {"output": doings.output, "questions": doings.questions, "state": doings.state}
    return {"spent": spent, "result": result, "error": error, **did}


def _model(setup: Mapping[str, Any]) -> Any:
    openai: Any = import_module("pydantic_ai.models.openai")
    providers: Any = import_module("pydantic_ai.providers.openai")
    provider = providers.OpenAIProvider(base_url=setup["server"], api_key="none")
    return openai.OpenAIChatModel(setup["model"], provider=provider)


async def main() -> None:
    """Answer each run of the request, a line of JSON for each."""
    request = json.load(sys.stdin)
    for run in request["runs"]:
        print(json.dumps(await answer(run, request["setup"])), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
