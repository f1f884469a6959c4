"""The registry part of `.koi-config.json` to an open registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from koi_lang.errors import SettingsError
from koi_lang.runtime.registry.registry import Registry
from koi_lang.runtime.registry.sqlite_store import DurableStore
from koi_lang.runtime.registry.store import MemoryStore, RegistryStore
from koi_lang.runtime.registry.v1_import import JsonFile, KeyvTable

FOLDER = ".koi/registry"
FILE = "registry.sqlite"
NAMESPACE = "koi"


def open_registry(folder: Path, config: Mapping[str, Any] | None) -> Registry:
    """The registry of a working directory; nothing on disk is touched before its first use.

    Args:
        folder: the working directory, relative paths start there.
        config: all of `.koi-config.json`; None or no member `registry` means the `local` backend.

    Raises:
        SettingsError: the backend is unknown or an option has the wrong type.
    """
    section = _object(config or {}, "registry", "registry")
    backend = _text(section, "backend", "local")
    build = _BACKENDS.get(backend)
    if build is None:
        known = ", ".join(f"`{name}`" for name in _BACKENDS)
        raise SettingsError(f"unknown registry backend `{backend}`", help=f"Set `registry.backend` to one of {known}.")
    return Registry(build(folder, _object(section, "options", "registry.options")), backend=backend)


def _local(folder: Path, options: Mapping[str, Any]) -> RegistryStore:
    place = folder / _text(options, "path", FOLDER)
    return DurableStore(place / FILE, NAMESPACE, JsonFile(place / "data.json"))


def _keyv_sqlite(folder: Path, options: Mapping[str, Any]) -> RegistryStore:
    file = folder / _text(options, "path", f"{FOLDER}/{FILE}")
    namespace = _text(options, "namespace", NAMESPACE)
    return DurableStore(file, namespace, KeyvTable(namespace))


def _memory(folder: Path, options: Mapping[str, Any]) -> RegistryStore:
    return MemoryStore()


_BACKENDS: Mapping[str, Callable[[Path, Mapping[str, Any]], RegistryStore]] = {
    "local": _local,
    "memory": _memory,
    "keyv-sqlite": _keyv_sqlite,
}


def _object(parent: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    found = parent.get(name)
    if found is None:
        return {}
    if isinstance(found, Mapping):
        return found
    raise SettingsError(f"`{path}` in `.koi-config.json` must be an object, not {found!r}")


def _text(parent: Mapping[str, Any], name: str, default: str) -> str:
    found = parent.get(name)
    if found is None:
        return default
    if isinstance(found, str) and found:
        return found
    raise SettingsError(f"the registry's `{name}` in `.koi-config.json` must be text, not {found!r}")
