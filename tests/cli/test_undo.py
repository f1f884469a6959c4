"""`koi undo`, as a person uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects import Project

PROGRAM = """
    import "std/files"
    role Worker { can execute }
    agent Main : Worker { on start(args: Json) {
      await writeFile("a.txt", "of the run")
      await writeFile("sub/new.txt", "of the run")
    } }
    run Main.start({})
    """


@pytest.fixture
def changed(project: Project) -> Project:
    """A project in which a run has changed a file and made another one."""
    project.write("main.koi", PROGRAM)
    project.write("a.txt", "before")
    done = project.koi("run", "--quiet", "main.koi")
    assert 0 == done.returncode, done.stderr
    return project


def texts(folder: Path) -> dict[str, str]:
    """The texts in a folder."""
    paths = [*folder.glob("*.txt"), *folder.glob("sub/*")]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def test_a_run_is_undone_once(changed: Project) -> None:
    """What is put back is listed first; a second time there is nothing left."""
    first = changed.koi("undo", stdin="y\n")
    second = changed.koi("undo")

    listed = ["put back a.txt (files.write)", "remove sub (files.write)", "remove sub/new.txt (files.write)"]
    assert listed == [" ".join(line.split()) for line in first.stdout.splitlines()]
    assert "Put back 3 of 3 paths? [y/N]" in first.stderr
    assert (0, {"a.txt": "before"}, False) == (
        first.returncode,
        texts(changed.folder),
        (changed.folder / "sub").exists(),
    )
    assert (0, "") == (second.returncode, second.stdout)
    assert "nothing is left to undo of" in second.stderr


def test_what_was_not_looked_at_is_said(project: Project, changed: Project) -> None:
    """Where a command may have changed it; tools of files have changed what is stored alone."""
    project.write(".gitignore", "*.log\n")
    shell = 'await this.callAction("shell", { command: "echo 1 > b.txt; echo 1 > c.log", description: "x" })'
    project.write("b.koi", f"role W {{ can execute }}\nagent B : W {{ on go() {{ {shell} }} }}\nrun B.go({{}})\n")
    first = changed.koi("undo", "--yes")
    assert 0 == project.koi("run", "--quiet", "--allow", "run", "b.koi").returncode
    second = project.koi("undo", "--yes")

    assert "`.gitignore` names" not in first.stderr
    assert "files outside of the project or of more than 5 MB, and those that `.gitignore` names" in second.stderr
    assert (False, True) == ((project.folder / "b.txt").exists(), (project.folder / "c.log").exists())


def test_nothing_is_changed_before_the_person_agrees(changed: Project) -> None:
    """Nor by `--dry-run`, nor where nobody answers."""
    before = texts(changed.folder)
    codes = [changed.koi("undo", *words, stdin=said).returncode for words, said in (((), "n\n"), ((), ""))]

    assert ([1, 1], 0) == (codes, changed.koi("undo", "--dry-run").returncode)
    assert before == texts(changed.folder)


def test_the_difference_is_shown_without_secrets(changed: Project) -> None:
    """What somebody else has changed is left, with what is different from what the run had left."""
    (changed.folder / "a.txt").write_text("of the person\nkey sk-ant-REDACTED\n")
    done = changed.koi("undo", "--yes")

    assert (1, {"a.txt"}) == (done.returncode, {*texts(changed.folder)})
    assert ["-of the run", "+of the person"] == [
        line.strip() for line in done.stdout.splitlines() if line.startswith(("    -of", "    +of"))
    ]
    assert "abcdefghij" not in done.stdout + done.stderr


def test_a_journal_of_somebody_else_needs_trust(changed: Project) -> None:
    """A project that comes with a journal cannot have its files changed by it."""
    (path,) = changed.folder.glob(".koi/runs/*.jsonl")
    path.write_text("\n".join(line.partition(',"mac"')[0] + "}" for line in path.read_text().splitlines()) + "\n")
    done = changed.koi("undo", "--yes")

    assert (1, "of the run") == (done.returncode, texts(changed.folder)["a.txt"])
    assert "`--trust`" in done.stderr


def test_the_contents_go_with_the_run(changed: Project) -> None:
    """What was kept is readable by its owner only, and is removed with the journal."""
    kept = list(changed.folder.glob(".koi/snapshots/objects/*/*"))
    modes = {path.stat().st_mode & 0o777 for path in kept}
    changed.koi("runs", "delete", "last", "--yes")

    assert (2, {0o600}) == (len(kept), modes)
    assert [] == [*changed.folder.glob(".koi/snapshots/objects/*/*"), *changed.folder.glob(".koi/snapshots/runs/*")]


STEPS = """
    import "std/files"
    role Worker { can execute }
    agent Main : Worker { on start(args: Json) {
      await appendFile("a.txt", " one")
      await appendFile("a.txt", " two")
      await this.callAction("shell", { command: "echo made > made.txt", description: "d" })
      await appendFile("a.txt", " three")
    } }
    run Main.start({})
    """


def end_of(project: Project, intent: str, number: int) -> str:
    """The number of the entry that ends an effect of a name."""
    lines = project.koi("runs", "tree", "last").stdout.splitlines()
    return [line.split()[0] for line in lines if line.split()[1:2] == [intent]][number]


def test_a_branch_begins_with_the_files_as_they_were(project: Project) -> None:
    """What the branch does again is then done once; nobody is asked about files that were put back."""
    project.write("main.koi", STEPS)
    project.write("a.txt", "zero")
    project.koi("run", "--quiet", "--allow", "shell", "main.koi")
    entry = end_of(project, "files.append", 0)
    done = project.koi("resume", "last", "--at", entry, "--files", "--on-doubt", "retry")

    assert 0 == done.returncode, done.stderr
    assert {"a.txt": "zero one two three", "made.txt": "made\n"} == texts(project.folder)
    assert "files.append" not in "".join(line for line in done.stderr.splitlines() if "asked before" in line)


def test_a_branch_begins_with_all_files_or_none(project: Project) -> None:
    """Where somebody else has changed one of them nothing is put back, and nothing is run."""
    project.write("main.koi", STEPS)
    project.write("a.txt", "zero")
    project.koi("run", "--quiet", "--allow", "shell", "main.koi")
    entry = end_of(project, "files.append", 0)
    (project.folder / "a.txt").write_text("of the person")
    done = project.koi("resume", "last", "--at", entry, "--files", "--on-doubt", "retry")

    assert (1, {"a.txt": "of the person", "made.txt": "made\n"}) == (done.returncode, texts(project.folder))
    assert f"1 of the files cannot be put back as they were at entry {entry}" in done.stderr


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(3, 15))
def test_a_killed_run_is_undone(project: Project, first: int) -> None:
    """Behind whichever entry it was killed, also in the middle of an action or a command."""
    project.write("main.koi", STEPS)
    project.write("a.txt", "zero")
    script = """
        import os
        import shutil
        import sys
        from pathlib import Path
        from tests.journal import killing

        killing.load_all()
        words = ("run", "--quiet", "--allow", "shell", "main.koi")
        killed, lines, here = 1, int(os.environ["FIRST"]), Path.cwd()
        told = here.parent / "told"

        def aside(and_then=lambda lines: None):
            # What the commands print is no file of the project: it would count as changed by whichever runs.
            for descriptor in (1, 2):
                os.dup2(os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT), descriptor)
            and_then(lines)

        while killed:
            for kill in (killing.kill_after, killing.kill_before):
                (here / "a.txt").write_text("zero")
                killed = killing.forked(words, here, lambda: aside(kill))
                undone = killing.forked(("undo", "--yes"), here, aside)
                left = (here / "a.txt").read_text(), (here / "made.txt").exists()
                print(lines, kill.__name__, undone, *left)
                if undone:
                    sys.stderr.write(told.read_text())
                shutil.rmtree(here / ".koi")
                (here / "made.txt").unlink(missing_ok=True)
            lines += 12
        """
    done = project.fork_python(script, FIRST=str(first))
    outcomes = [line.split() for line in done.stdout.splitlines()]

    assert len(outcomes) > 3, done.stderr
    assert [] == [outcome for outcome in outcomes if outcome[2:] != ["0", "zero", "False"]], done.stderr
