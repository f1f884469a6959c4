"""Events of a run: one typed record for everything that can happen, and the envelope in which consumers get it.

A consumer looks at what an envelope holds:

    match event.data:
        case ActionEnded(intent=intent):
            ...

The wire form is `as_data()`: the fields of the envelope and of the record side by side. A record whose type is not
known, or whose fields do not fit it, is an `UnknownEvent`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, dataclass_transform

VERSION = 1
# How much is shown of an event: not what is `detailed`, not what is `verbose`, or everything.
Detail = Literal["brief", "detailed", "verbose"]
ENVELOPE = frozenset({"v", "seq", "ts", "run", "path", "agent", "type", "recalled"})


class _Omitted:
    """Stands for a field that an event does not have."""

    def __repr__(self) -> str:
        return "OMITTED"

    def __bool__(self) -> bool:
        return False


OMITTED: Any = _Omitted()


def unless_omitted(value: Any, default: Any = None) -> Any:
    """What a field holds; a default where the event does not have it."""
    return default if value is OMITTED else value


Data = TypeVar("Data", bound="EventData")


class EventData:
    """What events of one type hold; `@event` declares such a type.

    A class is made a dataclass when its first record is made: to do that for all of them at import would take longer
    than many a program runs.

    Attributes:
        type: as it stands in journals and on wires.
        journal_kind: of the entry that it becomes in a journal.
        is_transient: whether it has no number, and no journal keeps it.
        spread: the field whose members stand beside the other fields on the wire; empty where there is none.
        wire_names: of fields that are called otherwise on the wire.
        hidden: the fields that are left out, by how much is shown.
    """

    type: str
    journal_kind: str
    is_transient = False
    spread = ""
    wire_names: Mapping[str, str] = {}
    hidden: Mapping[Detail, frozenset[str]] = {}

    def __init__(self, *values: Any, **named: Any) -> None:
        kind: Any = type(self)
        dataclass(eq=False, repr=False)(kind)
        kind.__init__(self, *values, **named)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def as_data(self, detail: Detail = "verbose") -> dict[str, Any]:
        """The fields by their names on the wire, without those that are omitted."""
        hidden, data = self.hidden.get(detail, ()), dict[str, Any]()
        for name, value in vars(self).items():
            if value is OMITTED or name in hidden:
                continue
            if name == self.spread:
                data.update(value)
            else:
                data[self.wire_names.get(name, name)] = value
        return data

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> EventData:
        """The record with some fields from a wire; those that it does not declare are carried along."""
        names = {wire: name for name, wire in cls.wire_names.items()}
        given = {names.get(name, name): value for name, value in fields.items()}
        if any(name not in given and not hasattr(cls, name) for name in cls.__annotations__ if name != cls.spread):
            return UnknownEvent(cls.type, fields)
        rest = {name: given.pop(name) for name in list(given) if name not in cls.__annotations__}
        data = cls(**given, **({cls.spread: rest} if cls.spread else {}))
        if not cls.spread:
            vars(data).update(rest)
        return data


EVENTS: dict[str, type[EventData]] = {}


@dataclass_transform(frozen_default=True)
def event(
    name: str,
    *,
    kind: str = "",
    transient: bool = False,
    spread: str = "",
    wire: Mapping[str, str] | None = None,
    detailed: Sequence[str] = (),
    verbose: Sequence[str] = (),
) -> Callable[[type[Data]], type[Data]]:
    """Declare a type of event: its fields, and how it stands in journals and on wires.

    Args:
        name: of the type.
        kind: of its entries in journals; empty where these are called like the type.
        transient: whether it has no number, and no journal keeps it.
        spread: a field that holds a record; its members stand beside the other fields on the wire.
        wire: names on the wire of fields that are called otherwise.
        detailed: fields that are not shown in short, and that may be omitted where nobody keeps the events.
        verbose: fields that only those are shown who want everything.
    """

    def declare(declared: type[Data]) -> type[Data]:
        declared.type = name
        declared.journal_kind = kind or name
        declared.is_transient = transient
        declared.spread, declared.wire_names = spread, dict(wire or {})
        declared.hidden = {"brief": frozenset({*detailed, *verbose}), "detailed": frozenset(verbose)}
        EVENTS[name] = declared
        return declared

    return declare


def decode(type: str, fields: Mapping[str, Any]) -> EventData:
    """The record of a type with some fields from a journal or a wire."""
    declared = EVENTS.get(type)
    return UnknownEvent(type, fields) if declared is None else declared.of_fields(fields)


@dataclass
class UnknownEvent(EventData):
    """Something of a type that this version does not know, or with other fields."""

    type: str
    fields: Mapping[str, Any]

    @property
    def journal_kind(self) -> str:  # type: ignore[override]
        """Of the entry that it becomes in a journal."""
        declared = EVENTS.get(self.type)
        return self.type if declared is None else declared.journal_kind

    def as_data(self, detail: Detail = "verbose") -> dict[str, Any]:
        """All fields."""
        return dict(self.fields)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        seq: counts from 1 within the run; 0 where it is transient.
        ts: seconds since the epoch.
        run: id of the run.
        agent: name of the agent it concerns, empty for the run itself.
        data: what happened.
        path: where in the run it happened, from the outside in, such as `("Lead.start#1", "print#2")`.
        recalled: whether it had happened in an earlier part of the run, or in the run that is replayed.
    """

    seq: int
    ts: float
    run: str
    agent: str
    data: EventData
    path: tuple[str, ...] = ()
    recalled: bool = False
    _fields: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def type(self) -> str:
        """What happened, in the past tense."""
        return self.data.type

    @property
    def fields(self) -> dict[str, Any]:
        """What it holds, by the names on the wire; all consumers are given the same object."""
        if self._fields is None:
            object.__setattr__(self, "_fields", self.data.as_data())
        assert self._fields is not None
        return self._fields

    def as_data(self, detail: Detail = "verbose") -> dict[str, Any]:
        """The JSON form; transient events have neither number nor time."""
        when = {} if self.data.is_transient else {"seq": self.seq, "ts": self.ts}
        envelope = {
            "v": VERSION,
            **when,
            "run": self.run,
            "path": list(self.path),
            "agent": self.agent,
            "type": self.type,
        }
        if self.recalled:
            envelope["recalled"] = True
        return envelope | self.data.as_data(detail)

    @staticmethod
    def of_data(data: Mapping[str, Any]) -> Event:
        """The event in a JSON form."""
        fields = {name: value for name, value in data.items() if name not in ENVELOPE}
        when, record = (data.get("seq", 0), data.get("ts", 0.0)), decode(data["type"], fields)
        return Event(*when, data["run"], data["agent"], record, tuple(data["path"]), bool(data.get("recalled")))


