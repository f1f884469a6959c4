"""Calls and controls of a session by its clients, and the names in messages: agents, handlers, queues of texts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from koi_lang.diagnostics import suggestion
from koi_lang.events import CompactionAsked
from koi_lang.llm.images import BadImageError, Image, require_few
from koi_lang.llm.messages import Message, message_of
from koi_lang.program.declarations import prompts_of
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.host import Approval
from koi_lang.runtime.journal.calls import MAIN
from koi_lang.runtime.playbook.compaction import request_compaction
from koi_lang.runtime.playbook.conversation import Compacted
from koi_lang.runtime.playbook.steering import PERSON, How
from koi_lang.runtime.schema import is_plainly_fitting, problems, signature_text, type_text
from koi_lang.sessions.client_host import APPROVAL, QUESTION
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.message_targets import MessageTarget, MessageTargetError, find_target, target_of
from koi_lang.sessions.session import Session

# What the names of calls begin with that render prompts.
PROMPT = "prompt"
# Of an image, as clients send it, and as programs and journals have it.
FIELDS = frozenset({"media_type", "mediaType", "data", "type", "mimeType"})
P = ParamSpec("P")
T = TypeVar("T")
# A function that does something to a session for a client; each is a command of `koi rpc`, too.
Control: TypeAlias = Callable[Concatenate[Session, P], Awaitable[T]]


def begin_main(session: Session) -> HeldCall:
    """Start the `run` statements of the program. Raises SessionError when there are none."""
    main = getattr(session.ready.module, "main", None)
    if main is None:
        help = "Use `run_playbook`; `list_agents` says what there is."
        raise SessionError("invalid_request", "the program runs nothing by itself", help=help)
    return session.begin(MAIN, lambda run: main())


def begin_named(session: Session, name: str, payload: Any = None, id: str = "") -> HeldCall:
    """Begin a call of a public handler, `Agent.event`; without a payload it is an empty object. Raises SessionError."""
    return begin_checked(session, *handler_named(session, name), {} if payload is None else payload, id)


def begin_message(session: Session, said: Message, name: str = "", id: str = "") -> HeldCall:
    """Begin the call of the handler that a message is for; see `handler_for_message`. Raises SessionError."""
    session.require_idle()
    return begin_checked(session, *handler_for_message(session, name, said), id)


def begin_checked(session: Session, agent: type[Agent], event: str, payload: Any, id: str = "") -> HeldCall:
    """Begin a call of a handler whose type the payload fits. Raises SessionError."""
    schema = agent.about.handlers[event].schema
    wrong = [] if not schema or is_plainly_fitting(payload, schema) else list(problems(payload, schema))
    if wrong:
        help = f"It takes ({signature_text(schema) or type_text(schema)})."
        raise SessionError("invalid_request", f"`{agent.about.name}.{event}`: {'; '.join(wrong)}", help=help)
    return session.begin_handler(agent, event, payload, id)


def begin_prompt(session: Session, name: str, arguments: Sequence[str]) -> HeldCall:
    """Start rendering a prompt of the program. Raises SessionError when there is none of that name."""
    prompts = {prompt.name: prompt for prompt in reversed(prompts_of(session.ready.module))}
    if name not in prompts:
        help = suggestion(name, list(prompts), "prompt")
        raise SessionError("invalid_request", f"there is no prompt `{name}`", help=help)
    return session.begin(f"{PROMPT} {name}", lambda run: prompts[name].text_in(run, *arguments), args=list(arguments))


async def compact_memory(session: Session, agent: type[Agent], instructions: str) -> Compacted:
    """Shorten the memory of an agent, which is told first. Raises KoiError."""
    session.emit(CompactionAsked(instructions), agent.about.name)
    done: Compacted = await session.within(lambda run: request_compaction(run.agent(agent), instructions))
    return done


# ---------------------------------------------------------------- controls


async def steer(
    session: Session, message: str, agent: str = "", from_: str = PERSON, images: list[Any] | None = None
) -> Any:
    """Queue a message before the model's next request; for an agent, or for one without delegated work."""
    return say(session, message_with_images(message, images), "steer", agent, from_)


async def pause(session: Session) -> Any:
    """Have the next request to a model wait until `continue`."""
    return {"paused": session.run.steering.pause()}


