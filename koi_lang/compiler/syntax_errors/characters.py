"""Characters and marks that Koi does not know."""

from __future__ import annotations

import unicodedata

from koi_lang.compiler.literals import unescape
from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.source import Span

HINTS: list[Hint] = []
QUOTES = dict.fromkeys("“”„‟«»″＂", '"') | dict.fromkeys("‘’‚‛‹›′＇´", "'")
LOOKALIKES = dict(zip("：，；（）｛｝［］＝．–—−×·÷", ":,;(){}[]=.---**/", strict=True))
LOOKALIKES |= {"…": "...", "≠": "!==", "≤": "<=", "≥": ">=", "→": "=>", "⇒": "=>"}
NUMERALS = "numbers are written like `42`, `0.5`, `1_000`, `1e6`, `0xff` or `0b101`."


@hint(HINTS, "E0192")
def quotation_mark(failure: Failure) -> SyntaxHelp | None:
    """A text stands in typographic quotes.

    Word processors and chats replace plain quotes; Koi knows only `"`, `'` and the backtick.

    Wrong:

        console.log(“hello”)

    Right:

        console.log("hello")
    """
    plain = QUOTES.get(failure.word())
    if plain is None:
        return None
    message = f"{failure.excerpt} is not a quote that Koi knows"
    return SyntaxHelp(message, failure.span, f"write a plain `{plain}` at both ends of the text.")


@hint(HINTS, "E0111")
def invisible(failure: Failure) -> SyntaxHelp | None:
    """A blank is not a plain blank, or a character cannot be seen.

    Such characters come from web pages and word processors. Delete the place and type it again.

    Wrong:

        const name\u00a0= 1

    Right:

        const name = 1
    """
    character = failure.word()
    category = unicodedata.category(character) if len(character) == 1 else ""
    if category not in ("Zs", "Zl", "Zp", "Cf"):
        return None
    name = unicodedata.name(character, f"U+{ord(character):04X}").lower()
    message = f"there is an invisible character here: {name}"
    return SyntaxHelp(message, failure.span, "delete it and type a plain blank if one is needed.")


@hint(HINTS, "E0112")
def letter(failure: Failure) -> SyntaxHelp | None:
    """A name has a letter outside of `A` to `Z`.

    Names consist of the letters `A` to `Z` and `a` to `z`, digits and `_`. Texts may hold anything.

    Wrong:

        const größe = 1

    Right:

        const groesse = 1
    """
    piece = failure.piece()
    strange = next((character for character in unescape(piece.text) if not character.isascii()), None)
    if piece.kind not in ("word", "number") or strange is None:
        return None
    message = f"the name {failure.excerpt} has the letter `{strange}`"
    return SyntaxHelp(message, failure.span, "names consist of `A` to `Z`, `a` to `z`, digits and `_`.")


@hint(HINTS, "E0113")
def control_character(failure: Failure) -> SyntaxHelp | None:
    """The file holds bytes that are not text.

    Either the file is no program, or it was damaged. Programs are saved as plain UTF-8 text.
    """
    character = failure.word()
    if len(character) != 1 or unicodedata.category(character) not in ("Cc", "Co", "Cn", "Cs"):
        return None
    message = f"the character U+{ord(character):04X} cannot be part of a program"
    return SyntaxHelp(message, failure.span, "delete it, and check that this file is a Koi program.")


@hint(HINTS, "E0114")
def lookalike(failure: Failure) -> SyntaxHelp | None:
    """A mark only looks like one of Koi's.

    Wrong:

        const total = 2 × 3

    Right:

        const total = 2 * 3
    """
    plain = LOOKALIKES.get(failure.word())
    if plain is None:
        return None
    return SyntaxHelp(f"{failure.excerpt} is not a mark that Koi knows", failure.span, f"write `{plain}`.")


@hint(HINTS, "E0115")
def dollar(failure: Failure) -> SyntaxHelp | None:
    """A name has a `$`.

    Only keys of objects and fields after a dot may have one.

    Wrong:

        const $item = 1

    Right:

        const item = 1
    """
    piece = failure.piece()
    if piece.kind != "word" or "$" not in unescape(piece.text):
        return None
    if piece.text[1:].isupper() and piece.text[0] == "$":
        return SyntaxHelp(
            f"{failure.excerpt} is a variable of a shell", failure.span, f"write `process.env.{piece.text[1:]}`."
        )
    better = unescape(piece.text).replace("$", "") or "value"
    better = f"_{better}" if better[0].isdigit() else better
    return SyntaxHelp(f"the name {failure.excerpt} has a `$`", failure.span, f"write `{better}`.")


