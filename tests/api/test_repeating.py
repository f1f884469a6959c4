"""Recorded calls of Python programs, made again by `koi replay` and `koi resume`."""

from __future__ import annotations

import pytest

from tests.projects import Project

DESK = """
    import tool from "./tool.py"
    role Worker { can execute }
    agent Clerk : Worker {
      state { seen = [] }
      on note(args: { n: number }) {
        this.state.seen.push(args.n)
        await tool.wait(args.n)
        this.state.seen.push(-args.n)
        console.log(`${args.n}: ${this.state.seen.join(" ")}`)
        return args.n
      }
      on count() { return this.state.seen.length }
      on fail() { throw new RangeError("no paper") }
      on hang(args: Json) { tool.hang(args.n); console.log("went on"); return "after" }
    }
    run Clerk.count()
    """
TOOL = """
    import asyncio, os, signal, time

    async def wait(n):
        with open("done", "a") as file:
            file.write(f"{n} ")
        await asyncio.sleep(0.02 * (n % 3))

    def hang(n):
        if not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    """
CALLS = """
    import asyncio, koi_lang

    async def use():
        async with koi_lang.open("desk.koi") as program:
            clerk = program.agent("Clerk")
            BODY

    asyncio.run(use())
    """
MANY = "await asyncio.gather(*(clerk.note(n=n) for n in range(40))); print(await clerk.count())"
FAILED = """
            try:
                await clerk.fail()
            except koi_lang.ProgramError:
                await clerk.note(n=1)
            await program.run()
"""
CUT = """
            try:
                async with asyncio.timeout(0.03):
                    await clerk.note(n=5)
            except TimeoutError:
                await clerk.note(n=1)
"""


def use(project: Project, body: str) -> str:
    """What a Python program prints that uses the clerk."""
    project.write("desk.koi", DESK)
    project.write("tool.py", TOOL)
    done = project.fork_python(CALLS.replace("BODY", body.strip()))
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.sampled(2)
@pytest.mark.parametrize("body", [MANY, FAILED, CUT], ids=["many at once", "failed", "cut"])
def test_calls_are_replayed(project: Project, body: str) -> None:
    """They come to the same, in the same order, without anything being done again."""
    first = use(project, body)
    done = (project.folder / "done").read_text()

    replayed = project.koi("replay", "last")

    assert "nothing is different" in replayed.stderr, replayed.stderr
    assert [line for line in first.splitlines() if ":" in line] == replayed.stdout.splitlines()
    assert done == (project.folder / "done").read_text()


def test_a_killed_program_goes_on(project: Project) -> None:
    """The call that was under way goes on; those that had ended are known, and Python's next ones are not made."""
    use(project, "await clerk.note(n=1); await clerk.hang(n=2); await clerk.note(n=3)")
    before = project.koi("runs", "list").stdout

    resumed = project.koi("resume", "--on-doubt", "retry")

    assert ("went on\n", 0) == (resumed.stdout, resumed.returncode), resumed.stderr
    assert "1 " == (project.folder / "done").read_text()
    assert "nothing is different" in project.koi("replay", "last").stderr
    assert before != project.koi("runs", "list").stdout
