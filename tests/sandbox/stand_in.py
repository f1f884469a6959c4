"""Stands in for bubblewrap: the options that koi gives it, by namespaces of the kernel as it has them itself.

It is a program of its own, `stand_in.py OPTIONS -- COMMAND`, and imports nothing once it has left the file system that
it was started in. What it says of an option is what the manual page of bubblewrap says.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_NAMESPACES = {
    "mnt": 0x20000,
    "cgroup": 0x2000000,
    "uts": 0x4000000,
    "ipc": 0x8000000,
    "user": 0x10000000,
    "pid": 0x20000000,
}
NEW_NETWORK = 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_SLAVE = 2, 4, 4096, 16384, 1 << 19
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
AT_FDCWD, AT_RECURSIVE, MNT_DETACH = -100, 0x8000, 2
SYS_PIVOT_ROOT, SYS_CAPSET, SYS_MOUNT_SETATTR = 155, 126, 442
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
CAPABILITIES = 41
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
BASE = "/tmp"


@dataclass
class Options:
    """What is asked for: the mounts in their order, and the rest."""

    mounts: list[tuple[str, str, str]] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    folder: str = ""
    words: list[str] = field(default_factory=list)


def fail(text: str) -> None:
    """End as bubblewrap does where it cannot do what it is to do."""
    os.write(2, f"bwrap: {text}\n".encode())
    os._exit(1)


def check(result: int, what: str) -> int:
    """What a call of the system gives, unless it failed."""
    if result < 0:
        fail(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def parse_options(words: Iterator[str]) -> Options:
    """Options from words; what is not known is refused."""
    options = Options()
    for word in words:
        match word:
            case "--":
                options.words = list(words)
            case "--unshare-all" | "--share-net" | "--die-with-parent" | "--new-session":
                options.flags.add(word)
            case "--cap-drop":
                options.flags.add(f"{word} {next(words)}")
            case "--ro-bind" | "--ro-bind-try" | "--bind":
                options.mounts.append((word, next(words), next(words)))
            case "--tmpfs" | "--remount-ro" | "--proc" | "--dev":
                options.mounts.append((word, "", next(words)))
            case "--setenv":
                name = next(words)
                options.variables[name] = next(words)
            case "--chdir":
                options.folder = next(words)
            case _:
                fail(f"Unknown option {word}")
    return options


# ---------------------------------------------------------------- mounts


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount something, or end."""
    words = [os.fsencode(each) if each else None for each in (source, target, kind)]
    check(LIBC.mount(*words, ctypes.c_ulong(flags), data.encode() or None), f"Can't mount {target}")


def set_attributes(target: str, attributes: int, *, deep: bool) -> None:
    """Set what a mount, and all below it, forbids."""
    given = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = AT_RECURSIVE if deep else 0
    result = LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(target), flags, given, len(given))
    check(result, f"Can't remount {target}")


def ensure(target: str, *, is_folder: bool) -> None:
    """Make what something is mounted on, with the folders above it; what is read-only refuses it."""
    try:
        if is_folder:
            os.makedirs(target, exist_ok=True)
        elif not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    except OSError as error:
        fail(f"Can't create {target.removeprefix('/newroot')}: {error.strerror}")


def bind(source: str, target: str, attributes: int) -> None:
    """Have a file or folder of the system stand somewhere in the new one."""
    ensure(target, is_folder=os.path.isdir(source))
    mount(source, target, "", MS_BIND | MS_REC)
    set_attributes(target, attributes | ATTR_NOSUID, deep=True)


def make_devices(target: str) -> None:
    """The devices that harm nobody."""
    mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
    for name in DEVICES:
        bind(f"/oldroot/dev/{name}", f"{target}/{name}", 0)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{target}/{name}")
    os.symlink("/proc/self/fd", f"{target}/fd")
    os.mkdir(f"{target}/shm")


