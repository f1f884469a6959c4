"""Limits in time end code, also while it computes and never waits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.runtime.concurrency.tasks import gather
from tests.projects import Project

TOOL = """
    import time

    def spin():
        while True:
            pass

    async def spin_async():
        while True:
            pass

    def nap():
        time.sleep(60)
    """
# Each computes or waits for at least a minute, which is longer than commands of tests may take.
ENDLESS = {
    "a loop": "while (true) {}",
    "a loop that catches": 'while (true) { try { throw new Error("no") } catch (e) { continue } }',
    "a loop that prints": 'while (true) { console.log("again") }',
    "a loop that awaits values": "while (true) { await null }",
    "a loop that starts work": "async function work() { return 1 }\nwhile (true) { work() }",
    "loops beside each other": "await Promise.all([1, 2].map(async n => { while (true) { await n } }))",
    "recursion": "function f(n) { if (n > 0) { f(n - 1); f(n - 1) } }\nf(100)",
    "a callback": "Array.from({ length: 1000 }).forEach(() => { while (true) {} })",
    "sorting": "while (true) { Array.from({ length: 5000 }, (_, i) => -i).sort((a, b) => a - b) }",
    "a regular expression": '/^(a+)+$/.test("a".repeat(60) + "b")',
    "a timer": 'setTimeout(() => console.log("late"), 60000)',
    "timers for ever": "setInterval(() => {}, 1)",
    "Python that computes": "tool.spin()",
    "async Python that computes": "await tool.spin_async()",
    "Python that sleeps": "tool.nap()",
    "a promise that nobody keeps": "await new Promise(() => {})",
    "cleaning up": "try { await new Promise(() => {}) } finally { while (true) { await null } }",
}


def program(code: str, more: str = "") -> str:
    """A program whose only handler is some code."""
    tool = 'import tool from "./tool.py"' if "tool." in code else ""
    agent = f"agent A : Worker {{\n{more}\n  on go(args: Json) {{\n{code}\n  }}\n}}\n"
    return f"{tool}\nrole Worker {{ can execute }}\n{agent}run A.go({{}})\n"


@pytest.fixture
def place(project: Project) -> Project:
    """A folder with a module of Python."""
    project.write("tool.py", TOOL)
    return project


@pytest.mark.sampled(6)
@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS)
def test_max_time_ends_code(place: Project, code: str) -> None:
    """`--max-time` bounds a run, whatever its code does or waits for, and says so with exit code 4."""
    place.write("a.koi", program(code))

    done = place.koi("run", "a.koi", "--max-time", "300ms")

    assert (4, "error: the run took longer than its budget of 0.3 s") == (done.returncode, done.stderr[:51])
    assert "Raise `--max-time` if the run needs more." in done.stderr


def test_max_time_ends_python_that_nobody_records(place: Project) -> None:
    """A run without a journal is bounded as well."""
    place.write("a.koi", program("tool.spin()"))

    done = place.koi("run", "--no-record", "a.koi", "--max-time", "300ms")

    assert (4, True) == (done.returncode, "took longer than its budget" in done.stderr), done.stderr


def test_the_message_shows_the_loop(place: Project) -> None:
    """The traceback of code that was interrupted leads to the line that was computing."""
    place.write("a.koi", program("    const a = 1\n    while (a) {}"))

    assert "--> a.koi:6:" in place.koi("run", "a.koi", "--max-time", "300ms").stderr


def test_finally_runs(place: Project) -> None:
    """Code that is ended while it computes cleans up, and a `catch` does not see it."""
    loop = 'try {\n let n = 0\n while (true) { n++ } } catch { console.log("no") } finally { console.log("clean") }'
    place.write("a.koi", program(loop))

    assert "clean\n" == place.koi("run", "a.koi", "--max-time", "300ms").stdout


def test_the_time_of_an_agent_bounds_its_code(place: Project) -> None:
    """`budget { time: … }` of an agent is an error that the code which calls it may catch."""
    slow = "agent Slow : Worker { budget { time: 200ms }\n on go(args: Json) { while (true) {} } }\n"
    caught = 'try { await Slow.handle("go", {}) } catch (e) { console.log(e.message) }'
    place.write("a.koi", program(caught).replace("agent A", slow + "agent A"))

    done = place.koi("run", "a.koi")

    assert (0, "`Slow.go` took longer than its budget of 0.2 s\n") == (done.returncode, done.stdout)


@pytest.mark.parametrize(
    ("handler", "call"),
    [
        ("on go(args: Json) { while (true) {} }", 'await send Group.event("go").any()({}) timeout 200ms'),
        ('resilience "go" { timeout = 200 }\n on go(args: Json) { while (true) {} }', 'await Slow.handle("go", {})'),
    ],
)
def test_other_limits_end_loops(place: Project, handler: str, call: str) -> None:
    """The timeout of a send, and of an attempt, ends code that computes."""
    slow = f"agent Slow : Worker {{ {handler} }}\nteam Group {{ slow: Slow }}\n"
    text = program(f"try {{ {call} }} catch (e) {{ console.log(e.message) }}", "uses team Group")
    place.write("a.koi", text.replace("agent A", slow + "agent A").replace("can execute", "can execute, can delegate"))

    done = place.koi("run", "a.koi", "--max-time", "10s")

    assert (0, True) == (done.returncode, "0.2 s" in done.stdout), done.stderr


@pytest.mark.parametrize("loop", ["while (true) {}", "while (turns >= 0) { turns++ }", "for (;;) { turns++ }"])
def test_finally_around_a_loop_is_carried_out(place: Project, loop: str) -> None:
    """Also where all of it is one line, and the loop comes first in `try`."""
    place.write("a.koi", program(f"let turns = 0\ntry {{ {loop} }} finally {{ console.log('clean') }}"))

    assert "clean\n" == place.koi("run", "a.koi", "--max-time", "300ms").stdout


def test_a_run_that_was_too_slow_goes_on(place: Project) -> None:
    """What a run had done before its time was up is not done again by `koi resume`."""
    place.write("a.koi", program('console.log("once")\nif (Date.now() > 0) { tool.nap() }'))
    place.koi("run", "a.koi", "--max-time", "300ms")
    place.write("tool.py", "def nap(): print('rested')")

    done = place.koi("resume", "last", "--on-doubt", "retry")

    assert (0, "rested\n") == (done.returncode, done.stdout), done.stderr


def test_calls_that_were_too_slow_are_so_again(place: Project) -> None:
    """A replay does what the run did where calls of code were ended, be it in a loop, in Python, or waiting."""
    slow = "agent Slow : Worker { budget { time: 200ms }\n on loop(a) { while (true) {} }\n on nap(a) { tool.nap() }\n"
    slow += " on wait(a) { await new Promise(() => {}) } }\n"
    calls = 'for (const name of ["loop", "nap", "wait"]) {\n try { await Slow.handle(name, {}) } catch (e) {'
    place.write(
        "a.koi", program(f"{calls} console.log(e.message) }} }}\n tool.nap").replace("agent A", slow + "agent A")
    )
    recorded = place.koi("run", "a.koi")

    done = place.koi("replay", "last")

    assert ["loop", "nap", "wait"] == re.findall(r"`Slow\.(\w+)` took longer", recorded.stdout), recorded.stderr
    assert (0, recorded.stdout) == (done.returncode, done.stdout), done.stderr


# ---------------------------------------------------------------- scopes


def test_a_scope_ends_what_waits_in_it() -> None:
    """A limit ends the block and no more; what had ended before is left alone."""

    async def work() -> list[bool]:
        async with CancelScope(0.01) as slow:
            await asyncio.Event().wait()
        async with CancelScope(60) as quick:
            await asyncio.sleep(0)
        return [scope.caught is not None for scope in (slow, quick)]

    assert [True, False] == asyncio.run(work())


def test_a_scope_lets_other_cancellations_pass() -> None:
    """A task that is cancelled from outside ends, also when the time of a block in it is over, too."""

    async def work() -> None:
        async with CancelScope(0.01):
            try:
                await asyncio.Event().wait()
            finally:
                task.cancel()
                await asyncio.sleep(0)

    async def main() -> bool:
        nonlocal task
        task = asyncio.create_task(work())
        await asyncio.wait([task])
        return task.cancelled()

    task: asyncio.Task[None]
    assert asyncio.run(main())


def test_the_outer_scope_goes_first() -> None:
    """When the time of the block around is over, the inner block is no more than a part of it."""

    async def work() -> list[bool]:
        async with CancelScope(0.01) as outer, CancelScope(60) as inner:
            await asyncio.Event().wait()
        return [scope.caught is not None for scope in (outer, inner)]

    assert [True, False] == asyncio.run(work())


async def pass_turns(turns: int) -> None:
    """Let the event loop go on for some turns."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def fail() -> None:
    """Fail in the third turn of the event loop."""
    await pass_turns(2)
    raise ValueError


