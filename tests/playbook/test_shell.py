"""The action that runs commands: who allows them, what they give, and how they end."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from koi_lang.llm.messages import Request
from koi_lang.runtime.actions.layers import permit
from koi_lang.runtime.guards.commands import command_permission, place_of
from koi_lang.runtime.guards.permissions import Permissions
from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest
from tests.growth import functions_between
from tests.playbook.playing import Player, Voice, act, done, solo
from tests.running import RecordingHost

PROGRAM = solo("execute")
# Between an action and the person.
MAX_FUNCTIONS, MAX_MODULES = 80, 25


@dataclass(slots=True)
class Deciding(RecordingHost):
    """A person who gives the same answer to every request for permission, and keeps what was asked."""

    decision: Approval = "yes"
    requested: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Keep the request."""
        self.requested.append(f"{request.what}: {request.detail}")
        self.agents.append(request.agent)
        return ApprovalDecision(self.decision)


def command(text: str, **fields: Any) -> dict[str, Any]:
    """A shell action."""
    return act("shell", command=text, description="to see", **fields)


def output(play: Player, text: str, **fields: Any) -> Any:
    """What an allowed command gives."""
    answers = [{"batch": [command(text, id="x", **fields), act("return", data="${x.output}")]}]
    played = play(PROGRAM, answers, allow=["shell"])
    assert played.error is None
    return played.result


# ---------------------------------------------------------------- permission


def test_the_person_is_asked(play: Player) -> None:
    """A command runs after the person has said yes, and is asked about again the next time."""
    host = Deciding()
    played = play(PROGRAM, [command("true"), command("true", cwd="."), done()], host=host)

    assert ["run `true`: to see", "run `true` in `.`: to see"] == host.requested
    assert ["Main", "Main"] == host.agents
    assert ["shell", "shell", "return"] == played.did()


def test_the_way_to_the_person_is_short(play: Player) -> None:
    """From an action of a model to the question about its command, the second one; the figures may only fall."""
    begun = count()
    ways = functions_between(
        lambda: play(PROGRAM, [command("true"), command("false"), done()], host=Deciding()),
        lambda frame: frame.f_code is permit.__code__ and next(begun) == 1,
        lambda frame: frame.f_code is Deciding.approve.__code__,
    )

    assert MAX_FUNCTIONS >= len(ways) > 0
    assert MAX_MODULES >= len({file for file, _ in ways})


def test_a_refusal_is_told_to_the_model(play: Player) -> None:
    """A command the person does not allow is not run, and the model is told not to try again."""
    played = play(PROGRAM, [command("touch made"), done()], host=Deciding(decision="no"))

    assert "🚫 shell DENIED: the person did not allow `touch made`. Do not try it again." in played.feedback[1]
    assert not (play.folder / "made").exists()


def test_without_a_person_the_answer_is_no(play: Player) -> None:
    """Where nobody can be asked nothing is allowed."""
    assert "🚫 shell DENIED" in play(PROGRAM, [command("true"), done()]).feedback[1]


def test_always_counts_for_this_command_only(play: Player) -> None:
    """What is allowed for always is the command to the letter, also one with a star, in the same folder."""
    host = Deciding(decision="always")
    texts = ["ls *", "ls *", "ls more", "true; true", "true; true", "true; false"]
    play(PROGRAM, [{"batch": [*(command(text) for text in texts[:5]), done()]}], host=host)

    assert ["run `ls *`", "run `ls more`", "run `true; true`"] == [what.split(":")[0] for what in host.requested]
    assert not Permissions({"shell==ls *"}).is_allowed(command_permission("ls *", place_of("/", Path())))


def test_nothing_can_hide_in_a_request(play: Player) -> None:
    """Control characters of a command are shown, so that they cannot overwrite what the person reads."""
    host = Deciding(decision="no")
    play(PROGRAM, [command("rm x\r\x1b[2Kls\n"), done()], host=host)

    assert [r"run `rm x\r\x1b[2Kls⏎`: to see"] == host.requested


def test_nothing_is_pushed_out_of_sight(play: Player) -> None:
    """Gaps of a command are counted, and a description is cut, so that what stands before them stays to be seen."""
    host = Deciding(decision="no")
    hiding = {**command("rm x" + " " * 900 + "\u2800# ls"), "description": "a" * 900}
    play(PROGRAM, [hiding, done()], host=host)

    assert [f"run `rm x[900 blanks]\\u2800# ls`: {'a' * 299}…"] == host.requested


