"""Spellings of a command that a rule denies, as a shell carries them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.security.trials import AttackKind, Trial, Victim, shell
from tests.guards import test_started_commands as started
from tests.guards.test_shell_reader import LINES, OTHERS, WRITTEN

ALLOWING = '[shell]\nsandbox = "none"\n[permissions]\nallow = ["run:**"]\n'
DENYING = f'{ALLOWING}deny = ["run:git push*"]\n'
# A `git` that leaves a file where it is asked to push.
GIT = '#!/bin/sh\ncase " $* " in *" push "*) echo > pushed;; esac\n'
MAX_MS = 2000
REMOVING = f'{ALLOWING}deny = ["run:rm"]\n'
TO_REMOVE = "a"


def push(base: Path, cases: Sequence[str]) -> Iterator[Trial]:
    """Push to a repository although a rule denies `git push`."""
    guarded = _pushed(Victim.at(base / "guarded", DENYING), cases)
    unguarded = _pushed(Victim.at(base / "unguarded", ALLOWING), cases)
    for text, has_pushed, can_push in zip(cases, guarded, unguarded, strict=True):
        yield Trial(text, not has_pushed, can_push)


def _pushed(victim: Victim, cases: Sequence[str]) -> list[bool]:
    victim.write("../bin/git", GIT).chmod(0o755)
    folders = [victim.write(f"{at}/x.txt", "x\n").parent for at in range(len(cases))]
    victim.obey([shell(text, cwd=folder.name, timeout_ms=MAX_MS) for text, folder in zip(cases, folders, strict=True)])
    return [(folder / "pushed").exists() for folder in folders]


def remove(base: Path, cases: Sequence[str]) -> Iterator[Trial]:
    """Remove a file by a program that starts others, although a rule denies `rm`."""
    guarded = _removed(Victim.at(base / "guarded", REMOVING), cases)
    unguarded = _removed(Victim.at(base / "unguarded", ALLOWING), cases)
    for text, has_removed, can_remove in zip(cases, guarded, unguarded, strict=True):
        yield Trial(text, not has_removed, can_remove)


def _removed(victim: Victim, cases: Sequence[str]) -> list[bool]:
    folders = [victim.write(f"{at}/x.txt", "x\n").parent for at in range(len(cases))]
    for folder in folders:
        (folder / TO_REMOVE).write_text("x\n", "utf-8")
    victim.obey([shell(text, cwd=folder.name, timeout_ms=MAX_MS) for text, folder in zip(cases, folders, strict=True)])
    return [not (folder / TO_REMOVE).exists() for folder in folders]


KINDS = (
    AttackKind(
        "spellings",
        "other spellings of a command that a rule denies",
        [*WRITTEN, *LINES, *OTHERS],
        push,
        "a command that is put together while it runs, or that stands in a file, is not seen: what must not happen "
        'needs `[trust] WORD = "never"`, a role without `execute`, or no key',
    ),
    AttackKind(
        "starters",
        "a denied command that another program starts by an option, a variable or its input",
        [*started.USUAL, *started.DOCUMENTS, *started.OTHERS],
        remove,
        "a program that is not in the table of those that start others, and a copy of a denied one by another name",
    ),
)
