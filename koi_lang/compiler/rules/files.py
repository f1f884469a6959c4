"""Explanations of problems around a program: those of its files and imports, and names of models.

The former are found while files are read, the latter by the lists of providers.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from types import MappingProxyType

_TEXTS = {
    "E0105": """
        A file is not UTF-8 text.

        Programs, and texts that become prompts, are stored in the encoding UTF-8. The mark stands at the first
        character that is something else. Most editors have "save with encoding" in their menu of files.
    """,
    "E0106": """
        An imported file or package does not exist.

        Paths that begin with `./` or `../` start from the folder of the file that imports. Without a suffix `.koi` and
        `.py` are tried, and in a folder `index.koi` and `__init__.py`. Anything else is a package that is installed.

        Wrong:

            import "roles.koi"

        Right:

            import "./roles.koi"
    """,
    "E0107": """
        An import has a kind of file, or a type, that there is none of.

        Koi files bring their declarations, Python files become modules, and a text becomes a prompt when the import
        says so. The types are `prompt`, and `skill` for a folder with a `SKILL.md`.

        Wrong:

            import Rules from "./rules.md"

        Right:

            import Rules : prompt from "./rules.md"
    """,
    "E0108": """
        An import names a JavaScript or TypeScript file.

        This implementation runs in Python and cannot load it. Write what you need as a Python module with the same
        functions.

        Wrong:

            import "./prices.ts"

        Right:

            import prices from "./prices.py"
    """,
    "E0118": """
        An imported Python file cannot be read as Python.

        Checks read the file with the Python that Koi runs on, and do not execute it. The help has the line at which
        reading has stopped; a mistake may stand on the line before.

        Wrong:

            import prices from "./unclosed.py"

        Right:

            import prices from "./prices.py"
    """,
    "E0419": """
        An `llm` block names a model that its provider does not list.

        `koi check` compares names with the list that `koi models` showed last, and asks nobody. Providers accept more
        names than they list, so this is a warning; a run asks the provider about the name before it sends anything.

        Wrong:

            agent Greeter : Worker { llm default = { provider: "openai", model: "gtp-4o-mini" } }

        Right:

            agent Greeter : Worker { llm default = { provider: "openai", model: "gpt-4o-mini" } }
    """,
}
EXPLANATIONS: Mapping[str, str] = MappingProxyType({code: cleandoc(text) for code, text in _TEXTS.items()})
