"""Notes in a service: its callers get none of the person whose machine it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.guidance.note_files import write_note
from tests.limits import LIMIT_S
from tests.service.serving_here import served_here
from tests.service.user_tokens import TOKENS

PROGRAM = """
import "std/memory"
role Worker { can read }
agent Reader : Worker {
  on look() { return (await recall("zebras")).map(note => note.id) }
}
"""


def test_callers_get_no_notes_of_the_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of their settings, whoever calls; what the person themselves runs has them."""
    person = tmp_path / "person"
    (person / "memory").mkdir(parents=True)
    (person / "memory" / "mine.md").write_text("---\nkind: preference\n---\nI like zebras.\n")
    monkeypatch.setenv("KOI_CONFIG_DIR", str(person))
    monkeypatch.setenv("KOI_CACHE_DIR", str(tmp_path / "cache"))
    write_note(tmp_path, "ours", "Zebras are striped.")

    async def look(url: str) -> list[Any]:
        found = []
        for user in ("root", "ada"):
            headers = {"Authorization": f"Bearer {TOKENS[user]}"}
            async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=LIMIT_S) as client:
                answer = await client.post("/api/runs?wait=20", json={"handler": "Reader.look"})
                found.append(answer.json())
        return found

    results = asyncio.run(served_here(tmp_path, PROGRAM, look))
    assert [[], []] == [each["result"] for each in results], results
