"""Modules of JavaScript to one script without imports, as a page needs it that is a single file.

It knows the forms that the modules of the pages are written in, and refuses all others: `import { a, b as c } from
"./x.js";`, `import name from "./x.js";`, `await import("./x.js")`, `export function`, `export class`, `export const`
and, as the last statement of a module, `export { a as b };`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

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
    """Take a module in; gives the name of what it exports."""
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
    """What a list of exports gives: local names by those that others see."""
    pairs = [part.split(" as ") for part in names.split(",") if part.strip()]
    return {pair[-1].strip(): pair[0].strip() for pair in pairs}
