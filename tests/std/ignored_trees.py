"""Random trees with `.gitignore` files in many of their folders, and what git itself ignores of them."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = (
    *("a b ab foo bar foo.c a.o aXb Foo foo.bar.c z- ^k 0 é q] [x] *lit a# !n \\q".split()),
    *("x y", "b ", "a\tb"),
)
STARS = "* *.c *.o f* *o a*b *a* ?? ? *.* f*o*c ** ** ** a** **b fo**o *** **a** f**".split()
SETS = (
    "[a-f]* [!a]* [^b] [[:alpha:]] [[:upper:]]* []a] [a [a- [\\]x]* [[:nope:]] [[:space:]b] [a-c][!o]* x[[:space:]]y"
    " [x-]* [--z] [z-a] [[:digit:]-z] ?[!/]* [[:] [a[:digit:]z] [é] [^[:alnum:]]* [!]x]* [[:punct:]]* [\\a-\\f]* [/]"
    " [[:cntrl:]]* a[[:blank:]]b [[:xdigit:]]*"
).split()
ESCAPES = ("\\*lit", "\\#x", "\\!n", "\\a", "foo\\", "\\\\q", "b\\ ", "a\\#", "\\[x\\]", "fo\\o*", "x\\ y")
ENDS = ("  ", " \t", "\r", "\\ ", "/ ", "//", "\0x")


def make(chance: random.Random, root: Path) -> dict[str, bool]:
    """Fill a folder; gives the paths with whether they are folders."""
    found: dict[str, bool] = {}
    waiting = [(root, "", 0)]
    while waiting:
        folder, before, depth = waiting.pop()
        if chance.random() < (0.8 if depth == 0 else 0.25):
            (folder / ".gitignore").write_bytes(_rules(chance))
        for name in sorted({chance.choice(NAMES) for _ in range(chance.randint(1, 6))}):
            found[before + name] = depth < 4 and chance.random() < 0.45
            if found[before + name]:
                (folder / name).mkdir()
                waiting.append((folder / name, f"{before}{name}/", depth + 1))
            elif chance.random() < 0.1:
                (folder / name).symlink_to("..")
            else:
                (folder / name).touch()
    return found


def ignored_by_git(root: Path, paths: list[str]) -> set[str]:
    """What git ignores of some paths."""
    if shutil.which("git") is None:
        pytest.skip("GIT IS MISSING: what it ignores is not compared")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    words = ("git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "--stdin", "-z")
    told = subprocess.run(words, cwd=root, input="\0".join(paths).encode() + b"\0", capture_output=True, check=False)
    assert told.returncode in (0, 1), told.stderr
    return set(told.stdout.decode().split("\0")) - {""}


def _rules(chance: random.Random) -> bytes:
    mark = "\ufeff" if chance.random() < 0.05 else ""
    return (mark + "\n".join(_rule(chance) for _ in range(chance.randint(1, 7))) + chance.choice(("", "\n"))).encode()


def _rule(chance: random.Random) -> str:
    rule = "/".join(_part(chance) for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))))
    rule = ("/" if chance.random() < 0.2 else "") + rule + ("/" if chance.random() < 0.2 else "")
    rule = ("!" if chance.random() < 0.25 else "") + rule + (chance.choice(ENDS) if chance.random() < 0.06 else "")
    return ("#" if chance.random() < 0.03 else "") + rule


def _part(chance: random.Random) -> str:
    kinds = (NAMES, STARS, SETS, ESCAPES)
    (kind,) = chance.choices((*kinds, None), (35, 35, 15, 7, 8))
    if kind is not None:
        return chance.choice(kind)
    return "".join(chance.choice("ab*?[]!^-\\/ .#fo") for _ in range(chance.randint(1, 6)))
