"""A message to an agent that is a process, `acp://COMMAND`, under the rules of the run that asks it."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from koi_lang.agent_address import CommandAddress
from koi_lang.errors import AgentError
from koi_lang.events import ModelAnswered
from koi_lang.runtime.acp import client
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import current_spending
from koi_lang.runtime.budget.payment import Payment
from koi_lang.runtime.guards import commands, file_access
from koi_lang.runtime.guards.permissions import Permission
from koi_lang.runtime.guards.policy import Access
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.runtime.host import ApprovalRequest
from koi_lang.runtime.mcp.safe_text import clip_text
from koi_lang.runtime.narrowing import bounds
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.replay.location import leaf_path

# Label of the event with the cost of a turn.
PAID = "acp"
# The permission that a role needs for each kind of tool call, and those that change nothing.
NEEDS = {"edit": "write", "delete": "write", "move": "write", "execute": "execute", "fetch": "web_access"}
LOOKING = ("read", "search", "think")
# How long a turn may take, for finding out what it has changed.
MAX_TURN_S = 24 * 3600.0
MAX_TITLE_CHARS = 300


async def ask_process(this: Agent, address: CommandAddress, text: Any) -> str:
    """What an agent says to a message, once somebody allows it to be started. Raises AgentError."""
    if not isinstance(text, str) or not text.strip():
        raise AgentError(f"`{address.text}` is asked nothing", help='Send `{ message: "…" }`, or a text.')
    command, folder = " ".join(address.words), this.run.folder
    place = commands.place_of(None, folder)
    request = ApprovalRequest(f"start the agent `{command}`, outside of the sandbox", text, agent=this.name)
    help = f'`--allow "run:{command}"` allows it beforehand.'
    permission = commands.CommandPermission(command, place)
    start = Access(
        f"`{command}`", request, permission, bounds=bounds(), needs="execute", changes=True, done="run", help=help
    )

    async def decide(call: dict[str, Any]) -> bool:
        try:
            for access in _accesses(call, address, this):
                await this.run.policy.require(access)
        except AgentError:  # of which a refusal is one
            return False
        return True

    async def carry_out() -> dict[str, Any]:
        # Within the effect, so that a run that goes on asks nobody again.
        await this.run.policy.require(start)
        async with this.run.changes.watch(MAX_TURN_S, this.name):
            return (await client.ask_agent(address.name, address.words, folder, text, decide)).as_data()

    effect = Effect("acp.ask", {"address": address.text, "message": text}, agent=this.name, slow=True)
    spending = current_spending() or this.run.spending
    with Payment(this.run, this.name, spending) as payment:
        await payment.reserve(None)
        turn = await this.run.recorder.perform_as_step(effect, carry_out)
        path, tokens = leaf_path(PAID), {"input": 0, "output": 0, "cached": 0}
        payment.count(ModelAnswered.type, path, 0, turn["usd"])
        this.run.events.emit(ModelAnswered(address.text, tokens, turn["usd"], stop=turn["stop"]), this.name, path=path)
    if turn["stop"] != "end_turn":
        words = f": {turn['text']}" if turn["text"] else ""
        raise AgentError(f"`{address.text}` has not done its work, but ended with `{turn['stop']}`{words}")
    return str(turn["text"])


def _accesses(call: dict[str, Any], address: CommandAddress, this: Agent) -> Iterator[Access]:
    """What a tool call comes to, for the policy: a command, files, a page, or what the person alone can judge.

    Raises:
        PermissionDeniedError: it names something that is closed to agents, or lies outside of the project.
        AgentError: it names something that is no path.
    """
    kind, root = str(call.get("kind") or "other"), this.run.folder
    title = clip_text(str(call.get("title") or "something that it does not name"), MAX_TITLE_CHARS)
    bare = Access(bounds=bounds(), needs=NEEDS.get(kind), changes=kind not in LOOKING)
    arguments = call["rawInput"] if isinstance(call.get("rawInput"), dict) else {}
    wanted: list[tuple[Permission | None, str]] = []
    command = arguments.get("command")
    if isinstance(command, list):
        command = shlex.join(map(str, command))
    if kind == "execute" and isinstance(command, str):
        place = commands.place_of(None, root)
        commands.require_open_arguments(command, place)
        wanted.append((commands.CommandPermission(command, place), ""))
    elif kind == "fetch" and isinstance(arguments.get("url"), str) and (host := urlsplit(arguments["url"]).hostname):
        wanted.append((file_access.PagePermission(host), ""))
    elif kind in ("read", "edit", "delete", "move"):
        is_read = kind == "read"
        for path in _paths(call):
            name = working_path(root, path, changing=not is_read).relative_to(root.resolve()).as_posix()
            wanted.append(
                (file_access.FilePermission("read" if is_read else "write", name), _preview(call, path, name))
            )
    for permission, preview in wanted or [(None, "\n".join(_preview(call, path, path) for path in _paths(call)))]:
        scope = "" if permission is None else f" ({permission.lasting_words})"
        what = f"have `{address.name}` do this: {title}{scope}"
        yield replace(bare, request=ApprovalRequest(what, agent=this.name, preview=preview), permission=permission)


def _paths(call: dict[str, Any]) -> list[str]:
    """The files that a tool call names, by its places and its differences."""
    named = [*_records(call.get("locations")), *_diffs(call)]
    return list(dict.fromkeys(each["path"] for each in named if isinstance(each.get("path"), str)))


def _preview(call: dict[str, Any], path: str, name: str) -> str:
    """What a tool call would make of a file, as lines of a unified diff under one name."""
    lines: list[str] = []
    for diff in (each for each in _diffs(call) if each.get("path") == path):
        old, new = str(diff.get("oldText") or "").splitlines(), str(diff.get("newText") or "").splitlines()
        changed = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
        lines += islice(changed, 2 if lines else 0, None)
    return "\n".join(lines)


def _diffs(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in _records(call.get("content")) if each.get("type") == "diff"]


def _records(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
