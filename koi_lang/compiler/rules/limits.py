"""Limits of budgets and values of `resilience` that cannot be meant as they are written."""

from __future__ import annotations

import re
from math import inf

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.diagnostics import nearest

LIMITS = ("tokens", "usd", "time", "turns", "requests")
# What messages recommend to write; for times `2m`.
SAMPLES = {"tokens": "50000", "turns": "40", "requests": "200", "usd": "0.5"}
COUNTED = ("tokens", "turns", "requests")
DURATION = re.compile(r"\s*[=:]\s*(\d+(?:ms|s|m|h)\b)", re.IGNORECASE)


@rule("E0423", "error")
def unknown_limit(file: Analysis, report: Report) -> None:
    """A `budget` has a limit that does not exist.

    It would limit nothing. The limits are `tokens`, `usd`, `time`, `turns` and `requests`.

    Wrong:

        in handler: playbook "Say hello." budget { turn: 3 }

    Right:

        in handler: playbook "Say hello." budget { turns: 3 }
    """
    for budget, _ in file.index.of(n.Budget):
        for name, _ in budget.limits:
            if name.name not in LIMITS:
                near = nearest(name.name, LIMITS)
                listed = ", ".join(f"`{limit}`" for limit in LIMITS)
                help = f"did you mean `{near}`?" if near is not None else f"there are {listed}."
                fixes = report.replacement(name.span, near)
                report.add(name.span, f"`budget` has no limit `{name.name}`", help=help, fixes=fixes)


@rule("E0424", "error")
def impossible_limit(file: Analysis, report: Report) -> None:
    """A limit of a `budget` has a value that nothing could stay within, or of another kind.

    `tokens`, `turns` and `requests` are whole numbers from 1, `time` is more than nothing, a duration such as `2m` or a
    number of seconds. `usd` may be 0: then only models that cost nothing answer. None is endless, as `1e999` would be.

    Wrong:

        in handler: playbook "Say hello." budget { turns: 0 }

    Right:

        in handler: playbook "Say hello." budget { turns: 3 }
    """
    for budget, _ in file.index.of(n.Budget):
        for name, value in budget.limits:
            duration = DURATION.match(file.unit.source.text, name.span.end)
            kind = _kind(name.name, value, is_duration=duration is not None)
            if kind is not None:
                written = duration[1] if duration is not None else f"{value:g}"
                message = f"`{name.name}` of a `budget` is {kind}, not `{written}`"
                report.add(
                    name.span, message, help=f"write `{name.name}: {SAMPLES.get(name.name, '2m')}`, for example."
                )


def _kind(name: str, value: int | float, *, is_duration: bool) -> str | None:
    """What a limit has to be, if its value is not that."""
    if name in COUNTED and (is_duration or value < 1 or value % 1 != 0):
        return "a whole number from 1"
    if name == "usd" and (is_duration or value == inf):
        return "an amount of money"
    return "a time above 0" if name == "time" and not 0 < value < inf else None


@rule("E0425", "error")
def resilience_value(file: Analysis, report: Report) -> None:
    """A property of `resilience` has a value that it cannot have.

    `retry_max_attempts` is a whole number from 1, `retry_delay` and `timeout` are milliseconds, and `backoff` is
    `exponential` or a number that the pause is multiplied with.

    Wrong:

        in agent:
          resilience "load" { retry_max_attempts = 0 }
          on load(args) { return await fetch(args.url) }

    Right:

        in agent:
          resilience "load" { retry_max_attempts = 3 }
          on load(args) { return await fetch(args.url) }
    """
    for block, _ in file.index.of(n.Resilience):
        for name, value in block.properties:
            kind = _wrong(name.name, value, file)
            if kind is not None:
                written = file.unit.source.text[value.span.start : value.span.end]
                help = f"write `{name.name} = {'2' if name.name == 'backoff' else '3'}`, for example."
                report.add(value.span, f"`{name.name}` is {kind}, not `{written}`", help=help)


def _wrong(name: str, value: n.Expression, file: Analysis) -> str | None:
    """What a property has to be, if it is written out and not that."""
    given = _literal_value(value, file)
    number = given if isinstance(given, (int, float)) and not isinstance(given, bool) else None
    if given is ...:
        return None
    match name:
        case "retry_max_attempts" if number is None or number < 1 or number % 1 != 0:
            return "a whole number from 1"
        case "retry_delay" if number is None or not 0 <= number < inf:
            return "a number of milliseconds"
        case "timeout" if given is not None and (number is None or not 0 < number < inf):
            return "a number of milliseconds from 1"
        case "backoff" if (
            not isinstance(given, bool) and given != "exponential" and (number is None or not 0 < number < inf)
        ):
            return "`exponential` or a factor"
    return None


def _literal_value(value: n.Expression, file: Analysis) -> object:
    """A value that is written out; the ellipsis for anything that is computed."""
    match value:
        case n.Literal() | n.Text():
            return value.value
        case n.Prefix(operator="-", operand=n.Literal(value=int() | float() as number)):
            return -number
        case n.Name() if value in file.code[value].unknown:
            return value.name
    return ...
