"""One tool of a project as a process: asked for, started, ended in time, and its report held against its exit code."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
import time
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from koi_lang.errors import reason
from koi_lang.runtime.actions.command_output import Output
from koi_lang.runtime.command_process import start_command
from koi_lang.runtime.context import current_run
from koi_lang.runtime.guards.commands import WEB_ACCESS, Command, permit_command, place_of
from koi_lang.std.checks.findings import CheckFinding, CheckReport, Severity, UnreadableReportError, clip_ends
from koi_lang.std.checks.tools import REPORT, CheckTool
from koi_lang.std.effects import agent
from koi_lang.system.open_folders import read_regular_file

MAX_REPORT_BYTES = 20_000_000
# What tools print is read by programs, and no bytecode of a file is kept that is changed again within a second.
VARIABLES = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
# Of the end of what a tool printed, in a finding.
MAX_END_CHARS = 250
# What shells end with where there is no such program, or it cannot be started.
NOT_STARTED = {127: "there is no such program", 126: "it cannot be started"}


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """The request to a tool.

    Attributes:
        folder: of the project.
        why: tells the person what the command is for.
        agent: on whose behalf; empty for the program as a whole.
        severity: of what keeps the tool from checking.
        nothing: what to do where the tool finds nothing to check.
    """

    folder: Path
    why: str
    agent: str
    severity: Severity
    nothing: str
    timeout_s: float
    files: Sequence[str] = ()

    def finding(self, title: str, fix: str) -> CheckFinding:
        """The reason why the tool cannot check."""
        return CheckFinding(self.severity, title, fix=fix)


@dataclass(frozen=True, slots=True)
class ToolRun:
    """The result of one tool.

    Attributes:
        command: as the person was asked for it; empty where there was none.
    """

    command: str
    report: CheckReport
    seconds: float = 0
    output: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether something was checked, and nothing is wrong."""
        return self.report.passed > 0 and self.report.failed == 0


async def run_tool(tool: CheckTool, request: ToolRequest) -> ToolRun:
    """Have a tool check a project. Raises PermissionDeniedError."""
    named = tool.files_of(request.folder, request.files) if tool.takes_files else []
    files = named or tool.whole
    text, place = shlex.join([*tool.command, *files]), place_of(None, request.folder)
    if tool.program is None:
        return ToolRun(text, CheckReport(findings=[_not_installed(tool, request)]))
    with tempfile.TemporaryDirectory(prefix="koi-checks-", ignore_cleanup_errors=True) as own:
        file = os.path.join(own, "report")
        options = [word.replace(REPORT, file) for word in tool.options]
        variables = {name: value.replace(REPORT, file) for name, value in tool.variables.items()}
        words = [tool.program, *tool.command[1:], *options, *files]
        usual = shlex.join([*tool.usual, *files]) if tool.usual else ""
        command = Command(text, place, request.why, request.agent, words, usual, VARIABLES | variables, (own,))
        ended = await _carry_out(command, request.timeout_s, is_merged=not tool.is_report_printed)
        report = await asyncio.to_thread(_judge, tool, replace(request, folder=place.folder), ended, file)
    printed = ended.text if report.output is None else clip_ends(report.output) + ended.outputs[-1].text()
    return ToolRun(text, report, ended.seconds, printed)


async def run_shell(text: str, request: ToolRequest) -> ToolRun:
    """Have a shell carry out a command, of which the exit code says all. Raises PermissionDeniedError."""
    command = Command(text, place_of(None, request.folder), request.why, request.agent, variables=VARIABLES)
    ended = await _carry_out(command, request.timeout_s)
    return ToolRun(text, _report_exit(f"`{text}`", request, ended), ended.seconds, ended.text)


