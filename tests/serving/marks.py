"""What served handlers leave behind, and Python that prints."""

from __future__ import annotations

import os
from pathlib import Path

print("imported")


def write(path: str, word: str) -> None:
    """Add a word to a file."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{word}\n")


def shout(word: str) -> None:
    """Write to standard output in every way."""
    print(word, flush=True)
    os.write(1, f"{word}\n".encode())
    os.system(f"echo {word}")
