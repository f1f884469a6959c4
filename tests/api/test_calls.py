"""Calls of agents from Python: what goes in, what comes out, and what happens meanwhile."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import koi_lang
from koi_lang.api.agent import ProgramAgent
from koi_lang.events import AnswerDelta, PartialResult
from tests.api.conftest import BRIEF, within
from tests.limits import LIMIT_S
from tests.projects import Project

pytestmark = pytest.mark.anyio


def test_values_are_copied_both_ways(desk: Path) -> None:
    """A handler changes nothing of its caller's; None stands for undefined, lists for tuples."""
    given = {"a": (1, 2)}

    async def call(editor: ProgramAgent) -> Any:
        return await editor.echo(given), await editor.gaps()

    assert ({"a": [1, 2], "changed": True}, [1, None, {"a": None}]) == within(desk, call)
    assert {"a": (1, 2)} == given


def test_fields_may_be_named(desk: Path) -> None:
    """Named arguments are fields of the payload, beside those of an object."""

    async def call(editor: ProgramAgent) -> Any:
        return await editor.echo({"a": 1}, b=2)

    assert {"a": 1, "b": 2, "changed": True} == within(desk, call)


def test_events_of_any_name_are_called(desk: Path) -> None:
    """An event that is called like a method of all agents is reached by `call`."""

    async def call(editor: ProgramAgent) -> Any:
        return await editor.call("stream")

    assert "streamed" == within(desk, call)


def test_state_lasts_as_long_as_the_program(desk: Path) -> None:
    """All calls of one program meet the same agent; another program has its own."""

    async def call(editor: ProgramAgent) -> Any:
        return [await editor.count(), await editor.count()]

    assert ([1, 2], [1, 2]) == (within(desk, call), within(desk, call))


async def test_many_calls_at_once(desk: Path) -> None:
    """Calls of one program go on beside each other, and each gets what is its own."""
    async with koi_lang.open(desk) as program:
        editor = program.agent("Editor")
        results = await asyncio.gather(*(editor.echo({"n": n}) for n in range(40)))

    assert list(range(40)) == [result["n"] for result in results]


async def test_several_programs_in_one_loop(desk: Path, project: Project) -> None:
    """Two programs that are open at once know nothing of each other."""
    other = project.write("other.koi", 'role R { can execute }\nagent A : R { on go() { return "other" } }')
    async with koi_lang.open(desk) as first, koi_lang.open(desk) as second, koi_lang.open(other) as third:
        counts = [await each.agent("Editor").count() for each in (first, first, second)]

        assert ([1, 2, 1], "other", ("A",)) == (counts, await third.agent("A").go(), third.agents)
    assert 3 == len({first.journal, second.journal, third.journal})


async def test_a_stream_has_the_events_of_its_call(desk: Path) -> None:
    """Events of other calls do not come up in it; what the call gave is known afterwards."""
    async with koi_lang.open(desk) as program:
        editor = program.agent("Editor")
        streams = [editor.stream("echo", {"n": n}) for n in range(3)]

        async def follow(stream: Any) -> list[Any]:
            return [event async for event in stream]

        seen = await asyncio.gather(*map(follow, streams))

    assert [0, 1, 2] == [stream.result["n"] for stream in streams]
    assert [["handler_started", "handler_ended"]] * 3 == [[event.type for event in events] for events in seen]
    assert [0, 1, 2] == [events[0].fields["args"]["n"] for events in seen]


async def test_a_stream_has_the_pieces_of_answers(desk: Path) -> None:
    """They come as they arrive; only the whole text is recorded."""
    async with koi_lang.open(desk, model=koi_lang.ScriptedModel([BRIEF])) as program:
        seen = [event async for event in program.agent("Editor").stream("start", {"topic": "tea"})]
        journal = program.journal

    pieces = [event.data.text for event in seen if isinstance(event.data, AnswerDelta)]
    assert (BRIEF, True) == (json.loads("".join(pieces)), len(pieces) > 1)
    assert journal is not None
    assert AnswerDelta.type not in journal.read_text()


async def test_a_typed_result_grows(desk: Path) -> None:
    """`partial` is the part of it that has arrived; of what is not typed there is none."""
    outline = {"title": "All about tea", "parts": ["leaves", "water", "cups"]}
    async with koi_lang.open(desk, model=koi_lang.ScriptedModel([outline, BRIEF])) as program:
        stream = program.agent("Editor").stream("outline", {"topic": "tea"})
        parts = [stream.partial async for event in stream if isinstance(event.data, PartialResult)]
        other = program.agent("Editor").stream("start", {"topic": "tea"})
        untyped = [other.partial async for _ in other]

    assert (outline, outline) == (stream.result, {**parts[-1], "parts": outline["parts"]})
    assert len(parts) > 1
    assert all(outline["title"].startswith(part["title"]) for part in parts)
    assert {None} == set(untyped)


async def test_large_numbers_are_exact(desk: Path) -> None:
    """An identifier that is beyond what doubles hold comes back as it was given, by itself and in objects."""
    given = {"id": 725653563933458433, "more": [{"id": -(2**63)}]}
    async with koi_lang.open(desk, model=koi_lang.ScriptedModel([])) as program:
        result = await program.agent("Editor").call("echo", given)

    assert {**given, "changed": True} == result