# ---------------------------------------------------------------- runs


@event("run_started")
class RunStarted(EventData):
    """A run begins."""


@event("run_ended")
class RunEnded(EventData):
    """A run has ended; `code` is the kind of its failure, `origin` where the error was first told."""

    ok: bool
    interrupted: bool = OMITTED
    code: str = OMITTED
    origin: Sequence[str] = OMITTED


@event("resumed")
class RunResumed(EventData):
    """A run goes on, with further `words` of a command line, or with another version of its program."""

    words: Sequence[str] = OMITTED
    limits: Mapping[str, Any] = OMITTED
    version_hash: str = OMITTED


@event("consumer_dropped")
class ConsumerDropped(EventData):
    """A consumer of events has failed, and hears of no further ones."""

    consumer: str


@event("allowed")
class RuleAllowed(EventData):
    """The person has allowed something for always."""

    rule: str


# ---------------------------------------------------------------- the person


@event("printed")
class LinePrinted(EventData):
    """The program has shown something."""

    message: str


@event("asked")
class PersonAsked(EventData):
    """The person is asked something."""

    question: str
    options: Sequence[str]


@event("answered")
class PersonAnswered(EventData):
    """The person has answered."""

    question: str
    answer: str


@event("approval_requested")
class ApprovalRequested(EventData):
    """The person is asked to allow something; `chain` says who asked whom, the outermost first."""

    what: str
    detail: str
    id: str = OMITTED
    chain: Sequence[str] = OMITTED


