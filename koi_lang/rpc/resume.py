"""Commands that resume recorded runs."""

from __future__ import annotations

from typing import Any

from koi_lang.errors import KoiError, UntrustedJournalError
from koi_lang.rpc.commands import command
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.session import Session


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
        open_run = session.served.reopen(id, at, trusted)
    except UntrustedJournalError as error:
        help = "Look at it first; if you trust it, send `trust`: true."
        raise SessionError("session_not_trusted", error.message, help=help) from error
    except KoiError as error:
        raise SessionError("session_not_found", error.message, help=error.help) from error
    await session.renew(open_run)
    call = None if session.current_call is None else session.current_call.id
    return {
        "session_id": session.run.id,
        "name": session.named,
        "calls": session.statistics.counts["calls"],
        "call": call,
    }
