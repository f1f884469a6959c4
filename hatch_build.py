"""The page of the package at a package index: the README with links that work there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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


def with_links(text: str, source: str) -> str:
    """A text whose links to files lead to a repository, such as `https://host/project/blob/main`; else the words."""
    if source:
        return LINK.sub(lambda link: f"[{link[1]}]({source.rstrip('/')}/{link[2]})", text)
    return LINK.sub(lambda link: link[1], IMAGE.sub("", text))
