"""Mistakes behind a `run`, where its schedule or event stands."""

from __future__ import annotations

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.diagnostics import nearest

HINTS: list[Hint] = []
SAMPLES = {"every": "15m", "when": "hook /github"}


@hint(HINTS, "E0468")
def job_form(failure: Failure) -> SyntaxHelp | None:
    """What stands behind a `run` is not of the form `every "…"` or `when "…"`.

    The words of a schedule or an event stand in quotes, options in braces behind them.

    Wrong:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every 15m

    Right:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every "15m" { jitter: 30s }
    """
    if "RUN" not in failure.tail or failure.frames:
        return None
    match failure.tail[-1:]:
        case ("EVERY",) | ("WHEN",):
            word = failure.piece(-1).text
            help = f'write `{word} "{SAMPLES[word]}"`.'
            return SyntaxHelp(f"the words behind `{word}` stand in quotes", failure.span, help)
        case ("Text",) if failure.word(1) in (":", "="):
            help = f"write `{{ {failure.word()}: … }}`."
            return SyntaxHelp("the options of a job stand in braces", failure.span, help)
    near = nearest(failure.word(), SAMPLES) if failure.word(-1) == ")" else None
    is_meant = near is not None and failure.piece(1).kind in ("text", "triple")
    if not is_meant:
        return None
    return SyntaxHelp(f"{failure.excerpt} begins no job", failure.span, f"did you mean `{near}`?", meant=near)
