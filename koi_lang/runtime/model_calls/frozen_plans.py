"""Frozen plans: answers that recordings have explained, given in the place of a model while they hold.

A plan is the file `plans/Agent.handler.json` beside a program; `koi freeze` writes it. It answers the first request of
a call. Whatever comes after that, such as an action that has failed or gave another result, is for the model.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import KoiError, SettingsError, reason
from koi_lang.js.undefined import undefined
from koi_lang.llm.layers import Layer
from koi_lang.llm.messages import Adapter, Delta, Request, StreamEnd, Task, TextDelta
from koi_lang.runtime.actions.registered import ActionContext, ActionError, action
from koi_lang.runtime.playbook.delegation import reachable
from koi_lang.runtime.playbook.holes import texts_in, why_not_plain
from koi_lang.runtime.schema import of_function, of_result
from koi_lang.system.interpolation import HOLE

if TYPE_CHECKING:
    from koi_lang.runtime.agents.declarations import AgentDeclaration
    from koi_lang.runtime.ports import AgentPort

# Earlier plans do not say which agents and which texts of actions they were made for.
FORMAT = 4
# Beside a program.
FOLDER = "plans"
PROVIDER = "frozen"
# The action by which a plan ends where a result is not as it was; no model is offered it.
EXPECT = "expect"
MAX_BYTES = 1 << 20
# Of a value in a message about it.
MAX_SHOWN_CHARS = 500
# What a plan was made for, and how a reason says that it has changed.
PARTS = {"playbook": "its playbook", "role": "its role", "team": "its team", "types": "its types"}
# The words of JSON for kinds of values.
NUMBER = "number"
TEXT = "text"
TRUTH = "boolean"


@dataclass(frozen=True, slots=True)
class FrozenPlan:
    """A plan.

    Attributes:
        handler: `Agent.handler`.
        program: the name of its file, which is beside the folder of plans.
        recordings: the ids of the runs that it explains.
        hashes: of the parts that it was made for, by the names in `PARTS`.
        fits: the form of the payload and the state that it explains, as `form_of` makes it.
        actions: as a model would have written them.
        confirmed: texts of which a person has said that they are always so.
    """

    handler: str
    program: str
    recordings: tuple[str, ...]
    hashes: Mapping[str, str]
    fits: Mapping[str, Any]
    actions: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    confirmed: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The answer of a model; one that only returns is understood where nothing but the result is asked for."""
        actions = list(self.actions)
        return json.dumps(actions[0] if len(actions) == 1 else actions, ensure_ascii=False)

    def as_data(self) -> dict[str, Any]:
        """The content of its file."""
        data = {
            "koi_plan": FORMAT,
            "handler": self.handler,
            "program": self.program,
            "recordings": list(self.recordings),
            "hashes": dict(self.hashes),
            "fits": dict(self.fits),
            "actions": list(self.actions),
            "confirmed": list(self.confirmed),
        }
        return {**data, "seal": digest(data)}


def digest(value: Any) -> str:
    """A short digest of a value of JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def plan_path(folder: Path, agent: str, event: str) -> Path:
    """The file of a handler's plan."""
    return folder / f"{agent}.{event}.json"


