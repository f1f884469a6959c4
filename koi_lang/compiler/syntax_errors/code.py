"""Mistakes in the code of handlers and functions."""

from __future__ import annotations

import re

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.compiler.syntax_errors.scanner import ScannedToken
from koi_lang.source import Span

HINTS: list[Hint] = []
# The head of a loop of Python, up to the end of its line.
PYTHON_FOR = re.compile(r"(?:(?:const|let|var) )?([\w$]+) (?:in|of) ([^\n{:]+)")
# A type and a value behind a name.
TYPED = re.compile(r": *(\w+(?:\[\])*) *=[^=]")
# Numbers up to one, from 0 or another one.
RANGE = re.compile(r"range\((?:([^,()]+), *)?([^,()]+(?:\([^()]*\))?)\)")
# Several names that are given several values, as in Python.
UNPACKED = re.compile(r"\s*(const|let|var)\s+(\w+(?:\s*,\s*\w+)+)\s*=[^=].*,\s*\w+\Z")
MARKS = frozenset((*"+-*/%=<>!?:,([{.", "**", "==", "===", "!=", "!==", "<=", ">=", "&&", "||", "??", "${", "=>", "?."))


@hint(HINTS, "E0187")
def body_missing(failure: Failure) -> SyntaxHelp | None:
    """An `if` or a loop has no body.

    Wrong:

        while (args.more)

    Right:

        while (args.more) { args.more = false }
    """
    if failure.word() not in ("}", "else", "") or "VARIABLE" not in failure.expected or not failure.is_code:
        return None
    word = next((kind.lower() for kind in reversed(failure.tail) if kind in ("IF", "WHILE", "FOR", "ELSE")), None)
    if word is None:
        return None
    return SyntaxHelp(f"this `{word}` has no body", failure.piece(-1).span, f"write `{word} … {{ … }}`.")


@hint(HINTS, "E0163")
def lonely_branch(failure: Failure) -> SyntaxHelp | None:
    """An `else` has no `if` before it, or a `catch` or `finally` no `try`.

    Wrong:

        console.log("a")
        else { console.log("b") }

    Right:

        if (args.a) { console.log("a") }
        else { console.log("b") }
    """
    word = failure.word()
    if word not in ("else", "catch", "finally") or not failure.is_code or failure.wants_value:
        return None
    owner = "if" if word == "else" else "try"
    help = f"write `{owner} … {{ … }}` directly before it." if failure.word(-1) != ";" else "delete the `;` before it."
    return SyntaxHelp(f"there is no `{owner}` before this {failure.excerpt}", failure.span, help)


@hint(HINTS, "E0164")
def arrow(failure: Failure) -> SyntaxHelp | None:
    """A function has no `=>` or no parameters before it.

    Wrong:

        const double = => 2

    Right:

        const double = () => 2
    """
    if failure.word() == "=>" and failure.wants_value:
        return SyntaxHelp("there are no parameters before `=>`", failure.span, "write `() =>`.")
    if failure.word() == "{" and failure.tail[-1:] == ("ASYNC",):
        return SyntaxHelp("`() =>` is missing after `async`", failure.span, "write `async () => {`.")
    if failure.word() != "{" or failure.word(-1) != ")" or failure.frame.bracket not in ("(", "[", "{"):
        return None
    if "CALL_OPEN" in failure.tail or "COMMA" not in failure.expected:
        return None
    return SyntaxHelp("`=>` is missing before this `{`", failure.span, "write `=> {`.")


@hint(HINTS, "E0167")
def for_form(failure: Failure) -> SyntaxHelp | None:
    """The head of a `for` is not complete.

    Wrong:

        for (name of args.names) { console.log(name) }

    Right:

        for (const name of args.names) { console.log(name) }
    """
    if failure.tail[-1:] == ("FOR",) and failure.word() != "(":
        head = PYTHON_FOR.match(failure.source.text, failure.span.start)
        each, items = (head[1], head[2].strip()) if head else ("item", "list")
        counted = RANGE.fullmatch(items)
        help = f"write `for (const {each} of {items}) {{ … }}`."
        if counted is not None:
            help = f"write `for (let {each} = {counted[1] or 0}; {each} < {counted[2]}; {each}++) {{ … }}`."
        return SyntaxHelp("the parentheses of this `for` are missing", failure.piece(-1).span, help)
    if failure.frame.word == "for" and failure.expected and failure.expected <= {"RPAR", "SEMICOLON", "COMMA"}:
        return _for_head(failure)
    name = failure.piece(-1)
    if failure.frame.word in ("for", "const", "let", "var") and "OF" in failure.expected and name.kind == "word":
        help = f"write `for (const {name.text} of list) {{ … }}`."
        return SyntaxHelp(f"`of` is missing after `{name.text}`", name.span, help)
    if failure.frame.word != "for" or failure.word() not in ("of", "in"):
        return None
    return _declaration_missing(name, failure.word())


