"""Words of other languages, and things that stand beside each other without saying how they belong together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from koi_lang.compiler.build import CONTEXTUAL, RESERVED
from koi_lang.compiler.syntax_errors.context import Failure, ForeignForm, Hint, SyntaxHelp, form_at, hint
from koi_lang.compiler.syntax_errors.missing import tag_help
from koi_lang.compiler.syntax_errors.scanner import ScannedToken, scan
from koi_lang.diagnostics import nearest
from koi_lang.source import Source, Span

HINTS: list[Hint] = []
# Asked before all others: forms that say by themselves what is meant.
FIRST: list[Hint] = []
BRANCH = "write `switch (…) { case …: … }`."
FUNCTION = "write `const name = (…) => { … }`, or put a function into a skill."
RECORD = "write a plain object `{ … }`, or an agent or skill for what has functions."
TYPE = "write `type Name = { field: string, other?: number }` at the top of the file."
_ELSE_IF = dict.fromkeys(("elif", "elseif", "elsif"), "write `else if (…) { … }`.")
_RECORDS = dict.fromkeys(("class", "struct"), RECORD)
_TYPES = {"interface": TYPE, "type": "declare it at the top of the file, outside of agents: `type Name = …`."}
_NOTHING = dict.fromkeys(("public", "static", "void"), "leave it out.")
_OTHERS = {
    "until": "write `while (!…) { … }`.",
    "repeat": "write `while (…) { … }`.",
    "foreach": "write `for (const item of list) { … }`.",
    "unless": "write `if (!…) { … }`.",
    "lambda": "write `x => …`.",
    "and": "write `&&`.",
    "or": "write `||`.",
    "not": "write `!`.",
    "is": "write `===`.",
    "then": "put what follows between `{` and `}`.",
    "begin": "write `{`.",
    "raise": "write `throw new Error(…)`.",
    "except": "write `catch (error) { … }`.",
    "print": "write `console.log(…)`.",
    "echo": "write `console.log(…)`.",
    "del": "write `delete`.",
    "goto": "use a loop.",
    "enum": 'write an object of texts: `const Color = { red: "red", blue: "blue" }`.',
    "with": "name the object each time: `thing.field`.",
    **dict.fromkeys(("system", "user", "assistant"), "put it into the text of the `playbook`."),
    "assert": "write `if (!…) throw new Error(…)`, and in a test `expect …`.",
    **dict.fromkeys(("global", "nonlocal"), "leave it out: functions see the variables around them."),
}
INSTEAD = {
    "match": BRANCH,
    **dict.fromkeys(("def", "func", "fn"), FUNCTION),
    **_ELSE_IF,
    **_RECORDS,
    **_TYPES,
    **_NOTHING,
    **_OTHERS,
}
# These may stand directly before a parenthesis; others would be calls of a function of that name.
WITH_PARENTHESES = frozenset("elif elseif elsif unless except foreach not until match with".split())
# A class of agents.
OWN_AGENT = re.compile(r"class\s+(\w+)\s*(?:extends\s+|\(\s*)(?:\w+\.)?\w*Agent\b")
# The head of a block of Python that names a resource.
WITH_AS = re.compile(r"with[ (]+([^\n{:]+?) as (\w+)")
# The head of a method of Java or C#.
METHOD = re.compile(r"(?:(?:public|private|static|final|async)\s+)*(?:void|\w+)\s+(\w+)\s*\(")
COLON_BLOCK = "a block does not begin with `:`"
IN_BRACES = "put its statements between `{` and `}`."
# Words behind which a text stands in quotes.
FIXED = ("playbook", "answer", "affordance")
# A value in a text of Python, without what says how it is shown.
PLACE = re.compile(r"\{([^{}:!]+)(?:![rsa])?(?::[^{}]*)?\}")
THREE_QUOTES = 'write `"""` at both ends of the text.'
# How far into the second of two statements a strange word is looked for.
LOOK_AHEAD = 200
KEYWORDS = (*sorted(RESERVED | CONTEXTUAL), "new", "break", "continue", "typeof", "delete", "expect", "given", "score")


# Forms of other languages on the line that cannot be read.
FORMS: Sequence[ForeignForm] = (
    (r"(?<=[\w\])])\[\s*:?\s*:\s*-1\s*\]", "Koi has no slices", "write `.toReversed()` behind the list."),
    (
        r"(?<=[\w\])])\[\s*:\s*([^\[\]:?\"']+?)\s*\]",
        "Koi has no slices",
        r"write `.slice(0, \1)` behind the list.",
    ),
    (r"(?<=[\w\])])\[([^\[\]:?\"']+):\s*\]", "Koi has no slices", r"write `.slice(\1)` behind the list or text."),
    (
        r"(?<=[\w\])])\[([^\[\]:?\"']*):\s*([^\[\]:?\"']*)(?::[^\[\]]*)?\]",
        "Koi has no slices",
        r"write `.slice(\1, \2)` behind the list or text.",
    ),
    (
        r"^\s*([A-Za-z_]\w*)\s*,\s*(?:err|error)\s*:?=\s*(.+?)\s*$",
        "what fails throws, and gives no second value",
        r"write `try { const \1 = \2 } catch (error) { … }`.",
    ),
    (
        r"^\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)+)\s*=(?!=)\s*([^,]+(?:,[^,]+)+)$",
        "several names stand in a list",
        r"write `[\1] = [\2]`.",
    ),
    (
        r"^\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)+)\s*:?=(?!=)\s*(.+)$",
        "several names stand in a list",
        r"write `const [\1] = \2` for a list.",
    ),
    (
        r"\{\s*([^{}:]+?)\s*:\s*([^{}]+?)\s+for\s+(\w+)\s+in\s+([^{}]+?)\s*\}",
        "Koi has no comprehensions",
        r"write `Object.fromEntries(\4.map(\3 => [\1, \2]))`.",
    ),
    (r"[{(,]\s*\*\*\s*(\w[\w.]*)", "`**` hands on no fields", r"write `...\1`."),
    (r"\bif\s+__name__\b.*", "nothing asks which file was started", "leave it out: a `run` starts the program."),
    (r"\b(?:let|const|var)\s+(?:mut|val|final)\s+(\w+)", "a variable has one keyword", r"write `let \1 = …`."),
    (
        r"^\s*(?:final\s+)?(?:String|int|double|float|boolean|bool|char|long|auto|string|number|List<\w+>|Map<[\w, ]+>)"
        r"(?:\[\])?\s+(\w+)\s*=(?!=)",
        "the type of a variable does not stand before its name",
        r"write `const \1 = …`.",
    ),
    (r"(?:(?<==\s)|(?<=return\s))(\w[\w.]*)\s*\?:\s*(\S+)", "Koi has no `?:`", r"write `\1 ?? \2`."),
    (r"\$\{([^{}:?`]+):[^{}`]*?\.(\d+)[fF]\}", "a value has no format behind `:`", r"write `${\1.toFixed(\2)}`."),
    (r"\$\{([^{}:?`]+):>(\d+)s?\}", "a value has no format behind `:`", r"write `${String(\1).padStart(\2)}`."),
    (r"\$\{([^{}:?`]+):<(\d+)s?\}", "a value has no format behind `:`", r"write `${String(\1).padEnd(\2)}`."),
    (r"\$\{([^{}:?`]+):0(\d+)d\}", "a value has no format behind `:`", r'write `${String(\1).padStart(\2, "0")}`.'),
    (r"\$\{([^{}:?`]+):,[^{}`]*\}", "a value has no format behind `:`", r"write `${\1.toLocaleString()}`."),
    (
        r"^\s*[\w.]+(?:\+\+|--|\s*[-+*/]?=(?![=>])[^,;({\[]+),\s*\w",
        "no comma joins statements",
        "write `;` in its place.",
    ),
    (r"\$\(([^()]*)\)", "no command is run by `$(…)`", r'write `await callAction("shell", { command: "\1" })`.'),
    (r"\$\"([^\"]*)\"", "a text has no `$` before it", "write it in backticks, with `${…}` for each value."),
    (r"\bif\s*\[\s.*?\]\s*;?.*", "Koi has no `if [ … ]`", "write `if (…) { … }`, with `>`, `<` and `===`."),
    (r"\s(AND|And)\s", r"Koi has no `\1`", "write `&&`."),
    (r"\s(OR|Or)\s", r"Koi has no `\1`", "write `||`."),
    (r"(\w[\w.]*)\.each\s+do\s*\|\s*(\w+)\s*\|", "Koi has no `do |…|`", r"write `for (const \2 of \1) { … }`."),
    (r"\b(?:let|var|const)\s+(\w+)!\s*:", "the name of a variable has no `!` behind it", r"write `let \1: …`."),
    (r"\bz\.\w+\(", "a type is not put together by functions", "write its fields: `{ name: string, size?: number }`."),
    (r"\b([A-Z]\w*)::(\w+)\(", "`::` stands in texts for models", r"write `\1.\2(…)` in code."),
    (r"\b(?:parallel|gather)\s*\{", "no block of code runs its parts together", "write `await Promise.all([ … ])`."),
    (r"\bplaybook\s+\"[^\"]*\"\s*\+\s*(args\.[\w.]+)", "playbooks have fixed texts", r"write `{{\1}}` in the text."),
    (r"\bplaybook\s*(?=\[)", "a playbook has one text", 'write `playbook "…"`; its rules stand in it, too.'),
    (
        r"\bplaybook\s*\(([^()]*)\)\s*(?=\")",
        "a playbook has no options",
        "they stand in the agent: `llm default = { … }`.",
    ),
    (r"<([a-z]\w*)>(\w[\w.]*)", "a type stands behind its value", r"write `\2 as \1`."),
    (r"\)\s*\?\s*;", "Koi has no `?` behind a call", "leave it out: what fails throws."),
    (r"\bthrows\s+\w+", "Koi has no `throws`", "leave it out: anything may throw."),
    (r"\bif\s+([^({\s][^{]*?)\s+then\b", "Koi has no `then`", r"write `if (\1) { … }`."),
    (r"^\s*(my|local|dim)\s+(\w+)\s*=", r"Koi has no `\1`", r"write `let \2 = …`."),
    (r"\bstate\s+[A-Z]\w*\s*\{", "the state of an agent has no name", "write `state { … }`."),
    (r"\"\s*\.\.\s*[\"\w]", "`..` does not join texts", "write `+`."),
    (
        r"\b(?:private|public|protected|readonly|static)\s+(?:readonly\s+|static\s+)*(\w+)\s*(?::\s*(\w+)\s*)?=",
        "what an agent keeps stands in its state",
        r"write `state { \1: \2 = … }`.",
    ),
    (r"\breturn\s+([^,;{}\[\]()]+,[^;{}]+)$", "a function gives one value", r"write `return [\1]`."),
    (
        r"=\s*\{(\s*(?:\"[^\"]*\"|'[^']*'|\d+)(?:\s*,\s*(?:\"[^\"]*\"|'[^']*'|\d+))*\s*)\}",
        "a set does not stand in braces",
        r"write `new Set([\1])`.",
    ),
    (r"[(,]\s*\*(\w[\w.]*)", "`*` stands before no argument", r"write `...\1`."),
    (
        r"\bfor\s*\(?\s*(?:const |let |var )?(\w+)\s*,\s*(\w+)\s+(?:in|of)\s+enumerate\((.+?)\)",
        "Koi has no `enumerate`",
        r"write `for (const [\1, \2] of \3.entries()) { … }`.",
    ),
    (
        r"\bfor\s*\(?\s*(?:const |let |var )?(\w+)\s*,\s*(\w+)\s+(?:in|of)\s+zip\((.+?),\s*(.+?)\)",
        "Koi has no `zip`",
        r"write `for (const [n, \1] of \3.entries()) { const \2 = \4[n] … }`.",
    ),
    (
        r"\bfor\s*\(?\s*(?:const |let |var )?(\w+)\s*,\s*(\w+)\s+(?:in|of)\s+([\w.]+)\.items\(\)",
        "objects have no `items`",
        r"write `for (const [\1, \2] of Object.entries(\3)) { … }`.",
    ),
    (
        r"\basync\s+for\s+(\w+)\s+in\s+([\w.]+)",
        "`async` does not begin a loop",
        r"write `for await (const \1 of \2) { … }`.",
    ),
    (r"\bconst\s+enum\s+\w+", "Koi has no `enum`", 'write an object of texts: `const Color = { red: "red" }`.'),
    (r"\*\s*\([^()]*\)\s*=>", "an arrow function is no generator", "write `function* (…) { … }`."),
    (
        r"\bplaybook\s+\"[^\"]*\"\s+(?:expected_output|output_\w+|response_\w+)\b",
        "the result of a handler is no part of its playbook",
        "write its type behind the parameters: `on work(args): { list: string[] } { … }`.",
    ),
    (r"\bif\s*\(.*\)\s*;\s*\{", "this `if` ends at the `;`", "leave the `;` out."),
    (
        r"^\s*(?:START|\w+)\s*->\s*(\w+)",
        "agents are not joined by arrows",
        r"write `await \1.event({ … })` in the handler that comes before.",
    ),
)


