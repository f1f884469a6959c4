"""Agents of other programs as members of teams, against a server of the official SDK."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from koi_lang.agent_address import parse_address
from koi_lang.runtime.a2a.replies import reply_of
from tests import forks
from tests.a2a.counterpart import Counterpart, serving
from tests.limits import LIMIT_S
from tests.projects import Project

PROGRAM = """
    role Chief { can delegate }
    team Desk { helper: a2a://127.0.0.1:PORT/agents/AGENT }
    agent Lead : Chief {
      uses team Desk
      on start(args: { message: string }) {
        CODE
      }
    }
    run Lead.start({ message: "MESSAGE" })
    """
SEND = 'console.log(JSON.stringify(await send peers.event("ask").any()({ message: args.message })))'


@pytest.fixture(scope="module")
def running() -> Iterator[Counterpart]:
    """One server for all tests."""
    with serving() as counterpart:
        yield counterpart


@pytest.fixture
def counterpart(running: Counterpart) -> Iterator[Counterpart]:
    """The server, which has been told nothing."""
    running.messages.clear()
    running.cancelled.clear()
    yield running
    running.token = ""


def write(
    project: Project, counterpart: Counterpart, message: str, *, code: str = SEND, agent: str = "echo", more: str = ""
) -> Path:
    """A program that sends a message, in a folder that may reach the server."""
    project.write("koi.toml", f'[http]\nallow = ["127.0.0.1:{counterpart.port}"]\n{more}')
    text = PROGRAM.replace("PORT", str(counterpart.port)).replace("AGENT", agent).replace("CODE", code)
    return project.write("main.koi", text.replace("MESSAGE", message))


@pytest.mark.parametrize(
    ("message", "printed"),
    [("tea", '"echo tea"'), ("wait", '"echo wait"'), ("data", '{"n":1}')],
)
def test_a_member_answers(project: Project, counterpart: Counterpart, message: str, printed: str) -> None:
    """What a task gives is what the send gives: a text, or data; one that takes a while is waited for."""
    write(project, counterpart, message)
    done = project.koi("run", "main.koi")

    assert (done.stdout.strip(), done.returncode) == (printed, 0), done.stderr
    assert counterpart.messages == [message]


def test_values_are_sent_as_data(project: Project, counterpart: Counterpart) -> None:
    """What is no message is a part with data."""
    code = 'console.log(await send peers.event("ask").any()({ topic: args.message, n: 2 }))'
    write(project, counterpart, "tea", code=code)
    project.koi("run", "main.koi")

    assert counterpart.messages in (["[{'topic': 'tea', 'n': 2.0}]"], ["[{'n': 2.0, 'topic': 'tea'}]"])


def test_what_it_asks_is_put_to_the_person(project: Project, counterpart: Counterpart) -> None:
    """A task that needs input asks here, and goes on with the answer."""
    write(project, counterpart, "ask")
    done = project.koi("run", "main.koi", stdin="the green one\n")

    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")

    assert "`echo` asks: Which one?" in journal.read_text("utf-8")
    assert '"you said the green one"' in done.stdout
    assert counterpart.messages == ["ask", "the green one"]


def test_a_failure_is_one_of_the_send(project: Project, counterpart: Counterpart) -> None:
    """It has the words of the agent."""
    write(project, counterpart, "fail")
    done = project.koi("run", "main.koi")

    assert done.returncode == 1
    assert "agents/echo` has failed: out of tea" in done.stderr


def test_a_model_may_delegate_to_it(project: Project, counterpart: Counterpart) -> None:
    """It is a member as others are."""
    write(project, counterpart, "tea", code='playbook "Find somebody who repeats {{args.message}}, and return that."')
    answers = [
        {"id": "a", "actionType": "delegate", "intent": "helper::ask", "data": {"message": "tea"}},
        {"intent": "print", "message": "${a.output}"},
        {"intent": "return"},
    ]
    project.write("answers.json", json.dumps({"Find somebody": answers}))
    done = project.koi("run", "main.koi", "--answers", "answers.json")

    assert done.stdout.strip() == "echo tea", done.stderr


def test_a_replay_asks_nobody(project: Project, counterpart: Counterpart) -> None:
    """Messages are effects: what was answered once is not asked again, and neither is the person."""
    write(project, counterpart, "ask")
    first = project.koi("run", "main.koi", stdin="green\n")
    counterpart.messages.clear()
    again = project.koi("replay", "last")

    assert first.returncode == again.returncode == 0, again.stderr
    assert counterpart.messages == []


def test_a_kill_in_between_asks_nothing_twice(project: Project, counterpart: Counterpart) -> None:
    """A run that is resumed goes on behind the messages that were answered."""
    code = SEND + "\n if (!args.message.startsWith('x')) process.exitCode = 0\n throw new Error('stopped')"
    write(project, counterpart, "tea", code=code)
    project.koi("run", "main.koi")
    before = list(counterpart.messages)
    project.koi("resume", "last")

    assert before == ["tea"]
    assert counterpart.messages == ["tea"]


def test_hosts_are_guarded(project: Project, counterpart: Counterpart) -> None:
    """Without `[http] allow` no host of this network is reached, and a rule denies others."""
    write(project, counterpart, "tea")
    (project.folder / "koi.toml").unlink()
    unlisted = project.koi("run", "main.koi")
    write(project, counterpart, "tea", more='[permissions]\ndeny = ["web:127.0.0.1"]\n')
    denied = project.koi("run", "main.koi")

    assert "is no public address" in unlisted.stderr
    assert "denies it" in denied.stderr
    assert counterpart.messages == []


def test_narrowed_calls_need_the_permission(project: Project, counterpart: Counterpart) -> None:
    """A call that is narrowed to a role without `web_access` asks nobody outside."""
    code = 'console.log(await send peers.event("ask").as(Reader).any()({ message: args.message }))'
    write(project, counterpart, "tea", code=code)
    path = project.folder / "main.koi"
    path.write_text("role Reader { can delegate }\n" + path.read_text())
    done = project.koi("run", "main.koi")

    assert "needs the permission `web_access`" in done.stderr
    assert counterpart.messages == []


def test_a_card_leads_nowhere_else(project: Project, counterpart: Counterpart) -> None:
    """A server cannot have messages, and tokens, be sent to another host."""
    write(project, counterpart, "tea", agent="elsewhere")
    done = project.koi("run", "main.koi")

    assert "leads to another host" in done.stderr


def test_a_token_is_shown_to_its_host(project: Project, counterpart: Counterpart) -> None:
    """It stands in `koi.toml` by way of a variable; without one the refusal says where to write it."""
    counterpart.token = "s3cret-of-echo"
    write(project, counterpart, "tea")
    without = project.koi("run", "main.koi")
    write(project, counterpart, "tea", more=f'[a2a.tokens]\n"127.0.0.1:{counterpart.port}" = "${{ECHO_TOKEN}}"\n')
    project.write(".env", "ECHO_TOKEN=s3cret-of-echo\n")
    given = project.koi("run", "main.koi")

    assert "`[a2a.tokens]`" in without.stderr
    assert given.stdout.strip() == '"echo tea"', given.stderr


def test_what_nobody_waits_for_is_cancelled(project: Project, counterpart: Counterpart) -> None:
    """A run that is ended ends its task at the other end, too."""
    write(project, counterpart, "hang")
    words = forks.koi("run", "main.koi")
    began, process = counterpart.requests, subprocess.Popen(words, cwd=project.folder, env=project.environment)
    deadline = time.monotonic() + LIMIT_S
    while counterpart.requests < began + 4 and time.monotonic() < deadline:  # card, message, two looks at the task
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.wait(LIMIT_S)

    assert len(counterpart.cancelled) == 1


@pytest.mark.parametrize(
    "address", ["a2a://user@host/a", "a2a://host/../b", "a2a://", "a2a:///agent", "a2a://host/a?b=c", "a2a://ho st/a"]
)
def test_other_addresses_are_none(address: str) -> None:
    """An address names a host and a path, and nothing else."""
    assert parse_address(address) is None


def test_origins_are_encrypted_but_for_this_machine() -> None:
    """Tokens and messages do not cross a network in the open."""
    texts = ("a2a://example.org/a", "a2a://10.0.0.1:8080/a", "a2a://localhost:1/a/b", "a2a://[::1]:1/a")
    origins = [found.origin for text in texts if (found := parse_address(text)) is not None]

    assert origins == ["https://example.org", "https://10.0.0.1:8080", "http://localhost:1", "http://[::1]:1"]


@pytest.mark.parametrize("result", [None, 3, {}, {"task": {"id": 1}}, {"task": {"id": "a", "status": "done"}}])
def test_broken_replies_are_errors(result: object) -> None:
    """What is neither a message nor a task is no answer."""
    with pytest.raises(Exception, match="neither a message nor a task"):
        reply_of(result, "a2a://host/a")
