"""Installed extensions on the command line: what runs have of them, what is listed, and what is refused."""

from __future__ import annotations

import json

import pytest

from tests.extensions.packages import Site
from tests.projects import Project

GUARD = """
    import click
    from koi_lang.extensions import Deny, Koi

    def extend_koi(koi):
        @koi.before_action
        def gate(call):
            return Deny("the door is shut") if call.intent == "print" else None

        @koi.action("doors")
        def knock(context, times: int):
            '''Knock at the door.'''
            return "knock " * times

        @koi.rpc_command
        def door(given):
            return "shut"

        @koi.command
        @click.command()
        @click.argument("name")
        def hello(name):
            "Say hello."
            click.echo(f"hello {name}")

        koi.provider("acme", lambda options, key: None)
    """
PROGRAM = """
    role Worker { can execute, can doors }
    agent Main : Worker { on start() { await callAction("print", { message: "printed" }) } }
    run Main.start({})
    """
ACME = """
    from koi_lang.llm.scripted import ScriptedModel

    def extend_koi(koi):
        def provide(options, key):
            return ScriptedModel([{"intent": "return", "data": {"by": options["model"]}}])
        koi.provider("acme", provide)
    """


@pytest.fixture
def guarded(site: Site) -> Site:
    """A project with a program, and an extension that denies what it does."""
    site.project.write("main.koi", PROGRAM)
    site.install("door-guard", GUARD, extension="guard", version="2.1")
    return site


def test_a_run_uses_what_is_installed(guarded: Site) -> None:
    """Its hooks deny, unless extensions are switched off."""
    denied, allowed = guarded.koi("run", "main.koi"), guarded.koi("run", "--no-extensions", "main.koi")

    assert (denied.returncode, denied.stdout) == (77, "")
    assert "`print` was denied by `guard.gate`: the door is shut" in denied.stderr
    assert (allowed.returncode, allowed.stdout) == (0, "printed\n")


def test_extensions_are_listed(guarded: Site) -> None:
    """With their package and what each adds."""
    assert guarded.koi("list", "extensions").stdout == (
        "guard  (door-guard 2.1)\n"
        "  actions    knock\n"
        "  hooks      before_action guard.gate\n"
        "  providers  acme\n"
        "  commands   hello\n"
        "  rpc        door\n"
    )
    assert [each["package"] for each in json.loads(guarded.koi("list", "extensions", "--json").stdout)] == [
        "door-guard"
    ]


def test_extensions_of_a_program_are_listed(project: Project) -> None:
    """Named as their files, with what they add only where the code of the program may be run."""
    project.write("own.py", "def extend_koi(koi):\n    koi.before_model(lambda call: None)\n")
    project.write("main.koi", 'import "./own.py"\n')
    inspected, called = (
        project.koi("list", "extensions", "main.koi"),
        project.koi("list", "extensions", "--run-code", "main.koi"),
    )

    assert called.stdout == "own  (own.py)\n  hooks      before_model own.<lambda>\n"
    assert inspected.stdout == "no extensions are installed\n" == project.koi("list", "extensions").stdout
    assert inspected.stderr == (
        "`extend_koi` of `own.py` is not called, so what it adds is not shown; add `--run-code` to call it\n"
    )


def test_actions_and_audits_show_what_is_added(guarded: Site) -> None:
    """`koi list actions` says whose an action is, `koi audit` which agents may use it."""
    actions = guarded.koi("list", "actions").stdout
    audit = json.loads(guarded.koi("audit", "--json", "main.koi").stdout)
    without = json.loads(guarded.koi("audit", "--json", "--no-extensions", "main.koi").stdout)

    assert actions.endswith(
        "knock(times: integer)  [needs `doors`, of the extension `guard`]\n    Knock at the door.\n"
    )
    assert [each["actions"][-1] for each in (*audit, *without)] == ["knock", "read_output"]


def test_a_command_is_added(guarded: Site) -> None:
    """An unknown word is looked for among extensions; its own help and errors are those of any command."""
    assert guarded.koi("hello", "Ada").stdout == "hello Ada\n"
    assert "Usage: koi hello [OPTIONS] NAME" in guarded.koi("hello", "--help").stdout
    assert "there is no command `hallo`" in guarded.koi("hallo").stderr


def test_known_commands_import_no_extension(site: Site) -> None:
    """A broken extension is no concern of commands that run nothing."""
    site.install("broken", "raise SystemExit('imported')")
    site.project.write("main.koi", PROGRAM)

    assert [site.koi(*words).returncode for words in (["version"], ["check", "main.koi"], ["--help"])] == [0, 0, 0]


