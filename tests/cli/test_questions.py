"""Questions for leave, on the screen of a terminal: who asks on whose behalf, what would change, and the answers."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from koi_lang.cli.ui.approval_question import Paper, asked_text, decision_in, preview_lines, question_of
from koi_lang.cli.ui.text import ASCII, width
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest
from koi_lang.settings.lasting_rules import LastingRules
from tests.cli.screens import Shown, golden
from tests.playbook.playing import act, ask, done
from tests.projects import Project

PROGRAM = '''
    import "std/code"
    role Worker { can execute, can delegate, can write }
    agent Fixer : Worker { on fix(args: Json) { playbook """Fix it.""" } }
    team All { fixer: Fixer }
    agent Lead : Worker { uses team All  on plan(args: Json) { playbook """Lead them.""" } }
    run Lead.plan({})
    '''
CHAT = PROGRAM.replace("on plan(args: Json)", "on chat(args: { message: string })").partition("    run ")[0]
LINES = [f"line {number}" for number in range(1, 31)]


def fixing(project: Project, *actions: Any, columns: int = 70, rows: int = 16, **environment: str) -> Shown:
    """A run in a terminal in which Lead has Fixer do something."""
    project.write("a.koi", PROGRAM)
    answers = {"Lead them": [ask("fixer::fix"), done()], "Fix it": [*actions, done()]}
    project.write("answers.json", json.dumps(answers))
    (project.folder / "src").mkdir()
    project.write("src/list.txt", "\n".join(LINES) + "\n")
    return Shown(project.folder, ["run", "a.koi", "--answers", "answers.json"], columns, rows, **environment)


def test_a_change_is_shown(project: Project, accept: bool) -> None:
    """The difference as far as there is room, who asked whom, all of it by `d`, and a refusal with its reason."""
    text = "\n".join(line.upper() for line in LINES) + "\n"
    shown = fixing(project, act("write_file", path="src/list.txt", content=text))

    screens = [shown.until("Allow?")]
    shown.child.send("d\r")
    screens.append(shown.until("+LINE 30"))
    shown.child.send("n because it shouts\r")
    shown.end()
    actual = "=====\n".join(screens)

    assert golden("change", actual, accept) == actual
    assert b"\x1b[32m+LINE 1" in shown.written
    assert "line 1\n" == (project.folder / "src/list.txt").read_text()[:7]
    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    assert "the person did not allow to replace `src/list.txt`: it shouts" in journal.read_text()
    asked, given = [line for line in project.koi("runs", "show", "--full").stdout.splitlines() if "approval-1" in line]
    assert "Lead.plan" in asked
    assert "it shouts" in given


def test_what_is_allowed_from_now_on(project: Project) -> None:
    """The question names the rule of `always`, which counts for the next change and for nothing else."""
    twice = [act("write_file", path=f"src/{name}.txt", content=name) for name in ("a", "b")]
    shown = fixing(project, *twice, act("write_file", path="c.txt", content="c"), NO_COLOR="1")

    first = shown.until("Allow?")
    shown.child.send("a\r")
    shown.until("`Fixer` wants to create `c.txt`")
    shown.child.send("\r")
    shown.end()

    assert "[a]lways (changes below `src`)" in first
    assert b"\x1b[32m" not in shown.written
    assert ["a", "b"] == [(project.folder / f"src/{name}.txt").read_text() for name in ("a", "b")]
    assert not (project.folder / "c.txt").exists()


def test_what_is_allowed_survives_an_interruption(project: Project) -> None:
    """A rule of `always` stands in the journal: a run that goes on, with nobody there, does the like of it."""
    os.mkfifo(project.folder / "go")
    wait = act("shell", command="cat go", description="to wait")
    writes = [act("write_file", path=f"src/{name}.txt", content=name) for name in ("a", "b")]
    shown = fixing(project, writes[0], wait, writes[1], act("write_file", path="c.txt", content="c"))
    shown.until("create `src/a.txt`")
    shown.child.send("a\r")
    shown.until("run `cat go`")
    shown.child.kill(signal.SIGKILL)
    shown.end()

    outcome = project.koi("resume", "--on-doubt", "retry")

    assert 0 == outcome.returncode, outcome.stderr
    made = [name for name in ("src/a.txt", "src/b.txt", "c.txt") if (project.folder / name).exists()]
    assert ["src/a.txt", "src/b.txt"] == made


def test_a_command_of_somebody_who_was_asked(project: Project) -> None:
    """A command is shown whole, with who asked whom."""
    shown = fixing(project, act("shell", command="touch made", description="to see"))

    screen = shown.until("Allow?")
    shown.child.send("y\r")
    shown.end()

    assert "`Fixer` wants to run `touch made`: to see\n  asked for by `Lead.plan`\nAllow?" in screen
    assert (project.folder / "made").exists()


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("", ApprovalDecision("no")),
        (" YES ", ApprovalDecision("yes")),
        ("a", ApprovalDecision("always")),
        ("n because it shouts", ApprovalDecision("no", "it shouts")),
        ("No, use pathlib", ApprovalDecision("no", "use pathlib")),
        ("no: y", ApprovalDecision("no", "y")),
        ("no problem", ApprovalDecision("no", "problem")),
        ("yes, but not today", None),
        ("not yet", None),
        ("now", None),
        ("also check this", None),
    ],
)
def test_answers(text: str, decision: ApprovalDecision | None) -> None:
    """Only a clear yes allows something; whatever begins with no does not."""
    assert decision == decision_in(text)


def test_nothing_hides_in_a_question() -> None:
    """Names, descriptions and differences cannot look like an answer, nor put anything out of sight."""
    hostile = "\x1b[2J\r\u202eAllow? [y]es\u200b"
    request = ApprovalRequest(
        f"edit `a`{hostile}",
        f"why{hostile}\nAllow? y",
        f"Good{hostile}",
        f"+Allow? y{hostile}\n{'x' * 30}",
        chain=(hostile,),
    )

    rows = preview_lines(request.preview, Paper(ASCII, 20))
    question = question_of(request, ASCII)

    assert all(row.startswith("| ") and width(row) <= 20 for row in rows)
    assert ("+Allow? y\\x1b[2J\\r\\u202eAllow? [y]es\\u200b" + "x" * 30) == "".join(row[2:] for row in rows)
    assert [True] * len(question) == [character.isprintable() or character == "\n" for character in question]
    assert ["Allow? [y]es, [N]o, or `n because ...`"] == [
        row for row in question.split("\n") if row.startswith("Allow")
    ]


def test_what_is_out_of_sight_is_counted() -> None:
    """Of a long line, too, and on the lowest terminal; a long way of callers is told at both ends."""
    preview = f"+{'x' * 999}"

    rows = preview_lines(preview, Paper(ASCII, 12, 1), 9)
    chain = tuple(f"A{number}.go" for number in range(20))

    assert (["| " + "+" + "x" * 9, *["| " + "x" * 10] * 2, "(97 more lines; `d` shows all of them)"]) == rows
    assert 100 == len(preview_lines(preview, Paper(ASCII, 12)))
    told = asked_text(ApprovalRequest("dig", chain=chain), ASCII)
    assert "`A0.go` -> `A1.go` -> (12 more) -> `A14.go`" in told


def test_a_change_is_shown_in_a_conversation(project: Project) -> None:
    """The same in `koi chat`: the end of what does not fit is counted, `d` shows it, a refusal has a reason."""
    project.write("a.koi", CHAT)
    text = "\n".join(LINES) + "\n"
    write = act("write_file", path="src/list.txt", content=text)
    project.write("answers.json", json.dumps({"Lead them": [ask("fixer::fix"), done()], "Fix it": [write, done()]}))
    shown = Shown(project.folder, ["chat", "a.koi", "--answers", "answers.json"], 70, 16)
    shown.screen.write_process_input = shown.child.send
    shown.until("idle")
    shown.child.send("go\r")

    first = shown.until("allow?")
    shown.child.send("d\r")
    shown.until("+line 30")
    shown.child.send("no, use csv\r")
    shown.until("Lead: fixer::fix")
    shown.child.send("/quit\r")
    shown.end()

    assert "more lines; `d` shows all of them)\n`Fixer` wants to create `src/list.txt`\n" in first
    choices = "  1. yes\n  2. always (changes below `src`)\n  3. no, or `n because …`\n"
    assert f"  asked for by `Lead.chat`\n{choices}" in first
    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    assert "the person did not allow to create `src/list.txt`: use csv" in journal.read_text()


def test_what_is_given_again_can_be_kept(project: Project) -> None:
    """The second run asks whether to keep the rule; later ones need nobody, unless a rule denies it."""
    write = act("write_file", path="src/a.txt", content="a")
    shown = fixing(project, write)
    shown.until("Allow?")
    shown.child.send("a\r")
    assert "Keep" not in shown.end()
    (project.folder / "src/a.txt").unlink()

    again = Shown(project.folder, ["run", "a.koi", "--answers", "answers.json"], 70, 16)
    again.until("Allow?")
    again.child.send("a\r")
    again.until("Allow changes below `src` in later runs of this project, too?")
    again.child.send("y\r")
    again.end()
    (project.folder / "src/a.txt").unlink()

    assert 0 == project.koi("run", "a.koi", "--answers", "answers.json").returncode
    assert (project.folder / "src/a.txt").exists()
    (project.folder / "src/a.txt").unlink()
    project.write("koi.toml", '[permissions]\ndeny = ["write:src/**"]\n')
    project.koi("run", "a.koi", "--answers", "answers.json")
    assert not (project.folder / "src/a.txt").exists()


def test_nothing_is_kept_in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the configuration lies in the project, an agent could write it; a broken file keeps nothing."""
    monkeypatch.setenv("KOI_CONFIG_DIR", str(tmp_path / "own"))
    inside, project = LastingRules.of(tmp_path), LastingRules.of(tmp_path / "project")
    for rules in (inside, project):
        rules.note_given("write=src/")
        rules.keep("write=src/")

    assert ([], ["write=src/"]) == (inside.rules(), project.rules())
    file = project.record.file
    assert file is not None
    assert 0o600 == file.stat().st_mode & 0o777
    file.write_text("{")
    assert [] == project.rules()


def test_an_empty_line_chooses_nothing(project: Project) -> None:
    """A question with options is asked again until a line says something; the case of letters does not count."""
    question = act("prompt_user", question="Which colour?", options=["red", "green"], id="c")
    shown = fixing(project, question, act("print", message="You chose ${c.output.answer}"))

    shown.until("Which colour?")
    shown.child.send("\r")
    shown.child.send("GREEN\r")
    shown.until("You chose green")
    shown.end()
