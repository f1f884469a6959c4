"""Where a person's files lie, and what `.env` says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS

from koi_lang import settings
from koi_lang.errors import SettingsError
from koi_lang.llm.scripted import read_answers
from koi_lang.settings import project, read_settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a person who has set nothing."""
    for name in ("KOI_CONFIG_DIR", "KOI_CACHE_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is a Mac."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platformdirs, "PlatformDirs", MacOS)


def folders() -> list[Path]:
    """Of the configuration and of the cache."""
    return [settings.config_folder(), settings.cache_folder()]


def test_the_plain_folders_are_those_of_the_library(home: Path) -> None:
    """On Linux the library is not loaded, since it says the same."""
    by_library = [platformdirs.user_config_dir("koi"), platformdirs.user_cache_dir("koi")]

    assert [home / ".config" / "koi", home / ".cache" / "koi"] == folders() == [Path(path) for path in by_library]


def test_a_mac_has_folders_of_its_own(home: Path, mac: None) -> None:
    """New files lie where the system expects them."""
    assert [home / "Library/Application Support/koi", home / "Library/Caches/koi"] == folders()


def test_what_a_person_has_is_found_everywhere(home: Path, mac: None) -> None:
    """A plain folder that exists is used, so that keys from before are not lost."""
    (home / ".config" / "koi").mkdir(parents=True)

    assert [home / ".config" / "koi", home / "Library/Caches/koi"] == folders()


def test_variables_come_first(home: Path, mac: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of koi count before those of the system."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/x")
    monkeypatch.setenv("KOI_CONFIG_DIR", "/own")

    assert [Path("/own"), Path("/x/koi")] == folders()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A=b", {"A": "b"}),
        ("export A=b", {"A": "b"}),
        ("  A = b  # why", {"A": "b"}),
        ("A='b # c'", {"A": "b # c"}),
        ('A="b\\nc"', {"A": "b\nc"}),
        ("A='b\\nc'", {"A": "b\\nc"}),
        ('A="one\ntwo"', {"A": "one\ntwo"}),
        ("A=b#c", {"A": "b#c"}),
        ("A=", {"A": ""}),
        ("A", {}),
        ("# A=b", {}),
        ("A='b\nC=d", {"C": "d"}),
        ("\ufeffA=b\r\nC=d", {"A": "b", "C": "d"}),
        ("A=${HOME}", {"A": "${HOME}"}),
        ('A="${HOME}:$B"', {"A": "${HOME}:$B"}),
        ("B=1\nA=${B}", {"B": "1", "A": "${B}"}),
    ],
)
def test_variables_of_a_file(tmp_path: Path, line: str, expected: dict[str, str]) -> None:
    """Quotes, escapes, comments and `export` are understood; `${X}` stays, and broken lines are passed over."""
    (tmp_path / ".env").write_bytes(line.encode())

    assert settings.dotenv(read_settings(tmp_path)) == settings.variables_in(str(tmp_path / ".env")) == expected


def test_a_broken_line_is_shown_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It may hold a key."""
    (tmp_path / ".env").write_text("A='secret\n")

    assert (settings.dotenv(read_settings(tmp_path)), *capfd.readouterr()) == ({}, "", "")


def test_files_of_windows_begin_with_a_mark(tmp_path: Path) -> None:
    """Its editors write one in front of settings, servers and answers; it is read past, as in programs."""
    servers = '{"mcpServers":{"a":{"command":"b"}}}'
    for name, text in {"koi.toml": "[shell]\n", ".mcp.json": servers, "a.json": "[1]"}.items():
        (tmp_path / name).write_text(f"\ufeff{text}", "utf-8")

    assert {"shell": {}} == project.read_toml(read_settings(tmp_path))
    assert (".mcp.json", {"command": "b"}) == project.mcp_servers(read_settings(tmp_path))["a"]
    assert [1] == read_answers(tmp_path / "a.json")


NESTED, LARGE = b"[" * 100_000, b" " * 1_000_001
READERS = {".koi-config.json": settings.koi_config, ".mcp.json": project.mcp_servers, "koi.toml": project.read_toml}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff", "invalid start byte"),
        (NESTED, "it nests too deeply"),
        (LARGE, "it has more than 1,000,000 bytes"),
        (None, "it is no regular file"),
    ],
    ids=["no text", "nested", "large", "a pipe"],
)
def test_a_file_that_cannot_be_read_is_one_message(tmp_path: Path, name: str, content: bytes | None, why: str) -> None:
    """Whatever a stranger puts into a project, nothing waits for it, and one sentence says what is wrong."""
    if content is None:
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).write_bytes((b"a = " if name == "koi.toml" and content is NESTED else b"") + content)
    found = read_settings(tmp_path)

    with pytest.raises(SettingsError, match=why) as told:
        READERS[name](found)
    assert told.value.message.startswith(f"`{name}` cannot be read: ")
    assert told.value.help
