"""Agents and skills of imported modules, called by Python."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

import koi_lang
from koi_lang.runtime.outside_calls import needs_run
from tests.projects import Project

pytestmark = pytest.mark.anyio
HELLO = """
    role Worker { can execute, can delegate }
    agent Me : Worker {
      state { greeted: number = 0 }
      on start(args: { name: string }) { this.state.greeted += 1; return `Hello, ${args.name}!` }
      on count() { return this.state.greeted }
      private on secret() { return 1 }
    }
    team Crew { me: Me }
    skill Greetings {
      affordance "Greets people"
      function greet(name: string) { return Me.start({ name: name }) }
      export async function greeting(name: string): Promise<string> { return await greet(name) }
      export async function again(name: string): Promise<string> { return await greeting(name) }
      export async function count(): Promise<number> { return await Me.count() }
      export async function keep(text: string): Promise<string> {
        await registry.set("kept", text)
        return await registry.get("kept")
      }
      export async function sent(name: string): Promise<string> {
        return await send Crew.event("start").any()({ name: name })
      }
      export function plain(n: number): number { return n + 1 }
      export function fail(): void { throw new RangeError("far") }
    }
    """


@pytest.fixture
def hello(project: Project, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An imported module, in a folder that is the current one."""
    monkeypatch.chdir(project.folder)
    monkeypatch.syspath_prepend(str(project.folder))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    koi_lang.install()
    project.write("hello.koi", HELLO)
    return __import__("hello")


async def test_agents_are_called_where_their_program_is_open(hello: Any) -> None:
    """An event of an agent is a function; the run is that of the program around the call."""
    async with koi_lang.open("hello.koi") as program:
        assert "Hello, Ann!" == await hello.Me.start({"name": "Ann"})
        assert "Hello, Bob!" == await hello.Me.start(name="Bob")
        assert 2 == await program.agent("Me").count()


async def test_outside_of_programs_it_says_what_to_write(hello: Any) -> None:
    """A call that belongs to no open program names the lines that open one."""
    with pytest.raises(
        koi_lang.AgentError, match=r"`Me\.start` can be called only while its program is open"
    ) as failed:
        await hello.Me.start({"name": "Ann"})

    assert 'Write `async with koi_lang.open("hello.koi"):` around `await Me.start({…})`.' == failed.value.help


async def test_the_program_of_a_module_is_found(hello: Any, project: Project) -> None:
    """Of several programs that are open, the one that an agent belongs to carries its calls out."""
    other = project.write("other.koi", "role R { can execute }\nagent A : R { on go() { return 1 } }")
    async with koi_lang.open("hello.koi"), koi_lang.open(other):
        assert "Hello, Ann!" == await hello.Me.start({"name": "Ann"})
    async with koi_lang.open(other):
        with pytest.raises(koi_lang.AgentError):
            await hello.Me.start({"name": "Ann"})


@pytest.mark.parametrize("event", ["nothing", "secret"])
def test_what_is_no_public_event(hello: Any, event: str) -> None:
    """Private events and names that mean nothing are no attributes."""
    assert not hasattr(hello.Me, event)


@pytest.mark.parametrize("name", ["greeting", "again", "sent"])
async def test_functions_of_skills_open_a_program(hello: Any, name: str) -> None:
    """A function that needs a run has one for the call, and is recorded."""
    assert "Hello, Ann!" == await getattr(hello, name)("Ann")
    assert "x" == await hello.keep("x")
    assert 0 == await hello.count()


async def test_functions_use_the_program_around_them(hello: Any) -> None:
    """Where the program is open already, it carries the call out."""
    async with koi_lang.open(hello):
        await hello.greeting("Ann")

        assert 1 == await hello.count()


async def test_functions_without_a_run(hello: Any, project: Project) -> None:
    """A function that only computes needs none: nothing is written, and errors are those of the code."""
    assert 3 == await hello.plain(2)
    with pytest.raises(koi_lang.ProgramError, match=r"^RangeError: far$") as failed:
        await hello.fail()

    assert "RangeError: far" == str(failed.value.__cause__)
    assert not (project.folder / ".koi").exists()


def test_what_needs_a_run_is_known(hello: Any) -> None:
    """Functions are looked through with those that they call."""
    assert ["again", "count", "greeting", "keep", "sent"] == sorted(
        name
        for name in ("again", "count", "fail", "greeting", "keep", "plain", "sent")
        if needs_run(getattr(hello, name))
    )


WITHOUT_FACE = """
    import asyncio
    from koi_lang.program import loader

    module = loader.load("hello.koi")
    try:
        asyncio.run(module.greeting("Ann"))
    except Exception as error:
        print(type(error).__name__, error.message, error.help)
    from koi_lang import {name}
    print(asyncio.run(module.greeting("Ann")))
    """


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["load", "install", "open"])
def test_what_gives_modules_opens_their_programs(project: Project, name: str) -> None:
    """Whoever runs programs knows nothing of what opens them, which is told when it is used first."""
    project.write("hello.koi", HELLO)
    done = project.python(WITHOUT_FACE.format(name=name))

    told = "AgentError the call needs a program, and none is open"
    help = 'Write `async with koi_lang.open("hello.koi"):` around the call.'
    assert (f"{told} {help}\nHello, Ann!\n", "") == (done.stdout, done.stderr)
