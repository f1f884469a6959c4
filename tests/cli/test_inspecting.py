"""Commands that inspect programs: nothing of the program's folder is executed, and nothing is done outside."""

from __future__ import annotations

import sys

import pytest

import koi_lang
from koi_lang.errors import KoiError
from koi_lang.program import loader
from koi_lang.runtime.modules.python_files import ModuleOutline
from tests.projects import Project

MARKING = """
    from pathlib import Path
    def mark(name, *values): Path(__file__).with_name(f"mark-{name}").touch()
    mark("import")
    """
TOOL = """
    import neighbour
    from pack import inner
    from pathlib import Path
    def mark(name): Path(__file__).with_name(f"mark-{name}").touch()
    mark("import")
    def decorate(kind):
        mark("decorator")
        return kind
    @decorate
    def f(text: mark("annotation"), more=mark("default")) -> mark("result"):
        mark("call")
    @decorate
    class Kind(metaclass=decorate(type)):
        mark("class")
    NAME = "plain"
    COMPUTED = mark("constant")
    if True:
        def extend_koi(koi): mark("extension")
    """
PROGRAM = """
    import tool from "./tool.py"
    import pack from "./pack"
    import side from "python:neighbour"
    import part from "python:pack.inner"
    import os from "python:os"
    import "std/files"
    role Worker { can execute, can call_mcp, can delegate }
    mcp evil = { command: "touch", args: ["mark-server"] }
    team Tools { member: mcp://evil/member }
    skill Words {
      affordance "Counts."
      const name = tool.NAME
      const later = [tool.f, tool.Kind]
      export function count(text: string, times: number = 1): number { return tool.f(text) }
    }
    agent Main : Worker {
      uses skill Words
      uses mcp evil, described
      uses team Tools
      on go(args: { what: string }): { text: string } { playbook "Write about {{args.what}}." }
      on daily() { console.log(side, part, pack) }
    }
    run Main.daily({}) every "15m"
    """
SETTINGS = """
    [mcp.described]
    command = "touch"
    args = ["mark-described"]
    [permissions]
    allow = ["run:touch *"]
    """
COMMANDS = (
    *("check main.koi", "graph main.koi", "compile main.koi", "explain-playbook main.koi", "skills"),
    *("audit main.koi", "audit --json main.koi", "audit --no-extensions --allow shell main.koi"),
    *("audit --cost main.koi", "audit --cost --json -m openai/gpt-5.4-mini main.koi"),
    *("prompt main.koi", "prompt main.koi Main.go --arg what=tea --as Worker --delegated --json"),
    *("prompt main.koi -m openai/gpt-5.4-mini --no-extensions", "prompt main.koi --intent write"),
    *("actions main.koi", "actions --json --no-extensions main.koi"),
    *("extensions main.koi", "extensions --json main.koi"),
    *("service jobs main.koi", "service jobs --within 1h --json main.koi", "doctor --offline"),
)


def marks(project: Project) -> list[str]:
    """What the code of the folder has left there."""
    return sorted(path.name for path in project.folder.rglob("mark-*"))


@pytest.fixture
def hostile(project: Project) -> Project:
    """A folder whose every file leaves a mark when it is executed."""
    for name in ("neighbour.py", "pack/__init__.py", "pack/inner.py", "sitecustomize.py", "conftest.py"):
        project.write(name, MARKING)
    project.write("tool.py", TOOL)
    project.write("main.koi", PROGRAM)
    project.write("koi.toml", SETTINGS)
    project.write(".mcp.json", '{"mcpServers": {"listed": {"command": "touch", "args": ["mark-listed"]}}}')
    return project


def with_folder(project: Project) -> str:
    """A path for modules on which the folder of a project is, too."""
    return f"{project.environment['PYTHONPATH']}:{project.folder}"


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_of_a_folder_is_executed(hostile: Project, command: str) -> None:
    """Neither what a program imports by path, nor what Python would find in the folder by name."""
    done = hostile.koi(*command.split(), PYTHONPATH=with_folder(hostile))

    assert ([], "") == (marks(hostile), done.stderr if "Traceback" in done.stderr else "")
    assert done.returncode == 0 or command.startswith("doctor"), done.stderr


