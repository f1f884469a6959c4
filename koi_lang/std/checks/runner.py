"""Checks as programs ask for them: done once in a run, each with the person's leave."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError, PermissionDeniedError, UnreadableFileError
from koi_lang.js.undefined import undefined
from koi_lang.runtime.guards.paths import project_path
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.checks.compiled_tools import find_cargo_tests, find_go_tests
from koi_lang.std.checks.findings import CheckReport, Severity
from koi_lang.std.checks.json_reports import read_mypy, read_ruff
from koi_lang.std.checks.junit import name_python_place, read_junit
from koi_lang.std.checks.node_tools import find_eslint, find_node_tests, find_tsc
from koi_lang.std.checks.project_files import has_name, read_setting
from koi_lang.std.checks.project_files import hash_test_files as hash_files
from koi_lang.std.checks.tool_runs import ToolRequest, ToolRun, run_shell, run_tool
from koi_lang.std.checks.tools import REPORT, CheckTool, find_own, find_program
from koi_lang.std.effects import agent, folder, perform_effect

# The permission of a role whose agents may have commands carried out, as for the action `shell`.
EXECUTE = "execute"
VENVS = (".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts")
SUFFIXES = (".py", ".pyi")
# Settings of each tool: files, and what stands in them where they may be for others.
PYTEST = {
    "pytest.ini": "", "conftest.py": "", "pyproject.toml": "[tool.pytest", "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}  # fmt: skip
RUFF = {"ruff.toml": "", ".ruff.toml": "", "pyproject.toml": "[tool.ruff"}
MYPY = {"mypy.ini": "", ".mypy.ini": "", "pyproject.toml": "[tool.mypy", "setup.cfg": "[mypy"}

# Settings of mypy that say what it checks.
MYPY_FILES = re.compile(r"^\[(?:tool\.)?mypy\][ \t]*$(?:\n(?!\[).*)*?\n(?:files|packages|modules)\s*=", re.M)


def find_pytest(folder: Path) -> CheckTool | None:
    """The one that runs tests; None for a project without any."""
    if not _is_set_up(folder, PYTEST) and not has_name(folder, _is_test):
        return None
    python = find_own(folder, VENVS, "python")
    if python == "python" and shutil.which("python") is None:
        python = "python3"
    return CheckTool(
        "pytest",
        (python, "-m", "pytest"),
        find_program(folder, python),
        "Install it for the Python of the project: `python -m pip install pytest`.",
        lambda data, place: read_junit(data, place, name_python_place),
        ("-q", "--color=no", "-o", "junit_family=xunit1", "-o", "junit_logging=no", f"--junit-xml={REPORT}"),
        counts_tests=True,
        suffixes=SUFFIXES,
        missing="No module named pytest",
        usual=("python", "-m", "pytest"),
    )


def find_ruff(folder: Path) -> CheckTool | None:
    """The linter; without settings only where it is installed, and never without files for it."""
    ruff = find_own(folder, VENVS, "ruff")
    tool = CheckTool(
        "ruff",
        (ruff, "check"),
        find_program(folder, ruff),
        "Install it: `python -m pip install ruff`.",
        read_ruff,
        ("--output-format=json", f"--output-file={REPORT}", "--no-fix"),
        suffixes=SUFFIXES,
        nothing="No Python files found",
    )
    return tool if _is_wanted(folder, tool, RUFF) else None


def find_mypy(folder: Path) -> CheckTool | None:
    """The type checker; as before."""
    mypy = find_own(folder, VENVS, "mypy")
    names_files = any(MYPY_FILES.search(read_setting(folder / name)) for name in MYPY)
    tool = CheckTool(
        "mypy",
        (mypy,),
        find_program(folder, mypy),
        "Install it: `python -m pip install mypy`.",
        read_mypy,
        ("--output=json", "--no-error-summary"),
        is_report_printed=True,
        suffixes=SUFFIXES,
        whole=() if names_files else (".",),
        nothing="There are no .py[i] files",
    )
    return tool if _is_wanted(folder, tool, MYPY) else None


def _is_set_up(folder: Path, settings: dict[str, str]) -> bool:
    return any((folder / name).is_file() and part in read_setting(folder / name) for name, part in settings.items())


def _is_wanted(folder: Path, tool: CheckTool, settings: dict[str, str]) -> bool:
    """Whether there are files for a tool, and it is set up or at least installed."""
    has_files = has_name(folder, lambda name: name.endswith(SUFFIXES))
    return has_files and (tool.program is not None or _is_set_up(folder, settings))


def _is_test(name: str) -> bool:
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


@dataclass(frozen=True, slots=True)
class CheckKind:
    """A kind of check.

    Attributes:
        name: of the effect.
        why: tells the person what a command is for.
        severity: of what keeps a tool from checking.
        nothing: the title where no tool is recognised.
        advice: what to do then.
        finders: each gives a tool where the project is set up for it.
    """

    name: str
    why: str
    severity: Severity
    nothing: str
    advice: str
    finders: Sequence[Callable[[Path], CheckTool | None]]


TESTS = CheckKind(
    "checks.tests",
    "to see whether the tests pass",
    "blocker",
    "no tests were found in this folder",
    "Write some, such as `test_NAME.py` for pytest or `NAME.test.js` for Node.",
    (find_pytest, find_node_tests, find_go_tests, find_cargo_tests),
)
LINT = CheckKind(
    "checks.lint",
    "to see what the linter says",
    "important",
    "no linter is set up for anything in this folder",
    "Add the settings of one, such as `ruff.toml` or `eslint.config.js`.",
    (find_ruff, find_eslint),
)
TYPES = CheckKind(
    "checks.types",
    "to see whether the types are right",
    "important",
    "no type checker is set up for anything in this folder",
    "Add the settings of one, such as `mypy.ini` or `tsconfig.json`.",
    (find_mypy, find_tsc),
)
COMMAND = CheckKind("checks.command", "to see whether it succeeds", "blocker", "", "", ())


async def run_tests(options: Any) -> dict[str, Any]:
    """Run the tests of the project; see `check_project`."""
    return await check_project(TESTS, options)


async def run_lint(options: Any) -> dict[str, Any]:
    """Run the linters of the project; see `check_project`."""
    return await check_project(LINT, options)


async def run_types(options: Any) -> dict[str, Any]:
    """Run the type checkers of the project; see `check_project`."""
    return await check_project(TYPES, options)


async def run_command(command: Any, options: Any) -> dict[str, Any]:
    """Run a command; see `check_project`."""
    if not isinstance(command, str) or not command.strip():
        raise AgentError(f"{command!r} is no command", help='Write one such as `runCommand("make check")`.')
    asked = check_options(options)
    if asked.files:
        raise AgentError("`runCommand` takes no `files`", help="Name them in the command.")

    async def work(request: ToolRequest) -> list[ToolRun]:
        return [await run_shell(command, request)]

    return await _perform(COMMAND, {"command": command}, asked, work)


async def project_tools() -> dict[str, list[str]]:
    """The names of the tools that the project is set up for, as `tests`, `lint` and `types`; nothing is run."""
    here = folder()
    kinds = {"tests": TESTS, "lint": LINT, "types": TYPES}

    async def look() -> dict[str, list[str]]:
        return await asyncio.to_thread(
            lambda: {name: [tool.name for find in kind.finders if (tool := find(here))] for name, kind in kinds.items()}
        )

    return dict(await perform_effect(Effect("checks.tools", {}, safe=True), look))


async def hash_test_files() -> dict[str, str]:
    """The test files and the test configuration of the project, each with its digest; nothing is run."""
    return await _hash_test_files("checks.hash_test_files")


async def changed_test_files(before: Any) -> list[str]:
    """The paths of test files and configuration that have changed or are gone, sorted; of new ones the configuration.

    Args:
        before: as `hash_test_files` gave it.
    """
    if not isinstance(before, dict):
        raise AgentError(f"{before!r} are no files", help="Give what `hash_test_files()` gave before.")
    now = await _hash_test_files("checks.changed_test_files")
    new = (path for path, digest in now.items() if path not in before and not digest.startswith("test"))
    return sorted([*new, *(path for path, digest in before.items() if now.get(path) != digest)])


async def _hash_test_files(effect: str) -> dict[str, str]:
    here = folder()
    return dict(await perform_effect(Effect(effect, {}, safe=True), lambda: asyncio.to_thread(hash_files, here)))


async def check_project(kind: CheckKind, options: Any) -> dict[str, Any]:
    """Have every tool of a kind check the project.

    Args:
        options: `timeout` in seconds for each tool, and `files`, for tools that take them.

    Returns:
        `ok`, `passed`, `failed` (more than 0 where something is not ok), `error` (why nothing could be checked; empty
        where something was), `findings`, `seconds` and `output`.

    Raises:
        PermissionDeniedError: the role of the agent or the person does not allow it, or nobody can be asked.
        AgentError: the options are none.
    """
    return await _perform(kind, {}, check_options(options), partial(_run_tools, kind), safe=True)


async def _perform(
    kind: CheckKind,
    given: dict[str, Any],
    options: CheckOptions,
    work: Callable[[ToolRequest], Awaitable[list[ToolRun]]],
    *,
    safe: bool = False,
) -> dict[str, Any]:
    """Run a check, once in a resumed run."""
    name, here = _require_execute(), folder()

    async def check() -> dict[str, Any]:
        require_files(here, options.files)
        return _result(
            await work(ToolRequest(here, kind.why, name, kind.severity, kind.advice, options.timeout_s, options.files))
        )

    effect = Effect(kind.name, given | options.as_data(), agent=name, safe=safe, goes_out=True, slow=True)
    return dict(await perform_effect(effect, check))


def _require_execute() -> str:
    """The name of whose handler asks, empty outside of agents. Raises PermissionDeniedError."""
    asking = agent()
    if asking is not None and not asking.role.allows(EXECUTE):
        message = f"`{asking.name}` may not run commands: its role `{asking.role.name}` lacks `{EXECUTE}`"
        raise PermissionDeniedError(message, help=f"Give the role the permission: `can {EXECUTE}`.")
    return "" if asking is None else asking.name


async def _run_tools(kind: CheckKind, request: ToolRequest) -> list[ToolRun]:
    """The runs of a project's tools, one after the other; at least one, which may be without a tool."""
    tools = await asyncio.to_thread(lambda: [tool for find in kind.finders if (tool := find(request.folder))])
    if not tools:
        return [ToolRun("", CheckReport(findings=[request.finding(kind.nothing, kind.advice)]))]
    meant = [tool for tool in tools if not request.files or tool.files_of(request.folder, request.files)]
    if not meant:
        names = ", ".join(tool.name for tool in tools)
        title = f"none of the files is for the tools of this folder: {names}"
        return [ToolRun("", CheckReport(findings=[request.finding(title, "Leave `files` out to check all of it.")]))]
    return [await run_tool(tool, request) for tool in meant]