def test_always_counts_in_one_folder_only(play: Player) -> None:
    """A folder named `=a` does not turn the command `b` into the command `a=b` that was allowed for always."""
    host = Deciding(decision="always")
    play(PROGRAM, [command("a=b true"), command("b true", cwd="=a"), done()], host=host)

    assert 2 == len(host.requested)


@pytest.mark.parametrize(
    ("rule", "allowed", "refused"),
    [
        ("shell", ["anything; at all"], []),
        ("shell:git status", ["git status"], ["git status -s", "git", "git status; rm x", " git status"]),
        ("shell:ls *", ["ls -la", "ls a b"], ["ls", "ls a; rm b", "ls $(rm b)", "ls `rm b`", "ls a > b", "ls a\nrm b"]),
        ("shell:git *", ["git log -1"], ["git log | sh", "git log & rm x", "git log && rm x", "git x < y", "(git x)"]),
        ("shell:make && make test", ["make && make test"], ["make && make tests"]),
        ("shell:a[bc]?", ["a[bc]?"], ["abd"]),
        ("shell:**", ["ls -la"], ["ls; rm b"]),
        ("shell:", [""], ["ls"]),
        ("", [], ["ls", ""]),
    ],
)
def test_rules(rule: str, allowed: list[str], refused: list[str]) -> None:
    """Patterns cover simple commands; what joins, redirects or substitutes must be allowed to the letter."""
    here, permissions = place_of(None, Path()), Permissions([rule])
    covered = [text for text in [*allowed, *refused] if permissions.is_allowed(command_permission(text, here))]

    assert allowed == covered


