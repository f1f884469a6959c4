"""The key/value registry that agents share: entries on disk, searched with queries."""

from koi_lang.runtime.registry.backends import open_registry
from koi_lang.runtime.registry.registry import Registry
from koi_lang.runtime.registry.replayed import KeptRegistry

__all__ = ["KeptRegistry", "Registry", "open_registry"]
