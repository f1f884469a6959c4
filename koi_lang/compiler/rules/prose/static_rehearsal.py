"""What the rehearsal makes of a playbook before the program runs: names stand for the values that it would have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.declared_types import choices_of
from koi_lang.compiler.rules.kinds import KINDS
from koi_lang.compiler.rules.program import handlers
from koi_lang.compiler.rules.prose.abilities import Abilities
from koi_lang.compiler.rules.prose.playbooks import PlaybookProse, PlaybookText
from koi_lang.compiler.rules.prose.words import pattern, read_capabilities, read_words
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.symbols import SymbolTable
from koi_lang.llm.messages import ActionResult, DelegateInfo, Task
from koi_lang.llm.rehearsal.state import NotYetKnownError, ProposedAction, RehearsalState, UnclearSentenceError
from koi_lang.llm.rehearsal.steps import steps_of

# What actions give, as far as it has a form of its own.
RESULTS: Mapping[str, Any] = {
    "prompt_user": {"answer": "⟨answer⟩"},
    "registry_get": {"value": "⟨value⟩", "found": True},
    "call_llm": {"result": "⟨result⟩"},
    "registry_keys": ["⟨key⟩"],
}
ARGS = re.compile(r"\bargs\.(\w+)")
# Types that contain themselves end here.
MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class ProposedStep:
    """One step that the rehearsal sees in a playbook.

    Attributes:
        start: where its sentence begins in the text.
        action: what it would propose; None where the step only names a value, or a model is needed.
        needs_model: whether the rehearsal does not understand it, or not all of what it returns.
        refused: the name of the action that the step takes and the agent may not use; then `action` is None.
    """

    start: int
    action: Mapping[str, Any] | None
    needs_model: bool = False
    refused: str = ""


def rehearse(text: PlaybookText, abilities: Abilities, actions: Sequence[str]) -> Iterator[ProposedStep]:
    """The steps of a text of a playbook in order; every action is taken to go well, and an `answer` has none.

    Args:
        actions: the names of those that the agent may use.
    """
    scene = RehearsalState(_task(text, abilities, actions))
    for step in steps_of(scene.values.text, scene):
        try:
            deed = step.action_for(scene)
        except (UnclearSentenceError, NotYetKnownError):
            scene.lose_track()
            yield ProposedStep(step.sentence.start, None, needs_model=True)
            continue
        if text.answers and deed.action is not None and deed.intent != "return":
            yield ProposedStep(step.sentence.start, None, needs_model=True)
            continue
        if step.action is None and deed.action is not None and not _may(deed, actions):
            yield ProposedStep(step.sentence.start, None, refused=deed.intent)
            continue
        # Of what it returns, the rehearsal says which fields only a model could fill.
        yield ProposedStep(step.sentence.start, deed.action, needs_model=deed.intent == "return" and bool(deed.value))
        if deed.action is None:
            scene.name(deed.label, deed.value)
        elif deed.intent != "return":
            scene.learn(deed, ActionResult(deed.intent, deed.action, True, _result(deed, abilities)))


def _may(deed: ProposedAction, actions: Sequence[str]) -> bool:
    is_delegated = deed.action is not None and deed.action["actionType"] == "delegate"
    return is_delegated or deed.intent == "return" or deed.intent in actions


def _task(text: PlaybookText, abilities: Abilities, actions: Sequence[str]) -> Task:
    """What the rehearsal is told, with samples in place of what only the running program knows."""
    table, members = text.file.table, abilities.members or {}
    state = {name: _initial(field, table) for name, field in fields_of(text.agent).items()}
    delegates = tuple(
        DelegateInfo(key, events=tuple(each.name.name for each in handlers(agent)))
        for key, (agent, _) in members.items()
        if abilities.may(["delegate"])
    )
    return Task(text.unfenced_text, _payload(text, table), state, tuple(actions), delegates)


def _payload(text: PlaybookText, table: SymbolTable) -> Any:
    handler = text.around.function
    type = handler.parameters[0].type if isinstance(handler, n.Handler) and handler.parameters else None
    sample = "⟨args⟩" if type is None else sample_of(type, "args", table)
    named = {name: f"⟨args.{name}⟩" for name in ARGS.findall(text.text.value)}
    return named | sample if isinstance(sample, dict) else named or sample


def _initial(field: n.Field, table: SymbolTable) -> Any:
    """What a field of the state begins with, where that is written down."""
    if isinstance(field.value, n.Literal | n.Text):
        return field.value.value
    if isinstance(field.value, n.Array) and not field.value.items:
        return []
    name = f"state.{field.name.name}"
    return f"⟨{name}⟩" if field.type is None else sample_of(field.type, name, table)


def sample_of(type: n.Type, words: str, table: SymbolTable, depth: int = 0) -> Any:
    """A value of a type: `⟨words⟩` for a text and for what may be anything, 1 for a number."""
    first = next(iter(choices_of(type, table)), type)
    if first.name == "object" and first.fields and depth < MAX_DEPTH:
        return {each.name: sample_of(each.type, f"{words}.{each.name}", table, depth + 1) for each in first.fields}
    if first.name == "literal":
        return first.text.strip("\"'")
    kind = KINDS.get(first.name.lower())
    if kind == "array":
        items = first.arguments[:1] if depth < MAX_DEPTH else ()
        return [sample_of(item, f"{words}[0]", table, depth + 1) for item in items]
    return {"number": 1, "boolean": True, "null": None}.get(kind or "", f"⟨{words}⟩")


def _result(deed: ProposedAction, abilities: Abilities) -> Any:
    """What an action gives, as far as the program says."""
    key, _, event = deed.intent.partition("::")
    agent, home = (abilities.members or {}).get(key, (None, None))
    if agent is not None and home is not None:
        handler = next((each for each in handlers(agent) if each.name.name == event), None)
        if handler is not None and handler.returns is not None:
            return sample_of(handler.returns, event, home.table)
    return RESULTS.get(deed.intent, f"⟨{event or deed.label or 'result'}⟩")


def acts(prose: PlaybookProse, *, answers: bool = False) -> bool:
    """Whether a sentence asks for more than a result: by its words, or in the rehearsal.

    Args:
        answers: whether it is the text of an `answer`, which has to ask for an action beyond doubt.
    """
    words = read_words()["answering" if answers else "acting"]
    capabilities = [each for each in read_capabilities() if not (answers and each.is_own)]
    patterns = [*words["patterns"], *(form for each in capabilities for form in each.patterns)]
    clauses = ((sentence.prose, begin) for sentence in prose.sentences for begin in sentence.clauses)
    if any(pattern(each).match(text, begin) for text, begin in clauses for each in patterns):
        return True
    if any(pattern(each).search(prose.text.value) for each in words["names"]):
        return True
    payload = {name: f"⟨args.{name}⟩" for name in ARGS.findall(prose.text.value)}
    scene = RehearsalState(Task(prose.unfenced_text, payload))
    for step in steps_of(scene.values.text, scene):
        try:
            proposed = step.action_for(scene)
        except (UnclearSentenceError, NotYetKnownError):
            scene.lose_track()
            continue
        if proposed.action is not None and proposed.intent not in words["results"]:
            return True
        scene.name(proposed.label, proposed.value)
    return False