@hint(HINTS, "E0116")
def numeral(failure: Failure) -> SyntaxHelp | None:
    """A number is written in a way that Koi does not know, or a name begins with a digit.

    Wrong:

        const limit = 10n

    Right:

        const limit = 10
    """
    piece = failure.piece()
    if piece.kind != "number" or not any(character.isalpha() or character == "_" for character in piece.text):
        return None
    if piece.text.endswith("n") and piece.text[:-1].isdigit():
        help = f"write `{piece.text[:-1]}`: whole numbers are exact up to 2 ** 53."
        return SyntaxHelp("Koi has no `BigInt`", failure.span, help)
    if "NAME" in failure.expected and not failure.wants_value:
        return SyntaxHelp(
            f"the name {failure.excerpt} begins with a digit", failure.span, "begin the name with a letter."
        )
    return SyntaxHelp(f"{failure.excerpt} is not a number", failure.span, NUMERALS)


@hint(HINTS, "E0117")
def hash_mark(failure: Failure) -> SyntaxHelp | None:
    """A comment begins with `#`.

    Comments begin with `//`, or stand between `/*` and `*/`.

    Wrong:

        # say hello

    Right:

        // say hello
    """
    if failure.word() != "#":
        return None
    if failure.word(-1) == ".":
        return SyntaxHelp("Koi has no private fields", failure.span, "leave the `#` out.")
    return SyntaxHelp("`#` does not begin a comment in Koi", failure.span, "begin the comment with `//`.")


@hint(HINTS, "E0119")
def colon_equals(failure: Failure) -> SyntaxHelp | None:
    """A value is given with `:=`.

    Wrong:

        total := 1

    Right:

        const total = 1
    """
    if failure.word() != ":=":
        return None
    name = failure.word(-1)
    return SyntaxHelp(
        "Koi has no `:=`", failure.span, f"write `const {name} = …` for a new name, or `{name} = …` for a known one."
    )


@hint(HINTS, "E0120")
def thin_arrow(failure: Failure) -> SyntaxHelp | None:
    """An arrow is written `->`.

    Wrong:

        const double = (x) -> x * 2

    Right:

        const double = (x) => x * 2
    """
    if failure.word() != "->":
        return None
    help = (
        "the type of a result stands behind a colon: write `: type`." if failure.tail[:1] == ("ON",) else "write `=>`."
    )
    help = "write `run Agent.handler({ … })`." if failure.tail[:1] == ("RUN",) else help
    return SyntaxHelp("Koi has no `->`", failure.span, help)


@hint(HINTS, "E0121")
def other_operator(failure: Failure) -> SyntaxHelp | None:
    """An operator belongs to another language.

    Wrong:

        if (args.a <> 1) { console.log("other") }

    Right:

        if (args.a !== 1) { console.log("other") }
    """
    helps = {"<>": "write `!==`.", "|>": "call the function: `f(value)`.", "::": "write one `:`.", "@": "leave it out."}
    mark = failure.word()
    if mark == ":" and failure.word(-1) == ":":
        span = Span(failure.piece(-1).span.start, failure.span.end)
        return SyntaxHelp("there is one `:` too many", span, helps["::"])
    if mark not in helps or (not failure.frames and mark != "@"):
        return None
    if mark == "@" and not failure.is_code and failure.piece(1).kind == "word":
        name = failure.word(1)
        help = helps[mark]
        if failure.frame.word == "skill":
            help = "leave it out: models of agents that use the skill see its exported functions."
        elif "tool" in name or name in ("function", "action"):
            help = "models call functions of skills: `skill Tools { export function name(…) { … } }`."
        elif name in ("agent", "crew", "crewbase", "task", "node"):
            help = "declare an agent, whose handlers do the tasks: `agent Name : Role { on work(args) { … } }`."
        return SyntaxHelp("Koi has no decorators", failure.span, help)
    return SyntaxHelp(f"Koi has no operator `{mark}`", failure.span, helps[mark])
