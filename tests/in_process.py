"""Commands of `koi` inside the test process, which goes on when they end."""

from __future__ import annotations

import os
import sys
from unittest import mock

from koi_lang.cli import main


def exit_code_of(*words: str) -> int:
    """Carry a command out, and return its exit code.

    One that fails ends its process where threads are left over. Here these may be those of another test, so that only
    the command ends.
    """
    with mock.patch.object(os, "_exit", sys.exit):
        try:
            main(list(words))
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
