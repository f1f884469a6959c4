"""Commands that change how a session goes on."""

from __future__ import annotations

from dataclasses import asdict
from inspect import isawaitable
from typing import Any, Literal, TypeAlias

from koi_lang.diagnostics import suggestion
from koi_lang.errors import KoiError
from koi_lang.events import EffortChanged, ModelChanged, SessionNamed
from koi_lang.rpc.commands import command
from koi_lang.runtime.run import Run
from koi_lang.sessions.calls import agent_named, compact_memory
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.session import Session
from koi_lang.settings.efforts import AUTO

ThinkingLevel: TypeAlias = Literal["auto", "none", "low", "medium", "high"]


@command(idle=True)
async def set_model(session: Session, model: str) -> Any:
    """Use another model, `provider/model`, for everything from now on."""
    try:
        await session.served.choice.change(model)
    except KoiError as error:
        raise SessionError("model_unavailable", error.message, help=error.help) from error
    await session.run.models.forget()
    session.emit(ModelChanged(model))
    return {"model": session.served.choice.name()}


@command(idle=True)
async def set_thinking_level(session: Session, level: ThinkingLevel) -> Any:
    """Have models think so much from now on; `auto` leaves it to the program and the settings."""
    effort = "" if level == AUTO else level
    session.served.choice.change_effort(effort)
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
