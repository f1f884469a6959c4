"""The generated files, and what belongs in each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from editors.generate import textmate, vim, words

CHECKOUT = Path(__file__).resolve().parents[2]
WORDS = CHECKOUT / "koi_lang/highlighting/words.json"
TEXTMATE = CHECKOUT / "editors/vscode/syntaxes/koi.tmLanguage.json"
VIM = CHECKOUT / "editors/nvim/syntax/koi.vim"


def contents() -> Mapping[Path, str]:
    """The text of each file, as the grammar and the tables of the compiler have it now."""
    made = {WORDS: words.tree(), TEXTMATE: textmate.grammar()}
    return {path: json.dumps(data, indent=1) + "\n" for path, data in made.items()} | {VIM: vim.syntax()}
