"""Completion: names of the program, words of the language, and actions at the cursor."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from koi_lang.compiler.syntax_errors.agents import ITEMS
from koi_lang.compiler.syntax_errors.files import DECLARATIONS
from koi_lang.lsp.completer import Completer, CompletionCandidate, names_in_code
from koi_lang.lsp.completion_rules import RULES

Item = types.CompletionItemKind
KINDS: dict[str, types.CompletionItemKind] = {
    "role": Item.Interface, "agent": Item.Class, "team": Item.Struct, "skill": Item.Module, "mcp": Item.Module,
    "prompt": Item.Constant, "function": Item.Function, "module": Item.Module, "type": Item.TypeParameter,
    "handler": Item.Method, "event": Item.Event, "field": Item.Field, "action": Item.Event,
    "permission": Item.EnumMember, "keyword": Item.Keyword, "variable": Item.Variable,
    "file": Item.File, "value": Item.Value,
}  # fmt: skip


def complete(completer: Completer) -> list[types.CompletionItem]:
    """The completions at the cursor, each once, the likeliest first."""
    found: dict[str, types.CompletionItem] = {}
    for candidate in _candidates(completer):
        if candidate.name not in found:
            found[candidate.name] = types.CompletionItem(
                candidate.name,
                kind=KINDS[candidate.kind],
                detail=candidate.detail or None,
                sort_text=f"{len(found):04}",
            )
    return list(found.values())


def _candidates(completer: Completer) -> Iterable[CompletionCandidate]:
    cursor = completer.cursor
    for pattern, regions, find in RULES:
        match = pattern.search(cursor.line) if not regions or cursor.region in regions else None
        if match is not None:
            return find(match, completer)
    if cursor.region == "top":
        return [CompletionCandidate(word, "keyword") for word in (*DECLARATIONS, "export")]
    if cursor.region == "item":
        return [CompletionCandidate(word, "keyword") for word in ITEMS]
    return names_in_code(completer) if cursor.region == "code" else ()
