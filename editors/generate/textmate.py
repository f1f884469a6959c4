"""The words of the language to a TextMate grammar, as VS Code and its relatives read it.

Such a grammar sees one line at a time. The contexts in which a word is a keyword are taken from the terminals; where
the parser alone decides, a word counts with what usually follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from editors.generate.words import Keyword, keywords, tree

Pattern = dict[str, Any]
NAME, WORD = r"[A-Za-z_]\w*", r"[A-Za-z_$][\w$]*"
# No word begins within another one, or behind the dot of a member; what is a key of an object is none either.
ESCAPE = r"\\(?:u\{[0-9A-Fa-f]+\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)"
BEFORE, AFTER = r"(?<![\w$.])", r"(?!\s*:(?!:))"
# What follows the words of declarations and of parts of agents, which are names elsewhere.
FOLLOWED = r"""(?=[ \t]+(?!(?:in|of|instanceof|as|is|satisfies|and|or)\b)[A-Za-z_]|\s*["'{]|\s+[0-9]|[ \t]*$)"""
CONTEXTUAL = frozenset({"declarations", "members", "modifiers", "clauses"})
# Standard scopes, for which the themes of editors have colours.
SCOPES: Mapping[str, str] = {
    "modules": "keyword.control.import",
    "declarations": "storage.type",
    "members": "keyword.other.member",
    "modifiers": "storage.modifier",
    "clauses": "keyword.other.clause",
    "testing": "keyword.other.testing",
    "storage": "storage.type",
    "control": "keyword.control",
    "operators": "keyword.operator.expression",
    "constants": "constant.language",
}
DECLARED = ("agent", "role", "team", "skill", "mcp")


def grammar() -> Pattern:
    """The whole grammar; its scope is `source.koi`."""
    repository = {
        "code": _any_of(
            "comments", "texts", "templates", "regexes", "declarations", "numbers", "types", "keywords", "calls",
            "keys", "names", "blocks", "marks",
        ),
        "comments": _patterns(*_comments()),
        "texts": _patterns(*_texts()),
        "templates": _patterns(_template()),
        "regexes": _patterns(_regex()),
        "declarations": _patterns(*_declarations()),
        "numbers": _patterns(*_numbers()),
        "types": _patterns(_type()),
        "keywords": _patterns(*_keywords()),
        "calls": _patterns(_match(rf"({WORD})(?=\s*\??\.?\()", "entity.name.function")),
        "keys": _patterns(_match(rf"(?:(?<=[{{,])|^)\s*({WORD})\s*(?=\??:(?!:))", None, "variable.other.property")),
        "names": _patterns(*_names()),
        "blocks": _patterns(_begin(r"\{", r"\}", "code", mark="punctuation.section.block")),
        "marks": _patterns(
            _match(r"=>", "storage.type.function.arrow"),
            _match(r"\?\?=?|\|\|=?|&&=?|[=!]==?|[<>]=?|\*\*=?|[-+*/%&|^]=?|\.\.\.|[?:=!~]", "keyword.operator"),
            _match(r"[;,]", "punctuation.separator"),
        ),
        "prose": _patterns(*_prose()),
        "placeholders": _patterns(*_placeholders()),
        "plan": _patterns(*_plan()),
        "escapes": _patterns(_match(ESCAPE, "constant.character.escape")),
    }  # fmt: skip
    return {
        "name": "Koi",
        "scopeName": "source.koi",
        "fileTypes": ["koi"],
        "patterns": [{"include": "#code"}],
        "repository": repository,
    }


def _match(pattern: str, scope: str | None, *groups: str) -> Pattern:
    """A pattern within one line; `groups` are the scopes of its groups."""
    name = {} if scope is None else {"name": f"{scope}.koi"}
    captures = {str(number): {"name": f"{group}.koi"} for number, group in enumerate(groups, 1) if group}
    return {"match": pattern, **name, **({"captures": captures} if captures else {})}


def _begin(begin: str, end: str, *inside: str, scope: str = "", mark: str = "", content: str = "") -> Pattern:
    """A pattern from a beginning to an end, over lines; `mark` is the scope of both ends."""
    found: Pattern = {"begin": begin, "end": end}
    found |= {"name": f"{scope}.koi"} if scope else {}
    found |= {"contentName": f"{content}.koi"} if content else {}
    if mark:
        found["beginCaptures"] = {"0": {"name": f"{mark}.begin.koi"}}
        found["endCaptures"] = {"0": {"name": f"{mark}.end.koi"}}
    return {**found, **_any_of(*inside)}


def _patterns(*patterns: Pattern) -> Pattern:
    return {"patterns": list(patterns)}


def _any_of(*names: str) -> Pattern:
    return _patterns(*({"include": f"#{name}"} for name in names))


def _words(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


def _comments() -> Iterator[Pattern]:
    yield {"name": "comment.line.double-slash.koi", "match": r"//.*$"}
    yield {"name": "comment.block.documentation.koi", "begin": r"/\*\*(?!/)", "end": r"\*/"}
    yield {"name": "comment.block.koi", "begin": r"/\*", "end": r"\*/"}


def _texts() -> Iterator[Pattern]:
    """Texts in three quotes or more are prose; so are others, but that escapes count in them."""
    mark = "punctuation.definition.string"
    yield _match('"{6}(?!")', "string.quoted.triple")
    yield _begin(r'("{3,})', r"\1", "prose", scope="string.quoted.triple", mark=mark, content="meta.prose")
    inside = ("escapes", "placeholders")
    yield _begin('"', '"', *inside, scope="string.quoted.double", mark=mark)
    yield _begin("'", "'", *inside, scope="string.quoted.single", mark=mark)
    yield _match(r"mcp://[\w.\-]+/[\w/.\-]*", "string.unquoted.address")
    yield _match(r"a2a://[\w.\-:\[\]]+(?:/[\w/.~\-]*)?", "string.unquoted.address")


def _template() -> Pattern:
    hole = _begin(r"\$\{", r"\}", "code", scope="meta.template.expression", mark="punctuation.section.embedded")
    found = _begin("`", "`", "escapes", scope="string.quoted.template", mark="punctuation.definition.string")
    return {**found, "patterns": [*found["patterns"], hole]}


def _regex() -> Pattern:
    begins = r"(?:(?<=[=(:,\[!&|?{};>])|(?<=return)|(?<=yield)|(?<=case)|^)\s*"
    body = r"(/(?![*/])(?:[^/\\\[]|\\.|\[(?:[^\]\\]|\\.)*\])+/)([a-z]*)"
    return _match(begins + body, None, "string.regexp", "keyword.other.flags")


def _declarations() -> Iterator[Pattern]:
    """Heads of declarations, with the names that they declare and use."""
    word = rf"(?i:{BEFORE}(%s))[ \t]+"
    heritage = ("keyword.operator", "entity.other.inherited-class")
    yield _match(
        rf"{word % 'agent'}({NAME})\s*(:)\s*({NAME})", None, "storage.type", "entity.name.type.agent", *heritage
    )
    head = r"(?=\s*(?:[{=:]|override\b|$))"
    for kind in DECLARED:
        yield _match(rf"{word % kind}({NAME}){head}", None, "storage.type", f"entity.name.type.{kind}")
    yield _match(rf"{word % 'type'}({NAME})\s*(?==(?!=))", None, "storage.type", "entity.name.type")
    yield _match(rf"{word % 'prompt'}({NAME})(?=\s*(?:=|\())", None, "storage.type", "variable.other.constant")
    handler = ("storage.modifier", "keyword.other.member", "entity.name.function")
    yield _match(rf"(?i:{BEFORE}(?:(private)[ \t]+)?(on))[ \t]+({WORD})(?=\s*\()", None, *handler)
    function = ("storage.type", "keyword.operator", "entity.name.function")
    yield _match(rf"(?i:{BEFORE}(function))\s*(\*?)\s*({WORD})", None, *function)
    permission = r"([A-Za-z_$][\w$]*(?:\s*:\s*\w+)?)"
    yield _match(
        rf"{word % 'can|needs'}{permission}(?!\s*[=(.\[])",
        None,
        "storage.modifier",
        "variable.other.enummember.permission",
    )
    yield _match(rf"(?i:{BEFORE}(amnesia))(?=\s*=\s*(?:true|false)\b)", None, "keyword.other.member")
    uses = ("keyword.other.member", "storage.type")
    yield _match(rf"{word % 'uses'}(?i:(skills?|team|mcp|instructions))\b", None, *uses)
    given = ("keyword.other.testing", "keyword.other.testing", "keyword.other.testing")
    yield _match(rf"{word % 'given'}({NAME})[ \t]+({NAME})", None, *given)
    yield _match(rf"{word % 'llm'}({NAME})\s*(?==)", None, "keyword.other.member", "variable.other.constant")
    imported = ("keyword.control.import", "entity.name.type", "keyword.operator", "storage.type")
    yield _match(rf"{word % 'import'}({NAME})(?:\s*(:)\s*({WORD}))?(?=\s+from)", None, *imported)


def _numbers() -> Iterator[Pattern]:
    yield _match(r"(?<![\w$])[0-9]+(?i:ms|s|m|h)\b", "constant.numeric.duration")
    digits = r"[0-9]+(?:_[0-9]+)*"
    whole = r"0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+"
    yield _match(
        rf"(?<![\w$])(?:{whole}|(?:{digits}(?:\.{digits})?|\.{digits})(?:[eE][+-]?[0-9]+)?)\b", "constant.numeric"
    )


def _type() -> Pattern:
    named = _words(tree()["types"])
    return _match(
        rf"(?<=[:|<&(,]|\bas)(\s*)({named})(?=\s*(?:[\])}},=|&;{{>\[]|$))", None, "", "support.type.primitive"
    )


def _keywords() -> Iterator[Pattern]:
    """A pattern for all words that look alike and are told by the same context."""

    def context(keyword: Keyword) -> tuple[str, str, bool]:
        alone = FOLLOWED if keyword.group in CONTEXTUAL else ""
        return SCOPES[keyword.group], keyword.behind or alone, keyword.ignores_case

    for (scope, behind, ignores_case), alike in groupby(sorted(keywords(), key=context), key=context):
        words = _words({word for keyword in alike for word in keyword.words})
        spelt = f"(?i:{words})" if ignores_case else f"(?:{words})"
        after = "" if behind.startswith(r"(?=\s*:") else AFTER
        yield _match(rf"{BEFORE}{spelt}\b{behind}{after}", scope)


def _names() -> Iterator[Pattern]:
    words = tree()
    yield _match(rf"{BEFORE}(?:this)\b", "variable.language.this")
    yield _match(rf"{BEFORE}(?:{_words({*words['own_names']} - {'this'})})\b", "support.variable")
    yield _match(rf"{BEFORE}(?:{_words({*words['globals']} - {'undefined', 'NaN', 'Infinity'})})\b", "support.class")
    yield _match(rf"{BEFORE}(?:undefined|NaN|Infinity)\b", "constant.language")
    yield _match(rf"(?<=\.)({WORD})", None, "variable.other.property")
    yield _match(rf"{BEFORE}[A-Z]\w*", "entity.name.type")
    yield _match(rf"{BEFORE}{WORD}", "variable.other.readwrite")


def _prose() -> Iterator[Pattern]:
    """What stands out in a text for a model: placeholders, plans, names of actions, and what looks like Markdown."""
    yield {"include": "#placeholders"}
    # A plan or a form of a result, and never more than its text: quotes end it, also where its brace is not closed.
    yield _begin(
        r'\{(?=\s*(?:$|"?\w+"?\s*:))', r'\}|(?="{3})', "plan", scope="meta.plan", mark="punctuation.section.plan"
    )
    yield _match(r"^\s*(#{1,6}\s.*)$", None, "markup.heading")
    yield _match(r"^\s*([-*]|\d+[.)])(?=\s)", None, "punctuation.definition.list.begin.markdown")
    yield _match(r"`[^`\n]+`", "markup.inline.raw")
    yield _match(rf"\b(?:{_words(word for word in tree()['actions'] if '_' in word)})\b", "support.function.action")


def _placeholders() -> Iterator[Pattern]:
    """Holes of a text, each within a line, with code in them."""
    mark, scope = "punctuation.definition.template-expression", "meta.placeholder"
    for pattern in r"(\{\{)((?:[^{}]|\{[^{}]*\})*)(\}\})", r"(\$\{)([^{}]*)(\})":
        hole = _match(pattern, scope, f"{mark}.begin", "meta.embedded", f"{mark}.end")
        hole["captures"]["2"] |= _any_of("code")
        yield hole


def _plan() -> Iterator[Pattern]:
    """Objects and lists in prose: keys, the names of actions, and values."""
    words = tree()
    yield {"include": "#placeholders"}
    actions = _words([*words["actions"], r"[\w.]+::[\w.]+"])
    chosen = ("support.type.property-name", "support.function.action")
    yield _match(rf'("?(?:intent|actionType|type)"?)\s*:\s*("?(?:{actions}|direct|delegate)"?)(?![\w"])', None, *chosen)
    yield _match(rf'"?(?:{_words(words["plan_fields"])})"?(?=\s*:)', "support.type.property-name")
    yield _match(r'"?[\w$]+"?(?=\s*\??:)', "variable.other.property")
    yield _begin('"(?!"")', r'"|(?="{3})|$', "escapes", "placeholders", scope="string.quoted.double")
    yield _match(r"\b(?:true|false|null)\b", "constant.language")
    yield _match(r"-?\b[0-9]+(?:\.[0-9]+)?\b", "constant.numeric")
    yield _match(r"<[^<>\n]+>", "markup.italic")
    for opening, closing in (r"\{", r"\}"), (r"\[", r"\]"):
        yield _begin(opening, rf'{closing}|(?="{{3}})', "plan", mark="punctuation.section.plan")