def test_nothing_runs_without_a_broken_extension(site: Site) -> None:
    """It may have been a gate, so the run does not start, and says how it can."""
    site.install("gate", "import no_such_module")
    site.project.write("main.koi", PROGRAM)
    refused, allowed = site.koi("run", "main.koi"), site.koi("run", "--no-extensions", "main.koi")

    expected = (
        "error: the extension `gate` of gate cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"
    )
    assert (refused.returncode, refused.stdout, refused.stderr.splitlines()[0]) == (1, "", expected)
    assert "leave installed extensions out with `--no-extensions`" in refused.stderr
    assert allowed.stdout == "printed\n"


def test_a_broken_extension_is_listed(site: Site) -> None:
    """Beside those that work, with what is wrong; the exit code says so, too."""
    site.install("a-gate", "import no_such_module")
    site.install("b-fine", "def extend_koi(koi): pass")
    listed = site.koi("list", "extensions")

    assert (listed.returncode, listed.stderr) == (1, "")
    assert "error      the extension `a-gate` of a-gate cannot be loaded: ModuleNotFoundError" in listed.stdout
    assert listed.stdout.endswith("b-fine  (b-fine 1.0)\n  adds nothing\n")


def test_two_packages_with_one_name_are_refused(site: Site) -> None:
    """Both are named, before anything is run."""
    site.install("first", "def extend_koi(koi): pass", extension="same")
    site.install("second", "def extend_koi(koi): pass", extension="same")
    site.project.write("main.koi", PROGRAM)

    assert (
        "two extensions are called `same`: `same` of first 1.0 and `same` of second 1.0"
        in site.koi("run", "main.koi").stderr
    )


def test_a_provider_is_named_in_a_program(site: Site) -> None:
    """`llm { provider: "name" }` reaches the model that the extension makes; so does `-m name/model`."""
    site.install("acme", ACME)
    source = """
        role Worker { can execute }
        agent Main : Worker {
          llm default = { provider: "acme", model: "large" }
          on start() { playbook "Work." }
          on show() { console.log(await this.handle("start", {})) }
        }
        run Main.show({})
        """
    site.project.write("main.koi", source)

    assert site.koi("run", "main.koi").stdout == "{ by: 'large' }\n"
    assert site.koi("run", "-m", "acme/small", "main.koi").stdout == "{ by: 'small' }\n"
    assert "there is no provider `acme`" in site.koi("run", "--no-extensions", "main.koi").stderr


def test_a_killed_run_goes_on_with_its_state(project: Project) -> None:
    """Hooks of a program count on where they were; the one action that was under way is counted again."""
    project.write(
        "counted.py",
        """
        import os
        from pathlib import Path

        def extend_koi(koi):
            @koi.before_action
            def count(call):
                koi.state["asked"] = koi.state.get("asked", 0) + 1

            @koi.action(safe=True)
            def risky(context):
                if not Path("survived").exists():
                    Path("survived").touch()
                    os._exit(9)
                return koi.state["asked"]
        """,
    )
    source = """
        import "./counted.py"
        role Worker { can execute }
        agent Main : Worker {
          on start() {
            await callAction("print", { message: "first" })
            console.log("asked", await callAction("risky"))
          }
        }
        run Main.start({})
        """
    project.write("main.koi", source)
    first = project.koi("run", "main.koi")
    second = project.koi("resume", "--quiet")

    assert (first.returncode, first.stdout) == (9, "first\n")
    assert (second.returncode, second.stdout, second.stderr) == (0, "asked 2\n", "")


def test_a_run_without_extensions_loads_nothing_for_them(project: Project) -> None:
    """Neither what reads descriptions of packages nor what asks hooks is imported."""
    project.write("main.koi", PROGRAM)
    project.koi("run", "main.koi")
    script = """
        import sys
        from koi_lang.cli import main
        try:
            main(["run", "main.koi"])
        except SystemExit:
            print(*sys.modules)
        """
    found = set(project.python(script).stdout.split())

    assert {"koi_lang.runtime.run", "koi_lang.extensions.finding"} <= found
    assert found.isdisjoint(
        {
            "importlib.metadata",
            "koi_lang.runtime.hooks.types",
            "koi_lang.runtime.hooks.runner",
            "koi_lang.extensions.koi",
        }
    )


def test_nothing_is_served_without_a_broken_extension(site: Site) -> None:
    """A server says so before its first client comes."""
    site.install("gate", "import no_such_module")
    site.project.write("main.koi", PROGRAM.replace("on start()", "expose mcp\n      on start()"))
    refused, served = (site.koi("serve", "mcp", *words, "main.koi") for words in ([], ["--no-extensions"]))

    assert (refused.returncode, served.returncode) == (1, 0)
    assert "the extension `gate` of gate cannot be loaded" in refused.stderr
