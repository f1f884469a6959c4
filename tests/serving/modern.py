"""Single requests of the protocol of 2026-07-28 over HTTP, as they are on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2

from koi_lang.system.certificates import certificates
from tests.limits import LIMIT_S

VERSION = "2026-07-28"
FIELD = "io.modelcontextprotocol/"
ACCEPT = "application/json, text/event-stream"


def post(url: str, headers: Mapping[str, str], method: str, able: Mapping[str, Any], **params: Any) -> tuple[int, Any]:
    """The status, and the result or error, of a request of a client that is able to do something."""
    client = {"protocolVersion": VERSION, "clientInfo": {"name": "test", "version": "1"}, "clientCapabilities": able}
    about = {f"{FIELD}{name}": value for name, value in client.items()} | params.pop("meta", {})
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": about}}
    routed = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method, "Mcp-Name": params.get("name") or params["taskId"]}
    response = httpx2.post(
        url, json=message, headers={"Accept": ACCEPT, **headers, **routed}, timeout=LIMIT_S, verify=certificates()
    )
    streamed = re.findall(r"^data: (.*)$", response.text, re.MULTILINE)
    answer = json.loads(streamed[-1] if streamed else response.text)
    return response.status_code, answer.get("result") or answer["error"]
