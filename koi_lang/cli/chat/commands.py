"""The commands of a conversation, `/name`, and what each of them does."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from koi_lang.cli.chat.conversation import ChatConversation
from koi_lang.cli.chat.images import clipboard_image, image_file, named_file
from koi_lang.cli.chat.material import message_in
from koi_lang.cli.ui import journal_tree
from koi_lang.cli.ui.text import brief, count_text, fit_text, one_line, usage_text
from koi_lang.cli.ui.undo_report import diff_lines, nothing_text, outcome_lines, plan_lines
from koi_lang.diagnostics import nearest
from koi_lang.errors import UsageError
from koi_lang.llm.images import Image
from koi_lang.runtime.file_changes.run_undo import RunUndo
from koi_lang.runtime.journal.calls import call_at, first_call, sessions_of
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.summary import summarise
from koi_lang.sessions.client_host import APPROVAL
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.message_targets import find_target, text_of
from koi_lang.settings.efforts import AUTO, EFFORTS, effort_help

Function = Callable[[ChatConversation, str], Awaitable[None]]
# Of the sessions that could go on.
MAX_LISTED = 10
CLIPBOARD = "clipboard"


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A command.

    Attributes:
        takes: what stands behind its name; empty for nothing.
        given: what stood there.
    """

    name: str
    takes: str
    description: str
    function: Function
    given: str = ""

    async def carry_out(self, chat: ChatConversation) -> None:
        """Do what it is for in a conversation. Raises KoiError."""
        await self.function(chat, self.given)


COMMANDS: dict[str, ChatCommand] = {}


def command(takes: str = "", name: str = "") -> Callable[[Function], Function]:
    """Enter a function into the table, under its own name."""

    def enter(function: Function) -> Function:
        known = f"/{name or function.__name__}"
        description = (inspect.getdoc(function) or "").partition("\n")[0]
        COMMANDS[known] = ChatCommand(known, takes, description, function)
        return function

    return enter


def command_in(text: str) -> ChatCommand | None:
    """The command that a text is; None where it is none."""
    word, _, rest = text.strip().partition(" ")
    found = COMMANDS.get(word) if text.startswith("/") else None
    if found is None:
        return None
    return ChatCommand(found.name, found.takes, found.description, found.function, rest.strip())


def nearest_command(word: str) -> str | None:
    """The command whose name is most similar to a word; None where none is."""
    return nearest(word, list(COMMANDS))


# ---------------------------------------------------------------- what there is

# What commands are about, each with their names.
TOPICS: dict[str, Sequence[str]] = {
    "who answers": ("agents", "model", "effort", "plan", "thoughts", "cost"),
    "while it works": ("queue", "back", "pause", "continue", "abort", "approve", "commands", "phase"),
    "messages": ("image", "retry", "compact"),
    "changed files": ("diff", "undo"),
    "conversations": ("tree", "branch", "resume", "new", "name", "quit"),
}


@command("[NAME]", name="help")
async def help_(chat: ChatConversation, given: str) -> None:
    """List the commands and the keys; with the name of a command, say what that does."""
    if given:
        known = COMMANDS.get(f"/{given.removeprefix('/')}")
        if known is None:
            raise UsageError(f"there is no command `{given}`", help="`/help` lists them.")
        chat.screen.say(f"{known.name} {known.takes}".rstrip() + f"  {known.description}")
        return
    width = max(map(len, TOPICS))
    rows = [f"{topic:{width}}  {' '.join(f'/{name}' for name in names)}" for topic, names in TOPICS.items()]
    chat.screen.say("\n".join([*rows, "/help NAME says what a command does and takes", *chat.screen.keys]))


@command("[NAME]")
async def agents(chat: ChatConversation, given: str) -> None:
    """List the agents; with the name of one, or of a handler such as `Main.chat`, talk to that."""
    if given:
        chat.target = find_target(chat.session.ready.agents, given)
        chat.screen.note(f"messages are for {chat.target.name} from now on")
        return
    listed = (await chat.ask("list_agents"))["agents"]
    chat.screen.say("\n".join(line for agent in listed for line in _agent_lines(agent, chat.target.name)))


def _agent_lines(agent: Mapping[str, Any], current: str) -> Iterator[str]:
    yield f"{agent['name']}{': ' if agent['affordance'] else ''}{agent['affordance']}"
    for handler in agent["handlers"]:
        name = f"{agent['name']}.{handler['name']}"
        if not handler["private"]:
            yield f"{'*' if name == current else ' '} {name}({handler['takes']}) {handler['affordance']}".rstrip()


@command("[NAME]")
async def model(chat: ChatConversation, given: str) -> None:
    """Show the model, or use another one, `provider/model`, from now on; `?` lists those that are connected."""
    if given == "?":
        listed = (await chat.ask("get_available_models"))["models"]
        chat.screen.say("\n".join(each["model"] for each in listed) or "no provider is connected; see `koi connect`")
    elif given:
        chat.screen.note(f"answers come from {(await chat.ask('set_model', model=given))['model']} from now on")
    else:
        chosen = chat.session.choice.name() or chat.telling.model
        chat.screen.say(chosen or "the program decides, and no model was asked yet")


