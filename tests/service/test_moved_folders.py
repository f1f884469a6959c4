"""Folders of services that are copied or moved: their sessions go on where they are now."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from koi_lang import settings
from koi_lang.cli.trust import show_trust
from koi_lang.runtime.journal.line_ends import Chain, Signer, seal_line, unseal_line
from koi_lang.runtime.journal.reader import read, read_header
from koi_lang.runtime.journal.store import path_of
from koi_lang.service.host import SessionHost
from koi_lang.setup.keys.signing import signing_key
from tests.service.hosting import ADMIN, begin, called, data, until, until_told
from tests.service.test_sleeping import ANSWERS, PROGRAM, printed, restart


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a service."""
    folder = tmp_path / "releases" / "1"
    folder.mkdir(parents=True)
    (folder / "main.koi").write_text(PROGRAM)
    (folder / "answers.json").write_text(ANSWERS)
    return folder


async def three_sessions(host: SessionHost) -> tuple[str, str, str]:
    """One that sleeps, one that waits for an answer, and one at work."""
    asleep, waiting, working = await begin(host), await begin(host, "Main.ask"), await begin(host)
    await called(asleep, "Main.add", n=2)
    await until(waiting, "waiting")
    await data(working, "run_playbook", name="Main.wait", args={"ms": 300})
    await until_told(working, lambda message: b'"begun' in message)
    return asleep.id, waiting.id, working.id


def require_they_go_on(folder: Path, asleep: str, waiting: str, working: str) -> None:
    """In a folder the sessions are where they were, and come to their ends."""

    async def scenario(host: SessionHost) -> None:
        sessions = [host.find(run, ADMIN) for run in (asleep, waiting, working)]
        await called(sessions[0], "Main.add", n=3)
        await until(sessions[1], "waiting")
        await data(sessions[1], "answer", request=sessions[1].feed.requests[0]["id"], answer="blue")
        for session in sessions:
            await until(session, "idle")
        assert [["2", "5"], ["blue"], ["begun", "ended"]] == [printed(session) for session in sessions]

    restart(folder, scenario)


def belong_to(person: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have what is done from now on be done by a person, with a configuration of their own, in a folder."""
    monkeypatch.delenv(settings.TRUST_VARIABLE, raising=False)
    monkeypatch.setenv("KOI_CONFIG_DIR", str(folder.parent.parent / person))
    monkeypatch.chdir(folder)


def test_sessions_of_others_do_not_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their folder brings the key that has signed them; they are listed, and go on once the folder is trusted."""
    notes, noted = list[str](), asyncio.Event()
    belong_to("stranger", monkeypatch, folder)
    runs = restart(folder, three_sessions)
    target = folder.parent / "2"
    shutil.copytree(folder, target)
    belong_to("person", monkeypatch, target)

    def note(text: str) -> None:
        notes.append(text)
        noted.set()

    async def scenario(host: SessionHost) -> list[str]:
        own = await begin(host, "Main.add", n=1)
        await until(own, "idle")
        await own.sleep()
        await called(own, "Main.add", n=2)
        refused = [await host.find(run, ADMIN).handle({"type": "get_state"}) for run in runs]
        assert [False] * 3 == [response["success"] for response in refused], refused
        assert {"Whoever runs the service can agree to its folder with `koi trust`, and start it again."} == {
            response["help"] for response in refused
        }
        assert ["1", "3"] == printed(own)
        await noted.wait()
        return [session.id for session in host.all(ADMIN)]

    listed = restart(target, scenario, note=note)

    assert {*runs} < {*listed}
    assert ["do not go on", "`koi trust`"] == [text for text in ("do not go on", "`koi trust`") if text in notes[0]]
    show_trust(is_agreed=True)
    assert "  sessions of this folder go on, with what was allowed in them\n" == capsys.readouterr().out
    require_they_go_on(target, *runs)
    shutil.move(target, folder.parent / "3")
    assert not settings.read_settings(folder.parent / "3").is_trusted


@pytest.mark.parametrize("is_moved", [True, False])
def test_sessions_go_on_in_another_folder(folder: Path, is_moved: bool) -> None:
    """Asleep, waiting for an answer or at work; whether or not the folder that they were begun in is there still."""
    runs = restart(folder, three_sessions)
    target = folder.parent / "2"
    (shutil.move if is_moved else shutil.copytree)(folder, target)

    assert "main.koi" == read_header(path_of(target, runs[0])).program
    require_they_go_on(target, *runs)


def test_journals_of_earlier_versions_go_on(folder: Path) -> None:
    """They name their program by an absolute path, and the machine has signed them for the folder as it was called."""
    runs = restart(folder, three_sessions)
    for run in runs:
        path = path_of(folder, run)
        program = str(folder / "main.koi").encode()
        chain = Chain(Signer(signing_key(settings.config_folder()), str(folder)))
        lines = [
            unseal_line(line).replace(b'"main.koi"', b'"%b"' % program) for line in path.read_bytes().splitlines(True)
        ]
        path.write_bytes(b"".join(chain.sign(seal_line(line, run)) for line in lines))
        assert ("", str(folder / "main.koi")) == ("".join(read(path).faults), read_header(path).program)
    (folder / ".koi" / "signing.key").unlink()
    shutil.move(folder, folder.parent / "2")

    require_they_go_on(folder.parent / "2", *runs)