async def continue_(session: Session) -> Any:
    """End a pause; or, if messages are queued, call the last handler again, which hears them."""
    if session.run.steering.go_on():
        return {"continued": True}
    session.require_idle()
    if session.last is None or not session.run.steering.pending_messages():
        help = "Queue a message with `steer` or `follow_up` first, or begin with `prompt`."
        raise SessionError("nothing_to_continue", "nothing is paused and no message is queued", help=help)
    return begin_checked(session, *session.last).as_data()


async def abort(session: Session) -> Any:
    """End the call that is under way, with everything it started; gives the messages it will not hear any more."""
    was_busy = session.current_call is not None or session.take_interrupted()
    taken = await session.abort()
    return {"aborted": was_busy, "queued": [note.as_data() for note in taken]}


async def approve(session: Session, request: str, decision: Approval, reason: str = "") -> None:
    """Allow an `approval_request`, once or always, or deny it; models get the `reason` of a denial."""
    session.client.settle(request, APPROVAL, decision, reason)


async def answer(session: Session, request: str, answer: str | None = None, cancelled: bool = False) -> None:
    """Answer a `question`; `cancelled` says that nobody does."""
    if answer is None and not cancelled:
        raise SessionError(
            "invalid_request", "`answer`: there is no answer", help="Send `answer`, or `cancelled`: true."
        )
    session.client.settle(request, QUESTION, None if cancelled else answer)


# ---------------------------------------------------------------- names in messages


def handler_named(session: Session, name: str, *, is_private: bool = False) -> tuple[type[Agent], str]:
    """The handler of a name. Raises SessionError.

    Args:
        is_private: whether it may be a private one, which clients cannot call by its name.
    """
    first, _, event = name.partition(".")
    agent = agent_named(session, first)
    events = [handler.event for handler in agent.about.handlers.values() if is_private or not handler.private]
    if event not in events:
        help = suggestion(event, events, "handler")
        raise SessionError("unknown_handler", f"`{first}` has no handler for `{event}`", help=help)
    return agent, event


def agent_named(session: Session, name: str) -> type[Agent]:
    """An agent of the program. Raises SessionError."""
    agents = {agent.about.name: agent for agent in session.ready.agents}
    if name not in agents:
        help = suggestion(name, list(agents), "agent")
        raise SessionError("unknown_agent", f"there is no agent `{name}`", help=help)
    return agents[name]


def handler_for_message(session: Session, name: str, said: Message) -> tuple[type[Agent], str, Any]:
    """The handler for a message, and its payload.

    Without a name it is the handler that was called last, if it takes messages, else the one that the program decides.

    Raises:
        SessionError: there is none, or it takes no such message.
    """
    agents = session.ready.agents
    try:
        target = (None if name else _last_target(session)) or find_target(agents, name)
        payload = target.payload(said.text, said.images)
    except MessageTargetError as error:
        raise SessionError(error.code, error.message, help=error.help) from error
    return agent_named(session, target.agent), target.event, payload


def _last_target(session: Session) -> MessageTarget | None:
    """The handler that was called last; None where there is none, or it takes no messages."""
    if session.last is None:
        return None
    agent, event = session.last[:2]
    return target_of(agent.about.name, agent.about.handlers[event])


def say(session: Session, said: str | Message, how: How, to: str = "", sender: str = PERSON) -> dict[str, Any]:
    """Queue a message for an agent; the result is empty for one without delegated work. Raises SessionError."""
    if to:
        agent_named(session, to)
    message = message_of(said)
    if not message.text.strip() and not message.images:
        raise SessionError("invalid_request", "there is nothing to say in an empty message")
    note = session.run.steering.say(message, how, to=to, sender=sender or PERSON)
    return {"note": note.id, "queued": len(session.run.steering.pending_messages())}


def message_with_images(text: str, images: list[Any] | None) -> Message:
    """A message with the images that came with it, each `{"data": base64}`. Raises SessionError."""
    named = [(f"image {number}", given) for number, given in enumerate(images or (), 1)]
    for name, given in named:
        if not isinstance(given, dict) or not isinstance(given.get("data"), str) or not given.keys() <= FIELDS:
            help = 'Send {"media_type": "image/png", "data": "…"} with the bytes in base64.'
            raise SessionError("bad_image", f"{name} is not an object with `media_type` and `data`", help=help)
    try:
        found = tuple(Image.from_base64(given["data"], name) for name, given in named)
        require_few(found)
    except BadImageError as error:
        raise SessionError("bad_image", error.message, help=error.help) from error
    return Message("user", text, found)