@hint(FIRST, "E0145")
def foreign_form(failure: Failure) -> SyntaxHelp | None:
    """Several words or marks together mean something in another language, and nothing in Koi.

    Wrong:

        console.log(args.names[1:3])

    Right:

        console.log(args.names.slice(1, 3))
    """
    return form_at(failure.source, failure.span.start, FORMS[-1:] if failure.is_top else FORMS[:-1])


def form_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """Two statements that are one in another language."""
    return form_at(source, second.start, FORMS[:-1])


@hint(HINTS, "E0166")
def foreign(failure: Failure) -> SyntaxHelp | None:
    """A word is a keyword in other languages and means nothing in Koi.

    Wrong:

        if (args.a and args.b) { console.log("both") }

    Right:

        if (args.a && args.b) { console.log("both") }
    """
    if failure.tail == ("AGENT", "NAME") or (failure.is_top and failure.word() == "def"):
        return None
    is_type = failure.tail[:1] == ("TYPE",) or any(frame.word == "type" for frame in failure.frames)
    for offset in (1 if failure.word() == "async" else 0, *failure.same_line()):
        if is_type and failure.word(offset) == "type":
            continue
        if _is_foreign(failure.piece(offset - 1), failure.piece(offset), failure.piece(offset + 1)):
            name = failure.piece(offset + 1)
            after = failure.piece(offset + 2)
            if failure.is_top and failure.word(offset) == "type" and after.text in ("{", ":", "<"):
                if after.text == "<":
                    message = "a type that is declared takes no parameters"
                    return SyntaxHelp(message, after.span, "declare one for each: `type Name = …`.")
                help = f"write `type {name.text} = {{ … }}`."
                return SyntaxHelp(f"a `=` is missing after `{name.text}`", name.span, help)
            return _foreign(failure.source, failure.piece(offset), _advice(failure, offset))
    return None


