"""Commands to a session: begin, steer, pause and end its calls, answer its requests, and change how it goes on."""

from __future__ import annotations

from dataclasses import asdict
from inspect import isawaitable
from typing import Any, Literal, TypeAlias

from koi_lang.diagnostics import suggestion
from koi_lang.errors import KoiError, UntrustedJournalError
from koi_lang.events import EffortChanged, ModelChanged, SessionNamed
from koi_lang.rpc.commands import command
from koi_lang.runtime.playbook.steering import PERSON
from koi_lang.runtime.run import Run
from koi_lang.sessions import calls
from koi_lang.sessions.calls import (
    agent_named,
    begin_main,
    begin_message,
    begin_named,
    compact_memory,
    message_with_images,
    say,
)
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.session import GRACE_S, Session
from koi_lang.settings.efforts import AUTO

# ---------------------------------------------------------------- beginning calls


@command(waits=True)
async def prompt(
    session: Session,
    message: str,
    name: str = "",
    streaming_behavior: Literal["steer", "follow_up", ""] = "",
    images: list[Any] | None = None,
) -> Any:
    """Give a message to a handler, `Agent.event`, an agent or `.event`, as the text that it takes, else `args.message`.

    Without a name it goes to the handler that was called last, else to that of `koi chat`. Images, each
    `{"media_type", "data"}` with the bytes in base64, are shown to its model, and are `args.images`.
    """
    said = message_with_images(message, images)
    if session.current_call is not None and streaming_behavior:
        return say(session, said, streaming_behavior)
    return begin_message(session, said, name).as_data()


@command(idle=True)
async def run_playbook(session: Session, name: str, args: Any = None) -> Any:
    """Call a handler, `Agent.event`, with some arguments."""
    return begin_named(session, name, args).as_data()


@command(idle=True)
async def run(session: Session) -> Any:
    """Carry out the `run` statements of the program."""
    return begin_main(session).as_data()


command("continue", waits=True)(calls.continue_)


# ---------------------------------------------------------------- talking


command()(calls.steer)


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


command()(calls.pause)
command()(calls.abort)


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


command()(calls.approve)
command()(calls.answer)

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


# ---------------------------------------------------------------- earlier sessions


@command(idle=True)
async def resume_session(session: Session, session_: str, trust: bool = False) -> Any:
    """Go on with a recorded session, by its id or the beginning of one; a call that was interrupted goes on, too.

    With `trust` it may be one that this machine has not signed.
    """
    return await _reopen_session(session, session_, None, trusted=trust)


@command(idle=True)
async def branch(session: Session, entry: int, session_: str = "", trust: bool = False) -> Any:
    """Go back to an entry of this session, or of another one, and go on in a journal of its own."""
    if not session_ and session.journal is None:
        raise SessionError("no_journal", "the session is not recorded", help="Start it without `--no-record`.")
    return await _reopen_session(session, session_ or session.run.id, entry, trusted=trust)


async def _reopen_session(session: Session, id: str, at: int | None, *, trusted: bool) -> dict[str, Any]:
    try:
        going = session.read_recorded(id, at, trusted)
    except UntrustedJournalError as error:
        help = "Look at it first; if you trust it, send `trust`: true."
        raise SessionError("session_not_trusted", error.message, help=help) from error
    except KoiError as error:
        raise SessionError("session_not_found", error.message, help=error.help) from error
    await session.renew(going)
    call = None if session.current_call is None else session.current_call.id
    return {
        "session_id": session.run.id,
        "name": session.named,
        "calls": session.statistics.counts["calls"],
        "call": call,
    }
