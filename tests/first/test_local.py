"""A person with nothing but a server of models on the own machine."""

from __future__ import annotations

import asyncio
import json
import re
from textwrap import dedent
from typing import Any

import pytest

from tests.first.machine import ANYBODY, GREETING, KEY, NOBODY, Machine, Outcome
from tests.llm import local_wire
from tests.llm.local_wire import LocalServer
from tests.llm.server import Answer, Asked, ModelServer

GREETS = Answer(pieces=(GREETING,), usage=(5000, 9, 0))
CUT = Answer(pieces=("a", "b", "c"), cut_after=2)
BUSY = Answer(status=503, error={"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}})
REFUSED = Answer(status=401, error={"error": {"message": "Invalid API Key", "type": "authentication_error"}})

THROWS = """
    role Worker { can execute }
    agent A : Worker { on go() { throw new Error("no") } }
    run A.go()
    """


def beside(
    machine: Machine,
    *commands: str,
    server: LocalServer | None = None,
    port: bool = False,
    answer: Answer = GREETS,
    project: str = "",
) -> tuple[list[Outcome], ModelServer]:
    """The outcomes of commands; in them, and in a file, URL stands for the address of a server that runs here."""
    wire = local_wire.llama_cpp() if server is None else server
    machine.project.write("a.koi", ANYBODY)

    async def run() -> tuple[list[Outcome], ModelServer]:
        async with ModelServer([answer], models=wire.models, documents=wire.documents) as running:
            if port:
                machine.set(KOI_LOCAL_PORTS=running.url.rpartition(":")[2])
            if project:
                file = machine.project.folder / project
                file.write_text(file.read_text("utf-8").replace("URL", running.url), "utf-8")
            words = [[word.replace("URL", running.url) for word in each.split()] for each in commands]
            return [await machine.koi(*each) for each in words], running

    return asyncio.run(run())


def test_a_server_is_connected_by_its_address(machine: Machine) -> None:
    """It needs no key and no name; programs that name no model use it, and so does `-m local`."""
    (connected, status, first, second, models), server = beside(
        machine, "connect URL", "connect status", "run a.koi", "run a.koi -m local", "models"
    )

    assert connected.out == f"llama.cpp at {server.url} is connected as `local`: `qwen`; `koi run -m local` asks it\n"
    assert status.out.split() == ["local", "file", "LOCAL_BASE_URL", f"{server.url}/v1"]
    assert [(done.code, done.out, done.err) for done in (first, second)] == [(0, "Hello Ada\n", "")] * 2
    assert models.out.splitlines()[0] == f"local at {server.url}  (asked just now)"
    assert models.out.splitlines()[2].split() == ["qwen", "8.19k", "-", *"$0 / $0 schema temperature tools".split()]


def test_a_connected_server_goes_before_a_company(machine: Machine) -> None:
    """A key that stands in the environment for something else does not lead prompts away."""
    machine.set(OPENAI_API_KEY=KEY)

    (_, done), server = beside(machine, "connect URL/v1", "run a.koi")

    assert (done.out, len(server.requests)) == ("Hello Ada\n", 1)


def test_a_model_is_chosen_with_the_address(machine: Machine) -> None:
    """`#NAME` is kept; without it the message names the models."""
    several = LocalServer([*local_wire.llama_cpp("a").models, *local_wire.llama_cpp("b").models])

    (_, many, _, chosen), server = beside(
        machine, "connect URL", "run a.koi -m local", "connect URL#b", "run a.koi", server=several
    )

    assert "has 2 models" in many.err
    assert chosen.out == "Hello Ada\n"
    assert server.requests[0].body["model"] == "b"


@pytest.mark.parametrize("said", ['base_url = "URL"', 'model = "qwen", base_url = "URL/v1"'])
def test_a_project_names_an_address(machine: Machine, said: str) -> None:
    """A `base_url` alone means the only model there; a bare name beside it is one of the server's."""
    machine.project.write("koi.toml", f"[models]\ndefault = {{ {said} }}")

    (done, models), server = beside(machine, "run a.koi", "models", project="koi.toml")

    assert (done.code, done.out, done.err) == (0, "Hello Ada\n", "")
    assert models.out.splitlines()[-1].split() == ["default", "qwen" if "model" in said else server.url]


def test_a_project_names_an_address_of_several_models(machine: Machine) -> None:
    """The message names the models, instead of a rehearsal that nobody has asked for."""
    several = LocalServer([*local_wire.llama_cpp("a").models, *local_wire.llama_cpp("b").models])
    machine.project.write("koi.toml", '[models]\ndefault = { base_url = "URL" }')

    (done,), _ = beside(machine, "run a.koi", server=several, project="koi.toml")

    assert "has 2 models" in done.err
    assert "/v1#a`" in done.err


def test_a_server_that_wants_a_key_gets_one(machine: Machine) -> None:
    """The key is asked for when the server refuses, and goes there alone."""
    machine.project.write("a.koi", ANYBODY)

    async def run() -> tuple[Outcome, Outcome, ModelServer]:
        wire = local_wire.llama_cpp()
        async with ModelServer([GREETING], wire.models, documents=wire.documents, key=KEY) as server:
            first = await machine.koi("connect", server.url, said=f"{KEY}\n")
            return first, await machine.koi("run", "a.koi"), server

    connected, done, server = asyncio.run(run())

    assert "is connected as `local`" in connected.out
    assert KEY not in connected.out
    assert done.out == "Hello Ada\n"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_failed_run_tells_how_it_goes_on(machine: Machine) -> None:
    """Where the server was down or a limit was reached, the run can go on; not one of a program that throws."""
    machine.project.write("throws.koi", THROWS)
    machine.project.write("twice.koi", f"{dedent(ANYBODY)}\nrun Greeter.hello({{}})")
    down = f"run a.koi -m http://{NOBODY}"

    (failed, resumed, limited, more, *silent), _ = beside(
        machine,
        down,
        "resume last -m URL",
        "run twice.koi -m URL --max-requests 1",
        "resume last --max-requests 2",
        f"{down} --no-record",
        f"{down} --quiet",
        "run throws.koi",
    )

    told = r"`koi resume [0-9a-f]{12}` goes on, once that is put right"
    assert re.fullmatch(f"{told}, or with `-m MODEL`", failed.err.splitlines()[-1])
    higher = "`koi resume [0-9a-f]{12} --max-requests N` goes on with a higher limit"
    assert re.fullmatch(higher, limited.err.splitlines()[-1])
    assert [(each.code, each.out) for each in (resumed, more)] == [(0, "Hello Ada\n")] * 2
    assert [(each.code, "goes on" in each.err) for each in silent] == [(69, False), (69, False), (1, False)]


def test_local_alone_is_no_address(machine: Machine) -> None:
    """The message has the address of the server that runs here, ready to be copied."""
    (done,), server = beside(machine, "connect local", port=True)

    assert done.err.endswith(f"Write for example `koi connect {server.url}/v1`.\n")


def test_an_address_that_leads_to_no_model_is_not_kept(machine: Machine) -> None:
    """The message names the models, or how an address begins."""
    (unknown, bare, status), _ = beside(machine, "connect URL#qwem", "connect 127.0.0.1:8080/v1", "connect status")

    assert "has no model `qwem`" in unknown.err
    assert "did you mean `qwen`?" in unknown.err.lower()
    assert "Write `koi connect http://127.0.0.1:8080/v1`." in bare.err
    assert "LOCAL_BASE_URL" not in status.out


def test_a_server_has_other_models(machine: Machine) -> None:
    """They are those of the server, and not of a program."""
    (unknown,), _ = beside(machine, "connect URL#zebra")

    assert "help: It has `qwen`." in unknown.err


@pytest.mark.parametrize("command", ["connect", "models"])
def test_a_host_is_no_address(machine: Machine, command: str) -> None:
    """The message has an address that can be written instead."""
    bare, port = machine.now(command, "localhost"), machine.now(command, "localhost:8080")

    assert f"with its port, such as `koi {command} http://localhost:8080/v1`." in bare.err
    assert f"Write `koi {command} http://localhost:8080`." in port.err
    assert [2, 2] == [bare.code, port.code]


def test_models_of_an_address(machine: Machine) -> None:
    """They are listed without connecting the server, which gets no key of another one."""
    machine.set(OPENAI_API_KEY=KEY)
    (listed, nobody), server = beside(machine, "models URL", f"models http://{NOBODY}")

    assert listed.out.splitlines()[0] == f"local at {server.url}  (asked just now)"
    assert "qwen" in listed.out
    assert KEY not in str([asked.headers for asked in server.looks])
    assert (69, True) == (nobody.code, "nothing listens there" in nobody.err)


@pytest.mark.parametrize("path", ["v2", "proxy/openai"])
def test_an_address_keeps_its_path(machine: Machine, path: str) -> None:
    """A server of models may have any path: it is asked what it is, and messages show where it was looked for."""
    machine.project.write("a.koi", ANYBODY)

    def answer(asked: Asked) -> Answer:
        return GREETS if asked.path == f"/{path}/chat/completions" else Answer(status=404, error={"error": "nothing"})

    async def run() -> tuple[list[Outcome], str]:
        listed = {f"/{path}/models": {"data": [{"id": "qwen"}]}, "/v1/models": None}
        async with ModelServer(answer, documents=listed) as server:
            url = f"{server.url}/{path}"
            commands = (f"run a.koi -m {url}", f"connect {url}", "run a.koi", f"disconnect {url}", "connect status")
            missing = (f"run a.koi -m {server.url}/v9", f"connect {server.url}/v9", f"connect {server.url}/x?key=1")
            return [await machine.koi(*each.split()) for each in (*commands, *missing)], url

    (named, connected, done, gone, status, run, nowhere, neither), url = asyncio.run(run())

    assert [named.out, done.out] == ["Hello Ada\n"] * 2
    assert f"at {url} is connected as `local`: `qwen`" in connected.out
    assert ("the address was removed" in gone.out, "LOCAL_BASE_URL" in status.out) == (True, False)
    for outcome in (run, nowhere):
        assert f"no server of models answers at `{url.removesuffix(path)}v9`" in outcome.err
    assert f"neither a server of models nor an MCP server answers at `{url.removesuffix(path)}x`" in neither.err


def test_nobody_at_an_address(machine: Machine) -> None:
    """Nothing is kept, and the message names the address."""
    done = machine.now("connect", f"http://{NOBODY}/v1")

    assert done.code != 0
    assert f"cannot reach `http://{NOBODY}`" in done.err
    assert "no provider" in machine.now("connect", "status").out


def test_an_address_is_disconnected(machine: Machine) -> None:
    """Afterwards nothing is connected."""
    (_, gone, status), _ = beside(machine, "connect URL", "disconnect local", "connect status")

    assert gone.out == "local: the address was removed from the file\n"
    assert "no provider is connected" in status.out


def test_a_server_on_a_usual_port_is_told_and_not_used(machine: Machine) -> None:
    """A first run without a model says which server could answer."""
    (done,), server = beside(machine, "run a.koi", port=True)

    assert server.requests == []
    assert f"llama.cpp serves `qwen` at {server.url}: `koi run -m local` asks it" in done.err


def test_local_without_an_address_is_the_server_that_runs_here(machine: Machine) -> None:
    """Whoever writes `-m local` means the one on this machine."""
    (done,), _ = beside(machine, "run a.koi -m local", port=True)

    assert (done.code, done.out) == (0, "Hello Ada\n")


def test_the_doctor_finds_a_server_that_is_not_connected(machine: Machine) -> None:
    """Its finding has the command that connects it; afterwards it is one of the providers."""
    (before, _, after), server = beside(machine, "doctor --json", "connect URL", "doctor --json", port=True)

    def told(done: Outcome) -> list[Any]:
        return [(each["text"], each["fix"]) for each in json.loads(done.out) if server.url in each["text"]]

    assert told(before) == [(f"llama.cpp at {server.url} is not connected: `qwen`", f"koi connect {server.url}")]
    assert told(after) == [
        (f"local: {server.url}/v1 from file, which needs no key", ""),
        (f"local at {server.url} answers: `qwen` reads 8,192 tokens", ""),
    ]


@pytest.mark.parametrize("ports", ["none", "0", "99999", "x"])
def test_ports_that_are_none(machine: Machine, ports: str) -> None:
    """Whatever the variable holds, nothing breaks."""
    machine.set(KOI_LOCAL_PORTS=ports)
    machine.project.write("a.koi", ANYBODY)

    done = machine.now("run", "a.koi", "-m", "local")

    assert "no server of your own is connected" in done.err


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (CUT, "`URL` broke off its answer before it was complete"),
        (BUSY, "`URL` has a problem of its own (status 503): Loading model"),
        (REFUSED, "`URL` wants a key"),
        (Answer(page="<html>"), "`URL` sent a page for people instead of an answer"),
    ],
    ids=["cut", "busy", "refused", "page"],
)
@pytest.mark.parametrize("command", ["run a.koi -m URL", "run a.koi -m openai/qwen"])
def test_messages_name_the_address(machine: Machine, answer: Answer, sentence: str, command: str) -> None:
    """Nobody is told of a provider that they do not have."""

    async def run() -> tuple[Outcome, str]:
        wire = local_wire.llama_cpp()
        machine.project.write("a.koi", ANYBODY)
        async with ModelServer([answer], models=wire.models, documents=wire.documents) as server:
            machine.set(OPENAI_BASE_URL=f"{server.url}/v1")
            return await machine.koi(*command.replace("URL", server.url).split()), server.url

    done, url = asyncio.run(run())

    assert done.err.startswith(f"error: {sentence.replace('URL', url)}")
    assert "openai" not in done.err.lower().replace("openai/qwen", "")