def read_plan(path: Path) -> FrozenPlan:
    """The plan of a file. Raises SettingsError where it is none, or was changed by hand."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        data = json.loads(text) if len(text) <= MAX_BYTES else None
    except OSError as error:
        raise SettingsError(f"`{path.name}` cannot be read: {reason(error)}") from error
    except (ValueError, RecursionError):
        data = None
    version = data.get("koi_plan") if isinstance(data, dict) else None
    if isinstance(version, int) and version < FORMAT:
        raise SettingsError(f"`{path.name}` was made by an earlier version of Koi; freeze it again")
    if not isinstance(data, dict) or version != FORMAT:
        help = "Freeze the handler again, or remove the file."
        raise SettingsError(f"`{path.name}` is no plan that this version of Koi reads", help=help)
    if data.pop("seal", "") != digest(data):
        raise SettingsError(f"`{path.name}` was changed by hand")
    names = ("handler", "program", "hashes", "fits", "actions")
    if not all(name in data for name in (*names, "recordings")):
        raise SettingsError(f"`{path.name}` is no plan that this version of Koi reads")
    confirmed = tuple(data.get("confirmed", ()))
    return FrozenPlan(**{name: data[name] for name in names}, recordings=tuple(data["recordings"]), confirmed=confirmed)


def part_hashes(about: AgentDeclaration, event: str, playbook: str, members: Sequence[Any]) -> dict[str, str]:
    """Hashes of what a plan is made for.

    Args:
        playbook: with names in the place of values.
        members: whom the agent can delegate to, as `Delegate`.
    """
    handler = about.find(event)
    result = None if handler is None or handler.result is None else handler.result.schema
    events = [
        [
            *(member.key, of.name, of.affordance, name, each.affordance or of.playbooks.get(name)),
            *(each.schema, each.result and each.result.schema),
        ]
        for member, of in ((member, member.agent.about) for member in members)
        for name, each in of.handlers.items()
    ]
    skills = [
        [each.name, each.affordance, name, function.__doc__, of_function(function), of_result(function)]
        for each in about.skills()
        for name, function in sorted(each.functions.items())
    ]
    servers = [[each.name, each.granted] for each in about.mcps()]
    return {
        "playbook": digest(playbook),
        "role": digest(sorted(about.role().capabilities)),
        "team": digest([events, skills, servers]),
        "types": digest([None if handler is None else handler.schema, result, about.state_types]),
    }


# ---------------------------------------------------------------- the form of a payload


def form_of(samples: Sequence[Any]) -> dict[str, Any]:
    """The form that some values of JSON have in common; a value that never differed is part of it."""
    first = samples[0]
    if all(isinstance(each, dict) for each in samples):
        names = sorted({name for each in samples for name in each})
        fields = {name: form_of([each[name] for each in samples if name in each]) for name in names}
        missing = [name for name in names if not all(name in each for each in samples)]
        return {"fields": fields, **({"optional": missing} if missing else {})}
    if all(isinstance(each, list) for each in samples):
        items, lengths = [item for each in samples for item in each], {len(each) for each in samples}
        of_items = {"items": form_of(items) if items else {}, "empty": 0 in lengths}
        return {**of_items, "length": lengths.pop()} if len(lengths) == 1 and len(samples) > 1 else of_items
    if all(type(each) is type(first) and each == first for each in samples):
        return {"is": first}
    form: dict[str, Any] = {"kinds": sorted({kind_of_value(each) for each in samples})}
    numbers = [each for each in samples if kind_of_value(each) == NUMBER]
    if numbers and min(numbers) >= 0:
        form["from"] = 0 if min(numbers) == 0 else "above 0"
    if numbers and all(isinstance(each, int) for each in numbers):
        form["whole"] = True
    if TEXT in form["kinds"]:
        form["empty"] = "" in samples
    return form


def describe_form(form: Mapping[str, Any], path: str) -> Iterator[str]:
    """A line for each part of a form, such as `args.pieces: number, whole, above 0`."""
    if "fields" in form:
        for name, inner in form["fields"].items():
            mark = "?" if name in form.get("optional", ()) else ""
            yield from describe_form(inner, f"{path}.{name}{mark}")
    elif "items" in form:
        size = f" of {form['length']}" if "length" in form else "" if form["empty"] else ", never empty"
        yield f"{path}: list{size}"
        yield from describe_form(form["items"], f"{path}[]")
    elif "is" in form:
        yield f"{path}: always {json.dumps(form['is'], ensure_ascii=False)}"
    elif kinds := form.get("kinds"):
        least = form.get("from", "")
        signs = {
            "whole": form.get("whole"),
            "not below 0" if least == 0 else "above 0": "from" in form,
            f"never {form.get('never')}": "never" in form,
            "never half a cent": "has_half_cents" in form,
            "never empty": TEXT in kinds and not form.get("empty", True),
            f"one of {json.dumps(form.get('among'), ensure_ascii=False)}": "among" in form,
        }
        yield ", ".join([f"{path}: {' or '.join(kinds)}", *(sign for sign, holds in signs.items() if holds)])


def is_half_cent(value: float) -> bool:
    """Whether an amount lies between two cents, where its last digits as a binary number decide how it is rounded."""
    return math.isclose(abs(value) * 100 % 1, 0.5, abs_tol=1e-6)


def kind_of_value(value: Any) -> str:
    """The kind of a value of JSON, in the words of messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, (int, float)):
        return NUMBER
    return TEXT if isinstance(value, str) else "list" if isinstance(value, list) else "object"


