"""What koi needs of a system: nothing that only POSIX has, but where it says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.package_trees import trees
from tests.projects import Project

# Modules that Windows lacks, and of modules that it has what it lacks of them, as far as it is used here.
MODULES = ("fcntl", "termios", "pty", "tty", "resource", "pwd", "grp", "posix", "syslog", "curses", "readline")
ATTRIBUTES = {
    "os": (
        "killpg getpgrp getpgid tcgetpgrp tcsetpgrp setsid setpgid getuid geteuid getgid fork forkpty openpty mkfifo"
        " fchmod statvfs O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY"
    ).split(),
    "signal": (
        "SIGALRM SIGVTALRM SIGHUP SIGKILL SIGSTOP SIGTSTP SIGCONT SIGWINCH SIGUSR1 setitimer getitimer ITIMER_REAL"
        " ITIMER_VIRTUAL"
    ).split(),
    "select": ["poll", "PIPE_BUF"],
}
# Takes them from koi, and leaves them to the libraries of this system, which it cannot work without.
WITHOUT = f"""
    import builtins, importlib, sys, types
    MODULES, ATTRIBUTES = {MODULES!r}, {ATTRIBUTES!r}
    STANDARD, BY_NAME = builtins.__import__, importlib.import_module

    class Part(types.ModuleType):
        def __init__(self, whole):
            super().__init__(whole.__name__)
            self.__dict__.update({{k: v for k, v in vars(whole).items() if k not in ATTRIBUTES[whole.__name__]}})
            if whole.__name__ == "signal":
                gone = ATTRIBUTES["signal"]
                self.Signals = [each for each in whole.Signals if each.name not in gone]

    PARTS = {{name: Part(STANDARD(name)) for name in ATTRIBUTES}}

    class Msvcrt(types.ModuleType):
        LK_LOCK = LK_NBLCK = 1
        def locking(self, descriptor, mode, count):
            print("locked", file=sys.stderr)

    def refuse(name):
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"no module {{name}}", name=name)

    def find(name, globals=None, locals=None, fromlist=(), level=0):
        if not str((globals or {{}}).get("__name__")).startswith("koi_lang"):
            return STANDARD(name, globals, locals, fromlist, level)
        refuse(name)
        return PARTS[name] if name in PARTS else STANDARD(name, globals, locals, fromlist, level)

    def find_by_name(name, package=None):
        if not sys._getframe(1).f_globals["__name__"].startswith("koi_lang"):
            return BY_NAME(name, package)
        refuse(name)
        return Msvcrt(name) if name == "msvcrt" else BY_NAME(name, package)

    builtins.__import__, importlib.import_module = find, find_by_name
    from koi_lang.cli import main
    main({{words!r}})
    """
PROGRAM = """
    role Worker { can execute }
    agent Main : Worker {
      on start(args: Json) {
        setTimeout(() => console.log("later"), 1)
        const done = await this.callAction("shell", { command: "sleep 0.1; echo done", description: "to see" })
        console.log(done.stdout.trim())
      }
    }
    test "adds" { expect 1 + 1 == 2 }
    run Main.start({})
    """


def top_level(tree: ast.Module) -> Iterator[ast.AST]:
    """What is carried out when a module is imported: everything outside of functions."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def needed(node: ast.AST) -> list[str]:
    """What of POSIX a piece of a module needs."""
    match node:
        case ast.Import(names=names):
            return [each.name for each in names if each.name.partition(".")[0] in MODULES]
        case ast.ImportFrom(module=str(module), names=names):
            lacking = ATTRIBUTES.get(module, ())
            found = [f"{module}.{each.name}" for each in names if each.name in lacking]
            return [module] if module.partition(".")[0] in MODULES else found
        case ast.Attribute(value=ast.Name(id=module), attr=name) if name in ATTRIBUTES.get(module, ()):
            return [f"{module}.{name}"]
    return []


def test_no_module_needs_posix_to_be_imported() -> None:
    """What Windows lacks is looked for where it is used."""
    found = {(module, name) for module, tree in trees().items() for node in top_level(tree) for name in needed(node)}

    assert found == set()


@pytest.fixture
def folder(project: Project) -> Project:
    """A project with a program."""
    project.write("main.koi", PROGRAM)
    return project


def koi(folder: Project, *words: str) -> tuple[str, str]:
    """What a command prints where only the modules and functions of Windows are there."""
    done = folder.python(WITHOUT.replace("{words!r}", repr([*words])))
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout, done.stderr


def test_programs_run_without_posix(folder: Project) -> None:
    """A run is recorded in a locked journal, which `runs` lists."""
    printed, logged = koi(folder, "run", "main.koi", "--allow", "shell")
    listed, _ = koi(folder, "runs", "list")

    assert ("later\ndone\n", "locked\n") == (printed, logged[: len("locked\n")])
    assert "main.koi" in listed


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "said"),
    [(["check", "main.koi"], ""), (["test", "main.koi"], "1 passed"), (["doctor"], "koi"), (["version"], "koi")],
)
def test_commands_work_without_posix(folder: Project, words: list[str], said: str) -> None:
    """They need none of what is missing."""
    out, err = koi(folder, *words)

    assert said in out + err


def test_what_needs_posix_says_so(folder: Project) -> None:
    """Pipes of a client cannot be watched on Windows; the message names a way that works."""
    _, told = koi(folder, "rpc", "main.koi")

    assert "error: this system has no pipes that `koi rpc` could watch\n  = help: Run it in WSL, or" in told