# ---------------------------------------------------------------- processes


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a command has ended.

    Attributes:
        code: its exit code; None where it has none.
        why: why it has none.
        printed: the beginning of what it wrote to stdout.
    """

    code: int | None
    why: str
    seconds: float
    outputs: Sequence[Output]

    @property
    def text(self) -> str:
        """Its output."""
        return "".join(output.text() for output in self.outputs)

    @property
    def last_output(self) -> str:
        """The end of its output, without that of its report where it printed anything else."""
        return next(filter(None, (output.text().strip() for output in reversed(self.outputs))), "")[-MAX_END_CHARS:]

    @property
    def fix(self) -> str:
        """What to do about a failure that only its output explains."""
        return (
            f"See what it printed, which ends with: {self.last_output}" if self.last_output else "It printed nothing."
        )


async def _carry_out(command: Command, timeout_s: float, *, is_merged: bool = True) -> _Ended:
    """Ask for a command and see it to its end. Raises PermissionDeniedError."""
    run, asking = current_run(), agent()
    network = asking is not None and asking.role.allows(WEB_ACCESS)
    allowed = await permit_command(run, replace(command, network=network))
    begun = time.perf_counter()
    outputs = [Output()] if is_merged else [Output(MAX_REPORT_BYTES + 1), Output()]
    why = f"`{command.text}` took longer than {timeout_s:g} s and was ended"
    async with run.changes.watch(timeout_s, command.agent, confined=allowed.sandbox is not None):
        try:
            started = await start_command(allowed, is_merged=is_merged)
            code = await started.read_and_end(outputs, timeout_s)
        except (OSError, ValueError) as error:
            code, said = None, reason(error) if isinstance(error, OSError) else str(error)
            why = f"`{command.text}` cannot be started: {said}"
    return _Ended(code, why, time.perf_counter() - begun, outputs)


# ---------------------------------------------------------------- what it comes to


def _judge(tool: CheckTool, request: ToolRequest, ended: _Ended, file: str) -> CheckReport:
    """The report of a tool, compared with its exit code."""
    if ended.code is None or tool.read is None:
        return _report_exit(tool.name, request, ended)
    if ended.code != 0 and tool.missing and tool.missing in ended.text:
        return CheckReport(findings=[_not_installed(tool, request)])
    if tool.nothing and tool.nothing in ended.outputs[-1].text():
        return CheckReport(findings=[request.finding(f"{tool.name} found nothing to check", request.nothing)])
    try:
        report = tool.read(_read_report(tool, ended, file), request.folder)
    except UnreadableReportError as error:
        last = f"; the last that it printed: {ended.last_output.splitlines()[-1]}" if ended.last_output else ""
        title = f"could not read the report of {tool.name}: {error} (exit code {ended.code}){last}"
        return CheckReport(findings=[request.finding(title, ended.fix)])
    return _hold_against(tool, request, ended, report)


def _report_exit(name: str, request: ToolRequest, ended: _Ended) -> CheckReport:
    """The report of a command with only an exit code."""
    if ended.code is None:
        fix = "Find what does not end, or give it more time with `timeout`, in seconds."
        return CheckReport(findings=[request.finding(ended.why, fix)])
    if ended.code == 0:
        return CheckReport(1)
    why = NOT_STARTED.get(ended.code, "")
    title = f"{name} ended with exit code {ended.code}" + (f": {why}" if why else "")
    return CheckReport(0, int(not why), [request.finding(title, ended.fix)])


def _hold_against(tool: CheckTool, request: ToolRequest, ended: _Ended, report: CheckReport) -> CheckReport:
    """A report with a finding where the exit code contradicts it."""
    if report.failed > 0:
        return report
    passed, code = report.passed, ended.code
    if passed == 0:
        nothing = "ran no test" if tool.counts_tests else "found nothing to check"
        finding = request.finding(f"{tool.name} {nothing} (exit code {code})", request.nothing)
        return replace(report, findings=[*report.findings, finding])
    if code != 0:
        title = f"{tool.name} ended with exit code {code}, though its report tells of no failure"
        finding = request.finding(title, ended.fix)
        passed = passed if tool.counts_tests else 0
    else:
        return report
    return replace(report, passed=passed, failed=1, findings=[*report.findings, finding])


def _not_installed(tool: CheckTool, request: ToolRequest) -> CheckFinding:
    return request.finding(f"{tool.name} is not installed", tool.advice)


def _read_report(tool: CheckTool, ended: _Ended, file: str) -> bytes:
    """The output of a tool, or of its replacement. Raises UnreadableReportError."""
    try:
        if tool.is_report_printed:
            data = ended.outputs[0].beginning_bytes()
        else:
            data = read_regular_file(file, MAX_REPORT_BYTES, follows=False)
    except FileNotFoundError as error:
        raise UnreadableReportError("it wrote none") from error
    except OSError as error:
        raise UnreadableReportError(reason(error)) from error
    if len(data) > MAX_REPORT_BYTES:
        raise UnreadableReportError(f"it has more than {MAX_REPORT_BYTES:,} bytes")
    return data.removeprefix(BOM_UTF8)
