"""What runs `koi` before a commit and on GitHub."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from itertools import pairwise
from typing import Any

import click
import pytest
import yaml

from editors.generate.files import CHECKOUT
from koi_lang.cli import koi
from tests import forks
from tests.projects import Project

ACTION = CHECKOUT / ".github" / "actions" / "koi"
HOOKS: list[dict[str, Any]] = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))["runs"]["steps"]
INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")
GOOD = """
    role Worker { can execute }

    agent Adder : Worker {
      on add(args: { a: number, b: number }): number {
        return args.a + args.b
      }
    }

    run Adder.add({ a: 1, b: 2 })
    """


def environment(project: Project) -> dict[str, str]:
    """The variables of a shell that finds a `koi`, which is forked."""
    project.write("bin/koi", f'#!/bin/sh\nexec {shlex.join(forks.koi())} "$@" </dev/null\n').chmod(0o755)
    return {"PATH": f"{project.folder / 'bin'}:{os.environ['PATH']}"}


def outcomes(project: Project, **inputs: str) -> dict[str, subprocess.CompletedProcess[str]]:
    """What came of each step that calls `koi`, with the inputs of the action, as its shell runs it."""
    given = {"path": ".", "strict": "true", **inputs}
    found = {}
    for step in STEPS:
        if re.search(r"^koi ", step.get("run", ""), re.MULTILINE):
            variables = {name: INPUT.sub(lambda name: given[name[1]], text) for name, text in step["env"].items()}
            words = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
            found[step["name"]] = project.run(*words, **environment(project), **variables)
    return found


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_hooks_take_programs(hook: dict[str, Any], project: Project) -> None:
    """A hook is called with files behind it, accepts a good one, and has a command and options that there are."""
    project.write("main.koi", GOOD)
    name, *words = shlex.split(hook["entry"])[1:]
    done = project.koi(name, *words, "main.koi")

    assert (0, True) == (done.returncode, re.search(hook["files"], "a/main.koi") is not None)
    assert koi.get_command(click.Context(koi), name) is not None


def test_the_action_accepts_a_good_project(project: Project) -> None:
    """Every step that calls `koi` succeeds where there is nothing to say."""
    project.write("my folder/main.koi", GOOD)
    project.write("my folder/main.test.koi", 'test "adds" {\n  expect 1 + 1 == 2\n}\n')

    found = outcomes(project, path="my folder")

    assert {"Check the layout": 0, "Check the programs": 0, "Run the tests": 0} == {
        name: done.returncode for name, done in found.items()
    }, [done.stderr for done in found.values()]


def test_the_action_refuses_and_notes_problems(project: Project) -> None:
    """Layout, errors and failing tests each fail a step, and what is told becomes notes with place and code."""
    project.write("a.koi", "role Worker { can execute }\nagent Host : Wroker { }\n")
    project.write("b.test.koi", 'test "adds" {\n  expect 1 == 2\n}\n')
    first, second = json.loads((ACTION / "problems.json").read_text("utf-8"))["problemMatcher"][0]["pattern"]

    found = outcomes(project)

    assert [1, 65, 1] == [done.returncode for done in found.values()]
    noted = set()
    for name in ("Check the programs", "Run the tests"):
        lines = (found[name].stdout + found[name].stderr).splitlines()
        for line, after in pairwise(lines):
            problem, place = re.match(first["regexp"], line), re.match(second["regexp"], after)
            if problem and place:
                noted.add((problem[first["severity"]], problem[first["code"]], place[1], int(place[2])))
    assert {("error", "E0201", "a.koi", 2), ("error", "E0500", "b.test.koi", 2)} == noted


def test_warnings_count_where_they_are_wanted(project: Project) -> None:
    """`strict` makes them errors, and `false` does not."""
    project.write("a.koi", "role Worker { can exeucte }\n")

    codes = [outcomes(project, strict=strict)["Check the programs"].returncode for strict in ("true", "false")]

    assert [65, 0] == codes


def test_inputs_are_never_part_of_a_script() -> None:
    """What a workflow passes in reaches scripts by variables alone, so that it is not carried out."""
    assert [] == [step for step in STEPS if "${{" in step.get("run", "")]
