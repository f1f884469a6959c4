"""`std/code`: tools as actions of playbooks, what they need, and what the person is asked."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from koi_lang.compiler.rules.actions import TOOLS
from koi_lang.extensions import additions, find_extensions
from koi_lang.program import build
from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.guards.permissions import Restrictions
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest
from koi_lang.std.code import actions
from tests.playbook.conftest import play as play
from tests.playbook.playing import Played, Player, act, done, solo
from tests.playbook.transports import talk
from tests.projects import Project
from tests.running import RecordingHost

PROGRAM = 'import "std/code"\n' + solo("write", "execute")
YES = ApprovalDecision("yes")
READER = 'import "std/code"\n' + solo("read")


@dataclass(slots=True)
class Person(RecordingHost):
    """Somebody who gives the same answer each time, and keeps what was asked."""

    decision: ApprovalDecision = YES
    requests: list[ApprovalRequest] = field(default_factory=list)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Keep the request."""
        self.requests.append(request)
        return self.decision


def work(play: Player, folder: Path, *actions: dict[str, Any], program: str = PROGRAM, **services: Any) -> Played:
    """What comes of some actions in a folder."""
    added = additions(find_extensions(play.load(program), use_installed=False))
    return play(program, [*actions, done()], folder=folder, added=added, **services)


def test_a_file_is_written_once_it_is_allowed(play: Player, tmp_path: Path) -> None:
    """The person sees the difference, and who asks."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    person = Person()

    played = work(play, tmp_path, act("write_file", path="a.txt", content="one\n2\n"), host=person)

    assert played.error is None
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"
    (request,) = person.requests
    assert (request.what, request.agent, request.always) == ("replace `a.txt`", "Main", "changes of `a.txt`")
    assert request.preview == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2"


FAMILIAR: dict[str, tuple[dict[str, Any], str]] = {
    "read": (act("Read", file_path="a.txt", offset=2), "read_file"),
    "edit": (act("edit", file_path="a.txt", old_string="one", new_string="three"), "edit_file"),
    "write": (act("write", file_path="a.txt", content="three\n"), "write_file"),
    "bash": (act("bash", command="echo three"), "run_command"),
    "terminal": (act("run_terminal_cmd", command="echo three", is_background=False), "run_command"),
    "folder": (act("list_directory", path="."), "list_files"),
    "search": (act("search_file_content", pattern="one"), "grep"),
    "letters": (act("Grep", pattern="one"), "grep"),
    "view": (act("str_replace_editor", command="view", path="a.txt", view_range=[2, 2]), "read_file"),
    "create": (act("str_replace_editor", command="create", path="a.txt", file_text="three\n"), "write_file"),
    "replace": (
        act("str_replace_editor", command="str_replace", path="a.txt", old_str="one", new_str="3"),
        "edit_file",
    ),
}


@pytest.mark.parametrize(("asked", "name"), FAMILIAR.values(), ids=FAMILIAR)
def test_tools_of_other_agents_lead_to_ours(asked: Any, name: str, play: Player, tmp_path: Path) -> None:
    """Models write names that they know; they get what they mean, and what they may do stays the same."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    refused, played = (work(play, tmp_path, asked, allow=allow) for allow in ([], ["write:**", "run:**"]))

    assert (played.error, [name, "return"]) == (None, played.did())
    assert [] == [each for each in refused.did() if each not in ("read_file", "list_files", "grep", "return")]


def test_a_tool_that_is_not_here_is_told_of_ours(play: Player, tmp_path: Path) -> None:
    """The names of files and commands were cut off the list, and the fields of an edit off its form."""
    (tmp_path / "a.txt").write_text("one\n")
    asked = (
        act("apply_patch", input="x"),
        act("str_replace_editor", command="insert", path="a.txt", insert_line=1, new_str="two"),
        act("edit_file", path="a.txt", before=["one"], after="two"),
    )
    played = work(play, tmp_path, *asked, allow=["write:**"])

    assert "`edit_file`" in played.feedback[1]
    assert "`edit_file` takes `before` and `after`" in played.feedback[2]
    assert '"path":"<text>","before":"<text>" | null,"after":"<text>" | null}' in played.feedback[3]


def test_one_action_for_commands_is_offered(play: Player, tmp_path: Path) -> None:
    """`run_command` is, where `std/code` is imported; `shell`, which does the same, is carried out as before."""
    played = work(play, tmp_path, act("shell", command="echo one", description=""), allow=["run:**"])
    told = played.requests[0].system

    assert ([1, 0], ["shell", "return"]) == (
        [told.count(f"- {name}(") for name in ("run_command", "shell")],
        played.did(),
    )