def misfits(form: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    """A clause for each part of a value that is not as the form says."""
    if "fields" in form:
        yield from _misfits_of_fields(form, value, path)
    elif "items" in form:
        yield from _misfits_of_items(form, value, path)
    elif "is" in form:
        if type(value) is not type(form["is"]) or value != form["is"]:
            yield f"`{path}` was always {json.dumps(form['is'], ensure_ascii=False)}"
    elif kinds := form.get("kinds"):
        yield from _misfits_of_value(form, kinds, value, path)


def _misfits_of_fields(form: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"`{path}` was an object"
        return
    for name in value.keys() - form["fields"].keys():
        yield f"`{path}` had no `{name}`"
    for name, inner in form["fields"].items():
        if name in value:
            yield from misfits(inner, value[name], f"{path}.{name}")
        elif name not in form.get("optional", ()):
            yield f"`{path}` always had `{name}`"


def _misfits_of_items(form: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"`{path}` was a list"
    elif "length" in form and len(value) != form["length"]:
        yield f"`{path}` always had {form['length']} items"
    elif not value and not form["empty"]:
        yield f"`{path}` was never empty"
    else:
        for number, item in enumerate(value):
            yield from misfits(form["items"], item, f"{path}[{number}]")


def _misfits_of_value(form: Mapping[str, Any], kinds: Sequence[str], value: Any, path: str) -> Iterator[str]:
    kind = kind_of_value(value)
    if kind not in kinds:
        yield f"`{path}` was a {' or '.join(kinds)}"
    elif kind == NUMBER and "from" in form and (value < 0 or (value == 0 and form["from"] != 0)):
        yield f"`{path}` was never {'below 0' if value < 0 else '0'}"
    elif kind == NUMBER and "never" in form and value == form["never"]:
        yield f"`{path}` was never {value}"
    elif kind == NUMBER and form.get("has_half_cents") is False and is_half_cent(value):
        yield f"`{path}` was never half a cent"
    elif kind == NUMBER and form.get("whole") and not float(value).is_integer():
        yield f"`{path}` was always whole"
    elif kind == TEXT and not value and not form["empty"]:
        yield f"`{path}` was never empty"
    elif "among" in form and value not in form["among"]:
        yield f"`{path}` was never {json.dumps(value, ensure_ascii=False)}"


@action(inside=True, only_looks=True, is_occasional=True)
async def expect(context: ActionContext, of: Any, as_: str, fits: dict[str, Any]) -> Any:
    """Fail where a value, named by `as`, does not have the form that the recordings of a frozen plan had."""
    if why := why_unexpected(fits, of, as_):
        shown = json.dumps(of, ensure_ascii=False, default=str)[:MAX_SHOWN_CHARS]
        raise ActionError(
            f"{why}; it is {shown}", help="The rest of the plan is not carried out; go on with the playbook."
        )
    return undefined


def why_unexpected(fits: Mapping[str, Any], value: Any, name: str) -> str:
    """Why a plan does not go on with a value; empty where it does.

    Args:
        fits: a form, or the kind of each of some values in a command, a key of `PLAIN_IN_COMMANDS`.
        value: one that is to have the form, or a list of those that go into a command.
    """
    if kinds := fits.get("shell"):
        clauses = (why_not_plain(each, kind) for each, kind in zip(value, kinds, strict=True))
        clause = next(filter(None, clauses), "")
        return clause and f"`{name}` is made of {clause}"
    clause = next(misfits(fits, value, name), "")
    return clause and f"{clause} in the recordings of this plan"


# ---------------------------------------------------------------- in front of a model


class FrozenPlans:
    """The plans beside a program.

    Args:
        folder: of the plans; it need not be there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plans: dict[str, FrozenPlan | None] = {}
        self._reported: set[str] = set()

    def has_any(self, agent: str) -> bool:
        """Whether an agent has a plan."""
        return next(self._folder.glob(f"{agent}.*.json"), None) is not None

    def in_front_of(self, model: Adapter, agent: AgentPort, request: Request) -> Adapter:
        """A model with the plan for a request in front of it; the model itself where no plan holds.

        The person is told once why a plan is not used.
        """
        task = request.task
        if task is None or not task.event or task.results:
            return model
        plan = self._plan(agent, task.event)
        if plan is None:
            return model
        why = next(obstacles(plan, agent, task), "")
        if not why:
            return PlanModel(model, plan)
        self._report(agent, plan.handler, why)
        return model

    def _plan(self, agent: AgentPort, event: str) -> FrozenPlan | None:
        name = f"{agent.name}.{event}"
        if name not in self._plans:
            self._plans[name] = None
            path = plan_path(self._folder, agent.name, event)
            try:
                self._plans[name] = read_plan(path) if path.is_file() else None
            except SettingsError as error:
                self._report(agent, name, error.message)
        return self._plans[name]

    def _report(self, agent: AgentPort, name: str, why: str) -> None:
        if name not in self._reported:
            self._reported.add(name)
            agent.run.host.log(f"the plan of `{name}` is not used: {why}")


def obstacles(plan: FrozenPlan, agent: AgentPort, task: Task) -> Iterator[str]:
    """Clauses that say why a plan does not answer a request; none where it does."""
    now = part_hashes(agent.about, task.event, task.instructions, reachable(agent))
    changed = [what for part, what in PARTS.items() if plan.hashes.get(part) != now[part]]
    if changed:
        yield f"{' and '.join(changed)} {'has' if changed != [PARTS['types']] else 'have'} changed; freeze it again"
    if not task.stands_alone:
        yield "the request tells more than playbook, payload and state"
    given = {"args": task.args, "state": dict(task.state)}
    if any(HOLE.search(text) for text in texts_in(given)):
        yield "a value holds what looks like an expression"
    for part, value in given.items():
        yield from (f"{clause} in its recordings" for clause in misfits(plan.fits[part], value, part))


class UnconnectedModel:
    """Stands where a model could not be connected; a plan may stand in front of it.

    Attributes:
        error: why it is not connected.
    """

    provider = model = "none"

    def __init__(self, error: KoiError) -> None:
        self.error = error

    def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Raise the error."""
        raise self.error

    async def aclose(self) -> None:
        """Nothing is held."""


class PlanModel(Layer):
    """A plan in front of a model, which is not asked."""

    def __init__(self, inner: Adapter, plan: FrozenPlan) -> None:
        super().__init__(inner)
        self._plan = plan

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """The answer at once, so that it is recorded whole before its first action begins."""
        yield TextDelta(self._plan.answer)
        yield StreamEnd(None, "stop", f"{PROVIDER}/{self._plan.handler}", replayed=True)
