"""Users of services in tests, with their tokens."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import httpx2

from koi_lang.service.users import hash_of
from tests.service.serving_process import LIMIT_S, ServiceProcess

TOKENS = {
    "ada": "koi_ada-0123456789",
    "bob": "koi_bob-0123456789",
    "root": "koi_root-0123456789",
    "eve": "koi_eve-0123456789",
}
SETTINGS = f"""
[serve.users]
ada = "{hash_of(TOKENS["ada"])}"
bob = {{ token = "{hash_of(TOKENS["bob"])}", sessions = 2 }}
root = {{ token = "{hash_of(TOKENS["root"])}", admin = true }}
eve = {{ token = "{hash_of(TOKENS["eve"])}", sessions = 5, commands = ["set_model"] }}
"""


def as_user(service: ServiceProcess, name: str) -> ServiceProcess:
    """The service as a user sees it."""
    return replace(service, token=TOKENS[name])


async def post_at_once(service: ServiceProcess, number: int, body: Any) -> Counter[int]:
    """How often each status was answered to so many requests for a run that come at the same time."""
    headers = {"Authorization": f"Bearer {service.token}"}
    async with httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=LIMIT_S) as client:
        answers = await asyncio.gather(*(client.post("/api/runs", json=body) for _ in range(number)))
    return Counter(answer.status_code for answer in answers)