@hint(HINTS, "E0162")
def colon_block(failure: Failure) -> SyntaxHelp | None:
    """A block begins with a colon.

    Wrong:

        if args.ready:
          console.log("go")

    Right:

        if (args.ready) { console.log("go") }
    """
    if failure.frame.word in ("agent", "skill") and "COLON" in failure.tail:
        # The first words of the body were read as the type of the result.
        pieces = (
            (failure.piece(offset - 1), failure.piece(offset), failure.piece(offset + 1)) for offset in range(-8, 0)
        )
        colon = next((here for before, here, after in pieces if before.text + here.text == "):" and after.fresh), None)
        return None if colon is None else SyntaxHelp(COLON_BLOCK, colon.span, IN_BRACES)
    if failure.word() != ":" or failure.frame.bracket not in ("{", "") or not failure.piece(1).fresh:
        return None
    first = next((failure.piece(offset) for offset in failure.same_line() if failure.piece(offset).fresh), None)
    if first is None or first.text.lower() not in ("if", "else", "for", "while", "try", "catch", "finally"):
        return None
    return SyntaxHelp(COLON_BLOCK, failure.span, IN_BRACES)


@hint(HINTS, "E0179")
def text_prefix(failure: Failure) -> SyntaxHelp | None:
    """A text has a letter or a name before its quote.

    Wrong:

        console.log(f"hello {args.name}")

    Right:

        console.log(`hello ${args.name}`)
    """
    before, here = failure.piece(-1), failure.piece()
    if before.kind != "word" or before.span.end != here.span.start:
        return None
    if here.text == "`" and failure.is_code:
        return tag_help(failure.source, before.span)
    if here.kind not in ("text", "triple"):
        return None
    is_fixed = failure.word(-2) in FIXED or failure.tail[:1] == ("PROMPT",)
    return prefix_help(before.text, before.span, here.text if here.kind == "text" else "", is_fixed=is_fixed)


