"""Checks as programs ask for them: done once in a run, with the person's leave, and bounded in time and size."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError, PermissionDeniedError, reason
from koi_lang.runtime.actions.command_output import Output
from koi_lang.runtime.command_process import Command, permit_command, start_command
from koi_lang.runtime.context import current_run
from koi_lang.runtime.guards.commands import place_of
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.checks.findings import CheckFinding, CheckReport, Severity, UnreadableReportError
from koi_lang.std.checks.project_files import read_regular_file
from koi_lang.std.checks.tools import REPORT, CheckTool, find_test_tools
from koi_lang.std.effects import agent, folder, perform_effect

# The permission of a role whose agents may have commands carried out, as for the action `shell`.
EXECUTE = "execute"
USUAL_TIMEOUT_S = 300.0
LONGEST_TIMEOUT_S = 3600.0
MOST_OF_A_REPORT = 20_000_000
# What tools print is read by programs, and no bytecode of a file is kept that is changed again within a second.
VARIABLES = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True, slots=True)
class CheckKind:
    """What a project is checked for.

    Attributes:
        name: of the effect.
        why: tells the person what a command is for.
        severity: of what keeps a tool from checking.
        nothing: the title where no tool is recognised.
        advice: what to do then.
    """

    name: str
    why: str
    severity: Severity
    nothing: str
    advice: str
    find: Callable[[Path], Sequence[CheckTool]]


TESTS = CheckKind(
    "checks.tests", "to see whether the tests pass", "blocker", "no tests were found in this folder",
    "Write some, such as `test_NAME.py` for pytest.", find_test_tools,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What came of one tool."""

    command: str
    report: CheckReport
    seconds: float
    output: str

    @property
    def is_ok(self) -> bool:
        """Whether something was checked, and nothing is wrong."""
        return self.report.passed > 0 and self.report.failed == 0


async def run_tests(options: Any) -> dict[str, Any]:
    """Run the tests of the project; see `check_project`."""
    return await check_project(TESTS, options)


async def check_project(kind: CheckKind, options: Any) -> dict[str, Any]:
    """Have every tool of a kind check the project.

    Args:
        options: `timeout` in seconds for each tool.

    Returns:
        `ok`, `passed`, `failed` (more than 0 where something is not ok), `findings`, `seconds` and `output`.

    Raises:
        PermissionDeniedError: the role of the agent or the person does not allow it, or nobody can be asked.
        AgentError: the options are none.
    """
    timeout_s = _timeout_s(options if isinstance(options, dict) else {})
    name = _require_execute()

    async def work() -> dict[str, Any]:
        tools = await asyncio.to_thread(kind.find, folder())
        runs = [await _run_tool(kind, tool, name, timeout_s) for tool in tools]
        if not runs:
            report = CheckReport(findings=[CheckFinding(kind.severity, kind.nothing, fix=kind.advice)])
            runs = [ToolRun("", report, 0, "")]
        return _result(runs)

    effect = Effect(kind.name, {"timeout": timeout_s}, agent=name, safe=True)
    return dict(await perform_effect(effect, work))


def _timeout_s(options: Mapping[str, Any]) -> float:
    given = options.get("timeout", USUAL_TIMEOUT_S)
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= LONGEST_TIMEOUT_S:
        help = f"Write seconds, at most {LONGEST_TIMEOUT_S:g}: `{{ timeout: 60 }}`."
        raise AgentError(f"`timeout` must be a number of seconds, not {given!r}", help=help)
    return float(given)


def _require_execute() -> str:
    """The name of whose handler asks, empty outside of agents. Raises PermissionDeniedError."""
    asking = agent()
    if asking is not None and not asking.role.allows(EXECUTE):
        told = f"`{asking.name}` may not run commands: its role `{asking.role.name}` lacks `{EXECUTE}`"
        raise PermissionDeniedError(told, help=f"Give the role the permission: `can {EXECUTE}`.")
    return "" if asking is None else asking.name


