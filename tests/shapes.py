"""Programs that grow: each shape is a function of a number, for what must neither fail nor become slow."""

from __future__ import annotations

from collections.abc import Callable

Shape = Callable[[int], str]


def code(text: str) -> str:
    """A program whose only handler consists of some code."""
    return f"role Worker {{ can go }}\nagent Ada : Worker {{ on go(args) {{\n{text}\n}} }}\n"


def _chain(part: str, last: str = "1", first: str = "const x = ") -> Shape:
    return lambda count: code(first + part * count + last)


def _pairs(opener: str, closer: str, inner: str = "1", first: str = "const x = ") -> Shape:
    return lambda count: code(first + opener * count + inner + closer * count)


NESTED: dict[str, Shape] = {
    "parentheses": _pairs("(", ")"),
    "lists": _pairs("[", "]"),
    "objects": _pairs("{ a: ", "}"),
    "blocks": _pairs("{", "}", "", ""),
    "open parentheses": _chain("(", ""),
    "open lists": _chain("[", ""),
    "open braces": _chain("{", "", ""),
    "not": _chain("!"),
    "minus": _chain("- "),
    "fields": _chain("a.", "b"),
    "calls": _pairs("f(", ")"),
    "indexes": _pairs("a[", "]"),
    "else if": _chain(" else if (a) { }", "", "if (a) { }"),
    "if": _chain("if (a) ", "b()", ""),
    "arrows": _chain("x => "),
    "functions": _pairs("function () { return ", " }"),
    "sums": _chain("1+"),
    "powers": _chain("1**"),
    "conditions": _chain("a ? b : "),
    "inner conditions": _pairs("a ? ", " : c", "b"),
    "templates": _pairs("`${", "}`"),
    "open templates": _chain("`${", ""),
    "assignments": _chain("a = ", "1", ""),
    "patterns": lambda n: code(f"const f = ({'[' * n}a{']' * n}) => 1"),
    "declared patterns": lambda n: code(f"const {'[' * n}a{']' * n} = b"),
    "types": lambda n: code(f"const a: {'Array<' * n}x{'>' * n} = 1"),
    "object types": lambda n: code(f"const a: {'{ a: ' * n}x{'}' * n} = 1"),
    "function types": lambda n: code(f"const a: {'(a: ' * n}x{') => y' * n} = 1"),
    "lists of types": lambda n: code(f"const a: {'[' * n}x{']' * n} = 1"),
    "types of calls": _pairs("f<A<A<b>>>(", ")"),
    "values with types": _chain(" as T", "", "const x = a"),
    "waits": _chain("await ", "x", ""),
    "tries": _pairs("try {", "} finally { }", "", ""),
    "spreads": _pairs("[...", "]", "a"),
}

# One long word, text or comment.
LONG: dict[str, Shape] = {
    "name": lambda n: "a" * n,
    "number": _chain("1", ""),
    "text": _chain("a", '"', 'x = "'),
    "open text": _chain("a", "", 'x = "'),
    "quotes": lambda n: '"' * n,
    "backslashes": _chain("\\", "", 'x = "'),
    "escapes": _chain("\\u{", '"', 'x = "'),
    "halves of characters": _chain("\\ud83d", '"', 'x = "'),
    "dollars": _chain("$", "", "x = `"),
    "open comments": lambda n: "/*" * n,
    "blanks": lambda n: " " * n + "}",
    "line ends": lambda n: "\r\n" * n + "}",
}

# The same over and over.
ROWS: dict[str, Shape] = {
    "open texts on lines": _chain('x("a\n', "", ""),
    "escaped quotes": _chain("'\\\"", "", ""),
    "triple quotes": _chain('"""a"""', '"""', ""),
    "backticks": _chain("`a\n", "", ""),
    "comments": lambda n: "/* */" * n + "}",
    "slashes": _chain("/ ", "", "x = "),
    "open expressions": _chain("/[a", "", "x = "),
    "addresses": _chain("mcp://", "", "x = "),
    "question marks": _chain("? ", "", "x = a"),
    "commas": _chain(",", "", "x = ["),
    "strange characters": lambda n: "\0\u200b\u00e9\U0001f600" * n,
    "statements": _chain("x()\n", "", ""),
    "bare words": _chain("x ", "", ""),
    "declarations": lambda n: "role A { can go }\n" * n,
    "broken declarations": lambda n: "role A { go }\n" * n,
    "open declarations": lambda n: "agent A : B {\n" * n,
    "prompts before an open text": lambda n: 'prompt A = """a"""\n' * n + '"""',
}
