"""A lexer for Pygments, which finds it by its entry point: documentation and terminals show programs in colours."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, cast

from pygments.lexer import RegexLexer, bygroups, default, include, using, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from koi_lang.system.resources import PACKAGE

# A pattern, what it is, and the state that follows.
Rule = Any
NAME, WORD = r"[A-Za-z_]\w*", r"[A-Za-z_$][\w$]*"
BEFORE = r"(?<![\w$.])"
# Words of declarations and of parts of agents are names elsewhere; what follows them tells.
FOLLOWED = r"(?=[ \t]+(?!(?:in|of|instanceof|as|is|satisfies|and|or)\b)[A-Za-z_]|\s*[\"'{]|\s+[0-9]|[ \t]*$)"
NO_KEY = r"(?!\s*:(?!:))"
REGEX = r"(/(?![*/])(?:[^/\\\n\[]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/[a-z]*)"
CONTEXTUAL = {"declarations": Keyword.Declaration, "members": Keyword, "modifiers": Keyword, "clauses": Keyword}
ELSEWHERE = {
    "modules": Keyword.Namespace,
    "testing": Keyword,
    "storage": Keyword.Declaration,
    "control": Keyword,
    "operators": Operator.Word,
    "constants": Keyword.Constant,
}


class KoiLexer(RegexLexer):
    """Programs of Koi, and the texts in them."""

    name = "Koi"
    aliases = ("koi",)
    filenames = ("*.koi",)
    mimetypes = ("text/x-koi",)
    flags = re.MULTILINE

    @classmethod
    def get_tokendefs(cls) -> dict[str, list[Rule]]:
        """The states of the lexer; asked for when a lexer is made first."""
        return {
            "root": [*_blank(), *_texts(cls), *_declarations(), *_keywords(), *_names()],
            "double": [*_inside(cls), (r'[^"\\{$]+|[{$]', String.Double), (r'"', String.Double, "#pop")],
            "single": [*_inside(cls), (r"[^'\\{$]+|[{$]", String.Single), (r"'", String.Single, "#pop")],
            "template": [
                (r"`", String.Backtick, "#pop"),
                (r"\$\{", String.Interpol, "hole"),
                (r"\\[\s\S]", String.Escape),
                (r"[^`\\$]+|\$", String.Backtick),
            ],
            "hole": [(r"\}", String.Interpol, "#pop"), (r"\{", Punctuation, "braces"), include("root")],
            "braces": [(r"\}", Punctuation, "#pop"), (r"\{", Punctuation, "braces"), include("root")],
            "prose": _prose(cls),
            "plan": _plan(cls),
        }


@cache
def word_groups() -> dict[str, list[str]]:
    """The words of the language by purpose, as in `words.json`."""
    return cast("dict[str, list[str]]", json.loads((PACKAGE / "highlighting" / "words.json").read_text("utf-8")))


def _any_of(*groups: str) -> str:
    listed = sorted({word for group in groups for word in word_groups()[group]}, key=lambda word: (-len(word), word))
    return f"(?:{'|'.join(map(re.escape, listed))})"


def _blank() -> list[Rule]:
    return [
        (r"\s+", Whitespace),
        (r"//[^\n]*", Comment.Single),
        (r"/\*\*(?!/)[\s\S]*?(?:\*/|\Z)", String.Doc),
        (r"/\*[\s\S]*?(?:\*/|\Z)", Comment.Multiline),
    ]


def _texts(lexer: type[KoiLexer]) -> list[Rule]:
    """Texts; those in three quotes or more end with as many, and are prose."""
    prose = using(lexer, state="prose")
    regex = rf"([ \t]*){REGEX}"
    return [
        (r'"{6}(?!")', String.Double),
        (r'("{3,})([\s\S]*?)(\1)', bygroups(String.Delimiter, prose, String.Delimiter)),
        (r'("{3,})([\s\S]*)', bygroups(String.Delimiter, prose)),
        (r'"', String.Double, "double"),
        (r"'", String.Single, "single"),
        (r"`", String.Backtick, "template"),
        (r"mcp://[\w.\-]+/[\w/.\-]*", String.Other),
        (r"(?:a2a|acp)://[\w.\-:\[\]]+(?:/[\w/.~\-]*)?", String.Other),
        (rf"([=(:,\[!&|?;{{}}>]+){regex}", bygroups(Punctuation, Whitespace, String.Regex)),
        (rf"(\breturn\b|\byield\b){regex}", bygroups(Keyword, Whitespace, String.Regex)),
    ]


def _declarations() -> list[Rule]:
    """Heads of declarations, with the names that they declare."""
    declared = bygroups(Keyword.Declaration, Whitespace, Name.Class)
    permission = rf"(?i:{BEFORE}(can|needs))([ \t]+)({WORD}(?:\s*:\s*\w+)?)(?!\s*[=(.\[])"
    return [
        (
            rf"(?i:{BEFORE}(agent|role|team|skill|mcp|type|prompt))([ \t]+)({NAME})(?=\s*(?:[{{=:(]|override\b|$))",
            declared,
        ),
        (rf"(?i:{BEFORE}(on))([ \t]+)({WORD})(?=\s*\()", bygroups(Keyword, Whitespace, Name.Function)),
        (rf"(?i:{BEFORE}(function))([ \t]+)({WORD})", bygroups(Keyword.Declaration, Whitespace, Name.Function)),
        (permission, bygroups(Keyword, Whitespace, Name.Attribute)),
        (rf"(?i:{BEFORE}amnesia)(?=\s*=\s*(?:true|false)\b)", Keyword),
    ]


def _keywords() -> list[Rule]:
    rules = [(rf"(?i:{BEFORE}{_any_of(group)})\b{FOLLOWED}{NO_KEY}", token) for group, token in CONTEXTUAL.items()]
    always = [(rf"(?i:{BEFORE}{_any_of(group)})\b{NO_KEY}", token) for group, token in ELSEWHERE.items()]
    place = r"(?:(?<=[:|<&(,])|(?<=[:|<&(,] ))"
    kind = rf"{place}{_any_of('types')}(?=\s*(?:[\])}},=|&;{{>\[]|$))"
    return [(kind, Keyword.Type), *rules, *always]


def _names() -> list[Rule]:
    digits = r"\d+(?:_\d+)*"
    return [
        (r"\d+(?i:ms|s|m|h)\b", Number),
        (r"0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+", Number.Integer),
        (rf"(?:{digits}(?:\.{digits})?|\.{digits})(?:[eE][+-]?\d+)?", Number),
        (rf"{BEFORE}{_any_of('own_names')}\b", Name.Builtin.Pseudo),
        (rf"{BEFORE}{_any_of('globals')}\b", Name.Builtin),
        (rf"{WORD}(?=\s*\??:(?!:))", Name.Attribute),
        (rf"{WORD}(?=\()", Name.Function),
        (rf"{BEFORE}[A-Z]\w*", Name.Class),
        (WORD, Name),
        (r"[{}\[\](),;.]", Punctuation),
        (r"=>|\.\.\.|[-+*/%&|^=!<>?:~]+", Operator),
        (r"\\", Operator),
    ]


def _placeholders(lexer: type[KoiLexer]) -> list[Rule]:
    """Holes of texts, with code in them."""
    code = using(lexer)
    hole = bygroups(String.Interpol, code, String.Interpol)
    return [(r"(\{\{)((?:[^{}]|\{[^{}]*\})*)(\}\})", hole), (r"(\$\{)([^{}]*)(\})", hole)]


def _inside(lexer: type[KoiLexer]) -> list[Rule]:
    return [*_placeholders(lexer), (r"\\[\s\S]", String.Escape)]


def _prose(lexer: type[KoiLexer]) -> list[Rule]:
    """The highlights in a text for a model: holes, plans, and names of actions."""
    actions = words([word for word in word_groups()["actions"] if "_" in word], prefix=r"\b", suffix=r"\b")
    return [
        *_placeholders(lexer),
        (r'\{(?=\s*(?:$|"?\w+"?\s*:))', Punctuation, "plan"),
        (actions, Name.Builtin),
        (r"[^{}$\s\w]+|\w+|\s+|[{}$]", String),
    ]


def _plan(lexer: type[KoiLexer]) -> list[Rule]:
    """An object within prose; where it does not end, it ends with its text."""
    action = rf"{_any_of('actions')}|[\w.]+::[\w.]+|direct|delegate"
    named = rf'("?(?:intent|actionType|type)"?)(\s*:\s*)("?(?:{action})"?)(?![\w"])'
    return [
        *_placeholders(lexer),
        (r"[}\]]", Punctuation, "#pop"),
        (r"[{\[]", Punctuation, "#push"),
        (named, bygroups(Name.Attribute, Punctuation, Name.Builtin)),
        (r'"?[\w$]+"?(?=\s*\??:)', Name.Attribute),
        (r'"(?:[^"\\\n{$]|\\.)*"', String.Double),
        (r"\b(?:true|false|null)\b", Keyword.Constant),
        (r"-?\b\d+(?:\.\d+)?\b", Number),
        (r"\s+", Whitespace),
        (r"[,:]", Punctuation),
        (r"[^{}\[\]$\s\w,:\"]+|\w+|[$\"]", String),
        default("#pop"),
    ]
