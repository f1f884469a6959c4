"""Services for tests: one that all of them share, and such of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from koi_lang.service.store import Database
from tests.service.serving_process import ROOT, ServiceProcess
from tests.service.user_tokens import SETTINGS

DESK = ("examples/desk.koi", "examples/desk.answers.json")


def desk_in(folder: Path) -> tuple[str, ...]:
    """The words that serve a copy of the desk in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in DESK:
        (folder / Path(name).name).write_bytes((ROOT / name).read_bytes())
    return ("desk.koi", "--answers", "desk.answers.json")


@pytest.fixture(autouse=True)
def closed_databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever database a test opens is closed behind it, also where the test plays a process that was killed."""
    opened: list[Database] = []
    connect = Database.connect

    def keep(folder: Path) -> Database:
        opened.append(connect(folder))
        return opened[-1]

    monkeypatch.setattr(Database, "connect", keep)
    yield
    for each in opened:
        with suppress(sqlite3.ProgrammingError):  # it belongs to another thread, which closes it
            each.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service of the desk; tests begin runs of their own in it and end nothing else."""
    folder = tmp_path_factory.mktemp("service")
    shared = ServiceProcess(folder, desk_in(folder))
    shared.start()
    yield shared
    shared.end()


@pytest.fixture
def start_service(tmp_path: Path) -> Iterator[Callable[..., ServiceProcess]]:
    """Starts services of programs, by their text, or of the desk; they end with the test."""
    begun: list[ServiceProcess] = []

    def start(*words: str, is_forked: bool = True, **programs: str) -> ServiceProcess:
        for name, text in programs.items():
            (tmp_path / f"{name}.koi").write_text(text)
        given = (*(f"{name}.koi" for name in programs), *words) if programs else (*desk_in(tmp_path), *words)
        begun.append(ServiceProcess(tmp_path, given, is_forked=is_forked))
        begun[-1].start()
        return begun[-1]

    yield start
    for each in begun:
        each.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with users."""
    folder = tmp_path_factory.mktemp("users")
    words = desk_in(folder)
    (folder / "koi.toml").write_text(SETTINGS)
    service = ServiceProcess(folder, words)
    service.start()
    yield service
    service.end()
