"""Long output of commands: all of it for references, both ends for the model, a file of the run with the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.actions import command_output
from koi_lang.runtime.outputs import run_outputs
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


def test_all_of_a_long_output_is_in_its_result(play: Player, tmp_path: Path) -> None:
    """References and code have every byte; a file that only its owner reads has it, too."""
    found = result(play, tmp_path, long("seq -f %.0f-abcdefghijklmnopqrs 1 9999 | head -c 108894"))
    file = tmp_path / found["stdoutFile"]

    assert (108_894, ".koi/outputs/abc/1") == (len(found["stdout"]), found["stdoutFile"])
    assert found["stdout"] == file.read_text()
    assert (0o600, 0o700) == (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777)


def test_the_model_is_shown_both_ends(play: Player, tmp_path: Path) -> None:
    """It is told the size, the number, and how to read more; a result takes no more room than before."""
    played = play(PROGRAM, [long(f"({LONG}) >&2; exit 3"), done()], allow=["shell"], folder=tmp_path, id="abc")
    told = played.feedback[1]

    assert '"stderr":\n> first\n> 0000' in told
    assert "0001000\n> last\n(output 1" in told
    assert f"… output 1: {LENGTH:,} bytes, 2,003 lines, both ends shown …" in told
    assert '{"intent":"read_output","data":{"id":1,"from":' in told
    assert 5000 < len(told) < 6500


def test_short_output_needs_no_file(play: Player, tmp_path: Path) -> None:
    """What a model could be told as a whole is in no file."""
    found = result(play, tmp_path, long("head -c 50000 /dev/zero | tr '\\0' x"))

    assert ({"success", "exitCode", "stdout", "stderr"}, 50_000) == (set(found), len(found["stdout"]))
    assert not (tmp_path / ".koi").exists()


@pytest.mark.parametrize("many", [1, 40_000])
def test_signs_for_terminals_are_left_out(many: int, play: Player, tmp_path: Path) -> None:
    """Colours, movements, titles and links are no text; what only looks like them stays."""
    coloured = r"\033[1;31mred\033[0m \033]0;title\007a\033[2Kb \033]8;;http://x\033\\link\033]8;;\033\\ \033(Bc [31m"

    found = result(play, tmp_path, long(f"for i in $(seq {many}); do printf '{coloured}'; done"))

    assert "red ab link c [31m" * many == found["stdout"]


def test_many_lines_are_long(play: Player, tmp_path: Path) -> None:
    """Output of more than 2,000 lines is kept however short they are."""
    found = result(play, tmp_path, long("seq 2001"))

    assert "1\n2\n3\n" == (tmp_path / found["stdoutFile"]).read_text()[:6]


def test_output_of_a_command_that_takes_too_long(play: Player, tmp_path: Path) -> None:
    """What a command has written before its time was up is kept, too."""
    found = result(play, tmp_path, long(f"{LONG}; sleep 60", timeout_ms=700))

    assert LENGTH == len((tmp_path / found["stdoutFile"]).read_text()) == len(found["stdout"])


def test_secrets_are_not_in_the_file(play: Player, tmp_path: Path) -> None:
    """Secrets are taken out as they are out of the journal, wherever they stand."""
    redact = redactor({"DB_PASSWORD": "correct-horse"})
    found = result(play, tmp_path, long(LONG.replace("the", "correct-horse-battery")), redact=redact)
    text = (tmp_path / found["stdoutFile"]).read_text()

    assert ("correct-horse" in text, "[redacted]" in text) == (False, True)


def test_a_flood_is_bounded(play: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an output that is too long both ends are kept, and the text says how much is not, and why."""
    monkeypatch.setattr(command_output, "MAX_HEAD_OF_LONG_BYTES", 60_000)
    monkeypatch.setattr(command_output, "MAX_TAIL_OF_LONG_BYTES", 10_000)
    found = result(play, tmp_path, long())

    assert f"… ({LENGTH - 70_000} bytes left out; of one output 10,000,000 bytes are kept) …" in found["stdout"]
    assert found["stdout"].endswith("\nlast\n")
    assert found["stdout"] == (tmp_path / found["stdoutFile"]).read_text()


