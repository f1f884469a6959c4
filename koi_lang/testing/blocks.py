"""`test` blocks of a file to cases; each runs alone: a fresh program, an empty registry, a clock of its own."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from io import TextIOBase
from pathlib import Path

from koi_lang.diagnostics import CompileError, render
from koi_lang.errors import KoiError
from koi_lang.extensions import additions, find_extensions
from koi_lang.js.clock import use_clock
from koi_lang.js.environment import Machine, in_environment
from koi_lang.program import loader
from koi_lang.program.runs import run_of
from koi_lang.runtime.services import Factories
from koi_lang.runtime.test_blocks.context import Trial, use_trial
from koi_lang.settings import project, read_settings
from koi_lang.testing.cases import Broken, Case, CaseAttempt, CaseOutcome, FailurePlace, failed_outcome, relative_path
from koi_lang.testing.loops import JumpingLoop, Overtime
from koi_lang.testing.orders import OrderedLoop, Orders, explore
from koi_lang.testing.surroundings import Audience, NoServers, TestModels

# The moment that every test begins at.
START = datetime(2025, 1, 1, tzinfo=UTC)
LATE = "this test takes too long"
LOOK_AGAIN = "`koi test --orders 50` looks for an order in which it fails."
STALLED = "this test waits for something that never happens"


def collect(path: Path, update: bool) -> Sequence[Case]:
    """The tests of a Koi file in their order; a file that does not compile is a case that fails."""
    try:
        entry = loader.load_compiled(str(path))
    except CompileError as error:
        here = Path.cwd().as_posix()
        message = "\n\n".join(render(diagnostic, here) for diagnostic in error.diagnostics)
        return [Broken(path, message, at=FailurePlace.of(error.diagnostics[0].place))]
    except KoiError as error:
        return [Broken(path, failed_outcome(error).message)]
    return [TestBlock(path, name, line) for name, line in entry.tests]


@dataclass(frozen=True, slots=True)
class TestBlock:
    """One `test` block of a file.

    Attributes:
        orders: the orders in which it runs; None for the usual one.
    """

    path: Path
    name: str
    line: int
    orders: Orders | None = None

    def run(self) -> CaseOutcome:
        """Run it in a program that is loaded for it alone; in several orders until it fails in one."""
        if self.orders is None:
            return self.run_on(JumpingLoop)
        walk, outcome = explore(self.orders, self.name, lambda walk: self.run_on(partial(OrderedLoop, walk)))
        if outcome.ok and not walk.is_taken:
            message = f"error: this test has no order `{self.orders.only}`, but fewer choices than that names"
            return replace(outcome, ok=False, message=f"{message}\n  = help: {LOOK_AGAIN}")
        if outcome.ok:
            return outcome
        command = shlex.join(["koi", "test", f"{relative_path(self.path)}::{self.name}", "--order", walk.text])
        steps = "".join(f"\n    {step}" for step in walk.steps)
        found = f"it fails in order {outcome.orders}; `{command}` runs it again{':' if steps else ''}{steps}"
        return replace(outcome, message=f"{outcome.message}\n  = order: {found}")

    def run_on(self, make_loop: Callable[[], JumpingLoop]) -> CaseOutcome:
        """Run it once, on an event loop of its own."""
        attempt, trial = CaseAttempt(), Trial()
        audience = Audience(trial)
        with (
            attempt.alone(),
            asyncio.Runner(loop_factory=make_loop) as runner,
            redirect_stdout(_Printed(audience)),
        ):
            runner.run(_play(self, audience))
        error = attempt.error or trial.missed
        outcome = CaseOutcome(True, attempt.seconds, "", tuple(trial.output), tuple(audience.logged))
        return outcome if error is None else failed_outcome(error, outcome)


async def _play(block: TestBlock, audience: Audience) -> None:
    """Run a test to its end, with all work that it starts. Raises its error."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert isinstance(loop, JumpingLoop)
    assert task is not None
    loop.when_stalled(lambda: task.cancel(STALLED))
    loop.when_late(lambda: task.cancel(LATE))
    begin = START.timestamp()
    use_clock(lambda: begin + loop.time())
    use_trial(audience.trial)
    try:
        with in_environment(Machine(audience)):
            await _run(block, audience, loop)
    except asyncio.CancelledError as cancelled:
        if LATE in cancelled.args:
            raise Overtime().with_traceback(cancelled.__traceback__) from None
        if STALLED not in cancelled.args:
            raise
        help = "a promise is never resolved: look at what this `await` waits for."
        raise KoiError(STALLED, help=help).with_traceback(cancelled.__traceback__) from None


async def _run(block: TestBlock, audience: Audience, loop: JumpingLoop) -> None:
    module = loader.module_of(block.path.as_posix())
    folder, project_settings = Path.cwd(), read_settings()
    run = run_of(
        module,
        TestModels(audience.trial).connect,
        Factories(servers=lambda run, services: NoServers(run.background, services.settings)),
        host=audience,
        folder=folder,
        settings=project_settings,
        config={"registry": {"backend": "memory"}},
        limits=project.limits(project_settings),
        clock=loop.time,
        seed=block.name,
        added=additions(find_extensions(module)),
        detailed=isinstance(loop, OrderedLoop),
    )
    if isinstance(loop, OrderedLoop):
        run.recorder.slots = loop.order
        run.events.subscribe(loop.order.hear)
    async with run:
        await module.koi_tests()[block.name]()
        run.ledger.require_within_budget()


class _Printed(TextIOBase):
    """Output of Python code, as output of the program: a line when it is complete."""

    def __init__(self, audience: Audience) -> None:
        self._audience, self._line = audience, ""

    def write(self, text: str) -> int:
        """Take a piece of output."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._audience.print(line)
        return len(text)