@pytest.mark.parametrize("transport", ["text", "tools"])
def test_bash_is_the_shell_of_agents_without_std_code(transport: str, play: Player, tmp_path: Path) -> None:
    """It comes without a description, and as a call of a tool that was not offered."""
    services = {"allow": ["shell"], "folder": tmp_path}
    script = [[act("bash", command="echo three")], [done()]]

    played, _, _ = talk(play, solo("execute"), script, ("openai", transport), played=services)

    assert (None, ["shell", "return"]) == (played.error, played.did())


def test_a_folder_is_listed_by_its_path(play: Player, tmp_path: Path) -> None:
    """Other agents name a folder where ours name a pattern."""
    for path in ("src/a.txt", "b.txt"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")

    played = work(play, tmp_path, act("ls", path="src"))

    assert '"files":["src/a.txt"]' in played.feedback[1]


def test_the_list_of_tools_stays(play: Player, tmp_path: Path) -> None:
    """What reads long results is offered from the beginning, so that a provider finds what it has cached."""
    program = play.load(PROGRAM)
    added = additions(find_extensions(program, use_installed=False))
    script = [[act("run_command", command="seq 100000")], [act("read_output", id=1)], [done()]]
    services = {"allow": ["shell"], "folder": tmp_path, "added": added}

    played, asked, _ = talk(play, PROGRAM, script, ("openai", "tools"), played=services)
    tools = [json.loads(each.sent)["tools"] for each in asked]

    assert (None, 3) == (played.error, len(tools))
    assert tools[0] == tools[1] == tools[2]
    assert "read_output" in [tool["function"]["name"] for tool in tools[0]]


def test_an_output_is_bounded(play: Player, tmp_path: Path) -> None:
    """Both streams together have at most 30,000 characters in a request, and the rest can be read."""
    both = act("run_command", command="seq 6000; seq 6000 >&2")

    played = work(play, tmp_path, both, allow=["shell"])

    assert 20_000 < len(played.feedback[1]) < 32_000
    assert "read_output" in played.feedback[1]


def test_a_failed_command_is_told_as_failed(play: Player, tmp_path: Path) -> None:
    """To models that answer with actions, and to those that call tools, by the field that their provider has."""
    fails, works = act("run_command", command="ls nowhere"), act("run_command", command="echo well")
    added = additions(find_extensions(play.load(PROGRAM), use_installed=False))
    services = {"allow": ["shell"], "folder": tmp_path, "added": added}

    told = [each.partition(" ")[0] for each in work(play, tmp_path, fails, works, allow=["shell"]).feedback[1:3]]
    _, asked, _ = talk(play, PROGRAM, [[fails], [works], [done()]], ("anthropic", "tools"), played=services)
    contents = [message["content"] for message in json.loads(asked[2].sent)["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    marks = [block.get("is_error", False) for block in blocks if block["type"] == "tool_result"]

    assert (["❌", "✅"], [True, False]) == (told, marks)


def test_a_file_that_changed_since_it_was_read_is_not_overwritten(play: Player, tmp_path: Path) -> None:
    """The model hears who changed it, and when; once it has read it again, it may."""
    (tmp_path / "a.txt").write_text("one\n")
    read, write = act("read_file", path="a.txt"), act("write_file", path="a.txt", content="three\n")
    by_hand = act("run_command", command="echo twotwo > a.txt")

    played = work(play, tmp_path, read, by_hand, write, read, write, write, allow=["write:**", "shell"])

    assert ["write_file"] == played.did("action_failed")
    assert "`a.txt` was changed by a command or somebody else at " in played.feedback[3]
    assert "three\n" == (tmp_path / "a.txt").read_text()


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_resumed_run_knows_what_it_has_read(project: Project, is_changed: bool) -> None:
    """A file that somebody changed while the run was interrupted is not overwritten either."""
    file = project.write("a.txt", "one\n")
    project.write("main.koi", f"{PROGRAM}\nrun Main.go({{}})\n")
    write = act("write_file", path="a.txt", content="three\n")
    project.write("answers.json", json.dumps([act("read_file", path="a.txt"), write, done()]))
    words = ("main.koi", "--answers", "answers.json", "--allow", "write:**")
    stopped = project.koi("run", *words, "--max-requests", "1")
    if is_changed:
        file.write_text("two\n")
    resumed = project.koi("resume", "--max-requests", "9")

    assert (4, 0) == (stopped.returncode, resumed.returncode), stopped.stderr + resumed.stderr
    assert ("two\n" if is_changed else "three\n") == file.read_text()


def test_the_agent_that_changed_a_file_is_named(play: Player, tmp_path: Path) -> None:
    """Another agent of the run, whose change is not overwritten either."""
    program = """
    import "std/code"
    role Worker { can write, can delegate }
    agent Other : Worker { on write() { return (await write_file("a.txt", "theirs")).success } }
    team Two { other = Other }
    agent Main : Worker { uses team Two on go() { playbook "Work." } }
    """
    (tmp_path / "a.txt").write_text("one\n")
    asked = [act("read_file", path="a.txt"), act("other::write"), act("write_file", path="a.txt", content="mine")]

    played = work(play, tmp_path, *asked, program=program, allow=["write:**"])

    assert "`a.txt` was changed by `Other` at " in played.feedback[3]
    assert "theirs" == (tmp_path / "a.txt").read_text()


def test_a_member_keeps_its_name(play: Player, tmp_path: Path) -> None:
    """An event that members handle is theirs, whatever tools of others are called."""
    program = """
    import "std/code"
    role Worker { can write, can delegate }
    agent Library : Worker { on read(args: { title: string }) { return `${args.title}, read` } }
    team Desk { library = Library }
    agent Main : Worker { uses team Desk on go() { playbook "Work." } }
    """

    played = work(play, tmp_path, act("read", title="Emma"), program=program)

    assert '"Emma, read"' in played.feedback[1]


def test_code_is_written_as_it_is(play: Player, tmp_path: Path) -> None:
    """A program, a template and a script call things `args` and `state`; their own names of fields do not matter."""
    shell = "args='b c'; echo ${args} ${state:-off} {{args.task}}"
    played = work(
        play,
        tmp_path,
        act("write_file", path="a.js", content="const a = `${state} ${args.length}`\n"),
        act("write_file", path="b.vue", file_text="{{ state }} / {{ args.task }}"),
        act("edit_file", path="a.js", old_string="${state}", new_string="${state.n} of ${state}"),
        act("run_command", command=shell, id="c"),
        act("write_file", path="c.txt", content="${c.output.stdout}"),
        allow=["write:**", "shell"],
    )

    assert played.error is None
    assert "const a = `${state.n} of ${state} ${args.length}`\n" == (tmp_path / "a.js").read_text()
    assert "{{ state }} / {{ args.task }}" == (tmp_path / "b.vue").read_text()
    assert "b c off {{args.task}}" == (tmp_path / "c.txt").read_text().strip()


def test_a_piece_is_edited(play: Player, tmp_path: Path) -> None:
    """By a piece that stands there once, or by a diff; nothing is done where the place is unclear."""
    (tmp_path / "a.py").write_text("def parse(x):\n    return x\n\n\nx = 1\nx = 1\n")
    actions = [
        act("edit_file", path="a.py", before="parse", after="read"),
        act("edit_file", path="a.py", diff="@@\n-    return x\n+    return x + 1\n"),
        act("edit_file", path="a.py", before="x = 1", after="x = 2"),
        act("edit_file", path="a.py", before="x"),
        act("edit_file", path="a.py", diff="--- a/b.py\n+++ b/b.py\n@@\n-x = 1\n+x = 2\n"),
    ]

    played = work(play, tmp_path, *actions, allow=["write:**"])

    assert (tmp_path / "a.py").read_text() == "def read(x):\n    return x + 1\n\n\nx = 1\nx = 1\n"
    first, second, third, fourth, fifth = played.feedback[1:]
    assert "1\tdef read(x):" in first
    assert "2\t    return x + 1" in second
    assert "stands 2 times" in third
    assert "takes `before` and `after`, or a `diff`" in fourth
    assert "the diff is for `a/b.py`" in fifth


def test_without_a_person_nothing_is_written(play: Player, tmp_path: Path) -> None:
    """The model is told what would allow it."""
    played = work(play, tmp_path, act("write_file", path="src/a.txt", content="x"))

    assert not (tmp_path / "src").exists()
    assert "DENIED: nobody can be asked to let an agent create `src/a.txt`" in played.feedback[1]


def test_a_no_comes_with_its_reason(play: Player, tmp_path: Path) -> None:
    """The model is told why, in the words of the person."""
    person = Person(decision=ApprovalDecision("no", "the name is wrong"))

    played = work(play, tmp_path, act("write_file", path="a.txt", content="x"), host=person)

    assert "did not allow to create `a.txt`: the name is wrong" in played.feedback[1]


def test_from_now_on_is_for_the_folder(play: Player, tmp_path: Path) -> None:
    """The next file in it is not asked about, one elsewhere is."""
    person = Person(decision=ApprovalDecision("always"))
    actions = [act("write_file", path=path, content="x") for path in ("src/a", "src/b/c", "docs/a")]

    work(play, tmp_path, *actions, host=person)

    assert [request.what for request in person.requests] == ["create `src/a`", "create `docs/a`"]


def test_rules_go_before_the_person(play: Player, tmp_path: Path) -> None:
    """Denied is denied, allowed is not asked about, and what may not be read is not found."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("needle")
    restrictions = Restrictions((parse_rule("*:data/**"),))
    actions = [
        act("write_file", path="data/a.txt", content="x"),
        act("write_file", path="src/a.txt", content="x"),
        act("grep", pattern="needle"),
        act("read_file", path="data/a.txt"),
    ]

    played = work(play, tmp_path, *actions, allow=["write:**"], restrictions=restrictions)

    written, made, found, read = played.feedback[1:]
    assert "the rule `*:data/**` of the person denies it" in written
    assert "DENIED" in read
    assert '"created":true' in made
    assert '"count":0' in found


@pytest.mark.parametrize(
    "action",
    [act("write_file", path="a", content="x"), act("run_command", command="touch a"), act("shell", command="touch a")],
    ids=lambda action: action["intent"],
)
def test_a_role_says_what_there_is(play: Player, tmp_path: Path, action: dict[str, Any]) -> None:
    """Who may only read is neither told of other tools nor has them carried out."""
    played = work(play, tmp_path, action, program=READER, allow=["shell", "write:**"])

    assert "needs the permission" in played.feedback[1]
    assert f"- {action['intent']}(" not in played.requests[0].system
    assert not (tmp_path / "a").exists()


def test_a_change_of_somebody_else_is_not_lost(play: Player, tmp_path: Path) -> None:
    """A file that has changed while the person was asked is left as it is."""

    class Slow(Person):
        async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
            (tmp_path / "a.txt").write_text("mine")
            return ApprovalDecision("yes")

    (tmp_path / "a.txt").write_text("old")
    played = work(play, tmp_path, act("write_file", path="a.txt", content="new"), host=Slow())

    assert "changed by somebody else meanwhile" in played.feedback[1]
    assert (tmp_path / "a.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("data", "content", "expected"),
    [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"a\nb", "a\nc", b"a\nc"),
        (b"#!/bin/sh\n", "#!/bin/sh\nls\n", b"#!/bin/sh\nls\n"),
    ],
    ids=["CRLF", "mark", "no end", "mode"],
)
def test_what_a_file_has_is_kept(play: Player, tmp_path: Path, data: bytes, content: str, expected: bytes) -> None:
    """Ends of lines, the byte order mark, a missing last end, the permissions."""
    file = tmp_path / "a.sh"
    file.write_bytes(data)
    file.chmod(0o751)

    work(play, tmp_path, act("write_file", path="a.sh", content=content), allow=["write:**"])

    assert file.read_bytes() == expected
    assert file.stat().st_mode & 0o777 == 0o751


def test_a_new_file_is_as_it_is_given(play: Player, tmp_path: Path) -> None:
    """Ends of lines were made plain, which a batch file does not run with."""
    content = "\ufeff@echo off\r\necho ok\r\nrem\n"
    work(play, tmp_path, act("write_file", path="a.bat", content=content), allow=["write:**"])

    assert content.encode() == (tmp_path / "a.bat").read_bytes()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (".env", "hold secrets"),
        ("../x", "outside of the project"),
        (".koi/runs/x", "closed to agents"),
        ("koi.toml", "only be changed by the person"),
        (".mcp.json", "only be changed by the person"),
        (".koi-config.json", "only be changed by the person"),
        ("latin.txt", "Latin-1"),
        ("binary", "is binary"),
        ("folder", "is a folder"),
        ("pipe", "a pipe or a device"),
        (".", "is the folder of the project"),
        ("a" * 256, "is no path: a name has at most 255 bytes"),
        ("a/" * 600, "is no path"),
    ],
)
def test_what_cannot_be_written_says_why(play: Player, tmp_path: Path, path: str, told: str) -> None:
    """In a sentence, and nothing is changed."""
    (tmp_path / "latin.txt").write_bytes("Käse\n".encode("latin-1") * 3)
    (tmp_path / "binary").write_bytes(b"\0\1\2" * 100)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")

    played = work(play, tmp_path, act("write_file", path=path, content="x"), allow=["write:**", "shell"])

    assert told in played.feedback[1]
    assert "Traceback" not in played.feedback[1]


SURFER = 'import "std/code"\n' + solo("web_access")


@pytest.mark.parametrize(("allow", "told"), [((), "nobody can be asked"), (("web:127.0.0.1",), "no public address")])
def test_a_page_is_asked_about_first(play: Player, tmp_path: Path, allow: tuple[str, ...], told: str) -> None:
    """A host needs a rule or the person; a rule of files and pages opens no private one."""
    played = work(play, tmp_path, act("web_fetch", url="http://127.0.0.1:9/x"), program=SURFER, allow=allow)

    assert told in played.feedback[1]


def test_a_long_file_is_shown_whole(play: Player, tmp_path: Path) -> None:
    """A model reads as much of a file as the tool gives, not what other results are cut to."""
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 1501)))

    played = work(play, tmp_path, act("read_file", path="a.txt"), program=READER)

    assert "1500\tline 1500" in played.feedback[1]


def test_checks_know_the_tools() -> None:
    """The compiler lists what there is without knowing it."""
    assert {tool.function.__name__ for tool in actions.TOOLS} == TOOLS


@pytest.mark.parametrize(("imported", "codes"), [("std/code", []), ("std/tasks", ["E0235"])])
def test_code_has_the_tools_as_actions(tmp_path: Path, imported: str, codes: list[str]) -> None:
    """No check takes them for unknown where they are imported."""
    code = 'agent Main : Worker { on go() { await this.callAction("read_file", { path: "a" }) } }'
    (tmp_path / "a.koi").write_text(f'import "{imported}"\nrole Worker {{ can read }}\n{code}\nrun Main.go()\n')

    found = [problem.code for problem in build.check(str(tmp_path / "a.koi")).diagnostics]

    assert [code for code in found if code == "E0235"] == codes


def test_an_edit_tells_nothing_of_what_may_not_be_read(play: Player, tmp_path: Path) -> None:
    """Neither the lines around it, nor whether a text stands there."""
    (tmp_path / "a.txt").write_text("secret\nb\nc\n")
    restrictions = Restrictions((parse_rule("read:a.txt"),))
    actions = [act("edit_file", path="a.txt", before=text, after="x") for text in ("b", "nothing")]

    played = work(play, tmp_path, *actions, allow=["write:**"], restrictions=restrictions)

    first, second = played.feedback[1:]
    assert first == second
    assert "DENIED: the person did not allow to read `a.txt`" in first
    assert (tmp_path / "a.txt").read_text() == "secret\nb\nc\n"


FILES = (
    """
import "std/files"
import "std/http"
role Worker { can write, can web_access }
agent Main : Worker {
  uses skill Files, FileChanges, Http
  on go(args) { playbook """
    + '"""Do the work."""'
    + """ }
  on look() {
    const told = []
    for (const work of [
      async () => await readFile("data/a.txt"), async () => await writeFile("data/b.txt", "x"),
      async () => await moveFile("c.txt", "data/c.txt"), async () => await fetchText("http://127.0.0.1:9/"),
    ]) {
      try { told.push(await work()) } catch (error) { told.push(error.message) }
    }
    return { told, listed: await listFiles("**/*.txt"), plain: await readFile("c.txt") }
  }
}
"""
)


def test_what_is_denied_is_denied_to_authors(play: Player, tmp_path: Path) -> None:
    """Files and pages by the standard library, in code and by models; the rest is for the author to decide."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("secret plans")
    (tmp_path / "c.txt").write_text("plain")
    restrictions = Restrictions((parse_rule("*:data/**"), parse_rule("web:*")))
    call = act("call_skill", skill="Files", function="readFile", input={"path": "data/a.txt"})

    by_code = play.each(FILES, [], [("Main.look", {})], folder=tmp_path, restrictions=restrictions)[0]
    by_model = play(FILES, [call, done()], folder=tmp_path, restrictions=restrictions)

    assert [text.partition(":")[0] for text in by_code.result["told"]] == [
        "the person did not allow to read `data/a.txt`",
        "the person did not allow to change `data/b.txt`",
        "the person did not allow to change `data/c.txt`",
        "the person did not allow to open `http",
    ]
    assert (by_code.result["listed"], by_code.result["plain"]) == (["c.txt"], "plain")
    assert "DENIED" in by_model.feedback[1]
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == ["a.txt", "c.txt"]
