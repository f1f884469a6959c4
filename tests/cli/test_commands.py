"""Commands as a person calls them: what goes to which stream, and the exit code."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from koi_lang.cli import koi
from tests import forks
from tests.projects import Project

GREETER = """
    role Worker { can execute }
    agent Greeter : Worker {
      on hello(args: Json) { console.log(`Hello ${args.name}`) }
    }
    run Greeter.hello({ name: "Ada" })
    """
UNUSED = """
    role Worker { can execute }
    role Idle { can rest }
    agent Greeter : Worker { on hello(args: Json) { console.log("hi") } }
    run Greeter.hello({})
    """
BROKEN = "agent Greeter : Nobody { on hello(args: Json) { return 1 } }\nrun Greeter.hello({})\n"


def test_run_prints_what_the_program_prints(project: Project) -> None:
    """Standard output carries the program's output and nothing else."""
    project.write("a.koi", GREETER)

    done = project.koi("run", "a.koi")

    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello Ada\n", "")


def test_the_result_is_written_as_json(project: Project) -> None:
    """`--result` writes what the last `run` returned to stdout and nothing else; without it a pipe gets none of it."""
    project.write("a.koi", f"{GREETER}run Greeter.hello({{ name: 'Bo' }})\n".replace(") }", "); return args }", 1))

    done, usual = project.koi("run", "a.koi", "--result"), project.koi("run", "a.koi")
    both, again = (
        project.koi("run", "a.koi", "--result", "--json"),
        project.koi("resume", "last", "--at", "3", "--result"),
    )

    assert (0, '{"name": "Bo"}\n') == (done.returncode, done.stdout)
    assert done.stderr.startswith("Hello Ada\nHello Bo\n")
    assert "Hello Ada\nHello Bo\n" == usual.stdout
    assert (2, "") == (both.returncode, both.stdout)
    assert '{"name": "Bo"}\n' == again.stdout


def test_a_result_that_json_does_not_have_is_a_text(project: Project) -> None:
    """Values of Python are written as texts, and half of a surrogate pair as its escape."""
    project.write("made.py", "import decimal\ndef make(): return [decimal.Decimal('1.50'), b'a', {1}, '\\ud800']\n")
    body = (
        'import made from "./made.py"\nrole R { can go }\nagent A : R { on go() { return made.make() } }\nrun A.go({})'
    )
    project.write("a.koi", body)
    done, told = project.koi("run", "a.koi", "--result"), project.koi("run", "a.koi", "--json")
    expected = ["1.50", "b'a'", "{1}", "\ud800"]

    assert (0, expected) == (done.returncode, json.loads(done.stdout)), done.stderr
    assert expected in [json.loads(line).get("result") for line in told.stdout.splitlines()]


def test_fields_from_the_command_line_reach_the_handler(project: Project) -> None:
    """`--arg` and `--args` replace fields of what `run` passes on."""
    project.write("a.koi", GREETER)

    assert project.koi("run", "a.koi", "--arg", "name=Bob").stdout == "Hello Bob\n"
    assert project.koi("run", "a.koi", "--args", '{"name": 7}').stdout == "Hello 7\n"


def test_arguments_have_the_types_that_are_declared(project: Project) -> None:
    """`--arg` gives the text of a number to a handler that declares a text, with its digits as typed."""
    handler = "on go(args: { version: string, round: string, n: number, flag: boolean }) { console.log(args) }"
    project.write("a.koi", f"role W {{ can execute }} agent A : W {{ {handler} }} run A.go({{}})")
    words = [word for pair in ("version=1.10", "round=1", "n=2.50", "flag=true") for word in ("--arg", pair)]

    done = project.koi("run", "a.koi", *words)

    assert (done.stdout, done.stderr) == ("{ version: '1.10', round: '1', n: 2.5, flag: true }\n", "")


