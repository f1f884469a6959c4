"""Commands during a call: steer it, pause it, end it, answer its requests."""

from __future__ import annotations

from typing import Any, Literal

from koi_lang.rpc.commands import command
from koi_lang.runtime.playbook.steering import PERSON
from koi_lang.sessions.calls import message_with_images, say
from koi_lang.sessions.client_host import APPROVAL, QUESTION
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.session import GRACE_S, Session

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