@event("approval_given")
class ApprovalGiven(EventData):
    """The person has said whether something may be done: `yes`, `no` or `always`; `reason` says why not."""

    what: str
    answer: str
    id: str = OMITTED
    reason: str = OMITTED


# ---------------------------------------------------------------- handlers


@event("handler_started", detailed=["args"])
class HandlerStarted(EventData):
    """A handler begins; `narrowed_to` names the roles that its call is narrowed to."""

    event: str
    args: Any = OMITTED
    narrowed_to: Sequence[str] = OMITTED


@event("handler_ended", detailed=["result"])
class HandlerEnded(EventData):
    """A handler has given its result."""

    event: str
    result: Any = OMITTED


@event("handler_failed")
class HandlerFailed(EventData):
    """A handler has failed; `origin` is where its error was first told."""

    event: str
    error: str
    origin: Sequence[str]


@event("timed_out", spread="failure")
class TimedOut(EventData):
    """Something took longer than it may, and ends with an error."""

    failure: Mapping[str, Any]


@event("retry_started")
class RetryStarted(EventData):
    """An attempt has failed and another one follows after a pause: of a request to a `model`, or of a `handler`."""

    model: str = OMITTED
    handler: str = OMITTED
    attempt: int = 0
    tries: int = 0
    delay_s: float = 0.0
    error: str = ""


@event("retry_ended")
class RetryEnded(EventData):
    """It is known what came of the further attempts of a request."""

    model: str
    ok: bool
    attempt: int
    error: str = OMITTED


@event("round_started")
class RoundStarted(EventData):
    """A round of work that is improved begins."""

    round: int
    rounds: int


@event("round_ended")
class RoundEnded(EventData):
    """A round has ended: its score, null where it has none, whether each gate is green, and what was decided."""

    round: int
    rounds: int
    decision: str
    score: float | None
    gates: Mapping[str, bool]


@event("state_changed")
class StateChanged(EventData):
    """Fields of an agent's state have other values."""

    updates: Mapping[str, Any]


# ---------------------------------------------------------------- actions and effects


@event("action_started", kind="begun", detailed=["fields", "read_as"])
class ActionStarted(EventData):
    """An action that a model asks for begins; it is `unsafe` where it may not be done twice.

    `read_as` says how it was read where the model wrote it otherwise.
    """

    intent: str
    id: str
    fields: Mapping[str, Any] = OMITTED
    read_as: Sequence[str] = OMITTED
    unsafe: bool = OMITTED
    lasting: bool = OMITTED


@event("action_overridden", detailed=["result"])
class ActionOverridden(EventData):
    """A person at a debugger has decided about an action: other `fields`, to `skip` it, or its `result`."""

    intent: str
    decision: str
    result: Any = OMITTED
    tagged: bool = OMITTED
    opaque: str = OMITTED


@event("action_ended", kind="done", detailed=["result"])
class ActionEnded(EventData):
    """An action has given its result: as it is, `tagged`, or `opaque` where it cannot be kept."""

    intent: str
    result: Any = OMITTED
    tagged: bool = OMITTED
    opaque: str = OMITTED


@event("action_failed", kind="failed", spread="failure")
class ActionFailed(EventData):
    """An action has failed."""

    intent: str
    failure: Mapping[str, Any]


