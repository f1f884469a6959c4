"""Fields that the command line gives to `run`: those that nothing in the program has are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.projects import Project

PROGRAM = """
    role Worker { can execute }
    agent Cook : Worker {
      on plain(args) { return args }
      on typed(args: { dish: string, people?: number }) { return args }
    }
    run Cook.HANDLER({ dish: "soup" })
"""


def no_model(settings: Any) -> Any:
    """There is none, and none is asked for."""
    raise AssertionError(f"a code-only program asks for a model: {settings}")


def notes(project: Project, handler: str, **payload: Any) -> list[str]:
    """What is told of the fields of a payload."""
    module, told = project.load("main.koi", PROGRAM.replace("HANDLER", handler)), list[str]()

    async def main() -> None:
        async with Run(Services(no_model, payload=payload, note=told.append)):
            await module.main()

    asyncio.run(main())
    return told


@pytest.mark.parametrize(("handler", "name"), [("plain", "dish"), ("plain", "other"), ("typed", "people")])
def test_a_known_field_is_not_told(project: Project, handler: str, name: str) -> None:
    """Fields of `run`, of the type of the handler, and any other of a handler that takes anything are right."""
    assert [] == notes(project, handler, **{name: 2 if name == "people" else "rice"})


@pytest.mark.parametrize("handler", ["plain", "typed"])
def test_a_misspelt_field_is_told(project: Project, handler: str) -> None:
    """A field that is like a known one is told with the one that was meant."""
    expected = f"`Cook.{handler}` has no field `dsh`, which the command line gives; did you mean `dish`?"

    assert [expected] == notes(project, handler, dsh="rice")


def test_an_unknown_field_of_a_typed_handler_is_told(project: Project) -> None:
    """Where the handler says what it takes, any other field is told with all that it takes."""
    expected = "`Cook.typed` has no field `zone`, which the command line gives; it takes `dish`, `people`"

    assert [expected] == notes(project, "typed", zone=1)


def test_the_command_line_tells_of_a_misspelt_field(project: Project) -> None:
    """`koi run --arg` says so on stderr, and runs the program."""
    project.write("main.koi", PROGRAM.replace("HANDLER", "plain"))

    outcome = project.koi("run", "main.koi", "--arg", "dsh=rice")

    assert (outcome.returncode, outcome.stdout) == (0, "")
    assert outcome.stderr.startswith("`Cook.plain` has no field `dsh`")
