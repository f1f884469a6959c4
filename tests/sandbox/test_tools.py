"""Programs that a person has installed below the home folder, and commands in the sandbox, which find them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from koi_lang.health.machine import check_sandbox
from koi_lang.settings import read_settings
from koi_lang.std.checks.runner import run_command, run_tests
from tests.playbook.playing import Player, done, solo
from tests.playbook.test_shell import Deciding, command
from tests.sandbox.conftest import Machine
from tests.sandbox.test_confinement import start
from tests.std.checking import CheckedProject, summary

SAYS = '#!/bin/sh\nexec cat "$(dirname "$(readlink -f "$0")")/../lib/data"\n'


def install(root: Path, program: str, *, folder: str = "bin") -> Path:
    """Install a program that prints a file of its installation, which is its name; gives the folder for PATH."""
    for path, text in ((root / folder / program, SAYS), (root / "lib/data", f"{program}\n")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / folder / program).chmod(0o755)
    return root / folder


def on_path(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Put folders before those of PATH."""
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))


def test_programs_of_the_home_folder_are_found(confined: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of managers of versions, of environments elsewhere, and links to them, each with its installation."""
    home = confined.home
    shims = install(home / ".pyenv", "one", folder="shims")
    node = install(home / ".nvm/versions/node/v20", "two")
    environment = install(home / "work/venv", "three")
    (home / "work/venv/pyvenv.cfg").write_text("")
    install(home / ".local/share/pipx/venvs/four", "four")
    (home / ".local/bin").mkdir()
    (home / ".local/bin/four").symlink_to(home / ".local/share/pipx/venvs/four/bin/four")
    install(home / ".sdk/java/21", "five")
    (home / ".sdk/java/current").symlink_to("21")
    on_path(monkeypatch, shims, node, environment, home / ".local/bin", home / ".sdk/java/current/bin")
    code, output = start(confined, "one; two; three; four; five")

    assert (0, "one\ntwo\nthree\nfour\nfive\n") == (code, output)


def test_nothing_else_is_seen(confined: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys beside programs, no folder that holds more than programs, and no file beside one that a link leads to."""
    home = confined.home
    folders = [install(home / name, "tool") for name in (".cargo", ".docker", "work/app", ".local", ".config")]
    for name in ("credentials.toml", "registry/token.pem"):
        (home / ".cargo" / name).parent.mkdir(exist_ok=True)
        (home / ".cargo" / name).write_text("SECRET")
    for name in (".docker/config.json", "work/app/notes", ".local/share/x", ".config/x", "private/notes"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("SECRET")
    (home / "private/run.sh").write_text("#!/bin/sh\necho linked\n")
    (home / "private/run.sh").chmod(0o755)
    (home / ".local/bin/linked").symlink_to(home / "private/run.sh")
    on_path(monkeypatch, *folders)
    _, output = start(confined, "tool; linked; grep -rs SECRET ~; ls -A ~/.docker; touch ~/.cargo/bin/x")

    assert ["tool", "linked"] == output.splitlines()[:2]
    assert "SECRET" not in output
    assert "Read-only file system" in output
    assert not (home / ".cargo/bin/x").exists()


def test_the_question_and_doctor_name_them(play: Player, confined: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command sees of the home folder is said before it runs."""
    names = (".cargo", ".nvm/versions/node/v20", ".pyenv", ".bun")
    on_path(monkeypatch, *(install(confined.home / name, "tool") for name in names))
    host = Deciding()
    play(solo("execute"), [command("true"), done()], host=host, folder=confined.project)
    told = "with programs from ~/.cargo, ~/.nvm/versions/node/v20, ~/.pyenv and 1 more"

    assert [f"run `true` in the sandbox, without network, {told}: to see"] == host.requested
    assert told in next(each.text for each in check_sandbox(read_settings(confined.project)))


def test_the_python_of_an_environment(confined: Machine) -> None:
    """The one that `.venv` of the project leads to is seen, although it is on no PATH; anything else is not."""
    root = confined.home / "pythons/3.12"
    install(root, "python")
    (root / "lib/python3.12").mkdir()
    (confined.project / ".venv/bin").mkdir(parents=True)
    (confined.project / ".venv/bin/python").symlink_to(root / "bin/python")

    assert (0, "python\n") == start(confined, ".venv/bin/python")


@pytest.mark.parametrize("words", [("missing-tool",), ("./not-a-program",)])
def test_a_tool_that_cannot_be_started(confined: Machine, words: Sequence[str]) -> None:
    """It says that nothing could be checked, and why, and does not count as a test that fails."""
    (confined.project / "not-a-program").write_text("")
    checked = CheckedProject(confined.project).write({"test_a.py": ""})
    result = checked.check(lambda given: run_command(" ".join(words), given))

    assert "ended with exit code 12" in result["error"]
    assert (False, 0, 1) == summary(result)
    assert "" == checked.check(lambda given: run_command("exit 7", given))["error"]
    (confined.project / ".venv/bin").mkdir(parents=True)
    (confined.project / ".venv/bin/python").symlink_to(confined.home / "gone/bin/python")
    (confined.home / "gone/bin").mkdir(parents=True)
    (confined.home / "gone/bin/python").write_text("#!/bin/sh\n")
    (confined.home / "gone/bin/python").chmod(0o755)
    assert "cannot be started" in checked.check(run_tests)["error"]
