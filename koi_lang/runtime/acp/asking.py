"""A message to an agent that is a process, `acp://COMMAND`, under the rules of the run that asks it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from koi_lang.agent_address import CommandAddress
from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.events import ModelAnswered
from koi_lang.runtime.acp import client
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import current_spending
from koi_lang.runtime.budget.payment import Payment
from koi_lang.runtime.guards import commands, file_access
from koi_lang.runtime.guards.permissions import Permission
from koi_lang.runtime.guards.policy import Access, Refusal
from koi_lang.runtime.host import ApprovalRequest
from koi_lang.runtime.narrowing import bounds
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.replay.location import leaf_path

# Where what a turn has cost is told.
PAID = "acp"
# The permission that a role needs for each kind of tool call, and those that change nothing.
NEEDS = {"edit": "write", "delete": "write", "move": "write", "execute": "execute", "fetch": "web_access"}
LOOKING = ("read", "search", "think")
# How long a turn may take, for finding out what it has changed.
MAX_TURN_S = 24 * 3600.0


async def ask_process(this: Agent, address: CommandAddress, text: Any) -> str:
    """What an agent says to a message, once somebody allows it to be started. Raises AgentError."""
    if not isinstance(text, str) or not text.strip():
        raise AgentError(f"`{address.text}` is asked nothing", help='Send `{ message: "…" }`, or a text.')
    command, folder = " ".join(address.words), this.run.folder
    place = commands.place_of(None, folder)
    request = ApprovalRequest(f"start the agent `{command}`, outside of the sandbox", text, agent=this.name)
    help = f'`--allow "run:{command}"` allows it beforehand.'
    permission = commands.CommandPermission(command, place)
    await this.run.policy.require(
        Access(
            f"`{command}`", request, permission, bounds=bounds(), needs="execute", changes=True, done="run", help=help
        )
    )

    async def decide(call: dict[str, Any]) -> bool:
        try:
            for access in _accesses(call, address, this):
                await this.run.policy.require(access)
        except PermissionDeniedError:
            return False
        return True

    async def carry_out() -> dict[str, Any]:
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
        told = f": {turn['text']}" if turn["text"] else ""
        raise AgentError(f"`{address.text}` has not done its work, but ended with `{turn['stop']}`{told}")
    return str(turn["text"])


def _accesses(call: dict[str, Any], address: CommandAddress, this: Agent) -> Iterator[Access]:
    """What a tool call comes to, for the policy: a command, files, a page, or what the person alone can judge."""
    kind, title = str(call.get("kind") or "other"), str(call.get("title") or "something that it does not name")
    bare = Access(bounds=bounds(), needs=NEEDS.get(kind), changes=kind not in LOOKING)
    found: list[Permission | Refusal | None] = [*_permissions(kind, call, this.run.folder)]
    for permission in found or [None]:
        closed = permission if isinstance(permission, Refusal) else None
        allowed = None if isinstance(permission, Refusal) else permission
        told = "" if allowed is None else f" ({allowed.lasting_words})"
        what = f"have `{address.name}` do this: {title}{told}"
        request = ApprovalRequest(what, agent=this.name, preview=_preview(call))
        yield replace(bare, request=request, permission=allowed, closed=closed)


def _permissions(kind: str, call: dict[str, Any], root: Path) -> Iterator[Permission | Refusal]:
    given = call["rawInput"] if isinstance(call.get("rawInput"), dict) else {}
    if kind == "execute" and isinstance(given.get("command"), str):
        yield commands.CommandPermission(given["command"], commands.place_of(None, root))
    elif kind == "fetch" and isinstance(given.get("url"), str) and (host := urlsplit(given["url"]).hostname):
        yield file_access.PagePermission(host)
    elif kind in ("read", "edit", "delete", "move"):
        for path in _paths(call):
            file = (root / path).resolve()
            if file.is_relative_to(root.resolve()):
                relative = file.relative_to(root.resolve()).as_posix()
                yield file_access.FilePermission("read" if kind == "read" else "write", relative)
            else:
                yield Refusal(f"`{path}` is outside of the project")


def _paths(call: dict[str, Any]) -> list[str]:
    """The files that a tool call names, by its places and its differences."""
    named = [*(call.get("locations") or ()), *_diffs(call)]
    return list(
        dict.fromkeys(each["path"] for each in named if isinstance(each, dict) and isinstance(each.get("path"), str))
    )


def _preview(call: dict[str, Any]) -> str:
    """The first difference that a tool call would make, as lines of a unified diff."""
    for diff in _diffs(call):
        old, new = str(diff.get("oldText") or ""), str(diff.get("newText") or "")
        lines = difflib.unified_diff(
            old.splitlines(), new.splitlines(), f"a/{diff.get('path')}", f"b/{diff.get('path')}", lineterm=""
        )
        return "\n".join(lines)
    return ""


def _diffs(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in call.get("content") or () if isinstance(each, dict) and each.get("type") == "diff"]
