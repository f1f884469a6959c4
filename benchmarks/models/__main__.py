"""The bench of models: `python -m benchmarks.models --server URL` prints how often tasks come out right."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.models.report import table
from benchmarks.models.server import ServerError, local_server, models_of
from benchmarks.models.tasks import TASKS, Task
from benchmarks.models.trial import (
    DEFAULT_LIMITS,
    MAX_ANSWER_TOKENS,
    Effects,
    Limits,
    Setup,
    Trial,
    handler_of,
    is_right_result,
    run_trial,
)
from koi_lang.llm.connection import TRANSPORTS

BESIDE = Path(__file__).with_name("beside.py")
LIBRARY = "pydantic-ai"


def main(words: Sequence[str]) -> int:
    """Run the bench and report what there is of it, also after Ctrl-C; returns 2 where it cannot be run."""
    options, trials, code = _options(words), list[Trial](), 0
    try:
        asyncio.run(_measure(options, trials))
    except ServerError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    trials.sort(key=lambda trial: [*options.transports, LIBRARY].index(trial.by))
    if trials:
        print(table(trials))
    if options.json:
        options.json.write_text(json.dumps([asdict(trial) for trial in trials], indent=1), "utf-8")
    return code


def _options(words: Sequence[str]) -> Namespace:
    parser = ArgumentParser("python -m benchmarks.models", description=__doc__)
    parser.add_argument("--server", help="base URL of an interface like OpenAI's; without it a model is served here")
    parser.add_argument("--model", help="name of a model there; the first one without it")
    parser.add_argument("--transports", type=_names(*TRANSPORTS, "auto"), default=list(TRANSPORTS), help="or none")
    parser.add_argument("--tasks", type=_names(*TASKS), default=list(TASKS), help="answers, actions, or both")
    parser.add_argument("--only", action="append", help="name of a task; may be given more than once")
    parser.add_argument("--seeds", type=int, default=0, help="how many seeds at temperature 0.7, beside one trial at 0")
    parser.add_argument("--beside", type=Path, metavar="PYTHON", help="a Python that has `pydantic-ai-slim[openai]`")
    parser.add_argument("--requests", type=int, default=DEFAULT_LIMITS.requests, help="most requests of a trial")
    parser.add_argument("--time", type=float, default=DEFAULT_LIMITS.time_s, help="most seconds of a trial")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every trial there")
    options = parser.parse_args(words)
    names = [task.name for tasks in TASKS.values() for task in tasks]
    for name in options.only or ():
        if name not in names:
            parser.error(f"there is no task `{name}`; there are {', '.join(names)}")
    return options


def _names(*known: str):  # type: ignore[no-untyped-def]
    """A converter for a list of names with commas between them."""

    def convert(text: str) -> list[str]:
        names = [] if text == "none" else text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise ArgumentTypeError(f"there is no `{unknown[0]}`; there are {', '.join(known)}")
        return names

    return convert


async def _measure(options: Namespace, trials: list[Trial]) -> None:
    """Append a trial of each task by each way and seed. Raises ServerError."""
    async with AsyncExitStack() as stack:
        server = options.server or await stack.enter_async_context(local_server())
        server = server if urlsplit(server).path.strip("/") else f"{server.rstrip('/')}/v1"
        model = options.model or models_of(server)[0]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for (kind, task), transport, seed in product(_tasks(options), options.transports, _seeds(options)):
            setup = Setup(server, model, transport, seed)
            trials.append(_report(await run_trial(task, kind, setup, folder, Limits(options.requests, options.time))))
        if options.beside:
            await _beside(options, Setup(server, model, LIBRARY), folder, trials)


def _tasks(options: Namespace) -> list[tuple[str, Task]]:
    chosen = [(kind, task) for kind in options.tasks for task in TASKS[kind]]
    return [(kind, task) for kind, task in chosen if not options.only or task.name in options.only]


def _seeds(options: Namespace) -> list[int | None]:
    return [None, *range(1, options.seeds + 1)]


def _report(trial: Trial) -> Trial:
    """A trial, after a line about it for who waits."""
    seed = "" if trial.seed is None else f" seed {trial.seed}"
    effects = f"result {json.dumps(trial.result)}, output {json.dumps(trial.output)}, {trial.questions} questions"
    verdict = "ok" if trial.is_right else trial.error or f"wrong: {effects}"
    took = f"{trial.requests} requests, {trial.elapsed_s:.0f} s"
    print(f"{trial.by:12} {trial.task}{seed}: {verdict[:150]} ({took})", file=sys.stderr, flush=True)
    return trial


async def _beside(options: Namespace, setup: Setup, folder: Path, trials: list[Trial]) -> None:
    """Append trials of the same tasks by another library, in a process of its own. Raises ServerError."""
    runs = list(product(_tasks(options), _seeds(options)))
    limits = {"requests": options.requests, "time_s": options.time, "max_tokens": MAX_ANSWER_TOKENS}
    request = {
        "setup": {"server": setup.server, "model": setup.model, **limits},
        "runs": [_request(task, replace(setup, seed=seed), folder) for (_, task), seed in runs],
    }
    try:
        process = await asyncio.create_subprocess_exec(options.beside, BESIDE, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    except OSError as error:
        raise ServerError(f"`{options.beside}` is no Python: {error.strerror}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request).encode())
    process.stdin.write_eof()
    for (kind, task), seed in runs:
        line = json.loads(await process.stdout.readline() or "null")
        if line is None:
            raise ServerError(f"`{options.beside}` cannot run {BESIDE.name}; it needs `pydantic-ai-slim[openai]`")
        result, error, spent = line["result"], line["error"], line["spent"]
        effects = Effects([], line["output"], line["questions"], line["state"])
        is_right = not error and effects.are_right(task) and is_right_result(task, result)
        done = ((), effects.output, effects.questions, result, error)
        trials.append(_report(Trial(task.name, kind, LIBRARY, seed, is_right, *spent, *done)))
    await process.wait()


def _request(task: Task, setup: Setup, folder: Path) -> dict[str, Any]:
    """What the process of another library is sent for a run."""
    type = handler_of(task, folder).result
    return {
        "prompt": task.prompt,
        "schema": {} if type is None else type.schema,
        "functions": task.functions,
        "answers": task.answers,
        "sampling": setup.sampling,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
