"""The first command: with a Python that is too old, on a fresh machine, and with lists to pick from."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pexpect

import koi_lang
from tests import forks
from tests.first.machine import ANYBODY, GREETING, KEY, Machine
from tests.limits import LIMIT_S
from tests.llm.server import ModelServer
from tests.projects import Project
from tests.wheel import Installed

PACKAGE = Path(koi_lang.__file__).parent
OLD = """
    import sys
    sys.version_info = (3, {minor}, 10, "final", 0)
    from koi_lang.cli import main
    main()
    """
TOO_OLD = """error: koi needs Python 3.11 or newer, and this is Python 3.{minor}
  = help: Install Python 3.11 or newer, and Koi with it, from where this one came.
"""
DOWN = "\x1b[B"


def test_an_old_python_is_said_in_plain_words(project: Project) -> None:
    """From 3.8 to 3.10 the command ends with one message, before anything else is imported."""
    for minor in (8, 9, 10):
        done = project.python(OLD.format(minor=minor))

        assert (done.returncode, done.stdout, done.stderr) == (1, "", TOO_OLD.format(minor=minor))


def test_old_pythons_can_read_what_says_so() -> None:
    """What runs before the check is written in a language that Python 3.8 reads, and imports nothing of koi."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(), feature_version=(3, 8))
    first = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom | ast.If)]

    assert [text.partition("\n")[0] for text in first[:3]] == [
        "from __future__ import annotations",
        "import sys",
        "if sys.version_info < (3, 11):",
    ]
    entry = [ast.unparse(node) for node in ast.parse((PACKAGE / "__main__.py").read_text()).body]
    assert entry[1:3] == ["import sys", "from koi_lang.cli import main"]


def test_a_fresh_machine_greets_after_three_commands(installed: Installed, tmp_path: Path) -> None:
    """Install, connect, run: with nothing but the wheel, a key that is piped in, and a model that answers."""
    installed.folder.joinpath("greeter.koi").write_text(ANYBODY)
    koi = str(installed.python.parent / "koi")

    async def use() -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
        async with ModelServer([GREETING], models=["gpt-5.4-mini"]) as server:
            around = {
                "OPENAI_BASE_URL": f"{server.url}/v1",
                "XDG_CONFIG_HOME": str(tmp_path),
                "KOI_CACHE_DIR": str(tmp_path),
            }
            connected = await asyncio.to_thread(installed.run, koi, "connect", "openai", said=f"{KEY}\n", **around)
            ran = await asyncio.to_thread(installed.run, koi, "run", "greeter.koi", **around)
            assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
            return connected, ran

    connected, ran = asyncio.run(use())

    assert (connected.returncode, connected.stderr) == (0, "")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Hello Ada\n", "")
    assert (tmp_path / "koi" / "keys.json").stat().st_mode & 0o777 == 0o600


def terminal(machine: Machine, *words: str) -> pexpect.spawn:
    """A command in a terminal, as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "TERM": "xterm"}
    python, *others = forks.koi(*words)
    return pexpect.spawn(
        python, others,
        cwd=str(machine.folder), env=environment, encoding="utf-8", timeout=LIMIT_S, dimensions=(40, 120),
    )  # fmt: skip


def finished(child: pexpect.spawn) -> tuple[int, str]:
    """The exit code of a process in a terminal, and the rest of what it showed."""
    child.expect(pexpect.EOF)
    child.wait()
    child.close()
    return int(child.exitstatus), str(child.before)


def test_a_provider_is_picked_and_its_key_typed_unseen(machine: Machine) -> None:
    """The arrow keys choose, the key is not shown while it is typed, and then it is kept."""
    child = terminal(machine, "connect", "--no-test")
    child.expect("Which provider")
    child.expect("ollama")
    child.send(f"{DOWN}\r")
    child.expect("Key of anthropic")
    child.send(f"{KEY}\r")
    code, shown = finished(child)

    assert code == 0
    assert KEY not in shown
    assert "anthropic is connected" in shown
    assert machine.now("connect", "status").out.split()[:2] == ["anthropic", "file"]


def test_a_model_is_picked_from_the_lists(machine: Machine) -> None:
    """`-m ?` shows the models of all connected providers that answer; the picked one is used."""
    machine.project.write("a.koi", ANYBODY)
    machine.set(OPENAI_API_KEY=KEY)

    def pick() -> tuple[int, str]:
        child = terminal(machine, "run", "a.koi", "-m", "?")
        child.expect("Which model")
        child.expect("gpt-5.4-mini")
        child.send(f"{DOWN}\r")
        return finished(child)

    async def use() -> tuple[int, str, str]:
        async with ModelServer([GREETING], models=["gpt-4o", "embed-4", "gpt-4o-mini", "gpt-5.4-mini"]) as server:
            machine.use(server)
            code, shown = await asyncio.to_thread(pick)
            return code, shown, server.requests[0].body["model"]

    code, shown, model = asyncio.run(use())

    assert (code, model) == (0, "gpt-4o-mini")
    assert "Hello Ada" in shown


def test_a_program_of_code_needs_no_keyring(machine: Machine) -> None:
    """A run that asks no model does not import the keyring, even where it keeps a key."""
    machine.project.write(
        "a.koi", 'role W { can execute }\nagent A : W { on go(a) { console.log("hi") } }\nrun A.go({})\n'
    )
    machine.config.mkdir()
    (machine.config / "keys.json").write_text('{"OPENAI_API_KEY": {"in": "keyring"}}')
    script = """
        import sys
        from koi_lang.cli import main
        try:
            main(["run", "a.koi"])
        except SystemExit:
            print("keyring" in sys.modules, "prompt_toolkit" in sys.modules)
        """

    assert machine.project.python(script).stdout == "hi\nFalse False\n"


def test_modules_of_the_current_folder_are_not_taken_for_packages(project: Project) -> None:
    """What koi imports late comes from where koi is installed, also with `python -m`."""
    project.write("difflib.py", 'print("somebody else")')
    project.write("a.koi", 'role W { can execute }\nagent A : W { on go(a) { consol.log("hi") } }\nrun A.go({})\n')

    done = subprocess.run(
        [sys.executable, "-m", "koi_lang", "check", "a.koi"],
        cwd=project.folder, env=project.environment, capture_output=True, text=True,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (65, "")
    assert "did you mean `console`?" in done.stderr
