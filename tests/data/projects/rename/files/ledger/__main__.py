"""`python3 -m ledger REPORT < FILE`."""

import argparse
import sys
from importlib import import_module

from ledger.entries import parse


def main() -> None:
    """Print one report, or every entry."""
    parser = argparse.ArgumentParser(prog="ledger")
    parser.add_argument("report", nargs="?", default="")
    given, text = parser.parse_args(), sys.stdin.read()
    if given.report:
        print(getattr(import_module(f"ledger.reports.{given.report}"), given.report)(text))
    else:
        print(*parse(text), sep="\n")


if __name__ == "__main__":
    main()