def test_a_server_that_is_asked_for_is_all_that_is_started(hostile: Project) -> None:
    """`--start-servers` and `--connect` start the servers of the program, and execute no Python of it."""
    started = hostile.koi("doctor", "--offline", "--start-servers")
    connected = hostile.koi("prompt", "main.koi", "--connect")

    assert {"mark-server"} <= set(marks(hostile)) <= {"mark-server", "mark-described"}
    assert "Traceback" not in started.stderr + connected.stderr


def test_the_code_is_run_where_it_is_asked_for(hostile: Project) -> None:
    """`--run-code` loads a program as a run does."""
    done = hostile.koi("list", "extensions", "--run-code", "main.koi", PYTHONPATH=with_folder(hostile))

    assert {"mark-import", "mark-decorator", "mark-extension"} <= set(marks(hostile))
    assert (0, True) == (done.returncode, done.stdout.startswith("tool  (tool.py)")), done.stderr


SKILL = """
    import os from "python:os"
    import operator from "python:operator"
    import prelude from "python:koi_lang.runtime.prelude"
    import koi from "python:koi_lang"
    import tool from "./tool.py"
    import "std/files"
    role Worker {{ can execute }}
    skill Words {{
      const value = {value}
      export function count() {{ return value }}
    }}
    agent Main : Worker {{ uses skill Words  on go() {{ playbook "Go." }} }}
    """
VALUES = {
    'os.system("touch mark-a")': "`system` of `os`",
    'operator.methodcaller("system", "touch mark-a")(os)': "`methodcaller` of `operator`",
    '[1].map(n => os.system("touch mark-a"))': "`system` of `os`",
    "os.environ.HOME": "`environ` of `os`",
    "tool.f(1)": "`f` of `tool.py`",
    "new tool.Kind()": "`Kind` of `tool.py`",
    "tool.COMPUTED": "`COMPUTED` of `tool.py`",
    'koi.run("main.koi")': "`run` of `koi_lang`",
    'prelude.python_file("./tool.py", "x")': "`koi_lang.runtime.modules.python_files.python_file`",
}


@pytest.mark.parametrize("value", VALUES)
def test_initial_values_call_no_python(hostile: Project, value: str) -> None:
    """The variables of a skill get their values when it is loaded: those that Python would compute are refused."""
    hostile.write("main.koi", SKILL.format(value=value))

    done = hostile.koi("audit", "main.koi")

    assert ([], 1, "") == (marks(hostile), done.returncode, done.stdout)
    assert f"{VALUES[value]} is not executed by a command that only inspects a program" in done.stderr
    assert "add `--run-code`" in done.stderr


COMPOSED = """
    import os from "python:os"
    import "std/files"
    import "std/checks"
    import "std/http"
    role Worker {{ can execute, can registry:write, can registry:read, can write, can call_mcp, can web_access }}
    mcp evil = {{ command: "touch", args: ["mark-server"] }}
    skill Words {{ export function touch() {{ return os.system("touch mark-a") }} }}
    prompt Text = compose {{ fragments: {{}} template: \"\"\"
    @let found = {value}
    Print "{{{{found}}}}".
    \"\"\" }}
    agent Main : Worker {{ uses mcp evil  on go() {{ playbook Text }} }}
    """
COMPUTED = {
    "touch()": "`system` of `os`",
    'callAction("shell", { command: "touch mark-a", description: "x" })': "`shell`",
    'callAction("registry_set", { key: "k", value: 1 })': "`registry.set`",
    'callAction("mcp_read_resource", { mcp: "evil", uri: "x" })': "`mcp_read_resource`",
    'writeFile("mark-a", "x")': "`files.write`",
    'runCommand("touch mark-a")': "`checks.command`",
    "runLint()": "`checks.lint`",
    'fetch("http://127.0.0.1:1/")': "`fetch`",
    'fetchText("http://127.0.0.1:1/")': "`http.request`",
}