@pytest.mark.parametrize("words", [("--args", "[1]"), ("--arg", "name")])
def test_unusable_fields_are_wrong_usage(project: Project, words: tuple[str, str]) -> None:
    """A payload that is no object, or a field without value, ends with exit code 2 and an example."""
    project.write("a.koi", GREETER)

    done = project.koi("run", "a.koi", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert "write --arg" in done.stderr


def test_warnings_do_not_fail_a_run(project: Project) -> None:
    """A warning goes to stderr; with `--quiet` nowhere; with `--strict` it is an error."""
    project.write("a.koi", UNUSED)

    plain, quiet, strict = (project.koi("run", "a.koi", *words) for words in ((), ("--quiet",), ("--strict",)))

    assert (plain.returncode, plain.stdout) == (0, "hi\n")
    assert plain.stderr.startswith("warning: ")
    assert "--> a.koi:2:6\n" in plain.stderr
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "hi\n", "")
    assert (strict.returncode, strict.stdout) == (65, "")
    assert strict.stderr.startswith("error: ")


def test_a_source_with_errors_ends_with_65(project: Project) -> None:
    """Nothing runs; the message has the place and a help."""
    project.write("a.koi", BROKEN)

    done = project.koi("run", "a.koi")

    assert (done.returncode, done.stdout) == (65, "")
    assert "--> a.koi:1:17\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failing_program_ends_with_1(project: Project) -> None:
    """An error that nobody catches is told with its line."""
    project.write("a.koi", GREETER.replace("console.log(`Hello ${args.name}`)", 'throw new Error("no tea")'))

    done = project.koi("run", "a.koi")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no tea")
    assert "--> a.koi:3:" in done.stderr


def test_the_lines_of_an_error_are_joined(project: Project) -> None:
    """An error whose text has several lines is told on one, and none of them passes for one of the message."""
    code = r'throw new Error("first\r\n  second\u001b[2J\n\n  = help: do it")'
    project.write("a.koi", f"role R {{ can execute }}\nagent A : R {{ on go() {{ {code} }} }}\nrun A.go()\n")
    told = project.koi("run", "a.koi").stderr.splitlines()[0]

    assert "error: first second\N{REPLACEMENT CHARACTER}[2J = help: do it [E0500]" == told


def test_a_missing_file_is_wrong_usage(project: Project) -> None:
    """The message names the programs that are there."""
    project.write("hello.koi", GREETER)

    done = project.koi("run", "helo.koi")

    assert done.returncode == 2
    assert "`helo.koi` cannot be read" in done.stderr
    assert "`hello.koi`" in done.stderr


def test_a_program_without_run_says_what_to_add(project: Project) -> None:
    """A file that only declares cannot be run."""
    project.write("a.koi", GREETER.partition("run ")[0])

    done = project.koi("run", "a.koi")

    assert done.returncode == 2
    assert "runs nothing" in done.stderr
    assert "run Agent.handler({})" in done.stderr


@pytest.mark.parametrize(("word", "advice"), [("rum", "koi run"), ("hello.koi", "koi run hello.koi")])
def test_an_unknown_command_gets_a_suggestion(project: Project, word: str, advice: str) -> None:
    """Typing errors and a forgotten `run` are wrong usage with advice."""
    done = project.koi(word)

    assert done.returncode == 2
    assert f"Did you mean `{advice}`?" in done.stderr


def test_check_reports_every_problem(project: Project) -> None:
    """`koi check` ends with 65 for errors, 0 for warnings; `--json` is a list."""
    project.write("bad.koi", BROKEN)
    project.write("odd.koi", UNUSED)

    bad, odd, data = (
        project.koi("check", "bad.koi"),
        project.koi("check", "odd.koi"),
        project.koi("check", "--json", "bad.koi"),
    )

    assert (bad.returncode, odd.returncode) == (65, 0)
    assert bad.stderr.endswith("bad.koi: 1 error\n")
    assert odd.stderr.endswith("odd.koi: 1 warning\n")
    assert [(each["code"], each["line"], each["column"]) for each in json.loads(data.stdout)] == [("E0201", 1, 17)]


def test_explain_has_an_example_for_every_code(project: Project) -> None:
    """`koi check --explain CODE` is long and shows code; an unknown one is wrong usage."""
    known = project.koi("check", "--explain").stdout.split()

    done, unknown = project.koi("check", "--explain", "e0201"), project.koi("check", "--explain", "E9999")

    assert "E0201" in known
    assert "Wrong:" in done.stdout
    assert "Right:" in done.stdout
    assert (unknown.returncode, unknown.stdout) == (2, "")