def _result(runs: Sequence[ToolRun]) -> dict[str, Any]:
    is_ok = all(run.is_ok for run in runs)
    failed = sum(run.report.failed for run in runs)
    outputs = [run.output if len(runs) == 1 else f"$ {run.command}\n{run.output}" for run in runs]
    return {
        "ok": is_ok,
        "passed": sum(run.report.passed for run in runs),
        "failed": failed if is_ok else max(failed, 1),
        "findings": [finding.as_data() for run in runs for finding in run.report.findings],
        "seconds": round(sum(run.seconds for run in runs), 3),
        "output": "\n".join(outputs),
    }


# ---------------------------------------------------------------- one tool


async def _run_tool(kind: CheckKind, tool: CheckTool, agent_name: str, timeout_s: float) -> ToolRun:
    text = shlex.join(tool.command)
    if tool.program is None:
        return ToolRun(text, CheckReport(findings=[_not_installed(kind, tool)]), 0, "")
    with tempfile.TemporaryDirectory(prefix="koi-checks-", ignore_cleanup_errors=True) as own:
        report = os.path.join(own, "report")
        words = [word.replace(REPORT, report) for word in (tool.program, *tool.command[1:], *tool.options)]
        place = place_of(None, folder())
        command = Command(text, place, kind.why, agent_name, words, VARIABLES)
        await permit_command(current_run(), command)
        begun, output = time.perf_counter(), Output()
        code = await _carry_out(command, output, timeout_s)
        seconds = time.perf_counter() - begun
        found = await asyncio.to_thread(_judge, kind, tool, code, report, output)
    return ToolRun(text, found, seconds, output.text())


async def _carry_out(command: Command, output: Output, timeout_s: float) -> int | str:
    """The exit code of a command, or why it has none."""
    try:
        started = await start_command(command, is_merged=True)
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        return f"`{command.text}` cannot be started: {why}"
    code = await started.read_to_end((output,), timeout_s)
    return f"`{command.text}` took longer than {timeout_s:g} s and was ended" if code is None else code


def _judge(kind: CheckKind, tool: CheckTool, code: int | str, file: str, output: Output) -> CheckReport:
    """What a tool reports, held against its exit code."""
    if isinstance(code, str):
        fix = "Find what does not end, or give it more time with `timeout`, in seconds."
        return CheckReport(findings=[CheckFinding(kind.severity, code, fix=fix)])
    try:
        report = tool.read(_read_report(file), place_of(None, folder()).folder)
    except UnreadableReportError as error:
        if code != 0 and tool.missing and tool.missing in output.text():
            return CheckReport(findings=[_not_installed(kind, tool)])
        title = f"could not read the report of {tool.name}: {error} (exit code {code})"
        return CheckReport(findings=[CheckFinding(kind.severity, title, fix="See what it printed, in `output`.")])
    return _hold_against(kind, tool, code, report)


def _hold_against(kind: CheckKind, tool: CheckTool, code: int, report: CheckReport) -> CheckReport:
    """A report with what its tool's exit code says against it."""
    if report.failed == 0 and report.passed == 0:
        finding = CheckFinding(kind.severity, f"{tool.name} ran no test (exit code {code})", fix=kind.advice)
    elif report.failed == 0 and code != 0:
        title = f"{tool.name} ended with exit code {code}, though its report tells of no failure"
        finding = CheckFinding(kind.severity, title, fix="See what it printed, in `output`.")
    else:
        return report
    return CheckReport(report.passed, max(report.failed, code != 0), [*report.findings, finding])


def _not_installed(kind: CheckKind, tool: CheckTool) -> CheckFinding:
    return CheckFinding(kind.severity, f"{tool.name} is not installed", fix=tool.advice)


def _read_report(file: str) -> bytes:
    """What a tool has written, or what it checks in its place. Raises UnreadableReportError."""
    try:
        data = read_regular_file(file, MOST_OF_A_REPORT, getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError as error:
        raise UnreadableReportError("it wrote none") from error
    except OSError as error:
        raise UnreadableReportError(reason(error)) from error
    if len(data) > MOST_OF_A_REPORT:
        raise UnreadableReportError(f"it has more than {MOST_OF_A_REPORT:,} bytes")
    return data