def test_a_run_keeps_only_so_much(play: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once there is no room for more, commands work as ever: both ends of 15,000 bytes, and the reason."""
    monkeypatch.setattr(run_outputs, "MAX_RUN_BYTES", 200_000)
    floods = [long(f"echo {n}; {LONG}", id=f"x{n}") for n in range(3)]
    found = result(play, tmp_path, *floods, long())
    kept = (tmp_path / ".koi/outputs/abc").iterdir()

    assert [LENGTH + 2, LENGTH + 2] == sorted(file.stat().st_size for file in kept)
    assert "stdoutFile" not in found
    assert f"… ({LENGTH - 30_000} bytes left out; a run keeps" in found["stdout"]


def test_the_same_output_is_kept_once(play: Player, tmp_path: Path) -> None:
    """A command that writes what another one has written needs no second file."""
    found = result(play, tmp_path, long(id="y"), long())

    assert ".koi/outputs/abc/1" == found["stdoutFile"]
    assert ["1"] == [file.name for file in (tmp_path / ".koi/outputs/abc").iterdir()]


def test_binary_output_is_kept_as_text(play: Player, tmp_path: Path) -> None:
    """Bytes that are no text become marks, so that everybody can read the file."""
    found = result(play, tmp_path, long("head -c 60000 /dev/zero | tr '\\0' '\\377'"))

    assert "\ufffd" * 60_000 == (tmp_path / found["stdoutFile"]).read_text("utf-8")


@pytest.mark.parametrize("name", [".koi/outputs/abc", ".koi/outputs", ".koi"])
def test_a_link_in_place_of_the_folder(play: Player, tmp_path: Path, name: str) -> None:
    """Nothing is written where somebody has put a link to another folder, and the command does not fail."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "other").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "other")
    found = result(play, tmp_path, long())

    assert ("stdoutFile" in found, 30_000 < len(found["stdout"]) < 30_100) == (False, True)
    assert [] == list((tmp_path / "other").iterdir())


def test_without_a_journal_files_end_with_the_run(play: Player, tmp_path: Path) -> None:
    """While a run goes on the output can be read; nothing is left behind."""
    read = act("read_output", data={"id": 1, "from": 1001, "count": 2}, id="n")
    answers = [{"batch": [long(), read, act("return", data={"r": "${n.output.text}"})]}]
    played = play(PROGRAM, answers, allow=["shell"], folder=tmp_path)

    assert {"r": f"{1000:040}\nthe middle\n"} == played.result
    assert [] == list((tmp_path / ".koi").iterdir())


def test_files_end_with_the_journal(project: Project) -> None:
    """What a recorded run has kept is there for `koi resume`, is not needed by others, and goes with its journal."""
    project.write("a.koi", PROGRAM.replace("go(args)", "go(args: Json)") + "run Main.go({})\n")
    told = act("print", message="${x.output.stdoutFile} ${x.output.stdout.length}")
    project.write("answers.json", json.dumps([{"batch": [long(), told, done()]}]))
    ran = project.koi("run", "a.koi", "--answers", "answers.json", "--allow", "shell")
    replayed = project.koi("replay", "last")
    file = project.folder / ran.stdout.split()[0]
    before = file.exists()
    deleted = project.koi("runs", "delete", "last", "--yes")

    assert (0, 0, True, 0) == (ran.returncode, replayed.returncode, before, deleted.returncode)
    assert ran.stdout == replayed.stdout
    assert f" {LENGTH}\n" == ran.stdout[ran.stdout.index(" ") :]
    assert {".gitignore", "runs", "snapshots", "live"} >= {each.name for each in (project.folder / ".koi").iterdir()}
    assert [] == list((project.folder / ".koi/runs").iterdir())
