"""What a package is built from beside its modules: the README with links that work elsewhere, and the manual."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

README = "README.md"
# Images, and links to files of the repository; those to other pages, and to places of the same one, work as they are.
IMAGE = re.compile(r"!\[([^]]*)\]\((?!https?:)[^)]*\)\n*")
LINK = re.compile(r"\[([^]]*)\]\((?!https?:|#)([^)]*)\)")


class PackagePage(MetadataHookInterface):
    """Gives the description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`; files are looked for at the URL `Source`, and are no links without one."""
        text = (Path(self.root) / README).read_text("utf-8")
        source = metadata.get("urls", {}).get("Source", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_links(text, source)}


class Manual(BuildHookInterface[Any]):
    """Puts the pages of the manual into the package, without the programs that make some of them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; pytest would take a module among them for a part of the plugin that the package brings."""
        root = Path(self.root)
        pages = (path for path in (root / "docs").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        kept = {str(path): f"koi_lang/{path.relative_to(root).as_posix()}" for path in pages if path.suffix != ".py"}
        build_data["force_include"].update(kept)


def with_links(text: str, source: str) -> str:
    """A text whose links to files lead to a repository, such as `https://host/project/blob/main`; else the words."""
    if source:
        return LINK.sub(lambda link: f"[{link[1]}]({source.rstrip('/')}/{link[2]})", text)
    return LINK.sub(lambda link: link[1], IMAGE.sub("", text))
