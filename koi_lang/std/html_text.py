"""The HTML of a page to its title, its readable text and its links, in time that grows with its length only.

Pages may be made to keep a reader busy: the parser of Python's library takes hours for a megabyte of `<a `.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urljoin

# Their content is no text for people; that of the first ones is not even read as HTML.
RAW = ("script", "style", "title", "textarea")
SILENT = frozenset({"script", "style", "noscript", "template", "svg", "head"})
BREAKS = frozenset(
    "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header"
    " hr li main nav ol p pre section table td th tr ul".split()
)
MAX_LINKS, MAX_LINK_CHARS = 200, 200
BEGIN = re.compile(r"</?[a-z]", re.IGNORECASE)
# A tag ends at the first `>` that stands in no quoted value; nothing is ever gone through twice.
TAG = re.compile(r"""<(/?)([a-z][^\s/>]*+)((?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|))*+)>""", re.IGNORECASE)
HREF = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in RAW}


class HtmlToken(NamedTuple):
    """A text, or a tag with its content; `tag` is empty for texts and begins with `/` for ends."""

    tag: str
    text: str


def readable(page: str, address: str) -> dict[str, Any]:
    """`title`, `text` with a line for each paragraph, and `links` as a list of `{ url, text }`."""
    reader = _HtmlReader(address)
    for piece in pieces(page):
        if piece.tag:
            reader.tag(piece)
        else:
            reader.add_text(_plain(piece.text))
    lines = (" ".join(line.split()) for line in "".join(reader.text).split("\n"))
    links = [{"url": url, "text": " ".join(" ".join(said).split())} for url, said in reader.links.items()]
    return {"title": " ".join(reader.title.split()), "text": "\n".join(filter(None, lines)), "links": links}


def pieces(page: str) -> Iterator[HtmlToken]:
    """The texts and tags of a page; an open tag at its end is left out, as in browsers."""
    at = 0
    while at < len(page):
        start = page.find("<", at)
        if start < 0:
            start = len(page)
        if start > at:
            yield HtmlToken("", page[at:start])
        if page.startswith(("<!", "<?"), start):
            mark = "-->" if page.startswith("<!--", start) else ">"
            at = _behind(page.find(mark, start + 2), mark, page)
        elif BEGIN.match(page, start) is None:
            at = start + 1
            yield HtmlToken("", page[start:at])
        else:
            found = TAG.match(page, start)
            if found is None:
                return
            name = found[2].lower()
            yield HtmlToken(found[1] + name, found[3])
            at = found.end()
            if name in ENDS and not found[1]:
                end = ENDS[name].search(page, at)
                yield HtmlToken("", page[at : end.start() if end else len(page)])
                at = end.start() if end else len(page)


def _behind(found: int, mark: str, page: str) -> int:
    return len(page) if found < 0 else found + len(mark)


def _plain(text: str) -> str:
    """A text with `&amp;` and the like decoded."""
    try:
        return html.unescape(text)
    except ValueError:  # a number of thousands of digits
        return text


class _HtmlReader:
    """The state of reading; silent inside of some elements."""

    def __init__(self, address: str) -> None:
        self.address, self.title = address, ""
        self.text: list[str] = []
        self.links: dict[str, list[str]] = {}
        self._silent, self._depth = "", 0
        self._in_title = False
        self._link: list[str] | None = None

    def tag(self, piece: HtmlToken) -> None:
        name = piece.tag.removeprefix("/")
        is_end = piece.tag != name
        if name == "title":
            self._in_title = not is_end and not self.title
        elif self._silent:
            self._leave(name, is_end)
        elif name in SILENT and not is_end:
            self._silent, self._depth = name, 1
        elif name in BREAKS:
            self.text.append("\n")
        elif name == "a":
            self._link = None if is_end else self._begin_link(piece.text)

    def _leave(self, name: str, is_end: bool) -> None:
        if name == self._silent:
            self._depth += -1 if is_end else 1
        if not self._depth or (name == "body" and self._silent == "head"):
            self._silent = ""

    def _begin_link(self, attributes: str) -> list[str] | None:
        found = HREF.search(attributes)
        try:
            given = _plain(found[1] or found[2] or found[3] or "") if found else ""
            target = urljoin(self.address, given).partition("#")[0] if given else ""
        except ValueError:
            return None
        is_new = target not in self.links
        if not target.startswith(("http://", "https://")) or (is_new and len(self.links) >= MAX_LINKS):
            return None
        return self.links.setdefault(target, [])

    def add_text(self, text: str) -> None:
        if self._in_title:
            self.title += text
        elif not self._silent:
            self.text.append(text)
            if self._link is not None and len(self._link) < MAX_LINK_CHARS:
                self._link.append(text[:MAX_LINK_CHARS])