@pytest.mark.parametrize("value", COMPUTED)
def test_prompts_do_nothing_outside(hostile: Project, value: str) -> None:
    """What a composed prompt would do to compute its text is refused, whatever the settings of the folder allow."""
    hostile.write("main.koi", COMPOSED.format(value=value))

    done = hostile.koi("prompt", "main.koi")

    assert ([], 1, "") == (marks(hostile), done.returncode, done.stdout)
    assert f"{COMPUTED[value]} is not executed by a command that only inspects a program" in done.stderr


def test_a_skill_in_python_is_audited_as_it_is(project: Project) -> None:
    """Outlines change nothing of what is told of a program whose functions call Python."""
    project.write("tool.py", "LIMIT = 3\ndef f(text: str) -> int:\n    return len(text)\n")
    project.write("neighbour.py", "")
    project.write("pack/__init__.py", "")
    project.write("pack/inner.py", "")
    source = PROGRAM.replace("tool.NAME", "tool.LIMIT").replace("[tool.f, tool.Kind]", "tool.f")
    project.write("main.koi", source.replace('import side from "python:neighbour"', 'import side from "python:json"'))
    ways = (("audit",), ("audit", "--json"), ("audit", "--cost"), ("list", "actions", "--json"), ("service", "jobs"))
    path = with_folder(project)
    shown = [project.koi(*words, "main.koi", PYTHONPATH=path) for words in ways]
    run = [project.koi(*words, "--run-code", "main.koi", PYTHONPATH=path) for words in ways]

    assert [each.stdout for each in run] == [each.stdout for each in shown]
    assert "Words.count" in shown[0].stdout


COMPUTING = (
    """
    import "std/text"
    import "std/math"
    import numbers from "python:math"
    role Worker { can execute }
    skill Words {
      const width = mean([1, 3]) + numbers.sqrt(9)
      export function label() { return padTo("a", width) + wrapLines("b c", 2) }
    }
    prompt Text = compose { fragments: {} template: """
    + '"""\n@let found = label()\nPrint "{{found}}".\n"""'
    + """ }
    agent Main : Worker { uses skill Words  on go() { playbook Text } }
    """
)


def test_the_standard_library_computes(project: Project) -> None:
    """Its functions that reach nothing may give a skill its values, and a prompt its text."""
    project.write("main.koi", COMPUTING)

    shown = project.koi("prompt", "main.koi")

    assert (0, True) == (shown.returncode, r'{"⟨found⟩":"a    b\nc"}' in shown.stdout), shown.stderr


def test_outlines_are_forgotten(project: Project) -> None:
    """A program that is loaded afterwards has its Python, and one that was loaded before keeps it."""
    project.write("tool.py", "N = 1\ndef f():\n    return N\n")
    source = 'import tool from "./tool.py"\nskill S { export function go() { return tool.f() } }'
    path, other = str(project.write("a.koi", source)), str(project.write("b.koi", source))
    before = koi_lang.load(path)
    with loader.inspecting():
        outlines = [loader.load(path).tool, loader.load(other).tool]
        with pytest.raises(KoiError, match=r"`f` of `tool\.py` is not executed"):
            outlines[0].f()

    assert before is koi_lang.load(path)
    assert [ModuleOutline] * 2 == [type(each) for each in outlines]
    assert 1 == before.tool.f() == koi_lang.load(other).tool.f()
    assert not any(isinstance(module, ModuleOutline) for module in sys.modules.values())


UNREADABLE = {"syntax": "def (", "nul": "x = 1\0", "deep": "(" * 5000, "bytes": "x = '\x80'"}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_python_is_told(project: Project, text: str) -> None:
    """One message, whatever the file holds."""
    (project.folder / "tool.py").write_bytes(text.encode("latin-1"))
    found = []
    for path in ("./tool.py", "python:tool"):
        project.write(
            "main.koi", f'import tool from "{path}"\nskill S {{ export function go() {{ return tool.f() }} }}'
        )
        python_path = f"{project.environment['PYTHONPATH']}:{project.folder}"
        found.append(project.koi("audit", "main.koi", PYTHONPATH=python_path))

    assert [65, 1] == [done.returncode for done in found]
    for done, name in zip(found, ("./tool.py", "tool"), strict=True):
        assert f"error: `{name}` cannot be read as Python" in done.stderr
        assert "Traceback" not in done.stderr
