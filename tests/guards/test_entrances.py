"""Every way to a file, a process or a server goes by its guard."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import PermissionDeniedError
from koi_lang.runtime.hooks.types import Rewrite
from koi_lang.std import files
from koi_lang.system import resources
from tests.extensions.hooking import hooks, saying
from tests.playbook.conftest import play as play
from tests.playbook.playing import Player, act, done, solo
from tests.std.test_files import OUTSIDE, do
from tests.std.test_files import folder as folder

GUARDS = "koi_lang.runtime.guards"
# What reaches the world, by the names of functions and modules for it.
REACHES = {
    "files": frozenset(
        "open read_text write_text read_bytes write_bytes unlink rename mkdir rmdir touch walk scandir iterdir glob"
        " rglob rmtree copyfile".split()
    ),
    "processes": frozenset(
        "subprocess_shell subprocess_exec create_subprocess_shell create_subprocess_exec Popen system popen".split()
    ),
    "servers": frozenset(("httpx2", "socket", "urllib.request", "http.client")),
}
# The modules of actions and of the standard library that do, with the guard that each goes by.
ENTRANCES = {
    ("files", "koi_lang.std.files"): "paths",
    # Says no more of files than whether there are tools for them, and what these report.
    ("files", "koi_lang.std.checks.project_files"): "",
    # Names of one form, below three folders.
    ("files", "koi_lang.std.rubrics"): "",
    # Names in two folders of the project, and the text of an agent, read as instructions are.
    ("files", "koi_lang.std.workflow"): "",
    # Opens each folder of the project below the one before it; what is put back goes by its guard.
    ("files", "koi_lang.runtime.tree"): "paths",
    # What is told of a folder goes by the names of what is closed, and files are opened by the guard.
    ("files", "koi_lang.std.code"): "working_files",
    # Ripgrep of the system, with words to look for and names of files.
    ("processes", "koi_lang.std.ripgrep"): "",
    ("processes", "koi_lang.runtime.command_process"): "commands",
    ("servers", "koi_lang.std.http_client"): "transport",
}
# Packages that are one entrance, whichever of their modules it is.
PACKAGES = ("koi_lang.runtime.tree", "koi_lang.std.code")
PLACES = ("std/**/*.py", "runtime/actions/*.py", "runtime/tree/*.py", "runtime/command_process.py")


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The modules that models and programs reach the world by."""
    paths = [path for place in PLACES for path in sorted(resources.PACKAGE.glob(place))]
    for path in paths:
        name = ".".join(path.relative_to(resources.PACKAGE.parent).with_suffix("").parts)
        package = name.rpartition(".")[0]
        yield package if package in PACKAGES else name, ast.parse(path.read_bytes())


def names_in(tree: ast.Module) -> Iterator[str]:
    """What is called, and what is imported."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
                yield name
            case ast.ImportFrom(module=str(module)):
                yield module


def test_whatever_reaches_the_world_has_its_guard() -> None:
    """A module that is not listed reaches nothing; one that is imports the guard of its kind."""
    names: dict[str, set[str]] = {}
    for name, tree in modules():
        names.setdefault(name, set()).update(names_in(tree))
    found = {(kind, name): own for name, own in names.items() for kind in REACHES if REACHES[kind] & own}

    assert found.keys() == ENTRANCES.keys()
    assert [] == [key for key, guard in ENTRANCES.items() if guard and f"{GUARDS}.{guard}" not in found[key]]


def ways_to_files() -> Iterator[tuple[str, str]]:
    """Every public function that takes a path, with each parameter that is one."""
    for name, function in inspect.getmembers(files, inspect.iscoroutinefunction):
        if not name.startswith("_") and function.__module__ == files.__name__:
            for parameter in inspect.signature(function).parameters:
                if parameter in ("path", "target"):
                    yield name, parameter


@pytest.mark.parametrize("path", [*OUTSIDE, ".env", "a/../../x"])
@pytest.mark.parametrize(("name", "parameter"), list(ways_to_files()))
def test_no_function_takes_a_hostile_path(folder: Path, name: str, parameter: str, path: str) -> None:
    """Also a function that is added later: its paths are found by the names of its parameters."""
    function = getattr(files, name)
    (folder / "here.txt").write_text("here")
    (folder / "out").symlink_to("..")
    (folder / "link.txt").symlink_to("../secret.txt")
    given = dict.fromkeys(inspect.signature(function).parameters, "here.txt") | {parameter: path}

    with pytest.raises(PermissionDeniedError):
        do(function(**given))


# A command that no rule covers, by every way on which a model, code or a hook can bring it.
MAKE = act("shell", command="touch made", description="x")
COMMANDS: dict[str, tuple[Any, Callable[[], dict[str, Any]]]] = {
    "an action": (MAKE, dict),
    "in the background": ({**MAKE, "background": True}, dict),
    "in a folder": ({**MAKE, "cwd": "."}, dict),
    "a batch": ({"batch": [MAKE]}, dict),
    "a condition": (act("if", condition=True, then=[MAKE]), dict),
    "a loop": (act("repeat", count=1, actions=[MAKE]), dict),
    "joined to one that is allowed": (act("shell", command="true; touch made", description="x"), dict),
    "by a reference": ({**MAKE, "command": "${args.command}"}, lambda: {"payload": {"command": "touch made"}}),
    "a hook": (
        act("shell", command="true", description="x"),
        lambda: {"added": hooks(saying(Rewrite({"command": "touch made", "description": "x"})))},
    ),
}  # fmt: skip


@pytest.fixture
def made(play: Player) -> Iterator[Path]:
    """The file that the command makes."""
    yield play.folder / "made"
    (play.folder / "made").unlink(missing_ok=True)


@pytest.mark.parametrize("way", COMMANDS)
def test_no_command_goes_round_its_guard(play: Player, made: Path, way: str) -> None:
    """Where nobody can be asked, what no rule covers is not carried out."""
    answer, services = COMMANDS[way]
    played = play(solo("execute"), [answer, done()], allow=["shell:true", "shell:print *"], **services())

    assert "nobody can be asked to allow `t" in played.feedback[1]
    assert not made.exists()


@pytest.mark.parametrize("way", [way for way in COMMANDS if way != "in the background"])
def test_every_way_is_one(play: Player, made: Path, way: str) -> None:
    """The same commands are carried out where a rule covers them: these are ways indeed."""
    answer, services = COMMANDS[way]
    play(solo("execute"), [answer, done()], allow=["shell"], **services())

    assert made.exists()


def test_code_asks_for_its_commands_too(play: Player, made: Path) -> None:
    """`callAction` of an agent goes by the same guard as the action of a model."""
    code = 'await this.callAction("shell", { command: "touch made", description: "x" })'
    played = play(f"role Worker {{ can execute }} agent Main : Worker {{ on go() {{ {code} }} }}", [])

    assert "nobody can be asked to allow `touch made`" in str(played.error)
    assert not made.exists()
