"""Which files of a workspace import which, found without reading them as programs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from koi_lang.compiler.imports import Files

IMPORT = re.compile(r"^[ \t]*import\b[^\n\"']*[\"']([^\"'\n]+)[\"']", re.MULTILINE | re.IGNORECASE)
SUFFIX = ".koi"
PASSED_OVER = frozenset({"node_modules", "__pycache__", "venv"})
# So many files of a workspace are looked at, in folders at most so deep.
MOST_FILES, DEEPEST = 2000, 8


class ImportGraph:
    """The imports between the files of some folders; what has not changed is not read again."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: dict[str, tuple[bytes, list[str]]] = {}

    def importers(self, path: str, roots: Sequence[str], opened: Sequence[str]) -> list[str]:
        """The files in some folders, and among those that are open, that import one, at any distance."""
        after: dict[str, list[str]] = {}
        for file in dict.fromkeys([*opened, *self.files_in(roots)]):
            for target in self._targets(file):
                after.setdefault(target, []).append(file)
        found: dict[str, None] = {}
        waiting = [path]
        while waiting:
            new = [each for each in after.get(waiting.pop(), ()) if each not in found and each != path]
            found |= dict.fromkeys(new)
            waiting += new
        return list(found)

    def files_in(self, roots: Sequence[str]) -> list[str]:
        """The programs in some folders, at most 2,000; folders of tools and what cannot be read are passed over."""
        found: dict[str, None] = {}
        for root in roots:
            for file in self._walk(root, DEEPEST):
                if len(found) >= MOST_FILES:
                    return list(found)
                found[file] = None
        return list(found)

    def _walk(self, folder: str, deep: int) -> Iterator[str]:
        names = [name for name in self._files.names(folder) if not name.startswith(".") and name not in PASSED_OVER]
        yield from (f"{folder}/{name}" for name in names if name.endswith(SUFFIX))
        for name in names if deep else ():
            if "." not in name:
                yield from self._walk(f"{folder}/{name}", deep - 1)

    def _targets(self, file: str) -> list[str]:
        try:
            data = self._files.read(file)
        except OSError:
            return []
        known = self._known.get(file)
        if known is None or known[0] != data:
            wanted = IMPORT.findall(data.decode("utf-8", "replace"))
            targets = [each for path in wanted if path.startswith(".") for each in _candidates(file, path)]
            known = self._known[file] = data, targets
        return known[1]


def _candidates(file: str, wanted: str) -> list[str]:
    """The files that a relative import may mean."""
    base = posixpath.normpath(posixpath.join(posixpath.dirname(file), wanted))
    return [base] if base.endswith(SUFFIX) else [base + SUFFIX, f"{base}/index{SUFFIX}"]