def _for_head(failure: Failure) -> SyntaxHelp | None:
    """What is wrong with the head of a `for` that has begun well."""
    if failure.word() == ":":
        return _declaration_missing(failure.piece(-1), "of")
    opener = failure.at(failure.frame.start)
    name, word = (failure.piece(opener + offset - failure.index) for offset in (1, 2))
    if failure.word() != ")" or word.text.lower() != "in":
        return None
    return _declaration_missing(name, "in")


def _declaration_missing(name: ScannedToken, word: str) -> SyntaxHelp:
    """A loop whose variable is not declared; people who write `in` mostly mean the items."""
    more = f", or `for (const {name.text} in …)` for keys" if word == "in" else ""
    help = f"write `for (const {name.text} of …)`{more}."
    return SyntaxHelp(f"`{name.text}` is not declared here", name.span, help)


@hint(HINTS, "E0611")
def caught_type(failure: Failure) -> SyntaxHelp | None:
    """A `catch` names the kind of error that it is for, as in Java or C#.

    There is one `catch` for all errors, which are told apart by `error.name`.

    Wrong:

        try { console.log("go") } catch (Error error) { console.log(error.message) }

    Right:

        try { console.log("go") } catch (error) { console.log(error.message) }
    """
    if failure.frame.word != "catch" or failure.tail[-1:] != ("Binding",) or failure.piece().kind != "word":
        return None
    name = failure.piece(1).text if failure.word() == "as" else failure.piece().text
    help = f"write `catch ({name}) {{ … }}`, and ask for `{name}.name`."
    return SyntaxHelp("`catch` takes a name and no kind of error", failure.piece(-1).span, help)


@hint(HINTS, "E0168")
def new_form(failure: Failure) -> SyntaxHelp | None:
    """There are no parentheses after the name behind `new`.

    Wrong:

        throw new Error

    Right:

        throw new Error("failed")
    """
    if "NEW" not in failure.tail or "CALL_OPEN" not in failure.expected:
        return None
    name = failure.piece(-1)
    return SyntaxHelp(f"the parentheses after `new {name.text}` are missing", name.span, f"write `new {name.text}()`.")


@hint(HINTS, "E0169")
def timeout(failure: Failure) -> SyntaxHelp | None:
    """A time has no unit.

    The units are `ms`, `s`, `m` and `h`, directly behind a whole number.

    Wrong:

        await send peers.event("greet").any()({}) timeout 5

    Right:

        await send peers.event("greet").any()({}) timeout 5s
    """
    if failure.tail[-1:] != ("TIMEOUT",):
        return None
    digits = "".join(character for character in failure.word() if character.isdigit()) or "5"
    unit = "s" if len(digits) < 3 else "ms"
    help = f"write `{digits}{unit}`; the units are `ms`, `s`, `m` and `h`."
    return SyntaxHelp(f"{failure.excerpt} is not a time", failure.span, help)


@hint(HINTS, "E0170")
def conditional(failure: Failure) -> SyntaxHelp | None:
    """A `? :` has no second half.

    Wrong:

        const size = args.big ? 10

    Right:

        const size = args.big ? 10 : 1
    """
    if "QMARK" not in failure.tail or "COLON" not in failure.expected or failure.wants_value:
        return None
    mark = next((offset for offset in range(-1, -60, -1) if failure.word(offset) == "?"), None)
    span = failure.span if mark is None else failure.piece(mark).span
    return SyntaxHelp("this `?` has no `:` that belongs to it", span, "write `condition ? value : other`.")


@hint(HINTS, "E0173")
def dots(failure: Failure) -> SyntaxHelp | None:
    """There are two dots where one or three belong.

    Wrong:

        console.log(..args)

    Right:

        console.log(...args)
    """
    before = failure.word() == "." and failure.word(-1) == "."
    if not before and not (failure.word() == "." and failure.word(1) == "."):
        return None
    first, last = (failure.piece(-1), failure.piece()) if before else (failure.piece(), failure.piece(1))
    help = "write `.`." if before else "write `...`."
    return SyntaxHelp("two dots mean nothing", Span(first.span.start, last.span.end), help)


@hint(HINTS, "E0174")
def label(failure: Failure) -> SyntaxHelp | None:
    """A statement begins with a name and `:`.

    A label stands in front of a loop, a `switch`, an `if`, a `try` or a block that begins with a keyword. A value is
    given with `=`.

    Wrong:

        total: 5

    Right:

        const total = 5
    """
    name = failure.piece(-1)
    if (
        failure.word() != ":"
        or name.kind != "word"
        or not name.fresh
        or not failure.is_code
        or failure.frame.bracket != "{"
    ):
        return None
    message = f"`{name.text}:` is not a statement"
    typed = TYPED.match(failure.source.text, failure.span.start)
    help = "labels stand in front of loops; give a value with `=`."
    help = help if typed is None else f"write `const {name.text}: {typed[1]} = …`."
    return SyntaxHelp(message, Span(name.span.start, failure.span.end), help)