@pytest.mark.parametrize(("counted", "offers"), [(26, [True, False]), (5000, [True])])
def test_tools_that_a_server_leaves_out_are_given_up(machine: Machine, counted: int, offers: list[bool]) -> None:
    """Too few tokens for the tools: its template has left them out, so the model is told of its actions in text.

    A model that was told of them and writes text is done.
    """
    machine.project.write("a.koi", ANYBODY)
    prose = Answer(pieces=("I would greet Ada.",), usage=(counted, 9, 0))

    async def run() -> tuple[Outcome, ModelServer]:
        wire = local_wire.vllm("m")
        async with ModelServer([prose, Answer(pieces=(GREETING,), usage=(5000, 9, 0))], wire.models) as server:
            described = f'{{ model = "local/m", base_url = "{server.url}", transport = "tools" }}'
            machine.project.write("koi.toml", f"[models]\ndefault = {described}\n")
            return await machine.koi("run", "a.koi"), server

    done, server = asyncio.run(run())

    assert done.out == ("Hello Ada\n" if counted == 26 else "")
    assert ["tools" in request.body for request in server.requests] == offers
    assert ("`m` takes no tools, so it writes its actions as text" in done.err) is (offers == [True, False])


def test_a_model_is_not_told_all_that_it_repeated(machine: Machine) -> None:
    """Its answer goes back with the correction as a beginning and a mark, also where the run is repeated."""
    machine.project.write("a.koi", ANYBODY)
    endless = Answer(pieces=('{"intent":"print","options":[', *['"grandpa",'] * 900))

    async def run() -> tuple[list[Outcome], ModelServer]:
        async with ModelServer([endless, GREETS], local_wire.vllm("m").models) as server:
            return [await machine.koi("run", "a.koi", "-m", server.url), await machine.koi("replay", "last")], server

    (done, replayed), server = asyncio.run(run())
    (_, second) = server.requests
    (answer,) = [each["content"] for each in second.body["messages"] if each["role"] == "assistant"]

    assert done.out == "Hello Ada\n"
    assert re.fullmatch(
        r'\{"intent":"print","options":\[("grandpa",)+.{0,9}… \([\d,]+ more characters of the same\)', answer
    )
    assert (len(answer) < 300, replayed.code, "nothing is different" in replayed.err) == (True, 0, True)


