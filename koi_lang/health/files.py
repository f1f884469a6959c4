"""Koi's own files: whether they can be read, and by which users."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from koi_lang import settings
from koi_lang.compiler.parser import parse
from koi_lang.errors import KoiError, SettingsError, error_of
from koi_lang.health.findings import Finding, Level
from koi_lang.program import cache
from koi_lang.runtime.journal.store import OUTPUT, journal_paths, runs_folder
from koi_lang.runtime.outputs.output_files import outputs_folder
from koi_lang.setup.keys.signing import signing_key
from koi_lang.setup.keys.store import BEGUN, KeyStore
from koi_lang.source import Source
from koi_lang.system import resources
from koi_lang.system.installation import this_installation
from koi_lang.system.open_folders import KEY_FILE, STATE_FOLDER

OTHERS, OTHERS_WRITE = 0o077, 0o022
MAX_JOURNAL_BYTES = 10**9
PROGRAM = "role Worker { can execute }\n"


def grammar() -> Iterator[Finding]:
    """Whether the grammar is there and can be used."""
    path = resources.grammar()
    problems: list[object] = []
    # Whatever a damaged grammar or cache makes of the parser is a finding.
    error = error_of(lambda: problems.extend(parse(Source("doctor.koi", PROGRAM))[1]))
    if error is not None:
        fix = "koi cache clear" if path.is_file() else this_installation().update_command()
        yield Finding("grammar", "error", f"{path} cannot be used: {type(error).__name__}", fix)
        return
    if problems:
        yield Finding("grammar", "error", f"{path} does not read a role", this_installation().update_command())
    else:
        yield Finding("grammar", "ok", str(path))


def check_compiled() -> Iterator[Finding]:
    """Whether compiled programs can be kept, and whether those kept are whole."""
    folder = settings.cache_folder()
    if not os.access(next(each for each in (folder, *folder.parents) if each.exists()), os.W_OK):
        text = f"{folder} cannot be written, so every run compiles anew"
        yield Finding("cache", "warning", text, f"chown -R $USER {folder}")
        return
    stats, damaged = cache.stats(), cache.count_damaged()
    if damaged:
        yield Finding("cache", "warning", f"{damaged} of {stats['files']} files are damaged", "koi cache clear")
    else:
        yield Finding("cache", "ok", f"{stats['files']} files, {stats['bytes'] / 1024:.0f} KiB in {folder}")


def kept_keys() -> Iterator[Finding]:
    """Whether the file of keys can be read, and all of its keys are where it says."""
    store = KeyStore(settings.config_folder())
    try:
        places = store.places()
        gone = [name for name in places if store.value(name) is None]
    except KoiError as error:
        fix = f"rm {store.path}" if "file of keys" in error.message else ""
        yield Finding("keys", "error", error.message, fix)
        return
    for name in gone:
        yield Finding("keys", "warning", f"the keyring has lost `{name}`", "koi connect")


def find_links(folder: Path) -> Iterator[Finding]:
    """Whether `.koi` or something in it is a link, which nobody notices before it is needed."""
    state = folder / STATE_FOLDER
    inside = [] if state.is_symlink() or not state.is_dir() else sorted(state.iterdir())
    for each in (path for path in (state, *inside) if path.is_symlink()):
        name = each.relative_to(folder).as_posix()
        text = f"`{name}` is a link, so that nothing is written there"
        yield Finding("project", "warning", text, f"rm {name}, and mount a folder there to keep it elsewhere")


def journals(folder: Path) -> Iterator[Finding]:
    """Whether the journals of a folder take much room, since nobody removes them unasked."""
    found = [path for path in journal_paths(folder) if _about(path) is not None]
    files = (*found, *(file for path in found for kept in _outputs(folder, path) for file in kept.glob("*")))
    size = sum(about.st_size for file in files if (about := _about(file)) is not None)
    if size > MAX_JOURNAL_BYTES:
        text = f"{len(found):,} journals take {size / 1e9:.1f} GB in {runs_folder(folder)}"
        yield Finding("journals", "warning", text, "koi runs delete --older 30d")


def _outputs(folder: Path, journal: Path) -> tuple[Path, ...]:
    """Where the long outputs of a run are, also as earlier versions kept them."""
    return journal.with_suffix(OUTPUT), outputs_folder(folder, journal.stem)


def _about(path: Path) -> os.stat_result | None:
    """The status of a file; None where it is gone by now."""
    try:
        return path.stat()
    except OSError:
        return None


def signing() -> Iterator[Finding]:
    """Whether the key with which journals are signed can be used, where there is one already."""
    folder = settings.config_folder()
    if not (folder / KEY_FILE).exists():
        return
    try:
        signing_key(folder)
    except SettingsError as error:
        yield Finding("keys", "error", error.message, f"rm {folder / KEY_FILE}")


def permissions(folder: Path) -> Iterator[Finding]:
    """Whether only this user can read Koi's files, and change the compiled programs in the cache."""
    found = [*_private(settings.config_folder()), *_unchangeable(settings.cache_folder()), *_of_project(folder)]
    yield from found
    if not found:
        yield Finding("permissions", "ok", "nobody else can read what koi keeps, or change compiled programs")


def _private(folder: Path) -> Iterator[Finding]:
    store = KeyStore(folder)
    places = [
        (folder, "700"),
        (store.path, "600"),
        (folder / KEY_FILE, "600"),
        *((path, "600") for path in folder.glob(f"{BEGUN}*")),
    ]
    for path, mode in places:
        yield from _open_to(path, OTHERS, "error", f"others can read {path}", f"chmod {mode} {path}")


def _unchangeable(folder: Path) -> Iterator[Finding]:
    """A compiled program is code: a user who can change it can run any code."""
    for path in (folder, *folder.glob("*.koic"), *folder.glob("*.lark"), *folder.glob("models/*")):
        yield from _open_to(path, OTHERS_WRITE, "error", f"others can change {path}", f"chmod go-w {path}")


def _of_project(folder: Path) -> Iterator[Finding]:
    for path in (folder / ".env", *filter(Path.is_file, sorted(folder.glob(".koi/**/*")))):
        name = path.relative_to(folder)
        yield from _open_to(path, OTHERS, "warning", f"others can read {name}", f"chmod 600 {name}")


def _open_to(path: Path, mask: int, level: Level, text: str, fix: str) -> Iterator[Finding]:
    about = _about(path)
    if about is not None and about.st_mode & mask:
        yield Finding("permissions", level, text, fix)
