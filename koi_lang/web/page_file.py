"""A recorded run to a page that is a single file, which needs neither a service nor a network.

It knows the forms that the modules of the pages are written in, and refuses all others: `import { a, b as c } from
"./x.js";`, `import name from "./x.js";`, `await import("./x.js")`, `export function`, `export class`, `export const`
and, as the last statement of a module, `export { a as b };`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.runtime.journal.entries import NOTHING, plain
from koi_lang.runtime.journal.reader import read
from koi_lang.system.resources import PACKAGE
from koi_lang.web.run_data import branch_data, run_facts, run_graph, run_source

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
        "tree": {"current": path.stem, "runs": [branch_data(journal.header)]},
    }
    styles = "\n".join((STATIC / name).read_text("utf-8") for name in STYLES)
    return _page(journal.header.run, bundle_modules(STATIC / "dev" / "main.js"), styles, held)


def _ask_or_none(ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The description of a program; empty where it is gone or does not compile any more."""
    try:
        return ask()
    except KoiError:
        return None


def _page(title: str, script: str, styles: str, held: Mapping[str, Any]) -> str:
    """A page that carries out this script and no other one, by the hash of its text."""
    name = "".join(letter if letter.isalnum() or letter in "-_." else " " for letter in title)
    # Nothing in the data ends its element, or begins another one.
    data = json.dumps(plain(held, NOTHING), separators=(",", ":")).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(styles)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>koi run {name}</title>\n<link rel="icon" href="data:,">\n<style>{styles}</style>\n</head>\n'
        '<body class="dev">\n<div id="page"></div>\n<noscript>This page needs scripts.</noscript>\n'
        f'<script type="application/json" id="held">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    """The hash of a script or a style in a policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


IMPORT = re.compile(r'^import (\{[^}]*\}|\w+) from "([^"]+)";[ \t]*$', re.MULTILINE)
LATER = re.compile(r'\bimport\("([^"]+)"\)')
DECLARED = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) +([\w$]+))", re.MULTILINE)
LISTED = re.compile(r"export ?\{([^{}]*)\};?\s*$")
LEFT = re.compile(r"^\s*(?:export\b|import\b(?!\())", re.MULTILINE)


@dataclass(slots=True)
class _Bundle:
    """Modules in the order in which they are needed, each once."""

    parts: list[str] = field(default_factory=list)
    names: dict[Path, str] = field(default_factory=dict)
    open: set[Path] = field(default_factory=set)


def bundle_modules(entry: Path) -> str:
    """A module with all that it imports, as one script. Raises AssertionError for a form that it does not know."""
    bundle = _Bundle()
    _add(entry.resolve(), bundle)
    return '"use strict";\n' + "\n".join(bundle.parts)


def _add(path: Path, bundle: _Bundle) -> str:
    """Add a module; returns the name of its export."""
    if path in bundle.names:
        return bundle.names[path]
    if path in bundle.open:
        raise AssertionError(f"the module `{path.name}` imports itself")
    bundle.open.add(path)
    text = path.read_text("utf-8")
    head = [_import(found, path, bundle) for found in IMPORT.finditer(text)]
    text = IMPORT.sub("", text)
    text = LATER.sub(lambda found: f"Promise.resolve({_add((path.parent / found[1]).resolve(), bundle)})", text)
    exports = {name: name for name in DECLARED.findall(text)}
    text = DECLARED.sub("", text)
    listed = LISTED.search(text)
    if listed is not None:
        exports |= _split_exports(listed[1])
        text = text[: listed.start()]
    if LEFT.search(text) and listed is None:
        raise AssertionError(f"the module `{path.name}` imports or exports in a form that is not known")
    given = ", ".join(f"{name}: {local}" for name, local in exports.items())
    name = bundle.names[path] = f"module{len(bundle.names)}"
    bundle.parts.append(f"const {name} = (() => {{\n{''.join(head)}{text.strip()}\nreturn {{ {given} }};\n}})();")
    return name


def _import(found: re.Match[str], path: Path, bundle: _Bundle) -> str:
    source = _add((path.parent / found[2]).resolve(), bundle)
    if not found[1].startswith("{"):
        return f"const {found[1]} = {source}.default;\n"
    return f"const {re.sub(r' as ', ': ', found[1])} = {source};\n"


def _split_exports(names: str) -> dict[str, str]:
    """The exports of a module: local names by their outer ones."""
    pairs = [part.split(" as ") for part in names.split(",") if part.strip()]
    return {pair[-1].strip(): pair[0].strip() for pair in pairs}