@event("effect_started", kind="begun", detailed=["fields"])
class EffectStarted(EventData):
    """Code does something outside of the program that may not be done twice, or takes a while."""

    intent: str
    fields: Mapping[str, Any]
    unsafe: bool = OMITTED
    lasting: bool = OMITTED


@event("effect_ended", kind="done", detailed=["fields", "result"])
class EffectEnded(EventData):
    """Something that code did outside has given a result, and perhaps `changed` what it was given, or `globals`."""

    intent: str
    fields: Mapping[str, Any]
    unsafe: bool = OMITTED
    lasting: bool = OMITTED
    result: Any = OMITTED
    tagged: bool = OMITTED
    opaque: str | bool = OMITTED
    changed: Mapping[str, Any] = OMITTED
    globals: Mapping[str, Any] = OMITTED
    lost_globals: bool = OMITTED


@event("effect_failed", kind="failed", spread="failure", detailed=["fields"])
class EffectFailed(EventData):
    """Something that code did outside has failed, and may have changed what it was given nevertheless."""

    intent: str
    fields: Mapping[str, Any]
    unsafe: bool = OMITTED
    lasting: bool = OMITTED
    failure: Mapping[str, Any] = OMITTED
    opaque: str | bool = OMITTED
    changed: Mapping[str, Any] = OMITTED
    globals: Mapping[str, Any] = OMITTED
    lost_globals: bool = OMITTED


@event("doubt_settled")
class DoubtSettled(EventData):
    """It was decided what becomes of an effect of which it is not known whether it took place."""

    intent: str
    why: str
    decision: str


@event("only_reads")
class ReadOnlyFound(EventData):
    """It has turned out that the action around only reads, so that it may be done twice."""

    mcp: str
    tool: str


# ---------------------------------------------------------------- files of the project


@event("file_kept")
class FileKept(EventData):
    """What is at a path of the project is kept, because an action is about to change it; null is nothing."""

    file: str
    before: Mapping[str, Any] | None


@event("file_changed")
class FileChanged(EventData):
    """An action has changed what is at a path of the project; the contents before and after it are kept.

    Attributes:
        beside: the run whose command was under way, too, and may have made the change; empty for none.
    """

    file: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    beside: str = ""


@event("tree_kept")
class TreeKept(EventData):
    """All files of the project are listed and kept, because a command may change them for at most so many seconds."""

    tree: str
    seconds: float


@event("tree_compared")
class TreeCompared(EventData):
    """The command has ended, and each of the files that it has changed was told."""

    tree: str
    files: int


@event("changes_not_kept")
class ChangesNotKept(EventData):
    """What actions change of files is not kept, and so cannot be put back; told once for each reason."""

    why: str


@event("file_restored")
class FileRestored(EventData):
    """What a run has changed at a path behind an entry was put back, or was as it had been before."""

    file: str
    entry: int
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


# ---------------------------------------------------------------- what code looks at


@event("observed")
class ValueObserved(EventData):
    """Code has looked at something outside of the program, such as the clock."""

    what: str
    value: Any


@event("fired")
class TimerFired(EventData):
    """A timer of the program fires."""


@event("mcp_progress")
class McpProgress(EventData):
    """An MCP server says how far a call of a tool is; `total` is null where it does not know."""

    mcp: str
    tool: str
    progress: float
    total: float | None
    message: str = OMITTED


# ---------------------------------------------------------------- models


@event("model_asked", verbose=["request", "after", "system", "messages"])
class ModelAsked(EventData):
    """A request to a model: a digest of it, and what is new behind the `kept` messages of the last, or of `after`."""

    model: str
    request: str = OMITTED
    after: str = OMITTED
    system: str = OMITTED
    kept: int = OMITTED
    messages: Sequence[Any] = OMITTED


@event("text_delta", transient=True, detailed=["text"])
class AnswerDelta(EventData):
    """A piece of the answer of a model arrives."""

    text: str


