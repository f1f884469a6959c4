"""Commands to a session: steer its call, pause it, end it, answer its requests, and change how it goes on."""

from __future__ import annotations

from dataclasses import asdict
from inspect import isawaitable
from typing import Any, Literal, TypeAlias

from koi_lang.diagnostics import suggestion
from koi_lang.errors import KoiError
from koi_lang.events import EffortChanged, ModelChanged, SessionNamed
from koi_lang.rpc.commands import command
from koi_lang.runtime.playbook.steering import PERSON
from koi_lang.runtime.run import Run
from koi_lang.sessions.calls import agent_named, compact_memory, message_with_images, say
from koi_lang.sessions.client_host import APPROVAL, QUESTION
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.session import GRACE_S, Session
from koi_lang.settings.efforts import AUTO

# ---------------------------------------------------------------- talking


@command()
async def steer(
    session: Session, message: str, agent: str = "", from_: str = PERSON, images: list[Any] | None = None
) -> Any:
    """Queue a message before the model's next request; for an agent, or for one without delegated work."""
    return say(session, message_with_images(message, images), "steer", agent, from_)


@command()
async def follow_up(
    session: Session, message: str, agent: str = "", from_: str = PERSON, images: list[Any] | None = None
) -> Any:
    """Say something that is heard when the playbook would end; it then goes on."""
    return say(session, message_with_images(message, images), "follow_up", agent, from_)


@command()
async def send_to(session: Session, agent: str, text: str, from_: str = PERSON) -> Any:
    """Say something to an agent, also to one that was delegated its work; one that is idle hears it when it works."""
    return say(session, text, "steer", agent, from_)


@command()
async def take_back(session: Session, note: int | None = None) -> Any:
    """Take a message out of the queues, or all of them."""
    taken = session.run.steering.take_back(note)
    if note is not None and not taken:
        raise SessionError("unknown_request", f"no message {note} is queued", help="`get_state` lists what is queued.")
    return {"taken": [each.as_data() for each in taken]}


@command()
async def set_steering_mode(session: Session, mode: Literal["one", "all"]) -> None:
    """Whether one message that steers is delivered at a time, or all of them."""
    session.run.steering.modes["steer"] = mode


@command()
async def set_follow_up_mode(session: Session, mode: Literal["one", "all"]) -> None:
    """Whether one follow-up is delivered at a time, or all of them."""
    session.run.steering.modes["follow_up"] = mode


# ---------------------------------------------------------------- holding and ending


@command()
async def pause(session: Session) -> Any:
    """Have the next request to a model wait until `continue`."""
    return {"paused": session.run.steering.pause()}


@command()
async def abort(session: Session) -> Any:
    """End the call that is under way, with everything it started; gives the messages it will not hear any more."""
    was_busy = session.current_call is not None or session.take_interrupted()
    taken = await session.abort()
    return {"aborted": was_busy, "queued": [note.as_data() for note in taken]}


@command(idle=True)
async def new_session(session: Session) -> Any:
    """End the run and begin another one, in which agents remember nothing."""
    await session.renew()
    return {"session_id": session.run.id}


@command(holds=False)
async def quit(session: Session) -> Any:
    """End the session: its work has five seconds, then it is cancelled."""
    return {"cancelled": not await session.finish(GRACE_S)}


# ---------------------------------------------------------------- answering


@command()
async def approve(session: Session, request: str, decision: Literal["yes", "always", "no"], reason: str = "") -> None:
    """Allow an `approval_request`, once or always, or deny it; models get the `reason` of a denial."""
    session.client.settle(request, APPROVAL, decision, reason)


@command()
async def answer(session: Session, request: str, answer: str | None = None, cancelled: bool = False) -> None:
    """Answer a `question`; `cancelled` says that nobody does."""
    if answer is None and not cancelled:
        raise SessionError(
            "invalid_request", "`answer`: there is no answer", help="Send `answer`, or `cancelled`: true."
        )
    session.client.settle(request, QUESTION, None if cancelled else answer)


# ---------------------------------------------------------------- how it goes on


ThinkingLevel: TypeAlias = Literal["auto", "none", "low", "medium", "high"]


@command(idle=True)
async def set_model(session: Session, model: str) -> Any:
    """Use another model, `provider/model`, for everything from now on."""
    try:
        await session.choice.change(model)
    except KoiError as error:
        raise SessionError("model_unavailable", error.message, help=error.help) from error
    await session.run.models.forget()
    session.emit(ModelChanged(model))
    return {"model": session.choice.name()}


@command(idle=True)
async def set_thinking_level(session: Session, level: ThinkingLevel) -> Any:
    """Have models think so much from now on; `auto` leaves it to the program and the settings."""
    effort = "" if level == AUTO else level
    session.choice.change_effort(effort)
    await session.run.models.forget()
    session.emit(EffortChanged(effort))
    return {"level": level}


@command(idle=True)
async def set_plan_mode(session: Session, on: bool) -> Any:
    """Have agents only look, think and ask until a plan is accepted, or end that."""
    session.set_plan_mode(on)
    return {"on": session.run.planning.is_on}


@command(idle=True, aside=True)
async def compact(session: Session, instructions: str = "", agent: str = "") -> Any:
    """Shorten the memory of an agent, by default of the last called one; `instructions` say what to keep."""
    named = agent_named(session, agent) if agent else session.last[0] if session.last else None
    if named is None:
        raise SessionError("compaction_failed", "nothing was said yet, so there is nothing to shorten")
    try:
        done = await compact_memory(session, named, instructions)
    except KoiError as error:
        raise SessionError("compaction_failed", error.message, help=error.help) from error
    return {"compacted": True, **asdict(done)}


@command(idle=True, aside=True)
async def extension_command(session: Session, name: str, args: dict[str, Any] | None = None) -> Any:
    """Carry out a command that an extension adds."""
    function = session.commands.get(name)
    if function is None:
        help = suggestion(name, list(session.commands), "extension command") if session.commands else None
        raise SessionError("extension_command_not_handled", f"no extension has a command `{name}`", help=help)

    async def work(run: Run) -> Any:
        given = function(args or {})
        return await given if isawaitable(given) else given

    return {"result": await session.within(work)}


@command(idle=True)
async def set_session_name(session: Session, name: str) -> Any:
    """Give the session a name."""
    session.named = name.strip()
    session.emit(SessionNamed(session.named))
    return {"name": session.named}
