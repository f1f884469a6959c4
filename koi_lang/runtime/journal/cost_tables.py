"""Costs of runs to a table: by day, model, program, agent or owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args

from koi_lang.runtime.budget.limits import UNPAID
from koi_lang.runtime.journal.run_costs import PaidItem, RunCosts
from koi_lang.runtime.journal.totals import UsageTotals

By = Literal["day", "model", "program", "agent", "user"]
GROUPINGS: tuple[By, ...] = get_args(By)
Naming = Callable[[PaidItem], str]


@dataclass(slots=True)
class CostGroup:
    """A group of a table.

    Attributes:
        runs: how many of them took part in it.
    """

    name: str
    runs: int = 0
    usage: UsageTotals = field(default_factory=UsageTotals)

    def as_data(self) -> dict[str, Any]:
        """The JSON form: `usd` is null where nothing is known of it; where `unpriced` is true, it is not all."""
        usage = self.usage
        usd = None if usage.unpriced and not usage.usd else usage.usd
        tokens = {"tokens": usage.tokens, **usage.by_kind}
        return {"runs": self.runs, "requests": usage.requests, **tokens, "usd": usd, "unpriced": usage.unpriced}


@dataclass(frozen=True, slots=True)
class CostTable:
    """The cost of models, in groups.

    Attributes:
        by: what the groups are told apart by.
        since: seconds since the epoch, before which nothing counts; None where all counts.
        groups: days in their order, others with the dearest first.
        unpriced: the models whose prices are not known.
    """

    by: By
    since: float | None
    groups: tuple[CostGroup, ...]
    total: CostGroup
    unpriced: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        groups = [{self.by: group.name, **group.as_data()} for group in self.groups]
        total, unpriced = self.total.as_data(), list(self.unpriced)
        return {"by": self.by, "since": self.since, "groups": groups, "total": total, "unpriced_models": unpriced}


def tabulate_costs(
    costs: Iterable[RunCosts], by: By, *, since: float | None = None, owners: Mapping[str, str] | None = None
) -> CostTable:
    """The costs of runs in groups.

    Args:
        since: seconds since the epoch; what was paid before then is left out.
        owners: whose the runs are, by their ids; for `user`, where a run without an owner belongs to an empty name.
    """
    groups: dict[str, CostGroup] = {}
    total, unpriced = CostGroup("total"), set[str]()
    for run in costs:
        taking_part: dict[str, CostGroup] = {}
        name_of = _naming(run, by, owners or {})
        for payment in payments_since(run, since):
            name = name_of(payment)
            group = taking_part[name] = groups.setdefault(name, CostGroup(name))
            group.usage.count(payment.as_data())
            total.usage.count(payment.as_data())
            if payment.usd is None and payment.model not in UNPAID:
                unpriced.add(payment.model)
        for group in taking_part.values():
            group.runs += 1
        total.runs += bool(taking_part)
    return CostTable(by, since, tuple(_in_order(groups.values(), by)), total, tuple(sorted(unpriced)))


def list_costs(
    costs: Iterable[RunCosts], *, since: float | None = None, owners: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """The costs of runs, one record for each day, agent and model of each; `user` is there where owners are given."""
    for run in costs:
        groups: dict[tuple[str, str, str], CostGroup] = {}
        for payment in payments_since(run, since):
            place = (day_of(payment.ts), payment.agent, payment.model)
            groups.setdefault(place, CostGroup(run.run)).usage.count(payment.as_data())
        user = {} if owners is None else {"user": owners.get(run.run, "")}
        program = program_name(run)
        for (day, agent, model), group in sorted(groups.items()):
            data = {name: value for name, value in group.as_data().items() if name != "runs"}
            yield {"day": day, "run": run.run, **user, "program": program, "agent": agent, "model": model, **data}


def payments_since(run: RunCosts, since: float | None) -> Sequence[PaidItem]:
    """The payments for a run since some second."""
    return run.payments if since is None else [payment for payment in run.payments if payment.ts >= since]


def day_of(ts: float) -> str:
    """The day of a second as people here count it, such as `2026-11-26`."""
    return date.fromtimestamp(ts).isoformat()


def program_name(run: RunCosts) -> str:
    """The program of a run, as seen from the folder of the runs where it is below that."""
    folder, program = run.path.parent.parent.parent.absolute(), Path(run.header.program)
    return program.relative_to(folder).as_posix() if program.is_relative_to(folder) else program.as_posix()


def _naming(run: RunCosts, by: By, owners: Mapping[str, str]) -> Naming:
    """The group of a payment for a run, as a function."""
    if by == "day":
        return lambda payment: day_of(payment.ts)
    if by == "model":
        return lambda payment: payment.model
    if by == "agent":
        return lambda payment: payment.agent
    name = program_name(run) if by == "program" else owners.get(run.run, "")
    return lambda payment: name


def _in_order(groups: Iterable[CostGroup], by: By) -> list[CostGroup]:
    if by == "day":
        return sorted(groups, key=lambda group: group.name)
    return sorted(groups, key=lambda group: (-group.usage.usd, -group.usage.tokens, group.name))
