"""What calls can cost at most, as the command line shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isinf

import click

from koi_lang.sessions.cost_audit import audit_cost
from koi_lang.sessions.cost_bounds import Bound
from koi_lang.sessions.prepared import Prepared
from koi_lang.system.text_width import clean

ADVICE = (
    "Where there is no bound, `budget { requests: N }` or `budget { usd: N }` of the agent or the playbook sets one."
)
NAME_ONE = "`-m provider/model` shows what one would cost"
RUN = "the run"


def show_costs(ready: Prepared, *, as_json: bool) -> None:
    """Print the bounds of a program; what is to be said of models goes to stderr."""
    notes = list[str]()
    report = audit_cost(ready, notes.append)
    redact = ready.redactor()
    if as_json:
        click.echo(redact(json.dumps(report.as_data(), indent=2)))
    else:
        bounds = {**report.handlers, **({} if report.run is None else {RUN: report.run})}
        texts = ["\n".join([name, *(f"  {line}" for line in _lines(bound))]) for name, bound in bounds.items()]
        has_none = any(bound.why for bound in bounds.values())
        click.echo(clean(redact("\n\n".join([*texts, *([ADVICE] if has_none else [])]))))
    for line in [*notes, *([NAME_ONE] if report.is_unchosen else [])]:
        click.echo(clean(redact(line)), err=True)


def _lines(bound: Bound) -> Iterator[str]:
    """The bound of one handler, then how it came about."""
    if not bound.requests:
        yield "nothing: no model is asked"
        return
    if bound.why:
        yield f"unbounded, because {bound.why}"
        return
    yield f"at most {', '.join(_amounts(bound)) or 'what is not known'}"
    yield from bound.steps
    yield from _request_lines(bound)


def _amounts(bound: Bound) -> Iterator[str]:
    if not isinf(bound.usd):
        yield _dollars(bound.usd)
    if not isinf(bound.requests):
        yield f"{bound.requests:,.0f} request{'' if bound.requests == 1 else 's'}"
    if not isinf(bound.tokens):
        yield f"{bound.tokens:,.0f} tokens"


def _request_lines(bound: Bound) -> Iterator[str]:
    """What a request takes, and what is not known of models."""
    each, names = bound.request, ", ".join(sorted(bound.request.models))
    if not isinf(each.tokens):
        cost = "" if isinf(each.usd) else f" and {_dollars(each.usd)}"
        yield f"each request at most {each.tokens:,.0f} tokens{cost}: {names}"
    if each.unread:
        yield f"how much these read is not known: {', '.join(sorted(each.unread))}"
    if each.unpriced:
        yield f"the prices of these are not known, so no money is told: {', '.join(sorted(each.unpriced))}"


def _dollars(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"
