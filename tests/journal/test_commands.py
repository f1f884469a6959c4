"""`koi run --record` and `koi runs`, as a person uses them."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import replace
from threading import Timer

import pytest

from koi_lang.cli.runs import _duration
from koi_lang.events import Event, RunStarted
from koi_lang.runtime.journal.entries import header_of
from koi_lang.runtime.journal.line_ends import unseal_line
from koi_lang.runtime.journal.reader import open_journal, read, read_header
from koi_lang.runtime.journal.store import delete
from koi_lang.runtime.journal.writer import Writer
from koi_lang.system.file_locks import try_lock
from tests.journal.conftest import ANSWERS, HEADER, PROGRAM, Recorded
from tests.projects import Project

DOUBLE, PRINT, RETURN = (("Lead.start#1", f"{name}#1") for name in ("worker::double", "print", "return"))


def test_a_recorded_run_holds_what_happened(recorded: Recorded) -> None:
    """The header says what was run, and every action has its beginning with fields and its end with the result."""
    journal = read(recorded.path)
    header = journal.header
    actions = [(e.kind, e.path, e.data.get("fields", e.data.get("result"))) for e in journal.entries if e.kind in KINDS]

    assert (recorded.path.stem, ("run", "--record", "--answers", "answers.json", "a.koi")) == (header.run, header.words)
    assert str((recorded.project.folder / "a.koi").resolve()) == header.program
    assert [
        ("begun", DOUBLE, {"data": {"n": 21}}),
        ("done", DOUBLE, {"value": 42}),
        ("begun", PRINT, {"message": 42}),
        ("done", PRINT, {"printed": True, "message": "42"}),
        ("begun", RETURN, {"data": {"state_updates": {"total": 42}}}),
        ("done", RETURN, {}),
    ] == actions


KINDS = ("begun", "done", "failed")


def test_a_recorded_run_holds_the_answers(recorded: Recorded) -> None:
    """The text of every answer is there, word for word, and what the model was told, once."""
    answers = [e.data["text"] for e in read(recorded.path).entries if e.kind == "model_answered"]

    assert ANSWERS == [json.loads(text) for text in answers]
    assert 1 == recorded.path.read_text("utf-8").count("Double ⟨args.n⟩ and print it.")


def test_a_changed_program_has_another_hash(recorded: Recorded) -> None:
    """The hash in the header is that of the content of all files."""
    before = read(recorded.path)
    recorded.path.unlink()
    recorded.project.write("a.koi", PROGRAM + "\n// changed")
    recorded.project.koi("run", "--record", "--answers", "answers.json", "a.koi")

    assert before.header.hash != read(recorded.path).header.hash


def test_runs_are_recorded_without_being_asked(project: Project) -> None:
    """A journal is written unless `--no-record` says not to; nothing is printed about it without `--verbose`."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps(ANSWERS))
    words = ("--answers", "answers.json", "a.koi")
    plain, without = project.koi("run", *words), project.koi("run", "--no-record", *words)
    verbose = project.koi("run", "--record", "--verbose", *words)

    assert [("42\n", ""), ("42\n", "")] == [(done.stdout, done.stderr) for done in (plain, without)]
    assert 2 == len(list((project.folder / ".koi" / "runs").iterdir()))
    assert ("42\n", 1) == (verbose.stdout, len(re.findall(r"^journal: .*\.jsonl$", verbose.stderr, re.MULTILINE)))
    assert "fields=" not in verbose.stderr


