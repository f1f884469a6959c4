"""A rendered playbook to its text with placeholders, and to the values of these, which are told as data."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import isfinite
from typing import Any, TypeVar

from koi_lang.js.undefined import undefined
from koi_lang.llm.messages import Message
from koi_lang.runtime.model_calls.images import images_in, prompt_text
from koi_lang.runtime.playbook.outside_text import escape_breaks
from koi_lang.system.interpolation import Interpolation, Rendered

ARGS = "args"
STATE = "state"
TODAY = "today"
PAGE = "page"
# A path from the payload or the state.
PATH = re.compile(rf"(?:{ARGS}|{STATE})(?:\.[A-Za-z_$][\w$]*|\[\d+\])*")
LINK = re.compile(r"\.([\w$]+)|\[(\d+)\]")
# Characters of an expression that stands in a placeholder.
MAX_NAME_CHARS = 60
SIMPLE = (str, int, float, bool, type(None))
PLAYBOOK = "## Playbook\n"
SAME_PLAYBOOK = "The same playbook."
# What of the state is not as it was told.
CHANGED = "changed state"
# Begins the names of its fields among the values that were told.
FIELD = f"{STATE}\0"
VALUES = "What stands in the playbook for:"
# Of a value that stands within a sentence, in characters.
MAX_INLINE_CHARS = 2_000
NAME = re.compile("⟨([^⟩]*)⟩")


@dataclass(frozen=True, slots=True)
class NamedPlaybook:
    """A playbook as the system text has it.

    Attributes:
        text: without the indentation of its place in the program, and with `⟨name⟩` where a value stands.
        shown: the values by their names.
        found: names of those that are at their paths in the payload or the state.
    """

    text: str = ""
    shown: Mapping[str, Interpolation] = field(default_factory=dict)
    found: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DataMessage(Message):
    """A message that tells values.

    Attributes:
        values: the names of those that may change, each with a digest of its value.
    """

    values: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class PlaybookMessage(DataMessage):
    """A message with the text of a playbook; the digest of that stands under `PLAYBOOK` in `values`.

    Attributes:
        filled: the text with its values in their places, for models that are told so; empty for others.
    """

    filled: str = ""


T = TypeVar("T", bound=DataMessage)


def name_values(playbook: Rendered, args: Any, state: Mapping[str, Any]) -> NamedPlaybook:
    """Put names where values stand: the path of a value, else its expression, with a number where that comes again.

    No value decides about the text, so that it is the same for every call.
    """
    shown: dict[str, Interpolation] = {}
    found: set[str] = set()
    used: Counter[str] = Counter()
    texts: list[str] = []
    for part in playbook.parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        name = part.name
        if PATH.fullmatch(name) is None or (name in shown and not _is_same(shown[name].value, part.value)):
            name = _number_name(name, used)
        elif _is_same(_find_value(name, args, state), part.value):
            found.add(name)
        shown[name] = part
        texts.append(f"⟨{name}⟩")
    return NamedPlaybook(inspect.cleandoc("".join(texts)), shown, frozenset(found))


def fill_in(playbook: NamedPlaybook, args: Any, today: str = "") -> str | None:
    """A playbook with its values in their places, each as JSON; None where one is long or of several lines.

    What else a payload has stands before it.

    Args:
        today: date and place; empty tells none.
    """
    texts = {name: _as_json(value) for name, value in playbook.shown.items()}
    are_short = (
        len(each) <= MAX_INLINE_CHARS and "\\n" not in each and escape_breaks(each) == each for each in texts.values()
    )
    if not all(are_short) or any(images_in(each.value) for each in playbook.shown.values()):
        return None
    others = {name: args[name] for name in args if f"{ARGS}.{name}" not in texts} if isinstance(args, dict) else args
    context = {**({ARGS: others} if others else {}), **({TODAY: today} if today else {})}
    text = NAME.sub(lambda found: texts.get(found[1], found[0]), playbook.text)
    return f"Context: {escape_breaks(prompt_text(context))}\n\n{text}" if context else text


def _number_name(name: str, used: Counter[str]) -> str:
    short = name if len(name) <= MAX_NAME_CHARS else f"{name[: MAX_NAME_CHARS - 1]}…"
    used[short] += 1
    return short if used[short] == 1 and PATH.fullmatch(name) is None else f"{short} #{used[short]}"


def _find_value(path: str, args: Any, state: Mapping[str, Any]) -> Any:
    value: Any = args if path.startswith(ARGS) else state
    for name, index in LINK.findall(path):
        if isinstance(value, Mapping) and name:
            value = value.get(name)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    return None if value is undefined else value


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, SIMPLE) and isinstance(other, SIMPLE) and one == other)


# ---------------------------------------------------------------- what a conversation has told


class ToldValues:
    """Which values a conversation has told, so that each is told again only when it has changed.

    Args:
        messages: of the conversation so far.
        before: what the messages in front of these have told; it does not change.
    """

    def __init__(self, messages: Iterable[Message] = (), before: ToldValues | None = None) -> None:
        self._told: dict[str, bytes] = {} if before is None else dict(before._told)
        for message in messages:
            if isinstance(message, DataMessage):
                self._note(message)

    def begin(self, args: Any, state: Mapping[str, Any], today: str = "", page: Sequence[object] = ()) -> DataMessage:
        """The first message of a call: its payload, changed values, and images.

        Args:
            today: date and place; empty tells none.
            page: what a client tells of its page.
        """
        digest = _digest(prompt_text(dict(state)))
        news, values = ({}, {}) if self._told.get(STATE) == digest else self._tell_state(state, digest)
        if today and self._told.get(TODAY) != (when := _digest(today)):
            news, values = {**news, TODAY: today}, {**values, TODAY: when}
        if (page or PAGE in self._told) and self._told.get(PAGE) != (what := _digest(prompt_text(list(page)))):
            news, values = {**news, PAGE: list(page)}, {**values, PAGE: what}
        text = f"Context: {escape_breaks(prompt_text({ARGS: args, **news}))}"
        return self._note(DataMessage("user", text, images_in(args), values=tuple(values.items())))

    def _tell_state(self, state: Mapping[str, Any], digest: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state, or its changed fields, with digests of the values sent."""
        known, texts = self._told, {name: prompt_text({name: value}) for name, value in state.items()}
        fields = {FIELD + name: _digest(text) for name, text in texts.items() if text != "{}"}
        changed = {name: state[name] for name in texts if known.get(FIELD + name) != fields.get(FIELD + name)}
        is_gone = any(name.startswith(FIELD) and name not in fields for name in known)
        if is_gone or len(changed) == len(fields):
            return {STATE: dict(state)}, {STATE: digest, **fields}
        return {CHANGED: changed}, {CHANGED: digest, **{FIELD + name: fields[FIELD + name] for name in changed}}

    def tell_changes(self, playbook: NamedPlaybook, state: Mapping[str, Any]) -> DataMessage | None:
        """The values in a playbook that are not told as they are; None when all are."""
        new = {
            name: digest
            for name, value in playbook.shown.items()
            if not (name in playbook.found and name.startswith(ARGS))
            and self._told.get(name) != (digest := _digest(value.text))
        }
        self._pass_over_state(playbook, state, new)
        if not new:
            return None
        members = (f"{_quote(f'⟨{name}⟩')}:{_as_json(playbook.shown[name])}" for name in new)
        text = f"{VALUES} {{{escape_breaks(','.join(members))}}}"
        return self._note(DataMessage("user", text, values=tuple(new.items())))

    def tell_playbook(
        self, playbook: NamedPlaybook, *, begins: bool = False, has_heading: bool = True
    ) -> PlaybookMessage | None:
        """The text of a playbook; None where it is the one that was told last.

        Args:
            begins: whether a call begins, so that a short reminder stands for a playbook that was told before.
            has_heading: whether a heading stands above the text.
        """
        digest = _digest(playbook.text)
        is_new = self._told.get(PLAYBOOK) != digest
        if not is_new and not begins:
            return None
        text = f"{PLAYBOOK if has_heading else ''}{playbook.text}" if is_new else SAME_PLAYBOOK
        return self._note(PlaybookMessage("user", text, values=((PLAYBOOK, digest),) if is_new else ()))

    def _pass_over_state(self, playbook: NamedPlaybook, state: Mapping[str, Any], new: dict[str, bytes]) -> None:
        """Remove placeholders whose value stands in the state already sent."""
        parts = [name for name in new if name in playbook.found and name not in self._told]
        if parts and self._told.get(STATE) == _digest(prompt_text(dict(state))):
            self._told.update((name, new.pop(name)) for name in parts)

    def _note(self, message: T) -> T:
        values = dict(message.values)
        changed = values.pop(CHANGED, None)
        if changed is not None and STATE not in self._told:
            return message  # the state that it is about is told no more
        if changed is not None:
            values = {**{name: known for name, known in self._told.items() if name.startswith(FIELD)}, **values}
            values[STATE] = changed
        if STATE in values:  # its parts are told with it
            self._told = {name: digest for name, digest in self._told.items() if not name.startswith(STATE)}
        self._told |= values
        return message


def _as_json(value: Interpolation) -> str:
    if value.value is None:
        return "null"
    is_number = isinstance(value.value, (int, float)) and isfinite(value.value)
    return value.text if is_number or isinstance(value.value, (dict, list, tuple)) else _quote(value.text)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