async def fail_in_group() -> None:
    """Meet the failure of one member of a group, which ends the other one."""
    with suppress(ValueError):
        await gather([fail(), asyncio.sleep(60)])


def test_a_scope_ends_after_a_failure_in_a_group() -> None:
    """What a group has cancelled for a failure that was caught is not taken for a cancellation from outside."""

    async def work() -> bool:
        async with CancelScope() as scope:
            await fail_in_group()
            scope.cancel()
            await asyncio.Event().wait()
        return scope.caught is not None

    assert asyncio.run(work())


async def wait_for_future() -> None:
    """Wait for what is there in the second turn."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(loop.call_soon, lambda: future.done() or future.set_result(None))
    await future


async def fail_in_child() -> None:
    """Wait for a task in which a group fails."""
    await asyncio.create_task(fail_in_group())


async def fail_when_cancelled() -> None:
    """Fail while cleaning up."""
    try:
        await asyncio.Event().wait()
    finally:
        await fail()


async def fail_twice() -> None:
    """Meet the failure of one member of a group, and have the other one fail for that."""
    with suppress(ValueError):
        await gather([fail(), fail_when_cancelled()])


async def end_inner_scope() -> None:
    """Wait in a scope that ends in the second turn."""
    async with CancelScope() as inner:
        asyncio.get_running_loop().call_soon(inner.cancel)
        await asyncio.Event().wait()


@pytest.mark.parametrize("work", [wait_for_future, fail_in_group, fail_in_child, fail_twice, end_inner_scope])
def test_a_scope_ends_in_any_turn(work: Callable[[], Awaitable[None]]) -> None:
    """In whichever turn of the loop a scope is to end, it ends soon, and no cancellation is left to what follows."""

    async def limited(turns: int) -> tuple[bool, int]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        async with CancelScope() as scope:
            ending = loop.create_task(pass_turns(turns))
            ending.add_done_callback(lambda _: scope.cancel())
            await work()
            await pass_turns(40)
        await pass_turns(4)
        return scope.caught is not None, task.cancelling()

    assert [(True, 0)] * 12 == [asyncio.run(limited(turns)) for turns in range(12)]


def test_a_failure_in_a_group_loses_no_cancellation() -> None:
    """A task that is cancelled while a member of its group fails ends, though it catches that failure."""

    async def work() -> None:
        await fail_twice()
        await asyncio.Event().wait()

    async def main(turns: int) -> bool:
        task = asyncio.create_task(work())
        await pass_turns(turns)
        task.cancel()
        await asyncio.wait([task], timeout=5)
        return task.cancelled()

    assert [True] * 12 == [asyncio.run(main(turns)) for turns in range(12)]


COMPUTING = """
    import asyncio, signal, threading, time
    from koi_lang.runtime.concurrency.cancellation import CancelScope
    from koi_lang.js.environment import call_outside

    def spin(seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
    """


def test_another_thread_ends_code_that_computes(project: Project) -> None:
    """Whoever reads messages beside the event loop can end a block that never lets the loop go on."""
    script = (
        COMPUTING
        + """
    async def main():
        async with CancelScope() as scope:
            threading.Timer(0.2, scope.cancel).start()
            call_outside(spin, 30)
        print(scope.caught is not None, signal.getsignal(signal.SIGALRM) is signal.SIG_DFL)

    asyncio.run(main())
    """
    )
    done = project.fork_python(script)

    assert ("True True\n", "") == (done.stdout, done.stderr)


def test_only_the_code_of_a_scope_is_ended(project: Project) -> None:
    """While one task computes, the time of a block in another one is up: that one ends, and the first goes on."""
    script = (
        COMPUTING
        + """
    async def limited():
        async with CancelScope(0.1) as scope:
            await asyncio.Event().wait()
        return scope.caught is not None

    async def main():
        waiting = asyncio.create_task(limited())
        await asyncio.sleep(0)
        call_outside(spin, 0.5)
        print("computed", await waiting)

    asyncio.run(main())
    """
    )
    done = project.fork_python(script)

    assert ("computed True\n", "") == (done.stdout, done.stderr)


def test_work_that_outlives_a_block_is_left_alone(project: Project) -> None:
    """What was started in a block and goes on after it has no limit any more."""
    script = (
        COMPUTING
        + """
    async def later(over):
        await over.wait()
        call_outside(spin, 0.5)
        return "computed"

    async def main():
        over = asyncio.Event()
        async with CancelScope(1):
            work = asyncio.create_task(later(over))
            await asyncio.sleep(0)
        async with CancelScope(60):
            await asyncio.sleep(1.1)
            over.set()
            print(await work)

    asyncio.run(main())
    """
    )
    done = project.fork_python(script)

    assert ("computed\n", "") == (done.stdout, done.stderr)


def test_the_timer_of_others_is_left_to_them(project: Project) -> None:
    """A program around that uses the timer of the process keeps it; code is ended all the same."""
    script = (
        COMPUTING
        + """
    rung = []
    signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05)

    async def main():
        async with CancelScope(0.2) as scope:
            call_outside(spin, 30)
        print(rung, scope.caught is not None)

    asyncio.run(main())
    """
    )
    done = project.fork_python(script)

    assert ("[1] True\n", "") == (done.stdout, done.stderr)


def test_blocks_without_a_limit_set_no_timer(project: Project) -> None:
    """Each call of a handler is a block: the timer of the process is asked for where there is a moment to ring at."""
    script = (
        COMPUTING
        + """
    times, set_timer = [], signal.setitimer
    signal.setitimer = lambda which, seconds: times.append(seconds) or set_timer(which, seconds)

    async def main():
        async with CancelScope():
            for _ in range(3):
                async with CancelScope():
                    pass
            print(times)
            async with CancelScope(60):
                pass
            print(len(times), times[-1])

    asyncio.run(main())
    """
    )
    done = project.fork_python(script)

    assert ("[]\n2 0\n", "") == (done.stdout, done.stderr)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("work", ["await asyncio.Event().wait()", "call_outside(spin, 30)", "await started(spin)"])
@pytest.mark.parametrize("end", ["CancelScope(0.2)", "CancelScope()"])
def test_code_is_ended_in_any_thread(project: Project, work: str, end: str) -> None:
    """Outside of the main thread, where no signals arrive, limits and requests to end hold for code of all kinds."""
    script = (
        COMPUTING
        + f"""
    async def started(work):
        async def child():
            call_outside(work, 30)
        await asyncio.create_task(child())

    async def main():
        async with {end} as scope:
            if "0.2" not in {end!r}:
                threading.Timer(0.2, scope.cancel).start()
            {work}
        print(scope.caught is not None)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join()
    """
    )
    done = project.fork_python(script)

    assert ("True\n", "") == (done.stdout, done.stderr)


def test_many_threads_each_have_their_own_end(project: Project) -> None:
    """Of programs that run the same code beside each other, those whose time is up end, and no others."""
    script = (
        COMPUTING
        + """
    ended = {}

    async def main(number):
        async with CancelScope(0.3 if number % 2 else None) as scope:
            call_outside(spin, 30 if number % 2 else 0.5)
        ended[number] = scope.caught is not None

    threads = [threading.Thread(target=lambda n=n: asyncio.run(main(n))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(ended == {n: n % 2 == 1 for n in range(8)})
    """
    )
    done = project.fork_python(script)

    assert ("True\n", "") == (done.stdout, done.stderr)


def test_an_end_that_comes_late_harms_nobody(project: Project) -> None:
    """Code that is through at the very moment when it was to be ended is left alone, and so is what comes after it."""
    script = (
        COMPUTING
        + """
    import random
    from koi_lang.runtime.concurrency import cancellation, thread_alarm
    cancellation.PATIENCE_S = thread_alarm.PAUSE_S = 0.0002
    outcomes, harmed = {True: 0, False: 0}, []

    async def main(chance):
        for _ in range(80):
            async with CancelScope(0.002) as scope:
                call_outside(spin, chance.random() * 0.008)
            outcomes[scope.caught is not None] += 1
            sum([number for number in range(chance.randrange(300))])
            await asyncio.sleep(0)

    def work(seed):
        try:
            asyncio.run(main(random.Random(seed)))
        except BaseException as error:
            harmed.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(harmed, sum(outcomes.values()), all(outcomes.values()))
    """
    )
    done = project.fork_python(script)

    assert ("[] 320 True\n", "") == (done.stdout, done.stderr)
