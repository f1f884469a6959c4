"""Events to journal entries, and entries to lines of JSON and back; secrets are taken out on the way.

The first line of a journal is its header; every other line is an entry. A reader keeps kinds and fields it does not
know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koi_lang.errors import JournalError
from koi_lang.events import (
    EVENTS,
    VERSION,
    ActionEnded,
    ActionFailed,
    ActionOverridden,
    ActionStarted,
    CallStarted,
    EffectEnded,
    EffectFailed,
    EffectStarted,
    EventData,
    ExtensionStateChanged,
    HookDecided,
    HookReplaced,
    MessageDelivered,
    ModelAnswered,
    ModelWrote,
    ValueObserved,
)
from koi_lang.js.tagged_json import from_fields
from koi_lang.js.undefined import undefined
from koi_lang.redaction.redactor import HIDDEN, Redactor
from koi_lang.runtime.journal.line_ends import is_changed, unseal_line
from koi_lang.runtime.model_calls.images import DATA_FIELD, is_data, without_data
from koi_lang.runtime.outputs import long_texts

if TYPE_CHECKING:
    from koi_lang.events import Event

# The second one has tags for values that JSON lacks.
FORMAT, READABLE = 2, (1, 2)
# The command line of a run that only words lessons.
LESSON_WORDS = ("memory", "lessons")
KINDS = {type: declared.journal_kind for type, declared in EVENTS.items() if not declared.is_transient}
MAX_DEPTH = 200
# Fields of entries that are given to the program again, and what tells which of these were not written down whole.
GIVEN_AGAIN: Mapping[str, tuple[str, ...]] = {
    "done": ("result", "changed", "globals"),
    "failed": ("thrown", "attributes", "changed", "globals"),
    ValueObserved.type: ("value",),
    ActionOverridden.type: ("result",),
    HookDecided.type: ("to", "result"),
    HookReplaced.type: ("result",),
    ModelAnswered.type: ("text",),
    ModelWrote.type: ("text",),
    MessageDelivered.type: ("text",),
    CallStarted.type: ("args",),
    ExtensionStateChanged.type: ("state",),
}
# What is said in these is passed on by models, handlers and extensions, so that it may turn up anywhere.
PASSED_ON = frozenset(
    declared.type for declared in (ModelAnswered, ModelWrote, MessageDelivered, CallStarted, ExtensionStateChanged)
)
REDACTED = "redacted"
# Python refuses to write longer numbers as decimals.
MAX_BITS = 4096
# Where entries hold the totals so far, and the end of the last call.
TOTALS, LAST_CALL = "totals", "last_call"
# What only journals hold.
OF_JOURNALS = frozenset({TOTALS, LAST_CALL, REDACTED})
# Kinds that actions and effects share.
ACTIONS: Mapping[str, type[EventData]] = {
    type.journal_kind: type for type in (ActionStarted, ActionEnded, ActionFailed)
}
EFFECTS: Mapping[str, type[EventData]] = {
    type.journal_kind: type for type in (EffectStarted, EffectEnded, EffectFailed)
}
Redact = Callable[[str], str]
# What leaves everything as it is: names of fields count only where secrets are taken out of texts, too.
NOTHING: Redact = str


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a journal.

    Attributes:
        run: id of the run.
        started: seconds since the epoch.
        program: path of its file, absolute; for a service relative to the project, where it is below that.
        hash: of the content of all its files.
        version: of Koi.
        words: of the command line.
        payload: fields that its `run` statements passed on.
        limits: of the command line and `koi.toml`.
        seed: what its random numbers follow from.
        today: date and place that its models were told; empty where they were told none.
        parent: for a branch, the id of the run it goes on from and the number of the last entry that counts for it.
        case: for a case of an evaluation its eval, its data, and what tells it from the others; empty for other runs.
    """

    run: str
    started: float
    program: str
    hash: str
    version: str
    words: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    seed: str = ""
    parent: tuple[str, int] | None = None
    today: str = ""
    case: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "journal": FORMAT,
            "run": self.run,
            "started": self.started,
            "program": self.program,
            "hash": self.hash,
            "version": self.version,
            "words": list(self.words),
            "payload": dict(self.payload),
            "limits": dict(self.limits),
            "seed": self.seed,
            **({"today": self.today} if self.today else {}),
            **({"parent": list(self.parent)} if self.parent else {}),
            **({"case": dict(self.case)} if self.case else {}),
        }


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One thing that happened.

    Attributes:
        n: counts from 1 within the journal.
        ts: seconds since the epoch.
        kind: `begun`, `done` and `failed` for actions, else the type of the event.
        path: where in the run it happened.
        agent: whom it concerns, empty for the run itself.
        data: further fields; `redacted` names those of which a secret was taken out, where one may have been.
    """

    n: int
    ts: float
    kind: str
    path: tuple[str, ...] = ()
    agent: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        own = {"n": self.n, "ts": self.ts, "kind": self.kind, "path": list(self.path), "agent": self.agent}
        return {**own, **self.data, **own}

    @property
    def lacks_secret(self) -> bool:
        """Whether a secret was removed from a value that is recalled; older journals show only its mark."""
        names, known = GIVEN_AGAIN.get(self.kind, ()), self.data.get(REDACTED)
        if any(self._has_redacted_output(name) for name in names):
            return True
        if isinstance(known, list):
            return not set(names).isdisjoint(known)
        return HIDDEN in str([self.data.get(name) for name in names])

    def _has_redacted_output(self, name: str) -> bool:
        """Whether a secret was taken out of a long text that a field refers to."""
        if not self.data.get("tagged"):
            return False
        return any(each.kept.lacks_secret for each in long_texts.references(from_fields(self.data, name)))


def kind_of(type: str) -> str:
    """The kind of entry that an event of a type becomes."""
    return KINDS.get(type, type)


def entry_of(event: Event, n: int) -> JournalEntry:
    """An event as the n-th entry; entries that a branch reuses from its parent are marked."""
    data = {**event.fields, "recalled": True} if event.recalled else event.fields
    return JournalEntry(n, event.ts, event.data.journal_kind, event.path, event.agent, data)


def written_entry(event: Event, redact: Redact) -> JournalEntry:
    """An event as a journal holds it: without secrets, and as JSON."""
    entry = entry_in(line_of(entry_of(event, 1), redact))
    assert entry is not None, "what is written can be read"
    return entry


# ---------------------------------------------------------------- to lines


def line_of(content: Header | JournalEntry, redact: Redact) -> bytes:
    """A header or entry as a line, its line break included."""
    line = json_line(content.as_data(), redact)
    if isinstance(content, Header) or content.kind not in GIVEN_AGAIN or HIDDEN.encode() not in line:
        return line
    shown, known = plain(content.data, redact), plain(content.data, NOTHING)
    changed = [name for name in content.data if shown.get(name) != known.get(name)]
    if not changed and "recalled" in content.data:
        return line  # what an earlier journal did not hold cannot be told from what was meant
    return json_line({**content.as_data(), REDACTED: changed}, redact)


def json_line(content: Mapping[str, Any], redact: Redact) -> bytes:
    """Fields as one line of JSON in UTF-8, its line break included, valid for any values."""
    # To write the line at once takes a third of the time; seldom is there anything to replace in it.
    try:
        text = _encode(content)
        looked_at = without_data(text) if DATA_FIELD in text else text
        is_shown = redact is NOTHING or (isinstance(redact, Redactor) and redact.is_clean(looked_at))
        # Few texts have to be looked at for how deep they are nested.
        may_be_deep = text.count("[") + text.count("{") > MAX_DEPTH
        if is_shown and not (may_be_deep and _is_deeper(content, MAX_DEPTH)):
            return text.encode() + b"\n"
    except (TypeError, ValueError, RecursionError):
        pass  # it holds something that JSON does not know
    data = plain(content, redact)
    try:
        return _encode(data).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can only hold escaped
        return json.dumps(data, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _is_deeper(value: Any, most: int) -> bool:
    """Whether a value is nested deeper than readers of a journal can follow."""
    if not isinstance(value, (dict, list, tuple)):
        return False
    items = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_is_deeper(item, most - 1) for item in items)


def _simple(value: Any) -> Any:
    if value is undefined:
        return None
    raise TypeError


# What holds itself ends in a RecursionError.
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), allow_nan=False, default=_simple
).encode


def plain(value: Any, redact: Redact) -> Any:
    """A value as JSON without secrets; anything that is no list, object or simple value becomes a text."""
    before = redact.count if isinstance(redact, Redactor) else 0
    shown = _plain(value, redact, ())
    has_learnt = isinstance(redact, Redactor) and redact.count > before
    return _plain(value, redact, ()) if has_learnt else shown


def _plain(value: Any, redact: Redact, around: tuple[int, ...]) -> Any:
    if isinstance(value, str):
        return value if is_data(value) else redact(value)
    if value is None or value is undefined or isinstance(value, bool):
        return None if value is undefined else value
    if isinstance(value, (int, float)):
        return _number(value, redact)
    if not isinstance(value, (dict, list, tuple)):
        return redact(str(value))
    if id(value) in around or len(around) > MAX_DEPTH:
        return "[circular]" if id(value) in around else "[too deep]"
    inside = (*around, id(value))
    if isinstance(value, dict):
        fields = redact.fields(value) if isinstance(redact, Redactor) else value
        return {redact(str(name)): _plain(item, redact, inside) for name, item in fields.items()}
    items = redact.items(value) if isinstance(redact, Redactor) else value
    return [_plain(item, redact, inside) for item in items]


def _number(value: float, redact: Redact) -> Any:
    """A number, or a text where JSON has none for it or where it is a secret."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return hex(value)
    written = str(value)
    shown = redact(written)
    return shown if shown != written or written in ("nan", "inf", "-inf") else value


