"""Journals of strangers, which a person is made to go on with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from benchmarks.security.trials import AttackKind, Trial
from tests.journal.commands import Commands
from tests.journal.test_trust import FORGERIES, PROGRAM
from tests.projects import Project

# Ways to go on with a run.
RESUMING = (
    ("resume",),
    ("resume", "--branch"),
    ("resume", "last", "--at", "2", "--on-doubt", "retry"),
    ("resume", "--on-doubt", "retry", "--quiet"),
)
# Where a journal comes from, besides the ways to forge lines of it.
ORIGINS = ("of another machine", "of another folder")


def resume(base: Path, cases: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[Trial]:
    """Go on with a journal that was cut behind its first effect, and that this machine has not written as it is."""
    for at, (origin, words) in enumerate(cases):
        folder = base / str(at) / "project"
        folder.mkdir(parents=True)
        own = {"KOI_CACHE_DIR": str(base / "cache"), "KOI_CONFIG_DIR": str(base / "config"), "KOI_TRUST_FOLDER": "1"}
        with mock.patch.dict(os.environ, own):
            koi = _cut(folder)
            if origin == "of another folder":
                koi = Commands(Project(folder.with_name("other")))
                shutil.copytree(folder, koi.folder)
            elif origin in FORGERIES:
                head, *lines = koi.journal.read_bytes().splitlines(keepends=True)
                koi.journal.write_bytes(b"".join(FORGERIES[origin](head, lines, koi.journal.stem)))
            if origin == "of another machine":
                os.environ["KOI_CONFIG_DIR"] = str(base / "other")
            koi(*words)
            has_gone_on = (koi.folder / "effects").exists()
            (koi.folder / "effects").unlink(missing_ok=True)
            koi(*words, "--trust")
            yield Trial(
                f"a journal {origin}: koi {' '.join(words)}", not has_gone_on, (koi.folder / "effects").exists()
            )


def _cut(folder: Path) -> Commands:
    """A run that was killed behind its first effect."""
    koi = Commands(Project(folder))
    assert koi.record(PROGRAM, None, "--allow", "shell").code == 0
    koi.cut_behind("done")
    (folder / "effects").unlink()
    shutil.copy(folder / "main.koi", folder / "evil.koi")
    return koi


KINDS = (
    AttackKind(
        "journals",
        "journals of strangers",
        [(origin, words) for origin in (*ORIGINS, *FORGERIES) for words in RESUMING],
        resume,
        "who says `--trust` has looked at it",
    ),
)