@command("[LEVEL]")
async def effort(chat: ChatConversation, given: str) -> None:
    """Show how much models think, or have them think so from now on: none, low, medium, high, or auto."""
    if given and given not in (*EFFORTS, AUTO):
        raise UsageError(f"there is no effort `{given}`", help=f"{effort_help(given)} `auto` leaves it to the program.")
    if given:
        level = (await chat.ask("set_thinking_level", level=given))["level"]
        how = "as the program says" if level == AUTO else f"with the effort `{level}`"
        chat.screen.note(f"models think {how} from now on")
    else:
        chat.screen.say(chat.session.choice.effort() or "the program, or each model, decides")


@command("[on|off]")
async def plan(chat: ChatConversation, given: str) -> None:
    """Have agents change nothing until you have accepted a plan, from now on, or end that with `off`."""
    if given not in ("", "on", "off"):
        raise UsageError(f"`/plan {given}` is neither on nor off", help="Write `/plan`, or `/plan off`.")
    is_on = (await chat.ask("set_plan_mode", on=given != "off"))["on"]
    chat.screen.note("nothing is changed until you accept a plan" if is_on else "agents work again")


@command()
async def thoughts(chat: ChatConversation, given: str) -> None:
    """Show what models thought in the last turn, as far as they show it."""
    chat.screen.note(chat.telling.thoughts() or "no model has shown what it thought")


@command()
async def cost(chat: ChatConversation, given: str) -> None:
    """Show what the conversation took: requests, tokens, money."""
    statistics = chat.session.statistics
    calls, usage = statistics.counts["calls"], statistics.usage
    counted = f"{count_text(calls, 'message')}, {count_text(usage.requests, 'request')}"
    tokens = ", ".join(f"{count:,} {name}" for name, count in usage.by_kind.items())
    chat.screen.say(f"{counted}, {usage_text(usage)} ({tokens})")


@command("[PATH]")
async def image(chat: ChatConversation, given: str) -> None:
    """Attach an image to the next message: a file, or without a path what the clipboard holds."""
    if given:
        path = named_file(given)
        chat.screen.attach(chat.attached.add(path.name, image_file(path)))
    else:
        chat.screen.attach(chat.attached.add(CLIPBOARD, Image.of(await clipboard_image(), CLIPBOARD)))


# ---------------------------------------------------------------- what is being done


@command("[TEXT]")
async def queue(chat: ChatConversation, given: str) -> None:
    """Say something when the work would end; the work then goes on."""
    await chat.ask("follow_up", **chat.fields(given))
    chat.screen.note("will be heard at the end")


@command(name="commands")
async def commands_(chat: ChatConversation, given: str) -> None:
    """List the commands that agents have begun in the background."""
    run = chat.session.run
    begun = run.commands.all() if run.has_commands else []
    lines = [f"{each.number}  {each.agent}  {each.state}  {one_line(each.text)}" for each in begun]
    chat.screen.say("\n".join(lines) or "no command was begun in the background")


@command()
async def phase(chat: ChatConversation, given: str) -> None:
    """Show the phase of each agent that is in one."""
    phases = chat.session.run.phases()
    chat.screen.say("\n".join(f"{name}  {phase}" for name, phase in phases.items()) or "no agent is in a phase")


@command()
async def back(chat: ChatConversation, given: str) -> None:
    """Take back what is queued."""
    taken = (await chat.ask("take_back"))["taken"]
    if taken:
        chat.screen.put_back("\n".join(message_in(note["text"]) for note in taken))
    chat.screen.note("taken back" if taken else "nothing is queued")


@command()
async def pause(chat: ChatConversation, given: str) -> None:
    """Have the next request to a model wait."""
    await chat.ask("pause")
    chat.screen.note("paused before the next request to a model; /continue goes on")


@command(name="continue")
async def continue_(chat: ChatConversation, given: str) -> None:
    """End a pause, or have what is queued heard."""
    await chat.ask("continue")


@command()
async def abort(chat: ChatConversation, given: str) -> None:
    """End the work that is under way."""
    if chat.own.end():
        return
    if chat.is_busy:
        await chat.abort()
    else:
        chat.screen.note("nothing is under way")


@command("[yes|always|no]")
async def approve(chat: ChatConversation, given: str) -> None:
    """Allow what the agent asks permission for: this time, always, or not at all."""
    if not chat.requests or chat.requests[0]["type"] != APPROVAL:
        chat.screen.note("nobody asks for permission")
        return
    await chat.answer(given or "yes")


@command()
async def retry(chat: ChatConversation, given: str) -> None:
    """Give the last message again."""
    if chat.session.last is None:
        raise SessionError("nothing_to_continue", "nothing was said yet")
    agent, event, payload = chat.session.last
    await chat.ask("run_playbook", name=f"{agent.about.name}.{event}", args=payload)


@command("[TEXT]")
async def compact(chat: ChatConversation, given: str) -> None:
    """Shorten what the agent remembers; TEXT says what to keep."""
    chat.screen.note("shortening the conversation")
    await chat.ask("compact", instructions=given)


