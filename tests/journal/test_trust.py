"""Journals of others: nothing of them is gone on with unless somebody says so."""

from __future__ import annotations

import hmac
import json
import os
import shutil
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pexpect
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from koi_lang.errors import JournalError
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import JournalEntry, line_of
from koi_lang.runtime.journal.line_ends import Chain, Signer, parts, seal_line, unseal_line
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.writer import Writer
from koi_lang.sessions.trust import doubt_about, read_signed
from koi_lang.settings import TRUST_VARIABLE
from tests import forks
from tests.journal.commands import Commands
from tests.journal.conftest import HEADER, printed
from tests.journal.test_checksums import changed
from tests.projects import LIMIT_S, Project

PROGRAM = """
    role R { can execute }
    agent Main : R {
      on go(x: Json) {
        console.log("one")
        await this.callAction("shell", { command: "echo two >> effects", description: "leave" })
        await this.callAction("shell", { command: "echo three >> effects", description: "leave" })
        console.log("four")
      }
    }
    run Main.go({})
    """


@pytest.fixture
def cut(koi: Commands) -> Commands:
    """A run that was killed behind its first effect."""
    assert 0 == koi.record(PROGRAM, None, "--allow", "shell").code
    koi.cut_behind("done")
    (koi.folder / "effects").unlink()
    return koi


def refused(koi: Commands, told: str, *words: str) -> bool:
    """Whether the last run is not resumed, with a message that says why and what to do, and nothing has taken place."""
    before = koi.journal.read_bytes()
    done = koi("resume", *words)
    is_told = f"error: the journal `{koi.journal.stem}` {told}" in done.err and "--trust" in done.err
    unchanged = before == koi.journal.read_bytes() and not (koi.folder / "effects").exists()
    return is_told and unchanged and (done.code, done.out) == (1, "")


def test_an_own_journal_is_not_asked_about(cut: Commands) -> None:
    """It goes on by itself, and once more after another kill."""
    done = cut("resume")
    cut.cut_behind("done", nth=2)
    again = cut("resume")

    assert (0, "four\n", 0, "four\n", ["three"]) == (done.code, done.out, again.code, again.out, cut.lines("effects"))


