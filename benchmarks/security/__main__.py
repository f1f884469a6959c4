"""Attacks that Koi should hold: `python -m benchmarks.security` tries them and prints how many it held."""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from benchmarks.security.kinds import KINDS
from benchmarks.security.results import AttackResult, count, dojo_table, save, save_dojo, table
from benchmarks.security.trials import AttackKind, NotRunError, Trial


def main(words: Sequence[str]) -> int:
    """Try attacks and print a table; gives 1 when one gets through, 2 for a kind that does not exist."""
    parser = ArgumentParser("python -m benchmarks.security", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all of them without one")
    parser.add_argument("--save", action="store_true", help="keep the results for the manual")
    parser.add_argument("--agentdojo", action="store_true", help="the 949 pairs of AgentDojo, in about five minutes")
    options = parser.parse_args(words)
    if options.agentdojo:
        return _measure_agentdojo(options.save)
    if unknown := [name for name in options.kinds if name not in KINDS]:
        parser.error(f"there is no kind `{unknown[0]}`; there are {', '.join(KINDS)}")
    results = {name: _result(KINDS[name]) for name in options.kinds or KINDS}
    print(table(results.values()))
    if options.save:
        save({name: result for name, result in results.items() if not result.missing}, KINDS)
    return int(any(result.held < result.tried for result in results.values()))


def _measure_agentdojo(must_save: bool) -> int:
    """Print what roles stop in AgentDojo; gives 1 when a call ran outside of its role, 2 where it is not installed."""
    try:
        from benchmarks.security import dojo
    except ModuleNotFoundError as error:
        if error.name != "agentdojo":
            raise
        print("error: AgentDojo is missing; `pip install -e '.[agentdojo]'` installs it", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="koi-attacks-") as folder:
        results = dojo.measure(dojo.pairs(), Path(folder))
    print(dojo_table(results))
    if must_save:
        save_dojo(results)
    return int(any(result.outside for result in results.values()))


def _result(kind: AttackKind) -> AttackResult:
    """The result of all attacks of a kind, after a line about each that gets through."""
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="koi-attacks-") as folder:
        try:
            for trial in kind.attempt(Path(folder), kind.cases):
                trials.append(trial)
                if not trial.is_held:
                    print(f"{kind.name}: {trial.attack} gets through", file=sys.stderr)
        except NotRunError as error:
            return count(kind, (), str(error))
    print(f"{kind.name}: {len(trials)} tried", file=sys.stderr)
    return count(kind, trials)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
