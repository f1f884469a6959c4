"""The kinds of failures: each has a code, a page and an exit code, and is the same for every surface."""

from __future__ import annotations

import json
import re

import pytest

from koi_lang.compiler.rules.failures import EXPLANATIONS
from koi_lang.errors import (
    EXIT_CODES,
    AgentError,
    McpServerError,
    MissingKeyError,
    PermissionDeniedError,
    RequestError,
    SendTimeoutError,
    UnreadableFileError,
    exit_code,
    failure_code,
)
from tests.projects import Project

PROGRAM = """
    role Worker { can execute }
    agent Main : Worker {
      on limit(args: Json) { playbook "Go." }
      on fail(args: Json) { throw new Error("no tea") }
    }
    """


def test_each_kind_has_a_page_with_its_exit_code() -> None:
    """`koi check --explain` says what a failure is, what to do, and how the process ends."""
    told = {code: re.findall(r"^Exit code: (\d+)\.$", page, re.MULTILINE) for code, page in EXPLANATIONS.items()}

    assert {code: [str(number)] for code, number in EXIT_CODES.items()} == told


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AgentError("no"), "E0500"),
        (ValueError("no"), "E0500"),
        (PermissionDeniedError("no"), "E0502"),
        (RequestError("no", status=500), "E0503"),
        (McpServerError("no"), "E0507"),
        (FileNotFoundError("no"), "E0508"),
        (IsADirectoryError("no"), "E0508"),
        (UnreadableFileError("no"), "E0508"),
        (MissingKeyError("no"), "E0509"),
        (SendTimeoutError("no"), "E0510"),
    ],
)
def test_an_error_has_a_kind(error: Exception, code: str) -> None:
    """By its class; an error within groups is that of its group."""
    group = ExceptionGroup("all", [ExceptionGroup("some", [error])])

    assert (code, code) == (failure_code(error), failure_code(group))
    assert (EXIT_CODES[code], EXIT_CODES[code]) == (exit_code(error), exit_code(group))


@pytest.mark.parametrize(("handler", "code"), [("limit", "E0501"), ("fail", "E0500")])
def test_a_run_tells_the_kind_of_its_failure(project: Project, handler: str, code: str) -> None:
    """The message has the code, the process its exit code, and the last event of `--json` the code again."""
    project.write("a.koi", f"{PROGRAM}    run Main.{handler}({{}})\n")
    project.write("answers.json", "[]")
    words = ("run", "a.koi", "--answers", "answers.json", "--max-tokens", "1")

    done, events = project.koi(*words), project.koi(*words, "--json").stdout.splitlines()

    assert (EXIT_CODES[code], True) == (done.returncode, f"[{code}]" in done.stderr.splitlines()[0])
    assert ("run_ended", code) == tuple(json.loads(events[-1])[name] for name in ("type", "code"))


MISSING = {
    "read": ("std/files", 'readFile("no.txt")'),
    "read a folder": ("std/files", 'readFile("sub")'),
    "move": ("std/files", 'moveFile("no.txt", "b.txt")'),
    "edit": ("std/code", 'edit_file("no.txt", "a", "b")'),
}


@pytest.mark.parametrize(("part", "call"), MISSING.values(), ids=MISSING)
def test_a_missing_file_has_its_kind(project: Project, part: str, call: str) -> None:
    """Whichever part of the library looks for it."""
    (project.folder / "sub").mkdir()
    role = "role Worker { can execute, can read, can write }"
    agent = f"agent Main : Worker {{ on go() {{ return await {call} }} }}\nrun Main.go({{}})"
    project.write("a.koi", f'import "{part}"\n{role}\n{agent}\n')
    done = project.koi("run", "a.koi", "--rehearse")

    assert (EXIT_CODES["E0508"], True) == (done.returncode, "[E0508]" in done.stderr.splitlines()[0]), done.stderr
