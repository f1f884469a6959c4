"""Tests and evals that are written as in another language, or not to their end."""

from __future__ import annotations

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.source import Source, Span

HINTS: list[Hint] = []
WORDS = frozenset(("test", "tests", "it", "describe", "expect", "given", "eval"))
TEST_FORM = 'write `test "name" { expect … }`.'
# What says over which cases, and how often, an eval runs, here or elsewhere.
OPTIONS = ("over", "cases", "dataset", "times", "runs", "pass")
EVAL_FORM = 'write `eval "name" over "./cases.jsonl" times 3 pass 0.9 { … }`, or less between name and steps.'
GIVEN_FORM = "write `given model answers [ … ]` or `given person answers [ … ]`."


@hint(HINTS, "E0177")
def test_form(failure: Failure) -> SyntaxHelp | None:
    """A test or an eval, or a step of one, is written as in another language.

    Wrong:

        test greets { expect 1 + 1 == 2 }

    Right:

        test "greets" { expect 1 + 1 == 2 }
    """
    if not failure.is_top or failure.word() not in WORDS or failure.word(1) in (":", "="):
        return None
    if failure.word() in ("expect", "given"):
        return SyntaxHelp(f"`{failure.word()}` belongs into a test", failure.span, TEST_FORM)
    if failure.word() == "eval":
        return SyntaxHelp("an eval has its name in quotes", failure.span, EVAL_FORM)
    return SyntaxHelp(f"{failure.excerpt} does not begin a test like this", failure.span, TEST_FORM)


@hint(HINTS, "E0610")
def test_field(failure: Failure) -> SyntaxHelp | None:
    """A test or an eval lists fields, as in a file of YAML, instead of steps.

    Its steps call a handler and say what they expect of its result. Cases of an eval stand behind `over`, in a list or
    in a file.

    Wrong:

        test "adds" { expected: 2 }

    Right:

        test "adds" { expect 1 + 1 == 2 }
    """
    name = failure.piece(-1)
    begins = name.kind == "word" and (name.fresh or failure.word(-2) == "{")
    if failure.word() != ":" or failure.frame.word not in ("test", "eval") or not begins:
        return None
    help = "write `expect await Agent.handler({ … }) == …`."
    help = "write `score name = 0.5`." if name.text == "score" else help
    return SyntaxHelp(
        f"`{name.text}:` is no step of {'an eval' if failure.frame.word == 'eval' else 'a test'}",
        Span(name.span.start, failure.span.end),
        help,
    )


@hint(HINTS, "E0456")
def eval_form(failure: Failure) -> SyntaxHelp | None:
    """What stands between the name of an eval and its steps cannot be there.

    `over` names a file or holds a list, `times` and `pass` take a number. They come in this order.

    Wrong:

        eval "greets" pass 0.9 times 3 { expect 1 + 1 == 2 }

    Right:

        eval "greets" times 3 pass 0.9 { expect 1 + 1 == 2 }
    """
    if failure.frames or "EVAL" not in failure.tail[-8:]:
        return None
    return SyntaxHelp(f"{failure.excerpt} cannot stand here in an eval", failure.span, EVAL_FORM)


def option_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """An option of an eval among its steps."""
    word = source.text[first.start : first.end]
    if word not in OPTIONS or source.text[second.start] not in "\"'0123456789":
        return None
    return SyntaxHelp(f"`{word}` stands among the steps of an eval", first, EVAL_FORM)


@hint(HINTS, "E0188")
def given_form(failure: Failure) -> SyntaxHelp | None:
    """A `given` of a test does not say whose answers it gives.

    There are answers of the model and answers of the person, each as a list in the order they are asked for.

    Wrong:

        test "greets" { given models answers ["hello"] }

    Right:

        test "greets" { given model answers ["hello"] }
    """
    if "GIVEN" not in failure.tail[-2:]:
        return None
    return SyntaxHelp("this `given` does not say whose answers it gives", failure.piece(-1).span, GIVEN_FORM)
