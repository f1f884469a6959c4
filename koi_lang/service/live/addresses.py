"""Where the sockets of runs are, and how to listen and connect there, however long the path is."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from koi_lang.errors import undone_by
from koi_lang.system.open_folders import STATE_FOLDER, make_state_folder

FOLDER, SUFFIX = "live", ".sock"
# Bytes of a name that every system takes.
MAX_NAME_BYTES = 100
BACKLOG = 64
# How long somebody who listens has to take a connection.
CONNECT_S = 2.0
# So many sockets of others are looked at when one is made.
MAX_SWEPT = 8
# Process, user and group of whoever is at the other end.
PEER = struct.Struct("3i")


class ForeignSocketError(OSError):
    """A socket, or its folder, is not the person's own."""


def socket_path(folder: Path, run: str) -> Path:
    """The socket of a run that works in a folder, whether or not there is one."""
    return folder / STATE_FOLDER / FOLDER / f"{run}{SUFFIX}"


def has_sockets() -> bool:
    """Whether this system has sockets with paths."""
    return hasattr(socket, "AF_UNIX") and hasattr(os, "getuid")


def is_there(path: Path) -> bool:
    """Whether there is a socket of the person's own; nobody may listen there any more."""
    with suppress(OSError):
        _require_own(path)
        return True
    return False


# ---------------------------------------------------------------- listening


def listen(path: Path) -> socket.socket:
    """A socket that only this user can connect to; a stale one of a killed process is removed.

    Raises:
        FileExistsError: somebody listens there, or the path is something else.
        OSError: there can be no socket.
    """
    _make_folder(path.parent)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with undone_by(listening.close):
        with _short_name(path) as name:
            try:
                listening.bind(name)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                if not remove_if_stale(path):
                    raise FileExistsError(errno.EEXIST, "somebody listens there", str(path)) from error
                listening.bind(name)
        os.chmod(path, 0o600)  # before `listen` nobody can connect
        listening.listen(BACKLOG)
        listening.setblocking(False)
    return listening


def _make_folder(folder: Path) -> None:
    """Have a folder of the person's own. Raises OSError."""
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        make_state_folder(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise ForeignSocketError(errno.EPERM, "it is not the person's own folder", str(folder))
    if stat.S_IMODE(status.st_mode) != 0o700:
        os.chmod(folder, 0o700)


def sweep(folder: Path, most: int | None = MAX_SWEPT) -> None:
    """Remove sockets of a folder's runs at which nobody listens any more; at all others a connection comes and goes.

    Args:
        most: how many are looked at; None for all.
    """
    with suppress(OSError), os.scandir(socket_path(folder, "").parent) as entries:
        for entry in islice(entries, most):
            if entry.name.endswith(SUFFIX):
                remove_if_stale(Path(entry.path))


def remove_if_stale(path: Path) -> bool:
    """Remove a socket at which nobody listens; gives whether it is gone."""
    try:
        connect(path).close()
    except FileNotFoundError:
        return True
    except ConnectionRefusedError:
        path.unlink(missing_ok=True)
        return True
    except OSError:
        return False
    return False


# ---------------------------------------------------------------- connecting


def connect(path: Path) -> socket.socket:
    """A connection to the listener at a path, which is a socket of this user.

    Raises:
        FileNotFoundError: there is none.
        ConnectionRefusedError: nobody listens there any more.
        ForeignSocketError: it is somebody else's.
        OSError: it takes no more connections, or is something else.
    """
    _require_own(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with undone_by(connection.close):
        connection.settimeout(CONNECT_S)
        with _short_name(path) as name:
            connection.connect(name)
        if not is_own_peer(connection):
            raise ForeignSocketError(errno.EPERM, "somebody else listens there", str(path))
    return connection


def _require_own(path: Path) -> None:
    """Raise OSError unless a path is a socket of this user."""
    status = os.lstat(path)
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid():
        raise ForeignSocketError(errno.EPERM, "it is no socket of this user", str(path))


def is_own_peer(connection: socket.socket) -> bool:
    """Whether a process of the same user is at the other end, as far as the system tells."""
    peer = peer_of(connection)
    return peer is None or peer[1] == os.getuid()


def peer_of(connection: socket.socket) -> tuple[int, int] | None:
    """The process and the user at the other end; None where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    process, user, _ = PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
    return process, user


def is_descendant(process: int) -> bool:
    """Whether a process was begun by this one, or by one that was, as far as the system tells.

    One that the system does not show counts as well: it has ended since it connected, or is in another container. In a
    container this process is often number 1, by which all others are begun but those that somebody enters it with.
    """
    own = os.getpid()
    if process != own and _parent_of(process) is None:
        return True
    while process not in (own, 0, 1):
        process = _parent_of(process) or 0
    return process == own


def _parent_of(process: int) -> int | None:
    """The parent of a process, 0 outside of the visible ones; None where the system shows none."""
    try:
        status = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    return int(status.rpartition(b")")[2].split()[1])


@contextmanager
def _short_name(path: Path) -> Iterator[str]:
    """A name for a path that is short enough for a socket, within this context. Raises OSError where there is none."""
    names = (str(path), os.path.relpath(path))
    name = next((name for name in names if len(os.fsencode(name)) <= MAX_NAME_BYTES), None)
    if name is not None:
        yield name
        return
    if not os.path.isdir("/proc/self/fd"):
        raise OSError(errno.ENAMETOOLONG, "the path is too long for a socket", str(path))
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
