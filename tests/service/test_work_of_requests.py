"""The work that a service does for a request, counted: what need not be made is not made."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette import requests

from tests.limits import LIMIT_S
from tests.service.serving_here import served_here

PROGRAM = "role Worker { can execute }\nagent Main : Worker { on go(args: Json) { return 1 } }\n"


def test_a_request_without_a_query_has_no_address_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To tell whether there is a query needs no URL, and fields that are not known are refused all the same."""
    built: list[Any] = []
    monkeypatch.setattr(requests, "URL", lambda **scope: built.append(scope))

    async def scenario(url: str) -> list[int]:
        async with httpx2.AsyncClient(base_url=url, headers={"Authorization": "Bearer start"}, timeout=LIMIT_S) as user:
            paths = ("/api/runs", "/api/runs?wait=20", "/api/runs?patience=20")
            return [(await user.post(path, json={"handler": "Main.go"})).status_code for path in paths]

    assert [202, 200, 400] == asyncio.run(served_here(tmp_path, PROGRAM, scenario))
    assert [] == built
