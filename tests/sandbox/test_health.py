"""What `koi doctor` says of the sandbox."""

from __future__ import annotations

import os
import sys

import pytest

from koi_lang.health.machine import INSTALL, check_sandbox
from koi_lang.settings import read_settings
from tests.sandbox.conftest import Machine

MISSING = pytest.param("", "warning", "commands may do what you may: bubblewrap is not installed", INSTALL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no bubblewrap elsewhere")
@pytest.mark.parametrize(
    ("setting", "level", "text", "fix"),
    [
        MISSING,
        ('sandbox = "none"', "ok", 'commands run without one: `[shell] sandbox = "none"` in `koi.toml` says so', ""),
        ('sandbox = "bwrap"', "error", "`koi.toml` has commands run in a sandbox only, and bubblewrap is not installed",
         'Mend that, or write `sandbox = "auto"` for commands that run all the same.'),
    ],
)  # fmt: skip
def test_without_bubblewrap(machine: Machine, setting: str, level: str, text: str, fix: str) -> None:
    """What is in force, why, and what mends it."""
    machine.set_up(setting)
    (found,) = check_sandbox(read_settings(machine.project))

    assert ("sandbox", level, text, fix) == (found.about, found.level, found.text, found.fix)


def test_a_bubblewrap_that_does_not_work(machine: Machine) -> None:
    """What it says is passed on; installing it once more mends nothing."""
    machine.install("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    (found,) = check_sandbox(read_settings(machine.project))

    assert ("warning", "") == (found.level, found.fix)
    assert found.text.endswith("bubblewrap does not work here (bwrap: setting up uid map: Permission denied)")


def test_in_force(confined: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of the home folder that commands will find are named, and others with the line that shows them."""
    for name in (".tool/bin", ".docker/bin", ".cargo/bin"):
        (confined.home / name).mkdir(parents=True)
    folders = [
        str(confined.bin),
        *(f"{confined.home}/{name}/bin" for name in (".tool", ".docker", ".cargo")),
        "/usr/bin",
    ]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    confined.set_up('home = ["~/.cargo"]')
    found = [(each.level, each.text, each.fix) for each in check_sandbox(read_settings(confined.project))]

    hidden = "commands do not find what is in {}, which is on PATH"
    assert [
        ("ok", f"commands run in {confined.bin}/bwrap and may change the project only, with programs from ~/.tool", ""),
        ("warning", hidden.format(confined.bin), ""),
        ("warning", hidden.format(confined.home / ".docker/bin"), 'edit koi.toml: `[shell] home = ["~/.docker"]`'),
    ] == found
