"""Runs of AG-UI against a service, as a page begins them."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import httpx2
from ag_ui.core import Event
from pydantic import TypeAdapter

from tests.limits import LIMIT_S
from tests.npm import npm_package
from tests.service.serving_process import ServiceProcess

CLIENT = "1.0.0"
EVENTS: TypeAdapter[Any] = TypeAdapter(Event)


def body_of(thread: str, text: str = "hi", **more: Any) -> dict[str, Any]:
    """The input of a run with a message of the person."""
    messages = [{"id": "m1", "role": "user", "content": text}]
    return {"threadId": thread, "runId": "r1", "messages": messages, "tools": [], "context": [], "state": {}, **more}


def run(service: ServiceProcess, thread: str, text: str = "hi", **more: Any) -> list[Any]:
    """The events of a run, each of which fits the official model of its type."""
    headers = {"Authorization": f"Bearer {service.token}"}
    body, url = body_of(thread, text, **more), f"{service.url}/agui"
    with httpx2.stream("POST", url, json=body, headers=headers, timeout=LIMIT_S) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        return [EVENTS.validate_json(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]


def texts_of(events: list[Any]) -> list[str]:
    """The messages that were streamed, put together."""
    texts: dict[str, str] = {}
    for event in events:
        if event.type == "TEXT_MESSAGE_CONTENT":
            texts[event.message_id] = texts.get(event.message_id, "") + event.delta
    return list(texts.values())


def calls_in(events: list[Any]) -> dict[str, tuple[str, str]]:
    """The calls of tools, as name and arguments by their ids."""
    names = {event.tool_call_id: event.tool_call_name for event in events if event.type == "TOOL_CALL_START"}
    arguments = {event.tool_call_id: event.delta for event in events if event.type == "TOOL_CALL_ARGS"}
    return {id: (name, arguments[id]) for id, name in names.items()}


def run_page(script: str, *words: str) -> Any:
    """The JSON that a script prints which uses the official client."""
    done = subprocess.run(
        ["node", "--input-type=module", "-", *words],
        input=script, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        cwd=npm_package("@ag-ui/client", CLIENT),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
