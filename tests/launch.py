"""A command as a process that starts at once: it has another one forked, lends it its streams, and ends as that does.

`python -I -S tests/launch.py PATH WORDS` is `python WORDS`, with the process that listens at a socket to do the work.
Signals are passed on, and with the end of this process the other one is killed.

It imports the C modules alone: what `json`, `signal` and `socket` import takes longer than all the rest.
"""

import _signal as signal
import _socket as socket
import os
import sys

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def launch(asker: socket.socket, path: str, words: list[str], streams: tuple[int, ...], **wanted: object) -> None:
    """Ask for a process at a socket; its number and its exit code are sent over the connection, each on a line."""
    asker.connect(path)
    numbers = b"".join(stream.to_bytes(4, sys.byteorder) for stream in streams)
    asker.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
    asker.sendall(repr({"words": words, "outlives": False, **wanted}).encode() + b"\n")


def read_number(asker: socket.socket) -> int:
    """The number on the next line; the one behind it may have come, too."""
    line = b""
    while (byte := asker.recv(1)) not in (b"\n", b""):
        line += byte
    return int(line)


def give_up_terminal() -> None:
    """Leave the control of a terminal to another process."""
    import fcntl
    import termios

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    fcntl.ioctl(0, termios.TIOCNOTTY)


def pass_on(process: int, number: int) -> None:
    """Send a signal to the other process, which may have ended already."""
    try:  # noqa: SIM105  (`contextlib` takes longer to import than all the rest)
        os.kill(process, number)
    except ProcessLookupError:
        pass


def main(path: str, words: list[str]) -> int:
    """How the other process ended; signals wait until its number is known."""
    terminal = os.isatty(0)
    if terminal:
        give_up_terminal()
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    asker = socket.socket(socket.AF_UNIX)
    launch(asker, path, words, (0, 1, 2), folder=os.getcwd(), environment=dict(os.environ), terminal=terminal)
    process = read_number(asker)
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: pass_on(process, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    for stream in (0, 1, 2):
        os.close(stream)
    return read_number(asker)


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2:])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
