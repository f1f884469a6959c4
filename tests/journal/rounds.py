"""Runs that are killed, resumed, killed while they are resumed, and so on until they end.

Run as `python -m tests.journal.rounds SEED…` in a folder with `main.koi` and `answers.json`; it writes what came of
each seed as one JSON object a line.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.journal.killing import RESUME, RUN, anew, forked, kill_after, load_all

MOST_LINES, MOST_ROUNDS = 40, 60


def until_it_ends(base: Path, seed: int) -> dict[str, object]:
    """What came of a run that was killed after a few lines again and again."""
    folder, chance = anew(base), random.Random(seed)
    words: Sequence[str] = RUN
    code, kills = -9, 0
    while code < 0 and kills < MOST_ROUNDS:
        code = forked(words, folder, partial(kill_after, chance.randint(1, MOST_LINES)))
        kills, words = kills + (code < 0), RESUME
    texts = {name: (folder / name).read_text() for name in ("out", "err", "effects")}
    shutil.rmtree(folder)
    return {"seed": seed, "code": code, "kills": kills, **texts}


if __name__ == "__main__":
    load_all()
    for seed in map(int, sys.argv[1:]):
        sys.stdout.write(json.dumps(until_it_ends(Path.cwd(), seed)) + "\n")
        sys.stdout.flush()
