"""Compare generated programs with Node for long: `python -m tests.differential --count 20000 --seed 1`.

Prints how many of a thousand differ, and the smallest programs found that do. With `--grep TEXT` only programs that
hold a text count, and with `--show N` at most so many are made smaller.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from itertools import islice

from tests.differential.engines import koi_outputs, node_outputs
from tests.differential.generate import programs
from tests.differential.shrink import shrink

SIZE = 100


def differences(bodies: Sequence[str]) -> list[tuple[str, str, str]]:
    """The programs that print other things in Koi than in Node, with both."""
    pairs = zip(bodies, koi_outputs(bodies), node_outputs(bodies), strict=True)
    return [(body, koi, node) for body, koi, node in pairs if koi != node]


def first_difference(koi: str, node: str) -> tuple[str, str]:
    """The first line that differs."""
    ours, theirs = koi.split("\n"), node.split("\n")
    at = next((at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(ours), len(theirs)) if at is None else at
    return "\n".join(ours[at : at + 2]), "\n".join(theirs[at : at + 2])


def sort_of(body: str) -> tuple[str, str] | None:
    """What a program ends with in Koi and in Node where it differs: an error, a refusal, or nothing special."""
    found = differences([body])
    if not found:
        return None
    ours, theirs = (re.match("thrown .*|KOI|NODE|", line) for line in first_difference(*found[0][1:]))
    return (ours[0] if ours else "", theirs[0] if theirs else "")


def report(body: str) -> None:
    """Show a program that differs, made smaller."""
    wanted = sort_of(body)
    small = shrink(body, lambda smaller: sort_of(smaller) == wanted)
    ours, theirs = first_difference(koi_outputs([small])[0], node_outputs([small])[0])
    print(f"{'-' * 60}\n{small}\n  koi:  {ours}\n  node: {theirs}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Compare; 1 when more than one of a thousand differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--grep", default="")
    options = parser.parse_args(arguments)
    generated = (body for body in programs(options.seed) if options.grep in body)
    seen, found = 0, list[tuple[str, str, str]]()
    while seen < options.count:
        bodies = list(islice(generated, min(SIZE, options.count - seen)))
        found += differences(bodies)
        seen += len(bodies)
        print(f"{seen} programs, {len(found)} differ", file=sys.stderr, flush=True)
    for body, *_ in sorted(found, key=lambda each: len(each[0]))[: options.show]:
        report(body)
    print(f"{seen} programs of seed {options.seed}: {1000 * len(found) / seen:.2f} of a thousand differ")
    return int(len(found) > seen / 1000)


if __name__ == "__main__":
    sys.exit(main())
