"""The settings of a service: its sessions follow them, and no session has settings of its own."""

from __future__ import annotations

from pathlib import Path

from koi_lang.runtime.journal.reader import read
from koi_lang.service.host import SessionHost
from tests.service.hosting import begin, called, play

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