def _result(runs: Sequence[ToolRun]) -> dict[str, Any]:
    is_ok = all(run.is_ok for run in runs)
    failed = sum(run.report.failed for run in runs)
    findings = [finding for run in runs for finding in run.report.findings]
    is_nothing = not is_ok and not any(run.report.failed or run.report.passed for run in runs)
    outputs = [run.output if len(runs) == 1 else f"$ {run.command}\n{run.output}" for run in runs]
    return {
        "ok": is_ok,
        "passed": sum(run.report.passed for run in runs),
        "failed": failed if is_ok else max(failed, 1),
        "error": findings[0].as_data()["title"] if is_nothing and findings else "",
        "findings": [finding.as_data() for finding in findings],
        "seconds": round(sum(run.seconds for run in runs), 3),
        "output": "\n".join(outputs),
    }


DEFAULT_TIMEOUT_S = 300.0
MAX_TIMEOUT_S = 3600.0
MAX_FILES = 500


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of a check.

    Attributes:
        timeout_s: for each tool.
        files: paths from the folder of the project, all of which are there; empty for the whole of it.
    """

    timeout_s: float = DEFAULT_TIMEOUT_S
    files: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"timeout": self.timeout_s, **({"files": list(self.files)} if self.files else {})}


def check_options(given: Any) -> CheckOptions:
    """Options as a program gives them. Raises AgentError."""
    if not isinstance(given, dict):
        if given is not None and given is not undefined:
            raise AgentError(f"{given!r} are no options", help="Write them such as `{ timeout: 60 }`.")
        given = {}
    options = {name: value for name, value in given.items() if value is not undefined}
    unknown = [name for name in options if name not in ("timeout", "files")]
    if unknown:
        raise AgentError(f"there is no option `{unknown[0]}`", help="The options are `timeout` and `files`.")
    return CheckOptions(_timeout_s(options.get("timeout", DEFAULT_TIMEOUT_S)), _files(options.get("files", [])))


def require_files(folder: Path, files: tuple[str, ...]) -> None:
    """Raise PermissionDeniedError for files outside of the project and hidden ones, AgentError for missing ones."""
    for file in files:
        if not project_path(folder, file).exists():
            raise UnreadableFileError(f"there is no file `{file}`", help="Name files from the folder of the program.")


def _timeout_s(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= MAX_TIMEOUT_S:
        help = f"Write seconds, at most {MAX_TIMEOUT_S:g}: `{{ timeout: 60 }}`."
        raise AgentError(f"`timeout` must be a number of seconds, not {given!r}", help=help)
    return float(given)


def _files(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(file, str) for file in given):
        raise AgentError("`files` must be a list of paths", help='Write it such as `{ files: ["src/a.py"] }`.')
    if len(given) > MAX_FILES:
        raise AgentError(f"{len(given):,} files are too many: at most {MAX_FILES}", help="Name their folders.")
    # What looks like an option is none.
    return tuple(f"./{file}" if file.startswith("-") else file for file in given)