@command("[yes]")
async def undo(chat: ChatConversation, given: str) -> None:
    """Show what would be put back of the files that this conversation has changed; `/undo yes` puts it back."""
    if given not in ("", "yes") or chat.is_busy:
        refusal = "`/undo` takes nothing but `yes`" if given not in ("", "yes") else "the work is under way"
        raise UsageError(refusal, help="`/abort` ends the work; `/undo` then shows what it has changed.")
    run = chat.session.run
    changes = RunUndo(run.folder, run.id, read(_journal(chat)).entries, run.settings)
    plan = changes.plan()
    lines = [nothing_text(run.id, 0)] if not plan.paths else [*plan_lines(changes, plan, run.redact)]
    if given and plan.paths:
        place = f"undo#{secrets.token_hex(6)}"
        done = changes.carry_out(plan, lambda change: run.events.emit(change, path=(place, change.file)))
        lines = [*outcome_lines(run.id, plan, done, run.redact)]
    elif plan.to_change:
        lines.append(f"`/undo yes` puts back {len(plan.to_change):,} of {len(plan.paths):,} paths")
    chat.screen.say("\n".join(lines))


@command()
async def diff(chat: ChatConversation, given: str) -> None:
    """Show what this conversation has changed in files, line by line."""
    run = chat.session.run
    changes = RunUndo(run.folder, run.id, read(_journal(chat)).entries, run.settings)
    chat.screen.say("\n".join(diff_lines(changes, run.redact)) or "no file is changed by this conversation")


# ---------------------------------------------------------------- conversations


@command()
async def tree(chat: ChatConversation, given: str) -> None:
    """Show the entries that `/branch` can go back to, with all branches."""
    shown = journal_tree.tree(Path.cwd(), _journal(chat))
    columns = chat.screen.columns()
    more = chat.screen.look.more
    chat.screen.say("\n".join(fit_text(_one_line(line), columns, more) for line in shown))


def _one_line(line: str) -> str:
    """A line of the tree without control characters; its indentation stays."""
    text = line.lstrip(" │")
    return line[: len(line) - len(text)] + one_line(text)


@command("ENTRY", name="branch")
async def branch_(chat: ChatConversation, given: str) -> None:
    """Go back to an entry and go on in a journal of its own; a message comes back to be written anew."""
    if not given.isdecimal():
        raise UsageError("`/branch` needs the number of an entry", help="`/tree` shows them: `/branch 7`.")
    at, journal = int(given), read(_journal(chat))
    message = call_at(journal.entries, at)
    await chat.ask("branch", entry=at if message is None else message.n - 1)
    chat.telling.tell_earlier()
    chat.screen.note(f"going on from entry {at} as {chat.session.run.id}; the other branch stays as it is")
    if message is not None:
        chat.screen.put_back(chat.recall(message.data.get("args")))


@command("[ID]")
async def resume(chat: ChatConversation, given: str) -> None:
    """Go on with an earlier conversation, or list those of this program; `/resume ID trust` with one of others."""
    if not given:
        chat.screen.say("\n".join(_sessions(chat)) or "there is no other conversation with this program")
        return
    session, _, trust = given.partition(" ")
    if trust.strip() not in ("", "trust"):
        raise UsageError("`/resume` takes one id", help="Write `/resume ID`, or `/resume ID trust` for one of others.")
    resumed = await chat.ask("resume_session", session=session, trust=bool(trust.strip()))
    chat.telling.tell_earlier()
    chat.screen.note(f"going on with {resumed['session_id']}, {count_text(resumed['calls'], 'message')}")


def _sessions(chat: ChatConversation) -> list[str]:
    """The latest sessions of the program, each with its first message."""
    program, current = str(chat.session.ready.module.__file__), chat.session.run.id
    known = (path for path in sessions_of(Path.cwd(), program) if path.stem != current)
    return [_session_line(path) for path in islice(known, MAX_LISTED)]


def _session_line(path: Path) -> str:
    summary = summarise(path)
    started = datetime.fromtimestamp(summary.header.started).strftime("%Y-%m-%d %H:%M")
    first = first_call(path)
    said = "" if first is None else brief(text_of(first.data.get("args")) or str(first.data.get("name")))[:60]
    return f"{path.stem}  {started}  {summary.state:11}  {said}".rstrip()


@command()
async def new(chat: ChatConversation, given: str) -> None:
    """Begin another conversation, in which nothing is remembered."""
    created = await chat.ask("new_session")
    chat.screen.note(f"a new conversation, {created['session_id']}")


@command("TEXT")
async def name(chat: ChatConversation, given: str) -> None:
    """Give the conversation a name."""
    await chat.ask("set_session_name", name=given)


@command(name="quit")
async def quit_(chat: ChatConversation, given: str) -> None:
    """End the conversation; `koi chat FILE --resume ID` goes on with it later."""
    chat.over = True


def _journal(chat: ChatConversation) -> Path:
    if chat.session.journal is None:
        raise SessionError("no_journal", "the conversation is not recorded", help="Start it without `--no-record`.")
    return chat.session.journal
