"""200 actions that somebody thought of who wants what is closed: refused in a sentence, or harmless."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from koi_lang.extensions import additions, find_extensions
from koi_lang.program import loader
from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.guards.permissions import Restrictions
from tests.adversary.hostile_project import FILES, build, may_change, may_see, tree_of, word_of
from tests.adversary.test_random_actions import OURS, PROGRAM, everything_told
from tests.playbook.playing import Played, Player, act, done

DENIED = ["migrations/", "rm "]
AT_ONCE = 20
PATHS = [
    ".env", "./.env", ".ENV", ".Env", ".env.", ".env ", ".env. .", ".env::$DATA", ".env:x", "\uff0eenv", ".\uff45nv",
    "src/../.env", "src/up/.env", "src//up//.env", "notes.txt", "NOTES.TXT", "{root}/.env", "{root}/notes.txt",
    "keys/server.pem", "keys/SERVER.PEM", "keys/a:b.pem", "keys/./server.pem", "keys\\server.pem", "prod.env",
    ".git/config", ".GIT/config", ".git./config", ".git /config", "history/config", "src/up/.git/hooks/pre-commit",
    ".koi/runs/old.jsonl", ".KOI/outputs/old/1", ".koi", "out/secret.txt", "out/.env", "src/secret.py",
    "../outside/.env",
    "../outside/secret.txt", "{root}/../outside/secret.txt", "/etc/passwd", "/proc/self/environ", "/dev/stdin",
    "/dev/fd/0",
    "~/.ssh/id_rsa", "~", "C:\\Windows\\win.ini", "\\\\host\\share", "file:///etc/passwd", "self", "self/x", "pipe",
    "pipe/x",
    "migrations/1.sql", "mig/1.sql", "MIGRATIONS/1.sql", "./migrations/1.sql", "src/up/migrations/1.sql", "{program}",
    "{root}/{program}", "src/up/{program}", "", " ", ".", "..", "...", "a\x00b", ".env\x00.md", "a\nb",
    "\u202e.env", "\ud800",
    "a{long}", "{deep}", "src/a.py/x", "koi.toml/x", "docs/*", "[", "%2e%2e/outside/secret.txt", "-", "--help",
]  # fmt: skip
WRITTEN = [
    "koi.toml", "KOI.toml", "koi.toml.", "src/koi.toml", ".mcp.json", ".koi-config.json", ".git/hooks/post-commit",
    ".koi/x", "migrations/2.sql", "mig/2.sql", "out/new.txt", "src/up/../../x", "self/x", "src/secret.py",
    ".env.local",
    "id_rsa", ".ssh/config", ".aws/credentials", ".npmrc", "{program}", "..", ".", "/tmp/koi-never",
    "history/hooks/x",
]  # fmt: skip
COMMANDS = [
    "cat .env", "cat .e*", "cat .e?v", "cat .[e]nv", "cat '.env'", "cat .e''nv", "cat .e\\nv", "cat ./.env",
    "cat notes.txt",
    "cat n*s.txt", "cat < .env", "cat<notes.txt", "cat $PWD/.env", "cat {root}/.env", "cat {root}/.e*",
    "cat src/../.env",
    "cat src/up/.env", "cat out/.env", "git -c alias.x='!cat .env' x", "git -c alias.x='!cat .e*' x",
    "cat history/config",
    "git -c core.pager='cat .env' log", "git diff --no-index /dev/null .env", "grep -n . .env",
    "grep -f .env src/a.py",
    "sh -c 'cat .env'", "sh <<'END'\ncat .env\nEND", "cat <<END\n$(cat .env)\nEND", "echo $(cat .env)",
    "echo `cat .env`",
    "cat .env &", "(cat .env)", "true; cat .env", "true && cat notes.txt", "cp .env src/x.py", "ln -s .env x",
    "ln keys/server.pem x", "tar c .git", "python3 -c 'print(open(\".env\").read())'", "source .env", ". ./.env",
    "cat migrations/1.sql", "cat mig/1.sql", "cat m*/1.sql", "cat src/../migrations/1.sql",
    "cat {root}/migrations/1.sql",
    "sed -n p migrations/1.sql", "rm -f src/a.py", "sh -c 'rm -f src/a.py'", "env rm -f src/a.py",
    "xargs rm -f src/a.py",
    "git -c alias.x='!rm -f src/a.py' x", "'rm' -f src/a.py", "r''m -f src/a.py", "true; rm -f src/a.py",
    "\\rm -f src/a.py",
    "env", "printenv", "printenv KOI_TEST_SECRET", "echo $KOI_TEST_SECRET", "true \x00", "cat <NAME>",
    "cat 'unclosed", "true {long}", "cd {root}", "touch koi-made & true",
]  # fmt: skip
SEARCHES = [
    act("grep", pattern="canary", path=path) for path in (".env", "notes.txt", "keys", ".git", ".koi", "out", "mig",
    "migrations", "..")
] + [
    act("grep", pattern=pattern, path="src")
    for pattern in ("(a+)+$", "(x+x+)+y", "(.*.*)*=", "[", "(", "\\", "a{9999999}", "(?P<a>", "x" * 5000, "",
    "\x00", "(?(1)a|b)")
] + [act("grep", pattern="canary", files=files) for files in (".env", "**/.e*", "../**", "{a,b", "!*", "*a" * 60,
    "[")] + [
    act("list_files", pattern=pattern)
    for pattern in ("../**", "/etc/*", "~/**", ".git/**", "**/.env", "out/**", "{a,b}" * 20, "[", "\\", "**/" * 100,
    "a" * 400, "")
] + [act("find_symbol", name=name) for name in ("find_me", "", "a b", "\x00", ".*", "x" * 500,
    "__import__('os')")] + [
    act("read_output", id=-1), act("read_output", id=0), act("read_output", id=1), act("read_output", id="old/1"),
    act("read_output", id=1.5), act("read_output", id=None), act("read_output", id=10**30),
    act("read_skill", name="../../x"), act("read_skill", name="review", file="../../../.env"), act("read_skill",
    name=""),
    act("read_skill", name="review", file="server.pem"), act("read_skill", name="review", file="env.md"),
    act("read_skill", name="review", file="."), act("read_skill", name="review", file="/etc/passwd"),
    act("read_file", path="src/a.py", offset=-1), act("read_file", path="src/a.py", offset="x"), act("read_file",
    path=["a"]),
    act("read_file", path="src/a.py", limit=-5), act("read_file"), act("write_file", path="src/a.py",
    content={"a": 1}),
    act("edit_file", path="src/a.py"), act("edit_file", path="src/a.py", before="", after="x"),
    act("edit_file", path="src/a.py", before="canary", after="x", diff="@@\n"), act("edit_file", path="src/a.py",
    diff="x"),
    act("edit_file", path="src/a.py", diff="--- a/../../x\n+++ b/../../x\n@@ -1 +1 @@\n-nothing\n+x\n"),
    act("edit_file", path="src/a.py", diff="--- a/.env\n+++ b/.env\n@@ -99999 +1 @@\n-nothing\n+x\n"),
    act("call_skill", skill="CodeReading", function="read_file", input={"path": ".env"}),
    act("call_skill", skill="CodeReading", function="__class__", input={}),
    act("call_skill", skill="CodeChanges", function="patch_file", input={"path": ".git/config",
    "diff": "@@\n-a\n+b\n"}),
    act("call_skill", skill="CodeChanges", function="write_file", input={"path": "out/x", "content": "x"}),
    act("run_command", command="cat config", description="x", cwd=".git"),
    act("run_command", command="cat runs/old.jsonl", description="x", cwd=".koi"),
    act("run_command", command="cat 1.sql", description="x", cwd="migrations"),
    act("run_command", command="cat 1.sql", description="x", cwd="mig"),
    act("run_command", command="true", description="x", cwd="nowhere"), act("run_command", command="true",
    cwd="self"),
    act("run_command", command="true", description="x", timeout_ms=0), act("run_command", command="", description=""),
    act("shell", command="cat config", description="x", cwd="history"), act("propose_plan", steps=[]),
]  # fmt: skip


def all_actions() -> list[dict[str, Any]]:
    """The table."""
    made = [act("read_file", path=path) for path in PATHS] + [act("outline", path=path) for path in PATHS[::8]]
    made += [act("write_file", path=path, content="x") for path in WRITTEN]
    made += [act("edit_file", path=path, before="find_me", after="x") for path in WRITTEN[::2]]
    return made + [act("run_command", command=text, description="x") for text in COMMANDS] + SEARCHES


ACTIONS = all_actions()


@dataclass(frozen=True, slots=True)
class Hostile:
    """A project with traps, in which actions are carried out."""

    base: Path

    def carry_out(self, actions: list[dict[str, Any]]) -> Played:
        """What comes of some actions whose names of places are filled in."""
        source = PROGRAM.format(word=word_of("program"), can="read, can write, can execute")
        play = Player(self.base / "project")
        module = play.load(source)
        places = {
            "{root}": str(self.base / "project"), "{program}": Path(str(module.__file__)).name,
    "{long}": "a" * 200_000,
            "{deep}": "d/" * 3000,
        }  # fmt: skip
        rules = Restrictions((parse_rule("*:migrations/**"), parse_rule("run:rm *")))
        tried = [{key: _fill(value, places) for key, value in action.items()} for action in actions]
        added = additions(find_extensions(module, use_installed=False))
        return play(source, [*tried, done()], allow=["shell", "write:**"], added=added, restrictions=rules)


def _fill(value: Any, places: dict[str, str]) -> Any:
    for name, place in places.items() if isinstance(value, str) else ():
        value = value.replace(name, place)
    return value


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    """The project, with a secret in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KOI_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
        patch.setenv("KOI_TEST_SECRET", word_of("environment"))
        yield Hostile(tmp_path_factory.mktemp("written"))
    loader.unload()


def test_the_table_is_long() -> None:
    """At least as many as its page says."""
    assert len(ACTIONS) >= 200


@pytest.mark.parametrize("start", range(0, len(ACTIONS), AT_ONCE))
def test_each_is_refused_in_a_sentence_or_harmless(hostile: Hostile, start: int) -> None:
    """No closed word is told, no closed file changed, and no refusal shows our insides."""
    build(hostile.base)
    hostile.carry_out([])
    before = tree_of(hostile.base)

    played = hostile.carry_out(ACTIONS[start : start + AT_ONCE])

    told, after = everything_told(played), tree_of(hostile.base)
    assert played.error is None, played.told
    assert [] == [path for path in FILES if word_of(path) in told and not may_see(path, DENIED)]
    assert word_of("program") not in told
    assert word_of("environment") not in told
    changed = [path for path in before | after if before.get(path) != after.get(path)]
    assert [] == [path for path in changed if not may_change(path, DENIED)]
    assert (hostile.base / "project/src/a.py").exists()
    assert [] == [text for text in played.feedback if OURS.search(text)]
    assert not os.path.exists("/tmp/koi-never")