def test_a_journal_of_another_machine(cut: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused where nobody can be asked, also as a branch; who trusts it once need not say so again."""
    monkeypatch.setenv("KOI_CONFIG_DIR", str(tmp_path / "other"))
    told = "was not written on this machine in this folder, or was changed, so it is not gone on with"

    assert refused(cut, told)
    assert refused(cut, told, "--branch")
    assert refused(cut, told, "last", "--at", "3")
    assert refused(cut, told, "--on-doubt", "retry", "--quiet")
    assert (0, "four\n") == ((done := cut("resume", "--trust")).code, done.out)
    cut.cut_behind("done", nth=2)
    assert (0, "four\n") == ((done := cut("resume")).code, done.out)


def test_a_journal_of_another_folder(cut: Commands) -> None:
    """What was allowed in one folder is not run in another one, whose programs and files may be of somebody else."""
    other = Commands(Project(cut.folder.parent / "other"))
    shutil.copytree(cut.folder, other.folder)

    assert refused(other, "was not written on this machine in this folder")


def test_a_service_key_that_came_with_the_folder(cut: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever made it can sign any journal as that of a service, so it does not count before the folder is trusted."""
    key, path = b"k" * 32, cut.folder / ".koi" / "signing.key"
    path.write_text(key.hex().upper())
    path.chmod(0o600)
    chain, run = Chain(Signer(key, "")), cut.journal.stem
    lines = [unseal_line(line) for line in cut.journal.read_bytes().splitlines(keepends=True)]
    lines[0] = lines[0].replace(b'"words":["run"', b'"words":["serve"')
    cut.journal.write_bytes(b"".join(chain.sign(seal_line(line, run)) for line in lines))

    def doubt() -> str:
        return doubt_about(read_signed(cut.journal, cut.folder, print))

    monkeypatch.delenv(TRUST_VARIABLE, raising=False)
    assert "was not written on this machine in this folder, or was changed" == doubt()
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    assert "" == doubt()
    monkeypatch.delenv(TRUST_VARIABLE)
    assert "" == doubt()  # from now on


def added(head: bytes, lines: list[bytes], run: str, kind: str, **fields: Any) -> list[bytes]:
    """A journal with a line more, which has a checksum and no signature."""
    entry = JournalEntry(len(lines) + 1, 5.0, kind, **fields)
    return [head, *lines, seal_line(line_of(entry, str), run)]


def changed_header(head: bytes, lines: list[bytes], run: str) -> list[bytes]:
    """A journal of another program."""
    return [seal_line(unseal_line(head).replace(b"main.koi", b"evil.koi"), run), *lines]


def changed_lines(head: bytes, lines: list[bytes], run: str) -> list[bytes]:
    """A journal of another command."""
    return [head, *(seal_line(unseal_line(line.replace(b"echo two", b"echo 2")), run) for line in lines)]


# Ways to make another journal of one, by its first line, the other ones and its name.
FORGERIES: dict[str, Callable[[bytes, list[bytes], str], list[bytes]]] = {
    "with a line more": partial(added, kind="printed", path=("Main.go#1",)),
    "with a rule more": partial(added, kind="allowed", data={"rule": "shell"}),
    "without signatures": lambda head, lines, run: [unseal_line(line) for line in (head, *lines)],
    "of another program": changed_header,
    "of another command": changed_lines,
}


@pytest.mark.parametrize("forge", FORGERIES)
def test_forged_journals(cut: Commands, forge: str) -> None:
    """Lines behind those of this machine, a rule more, another program or command, lines of another journal."""
    head, *lines = cut.journal.read_bytes().splitlines(keepends=True)
    cut.journal.write_bytes(b"".join(FORGERIES[forge](head, lines, cut.journal.stem)))

    told = {"without signatures": "is not signed", "of another program": "was not written on this machine"}
    assert refused(cut, told.get(forge, "was changed behind line "))


def test_a_journal_under_another_name(cut: Commands) -> None:
    """A copy is no second run: it would go on in the journal that it was copied from."""
    shutil.copy(cut.journal, cut.journal.with_name("copy.jsonl"))
    done = cut("resume", "copy")

    assert (1, "") == (done.code, done.out)
    assert f"`copy.jsonl` is the journal of the run `{read(cut.journal).header.run}`" in done.err


def test_the_person_is_asked(cut: Commands, tmp_path: Path) -> None:
    """At a terminal, with what would be run; an empty line is a no, after which nothing has taken place."""
    environment = {**cut.project.environment, "KOI_CONFIG_DIR": str(tmp_path / "other"), "NO_COLOR": "1"}
    python, *words = forks.koi("resume")
    for answer, code, effects in (("", 1, []), ("y", 0, ["three"])):
        with pexpect.spawn(
            python, words, cwd=str(cut.folder), env=environment, encoding="utf-8", timeout=LIMIT_S
        ) as child:
            child.expect("command +koi run --allow shell main.koi")
            child.expect("Go on with it")
            child.sendline(answer)
            child.expect(pexpect.EOF)
        assert (code, effects) == (child.exitstatus, cut.lines("effects")), child.before


def test_a_journal_of_others_is_replayed(cut: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay and a test do nothing outside, so recordings come with programs as they like."""
    assert 0 == cut("resume", "--quiet").code
    (cut.folder / "effects").unlink()
    assert 0 == cut("runs", "export", "last", "-o", "tests/one.jsonl").code
    monkeypatch.setenv("KOI_CONFIG_DIR", str(tmp_path / "other"))

    assert [0, 0] == [cut("replay", "last").code, cut("test", "-j", "1").code]
    assert [] == cut.lines("effects")


def test_without_a_key(cut: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none can be kept runs go on and say that their journals are unsigned; these need somebody who agrees."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KOI_CONFIG_DIR", str(tmp_path / "file"))
    assert "warning: the journal is not signed: the key" in cut("run", "--allow", "shell", "main.koi").err
    assert "" == cut("run", "--quiet", "--allow", "shell", "main.koi").err
    cut.cut_behind("done")
    (cut.folder / "effects").unlink()

    assert refused(cut, "cannot be checked without a key for signatures")
    assert (0, "four\n") == ((done := cut("resume", "--trust")).code, done.out)


# ---------------------------------------------------------------- sessions

CHAT = """
    role R { can execute }
    agent Main : R { on chat(args: Json) { console.log("heard " + args.message); return 1 } }
    """


@pytest.fixture
def session(project: Project) -> Project:
    """A session that another machine has recorded."""
    project.write("a.koi", CHAT)
    call = json.dumps({"type": "run_playbook", "name": "Main.chat", "args": {"message": "hi"}})
    done = project.koi("rpc", "a.koi", stdin=f"{call}\n", KOI_CONFIG_DIR=str(project.folder / "key"))
    assert 0 == done.returncode
    return project


def test_sessions_of_others_over_rpc(session: Project) -> None:
    """Neither the option nor the commands go on with one, unless the client says that it trusts it."""
    (path,) = store.journals(session.folder)
    started = session.koi("rpc", "a.koi", "--resume", "last")
    resume = {"type": "resume_session", "session": path.stem}
    messages = [resume, {"type": "branch", "entry": 2, "session": path.stem}, {**resume, "trust": True}]
    done = session.koi("rpc", "a.koi", stdin="".join(f"{json.dumps(message)}\n" for message in messages))
    responses = [data for line in done.stdout.splitlines() if (data := json.loads(line))["type"] == "response"]

    assert (1, True) == (started.returncode, "so it is not gone on with" in started.stderr)
    assert 2 * ["session_not_trusted"] == [response["error_code"] for response in responses[:2]]
    assert (True, path.stem) == (responses[2]["success"], responses[2]["data"]["session_id"])
    assert 0 == session.koi("rpc", "a.koi", "--resume", "last").returncode


def test_conversations_of_others(session: Project) -> None:
    """`koi chat --resume` and `/resume` refuse one; both take a word that says yes."""
    (path,) = store.journals(session.folder)
    started = session.koi("chat", "a.koi", "--resume", path.stem)
    inside = session.koi("chat", "a.koi", stdin=f"/resume {path.stem}\n/resume {path.stem} trust\nho\n")

    assert (1, True) == (started.returncode, "so it is not gone on with" in started.stderr)
    assert "= help: If you trust it, go on with it by `/resume ID trust`." in inside.stderr
    said = [entry.data["message"] for entry in read(path).entries if entry.kind == "printed"]
    assert ("heard ho\n", ["heard hi", "heard ho"]) == (inside.stdout, said)


# ---------------------------------------------------------------- signatures and their key

SIGNER = Signer(b"k" * 32, "/work")
with TemporaryDirectory() as folder:
    _writer = Writer(Path(folder) / "a.jsonl", HEADER, str, print, SIGNER)
    for _n in range(1, 9):
        _writer(printed(_n, f"line {_n}"))
    _writer.close()
    LINES = tuple((Path(folder) / "a.jsonl").read_bytes().splitlines(keepends=True))


@settings(max_examples=200, deadline=None)
@given(some.data())
def test_only_a_journal_of_this_machine_is_whole(data: some.DataObject) -> None:
    """Lost, changed, swapped, doubled and added lines are noticed; only the last ones can be cut off."""
    lines = list(LINES)
    for _ in range(data.draw(some.integers(1, 3))):
        here, there = (data.draw(some.integers(0, len(lines) - 1)) for _ in range(2))
        kind = data.draw(some.sampled_from(["lost", "changed", "swapped", "doubled", "unsigned"]))
        if kind == "lost" and len(lines) > 1:
            del lines[here]
        elif kind == "changed":
            lines[here] = changed(lines[here], data.draw(some.integers(0, 400)), data.draw(some.integers(0, 255)))
        elif kind == "swapped":
            lines[here], lines[there] = lines[there], lines[here]
        elif kind == "doubled":
            lines.insert(here, lines[there])
        elif kind == "unsigned":
            lines[here] = unseal_line(lines[here])

    if not lines[-1].endswith(b"\n"):
        lines.pop()  # as where a process was killed while it wrote it
    if is_whole(lines):
        assert [parts(line)[0] for line in LINES[: len(lines)]] == [parts(line)[0] for line in lines]


def is_whole(lines: list[bytes], signer: Signer = SIGNER) -> bool:
    """Whether all of some lines counts as signed; what is no journal does not."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes(b"".join(lines))
        try:
            found = read(path, signer).authenticity
        except JournalError:
            return False
    assert found is not None
    return found.is_whole


@pytest.mark.parametrize("signer", [Signer(b"k" * 32, "/other"), Signer(b"l" * 32, "/work")])
def test_a_signature_is_for_one_folder_and_of_one_key(signer: Signer) -> None:
    """Neither another folder nor another machine takes it for its own."""
    assert (True, False) == (is_whole(list(LINES)), is_whole(list(LINES), signer))


def test_a_trusted_journal_is_signed_as_a_whole(tmp_path: Path) -> None:
    """What is added to lines of others signs these, too: they can be changed no more."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(map(unseal_line, LINES[:5])))
    writer = Writer(path, read(path, SIGNER).end, str, print, SIGNER)
    writer.note("resumed")
    writer.close()
    lines = path.read_bytes().splitlines(keepends=True)

    assert is_whole(lines)
    assert not is_whole([lines[0], lines[1].replace(b"line 1", b"line 2"), *lines[2:]])


MAKING = """
    import sys
    from pathlib import Path
    from koi_lang.setup.keys.signing import signing_key
    sys.stdin.readline()
    print(signing_key(Path("config/koi")).hex())
    """


@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.thorough)])
def test_many_processes_make_one_key(project: Project, count: int) -> None:
    """All that begin at once on a new machine sign with the same key, which nobody else can read."""
    script = project.write("making.py", MAKING)
    begun = [
        subprocess.Popen(
            forks.python(str(script)), cwd=project.folder, env=project.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for _ in range(count)
    ]  # fmt: skip
    for process in begun:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    keys = {process.communicate()[0] for process in begun}
    folder = project.folder / "config" / "koi"

    assert (1, 64) == (len(keys), len(keys.pop().strip()))
    assert ["signing.key"] == os.listdir(folder)
    assert (0o600, 0o700) == ((folder / "signing.key").stat().st_mode & 0o777, folder.stat().st_mode & 0o777)


@pytest.mark.parametrize("content", ["", "half", "z" * 64, "ab" * 4000])
def test_a_damaged_key_is_told(cut: Commands, tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not replaced, since journals were signed with it; runs and resumes say how it is removed."""
    monkeypatch.setenv("KOI_CONFIG_DIR", str(tmp_path))
    (tmp_path / "signing.key").write_text(content)
    ran, resumed = cut("run", "--allow", "shell", "main.koi"), cut("resume", "last", "--branch")

    assert (0, True) == (ran.code, f"the key `{tmp_path}/signing.key` is damaged" in ran.err)
    assert (1, True) == (resumed.code, f"Remove it with `rm {tmp_path}/signing.key`" in resumed.err)
    assert content == (tmp_path / "signing.key").read_text()


@pytest.mark.parametrize("size", [1, 32, 64, 100])
def test_a_signature_is_an_hmac(size: int) -> None:
    """Keys of any length sign as HMAC says, so that older journals are still known."""
    chain, key = Chain(Signer(b"k" * size, "/work")), b"k" * size
    first = hmac.digest(key, b"koi journal in /work", "sha256")
    second = hmac.digest(key, first + b"line", "sha256")

    assert urlsafe_b64encode(second[:12]) == chain.add(b"line")
