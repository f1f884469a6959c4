"""Mistakes in the permissions that functions of skills need."""

from __future__ import annotations

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.compiler.syntax_errors.scanner import ScannedToken

HINTS: list[Hint] = []
FORM = "write `needs write` at the beginning of a skill, or `needs write export function …`."
# How others say that something needs a permission.
OTHER_WORDS = frozenset(("need", "require", "requires", "can", "permission", "permissions", "needs"))
SEVERAL = frozenset((",", "+", "&", "|", "&&", "||", "and", "or"))
BEFORE_FUNCTION = ("async", "function")


@hint(HINTS, "E0607")
def needs_form(failure: Failure) -> SyntaxHelp | None:
    """A permission that functions of a skill need is not written as `needs` and one name.

    On a line of its own at the beginning of a skill it counts for all functions that the skill exports, on the line of
    an `export` for that function. Functions that are not exported are called by code only, which needs no permission.

    Wrong:

        skill Notes { needs "write"  export function save(text: string): number { return text.length } }

    Right:

        skill Notes { needs write export function save(text: string): number { return text.length } }
    """
    if failure.piece().text == "needs" and (failure.is_top or failure.tail == ("SKILL", "NAME")):
        return SyntaxHelp("`needs` stands between the braces of a skill", failure.span, FORM)
    if failure.frame.word != "skill" or failure.frame.bracket != "{":
        return None
    if failure.word() == "needs" and failure.word(-1) == "export":
        return SyntaxHelp("`needs` stands before `export`", failure.span, FORM)
    if failure.piece().text == "needs":
        return _what_follows(failure)
    if failure.word() in OTHER_WORDS and "NEEDS" in failure.expected and failure.piece(1).kind == "word":
        help = _help(failure.piece(1).text)
        return SyntaxHelp(f"{failure.excerpt} does not begin a part of a skill", failure.span, help)
    return None


def _what_follows(failure: Failure) -> SyntaxHelp:
    """What is wrong with the pieces behind `needs`."""
    first = failure.piece(1)
    if first.kind in ("text", "triple"):
        return SyntaxHelp("a permission stands without quotes", first.span, _help(first.text.strip("\"'")))
    if first.text in (":", "=") and failure.piece(2).kind == "word":
        return SyntaxHelp(f"`{first.text}` cannot stand after `needs`", first.span, _help(failure.piece(2).text))
    if first.text == "can":
        return SyntaxHelp("`can` stands in roles only", first.span, _help(failure.piece(2).text))
    if first.kind != "word" or first.fresh or first.text in ("export", *BEFORE_FUNCTION):
        return SyntaxHelp("`needs` does not say which permission", failure.span, FORM)
    detail = failure.piece(3)
    has_detail = failure.word(2) == ":" and detail.kind == "word" and not detail.fresh
    after = failure.piece(4 if has_detail else 2)
    permission = f"{first.text}:{detail.text}" if has_detail else first.text
    return _what_is_behind(after, permission)


def _what_is_behind(after: ScannedToken, permission: str) -> SyntaxHelp:
    """What is wrong with the piece behind a permission."""
    if after.text in BEFORE_FUNCTION:
        help = f"write `needs {permission} export function …`, or leave `needs {permission}` out."
        return SyntaxHelp("a function that is not exported needs no permission", after.span, help)
    if after.text == "needs" or after.text in SEVERAL:
        return SyntaxHelp("a function needs one permission", after.span, _help(permission))
    return SyntaxHelp(f"`{after.text}` cannot stand behind `needs {permission}`", after.span, _help(permission))


def _help(permission: str) -> str:
    return FORM.replace("write`", f"{permission}`", 1).replace("write export", f"{permission} export", 1)
