"""Where Python programs use Koi: in servers, notebooks and tests, with models behind real connections."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import koi_lang
from koi_lang.llm.messages import Request as ModelRequest
from tests import pages
from tests.api.conftest import BRIEF, DESK
from tests.llm.server import ModelServer
from tests.projects import Project

pytestmark = pytest.mark.anyio
MANY = 40
Get = Callable[[str], Awaitable[Any]]


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[Get]:
    """What gets JSON from an application, which has been started and is ended in order."""
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://app") as client:

        async def get(path: str) -> Any:
            return (await client.get(path)).json()

        async with app.router.lifespan_context(app):
            yield get


class Echo:
    """A model that returns the topic that its playbook names, after other requests had their turn."""

    provider = model = "echo"

    def __call__(self, request: ModelRequest) -> AsyncIterator[Any]:
        """Answer with what stands behind "about"."""
        assert request.task is not None
        topic = request.task.playbook.partition("about ")[2].strip().removesuffix(".")
        return koi_lang.ScriptedModel([{"intent": "return", "data": {"topic": topic}}])(request)

    async def aclose(self) -> None:
        """Nothing is held."""


async def test_one_program_for_all_requests_of_fastapi(desk: Path) -> None:
    """A program that is opened when the application starts answers many requests at once."""
    fastapi = pytest.importorskip("fastapi")

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with koi_lang.open(desk, model=Echo()) as app.state.desk:
            yield

    app = fastapi.FastAPI(lifespan=lifespan)

    @app.get("/brief/{topic}")
    async def brief(topic: str) -> dict[str, Any]:
        return dict(await app.state.desk.agent("Editor").start({"topic": topic}))

    async with served(app) as get:
        told = await asyncio.gather(*(get(f"/brief/{n}") for n in range(MANY)))

    assert [{"topic": str(n)} for n in range(MANY)] == told
    assert MANY == app.state.desk.usage.requests


async def test_a_program_for_each_request_of_starlette(desk: Path) -> None:
    """Programs that are opened for one request each know nothing of each other."""

    async def count(request: Request) -> JSONResponse:
        async with koi_lang.open(desk, model=Echo()) as program:
            counted = await program.agent("Editor").count()
            brief = await program.agent("Editor").start(topic=request.path_params["topic"])
            return JSONResponse([counted, brief["topic"], str(program.journal)])

    async with served(Starlette(routes=[Route("/{topic}", count)])) as get:
        told = await asyncio.gather(*(get(f"/{n}") for n in range(MANY)))

    assert [[1, str(n)] for n in range(MANY)] == [answer[:2] for answer in told]
    assert MANY == len({answer[2] for answer in told})


async def run_cells(cells: list[str], names: dict[str, Any]) -> None:
    """Run the cells of a notebook one by one in the loop that is running."""
    for cell in cells:
        code = compile(cell, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        given = eval(code, names)
        if inspect.isawaitable(given):
            await given


async def test_cells_of_a_notebook(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cell opens a program with `async with`; one that runs again takes the program as it is by then."""
    cell = 'async with koi_lang.open("desk.koi") as program:\n    print(await program.agent("Editor").count())'
    names: dict[str, Any] = {"koi_lang": koi_lang, "desk": desk}
    change = 'desk.write_text(desk.read_text().replace("seen += 1", "seen += 10"))'
    await run_cells([cell, cell, change, cell], names)

    assert "1\n1\n10\n" == capsys.readouterr().out


async def test_programs_that_are_open_keep_their_code(desk: Path, project: Project) -> None:
    """A file that is changed meanwhile counts for what is opened later."""
    async with koi_lang.open(desk) as old:
        project.write("desk.koi", DESK.replace("seen += 1", "seen += 10"))
        async with koi_lang.open(desk) as new:
            counts = [await old.agent("Editor").count(), await new.agent("Editor").count()]

    assert [1, 10] == counts


@pytest.fixture
async def program(desk: Path) -> AsyncIterator[koi_lang.Program]:
    """A program of a test, with a model whose answers are known."""
    async with koi_lang.open(desk, model=koi_lang.ScriptedModel([BRIEF]), record=False) as program:
        yield program


async def test_a_fixture_opens_a_program(program: koi_lang.Program) -> None:
    """Tests of people's own programs are written like this one."""
    assert {"brief": "short"} == await program.agent("Editor").start({"topic": "tea"})


@pytest.mark.parametrize("settings", [{"provider": "openai", "model": "gpt-5-mini"}, {"model": "haiku"}])
async def test_models_behind_a_connection(desk: Path, settings: Mapping[str, str]) -> None:
    """Requests go out in the format of a provider, and what they cost counts for the budget of the program."""
    async with ModelServer(['{"intent": "return", "data": {"brief": "short"}}']) as server:
        provider = settings.get("provider", "anthropic")
        text = "".join(f'{name} = "{value}"\n' for name, value in {**settings, "provider": provider}.items())
        (desk.parent / "koi.toml").write_text(f'[models.default]\n{text}base_url = "{server.url}"\n')
        (desk.parent / ".env").write_text(f"{provider.upper()}_API_KEY=sk-test-0123456789\n")
        async with koi_lang.open(desk, budget={"requests": 1}) as program:
            stream = program.agent("Editor").stream("start", {"topic": "tea"})
            types = {event.type async for event in stream}
            with pytest.raises(koi_lang.LimitReachedError):
                await program.agent("Editor").start({"topic": "koi"})

    assert {"brief": "short"} == stream.result
    assert {"model_asked", "text_delta", "model_answered"} <= types
    assert (1, 1) == (sum(asked.method == "POST" for asked in server.requests), program.usage.requests)
    assert program.usage.cost_usd > 0


async def test_the_server_of_the_manual(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The application that the page shows answers, and tells errors of the program as such."""
    pytest.importorskip("fastapi")
    monkeypatch.chdir(project.folder)
    page = {block.name: block.text for block in pages.blocks(pages.manual()["docs/python.md"])}
    project.write("desk.koi", page["desk.koi"])
    names: dict[str, Any] = {}
    exec(page["server.py"], names)
    async with served(names["app"]) as get:
        assert ({"price": 6}, {"detail": "RangeError: a brief has words"}) == (
            await get("/prices/3"),
            await get("/prices/-3"),
        )


async def test_the_application_of_the_front_page(project: Project, desk: Path) -> None:
    """The lines for FastAPI on the front page serve the program that stands above them there."""
    pytest.importorskip("fastapi")
    blocks = pages.blocks(pages.manual()["README.md"])
    (program,), (application,) = ([each.text for each in blocks if each.kind == kind] for kind in ("koi", "python"))
    begin = "import koi_lang\nfrom contextlib import asynccontextmanager\nfrom fastapi import FastAPI\n"
    project.write(desk.name, program)
    names: dict[str, Any] = {}
    async with ModelServer(['{"intent": "return", "data": ["all tea is one plant"]}']) as server:
        table = f'provider = "openai"\nmodel = "gpt-4o"\nbase_url = "{server.url}"\n'
        project.write("koi.toml", f"[models.default]\n{table}")
        project.write(".env", "OPENAI_API_KEY=sk-test-0123456789\n")
        exec(begin + application, names)
        async with served(names["app"]) as get:
            told = await get("/facts/tea")

    assert ["all tea is one plant"] == told
