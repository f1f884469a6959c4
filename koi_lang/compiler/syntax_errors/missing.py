"""Constructs of JavaScript and TypeScript that Koi does not have or that lack a piece, each with what to write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from koi_lang.compiler.build.annotations import OF_PYTHON
from koi_lang.compiler.syntax_errors.context import Failure, ForeignForm, Hint, SyntaxHelp, form_at, hint
from koi_lang.source import Source, Span

HINTS: list[Hint] = []
OF_SWITCH = frozenset(("CASE", "CASE_DEFAULT", "RBRACE"))
FORM = "write `switch (…) { case …: … }`."
ERROR_CLASS = re.compile(r"[^\n]*?\b(class\s+(\w+)\s+extends\s+\w*Error)\b")
NAME_BEFORE = re.compile(r"\w+$")
ON_ITS_OWN = "let it be a statement of its own, and assign in it."
# What stands instead of a statement where a value is needed.
AS_VALUE = {
    "if": "write `condition ? value : other`.",
    "switch": "write `condition ? value : other`.",
    "throw": "write `if (…) { throw … }` before it.",
    "playbook": 'give the playbook a handler of its own, and write `await this.handle("name", { … })`.',
    "run": "write `await Agent.handler({ … })`.",
    **dict.fromkeys(("for", "while", "try"), ON_ITS_OWN),
    **dict.fromkeys(("const", "let", "var"), "declare the name on a line before, and use it here."),
}
# How bounds of types are written elsewhere.
RANGE_WORDS = frozenset("in between from within min max range > >= < <=".split())
PATTERN_WORDS = frozenset("matching matches match like regex pattern".split())
_END = r"(-?(?:\d[\d_]*(?:\.\d+)?|\.\d+))"
_TYPE = r"\b(number|string|Int|integer|int|float|double|str|text|list)"
_DOTS = r"\.\.[.=<]?"
NO_RANGE = "this is no range of a type"
# Ranges with dots or brackets as other languages write them.
RANGES: Sequence[ForeignForm] = tuple(
    (pattern, NO_RANGE, rf"write `{form}`.")
    for pattern, form in (
        (rf"{_TYPE}\s+in\s+([\d.-]+)\s*\|\s*(?:in\s+)?([\d.-]+)", r"\1 in \2 | \1 in \3"),
        (rf"{_TYPE}\s*(?:in\s+)?[\[({{]\s*{_END}?\s*(?:{_DOTS}|,|:|\bto\b|-)\s*{_END}?\s*[\])}}]", r"\1 in \2..\3"),
        (rf"{_TYPE}\s*[\[({{]\s*{_END}\s*[\])}}]", r"\1 in ..\2"),
        (rf"{_TYPE}\.max\w*\(\s*{_END}\s*\)", r"\1 in ..\2"),
        (rf"{_TYPE}\.\w+\(\s*{_END}\s*\)(?:\.\w+\(\s*{_END}\s*\))?", r"\1 in \2..\3"),
        (rf"{_TYPE}\s+in\s+{_END}?\s*{_DOTS}(?:\s*{_END}\.?|(?!\s*[\w.-]))", r"\1 in \2..\3"),
    )
)


@hint(HINTS, "E0144")
def bounds(failure: Failure) -> SyntaxHelp | None:
    """The bounds of a type are written in a form that Koi does not have.

    `in low..high` bounds a number, or the length of a text or a list; `matching /…/` says what a text contains.

    Wrong:

        type Grade = { score: number in [0, 1] }

    Right:

        type Grade = { score: number in 0..1 }
    """
    found = None if failure.is_code else form_at(failure.source, failure.span.start, RANGES)
    if found is not None:
        return found._replace(help=re.sub(r"(?<![\w.])\.(?=\d)|(?<=\.\.)\.(?=\d)", "0.", found.help))
    if failure.tail[-1:] != ("Type",) or failure.piece().fresh:
        return None
    word = failure.word()
    if word in PATTERN_WORDS:
        return SyntaxHelp("this is no pattern of a type", failure.span, "write `matching /…/` behind `string`.")
    if word not in RANGE_WORDS and failure.piece().kind != "number":
        return None
    ends = [failure.piece(offset) for offset in range(6) if not failure.piece(offset).fresh]
    closing = "])" if ends[1:] and ends[1].text in ("[", "(") else ",};"
    own = [end.text for end in takewhile(lambda end: end.text not in closing, ends[1:])]
    if name := next((each for each in own if each.isidentifier() and each not in (*RANGE_WORDS, "to", "and")), ""):
        return SyntaxHelp(NO_RANGE, failure.span, f"write the number in place of `{name}`, as in `in 0..100`.")
    numbers = [end.text for end in ends if end.kind == "number"] or ["1", "5"]
    low, high = {">": (numbers[0], ""), "<": ("", numbers[0])}.get(word[0], (numbers[0], numbers[-1]))
    included = f", which includes {numbers[0]}" if word in ("<", ">") else ""
    return SyntaxHelp(NO_RANGE, failure.span, f"write `in {low}..{high}`{included}.")


@hint(HINTS, "E0193")
def statement_as_value(failure: Failure) -> SyntaxHelp | None:
    """A statement such as `if` stands where a value is needed.

    Wrong:

        const size = if (args.big) 10 else 1

    Right:

        const size = args.big ? 10 : 1
    """
    help = AS_VALUE.get(failure.word())
    if help is None or not failure.wants_value or not failure.is_code:
        return None
    return SyntaxHelp(f"{failure.excerpt} stands where a value is needed", failure.span, help)


@hint(HINTS, "E0194")
def own_error(failure: Failure) -> SyntaxHelp | None:
    """A kind of error is declared as a class.

    Errors are told apart by their fields.

    Wrong:

        class NotFound extends Error { }

    Right:

        const notFound = text => Object.assign(new Error(text), { name: "NotFound" })
    """
    return error_class(failure.source, failure.span.start)


def own_error_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """The same where the line can be read as two statements."""
    return error_class(source, first.start)


def error_class(source: Source, offset: int) -> SyntaxHelp | None:
    """What to write instead of the class of errors that is declared on the line of an offset, if one is."""
    match = ERROR_CLASS.match(source.text, source.text.rfind("\n", 0, offset) + 1)
    if match is None or not match.start(1) <= offset <= match.end(1):
        return None
    help = f'write `throw Object.assign(new Error("…"), {{ name: "{match[2]}" }})`, and ask for `error.name`.'
    return SyntaxHelp("Koi has no `class`", Span(match.start(1), match.start(1) + len("class")), help)


def tagged_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """A name that touches the text in backticks behind it."""
    if source.text[second.start] != "`" or first.end != second.start:
        return None
    name = NAME_BEFORE.search(source.text, first.start, first.end)
    return None if name is None else tag_help(source, Span(*name.span()))


def tag_help(source: Source, span: Span) -> SyntaxHelp:
    """What to write instead of a text in backticks with a name before it."""
    name = source.text[slice(*span)]
    if source.text.endswith("String.raw", 0, span.end):
        help = "leave it out, and write each backslash twice."
        return SyntaxHelp("Koi has no `String.raw`", Span(span.end - len("String.raw"), span.end), help)
    help = f"write ``{name}(`…`)``, or leave `{name}` out: `${{…}}` inserts values."
    return SyntaxHelp(f"a text has no name `{name}` before it", span, help)


@hint(HINTS, "E0601")
def conditional_of_python(failure: Failure) -> SyntaxHelp | None:
    """A value is chosen as in Python.

    Wrong:

        const size = "big" if args.n > 3 else "small"

    Right:

        const size = args.n > 3 ? "big" : "small"
    """
    if failure.word() not in ("if", "else") or not failure.is_code:
        return None
    line = [failure.index + offset for offset in failure.same_line()][::-1]
    pieces = failure.scan.pieces
    end = next((at for at in range(failure.index + 1, len(pieces)) if pieces[at].fresh), len(pieces))
    on_line = [*line, *range(failure.index, end)]
    chosen = next((at for at in on_line if pieces[at].text == "if" and not pieces[at].fresh), None)
    other = next((at for at in on_line if pieces[at].text == "else"), None)
    if chosen is None or other is None or other < chosen or pieces[chosen - 1].text in ("{", "}", ")", ";", "else"):
        return None
    text, value = failure.source.text, pieces[chosen - 1]
    condition = text[pieces[chosen].span.end : pieces[other].span.start].strip()
    help = f"write `{condition} ? {value.text if value.kind != 'triple' else '…'} : …`."
    return SyntaxHelp("Koi has no `if … else …` behind a value", pieces[chosen].span, help)


@hint(HINTS, "E0603")
def needless_export(failure: Failure) -> SyntaxHelp | None:
    """`export` stands before something that needs none.

    An import brings all roles, agents, teams and skills of a file. Prompts and functions of skills are exported.

    Wrong:

        export agent Ada : Worker { on start() { console.log("go") } }

    Right:

        agent Ada : Worker { on start() { console.log("go") } }
    """
    word = failure.word()
    if failure.frames or failure.word(-1) != "export":
        return None
    if word in ("agent", "team", "role", "skill", "mcp"):
        others = "mcp servers are not brought along." if word == "mcp" else f"an import brings every {word} of a file."
        return SyntaxHelp(f"`{word}` stands behind `export`", failure.piece(-1).span, f"leave `export` out: {others}")
    if word != "default":
        return None
    end = failure.source.text.find("\n", failure.span.end) % (failure.end + 1)
    span = Span(failure.piece(-1).span.start, end)
    return SyntaxHelp("Koi has no `export default`", span, "leave the line out: imports bring all of a file.")


@hint(HINTS, "E0604")
def named_argument(failure: Failure) -> SyntaxHelp | None:
    """Arguments have names, as in Swift or C#.

    Wrong:

        await this.add(a: 1, b: 2)

    Right:

        await this.add({ a: 1, b: 2 })
    """
    opener = failure.at(failure.frame.start) if failure.frames else 0
    if opener == 0:
        return None
    before = failure.scan.pieces[opener - 1]
    is_call = failure.frame.bracket == "(" and (before.kind == "word" or before.text == ")")
    if before.text in ("for", "if", "while", "catch", "switch"):
        return None
    if failure.word() != ":" or not is_call or failure.index != opener + 2 or "COMMA" not in failure.expected:
        return None
    closer = failure.scan.partners.get(opener, opener)
    inside = failure.source.text[failure.scan.pieces[opener].span.end : failure.scan.pieces[closer].span.start].strip()
    shown = inside if 0 < len(inside) < 60 and "\n" not in inside else f"{failure.piece(-1).text}: …"
    return SyntaxHelp("arguments have no names", failure.piece(-1).span, f"write `({{ {shown} }})`.")


@hint(HINTS, "E0605")
def type_of_python(failure: Failure) -> SyntaxHelp | None:
    """A type is written as in Python or BAML.

    Wrong:

        on start(args: { names: list[string], size: int? }) { console.log(args.names) }

    Right:

        on start(args: { names: string[], size?: int }) { console.log(args.names) }
    """
    before, name, inner = (failure.piece(offset) for offset in (-1, -3, -1))
    if "RSQB" in failure.expected and failure.word(-2) == "[" and name.text.lower() in OF_PYTHON:
        shown = OF_PYTHON[name.text.lower()].format(OF_PYTHON.get(inner.text.lower(), inner.text))
        return SyntaxHelp(f"`{name.text}[…]` is a type of Python", name.span, f"write `{shown}`.")
    is_field = before.kind == "word" and failure.piece(-2).text == ":" and failure.frame.bracket in ("{", "(")
    if failure.word() == "?" and is_field and before.span.end == failure.span.start:
        help = f"write `{failure.piece(-3).text}?: {before.text}`."
        return SyntaxHelp("the `?` stands behind the name", failure.span, help)
    return None


@hint(HINTS, "E0609")
def default_in_type(failure: Failure) -> SyntaxHelp | None:
    """A field of a type has a default, as in Python.

    A type says which values a field may have. What counts where it is left out stands where it is read, or where the
    payload is taken apart: `on find({ topic, limit = 10 })`.

    Wrong:

        on find(args: { topic: string, limit: number = 10 }) { console.log(args.topic, args.limit) }

    Right:

        on find(args: { topic: string, limit?: number }) { console.log(args.topic, args.limit ?? 10) }
    """
    if failure.word() != "=" or failure.tail[-2:] != ("COLON", "Type") or failure.frame.bracket != "{":
        return None
    pieces, openers = failure.scan.pieces, {closer: opener for opener, closer in failure.scan.partners.items()}
    at = failure.index - 1
    while pieces[at].text != ":":
        at = openers.get(at, at) - 1
    name = pieces[at - 2] if pieces[at - 1].text == "?" else pieces[at - 1]
    value = failure.piece(1).text if failure.piece(1).kind in ("number", "text", "word") else "…"
    help = f"write `{name.text}?: …`, and `?? {value}` where it is read."
    return SyntaxHelp(f"the type of `{name.text}` cannot hold a default", failure.span, help)


@hint(HINTS, "E0333")
def do_alone(failure: Failure) -> SyntaxHelp | None:
    """A `do` has no `while` behind its body.

    Wrong:

        do { console.log("go") }

    Right:

        do { console.log("go") } while (args.more)
    """
    if failure.expected != {"WHILE"}:
        return None
    before = failure.piece(-1)
    return SyntaxHelp("this `do` has no `while`", before.span, "write `while (…)` behind it.", "it ends here")


@hint(HINTS, "E0334")
def clause_alone(failure: Failure) -> SyntaxHelp | None:
    """A step of a `switch` stands before its first `case`, a `case` has no `:`, or it stands outside of a `switch`.

    A `default` needs its `:`, too.

    Wrong:

        switch (args.kind) { console.log("go") }

    Right:

        switch (args.kind) { case "a": console.log("go") }
    """
    if failure.frame.word == "switch" and failure.word() == "default" and failure.word(1) != ":":
        return SyntaxHelp("this `default` has no `:`", failure.span, "write `default:`.")
    opener = failure.at(failure.frame.start) if failure.frames else 0
    first = next((piece for piece in failure.scan.pieces[opener::-1] if piece.fresh), failure.piece())
    if first.text == "match" and failure.is_code and failure.word() != "}":
        return SyntaxHelp("Koi has no `match`", first.span, FORM)
    head = max((offset for offset in (0, *failure.same_line()) if failure.word(offset) == "case"), default=None)
    if failure.expected == OF_SWITCH:
        help = "write `case …:` or `default:` in front of it."
        return SyntaxHelp(f"no `case` stands before {failure.excerpt}", failure.span, help)
    if failure.tail[:1] == ("CASE",) and failure.word() == "," and failure.expected == {"COLON"}:
        return SyntaxHelp("a `case` has one value", failure.span, "write `case 1: case 2:` for several.")
    if failure.tail[:1] == ("CASE",) and failure.expected == {"COLON"}:
        return SyntaxHelp("this `case` has no `:`", failure.span, "write `:` behind its value.")
    if head is not None and failure.is_code and failure.frame.word != "switch" and failure.word(head + 1) != ".":
        return SyntaxHelp("this `case` stands in no `switch`", failure.piece(head).span, FORM)
    return None
