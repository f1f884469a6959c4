"""Commands of `koi` inside the test process, which goes on when they end."""

from __future__ import annotations

import os
import sys
from unittest import mock

from koi_lang.cli import main


def exit_code_of(*words: str) -> int:
    """Carry a command out, and return its exit code.

    One that fails ends its process where threads are left over. Here these may be those of another test, so that only
    the command ends; processes that it forks end as ever, since they would go on with the tests.
    """
    here, end_process = os.getpid(), os._exit

    def end(code: int) -> None:
        sys.exit(code) if os.getpid() == here else end_process(code)

    with mock.patch.object(os, "_exit", end):
        try:
            main(list(words))
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