def test_a_run_that_cannot_be_recorded_goes_on(project: Project) -> None:
    """Where no journal can be written the run says so once and goes on; one that must be recorded does not begin."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps(ANSWERS))
    project.write(".koi/runs", "a file where a folder should be")
    words = ("--answers", "answers.json", "a.koi")
    usual, required = project.koi("run", *words), project.koi("run", "--record", *words)

    assert ("42\n", 1) == (usual.stdout, usual.stderr.count("cannot be written"))
    assert ("", 1) == (required.stdout, required.returncode)
    assert "run with `--no-record`" in required.stderr


def test_actions_in_loops_are_recorded(project: Project) -> None:
    """What a loop or branch carries out has entries of its own, inside of it."""
    project.write("a.koi", PROGRAM)
    again = {"intent": "repeat", "count": 2, "actions": [{"intent": "print", "message": "n ${iteration}"}]}
    project.write("answers.json", json.dumps([{"batch": [again, {"intent": "return", "data": {}}]}]))
    assert "n 1\nn 2\n" == project.koi("run", "--record", "--answers", "answers.json", "a.koi").stdout

    begun = [
        (e.path[1:], e.data["fields"].get("message")) for e in read(Recorded(project).path).entries if e.kind == "begun"
    ]

    inside = [(("repeat#1", f"print#{n}"), f"n {n}") for n in (1, 2)]
    assert [(("repeat#1",), None), *inside, (("return#1",), None)] == begun


def test_secrets_of_a_run_stay_out(project: Project) -> None:
    """Secrets from the environment, `.env` and the command line are in no byte of a journal."""
    text = PROGRAM.replace("Double", "Use from-environment, from-dotenv-file, {{args.password}} to double")
    project.write("a.koi", text)
    project.write(".env", "SOME_API_KEY=from-dotenv-file\n")
    project.write(
        "answers.json", json.dumps([{"intent": "return", "data": "from-environment from-dotenv-file by-hand-12"}])
    )
    words = (
        "-m",
        "koi_lang",
        "run",
        "--record",
        "--debug",
        "--arg",
        "password=by-hand-12",
        "--answers",
        "answers.json",
    )
    done = project.fork(*words, "a.koi", MY_TOKEN="from-environment")
    written = Recorded(project).path.read_bytes()

    assert 0 == done.returncode
    assert [] == [s for s in (b"from-environment", b"from-dotenv-file", b"by-hand-12") if s in written]
    assert {"password": "[redacted]"}.items() <= read(Recorded(project).path).entries[1].data["args"].items()


def test_list_shows_how_runs_ended(recorded: Recorded) -> None:
    """Each run has a line with state, requests, tokens and cost; the latest is the last."""
    recorded.project.write("b.koi", 'role R { can go }\nagent B : R { on go() { throw new Error("no") } }\nrun B.go()')
    first = recorded.path.stem
    assert 1 == recorded.project.koi("run", "--record", "b.koi").returncode
    folder = recorded.project.folder / ".koi" / "runs"
    counts = [e.data["tokens"] for e in read(folder / f"{first}.jsonl").entries if e.kind == "model_answered"]
    tokens = sum(count["input"] + count["output"] for count in counts)
    cut = (folder / f"{first}.jsonl").read_bytes().splitlines(keepends=True)[:-1]
    (folder / "cut.jsonl").write_bytes(b"".join(cut))

    heading, *rows = recorded.runs("list").splitlines()

    assert heading.split() == ["id", "started", "program", "state", "time", "requests", "tokens", "cost"]
    assert Counter(["ok", "interrupted", "failed"]) == Counter(row.split()[4] for row in rows)
    assert ["b.koi", "failed"] == rows[-1].split()[3:5]
    assert ["2", f"{tokens:,}", "$0.0000"] == next(row.split()[6:] for row in rows if row.startswith(first))


def test_list_goes_on_after_a_foreign_file(recorded: Recorded) -> None:
    """A file that is no journal is told on stderr and does not hide the others."""
    (recorded.path.parent / "foreign.jsonl").write_text("hello\n")
    done = recorded.project.koi("runs")

    assert (0, 2) == (done.returncode, len(done.stdout.splitlines()))
    assert "warning: `foreign.jsonl` does not begin as a journal does\n" == done.stderr


def test_show_tells_what_happened(recorded: Recorded) -> None:
    """The facts of a run come first, then one line an entry; long ones are cut unless `--full`."""
    short, full = recorded.runs("show", recorded.path.stem[:6]), recorded.runs("show", "--full", "last")

    assert "state     ok after " in short
    assert "command   koi run --record --answers answers.json a.koi\n" in short
    assert re.search(r"\d\.\d{3}  begun            Lead\.start#1 / print#1  intent=\"print\"", short)
    assert (True, False) == tuple(any(line.endswith("…") for line in shown.splitlines()) for shown in (short, full))
    assert len(read(recorded.path).entries) == len(short.partition("\n\n")[2].splitlines())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", [("list",), ("show",), ("show", "--full"), ("tree",), ("tail",)])
def test_a_journal_does_not_steer_the_terminal(recorded: Recorded, words: tuple[str, ...]) -> None:
    """A journal may have been written by anybody; names, places and fields are shown without escapes."""
    header, *entries = map(json.loads, recorded.path.read_text().splitlines())
    changed = {"program": header["program"] + ESCAPES, "version": ESCAPES, "words": [ESCAPES]}
    strange = [{**each, "path": [*each["path"], ESCAPES], ESCAPES: ESCAPES} for each in entries]
    strange += [{**entries[-1], "kind": ESCAPES}]
    recorded.path.write_text("".join(f"{json.dumps(line)}\n" for line in ({**header, **changed}, *strange)))

    shown = recorded.project.koi("runs", *words).stdout

    assert shown.replace("\n", "").isprintable()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "words", [("replay", "last"), ("resume", "--trust"), ("resume",), ("replay", "last", "--debug")]
)
def test_problems_of_a_journal_do_not_steer_the_terminal(recorded: Recorded, words: tuple[str, ...]) -> None:
    """Nor does what is told when it cannot be used: names that stand in a journal are shown without escapes."""
    header, *entries = map(json.loads, recorded.path.read_text().splitlines())
    changed = {"program": header["program"] + ESCAPES, "words": [ESCAPES]}
    left = entries[: len(entries) // 2]
    recorded.path.write_text("".join(f"{json.dumps(line)}\n" for line in ({**header, **changed}, *left)))

    failed = recorded.project.koi(*words)

    assert 0 != failed.returncode
    assert failed.stderr.replace("\n", "").isprintable()


ESCAPES = "\x1b]0;title\x07\x1b[8m\x9b31m\u202e"


def test_tail_shows_the_last_entries(recorded: Recorded) -> None:
    """`-n` says how many; following a run that has ended ends at once."""
    two, followed = recorded.runs("tail", "-n", "2", "last"), recorded.runs("tail", "-f", "-n", "1", "last")

    assert ["handler_ended", "run_ended"] == [line.split()[1] for line in two.splitlines()]
    assert ["run_ended"] == [line.split()[1] for line in followed.splitlines()]


def test_export_copies_what_can_be_read(recorded: Recorded) -> None:
    """A damaged line is left out and told, and the program is named from there; no file is written over."""
    whole = recorded.path.read_bytes()
    recorded.path.write_bytes(whole + b"broken\n" + whole.splitlines(keepends=True)[-1][:9])
    done = recorded.project.koi("runs", "export", "last", "-o", "out/run.jsonl")
    again = recorded.runs("export", "last", "-o", "out/run.jsonl")

    assert done.stderr.endswith("\nwarning: 2 lines left out\n")
    commands = [command.split()[1:] for command in re.findall("`([^`]+)`", done.stderr)]
    assert ["test", "replay"] == [command[0] for command in commands]
    assert [0, 0] == [recorded.project.koi(*command).returncode for command in commands]
    exported = (recorded.project.folder / "out" / "run.jsonl").read_bytes()
    assert [unseal_line(line) for line in whole.splitlines(True)[1:]] == [
        unseal_line(line) for line in exported.splitlines(True)[1:]
    ]
    assert b'"mac"' not in exported
    assert replace(read_header(recorded.path), program="../a.koi") == header_of(exported.splitlines(True)[0], "run")
    assert again.startswith("exit 2: error: `out/run.jsonl` exists")


def test_repair_by_command(recorded: Recorded) -> None:
    """A torn line is cut off and kept; a whole file is left as it is."""
    whole = recorded.path.read_bytes()
    recorded.path.write_bytes(whole + b'{"n":')
    shown = recorded.project.koi("runs", "show", "last").stderr

    assert f"warning: the last line is torn; `koi runs repair {recorded.path.stem}` cuts it off\n" == shown
    assert f"5 bytes of a torn line were cut off and added to {recorded.path.stem}.torn\n" == recorded.runs(
        "repair", "last"
    )
    assert ("every line is sound\n", whole) == (recorded.runs("repair", "last"), recorded.path.read_bytes())


def test_delete_asks_first(recorded: Recorded) -> None:
    """Only `y` or `--yes` removes a journal, with what was cut off it."""
    path = recorded.path
    path.with_suffix(".torn").write_bytes(b"x")

    assert recorded.runs("delete", "last", stdin="n\n").startswith("exit 1")
    assert path.exists()
    assert f"removed {path.stem}\n" == recorded.runs("delete", "--yes", path.stem)
    assert [] == list(path.parent.iterdir())


def test_a_look_at_a_run_does_not_keep_it_from_being_deleted(recorded: Recorded) -> None:
    """Whoever looks whether a run goes on holds its lock for an instant, which is no run."""
    path = recorded.path
    with open_journal(path) as looked_at:
        assert try_lock(looked_at.fileno(), shared=True)
        ends = Timer(0.05, looked_at.close)
        ends.start()
        delete(path)
        ends.join()

    assert not path.exists()


def test_old_journals_are_deleted(recorded: Recorded) -> None:
    """All that nothing was added to for so long are removed, after a question; one that is being written stays."""
    path, day_s = recorded.path, 86_400
    for run, days in (("old", 40), ("new", 20), ("live", 90)):
        header = replace(HEADER, run=run, started=time.time() - days * day_s)
        writer = Writer(path.with_name(f"{run}.jsonl"), header, str, print)
        writer(Event(1, header.started + 5 * day_s, run, "", RunStarted()))
        if run != "live":
            writer.close()

    asked = recorded.project.koi("runs", "delete", "--older", "30d", stdin="n\n")
    assert "Remove 1 journal? 1 of these runs could still go on." in asked.stderr
    assert "removed 1 journal: old\n" == recorded.runs("delete", "--older", "30d", "--yes")
    assert "removed 1 journal: new\n" == recorded.runs("delete", "--older", "14d", "--yes")
    assert "" == recorded.runs("delete", "--older", "14d", "--yes")
    assert sorted([path.name, "live.jsonl"]) == sorted(each.name for each in path.parent.iterdir())
    writer.close()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "words", [(), ("last", "--older", "3d"), ("--older", "old"), ("--older", "0d"), ("--older", "30")]
)
def test_what_is_to_be_deleted_must_be_said(recorded: Recorded, words: tuple[str, ...]) -> None:
    """One run or an age, and an age that is one; nothing is removed otherwise."""
    told = recorded.runs("delete", "--yes", *words)

    assert told.startswith("exit 2: error: ")
    assert recorded.path.exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "words", [("show", "zz"), ("tail", "zz"), ("export", "zz", "-o", "x"), ("delete", "zz"), ("repair", "zz")]
)
def test_unknown_runs_are_told(recorded: Recorded, words: tuple[str, ...]) -> None:
    """Every command says that there is no such run, and where to look."""
    told = recorded.runs(*words)

    assert told.startswith("exit 1: error: there is no run `zz`\n")
    assert "help: `koi runs list` shows the runs of this folder." in told


def test_a_run_is_shown_as_json(recorded: Recorded) -> None:
    """One object: what `koi runs list --json` tells of the run, and its entries as they stand in the journal."""
    shown = json.loads(recorded.project.koi("runs", "show", "--json").stdout)
    (listed,) = json.loads(recorded.project.koi("runs", "list", "--json").stdout)
    lines = [json.loads(line) for line in recorded.path.read_text("utf-8").splitlines()[1:]]

    assert [{key: line[key] for key in entry} for entry, line in zip(shown["entries"], lines, strict=True)] == shown[
        "entries"
    ]
    assert listed == {key: value for key, value in shown.items() if key != "entries"}


def test_a_folder_without_journals(project: Project) -> None:
    """Listing says that there is none, beside the output; naming a run says how one is recorded."""
    listed = project.koi("runs")

    told = "no run was recorded in this folder; `koi run FILE` records one\n"
    assert (0, "", told) == (listed.returncode, listed.stdout, listed.stderr)
    assert "`koi run --record FILE` writes a journal" in project.koi("runs", "show", "last").stderr


@pytest.mark.parametrize(("seconds", "shown"), [(0.04, "0.0s"), (59.94, "59.9s"), (61, "1m 01s"), (7260, "2h 01m")])
def test_durations(seconds: float, shown: str) -> None:
    """Times are shown in the two largest units that matter."""
    assert shown == _duration(seconds)


def test_what_runs_leave_is_hidden_from_git(project: Project) -> None:
    """A new `.koi` ignores itself as a whole; one that is there stays as its project has it."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps(ANSWERS))
    rule, words = project.folder / ".koi/.gitignore", ("run", "--answers", "answers.json", "a.koi")

    project.koi(*words)
    first = rule.read_text()
    rule.unlink()
    project.koi(*words)

    assert ("*\n", False) == (first, rule.exists())
