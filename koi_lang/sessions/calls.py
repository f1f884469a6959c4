"""Calls that clients make of a session, and that are made again when a recorded one goes on."""

from __future__ import annotations

from collections.abc import Sequence

from koi_lang.diagnostics import suggestion
from koi_lang.events import CompactionAsked
from koi_lang.program.declarations import prompts_of
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.journal.calls import MAIN
from koi_lang.runtime.playbook.compaction import request_compaction
from koi_lang.runtime.playbook.conversation import Compacted
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.session import Session

# What the names of calls begin with that render prompts.
PROMPT = "prompt"


def begin_main(session: Session) -> HeldCall:
    """Start what the program runs by itself. Raises SessionError when that is nothing."""
    main = getattr(session.served.module, "main", None)
    if main is None:
        help = "Use `run_playbook`; `list_agents` says what there is."
        raise SessionError("invalid_request", "the program runs nothing by itself", help=help)
    return session.begin(MAIN, lambda run: main())


def begin_prompt(session: Session, name: str, arguments: Sequence[str]) -> HeldCall:
    """Start rendering a prompt of the program. Raises SessionError when there is none of that name."""
    prompts = {prompt.name: prompt for prompt in reversed(prompts_of(session.served.module))}
    if name not in prompts:
        help = suggestion(name, list(prompts), "prompt")
        raise SessionError("invalid_request", f"there is no prompt `{name}`", help=help)
    return session.begin(f"{PROMPT} {name}", lambda run: prompts[name].text_in(run, *arguments), args=list(arguments))


async def compact_memory(session: Session, agent: type[Agent], instructions: str) -> Compacted:
    """Shorten the memory of an agent, which is told first. Raises KoiError."""
    session.emit(CompactionAsked(instructions), agent.about.name)
    done: Compacted = await session.within(lambda run: request_compaction(run.agent(agent), instructions))
    return done
