"""Attacks, their outcomes, and the person whom they are tried on."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import CHECKOUT
from tests import forks
from tests.limits import LIMIT_S
from tests.search_path import original_path

MARK = "a-word-that-only-the-attacked-file-has"
PROGRAM = """
role Worker { can execute }
agent Main : Worker { on go(args: Json) { playbook "Do the work." } }
run Main.go({})
"""
# A model that is refused more often in one run is not asked any more.
MAX_ACTIONS = 30


class NotRunError(Exception):
    """A kind of attack cannot be tried on this machine; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one attack.

    Attributes:
        attack: what was tried, in one line.
        is_held: whether Koi held.
        succeeds_unguarded: whether the attack succeeds with the guard off; None where the guard cannot be off.
    """

    attack: str
    is_held: bool
    succeeds_unguarded: bool | None = None


@dataclass(frozen=True, slots=True)
class AttackKind:
    """Attacks on one guard.

    Attributes:
        name: for the command line.
        title: the guarded thing, for the table.
        cases: the attacks, in a form that `attempt` understands.
        attempt: tries some of the cases in an empty folder. Raises NotRunError.
        rest: what is left and why.
    """

    name: str
    title: str
    cases: Sequence[Any]
    attempt: Callable[[Path, Sequence[Any]], Iterable[Trial]]
    rest: str


@dataclass(frozen=True, slots=True)
class Victim:
    """A person with a home folder and a project, in which `koi` runs.

    Attributes:
        base: the folder of both, which holds nothing else at first.
        cache: of compiled programs.
        is_forked: whether commands are forked from a process that has imported Koi, which is quicker.
    """

    base: Path
    cache: Path
    is_forked: bool = True

    @classmethod
    def at(cls, base: Path, settings: str = "", **fields: Any) -> Victim:
        """A person with an empty home folder, and a project with nothing but a `koi.toml`."""
        victim = cls(base, **{"cache": base.parent / "cache", **fields})
        victim.home.mkdir(parents=True)
        victim.write("koi.toml", settings)
        return victim

    def beside(self, number: int) -> Victim:
        """Another person with the same settings."""
        return Victim.at(self.base / str(number), (self.project / "koi.toml").read_text("utf-8"), cache=self.cache)

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.base / "home"

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return self.base / "project"

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a process: the PATH of the machine, this checkout, and a key."""
        shared = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        own = {"KOI_CACHE_DIR": str(self.cache), "KOI_CONFIG_DIR": str(self.base / "config")}
        path = {
            "PATH": f"{self.base / 'bin'}{os.pathsep}{original_path(os.environ)}",
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUTF8": "1",
        }
        return {**shared, **own, **path, "HOME": str(self.home), "KOI_LOCAL_PORTS": "none", "A_API_KEY": MARK}

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project; a name may lead out of it."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def koi(self, *words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """The outcome of a `koi` command."""
        if self.is_forked:
            return forks.run(words, self.project, {**self.environment, **environment}, stdin)
        return subprocess.run(
            [sys.executable, "-P", "-m", "koi_lang", *words],
            cwd=self.project,
            env={**self.environment, **environment},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
        )

    def obey(self, actions: Sequence[dict[str, Any]], *words: str, trusts: bool = True) -> None:
        """Have a model do what an attacker wants, in as many runs as it takes.

        Args:
            actions: what the model asks for, in order.
            words: more options of `koi run`.
            trusts: whether the person trusts the folder.
        """
        self.write("main.koi", PROGRAM)
        for at in range(0, len(actions), MAX_ACTIONS):
            answers = [*actions[at : at + MAX_ACTIONS], {"intent": "return", "data": {}}]
            self.write("answers.json", json.dumps(answers))
            trust = {"KOI_TRUST_FOLDER": "1"} if trusts else {}
            done = self.koi("run", "main.koi", "--answers", "answers.json", *words, **trust)
            assert done.returncode == 0, done.stderr


def shell(command: str, **fields: Any) -> dict[str, Any]:
    """The action of a model that runs a command."""
    return {"actionType": "direct", "intent": "shell", "command": command, "description": "to look", **fields}


def hidden(command: str, **fields: Any) -> dict[str, Any]:
    """The same with a command that nobody can read before it runs, so that only the sandbox is in its way."""
    encoded = base64.b64encode(f"({command}) > shown 2>&1".encode()).decode()
    return shell(f"echo {encoded} | base64 -d | bash", **fields)


def require_bubblewrap() -> None:
    """Raise NotRunError where the sandbox cannot be tried."""
    program = shutil.which("bwrap", path=original_path(os.environ))
    if program is None:
        raise NotRunError("bubblewrap is missing")
    words = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    if (tried := subprocess.run(words, capture_output=True, text=True)).returncode != 0:
        raise NotRunError(f"bubblewrap does not work here: {tried.stderr.strip()}")