@pytest.mark.parametrize("folder", ["", "LOCAL_BASE_URL=http://127.0.0.1:9/v1\n"])
def test_a_key_without_an_address_connects_no_server(machine: Machine, folder: str) -> None:
    """Other providers and servers are used as before; an address in `.env` that may get the key does not count."""
    machine.set(LOCAL_API_KEY=KEY, OPENAI_API_KEY="another")
    if folder:
        machine.project.write(".env", folder).chmod(0o600)
    machine.project.write("a.koi", ANYBODY)

    async def run() -> tuple[list[Outcome], ModelServer]:
        async with ModelServer([GREETS], models=["gpt-5.4-mini"]) as running:
            machine.use(running)
            words = (("run", "a.koi"), ("models",), ("models", "openai"), ("doctor",))
            return [await machine.koi(*each) for each in words], running

    (done, models, listed, doctor), server = asyncio.run(run())

    assert (done.code, done.out) == (0, "Hello Ada\n")
    assert ("gpt-5.4-mini" in models.out, listed.code) == (True, 0)
    assert [bool(folder)] * 2 == [ignored_address(text) for text in (done.err, doctor.out)]
    assert KEY not in str([asked.headers for asked in (*server.requests, *server.looks)])


def test_the_address_of_the_person_counts_beside_one_of_a_folder(machine: Machine) -> None:
    """A server that was connected with its key stays the one that is asked in a clone with another address."""
    machine.set(LOCAL_API_KEY=KEY)
    machine.project.write(".env", f"LOCAL_BASE_URL=http://{NOBODY}/v1\n").chmod(0o600)

    (_, done, named), _ = beside(machine, "connect URL", "run a.koi", "run a.koi -m local")

    outcomes = [(each.code, each.out, ignored_address(each.err)) for each in (done, named)]
    assert [(0, "Hello Ada\n", True)] * 2 == outcomes


def ignored_address(text: str) -> bool:
    """Whether a line says that the address of the folder does not count."""
    return "`LOCAL_BASE_URL` in `.env` does not count, since `LOCAL_API_KEY` is from elsewhere (environment)" in text
