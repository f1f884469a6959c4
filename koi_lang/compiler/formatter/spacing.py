"""Whether a blank stands between two tokens on one line."""

from __future__ import annotations

from koi_lang.compiler.formatter.pieces import Piece

# What no blank stands before, and behind.
TIGHT_BEFORE = frozenset({",", ";", ")", "]", ".", "?."})
TIGHT_AFTER = frozenset({"(", "[", ".", "?.", "..."})
TIGHT_KINDS = frozenset({"CALL_OPEN", "INDEX_OPEN", "POSTFIX_INCREMENT", "NON_NULL", "OPTIONAL", "TYPE_OPEN"})
PREFIXES = frozenset({"!", "-", "+", "~"})
# Whose colon has a blank on both sides.
SPACED_COLON = frozenset({"conditional", "agent", "import_"})
# Whose parenthesis follows a name, or `>`, without a blank.
CALLED = frozenset(
    {"handler", "function", "method", "accessor", "type_method", "prompt_parameters", "granted_tools", "compose_names"}
    | {"new", "call", "optional_call"}
)
ANGLED = frozenset({"generic_type", "call", "new", "generics"})


def has_blank(before: Piece, piece: Piece) -> bool:
    """Whether a blank stands between two neighbours."""
    text, last = piece.text, before.text
    if text in TIGHT_BEFORE or last in TIGHT_AFTER or piece.kind in TIGHT_KINDS:
        return False
    if last == "{" and text == "}":
        return False
    if text == ":":
        return piece.rule in SPACED_COLON
    if last == ":":
        return before.rule != "permission"
    if text == "(" and piece.rule in CALLED:
        return before.kind == "FUNCTION"
    return not (_is_in_angles(before, piece) or _is_after_prefix(before, piece) or _is_star(before, piece))


def _is_in_angles(before: Piece, piece: Piece) -> bool:
    if piece.text == ">" and piece.rule in ANGLED:
        return True
    if before.text == "<" and before.rule in ANGLED:
        return True
    return piece.text == "<" and piece.rule in ANGLED and before.kind in ("NAME", "WORD", "STRING", "FUNCTION")


def _is_after_prefix(before: Piece, piece: Piece) -> bool:
    if before.kind == "INCREMENT":
        return True
    is_prefix = before.rule in ("prefix", "eval_number") and before.text in PREFIXES
    return is_prefix and not piece.text.startswith(before.text)


def _is_star(before: Piece, piece: Piece) -> bool:
    """Whether one of both is the mark of a generator."""
    if piece.kind == "STAR" and piece.rule == "function":
        return True
    return before.kind == "STAR" and before.rule == "method"
