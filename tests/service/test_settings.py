"""The settings of a service: its sessions follow them, and no session has settings of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from koi_lang.runtime.journal.reader import read
from koi_lang.service.host import SessionHost
from tests.llm.server import Answer, Asked, ModelServer
from tests.service.hosting import begin, called, hosted_in, play

PROGRAM = """
role Worker { can execute }
agent Main : Worker {
  on go(args: { command: string }) {
    try {
      const outcome = await this.callAction("shell", { command: args.command, description: "x" })
      console.log(outcome.stdout.trim())
    } catch (error) { console.log(error.message) }
  }
}
"""
CHAT = '''
role Worker { can execute }
agent Main : Worker {
  on chat(args: { message: string }) { playbook """Answer the person.""" }
}
'''
RETURN = '{"intent": "return", "data": 1}'
REFUSED = "`koi.toml` has commands run in a sandbox only, and bubblewrap is not installed"
CONFINED = '[shell]\nsandbox = "bwrap"\n'


def printed(folder: Path, *commands: str, sleeps: bool = False) -> list[str]:
    """What a session prints that runs commands one after the other."""
    (folder / "main.koi").write_text(PROGRAM)

    async def scenario(host: SessionHost) -> list[str]:
        session = await begin(host)
        for command in commands:
            await called(session, "Main.go", command=command)
            assert not sleeps or 1 == await host.put_to_sleep(0)
        entries = read(session.feed.journal).entries
        return [str(entry.data["message"]) for entry in entries if entry.kind == "printed"]

    return list(play(folder, scenario, "main.koi", allow=["shell"]))


def test_a_session_is_confined_as_the_service_says(tmp_path: Path) -> None:
    """Where the settings of the service ask for a sandbox, no session runs a command without one."""
    (tmp_path / "koi.toml").write_text(CONFINED)

    assert [REFUSED] == printed(tmp_path, "echo out")


def test_a_session_cannot_write_its_own_settings(tmp_path: Path) -> None:
    """A `koi.toml` in its files changes nothing: neither at once nor after the session was asleep."""
    outcome = printed(tmp_path, f"printf '{CONFINED}' > koi.toml", "ls", sleeps=True)

    assert ["", "koi.toml"] == outcome


def test_a_provider_without_a_list_of_models_is_asked_for_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each session asked for it anew, which cost as much as a third of its answer."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "main.koi").write_text(CHAT)

    def answer(asked: Asked) -> Answer:
        return Answer(status=404) if asked.method == "GET" else Answer(pieces=(RETURN,))

    async def talk(host: SessionHost) -> None:
        for _ in range(3):
            await called(await begin(host), "Main.chat", message="Hello")

    async def scenario() -> list[str]:
        async with ModelServer(answer) as server:
            model = f'{{ provider = "openai", model = "m", base_url = "{server.url}" }}'
            (tmp_path / "koi.toml").write_text(f"[models]\ndefault = {model}\n")
            await hosted_in(tmp_path, talk, "main.koi")
            return [request.method for request in server.requests]

    assert ["GET", "POST", "POST", "POST"] == asyncio.run(scenario())
