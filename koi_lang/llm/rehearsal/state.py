"""The known values at one point of a playbook, and words of the playbook as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from koi_lang.llm.messages import ActionResult, Task
from koi_lang.llm.rehearsal.languages import compile_words
from koi_lang.llm.rehearsal.values import Values
from koi_lang.system.interpolation import USUAL_CODE

# Fields of actions in which the runtime looks for no references.
UNREAD = frozenset({"options", "instruction"})
# Fields of a result that change the state.
STATE_UPDATES = frozenset({"state_updates", "stateUpdates"})
SILENT = frozenset({"print", "update_state", "registry_set", "registry_delete"})
_PATH = re.compile(r"(args|state)((?:\.\w+|\[\d+\])*)")


class UnclearSentenceError(Exception):
    """A sentence that would need a model: its meaning or a value it speaks of is not known."""


class NotYetKnownError(Exception):
    """A value depends on an action that has been proposed and not executed yet."""


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """The meaning of a sentence: an action, or only a name for a value.

    Attributes:
        label: what the result is called later; empty when it has no name.
    """

    action: Mapping[str, Any] | None
    label: str = ""
    value: Any = None

    @property
    def intent(self) -> str:
        """The name of the action."""
        return str(self.action.get("intent", "")) if self.action else ""


class RehearsalState:
    """Answers and results so far, with the task they belong to.

    Attributes:
        values: what came into the playbook from outside.
        outcome: the last result.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.values = Values(task.parts or (task.playbook,))
        self.outcome: Any = None
        self._answers: list[Any] = []
        self._values: list[Any] = []
        self._named: list[tuple[str, Any]] = []
        self._awaited: list[ProposedAction] = []
        self._last_is_known = True

    def learn(self, deed: ProposedAction, result: ActionResult) -> None:
        """Note the result of a deed's action."""
        was_skipped = result.value is None and deed.action is not None and "condition" in deed.action
        if deed.intent in SILENT or was_skipped:
            return
        value = _content(deed.intent, result.value)
        self._last_is_known = True
        self.outcome = result.value
        self._values.append(value)
        if deed.intent == "prompt_user":
            self._answers.append(value)
        self.name(deed.label, value)

    def name(self, label: str, value: Any) -> None:
        """Give a value a name."""
        if label:
            self._named.append((_plain(label), value))

    def lose_track(self) -> None:
        """Note that a sentence was left out, so that `it` and `the result` are unknown after it."""
        self._last_is_known = False

    def expect(self, deed: ProposedAction) -> None:
        """Note that an action has been proposed whose result is not there yet."""
        self._awaited.append(deed)

    def with_values(self, deed: ProposedAction) -> ProposedAction:
        """The action of a sentence with its values filled in; these are not interpreted further."""
        if deed.action is None:
            return deed
        plain, literal = self.values.plain, self.values.literal
        as_is = UNREAD | USUAL_CODE
        fields = {key: plain(item) if key in as_is else literal(item) for key, item in deed.action.items()}
        return replace(deed, action=fields)

    @property
    def awaits_a_value(self) -> bool:
        """Whether a proposed action will bring a value."""
        return any(deed.intent not in SILENT for deed in self._awaited)

    def find(self, words: str) -> Any:
        """The value that words speak of: a path, a pronoun, or a name.

        Raises:
            NotYetKnownError: it comes from an action that is not executed yet.
            UnclearSentenceError: nothing is known by these words.
        """
        words = words.strip().strip("`")
        if path := _PATH.fullmatch(words):
            return self._walk(path[1], path[2])
        name = _plain(words)
        if compile_words("{reply}").fullmatch(name) and (self._answers or self.awaits_a_value):
            return self._latest(self._answers or self._values)
        if compile_words("{last}").fullmatch(name) and (self._values or self.awaits_a_value):
            return self._latest(self._values if self._last_is_known else [])
        return self._by_name(name, words)

    def state_value(self, key: str) -> Any:
        """A field of the state. Raises NotYetKnownError while an update of the state is under way."""
        if any(deed.intent == "update_state" for deed in self._awaited):
            raise NotYetKnownError
        return self.task.state.get(key)

    def state_key(self, words: str) -> str | None:
        """The field of the state that words mean, None when there is none of that name."""
        name = _plain(words)
        return next((key for key in self.task.state if _plain(key) == name), None)

    def _walk(self, root: str, path: str) -> Any:
        steps = re.findall(r"\w+", path)
        value = self.task.args
        if root == "state":
            if not steps:
                return {key: self.state_value(key) for key in self.task.state}
            value, steps = self.state_value(steps[0]), steps[1:]
        for step in steps:
            value = _member(value, step)
        return value

    def _latest(self, values: list[Any]) -> Any:
        if self.awaits_a_value:
            raise NotYetKnownError
        if not values:
            raise UnclearSentenceError("it belongs to a sentence that was left out")
        return values[-1]

    def _by_name(self, name: str, words: str) -> Any:
        if any(_same(_plain(deed.label), name) for deed in self._awaited if deed.label):
            raise NotYetKnownError
        for label, value in reversed(self._named):
            if _same(label, name):
                return value
        for fields in (self._values[-1] if self._values else None, self.task.args):
            if isinstance(fields, Mapping) and (key := _key(fields, name)) is not None:
                return fields[key]
        if (key := self.state_key(words)) is not None:
            return self.state_value(key)
        if self.awaits_a_value:
            raise NotYetKnownError
        raise UnclearSentenceError(f"nothing is known about `{words}`")


def identifier_in(words: str) -> str:
    """The word a value is best called by: `args.amount` is `amount`, `their full name` is `name`."""
    found = re.findall(r"[^\W\d]\w*", words)
    return found[-1] if found else "value"


def _content(intent: str, value: Any) -> Any:
    """The result of an action as the author of a playbook means it."""
    field = {"prompt_user": "answer", "registry_get": "value", "call_llm": "result", "ask_parent": "answer"}.get(intent)
    return value[field] if field and isinstance(value, Mapping) and field in value else value


def _plain(words: str) -> str:
    """A name in lower case with blanks between words, without articles and owners around it."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", words).strip()
    spaced = compile_words(" {of_user}$").sub("", spaced)
    while found := compile_words(r"{owner}\s+").match(spaced):
        spaced = spaced[found.end() :]
    return " ".join(spaced.lower().split())


def _same(label: str, name: str) -> bool:
    """Whether `colour` means a value called `favourite colour`; not the other way round."""
    return bool(label) and (label == name or label.split()[-1] == name)


def _key(fields: Mapping[str, Any], name: str) -> str | None:
    return next((key for key in fields if _plain(str(key)) == name), None)


def _member(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    if isinstance(value, list) and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    return None
