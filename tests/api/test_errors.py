"""What goes wrong in a program that Python has opened is an error of `koi_lang`."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

import pytest

import koi_lang
from tests.projects import Project

pytestmark = pytest.mark.anyio


async def test_an_error_of_the_program(desk: Path) -> None:
    """What code throws and nobody catches is a ProgramError; `explain` shows the line."""
    async with koi_lang.open(desk) as program:
        with pytest.raises(koi_lang.ProgramError, match=r"^RangeError: too far$") as failed:
            await program.agent("Editor").fail({"text": "too far"})
        report = program.explain(failed.value)

    assert report.startswith("error: RangeError: too far [E0500]\n  --> desk.koi:")


async def test_a_stream_raises_what_its_call_fails_with(desk: Path) -> None:
    """The error comes after the last event."""
    async with koi_lang.open(desk) as program:
        stream = program.agent("Editor").stream("fail", {"text": "too far"})
        types = [(await anext(stream)).type, (await anext(stream)).type]
        with pytest.raises(koi_lang.ProgramError, match="too far"):
            await anext(stream)

    assert ["handler_started", "handler_failed"] == types


@pytest.mark.parametrize(
    ("event", "given", "message"),
    [("start", {"topicc": 1}, "`topic` is missing"), ("strat", {}, "has no handler for `strat`")],
)
async def test_what_an_agent_does_not_take(desk: Path, event: str, given: object, message: str) -> None:
    """A payload of the wrong type and an event that does not exist are AgentErrors with advice."""
    async with koi_lang.open(desk) as program:
        with pytest.raises(koi_lang.AgentError, match=message) as failed:
            await program.agent("Editor").call(event, given)

    assert failed.value.help


async def test_a_program_does_not_end_the_process(desk: Path) -> None:
    """`sys.exit` in Python code of a program ends its call."""
    async with koi_lang.open(desk) as program:
        with pytest.raises(koi_lang.KoiError, match=r"`sys\.exit\(3\)`"):
            await program.agent("Editor").leave()

        assert 1 == await program.agent("Editor").count()


async def test_a_model_without_answers(desk: Path) -> None:
    """What a provider cannot do is a ProviderError."""
    async with koi_lang.open(desk, model=koi_lang.ScriptedModel([])) as program:
        with pytest.raises(koi_lang.ProviderError, match="the script has 0"):
            await program.agent("Editor").start({"topic": "tea"})


def test_a_program_with_mistakes(project: Project) -> None:
    """A file that does not compile, or is not there, is told when it is opened."""
    path = project.write("wrong.koi", "agent A : Nobody { }")
    with pytest.raises(koi_lang.CompileError, match="Nobody"):
        koi_lang.open(path)
    with pytest.raises(koi_lang.UsageError, match=r"missing\.koi"):
        koi_lang.open(path.with_name("missing.koi"))


async def test_run_inside_of_a_loop(desk: Path) -> None:
    """Where a loop is running, such as in a notebook, one message says what to write."""
    with pytest.raises(koi_lang.UsageError, match="where an event loop is running") as failed:
        koi_lang.run(desk)

    assert 'Write `async with koi_lang.open("desk.koi") as program: await program.run()`.' == failed.value.help


def test_a_run_that_ends_the_process(project: Project) -> None:
    """`koi_lang.run` lets `sys.exit` through, as `koi run` does."""
    path = project.write(
        "main.koi",
        'import sys from "python:sys"\nrole R { can execute }\nagent A : R { on go() { sys.exit(3) } }\nrun A.go({})',
    )
    with pytest.raises(SystemExit) as ended:
        koi_lang.run(path, folder=project.folder)

    assert 3 == ended.value.code


def test_a_file_that_runs_nothing(project: Project) -> None:
    """What has no `run` statement says how its agents are called."""
    path = project.write("main.koi", "role R { can execute }\nagent A : R { on go() { } }")
    with pytest.raises(koi_lang.UsageError, match=r"`main\.koi` runs nothing"):
        koi_lang.run(path, folder=project.folder)


def test_public_names_are_few_and_documented() -> None:
    """There are at most 15 public names, each with a docstring."""
    assert len(koi_lang.__all__) <= 15
    assert [] == [name for name in koi_lang.__all__ if not getattr(koi_lang, name).__doc__]
    assert set(koi_lang.__all__) <= set(dir(koi_lang))
    assert asyncio.iscoroutinefunction(koi_lang.Program.run)


async def test_tracebacks_show_what_to_do(desk: Path) -> None:
    """An error that nobody catches ends with its help, once."""
    with pytest.raises(koi_lang.UsageError) as failed:
        koi_lang.open(desk, modle="x")

    assert "help: did you mean `model`?" == traceback.format_exception(failed.value)[-1].strip()
    async with koi_lang.open(desk) as program:
        with pytest.raises(koi_lang.AgentError) as failed_call:
            await program.agent("Editor").start({})

    assert ["help: It takes (topic: string)."] == failed_call.value.__notes__
