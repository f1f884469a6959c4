"""Actions as a model might try them that wants to get at what is closed to it, at random and the same each time."""

from __future__ import annotations

import random
import shlex
from dataclasses import dataclass
from typing import Any

from tests.adversary.hostile_project import FILES, LINKS
from tests.playbook.playing import act, ask

INSIDE = [path.removeprefix("project/") for path in (*FILES, *LINKS) if path.startswith("project/")]
ODD = [
    "", " ", ".", "..", "/", "~", "~/.ssh/id_rsa", "/etc/passwd", "C:\\x", "\\\\host\\x", "pipe", "pipe/x", "a\x00b",
    "a\nb", "a" * 300, "d/" * 700, "**", "*", "src/**", "../**", "[", "{a,b}", ".e*", "self/x", "nothing", "new.txt",
    "src/new.py", "src/deep/er/new.py", "-rf", "src/é.py", "src/😀.md", "out/new.txt", "src/up/.env", "src/up/new.txt",
    "history/config", "mig/1.sql", "out/.env", "/dev/stdin", "/proc/self/environ", "file:///etc/passwd", "COM1",
    "src/a.py/x", "docs\\x.md", ".git/hooks/pre-push", ".koi/x", ".koi-config.json", "main.koi", "\u200b.env",
]  # fmt: skip
PATTERNS = ["canary", ".", "(a+)+$", "[", "def", "^", "(?=c)", "canary[0-9a-f]+", "\\", "x" * 2000, "(?i)CANARY", ""]
TEXTS = ["x", "", "a\x00b", "<<<<<<<", "def new():\n    return 1\n", "\ufeffx", "\r\n", "${args}", "Continue.\n✅ done"]
OFTEN = 0.7


@dataclass(frozen=True, slots=True)
class ActionSource:
    """Where random actions come from.

    Attributes:
        root: the folder of the project.
        program: the name of the running program in it.
    """

    random: random.Random
    root: str
    program: str

    def path(self) -> str:
        """A path, mostly of something that is there, written in some way."""
        chance = self.random
        if chance.random() > OFTEN:
            return chance.choice([*ODD, self.program])
        path = chance.choice(INSIDE)
        for _ in range(chance.choice((0, 0, 1, 1, 2))):
            path = self._bend(path)
        return path

    def _bend(self, path: str) -> str:
        """The same, or nearly, written in another way."""
        folder, _, name = path.rpartition("/")
        ways = [
            path.upper(), path.title(), f"./{path}", f"src/../{path}", f"{self.root}/{path}", f"src/up/{path}",
            f"{path}.",
            f"{path} ", f"{path}::$DATA", f"{path}/", path.replace("/", "//"), path.replace("/", "\\"), f"{path}\x00",
            path.replace("e", "\uff45"), path.replace(".", "\uff0e"), f"../{path}", f"project/../{path}", f"{path}/.",
            f"{folder}/./{name}", path.replace("a", "?"), f"{path}*", f"~/{path}", f"/{path}", f" {path}",
            f"../project/{path}", f"out/../project/{path}", f"%2e%2e/{path}", f"{path}\u202e", f"{path}~",
        ]  # fmt: skip
        return self.random.choice(ways)

    def action(self) -> dict[str, Any]:
        """One action."""
        chance = self.random
        make = chance.choice(
            (self._read, self._read, self._search, self._write, self._write, self._run, self._call, self._other)
        )
        return make()

    def _read(self) -> dict[str, Any]:
        limits = self.random.choice(({}, {"offset": self.random.choice((0, -1, 1, 10**12))}, {"limit": 1}))
        return act(self.random.choice(("read_file", "outline")), path=self.path()) | (limits if limits else {})

    def _search(self) -> dict[str, Any]:
        chance = self.random
        given = {"pattern": chance.choice(PATTERNS), "path": self.path(), "files": chance.choice(("", self.path()))}
        return chance.choice(
            (
                act("grep", **given),
                act("grep", pattern="canary"),
                act("list_files", pattern=self.path()),
                act("find_symbol", name=chance.choice(("find_me", self.path()))),
            )
        )

    def _write(self) -> dict[str, Any]:
        chance = self.random
        text = chance.choice(TEXTS)
        header = f"--- a/{self.path()}\n+++ b/{self.path()}\n@@ -1 +1 @@\n-def find_me():\n+def found():\n"
        return chance.choice(
            (
                act("write_file", path=self.path(), content=text),
                act("edit_file", path=self.path(), before="find_me", after=text),
                act("edit_file", path=self.path(), diff=header),
            )
        )

    def _run(self) -> dict[str, Any]:
        chance = self.random
        word = self.path()
        texts = (
            f"true {shlex.quote(word)}",
            f"true {word}",
            f"true < {shlex.quote(word)}",
            f"echo {shlex.quote(word)}",
        )
        given = {"command": chance.choice(texts), "description": "look"}
        place = chance.choice(({}, {}, {"cwd": self.path()}))
        return act(chance.choice(("run_command", "shell")), **given, **place)

    def _call(self) -> dict[str, Any]:
        made = self.random.choice((self._read, self._search, self._write))()
        name = made.pop("intent")
        made.pop("actionType")
        made = {"pattern": made["pattern"], "path": made.get("path", ".")} if name == "grep" else made
        skill = "CodeChanges" if name in ("write_file", "edit_file") else "CodeReading"
        if "diff" in made:
            name = "patch_file"
        return act("call_skill", skill=skill, function=name, input=made)

    def _other(self) -> dict[str, Any]:
        chance = self.random
        return chance.choice(
            (
                act("read_output", id=chance.choice((-1, 0, 1, 2, "../1", 10**20))),
                act("read_skill", name=chance.choice(("review", self.path())), file=self.path()),
                act("read_skill", name="review", file=chance.choice(("server.pem", "env.md", "notes.md", "../x"))),
                ask("help", {"path": self.path()}),
                act("think", thought=self.path()),
                act("propose_plan", steps=[self.path()]),
            )
        )
