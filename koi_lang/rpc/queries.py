"""Read-only commands: agents, state, conversations, records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from koi_lang.llm.messages import Message
from koi_lang.program.declarations import agent_fields
from koi_lang.rpc.commands import all_commands, command
from koi_lang.runtime.journal.reader import lines
from koi_lang.runtime.journal.store import family_of
from koi_lang.runtime.schema import signature_text
from koi_lang.sessions.calls import agent_named
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.session import Session
from koi_lang.settings.efforts import AUTO

MAX_ENTRIES = 1000

# ---------------------------------------------------------------- what there is


@command()
async def list_agents(session: Session) -> Any:
    """The agents of the program with their handlers."""
    working = {work.agent for work in session.run.steering.at_work}
    agents = session.ready.agents
    return {"agents": [{**agent_fields(each), "working": each.about.name in working} for each in agents]}


@command()
async def get_commands(session: Session) -> Any:
    """The available commands: handlers for `run_playbook`, and the commands of this protocol."""
    handlers = [
        {
            "name": f"{agent.about.name}.{handler.event}",
            "description": handler.affordance or agent.about.affordance,
            "source": "program",
            "takes": signature_text(handler.schema) if handler.schema else "",
        }
        for agent in session.ready.agents
        for handler in agent.about.handlers.values()
        if not handler.private
    ]
    return {"commands": handlers, "protocol": [each.as_data() for each in all_commands()]}


@command(holds=False)
async def get_available_models(session: Session, refresh: bool = False) -> Any:
    """The models of all providers that are connected; lists are kept for a day."""
    return {"models": await session.choice.available(refresh)}


# ---------------------------------------------------------------- what goes on


@command()
async def get_state(session: Session) -> Any:
    """The state: the current call, working agents, queues, open requests."""
    run, call = session.run, session.current_call
    steering = run.steering
    works = [{"agent": work.agent, "event": work.event, "delegated": work.delegated} for work in steering.at_work]
    return {
        "session_id": run.id,
        "session_name": session.named,
        "busy": call is not None,
        "call": None if call is None else call.as_data(),
        "at_work": works,
        "paused": steering.is_paused,
        "held": list(steering.held),
        "steering_mode": steering.modes["steer"],
        "follow_up_mode": steering.modes["follow_up"],
        "queued": [note.as_data() for note in steering.pending_messages()],
        "requests": session.client.requests,
        "model": session.choice.name(),
        "thinking_level": session.choice.effort() or AUTO,
    }


@command()
async def get_session_stats(session: Session) -> Any:
    """The activity of the session, and its usage."""
    return session.statistics.as_data()


@command()
async def session_info(session: Session) -> Any:
    """The session: its id and name, its program, its model, its journal."""
    journal = session.journal
    count = 0 if journal is None else sum(line.entry is not None for line in lines(journal))
    return {
        "session_id": session.run.id,
        "name": session.named,
        "program": str(session.ready.module.__file__),
        "model": session.choice.name(),
        "thinking_level": session.choice.effort() or AUTO,
        "journal": None if journal is None else str(journal),
        "entry_count": count,
        "last_handler": None if session.last is None else f"{session.last[0].about.name}.{session.last[1]}",
    }


# ---------------------------------------------------------------- what was said


@command()
async def get_messages(session: Session, agent: str = "") -> Any:
    """The conversation of an agent, as its model knows it; without a name that of the call that was made last."""
    name, messages = _conversation(session, agent)
    return {"agent": name, "messages": [_message(message) for message in messages]}


@command()
async def get_last_assistant_text(session: Session, agent: str = "") -> Any:
    """The last answer of an agent's model; null before the first."""
    name, messages = _conversation(session, agent)
    answers = (message.text for message in reversed(messages) if message.role == "assistant")
    return {"agent": name, "text": next(answers, None)}


def _message(message: Message) -> dict[str, Any]:
    images = [{"media_type": image.media_type, "bytes": image.size} for image in message.images]
    return {"role": message.role, "text": message.text, **({"images": images} if images else {})}


def _conversation(session: Session, agent: str) -> tuple[str, Sequence[Any]]:
    """An agent and its conversation: of the current call, else its memory. Raises SessionError."""
    works = [work for work in session.run.steering.at_work if work.agent == agent or not agent]
    if works:
        return works[0].agent, works[0].messages
    if agent:
        return agent, session.run.agent(agent_named(session, agent)).memory
    return ("", ()) if session.last is None else _conversation(session, session.last[0].about.name)


# ---------------------------------------------------------------- what was recorded


@command()
async def get_entries(session: Session, since: int = 0, limit: int = MAX_ENTRIES) -> Any:
    """Entries of the journal behind the one with the number `since`, at most `limit`; `last` is where to go on."""
    if limit < 1:
        raise SessionError("invalid_request", "`limit` must be more than 0")
    behind = (line.entry for line in lines(_journal(session)) if line.entry is not None and line.entry.n > since)
    entries = list(islice(behind, limit + 1))
    shown = entries[:limit]
    last = shown[-1].n if shown else since
    return {"entries": [entry.as_data() for entry in shown], "last": last, "more": len(entries) > limit}


@command()
async def get_tree(session: Session) -> Any:
    """The runs that this session goes on from or that go on from it, each with the run and entry it branches off."""
    return {"current": session.run.id, "runs": family_of(_journal(session), session.run.id)}


def _journal(session: Session) -> Path:
    if session.journal is None:
        raise SessionError("no_journal", "the session is not recorded", help="Start it without `--no-record`.")
    return session.journal
