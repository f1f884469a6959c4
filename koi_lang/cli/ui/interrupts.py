"""An async command to its end, and what Ctrl-C and other signals do to it."""

from __future__ import annotations

import _thread
import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from koi_lang.lazy import lazy_module
from koi_lang.runtime.concurrency.cancellation import CancelScope

if TYPE_CHECKING:
    from concurrent import futures

    from koi_lang.cli.ui import keyboard
else:
    keyboard = lazy_module("koi_lang.cli.ui.keyboard")
    futures = lazy_module("concurrent.futures")

# What ends a command in order, each with what the person is told.
MESSAGES = {
    "SIGINT": "interrupted; Ctrl-C once more ends it at once",
    "SIGTERM": "ended by SIGTERM",
    "SIGHUP": "ended by SIGHUP",
}
# Windows has no SIGHUP.
SIGNALS = {number: MESSAGES[number.name] for number in signal.Signals if number.name in MESSAGES}
# A signal that follows sooner is the same one: a terminal and a parent process may both have sent it.
SAME_S = 0.3
# What a shell adds to the number of the signal that ended a process.
BY_SIGNAL = 128
# What an event loop hands work to, once it does.
THREADS = "concurrent.futures.thread"


class SignalError(KeyboardInterrupt):
    """A signal has ended a command, and the person has been told.

    Attributes:
        exit_code: that of the process.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self.exit_code = number, BY_SIGNAL + number


class Interrupts:
    """The handler of the signals that end a command: in order first, and at once the second time.

    Args:
        tell: shows the person a line.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._scope = CancelScope()
        self._first, self._since = 0, 0.0
        self._untold: list[str] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._modes = keyboard.terminal_modes() if os.isatty(0) else None

    async def around(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work, unless a signal ends it."""
        self._loop = asyncio.get_running_loop()
        async with self._scope:
            await work

    def require_done(self) -> None:
        """Raise SignalError when a signal has ended the work."""
        if self._scope.caught is not None:
            raise SignalError(self._first).with_traceback(self._scope.caught.__traceback__)

    @contextmanager
    def install(self) -> Iterator[None]:
        """A context in which signals come here, but for those that the process ignores.

        Only the main thread of a process handles signals; in others the context does nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        usual = {number: signal.getsignal(number) for number in SIGNALS}
        ours = [number for number in SIGNALS if usual[number] in (signal.SIG_DFL, signal.default_int_handler)]
        for number in ours:
            signal.signal(number, self)
        try:
            yield
        finally:
            for number in ours:
                signal.signal(number, usual[number])

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: the first one interrupts, the next one ends the process."""
        if self._first:
            self._end_at_once(number)
            return
        self._first, self._since = number, monotonic()
        if self._loop is not None and not self._loop.is_closed():
            self._untold.append(SIGNALS[signal.Signals(number)])
            self._loop.call_soon_threadsafe(self._tell_once)
            # Not a `Thread`: to start one takes a lock, which the interrupted code may hold.
            _thread.start_new_thread(self._tell_late, ())
        self._scope.cancel()

    def _tell_late(self) -> None:
        """Tell it where code that computes keeps the loop from doing so."""
        sleep(SAME_S)
        self._tell_once()

    def _tell_once(self) -> None:
        with suppress(IndexError):  # the other one of them was faster
            self._tell(self._untold.pop())

    def _end_at_once(self, number: int) -> None:
        """End the process with no regard to what is under way, and the terminal as it was."""
        if monotonic() < self._since + SAME_S:
            return
        if self._modes is not None:
            keyboard.set_terminal_modes(self._modes)
        os._exit(BY_SIGNAL + number)


def carried_out(work: Coroutine[Any, Any, None], tell: Callable[[str], None]) -> None:
    """Do some work in an event loop of its own. When it fails, the threads that it has started are not waited for.

    Raises:
        SignalError: a signal has ended it.
    """
    interrupts = Interrupts(tell)
    with asyncio.Runner() as runner, interrupts.install():
        try:
            runner.run(interrupts.around(work))
            interrupts.require_done()
        except BaseException:
            if THREADS in sys.modules:
                runner.get_loop().set_default_executor(futures.ThreadPoolExecutor())
            raise


def serve_until_ended(work: Coroutine[Any, Any, None], tell: Callable[[str], None]) -> None:
    """Do work that has no end of its own: SIGTERM is how it ends well. Raises SignalError after another signal."""
    try:
        carried_out(work, tell)
    except SignalError as error:
        if error.number != signal.SIGTERM:
            raise


def leave(code: int) -> NoReturn:
    """End the process; threads do not keep it when it has failed, since nothing can end them.

    Of a process that carries commands out in threads, only the command ends.
    """
    is_process = threading.current_thread() is threading.main_thread()
    if (
        code
        and is_process
        and any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread())
    ):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


# ---------------------------------------------------------------- signals of an event loop, which Windows lacks


def add_signal_handler(name: str, handler: Callable[..., Any], *args: Any) -> None:
    """Have the running loop call a function at a signal such as `SIGWINCH`."""
    if hasattr(signal, name):
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(getattr(signal, name), handler, *args)


def remove_signal_handler(name: str) -> None:
    """Have it call none any more."""
    if hasattr(signal, name):
        with suppress(NotImplementedError):
            asyncio.get_running_loop().remove_signal_handler(getattr(signal, name))