@hint(HINTS, "E0175")
def condition(failure: Failure) -> SyntaxHelp | None:
    """An `if` or `while` has no condition.

    Wrong:

        if { console.log("go") }

    Right:

        if (args.ready) { console.log("go") }
    """
    opener = failure.index if failure.word() == "{" else failure.at(failure.frame.start) if failure.frames else 0
    word = failure.scan.pieces[opener - 1] if 0 < opener < len(failure.scan.pieces) else failure.piece(-1)
    if word.text.lower() not in ("if", "while") or failure.scan.pieces[opener].text != "{" or not failure.is_code:
        return None
    return SyntaxHelp(f"this `{word.text}` has no condition", word.span, f"write `{word.text} (…) {{ … }}`.")


@hint(HINTS, "E0172")
def double_mark(failure: Failure) -> SyntaxHelp | None:
    """A mark stands twice, or two operators stand beside each other.

    Wrong:

        const names = ["a",, "b"]

    Right:

        const names = ["a", "b"]
    """
    before, here = failure.word(-1), failure.word()
    if here not in MARKS - set("([{") or before not in MARKS or not failure.frames or here == "${":
        return None
    if before == ":" and "LBRACE" in failure.expected and "BACKTICK" not in failure.expected:
        return SyntaxHelp("a type is missing after `:`", failure.piece(-1).span, "write a type, or delete the `:`.")
    if before == "?" and here == ".":
        return SyntaxHelp("`?.` is written without a blank in it", failure.span, "write `?.`.")
    if before in ("(", "[", "{", "${"):
        return SyntaxHelp(
            f"a value is missing before {failure.excerpt}", failure.span, f"write a value, or delete {failure.excerpt}."
        )
    return SyntaxHelp(
        f"{failure.excerpt} cannot stand after `{before}`",
        failure.span,
        "delete one of them, or write the value between them.",
    )


@hint(HINTS, "E0171")
def value_missing(failure: Failure) -> SyntaxHelp | None:
    """A value is missing after an operator, a `=`, a `(` or a word such as `throw`.

    Wrong:

        const total = 1 +

    Right:

        const total = 1 + 2
    """
    before = failure.piece(-1)
    if not failure.wants_value or not failure.frames or not before.text:
        return None
    if failure.word() not in (")", "]", "}", ",", ";", "=", ":") and failure.piece().kind != "end":
        return None
    return SyntaxHelp(f"a value is missing after `{before.text}`", before.span, "write the value.")


@hint(HINTS, "E0157")
def equals_missing(failure: Failure) -> SyntaxHelp | None:
    """There is no `=` before a value.

    Wrong:

        prompt Rules "Be brief."

    Right:

        prompt Rules = "Be brief."
    """
    if "EQUAL" not in failure.expected or len(failure.expected) > 2 or failure.word() in (")", "]", "}", ""):
        return None
    if failure.word() == ":":
        return SyntaxHelp("a `=` stands here, not a `:`", failure.span, "write `=`.")
    before, keyword = failure.piece(-1), failure.piece(-2).text
    is_block = failure.word() in ("{", "(") and keyword in ("mcp", "llm")
    start = f"{keyword} " if keyword in ("mcp", "llm", "prompt") else ""
    value = "{ … }" if is_block else '"…"' if keyword == "prompt" else "…"
    help = f"write `{start}{before.text} = {value}`."
    return SyntaxHelp(f"a `=` is missing after `{before.text}`", before.span, help)


@hint(HINTS, "E0178")
def name_missing(failure: Failure) -> SyntaxHelp | None:
    """A declaration has no name.

    Wrong:

        const = 1

    Right:

        const limit = 1
    """
    keyword = failure.word(-1)
    line = failure.source.text[failure.source.text.rfind("\n", 0, failure.span.start) + 1 : failure.span.start]
    unpacked = UNPACKED.match(line)
    if unpacked is not None and failure.is_code and failure.word(-2) == ",":
        at = failure.span.start - len(line) + unpacked.start(2)
        help = f"write `{unpacked[1]} [{unpacked[2]}] = [ … ]`, or one `{unpacked[1]}` for each."
        return SyntaxHelp("several names get their values from a list", Span(at, at + len(unpacked[2])), help)
    if failure.tail[-1:] not in (("VARIABLE",), ("COMMA",)) or keyword not in ("const", "let", "var"):
        return None
    return SyntaxHelp(f"the name after `{keyword}` is missing", failure.span, f"write `{keyword} name = …`.")
