"""Long output of commands: in a file beside the journal, without secrets, and within bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.actions import command_output
from tests.playbook.playing import Player, act, done, solo
from tests.projects import Project

PROGRAM = solo("execute")
LONG = "echo first; seq -f %040g 1000; echo the middle; seq -f %040g 1000; echo last"
LENGTH = len("first\nthe middle\nlast\n") + 2000 * 41


def long(text: str = LONG, **fields: Any) -> dict[str, Any]:
    """A command that writes much."""
    return act("shell", command=text, description="to see", **{"id": "x", **fields})


def result(play: Player, folder: Path, *actions: Any, **services: Any) -> Any:
    """What the first of some commands gives, in a run that is recorded."""
    answers = [{"batch": [*actions, act("return", data={"r": "${x.output}"})]}]
    usual = {"allow": ["shell"], "folder": folder, "detailed": True, "id": "abc"}
    played = play(PROGRAM, answers, **{**usual, **services})
    assert played.error is None
    return played.result["r"]


def test_long_output_is_in_a_file(play: Player, tmp_path: Path) -> None:
    """What is left out of a result stands in a file that only its owner reads; the result and its text name it."""
    found = result(play, tmp_path, long())
    file = tmp_path / found["stdoutFile"]

    assert (".koi/runs/abc.output/1-stdout.txt", LENGTH) == (found["stdoutFile"], len(file.read_text()))
    assert f"bytes left out; all of it in `{found['stdoutFile']}`) …" in found["stdout"]
    assert ("middle" in found["stdout"], " middle" in file.read_text()) == (False, True)
    assert (0o600, 0o700) == (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777)


def test_the_model_sees_where_it_is(play: Player, tmp_path: Path) -> None:
    """A model is shown only the beginning of a result, and the name of the file is part of that."""
    played = play(PROGRAM, [long(f"({LONG}) >&2; exit 3"), done()], allow=["shell"], folder=tmp_path, id="abc")

    assert '"stderrFile":".koi/runs/abc.output/1-stderr.txt"' in played.feedback[1]


def test_short_output_needs_no_file(play: Player, tmp_path: Path) -> None:
    """What a result holds as a whole is in no file."""
    found = result(play, tmp_path, long("head -c 30000 /dev/zero | tr '\\0' x"))

    assert ({"success", "exitCode", "stdout", "stderr"}, 30_000) == (set(found), len(found["stdout"]))
    assert not (tmp_path / ".koi").exists()


def test_output_of_a_command_that_takes_too_long(play: Player, tmp_path: Path) -> None:
    """What a command has written before its time was up is in the file, too."""
    found = result(play, tmp_path, long(f"{LONG}; sleep 60", timeout_ms=700))

    assert LENGTH == len((tmp_path / found["stdoutFile"]).read_text())


def test_secrets_are_not_in_the_file(play: Player, tmp_path: Path) -> None:
    """Secrets are taken out as they are out of the journal, wherever they stand."""
    redact = redactor({"DB_PASSWORD": "correct-horse"})
    found = result(play, tmp_path, long(LONG.replace("the", "correct-horse-battery")), redact=redact)
    text = (tmp_path / found["stdoutFile"]).read_text()

    assert ("correct-horse" in text, "[redacted]" in text) == (False, True)


def test_files_are_bounded(play: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file holds the beginning of a flood, a run only so many of them; what is not kept is counted as ever."""
    monkeypatch.setattr(command_output, "MOST_IN_A_FILE", 50_000)
    monkeypatch.setattr(command_output, "MOST_OF_A_RUN", 120_000)
    found = result(play, tmp_path, *(long(id=f"x{n}") for n in range(3)), long())
    kept = sorted((tmp_path / ".koi/runs/abc.output").iterdir())

    assert [50_000, 50_000] == [file.stat().st_size for file in kept]
    assert "stdoutFile" not in found
    assert f"… ({LENGTH - 30_000} bytes left out) …" in found["stdout"]
    assert "; the first 50,000 bytes in `.koi" in result(play, tmp_path, long(), id="other")["stdout"]


def test_binary_output_is_kept_as_text(play: Player, tmp_path: Path) -> None:
    """Bytes that are no text become marks, so that everybody can read the file."""
    found = result(play, tmp_path, long("head -c 40000 /dev/zero | tr '\\0' '\\377'"))

    assert "\ufffd" * 40_000 == (tmp_path / found["stdoutFile"]).read_text("utf-8")


def test_a_link_in_place_of_the_folder(play: Player, tmp_path: Path) -> None:
    """Nothing is written where somebody has put a link to another folder, and the command does not fail."""
    (tmp_path / ".koi/runs").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / ".koi/runs/abc.output").symlink_to(tmp_path / "other")

    assert "stdoutFile" not in result(play, tmp_path, long())
    assert [] == list((tmp_path / "other").iterdir())


def test_without_a_journal_files_end_with_the_run(play: Player, tmp_path: Path) -> None:
    """While a run goes on its later commands find the output of earlier ones; nothing is left behind."""
    again = act("shell", command="cat ${x.output.stdoutFile} | wc -c", description="to count", id="n")
    answers = [{"batch": [long(), again, act("return", data={"r": "${n.output.stdout}"})]}]
    played = play(PROGRAM, answers, allow=["shell"], folder=tmp_path)

    assert {"r": f"{LENGTH}\n"} == played.result
    assert [] == list((tmp_path / ".koi/runs").iterdir())


def test_files_end_with_the_journal(project: Project) -> None:
    """What a recorded run has kept is there for `koi resume`, is named by `koi replay`, and goes with its journal."""
    project.write("a.koi", PROGRAM.replace("go(args)", "go(args: Json)") + "run Main.go({})\n")
    told = act("print", message="${x.output.stdoutFile}")
    project.write("answers.json", json.dumps([{"batch": [long(), told, done()]}]))
    ran = project.koi("run", "a.koi", "--answers", "answers.json", "--allow", "shell")
    replayed = project.koi("replay", "last")
    file = project.folder / ran.stdout.strip()
    before = file.exists()
    deleted = project.koi("runs", "delete", "last", "--yes")

    assert (0, 0, True, 0) == (ran.returncode, replayed.returncode, before, deleted.returncode)
    assert ran.stdout == replayed.stdout
    assert [] == list((project.folder / ".koi/runs").iterdir())
