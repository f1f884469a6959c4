"""A recorded run to a page that is a single file, which needs neither a service nor a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.resources import PACKAGE
from koi_lang.runtime.journal.entries import NOTHING, plain
from koi_lang.runtime.journal.reader import Journal, read
from koi_lang.web.bundle import bundle_modules
from koi_lang.web.run_data import run_facts, run_graph, run_source

STATIC = PACKAGE / "web" / "static"
STYLES = ("koi.css", "dev.css")
Redact = Callable[[str], str]


def run_page(path: Path, redact: Redact) -> str:
    """The page of a recorded run.

    Args:
        path: of its journal.
        redact: takes secrets out of the source of its program; its entries are without any.

    Raises:
        JournalError: the journal cannot be read.
    """
    journal = read(path)
    held = {
        "run": {**run_facts(path), "program": Path(journal.header.program).name},
        "header": {**journal.header.as_data(), "program": Path(journal.header.program).name},
        "entries": [entry.as_data() for entry in journal.entries],
        "source": _ask_or_none(lambda: run_source(path, redact)),
        "graph": _ask_or_none(lambda: run_graph(path)),
        "tree": {"current": path.stem, "runs": [_only(journal)]},
    }
    return _page(journal.header.run, bundle_modules(STATIC / "dev" / "main.js"), _styles(), held)


def _ask_or_none(ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """What can be said of a program; nothing where it is gone, or does not compile any more."""
    try:
        return ask()
    except KoiError:
        return None


def _only(journal: Journal) -> dict[str, Any]:
    parent, entry = journal.header.parent or (None, None)
    return {"run": journal.header.run, "started": journal.header.started, "parent": parent, "entry": entry}


def _styles() -> str:
    return "\n".join((STATIC / name).read_text("utf-8") for name in STYLES)


def _page(title: str, script: str, styles: str, held: Mapping[str, Any]) -> str:
    """A page that carries out this script and no other one, by the hash of its text."""
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(styles)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>koi run {_text(title)}</title>\n<link rel="icon" href="data:,">\n<style>{styles}</style>\n</head>\n'
        '<body class="dev">\n<div id="page"></div>\n<noscript>This page needs scripts.</noscript>\n'
        f'<script type="application/json" id="held">{_data(held)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    """What a policy calls a script or a style by."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _text(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else " " for letter in text)


def _data(held: Mapping[str, Any]) -> str:
    """Data as it may stand in a page: nothing in it ends the element, or begins another one."""
    return json.dumps(plain(held, NOTHING), separators=(",", ":")).replace("<", "\\u003c")
