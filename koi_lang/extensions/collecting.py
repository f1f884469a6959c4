"""Extensions and their joint additions to one run; duplicate names are refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koi_lang.errors import ExtensionError
from koi_lang.extensions.finding import FUNCTION, HELP, Extension, find_installed
from koi_lang.extensions.koi import Koi
from koi_lang.runtime.hooks.additions import NOTHING_ADDED, Additions

if TYPE_CHECKING:
    import click

# What two extensions may not both add.
TABLES = {"actions": "action", "providers": "provider", "commands": "command", "rpc": "command for rpc"}


@dataclass(frozen=True, slots=True)
class LoadedExtensions:
    """The additions of extensions, before there is a run.

    Attributes:
        each: every extension with what it adds alone.
        added: what a run has of it.
        commands: of the command line.
        rpc: commands for programs that drive Koi.
    """

    each: tuple[tuple[Extension, Koi], ...] = ()
    added: Additions = NOTHING_ADDED
    commands: Mapping[str, click.Command] = field(default_factory=dict)
    rpc: Mapping[str, Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict)


def commands(reserved: Collection[str]) -> Mapping[str, click.Command]:
    """The commands that installed extensions add beside some others. Raises ExtensionError."""
    return collect_extensions(find_installed(), reserved).commands


def collect_extensions(extensions: Iterable[Extension], reserved: Collection[str] = ()) -> LoadedExtensions:
    """The additions of extensions, as for a run of its own.

    Args:
        reserved: names of commands that they may not use.

    Raises:
        ExtensionError: one cannot be loaded or raises, or a name is used twice; says whose.
    """
    each: list[tuple[Extension, Koi]] = []
    for extension in extensions:
        _require_new(extension, [other for other, _ in each])
        each.append((extension, run_extension(extension)))
    tables = {table: _merge_tables(each, table, what) for table, what in TABLES.items()}
    for name in sorted(tables["commands"].keys() & set(reserved)):
        owner = next(extension for extension, koi in each if name in koi.commands)
        raise ExtensionError(f"{owner.label} adds `koi {name}`, a built-in command", help="Choose another name.")
    added = Additions(
        tables["actions"],
        [hook for _, koi in each for hook in koi.hooks],
        tables["providers"],
        [koi.state for _, koi in each],
    )
    return LoadedExtensions(tuple(each), added, tables["commands"], tables["rpc"])


def run_extension(extension: Extension) -> Koi:
    """The additions of one extension. Raises ExtensionError when it cannot be loaded, or raises."""
    koi = Koi(extension.name)
    function = extension.load()
    try:
        function(koi)
    except ExtensionError:
        raise
    except (Exception, SystemExit) as error:
        help = HELP if extension.version else f"Look at `{FUNCTION}` in {extension.package}."
        message = f"the extension {extension.label} failed: {type(error).__name__}: {error}"
        raise ExtensionError(message, help=help) from error
    return koi


def _require_new(extension: Extension, others: Iterable[Extension]) -> None:
    for other in others:
        if other.name == extension.name:
            message = f"two extensions are called `{extension.name}`: {other.label} and {extension.label}"
            raise ExtensionError(message, help="Rename or remove one of them.")


def _merge_tables(each: Iterable[tuple[Extension, Koi]], table: str, what: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    owners: dict[str, Extension] = {}
    for extension, koi in each:
        for name, value in getattr(koi, table).items():
            if name in found:
                message = f"two extensions add the {what} `{name}`: {owners[name].label} and {extension.label}"
                raise ExtensionError(message, help="Rename one of the two, or remove an extension.")
            found[name], owners[name] = value, extension
    return found
