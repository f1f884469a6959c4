"""A project full of traps, with a word of its own in every file, and what of it may be read and changed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

FILES = (
    "project/src/a.py", "project/src/deep/b.py", "project/docs/x.md", "project/docs/a:b.md", "project/README.md",
    "project/migrations/1.sql", "project/.env", "project/prod.env", "project/keys/server.pem", "project/keys/a:b.pem",
    "project/.git/config", "project/.git/hooks/pre-commit", "project/.koi/runs/old.jsonl", "project/.koi/outputs/old/1",
    "project/koi.toml", "project/.mcp.json", "project/.agents/skills/review/notes.md",
    "project/.agents/skills/review/server.pem", "outside/secret.txt", "outside/.env",
)  # fmt: skip
LINKS = {
    "project/out": "../outside", "project/src/up": "..", "project/notes.txt": ".env", "project/mig": "migrations",
    "project/src/secret.py": "../../outside/secret.txt", "project/self": "self", "project/tool.md": "docs/x.md",
    "project/.agents/skills/review/env.md": "../../../.env", "project/history": ".git",
}  # fmt: skip
SKILL = "---\nname: review\ndescription: Reviews changes.\n---\nLook at all of it.\n"
# What is closed, by the first reading of the issue of such names; `koi.toml` may be read.
CLOSED = re.compile(r"(^|/)(\.koi|\.git|(.*\.)?env|\.env\..*|.*\.pem)[. ]*(:.*)?(/|$)")
PROGRAM = re.compile(r"[0-9a-f]{12}\.koi")
SETTINGS = re.compile(r"(^|/)(koi\.toml|\.mcp\.json|\.koi-config\.json)[. ]*(:.*)?$")


def word_of(path: str) -> str:
    """What only this file holds."""
    return f"canary{hashlib.sha256(path.encode()).hexdigest()[:12]}"


def build(base: Path) -> None:
    """Make everything anew, apart from programs."""
    for name in ("project", "outside"):
        for entry in (base / name).iterdir() if (base / name).exists() else ():
            if entry.suffix != ".koi":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    for path in FILES:
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_text(f"def find_me():\n    return '{word_of(path)}'\n" if path[-5:] != ".toml" else "")
    (base / "project/.agents/skills/review/SKILL.md").write_text(SKILL)
    for path, target in LINKS.items():
        (base / path).symlink_to(target)
    os.mkfifo(base / "project/pipe")


def may_see(path: str, denied: Sequence[str]) -> bool:
    """Whether the content of a file may be known, by its path from the base with links resolved."""
    name = unicodedata.normalize("NFKC", path).casefold().removeprefix("project/")
    if not path.startswith("project/") or CLOSED.search(name) or PROGRAM.fullmatch(name):
        return False
    return not any(name.startswith(folder) for folder in denied)


def may_change(path: str, denied: Sequence[str]) -> bool:
    """Whether a file may be made or changed, once it is allowed."""
    name = unicodedata.normalize("NFKC", path).casefold().removeprefix("project/")
    return may_see(path, denied) and not SETTINGS.search(name)


def tree_of(base: Path) -> dict[str, str]:
    """What there is: files by their content and mode, links by where they lead."""
    return {file.relative_to(base).as_posix(): _state(file) for file in _walk(base)}


def _walk(folder: Path) -> Iterator[Path]:
    for file in folder.iterdir():
        if file.is_dir() and not file.is_symlink():
            yield from _walk(file)
        else:
            yield file


def _state(file: Path) -> str:
    about = file.lstat()
    if stat.S_ISLNK(about.st_mode):
        return f"link to {os.readlink(file)}"
    content = hashlib.sha256(file.read_bytes()).hexdigest() if stat.S_ISREG(about.st_mode) else ""
    return f"{about.st_mode:o} {content}"
