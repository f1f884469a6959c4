"""Programs that ask for more than their budgets allow, many requests at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from benchmarks.security.trials import AttackKind, Trial
from koi_lang.program import loader
from tests.playbook.playing import Player
from tests.playbook.test_budget_trees import SEEDS, played


def spend(base: Path, cases: Sequence[int]) -> Iterator[Trial]:
    """Delegate in random trees, in parallel, with retries and cancellations, until the budgets are used up."""
    with mock.patch.dict(os.environ, {"KOI_CACHE_DIR": str(base / "cache")}):
        try:
            for seed in cases:
                came, model, limits = played(Player(base), seed, honest=True)
                over = [payer.what for payer in model.payers if payer.overspent()]
                yield Trial(f"tree {seed}", not over and came.run.spending.tokens <= limits["tokens"])
        finally:
            loader.unload()


KINDS = (
    AttackKind(
        "budgets",
        "budgets of agents that delegate in parallel",
        SEEDS,
        spend,
        "a provider that counts more than it was asked for goes beyond a budget by that one request",
    ),
)
