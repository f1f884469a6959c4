"""`koi debug` whose debuggee is forked from it, with what it has imported: `python -m tests.dap.forked debug …`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from koi_lang.cli import main

start_process = asyncio.create_subprocess_exec
KOI = (sys.executable, "-P", "-m", "koi_lang")


async def start_forked(*words: str, **options: Any) -> Process:
    """A process as asyncio starts it, which goes on as `koi` where another one would be executed."""
    if words[: len(KOI)] != KOI:
        return await start_process(*words, **options)
    go_on = partial(carry_out, words[len(KOI) :], options["pass_fds"])
    return await start_process(*words, preexec_fn=go_on, **options)


def carry_out(words: Sequence[str], kept: Sequence[int]) -> None:
    """Be a `koi` command that has just been started: with these descriptors, without the loop of its parent."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    asyncio.set_event_loop(None)
    for before, after in pairwise([2, *sorted(kept), os.sysconf("SC_OPEN_MAX")]):
        os.closerange(before + 1, after)
    code: Any = 1
    try:
        main(list(words))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    asyncio.create_subprocess_exec = start_forked
    main(sys.argv[1:])
