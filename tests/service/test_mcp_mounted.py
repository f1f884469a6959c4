"""Programs of a service at `/mcp`, for the official client of MCP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.service.serving_process import TOKEN, ServiceProcess

SHELF = """
    role Worker { can execute }
    agent NAME : Worker {
      expose mcp
      state { count: number = 0 }
      on add(args: { n: number }) { this.state.count += args.n  return { count: this.state.count } }
    }
    """
PLAIN = "role Worker { can execute }\nagent Plain : Worker { on look(args: { text: string }) { return args.text } }\n"

Start = Callable[..., ServiceProcess]


async def calls(url: str, *numbers: int) -> tuple[list[str], list[Any]]:
    """The tools of a server, and what calls of `add` give, in one session."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
    ):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        return tools, [(await client.call_tool("add", {"n": n})).structured_content for n in numbers]


def test_a_program_is_served_in_the_same_process(start_service: Start) -> None:
    """The handlers of exposed agents are tools at `/mcp`, each client has a state of its own, and the API is there."""
    service = start_service(shelf=SHELF.replace("NAME", "Shelf"), plain=PLAIN)

    assert asyncio.run(calls(f"{service.url}/mcp", 2, 3)) == (["add"], [{"count": 2}, {"count": 5}])
    assert asyncio.run(calls(f"{service.url}/mcp/shelf", 4)) == (["add"], [{"count": 4}])
    assert service.get("api/status")["programs"] == ["shelf", "plain"]


def test_several_programs_have_paths_of_their_own(start_service: Start) -> None:
    """Where several expose agents `/mcp` is none of them, and says which there are."""
    service = start_service(first=SHELF.replace("NAME", "A"), second=SHELF.replace("NAME", "B"))
    missing = service.request("POST", "mcp", {})

    assert asyncio.run(calls(f"{service.url}/mcp/second", 1)) == (["add"], [{"count": 1}])
    assert (missing.status_code, "`/mcp/first`, `/mcp/second`" in missing.json()["help"]) == (404, True)


def test_the_same_guard_stands_before_it(start_service: Start) -> None:
    """Neither without the token nor from a foreign page is there anything; without `expose mcp` there is a sentence."""
    service = start_service(shelf=SHELF.replace("NAME", "Shelf"))
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    foreign = service.request("POST", "mcp", body, Origin="http://evil.example")
    other = service.request("POST", "mcp", body, Host="evil.example")
    service.token = "wrong"
    refused = service.request("POST", "mcp", body)

    assert [foreign.status_code, other.status_code, refused.status_code] == [403, 421, 401]


def test_a_program_without_exposed_agents(service: ServiceProcess) -> None:
    """The answer says what to write."""
    answer = service.request("POST", "mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"})

    assert (answer.status_code, answer.json()["help"]) == (404, "Write `expose mcp` in an agent of a program.")