@event("thinking_delta", transient=True, detailed=["text"])
class ThoughtDelta(EventData):
    """A piece of what a model shows of its thoughts arrives; no action is read from it, and nothing keeps it."""

    text: str


@event("output_delta", transient=True, detailed=["text"])
class OutputDelta(EventData):
    """A piece of a text arrives that a model is writing for people; it counts when its action is carried out.

    Texts of an answer are numbered from 1. `action` is `print`, `prompt_user` or `return`, or `call_llm` where code has
    a model write, and `field` where the text stands in it.
    """

    action: str
    field: str
    number: int
    text: str


@event("partial_result", transient=True, detailed=["value"])
class PartialResult(EventData):
    """A result of a declared type grows: all of it that has arrived, of which texts may go on."""

    value: Any


@event("model_wrote", detailed=["text"])
class ModelWrote(EventData):
    """What has arrived of an answer since this was told last; an action of it is about to begin."""

    text: str


@event("model_answered", detailed=["text"])
class ModelAnswered(EventData):
    """An answer has ended: what it took, and why it ended; one that was `replayed` took nothing."""

    model: str
    tokens: Mapping[str, int]
    usd: float | None
    stop: str | None = OMITTED
    text: str = OMITTED
    estimated: bool = OMITTED
    replayed: bool = OMITTED


@event("answer_discarded")
class AnswerDiscarded(EventData):
    """An attempt to get an answer came to nothing, and took something nevertheless."""

    model: str
    tokens: Mapping[str, int]
    usd: float | None
    stop: str = OMITTED
    estimated: bool = OMITTED


@event("texts_embedded")
class TextsEmbedded(EventData):
    """Texts were ranked by a model for embeddings."""

    model: str
    tokens: Mapping[str, int]
    usd: float | None


# What tells of something paid: `tokens`, and `usd` where the price is known.
PaidData = ModelAnswered | AnswerDiscarded | TextsEmbedded
PAID = (ModelAnswered.type, AnswerDiscarded.type, TextsEmbedded.type)


@event("embedding_failed")
class EmbeddingFailed(EventData):
    """Texts could not be ranked by a model for embeddings."""

    model: str | None
    error: str
    help: str = OMITTED


@event("model_failed", spread="failure")
class ModelFailed(EventData):
    """A request was not answered, or not to the end."""

    failure: Mapping[str, Any]


@event("model_replaced")
class ModelReplaced(EventData):
    """A model could not answer, and the next one is asked."""

    model: str
    by: str
    error: str


@event("answer_cache_failed")
class AnswerCacheFailed(EventData):
    """The folder with earlier answers cannot be read or written; the model is asked."""

    folder: str
    error: str


# ---------------------------------------------------------------- hooks and extensions


@event("hook_decided", detailed=["result"])
class HookDecided(EventData):
    """Hooks have decided about an action, or about a request to a `model`: the decision, and what it holds."""

    intent: str
    decision: str
    reason: Any = OMITTED
    to: Any = OMITTED
    result: Any = OMITTED
    tagged: bool = OMITTED
    opaque: str = OMITTED


@event("hook_replaced", detailed=["result"])
class HookReplaced(EventData):
    """Hooks have replaced the result of an action."""

    intent: str
    result: Any = OMITTED
    tagged: bool = OMITTED
    opaque: str = OMITTED


@event("hook_failed")
class HookFailed(EventData):
    """A hook has raised, took too long, or said something that is no decision."""

    hook: str
    when: str
    intent: str
    error: str


@event("extension_state")
class ExtensionStateChanged(EventData):
    """What an extension remembers has changed, for the n-th time."""

    extension: str
    change: int
    state: Mapping[str, Any]


@event("command_started", detailed=["text"])
class CommandStarted(EventData):
    """A command goes on in the background, under a number that is that of its output, too."""

    command: int
    text: str = OMITTED


@event("command_ended")
class CommandEnded(EventData):
    """Nothing is left of such a command: it has `ended`, was `stopped`, or is `lost` with its process or sandbox."""

    command: int
    state: str
    exit_code: int = OMITTED


