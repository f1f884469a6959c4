"""Bodies of functions to what they print, in Koi and in Node."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from koi_lang.llm.messages import Adapter
from koi_lang.program import declarations, loader
from koi_lang.program.files import absolute
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.limits import LIMIT_S
from tests.running import RecordingHost

# What is said of errors: those of the program by their texts, others by their names, since Koi has words of its own.
TOLD = 'console.log("thrown", e?.name ?? e, String(e?.message).startsWith("own") ? e.message : "")'
# Prints a value; ends loops by an error, which those around them throw again at their next step.
STEP = """let fuel = 60; const step = (value) => {
if (--fuel < 0) throw new Error("own fuel"); console.log("step", value); return value; };"""
MARK = "=== program "
NODE = """
const { format } = require("util")
const AsyncFunction = (async () => {}).constructor
const bodies = JSON.parse(require("fs").readFileSync(0, "utf8"))
const outputs = [];
(async () => {
  for (const body of bodies) {
    const lines = []
    try {
      await new AsyncFunction("console", `"use strict"; ${body}`)({ log: (...values) => lines.push(format(...values)) })
    } catch (error) {
      lines.push(`NODE: ${error}`)
    }
    outputs.push(lines.join("\\n"))
  }
  console.log(JSON.stringify(outputs))
})()
"""


def guard(body: str, has_types: bool) -> str:
    """A body whose errors are printed, with what is of TypeScript or without it."""
    body = re.sub("[⟦⟧]" if has_types else "⟦[^⟧]*⟧", "", body)
    return f"{STEP}\ntry {{\n{body}\n}} catch (e) {{ {TOLD} }}"


def node_outputs(bodies: Sequence[str]) -> list[str]:
    """What each body prints in Node."""
    given = json.dumps([guard(body, has_types=False) for body in bodies])
    done = subprocess.run(
        ["node", "-e", NODE], input=given, capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    outputs: list[str] = json.loads(done.stdout)
    return outputs


def koi_outputs(bodies: Sequence[str]) -> list[str]:
    """What each body prints in Koi; those that do not compile print why not."""
    try:
        return _run_together(bodies)
    except Exception as error:  # a test tells of it
        if len(bodies) == 1:
            return [f"KOI: {error}"]
    middle = len(bodies) // 2
    return [*koi_outputs(bodies[:middle]), *koi_outputs(bodies[middle:])]


def _run_together(bodies: Sequence[str]) -> list[str]:
    """What bodies print that are handlers of one program. Raises what compiling and running raise."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "generated.koi"
        path.write_text(koi_program(bodies), "utf-8")
        printed = "".join(f"{line}\n" for line in _run(path))
    pieces = printed.split(MARK)[1:]
    return [piece.partition("\n")[2].removesuffix("\n") for piece in pieces]


def koi_program(bodies: Sequence[str]) -> str:
    """A program with a handler of each body, which runs all of them."""
    handlers = [f"  on p{at}() {{\n{guard(body, has_types=True)}\n  }}" for at, body in enumerate(bodies)]
    runs = [f"run A.say({{ at: {at} }})\nrun A.p{at}()" for at in range(len(bodies))]
    marker = f'  on say(args) {{ console.log("{MARK}" + args.at) }}'
    return "\n".join(["role R { can execute }", "agent A : R {", marker, *handlers, "}", *runs])


def _run(path: Path) -> list[str]:
    host = RecordingHost()
    entry = loader.load_compiled(str(path), fresh=True)
    try:
        module = loader.module_of(absolute(str(path)), None, entry)
        services = Services(
            connect=_refuse_model,
            host=host,
            teams=lambda: declarations.teams_of(module),
            folder=path.parent,
            evaluate=evaluate,
        )

        async def main() -> None:
            async with asyncio.timeout(LIMIT_S), Run(services):
                await module.main()

        asyncio.run(main())
    finally:
        loader.unload()
    return host.printed


def _refuse_model(_: object) -> Adapter:
    raise AssertionError("generated programs ask no model")