@pytest.mark.parametrize(
    ("cwd", "allowed"),
    [
        ("sub/dir", True),
        (None, True),
        ("sub/../x", True),
        ("within", True),
        ("/", False),
        ("../x", False),
        ("~", False),
        ("out", False),
        ("out/../sub", False),
        ("sub/up", False),
        ("within/../../x", False),
    ],
)
def test_rules_count_below_the_folder_of_the_run(tmp_path: Path, cwd: str | None, allowed: bool) -> None:
    """A pattern says nothing about other folders, where a command may do something else, whatever leads there."""
    project, other = tmp_path / "project", tmp_path / "other/sub"
    for folder in (project / "sub", other):
        folder.mkdir(parents=True)
    for link, target in (("out", other), ("sub/up", "../.."), ("within", "sub")):
        (project / link).symlink_to(target)

    wanted = command_permission("make", place_of(cwd, project))
    for pattern in ("shell:make", "shell:**", "run:make", "run:*"):
        assert allowed == Permissions([pattern]).is_allowed(wanted)
    assert Permissions(["shell"]).is_allowed(wanted)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder for a project, with links out of it and round in a circle."""
    made = tmp_path / "project"
    made.mkdir()
    (made / "link").symlink_to(tmp_path)
    (made / "round").symlink_to("round")
    return made


def test_a_link_out_of_the_project_is_asked_about(play: Player, project: Path, tmp_path: Path) -> None:
    """No pattern covers a command in a folder that a link leads to; the question names that folder."""
    host, asked = Deciding(), f"run `touch made` in `{tmp_path}`: to see"
    answers = [command("touch made", cwd="link"), done()]
    play(PROGRAM, answers, host=host, allow=["shell:touch *"], folder=project)

    assert [asked] == host.requested
    assert (tmp_path / "made").exists()


def test_a_link_out_of_the_project_is_refused_without_a_person(play: Player, project: Path, tmp_path: Path) -> None:
    """Where nobody can be asked nothing runs in a folder that a link leads to, and the model is told which that is."""
    answers = [command("touch made", cwd="link"), done()]
    played = play(PROGRAM, answers, allow=["shell:touch *"], folder=project)

    assert f"nobody can be asked to allow `touch made` in `{tmp_path}`" in played.feedback[1]
    assert not (tmp_path / "made").exists()


def test_always_counts_for_where_a_link_led(play: Player, project: Path, tmp_path: Path) -> None:
    """A link that leads elsewhere since a command was allowed for always is another folder."""
    host = Deciding(decision="always")
    turn = command("mkdir inside; ln -sfn inside link")
    answers = [command("true", cwd="link"), turn, command("true", cwd="link"), command("true", cwd="inside"), done()]
    play(PROGRAM, answers, host=host, folder=project)

    asked = [text.split(": ")[0] for text in host.requested]
    assert [f"run `true` in `{tmp_path}`", "run `true` in `inside`"] == [asked[0], *asked[2:]]


@pytest.mark.parametrize("cwd", ["round", "a\0b", "~nobody-of-this-name"])
def test_a_folder_that_is_none(play: Player, project: Path, cwd: str) -> None:
    """A `cwd` that leads nowhere is an error for the model, and not asked about."""
    host = Deciding()
    played = play(PROGRAM, [command("true", cwd=cwd), done()], host=host, folder=project)

    assert "`cwd` is no folder" in played.feedback[1]
    assert [] == host.requested


def test_a_rule_spares_the_question(play: Player) -> None:
    """Permissions given beforehand need no person."""
    assert ["shell", "return"] == play(PROGRAM, [command("true"), done()], allow=["shell:tru*"]).did()


def test_a_role_without_execute_is_not_even_asked(play: Player) -> None:
    """Neither a rule nor the person can allow what the role does not."""
    host = Deciding()
    played = play(solo("think"), [command("true"), done()], host=host, allow=["shell"])

    assert "`shell` needs the permission `execute`, which the role `Worker` lacks" in played.feedback[1]
    assert [] == host.requested


@pytest.mark.parametrize("text", ["curl -H <TOKEN>", "cp a <TARGET_DIR>"])
def test_placeholders_are_refused(play: Player, text: str) -> None:
    """A command the model has not filled in is not run and not asked about."""
    host = Deciding()
    played = play(PROGRAM, [command(text), done()], host=host)

    assert "the command holds a placeholder" in played.feedback[1]
    assert [] == host.requested


# ---------------------------------------------------------------- what a command gives


def test_output(play: Player) -> None:
    """Exit code and both outputs come back."""
    assert {"success": True, "exitCode": 0, "stdout": "a\n", "stderr": "b\n"} == output(play, "echo a; echo b >&2")


def test_a_failing_command_is_a_result(play: Player) -> None:
    """A command that fails is told with its code; the batch goes on."""
    result = output(play, "echo a; exit 3")

    assert (False, 3, "a\n") == (result["success"], result["exitCode"], result["stdout"])
    assert "the command ended with exit code 3" == result["error"]


def test_commands_cannot_read_the_terminal(play: Player) -> None:
    """Standard input is empty, so that a command that asks does not wait for ever."""
    assert "" == output(play, "cat")["stdout"]


def test_a_command_that_nothing_would_end_does_not_begin(
    play: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no file may be opened for the process that watches over it, that is told, and nothing is left."""

    async def refuse(*words: str, **options: Any) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    played = play(PROGRAM, [command("touch made", id="x"), done()], allow=["shell"])

    assert "the command cannot be started" in played.feedback[1]
    assert not (tmp_path / "made").exists()


def test_a_folder_that_is_not_there(play: Player) -> None:
    """A command that cannot be started is an error for the model, not the end of the run."""
    played = play(PROGRAM, [command("true", cwd="/no/such/folder"), done()], allow=["shell"])

    told = "the command cannot be started in `/no/such/folder`: no such file or directory"
    assert f"❌ shell failed: {told}" in played.feedback[1]


