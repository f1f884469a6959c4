"""Commands that begin a call, or go on with a recorded run."""

from __future__ import annotations

from typing import Any, Literal

from koi_lang.errors import KoiError, UntrustedJournalError
from koi_lang.rpc.commands import command
from koi_lang.sessions.calls import begin_checked, begin_main, begin_message, begin_named, message_with_images, say
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.session import Session


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
    return _begun(begin_message(session, said, name))


@command(idle=True)
async def run_playbook(session: Session, name: str, args: Any = None) -> Any:
    """Call a handler, `Agent.event`, with some arguments."""
    return _begun(begin_named(session, name, args))


@command(idle=True)
async def run(session: Session) -> Any:
    """Carry out the `run` statements of the program."""
    return _begun(begin_main(session))


@command("continue", waits=True)
async def continue_(session: Session) -> Any:
    """End a pause; or, if messages are queued, call the last handler again, which hears them."""
    if session.run.steering.go_on():
        return {"continued": True}
    session.require_idle()
    if session.last is None or not session.run.steering.pending_messages():
        help = "Queue a message with `steer` or `follow_up` first, or begin with `prompt`."
        raise SessionError("nothing_to_continue", "nothing is paused and no message is queued", help=help)
    return _begun(begin_checked(session, *session.last))


def _begun(call: HeldCall) -> dict[str, Any]:
    return {"call": call.id, "name": call.name}


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
