"""How models meet the standard library: what they are told of it, and what comes of their calls."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import koi_lang
from tests.playbook.conftest import play
from tests.playbook.playing import Player

__all__ = ["play"]

PROGRAM = '''
    import "std/files"
    import "std/tables"
    role Worker { can read }
    skill Own { affordance "Says hello"  export function hello(name: string) { return name } }
    agent Main : Worker {
      uses skill Files, Tables, Own
      on go(args: Json) { playbook """Do the work.""" }
    }
    '''


def call(function: str, skill: str = "Files", **input: object) -> dict[str, object]:
    """An action that calls a function of a skill."""
    return {"id": "x", "intent": "call_skill", "skill": skill, "function": function, "input": input}


def done(function: str) -> list[object]:
    """Answers that call a function without parameters, and return what it gave."""
    return [{"batch": [call(function), {"intent": "return", "data": "${x.output}"}]}]


def test_a_model_reads_what_functions_are_for(play: Player) -> None:
    """The prompt holds a skill's description once, and behind each function its own, where it has one."""
    system = play(PROGRAM, [{"intent": "return", "data": {}}]).requests[0].system

    assert "### Files - Reads files with text below the folder of the program; paths are relative" in system
    assert "- Files.fileExists(path: string) Whether there is such a file or folder.\n" in system
    assert "### Own - Says hello\n- Own.hello(name: string)" in system


def test_parameters_may_all_be_left_out(play: Player, tmp_path: Path) -> None:
    """An empty object stands for no parameters, where none is needed."""
    assert play(PROGRAM, done("listFiles"), folder=tmp_path).result == []


def test_what_is_refused_is_not_tried_again(play: Player) -> None:
    """A model that wants to leave the folder is told that this is denied."""
    answers = [call("readFile", path="../secret"), {"intent": "return", "data": {}}]
    told = play(PROGRAM, answers).requests[1].messages[-1].text

    assert "DENIED: Skill Files.readFile failed: `../secret` lies outside of the project. Do not try it again." in told


def test_advice_reaches_the_model(play: Player) -> None:
    """What a function advises stands behind what it says went wrong."""
    answers = [call("readFile", path="nothing.md"), {"intent": "return", "data": {}}]
    told = play(PROGRAM, answers).requests[1].messages[-1].text

    assert "there is no file `nothing.md`. `listFiles` tells which there are." in told


@pytest.mark.parametrize("name", ["slug", "fillIn"])
def test_python_reads_it_too(name: str) -> None:
    """What a function says of itself is its docstring, also for a program in Python."""
    function = getattr(koi_lang.load("std/text"), name)

    assert str(inspect.getdoc(function)).startswith("A te")


CHECKING = '''
    import "std/checks"
    role Worker { can ROLE }
    agent Main : Worker {
      uses skill Checks, CheckCommands
      on go(args: Json) { playbook """Do the work.""" }
    }
    '''
TOUCH = [call("runCommand", "CheckCommands", command="touch made"), {"intent": "return", "data": "${x.output.ok}"}]


@pytest.mark.parametrize(
    ("role", "allow", "told"),
    [
        ("work", ["shell"], "`CheckCommands.runCommand` needs the permission `execute`, which the role `Worker` lacks"),
        (
            "execute",
            [],
            "Skill CheckCommands.runCommand failed: nobody can be asked to allow `touch made`, so it was not run",
        ),
        (
            "execute",
            ["shell:touch"],
            "Skill CheckCommands.runCommand failed: nobody can be asked to allow `touch made`, so it was not run",
        ),
    ],
)
def test_a_model_gets_no_command_by_a_skill(
    play: Player, tmp_path: Path, role: str, allow: list[str], told: str
) -> None:
    """A function that runs commands needs what the action `shell` needs: the role, and the leave of the person."""
    played = play(CHECKING.replace("ROLE", role), [TOUCH[0], {"intent": "return"}], folder=tmp_path, allow=allow)

    assert f"DENIED: {told}" in played.requests[1].messages[-1].text
    assert not (tmp_path / "made").exists()


def test_a_model_runs_what_is_allowed(play: Player, tmp_path: Path) -> None:
    """With both it is carried out."""
    played = play(CHECKING.replace("ROLE", "execute"), TOUCH, folder=tmp_path, allow=["shell:touch *"])

    assert (True, True) == (played.result, (tmp_path / "made").exists())
