"""Counts the lines, words and letters of what it is given."""

import argparse
import sys

KINDS = {"lines": str.splitlines, "words": str.split, "letters": lambda text: "".join(text.split())}


def main() -> None:
    """Print one number, or all."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    chosen = parser.add_mutually_exclusive_group()
    for kind in KINDS:
        chosen.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind)
    kind, text = parser.parse_args().kind, sys.stdin.read()
    counts = {name: len(split(text)) for name, split in KINDS.items()}
    print(counts[kind] if kind else ", ".join(f"{count} {name}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
