"""What is said of an error that no hint recognises."""

from __future__ import annotations

from koi_lang.compiler.syntax_errors.context import Failure, SyntaxHelp

WORDS = {
    "COLON": "`:`", "EQUAL": "`=`", "COMMA": "`,`", "LBRACE": "`{`", "RBRACE": "`}`", "OPEN": "`(`", "CALL_OPEN": "`(`",
    "RPAR": "`)`", "RSQB": "`]`", "LIST_OPEN": "`[`", "DOT": "`.`", "SEMICOLON": "`;`", "NAME": "a name",
    "WORD": "a name",
    "STRING": "a text in quotes", "TRIPLE": "a text in quotes", "NUMBER": "a number", "BOOLEAN": "`true` or `false`",
    "FROM": "`from`", "VARIABLE": "`const`", "PLAYBOOK": "`playbook`", "FUNCTION": "`function`", "ON": "`on`",
    "CAN": "`can`",
    "CATCH": "`catch`", "FINALLY": "`finally`", "MCP": "`mcp`", "TEAM": "`team`", "SKILL": "`skill`",
    "DEFAULT": "`default`", "MCP_ADDRESS": "an MCP address",
    "A2A": "`a2a`", "A2A_ADDRESS": "an A2A address", "ASYNC": "", "OPTIONAL": "",
}  # fmt: skip
DETAILS = "look at what stands directly before it."


def fallback_help(failure: Failure) -> SyntaxHelp:
    """A program cannot be read at this place.

    Something is missing before it, or it does not belong there. The message names what may stand there
    if that is one of few things.

    Wrong:

        use "Greeting"

    Right:

        use playbook "Greeting"
    """
    if not failure.word():
        last = failure.piece(-1)
        return SyntaxHelp(
            "the program ends too early", last.span, _advice(failure) or "write what is missing.", "nothing follows"
        )
    before = failure.word(-1) and failure.piece(-1).text.split("\n", 1)[0]
    where = f" after `{before}`" if before and len(before) < 30 and "`" not in before else ""
    message = f"{failure.excerpt} cannot stand{where or ' here'}"
    return SyntaxHelp(message, failure.span, _advice(failure) or DETAILS)


def _advice(failure: Failure) -> str:
    if failure.wants_value:
        return "a value belongs here."
    if not failure.expected or not failure.expected <= WORDS.keys() or len(failure.expected) > 6:
        return ""
    names = sorted({WORDS[name] for name in failure.expected} - {""})
    return f"{' or '.join(names)} belongs here." if 0 < len(names) <= 4 else ""
