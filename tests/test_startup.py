"""Commands begin at once: what is not needed is not imported."""

from __future__ import annotations

import pytest

from tests.projects import Project

HEAVY = (
    "lark", "pydantic", "openai", "anthropic", "mcp", "keyring", "prompt_toolkit", "httpx2", "sqlite3", "diskcache",
    "http.client", "difflib", "tempfile", "unittest", "koi_lang.compiler", "koi_lang.llm",
)  # fmt: skip
# What only other commands, threads and folders need.
RARE = (
    "shutil", "queue", "koi_lang.program.recorded_calls", "koi_lang.runtime.concurrency.thread_alarm",
    "koi_lang.js.intl_dates", "koi_lang.js.urls", "koi_lang.js.search_params",
    "koi_lang.js.abort_signals", "koi_lang.js.dom_exceptions", "koi_lang.js.byte_arrays", "koi_lang.js.text_coding",
)  # fmt: skip
# Runs a command and prints which modules it has imported.
RUN = """
    import sys
    from koi_lang.cli import main
    try:
        main(sys.stdin.read().split())
    except SystemExit:
        print("modules", *sorted(sys.modules))
    """
# The same, once what is imported beside the program has been imported.
RUN_AND_WAIT = RUN.replace(
    "print(", "import threading; [each.join() for each in threading.enumerate() if each.daemon]; print("
)
PLAYBOOK = """
    role Worker { can execute }
    agent Asker : Worker {
      llm default = { provider: "PROVIDER", base_url: "http://127.0.0.1:9" }
      on ask(args: Json) { playbook "Answer." }
      on compute(args: Json) { console.log("computed") }
    }
    run Asker.compute({})
    """
PROGRAM = """
    import "./parts.koi"
    role Worker { can execute, can delegate }
    agent Main : Worker {
      uses team Own
      on start(args: Json) {
        const list = await Promise.all([1, 2].map(async n => double(n)))
        console.log(list, /a+/.test("caat"), JSON.stringify({ date: new Date(0) }), Math.max(1, 2))
        try { null.a } catch (e) { console.log(e.message.length) }
        console.log(await send peers.event("other").any()({}) timeout 5s)
      }
      on other(args: Json) { return "other" }
    }
    team Own { main: Main }
    run Main.start({})
    """
RECALLING = """
    import "std/memory"
    role Worker { can read }
    agent Main : Worker { uses skill Memory on start() { return 1 } }
    run Main.start()
    """
PARTS = "skill Parts { export function double(n: number): number { return n * 2 } }"


def modules_of(project: Project, *words: str, script: str = RUN) -> set[str]:
    """The modules that a command has imported when it ends."""
    outcome = project.python(script, stdin=" ".join(words))
    last = outcome.stdout.splitlines()[-1].split()
    assert (outcome.stderr, last[0]) == ("", "modules")
    return set(last[1:])


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["version"], ["cache"]])
def test_light_commands_import_little(project: Project, words: list[str]) -> None:
    """Help, version and the cache need neither the compiler nor anything that runs programs."""
    found = modules_of(project, *words)

    assert found.isdisjoint({*HEAVY, "koi_lang.runtime", "asyncio"})


def test_compiling_imports_nothing_that_runs_programs(project: Project) -> None:
    """A program without problems is written without what shows them and without a loop of events."""
    project.write("main.koi", "role Worker { can execute }")

    found = modules_of(project, "compile", "main.koi", "-o", "main.py")

    assert found.isdisjoint({"asyncio", "koi_lang.cli.ui.messages", "koi_lang.failures"})


def test_a_cached_program_of_code_imports_little(project: Project) -> None:
    """A second run of a program without playbooks imports no parser, no model's client and no data base."""
    project.write("main.koi", PROGRAM)
    project.write("parts.koi", PARTS)
    modules_of(project, "run", "main.koi")

    found = modules_of(project, "run", "main.koi")

    assert found.isdisjoint({*HEAVY, *RARE})


def test_a_program_that_only_recalls_imports_nothing_that_edits_files(project: Project) -> None:
    """Notes are searched without what writes them."""
    project.write("main.koi", RECALLING)

    found = modules_of(project, "run", "main.koi")

    assert "koi_lang.std.memory" in found
    assert not [name for name in found if name.startswith("koi_lang.std.code.")]


@pytest.mark.parametrize(
    ("provider", "expected"),
    [("openai", {"openai"}), pytest.param("anthropic", {"anthropic"}, marks=pytest.mark.thorough)],
)
def test_the_sdk_is_imported_while_the_program_runs(project: Project, provider: str, expected: set[str]) -> None:
    """A program with a playbook finds the SDK there when it first asks its model, even if it has not asked yet."""
    project.write("main.koi", PLAYBOOK.replace("PROVIDER", provider))

    found = modules_of(project, "run", "main.koi", script=RUN_AND_WAIT)

    assert expected == found & {"openai", "anthropic"}


@pytest.mark.parametrize("words", [["--rehearse"], ["--answers", "answers.json"]])
def test_no_sdk_is_imported_for_a_stand_in(project: Project, words: list[str]) -> None:
    """A rehearsal and written answers send no request."""
    project.write("main.koi", PLAYBOOK.replace("PROVIDER", "openai"))
    project.write("answers.json", "[]")

    found = modules_of(project, "run", "main.koi", *words, script=RUN_AND_WAIT)

    assert found.isdisjoint({"openai", "anthropic"})


def test_importing_the_package_imports_nothing_else(project: Project) -> None:
    """`import koi_lang` costs nothing; `load` and `install` bring what they need."""
    script = "import sys; before = set(sys.modules); import koi_lang; print(*sorted(set(sys.modules) - before))"

    assert project.python(script).stdout.split() == ["__future__", "koi_lang"]


def test_loading_a_cached_module_imports_no_command(project: Project) -> None:
    """A Python program that loads a Koi module needs neither the command line nor the parser."""
    project.write("parts.koi", PARTS)
    script = "import sys, koi_lang; koi_lang.load('parts.koi'); print(*sorted(sys.modules))"
    project.python(script)

    found = set(project.python(script).stdout.split())

    assert found.isdisjoint({*HEAVY, "click", "koi_lang.cli"})


def test_the_words_of_sentences_are_for_playbooks(project: Project) -> None:
    """A check reads what sentences consist of where there is one, and of the rehearsal no more than that."""
    plain = modules_of(project, "check", "--json", str(project.write("main.koi", "role Worker { can execute }")))
    told = modules_of(project, "check", "--json", str(project.write("asker.koi", PLAYBOOK)))

    assert not [name for name in plain if name.startswith("koi_lang.llm.rehearsal")]
    assert "koi_lang.llm.rehearsal.sentences" in told
    assert "koi_lang.llm.rehearsal.model" not in told
