"""What programs are opened with is looked at when they are opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import koi_lang
from koi_lang.api.agent import ProgramAgent
from koi_lang.api.entry import CHECKS, OpenOptions
from tests.api.conftest import within


async def async_output(text: str) -> None:
    """An output that would have to be awaited."""


def test_every_option_is_checked() -> None:
    """There is one table of what options may be."""
    assert set(OpenOptions.__annotations__) == set(CHECKS)


@pytest.mark.parametrize("opened", [koi_lang.open, koi_lang.run])
@pytest.mark.parametrize(
    ("option", "given", "help"),
    [
        ("model", 3, "`koi_lang.ScriptedModel([…])`"),
        ("model", [{"intent": "return"}], "`koi_lang.ScriptedModel([…])`"),
        ("ask", "yes", "Give a function"),
        ("approve", True, "Give a function"),
        ("output", 3, "Give a function"),
        ("output", async_output, "not async"),
        ("effort", "hihg", "There are `none`"),
        ("effort", ["high"], "There are `none`"),
        ("budget", 5, "`budget={"),
        ("payload", 3, "`payload={"),
        ("allow", "shell", '`allow=["run"]`'),
        ("allow", None, '`allow=["run"]`'),
        ("record", "no", "True or False"),
        ("rehearse", 1, "True or False"),
        ("keys", b"keys", "path of a file"),
        ("folder", 3, "path of a folder"),
    ],
)
def test_an_option_of_a_wrong_kind(desk: Path, opened: Any, option: str, given: Any, help: str) -> None:
    """It is an error at once, with one thing to do."""
    with pytest.raises(koi_lang.UsageError, match=f"the option `{option}` cannot be ") as failed:
        opened(desk, **{option: given})

    assert help in str(failed.value.help)


@pytest.mark.parametrize("program", [None, b"desk.koi", 3])
def test_what_is_no_program(program: Any) -> None:
    """A program is a path or a module."""
    with pytest.raises(koi_lang.UsageError, match="is no program"):
        koi_lang.open(program)


@pytest.mark.parametrize("name", [None, ["Editor"]])
def test_a_name_that_is_no_text(desk: Path, name: Any) -> None:
    """Agents are found by texts."""

    async def find(editor: ProgramAgent) -> Any:
        async with koi_lang.open(desk) as program:
            program.agent(name)

    with pytest.raises(koi_lang.UsageError, match="an agent cannot be named"):
        within(desk, find)


@pytest.mark.parametrize("payload", [3, "tea", ["tea"]])
def test_fields_beside_a_payload_that_is_no_object(desk: Path, payload: Any) -> None:
    """Fields are added to objects."""

    async def call(editor: ProgramAgent) -> Any:
        await editor.echo(payload, words=4)

    with pytest.raises(koi_lang.UsageError, match="a payload that is an object"):
        within(desk, call)