def test_keys_do_not_reach_commands(play: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that hold keys, tokens and passwords are not in the environment of a command."""
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "my_secret", "DB_PASSWORD"):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("DATABASE_URL", "postgres://ada:hush@localhost/x")
    monkeypatch.setenv("HARMLESS", "seen")

    shown = output(play, "env")["stdout"]

    assert ("hush" in shown, "HARMLESS=seen" in shown) == (False, True)


def test_commands_know_who_the_person_is(play: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of people and sockets are no keys: `git` commits in the person's name, and asks their agent for keys."""
    for name, value in (("GIT_AUTHOR_NAME", "Ada Lovelace"), ("SSH_AUTH_SOCK", "/run/agent.1"), ("GIT_ASKPASS", "ask")):
        monkeypatch.setenv(name, value)

    shown = output(play, "env")["stdout"].splitlines()

    assert {"GIT_AUTHOR_NAME=Ada Lovelace", "SSH_AUTH_SOCK=/run/agent.1", "GIT_ASKPASS=ask"} < set(shown)


def test_long_output_keeps_its_ends(play: Player) -> None:
    """Of 300 MB both ends are in the result, 10 MB together, and how much is missing; no more is in memory."""
    shown = output(play, "echo first; head -c 300000000 /dev/zero | tr '\\0' x; echo last")["stdout"]

    assert 9_990_000 < len(shown) < 10_000_000
    assert shown.startswith("first\nx")
    assert shown.endswith("xlast\n")
    assert "… (290001011 bytes left out; of one output 10,000,000 bytes are kept) …" in shown


# ---------------------------------------------------------------- how it ends


def is_alive(pid: int) -> bool:
    """Whether a process goes on; one that has ended and waits to be noticed does not, nor one that is just ending."""
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return False
        except (FileNotFoundError, ProcessLookupError):
            return False
        time.sleep(0.005)
    return True


def test_a_command_that_takes_too_long_is_ended(play: Player) -> None:
    """When its time is up, everything it has started ends with it; what it wrote so far comes back."""
    result = output(play, "sleep 3600 & echo $!; wait", timeout=1000)

    assert "the command took longer than 1 s and was ended" == result["error"]
    assert not is_alive(int(result["stdout"]))


def test_the_timeout_must_be_positive(play: Player) -> None:
    """A time of nothing is a mistake of the model."""
    played = play(PROGRAM, [command("true", timeout=0), done()], allow=["shell"])

    assert "`timeout_ms` must be more than 0, not 0" in played.feedback[1]


def test_background_processes_end_with_the_run(play: Player, tmp_path: Path) -> None:
    """A command in the background is not waited for, and ends with all it started when the run ends."""
    os.mkfifo(tmp_path / "pid")
    start = command(f"echo $$ > {tmp_path}/shell; sleep 60 & echo $! > {tmp_path}/pid; wait", background=True, id="b")
    answers = [{"batch": [start, command(f"cat {tmp_path}/pid", id="c"), done(b="${b.output}", c="${c.output}")]}]
    result = play(PROGRAM, answers, allow=["shell"]).result

    assert {"success": True, "command": 1, "state": "running"} == result["b"]
    assert not is_alive(int((tmp_path / "shell").read_text()))
    assert not is_alive(int(result["c"]["stdout"]))


def test_a_background_process_may_write_much(play: Player, tmp_path: Path) -> None:
    """What a process in the background writes is read at once, so that it is never held up."""
    os.mkfifo(tmp_path / "done")
    start = command(f"head -c 1000000 /dev/zero; echo ended > {tmp_path}/done", background=True)
    answers = [{"batch": [start, command(f"cat {tmp_path}/done", id="c"), done(c="${c.output.stdout}")]}]

    assert {"c": "ended\n"} == play(PROGRAM, answers, allow=["shell"]).result


def test_a_command_ends_when_its_run_is_ended(play: Player, tmp_path: Path) -> None:
    """When the time of the playbook is up, a command that still runs ends, too."""
    os.mkfifo(tmp_path / "pid")
    pids: list[int] = []

    async def speak(request: Request) -> AsyncIterator[str]:
        yield '{"intent":"shell","description":"d","command":"echo $$ > %s/pid; sleep 60; true"}' % tmp_path  # noqa: UP031
        pids.append(int(await asyncio.to_thread((tmp_path / "pid").read_text)))

    played = play(PROGRAM, Voice(speak), allow=["shell"], limits={"time": 3})

    assert "took longer than its budget of 3 s" in played.told
    assert not is_alive(pids[0])


@pytest.fixture
def stray(tmp_path: Path) -> Iterator[str]:
    """A command whose process leaves its group and would go on for an hour; it is killed after the test."""
    yield f"setsid sh -c 'echo $$ > {tmp_path}/stray; exec sleep 3600' &"
    if (tmp_path / "stray").exists():
        with suppress(ProcessLookupError):
            os.kill(int((tmp_path / "stray").read_text()), signal.SIGKILL)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", ["yes", "yes >&2", "exec >&-; yes >&2", "STRAY yes", "STRAY sleep 3600"])
def test_a_flood_ends_when_its_time_is_up(play: Player, stray: str, text: str) -> None:
    """A command that still writes, or whose output somebody else holds open, is over when its time is up."""
    result = output(play, text.replace("STRAY", stray), timeout=300)

    assert "the command took longer than 0.3 s and was ended" == result["error"]