def prefix_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """The same where the letter can be read as a name."""
    if first.end != second.start or source.text[second.start] not in "\"'":
        return None
    words = source.text[first.start : first.end].split()
    text = "" if source.text.startswith('"""', second.start) else source.text[second.start : second.end]
    place = Span(first.end - len(words[-1]), first.end)
    return prefix_help(words[-1], place, text, is_fixed=words[0] in FIXED) if words[-1].isidentifier() else None


def prefix_help(letter: str, place: Span, text: str, *, is_fixed: bool) -> SyntaxHelp:
    """What to write instead of a text of Python with a letter before it; fixed ones stand in quotes, with `{{…}}`."""
    inserted = PLACE.sub(r"{{\1}}" if is_fixed else r"${\1}", text.strip("\"'"))
    is_shown = inserted.isprintable() and 0 < len(inserted) < 60 and "`" not in inserted
    shown = inserted if is_shown else "Greet {{args.name}}." if is_fixed else "hello ${name}"
    help = f'write `"{shown}"`.' if is_fixed else f"write `` `{shown}` ``."
    return SyntaxHelp(f"a text has no letter `{letter}` before it", place, help)


def triple_single(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """A long text stands in three single quotes.

    Wrong:

        playbook '''Greet the user.'''

    Right:

        playbook "Greet the user."
    """
    if not source.text.startswith("'''", first.end - 2) or second.start != first.end:
        return None
    return SyntaxHelp("three single quotes do not begin a text", Span(first.end - 2, first.end + 1), THREE_QUOTES)


def foreign_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """Two statements with a word of another language between or before them."""
    end_of_line = source.text.find("\n", second.start) % (len(source.text) + 1)
    pieces = scan(source.text, Span(first.start, min(end_of_line, second.start + LOOK_AHEAD))).pieces
    end = ScannedToken("end", "", Span(0, 0), True)
    for before, here, after in zip([end, *pieces[:-1]], pieces, [*pieces[1:], end], strict=True):
        if _is_foreign(before, here, after):
            return _foreign(source, here)
    return None


def fails_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """An `expect … fails` does not say with which message.

    Any part of the message will do. That a program fails for another reason is noticed in this way.

    Wrong:

        expect await Ada.start({}) fails

    Right:

        expect await Ada.start({}) fails "there is no name"
    """
    if not source.text.startswith("expect", first.start) or source.text[second.start : second.end] != "fails":
        return None
    return SyntaxHelp("this `fails` does not say with which message", second, 'write `fails "part of the message"`.')


def arrow_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """Parentheses and a block that were meant as a function."""
    if source.text[second.start] != "{" or source.text[first.end - 1] != ")":
        return None
    return SyntaxHelp("`=>` is missing before this `{`", Span(second.start, second.start + 1), "write `=> {`.")


def beside(source: Source, first: Span, second: Span) -> SyntaxHelp:
    """Two statements stand on one line with nothing between them.

    Usually the first word is misspelled, or an operator, a `,` or a parenthesis is missing. A value that nothing is
    done with must not stand behind another statement: it would be dropped. A `(` or `[` behind a blank begins a
    statement. Separate statements that are meant with `;`.

    Wrong:

        retrun 1

    Right:

        return 1
    """
    word, after = source.text[first.start : first.end], source.text[second.start : second.end].split("\n", 1)[0]
    near = nearest(word, KEYWORDS) if word.isidentifier() else None
    place = Span(second.start, second.start + max(1, min(len(after), 40)))
    if near is not None and near != word:
        return SyntaxHelp(f"`{word}` is not a keyword", first, f"did you mean `{near}`?", meant=near)
    if after[:1] in ("'", '"', "`") and word.replace(".", "").isidentifier():
        return SyntaxHelp(f"the parentheses of `{word}` are missing", place, f"write `{word}({after[:30].rstrip()})`.")
    if after[:1] in ("(", "[") and source.text[second.start - 1] in " \t":
        return SyntaxHelp(f"this `{after[0]}` begins a statement of its own", place, "leave out the blank before it.")
    help = "write what joins them, such as an operator, or put them on lines of their own."
    return SyntaxHelp("two statements stand on one line", place, help, "the second begins here")


def _is_foreign(before: ScannedToken, word: ScannedToken, after: ScannedToken) -> bool:
    if word.kind != "word" or word.text not in INSTEAD or before.text in (".", "?.", "const", "let", "var", "function"):
        return False
    if after.kind in ("word", "number", "text"):
        return not after.fresh
    return after.text in ("{", "[", "!", "`") or (after.text == "(" and word.text in WITH_PARENTHESES)


def _foreign(source: Source, word: ScannedToken, help: str = "") -> SyntaxHelp:
    message = "`type` cannot stand here" if word.text == "type" else f"Koi has no `{word.text}`"
    opened = WITH_AS.match(source.text, word.span.start)
    if opened is not None and opened[1].startswith("open("):
        path = opened[1][len("open(") :].split(",")[0].rstrip(")")
        help = f'write `import "std/files"` at the top, and `const text = await readFile({path})` here.'
    elif opened is not None:
        help = f"write `const {opened[2]} = {opened[1]}`, and its statements behind it."
    return SyntaxHelp(message, word.span, help or INSTEAD[word.text])


def _advice(failure: Failure, offset: int) -> str:
    """What to write instead of a foreign word where it depends on the place; empty where it does not."""
    method = METHOD.match(failure.source.text, failure.piece(offset).span.start)
    if method is not None and failure.frame.word == "agent":
        return f"write `on {method[1]}(args) {{ … }}`."
    word, name = failure.word(offset), failure.piece(offset + 1).text
    if word in ("def", "func", "fn") and failure.frame.word in ("agent", "skill"):
        form = f"on {name}(args)" if failure.frame.word == "agent" else f"export function {name}(…)"
        return f"write `{form} {{ … }}`."
    body = _body(failure, offset + 2) if not failure.is_code else []
    own = OWN_AGENT.match(failure.source.text, failure.piece(offset).span.start)
    if own is not None:
        return f"write `agent {own[1]} : Role {{ … }}`."
    if word == "enum" and name == "{":
        values = " | ".join(f'"{piece.text}"' for piece in _body(failure, offset + 1) if piece.kind == "word")
        return f"write its values: `{values}`."
    if word in ("class", "struct") and body and not any(piece.text in ("(", "=") for piece in body):
        return TYPE
    if word == "enum" and body:
        values = " | ".join(f'"{piece.text}"' for piece in body if piece.kind == "word")
        return f"write its values where they are used: `on start(args: {{ {name.lower()}: {values} }}) {{ … }}`."
    return ""


def _body(failure: Failure, offset: int) -> list[ScannedToken]:
    """The pieces between the braces that open at an offset."""
    opener = failure.index + offset
    closer = failure.scan.partners.get(opener, opener)
    return list(failure.scan.pieces[opener + 1 : closer])
