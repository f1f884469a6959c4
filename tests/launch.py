"""A command as a process that starts at once: it has another one forked, lends it its streams, and ends as that does.

`python -I -S tests/launch.py PATH WORDS` is `python WORDS`, with the process that listens at a socket to do the work.
Signals are passed on, and with the end of this process the other one is killed.
"""

import json
import os
import signal
import socket
import sys


def launched(path: str, words: list[str], streams: tuple[int, ...] = (0, 1, 2), **wanted: object) -> socket.socket:
    """The connection over which the process and its exit code are told, each on a line."""
    asker = socket.socket(socket.AF_UNIX)
    asker.connect(path)
    socket.send_fds(asker, [b"+"], streams)
    asker.sendall(json.dumps({"words": words, "outlives": False, **wanted}).encode() + b"\n")
    return asker


def give_up_terminal() -> None:
    """Leave the control of a terminal to another process."""
    import fcntl
    import termios

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    fcntl.ioctl(0, termios.TIOCNOTTY)


def main(path: str, words: list[str]) -> int:
    """How the other process ended."""
    terminal = os.isatty(0)
    if terminal:
        give_up_terminal()
    told = launched(path, words, folder=os.getcwd(), environment=dict(os.environ), terminal=terminal).makefile()
    process = int(told.readline())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(process, number))
    for stream in (0, 1, 2):
        os.close(stream)
    return int(told.readline())


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2:])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