@event("phase_started")
class PhaseStarted(EventData):
    """An agent is in another phase from now on."""

    phase: str


# ---------------------------------------------------------------- playbooks


@event("paused")
class RunPaused(EventData):
    """Playbooks wait before their next request."""


@event("continued")
class RunContinued(EventData):
    """The pause is over."""


@event("queue_update")
class QueueChanged(EventData):
    """The messages that are queued for playbooks."""

    steering: Sequence[Mapping[str, Any]]
    follow_up: Sequence[Mapping[str, Any]]
    notices: Sequence[Mapping[str, Any]] = OMITTED
    messages: Sequence[Mapping[str, Any]] = OMITTED


@event("steered", wire={"sender": "from"}, detailed=["text"])
class MessageDelivered(EventData):
    """A playbook hears something while it works (`steer`, `notice`, `message`), or before its end (`follow_up`)."""

    id: int
    text: str
    mode: str
    to: str
    sender: str
    images: Sequence[Mapping[str, Any]] = OMITTED
    reply_to: int = OMITTED
    key: str = OMITTED


@event("compaction_requested")
class CompactionRequested(EventData):
    """A conversation is to be shortened before the next request."""

    instructions: str


@event("compacted", detailed=["summary"])
class ConversationCompacted(EventData):
    """A summary has taken the place of the older messages of a conversation."""

    lasting: bool
    reason: str
    summary: str
    kept: int
    tokens_before: int
    tokens_after: int
    fallback: str = OMITTED


# ---------------------------------------------------------------- sessions


@event("call_started", detailed=["args", "client_tools", "client_context", "client_state"])
class CallStarted(EventData):
    """A client of a session, or Python code, begins a call, with what the client offers for it."""

    call: str
    name: str
    args: Any = OMITTED
    client_tools: Any = OMITTED
    client_context: Any = OMITTED
    client_state: Any = OMITTED


@event("call_ended", detailed=["result"])
class CallEnded(EventData):
    """Such a call has ended: with a result, because it was `aborted`, or with an error, whose kind is `code`."""

    call: str
    name: str
    ok: bool
    result: Any = OMITTED
    aborted: bool = OMITTED
    timed_out: bool = OMITTED
    code: str = OMITTED
    error: str = OMITTED
    help: str = OMITTED
    report: str = OMITTED


@event("model_changed")
class ModelChanged(EventData):
    """A client of a session has chosen a model."""

    model: str | None


@event("effort_changed")
class EffortChanged(EventData):
    """A client of a session has chosen how much models think; empty leaves it to the program and the settings."""

    effort: str


@event("plan_mode_changed")
class PlanModeChanged(EventData):
    """From now on agents only look and plan, or they work again."""

    on: bool


@event("plan_decided")
class PlanDecided(EventData):
    """The person has `accepted` or `refused` a plan, or nobody was there and it was only `shown`.

    Its steps are those that the person has accepted; `tasks` are ids in `std/tasks`.
    """

    answer: str
    steps: Sequence[str]
    tasks: Sequence[str] = OMITTED
    words: str = OMITTED


@event("plan_step_finished")
class PlanStepFinished(EventData):
    """A step of the accepted plan is done; `step` counts from 1."""

    step: int
    steps: int
    text: str


@event("session_named")
class SessionNamed(EventData):
    """A client has given its session a name."""

    name: str


@event("compaction_asked")
class CompactionAsked(EventData):
    """A client wants the memory of an agent shortened."""

    instructions: str


# ---------------------------------------------------------------- evals


@event("expectation_missed")
class ExpectationMissed(EventData):
    """An `expect` of an eval does not hold for the current case, which goes on."""

    message: str
    details: Sequence[str]


@event("score_given")
class ScoreGiven(EventData):
    """A case of an eval is given a score."""

    name: str
    value: float