# ---------------------------------------------------------------- from lines


def header_of(line: bytes, name: str) -> Header:
    """The header in the first line of a journal.

    Args:
        name: how messages call the file.

    Raises:
        JournalError: the line is no header, or one that this version cannot read; says what to do.
    """
    if not line:
        help = "Nothing was changed. Run its program again; `koi runs delete` removes the file."
        raise JournalError(f"the run of `{name}` was broken off before it began", help=help)
    data = _object(line)
    if data is None or "journal" not in data or not line.endswith(b"\n"):
        help = "Nothing was changed. If you do not know the file, move it away or `koi runs delete` it."
        raise JournalError(f"`{name}` does not begin as a journal does", help=help)
    if data["journal"] not in READABLE:
        help = "Nothing was changed. Read it with the version of Koi that wrote it."
        raise JournalError(f"`{name}` has the journal format {data['journal']}, not {FORMAT} or less", help=help)
    header = _header(data)
    if header is None or is_changed(line, header.run):
        help = "Nothing was changed. `koi runs delete` removes the file if you do not need it."
        raise JournalError(f"the header of `{name}` is damaged", help=help)
    return header


def _header(data: Mapping[str, Any]) -> Header | None:
    texts = [data.get(name) for name in ("run", "program", "hash", "version")]
    words, started = data.get("words", []), data.get("started")
    seed, today = data.get("seed", ""), data.get("today", "")
    payload = data.get("payload", {})
    limits = data.get("limits", {})
    case = data.get("case", {})
    if (
        not all(isinstance(text, str) for text in (*texts, seed, today))
        or not _is_number(started)
        or not _are_texts(words)
    ):
        return None
    if not isinstance(payload, dict) or not isinstance(limits, dict) or not isinstance(case, dict):
        return None
    run, program, hash, version = map(str, texts)
    given = (tuple(words), payload, limits, seed, _parent(data.get("parent")), today, case)
    return Header(run, float(started or 0), program, hash, version, *given)


