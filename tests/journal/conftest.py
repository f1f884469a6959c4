"""What tests of the journal start from."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from koi_lang.events import Event, LinePrinted
from koi_lang.runtime.journal.entries import Header, entry_of, line_of
from koi_lang.runtime.journal.store import path_of
from tests.journal.commands import Commands
from tests.playbook.conftest import play
from tests.projects import Project

__all__ = ["play"]

PROGRAM = '''
    role Boss { can delegate, can execute }
    role Hand { can execute }
    team T { worker: Worker }
    agent Worker : Hand { on double(args: { n: number }) { return { value: args.n * 2 } } }
    agent Lead : Boss {
      uses team T
      on start(args: Json) { playbook """Double {{args.n}} and print it.""" }
    }
    run Lead.start({ n: 21 })
    '''
ANSWERS = [
    {
        "batch": [
            {"id": "d", "actionType": "delegate", "intent": "worker::double", "data": {"n": 21}},
            {"intent": "print", "message": "${d.output.value}"},
        ]
    },
    {"intent": "return", "data": {"state_updates": {"total": 42}}},
]
HEADER = Header("0a1b2c", 100.0, "/programs/a.koi", "f00d", "0.1.0", ("run", "--record", "a.koi"))


@dataclass(frozen=True, slots=True)
class Recorded:
    """A project with one recorded run of the program above."""

    project: Project

    @property
    def path(self) -> Path:
        """The journal."""
        (found,) = (self.project.folder / ".koi" / "runs").glob("*.jsonl")
        return found

    def runs(self, *words: str, stdin: str = "") -> str:
        """What `koi runs` with some words prints, or tells when it fails."""
        done = self.project.koi("runs", *words, stdin=stdin)
        return done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}"


@pytest.fixture
def recorded(project: Project) -> Recorded:
    """A recorded run that ended well."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps(ANSWERS))
    assert project.koi("run", "--record", "--answers", "answers.json", "a.koi").stdout == "42\n"
    return Recorded(project)


def lines_of(*events: Event) -> list[bytes]:
    """The lines of a journal: its header and an entry for each event, no secret known."""
    entries = [entry_of(event, number) for number, event in enumerate(events, 1)]
    return [line_of(HEADER, str), *(line_of(entry, str) for entry in entries)]


@pytest.fixture
def journal(tmp_path: Path) -> Callable[[bytes], Path]:
    """Makes a journal with some content in a temporary folder."""

    def write(content: bytes, run: str = HEADER.run) -> Path:
        path = path_of(tmp_path, run)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


def printed(seq: int, message: str) -> Event:
    """An event at second 100 + seq."""
    return Event(seq, 100.0 + seq, HEADER.run, "Ada", LinePrinted(message), ("Ada.go#1",))


@pytest.fixture
def koi(project: Project) -> Commands:
    """Runs commands inside the test process, in an empty folder."""
    return Commands(project)
