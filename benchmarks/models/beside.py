"""The same tasks by pydantic-ai, run by a Python of its own that has it: requests in on stdin, results out on stdout.

Nothing of Koi is imported here, and the project does not depend on pydantic-ai.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping
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


async def answer(run: Mapping[str, Any], setup: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for one typed answer; what it took, and the result or the error."""
    ai: Any = import_module("pydantic_ai")
    usage, start_s, result, error = ai.RunUsage(), time.monotonic(), None, ""
    agent = ai.Agent(
        _model(setup),
        output_type=ai.NativeOutput(output_type_of(run["schema"])),
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
        error = f"{type(failure).__name__}: {failure}"[:300]
    spent = (usage.requests, usage.input_tokens, usage.output_tokens, round(time.monotonic() - start_s, 2))
    dump: Any = import_module("pydantic").TypeAdapter(Any).dump_python
    result = dump(result, mode="json", exclude_none=True)
    is_choice = isinstance(result, dict) and "value" in result and "value" not in run["schema"].get("properties", {})
    return {"spent": spent, "result": result["value"] if is_choice else result, "error": error}


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