def _parent(value: Any) -> tuple[str, int] | None:
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], int):
        return str(value[0]), value[1]
    return None


def entry_in(line: bytes) -> JournalEntry | None:
    """The entry in a line, with or without a checksum; None when it holds none."""
    data = _object(unseal_line(line))
    if data is None:
        return None
    n, ts, kind = (data.pop(name, None) for name in ("n", "ts", "kind"))
    path, agent = data.pop("path", []), data.pop("agent", "")
    if type(n) is not int or not _is_number(ts) or not isinstance(kind, str):
        return None
    if not _are_texts(path) or not isinstance(agent, str):
        return None
    return JournalEntry(n, ts, kind, tuple(path), agent, data)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


# ---------------------------------------------------------------- to events


def event_data(entry: JournalEntry, run: str) -> dict[str, Any]:
    """The event that an entry was made of, in its JSON form; its number is that of the entry."""
    data = {name: value for name, value in entry.data.items() if name not in OF_JOURNALS}
    envelope = {"v": VERSION, "seq": entry.n, "ts": entry.ts, "run": run, "path": list(entry.path)}
    type = entry.kind
    if type in ACTIONS:  # these get an id at their begin; effects always have their inputs
        is_action = "id" in entry.data if type == ActionStarted.journal_kind else "fields" not in entry.data
        type = (ACTIONS if is_action else EFFECTS)[type].type
    return {**envelope, "agent": entry.agent, "type": type, **data}