def test_version_names_koi_and_python(project: Project) -> None:
    """`koi version` and `koi --version` agree."""
    long, short = project.koi("version").stdout, project.koi("--version").stdout

    assert long.startswith(short.strip())
    assert "Python 3." in long


def test_the_registry_can_be_shown_and_cleared(project: Project) -> None:
    """What a program stores is counted, and gone after `clear --yes`."""
    project.write("a.koi", GREETER.replace("console.log(`Hello ${args.name}`)", 'await registry.set("k", 1)'))
    project.koi("run", "a.koi")

    before, cleared, after = (project.koi("registry", *words) for words in (("stats",), ("clear", "--yes"), ("stats",)))

    assert "entries  1" in before.stdout
    assert cleared.stdout == "removed 1 entry\n"
    assert "entries  0" in after.stdout


def test_audit_lists_what_a_model_may_do(project: Project) -> None:
    """Actions follow from the role's capabilities; delegates from its teams."""
    project.write(
        "a.koi",
        """
        role Boss { can delegate }
        role Hand { can execute }
        team T { worker: Worker }
        agent Worker : Hand { on work(args: Json) { return 1 } }
        agent Lead : Boss { uses team T on go(args: Json) { return 1 } }
        run Lead.go({})
        """,
    )

    audited = {each["agent"]: each for each in json.loads(project.koi("audit", "--json", "a.koi").stdout)}

    assert "update_state" in audited["Worker"]["actions"]
    assert "update_state" not in audited["Lead"]["actions"]
    assert audited["Worker"]["state"] == ["update_state", "return with state_updates"]
    assert audited["Lead"]["state"] == []
    assert audited["Lead"]["delegates"] == ["worker::work"]
    assert audited["Worker"]["delegates"] == []


def test_actions_have_schemas(project: Project) -> None:
    """`koi list actions --json` gives every action with its permission and parameters."""
    listed = {each["name"]: each for each in json.loads(project.koi("list", "actions", "--json").stdout)}

    assert listed["update_state"]["needs"] == "execute"
    assert listed["update_state"]["parameters"]["required"] == ["updates"]
    assert next(iter(listed)) == "print"


def test_output_that_nobody_reads_is_no_traceback(project: Project) -> None:
    """`koi run … | head -1` ends quietly."""
    project.write(
        "a.koi",
        GREETER.replace("console.log(`Hello ${args.name}`)", "for (let i = 0; i < 20000; i++) { console.log(i) }"),
    )

    done = project.run("bash", "-c", f"{shlex.join(forks.koi('run', 'a.koi'))} | head -1")

    assert done.stdout == "0\n"
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(
    ("words", "code"), [(("run", "a.koi"), 1), (("list", "actions"), 1), (("check", "wrong.koi"), 65)]
)
def test_a_terminal_that_has_hung_up_is_no_error(words: tuple[str, ...], code: int, project: Project) -> None:
    """Nobody reads a message there, and what is left to be written does not change the exit code."""
    project.write("a.koi", GREETER)
    project.write("wrong.koi", GREETER + "}")
    master, terminal = os.openpty()
    os.close(master)
    done = subprocess.run(
        forks.koi(*words),
        cwd=project.folder, stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(terminal)

    assert code == done.returncode
    assert "Errno" not in done.stderr


def words_of_commands(group: click.Group, *before: str) -> list[tuple[str, ...]]:
    """The words of every command and of every command within it."""
    found: list[tuple[str, ...]] = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        found.append((*before, name))
        found += words_of_commands(command, *before, name) if isinstance(command, click.Group) else []
    return found


@pytest.mark.parametrize("words", words_of_commands(koi), ids=" ".join)
def test_every_command_has_help(words: tuple[str, ...]) -> None:
    """`--help` of each command shows how it is called."""
    shown = CliRunner().invoke(koi, [*words, "--help"], prog_name="koi")

    assert (shown.exit_code, shown.exception) == (0, None)
    assert shown.output.startswith(f"Usage: koi {' '.join(words)} ")
