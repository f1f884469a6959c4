"""Evals: their names, numbers and cases, and where scores may stand."""

from __future__ import annotations

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.kinds import kind_of_literal
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.source import Span

MAX_TIMES = 1000


@rule("E0451", "error")
def eval_twice(file: Analysis, report: Report) -> None:
    """Two evals of a file have the same name.

    The name says which results belong together, and chooses evals on the command line.

    Wrong:

        eval "adds" { expect 1 + 1 == 2 }
        eval "adds" { expect 1 + 2 == 3 }

    Right:

        eval "adds one" { expect 1 + 1 == 2 }
        eval "adds two" { expect 1 + 2 == 3 }
    """
    first: dict[str, n.Text] = {}
    for declared, _ in file.index.of(n.Eval):
        known = first.setdefault(declared.name.value, declared.name)
        if known is not declared.name:
            others = [report.place(known.span, "the first one")]
            message = f"two evals are called `{' '.join(declared.name.value.split())}`"
            report.add(declared.name.span, message, others=others, help="give one of them another name.")


@rule("E0452", "error")
def eval_number(file: Analysis, report: Report) -> None:
    """`times` or `pass` of an eval is a number that it cannot be.

    `times` says how often each case is carried out, so it is a whole number from 1 to 1000. `pass` is the share of
    cases that have to pass, more than 0 and at most 1.

    Wrong:

        eval "adds" pass 90 { expect 1 + 1 == 2 }

    Right:

        eval "adds" times 3 pass 0.9 { expect 1 + 1 == 2 }
    """
    for declared, _ in file.index.of(n.Eval):
        times, accept = declared.times, declared.accept
        if times is not None and not (isinstance(times.value, int) and 1 <= times.value <= MAX_TIMES):
            help = f"write a whole number from 1 to {MAX_TIMES}, such as `times 3`."
            report.add(times.span, f"a case cannot be carried out {_text(times, report)} times", help=help)
        if accept is not None and not (isinstance(accept.value, int | float) and 0 < accept.value <= 1):
            help = "write a share, more than 0 and at most 1: `pass 0.9` for 90 of 100."
            report.add(accept.span, f"`pass {_text(accept, report)}` is no share of the cases", help=help)


def _text(number: n.Literal, report: Report) -> str:
    return report.source.text[number.span.start : number.span.end]


@rule("E0453", "error")
def score_outside_eval(file: Analysis, report: Report) -> None:
    """`score` stands outside of an eval.

    A score is a number by which the cases of `eval "name" { … }` are compared. A test either holds or does not.

    Wrong:

        test "adds" { score sum = 1 + 1 }

    Right:

        eval "adds" { score sum = 1 + 1 }
    """
    for score, around in file.index.of(n.Score):
        if not isinstance(around.test, n.Eval):
            word = Span(score.span.start, score.span.start + len("score"))
            report.add(word, "`score` stands outside of an eval", help='put it into an eval: `eval "name" { … }`.')


@rule("E0454", "error")
def score_of_other_kind(file: Analysis, report: Report) -> None:
    """A score is something else than a number.

    The means of scores are compared, so every score is a number. What either holds or does not is an `expect`, or
    counts as 1 or 0.

    Wrong:

        eval "adds" { score right = true }

    Right:

        eval "adds" { score right = 1 + 1 == 2 ? 1 : 0 }
    """
    for score, _ in file.index.of(n.Score):
        kind = kind_of_literal(score.value)
        if kind is not None and kind != "number":
            help = "give a number; what holds or does not is an `expect`, or `condition ? 1 : 0`."
            report.add(score.value.span, f"the score `{score.name}` is no number", help=help)


@rule("E0455", "error")
def no_cases(file: Analysis, report: Report) -> None:
    """An eval goes over a list without cases.

    Wrong:

        eval "adds" over [] { expect case.a + 1 == 2 }

    Right:

        eval "adds" over [{ a: 1 }] { expect case.a + 1 == 2 }
    """
    for declared, _ in file.index.of(n.Eval):
        if isinstance(declared.source, n.Array) and not declared.source.items:
            help = 'put the cases into the list, or name a file: `over "./cases.jsonl"`.'
            report.add(declared.source.span, "this eval has no cases", help=help)
