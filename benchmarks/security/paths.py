"""Paths and patterns of actions that lead to what is closed, denied, or outside of the project."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.security.trials import AttackKind, Trial
from koi_lang.program import loader
from tests.adversary.hostile_project import FILES, build, may_change, may_see, tree_of, word_of
from tests.adversary.test_random_actions import everything_told
from tests.adversary.test_written_actions import ACTIONS, DENIED, Hostile


def act(base: Path, cases: Sequence[dict[str, Any]]) -> Iterator[Trial]:
    """Carry out actions of std/code in a project full of traps; some files are closed, some denied."""
    hostile = Hostile(base)
    environment = {"KOI_TEST_SECRET": word_of("environment")}
    # What Koi itself keeps there is no change by an action.
    with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, environment, KOI_CACHE_DIR=cache):
        try:
            for case in cases:
                build(base)
                hostile.carry_out([])
                before = tree_of(base)
                told = everything_told(hostile.carry_out([case]))
                after = tree_of(base)
                seen = [path for path in FILES if word_of(path) in told and not may_see(path, DENIED)]
                changed = [path for path in before | after if before.get(path) != after.get(path)]
                leaked = [*seen, *(path for path in changed if not may_change(path, DENIED))]
                yield Trial(str(case), not leaked and word_of("environment") not in told)
        finally:
            loader.unload()


KINDS = (
    AttackKind(
        "paths",
        "paths and patterns in actions of std/code",
        ACTIONS,
        act,
        "files that only their content makes a secret are open to agents with `read`",
    ),
)