async def test_variables_of_the_caller_reach_python_code(project: Project) -> None:
    """What a server keeps in context variables, such as the id of a request, is there in Python code of a program."""
    request = contextvars.ContextVar("request", default="")
    path = project.write(
        "main.koi",
        """
        import looking from "python:looking"
        role R { can execute }
        agent A : R { on go() { return looking.look() } }
        """,
    )
    module = type(json)("looking")
    module.look = request.get  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "looking", module)
        async with koi_lang.open(path, record=False) as program:
            request.set("r-17")

            assert "r-17" == await program.agent("A").go()


async def test_a_budget_counts_for_all_calls(desk: Path) -> None:
    """What one call has taken is missing to the next one."""
    model = koi_lang.ScriptedModel([BRIEF, BRIEF])
    async with koi_lang.open(desk, model=model, budget={"requests": 1}) as program:
        await program.agent("Editor").start({"topic": "tea"})
        with pytest.raises(koi_lang.LimitReachedError, match="has made 1 request"):
            await program.agent("Editor").start({"topic": "koi"})

    assert 1 == len(model.requests)


async def test_a_call_has_its_time(desk: Path) -> None:
    """The time of a budget is that of each call."""
    async with koi_lang.open(desk, budget={"time": 0.5}, output=len) as program:
        with pytest.raises(koi_lang.LimitReachedError, match=r"`Editor\.slow` took longer than its budget of 0\.5 s"):
            await program.agent("Editor").slow({})
        await asyncio.sleep(0.6)

        assert 1 == await program.agent("Editor").count()


async def test_output_goes_to_a_function(desk: Path, project: Project) -> None:
    """What the program prints is handed to `output`, fields for its `run` statements come from `payload`."""
    path = project.write(
        "main.koi",
        "role R { can execute }\nagent A : R { on go(args: Json) { console.log(args.name) } }\nrun A.go({})",
    )
    printed: list[str] = []
    async with koi_lang.open(path, output=printed.append, payload={"name": "Ada"}) as program:
        await program.run()

    assert ["Ada"] == printed


async def test_a_folder_of_its_own(desk: Path, project: Project) -> None:
    """Settings are read from, and journals written to, the folder that is named."""
    folder = project.folder / "elsewhere"
    folder.mkdir()
    (folder / "koi.toml").write_text("[limits]\nrequests = 0.5\n")
    with pytest.raises(koi_lang.UsageError, match="`requests` in `\\[limits\\]`"):
        await koi_lang.open(desk, folder=folder).__aenter__()
    (folder / "koi.toml").write_text("")
    async with koi_lang.open(desk, folder=folder) as program:
        await program.agent("Editor").count()

    assert program.journal is not None
    assert folder / ".koi" / "runs" == program.journal.parent


async def test_without_a_journal(desk: Path) -> None:
    """`record=False` writes none."""
    async with koi_lang.open(desk, record=False) as program:
        await program.agent("Editor").count()

    assert program.journal is None
    assert not (desk.parent / ".koi" / "runs").exists()


async def test_a_module_is_opened(desk: Path) -> None:
    """A loaded module stands for its file."""
    module = koi_lang.load(str(desk))
    async with koi_lang.open(module) as program:
        assert 1 == await program.agent("Editor").count()
        assert module is program.module


async def test_a_program_may_be_left_by_another_task(desk: Path) -> None:
    """Fixtures of test runners enter and leave a context in different tasks."""
    program = koi_lang.open(desk)

    async def apart(work: Callable[..., Awaitable[Any]], *given: Any) -> Any:
        return await asyncio.create_task(_as_coroutine(work(*given)))

    await apart(program.__aenter__)
    count = await program.agent("Editor").count()
    await apart(program.__aexit__, None, None, None)

    assert 1 == count


async def _as_coroutine(work: Awaitable[Any]) -> Any:
    return await work


@pytest.mark.parametrize("work", [lambda editor: editor.count(), lambda editor: anext(editor.stream("count"))])
def test_a_call_from_another_event_loop(desk: Path, work: Callable[[ProgramAgent], Any]) -> None:
    """It fails at once, and says where calls come from."""

    async def call(editor: ProgramAgent) -> Any:
        await work(editor)

    async def elsewhere(editor: ProgramAgent) -> Any:
        await asyncio.wait_for(asyncio.to_thread(asyncio.run, call(editor)), LIMIT_S)

    with pytest.raises(koi_lang.UsageError, match="opened in another event loop") as failed:
        within(desk, elsewhere)

    assert "run_coroutine_threadsafe" in str(failed.value.help)


def test_whether_an_agent_has_an_event(desk: Path) -> None:
    """Python asks as it does for all attributes."""

    async def ask(editor: ProgramAgent) -> Any:
        return hasattr(editor, "count"), hasattr(editor, "zzz"), getattr(editor, "zzz", None)

    assert (True, False, None) == within(desk, ask)