def carry_out(kind: str, source: str, path: str) -> None:
    """One mount of the command line."""
    target = "/newroot" + path
    match kind:
        case "--ro-bind" | "--ro-bind-try" | "--bind":
            bind("/oldroot" + source, target, ATTR_NODEV | (ATTR_RDONLY if kind != "--bind" else 0))
        case "--remount-ro":
            set_attributes(target, ATTR_RDONLY, deep=False)
        case "--tmpfs":
            ensure(target, is_folder=True)
            mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
        case "--proc":
            ensure(target, is_folder=True)
            mount("proc", target, "proc", MS_NOSUID | MS_NODEV)
        case "--dev":
            ensure(target, is_folder=True)
            make_devices(target)


def resolve_sources(options: Options) -> list[tuple[str, str, str]]:
    """The mounts with links in their sources resolved; `-try` leaves out what is not there."""
    found = []
    for kind, source, target in options.mounts:
        if source and not os.path.exists(source):
            if not kind.endswith("-try"):
                fail(f"Can't find source path {source}: No such file or directory")
            continue
        found.append((kind, os.path.realpath(source) if source else "", target))
    return found


def make_root(options: Options) -> None:
    """Make the new file system, and leave the old one."""
    mounts = resolve_sources(options)
    mount("none", "/", "", MS_SLAVE | MS_REC)
    mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV)
    os.chdir(BASE)
    os.mkdir("newroot")
    os.mkdir("oldroot")
    mount("newroot", "newroot", "", MS_BIND | MS_REC)
    check(LIBC.syscall(SYS_PIVOT_ROOT, BASE.encode(), b"oldroot"), "pivot_root")
    os.chdir("/")
    for each in mounts:
        carry_out(*each)
    check(LIBC.umount2(b"oldroot", MNT_DETACH), "unmount old root")
    os.chdir("/newroot")
    check(LIBC.syscall(SYS_PIVOT_ROOT, b".", b"."), "pivot_root(/newroot)")
    check(LIBC.umount2(b".", MNT_DETACH), "unmount old root")
    os.chdir("/")


# ---------------------------------------------------------------- processes


def enter_namespaces(options: Options) -> None:
    """Namespaces of its own, in which only its own user is known."""
    user, group = os.getuid(), os.getgid()
    flags = sum(NEW_NAMESPACES.values()) + (0 if "--share-net" in options.flags else NEW_NETWORK)
    check(LIBC.unshare(flags), "Creating new namespace failed")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    if "--share-net" not in options.flags:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
            fcntl.ioctl(opened, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))


def drop_capabilities() -> None:
    """Nothing that root may do, now or after the next program."""
    for number in range(CAPABILITIES):
        LIBC.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    header, nothing = struct.pack("Ii", 0x20080522, 0), bytes(24)
    check(LIBC.syscall(SYS_CAPSET, header, nothing), "capset failed")


def begin(options: Options) -> None:
    """Become the command."""
    if "--new-session" in options.flags:
        os.setsid()
    try:
        if options.folder:
            os.chdir(options.folder)
    except OSError as error:
        fail(f"Can't chdir to {options.folder}: {error.strerror}")
    try:
        os.execvpe(options.words[0], options.words, {**os.environ, **options.variables})
    except OSError as error:
        fail(f"execvp {options.words[0]}: {error.strerror}")


def end_with(status: int) -> None:
    """End as something else has: with its code, or with 128 and the number of its signal."""
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def become_first(options: Options) -> None:
    """The first process of the namespace: with it ends all that is left in there."""
    if "--die-with-parent" in options.flags:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    make_root(options)
    drop_capabilities()
    command = os.fork()
    if command == 0:
        begin(options)
    while True:
        ended, status = os.wait()
        if ended == command:
            end_with(status)


def main() -> None:
    """Carry out a command line."""
    options = parse_options(iter(sys.argv[1:]))
    if {"--unshare-all", "--cap-drop ALL"} - options.flags or not options.words:
        fail("stands in only for what koi asks of it")
    os.get_exec_path()  # imports what `os.execvpe` needs, while it can be found
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "--die-with-parent" in options.flags:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    enter_namespaces(options)
    first = os.fork()
    if first == 0:
        become_first(options)
    end_with(os.waitpid(first, 0)[1])


if __name__ == "__main__":
    main()
