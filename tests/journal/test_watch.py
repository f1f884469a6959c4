"""`koi run FILE --watch`: a program is run again when one of its files changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest

from koi_lang.program.source_watch import SourceWatch, content_hash
from tests import forks
from tests.projects import LIMIT_S, Project

PROGRAM = '''
import "./suffix.koi"
agent A : R {
  on go(args: Json) {
    const found = this.handle("write", {})
    console.log((await found).text + await Suffix.handle("get", {}))
  }
  on write(args: Json) { playbook """Write about ants.""" }
}
run A.go({})
'''
SUFFIX = 'agent Suffix : R { on get(args: Json) { return "!" } }\nrole R { can execute }\n'
ANSWERS = {"about": [{"intent": "return", "data": {"text": "ANTS"}}]}
WATCHING = "Ctrl-C ends that"


@dataclass(frozen=True, slots=True)
class Watched:
    """A program that is watched by a process of its own."""

    project: Project
    process: subprocess.Popen[str]

    def told_until(self, mark: str) -> str:
        """What the command says on stderr up to the next line that ends with a text."""
        assert self.process.stderr is not None
        told = ""
        for line in self.process.stderr:
            told += line
            if line.rstrip().endswith(mark):
                return told
        raise AssertionError(f"it has ended without {mark!r}:\n{told}")

    def replace(self, name: str, text: str) -> None:
        """Write a file as editors do that put a new one in its place."""
        self.project.write(f"{name}~", text)
        os.replace(self.project.folder / f"{name}~", self.project.folder / name)


@pytest.fixture
def watched(project: Project) -> Iterator[Watched]:
    """The program above, which has run once."""
    files = {"main.koi": PROGRAM, "suffix.koi": SUFFIX, "answers.json": json.dumps(ANSWERS)}
    for name, text in files.items():
        project.write(name, text)
    words = forks.koi("run", "--watch", "--answers", "answers.json", "main.koi")
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=project.folder, env=project.environment, text=True, **pipes) as process:
        found = Watched(project, process)
        found.told_until(WATCHING)
        yield found
        process.kill()


def test_every_change_runs_the_program_again(watched: Watched) -> None:
    """Of files of its own, imports and Python modules; with an error it goes on watching; Ctrl-C ends it."""
    told = []
    for name, text in (
        ("suffix.koi", SUFFIX.replace("!", "?")),
        ("main.koi", "agent {"),
        ("main.koi", PROGRAM.replace('"./suffix.koi"', '"./late.koi"')),
        ("late.koi", SUFFIX.replace("!", ";")),
        ("main.koi", PROGRAM),
    ):
        watched.replace(name, text)
        told.append(watched.told_until(WATCHING))
    watched.process.send_signal(signal.SIGINT)
    out, _ = watched.process.communicate(timeout=LIMIT_S)

    assert (130, "ANTS!\nANTS?\nANTS;\nANTS?\n") == (watched.process.returncode, out), told
    assert told[0].startswith("changed: suffix.koi\ngoing on from ")
    assert "1 model answer reused" in told[0]
    assert "error: `{` cannot stand after `agent` [E0101]\n --> main.koi:1:7\n" in told[1]
    assert "late.koi" in told[2]


def test_a_change_of_settings_runs_the_program_again(watched: Watched) -> None:
    """Whichever file they stand in, and each run has them as they are by then."""
    told = []
    for name, text in (("koi.toml", "[limits"), ("koi.toml", "[limits]\nturns = 9\n"), (".mcp.json", "{}")):
        watched.replace(name, text)
        told.append(watched.told_until(WATCHING))

    assert ["changed: koi.toml"] * 2 + ["changed: .mcp.json"] == [text.splitlines()[0] for text in told]
    assert [True, False, False] == ["error: `koi.toml` cannot be read" in text for text in told]


def test_a_change_of_instructions_runs_the_program_again(watched: Watched) -> None:
    """Those of the project are read anew, and what a model was told before is no longer reused."""
    uses = PROGRAM.replace("agent A : R {", "agent A : R {\n  uses instructions")
    told = []
    for name, text in (("main.koi", uses), ("AGENTS.md", "Write in capitals."), ("AGENTS.md", "Write in verse.")):
        watched.replace(name, text)
        told.append(watched.told_until(WATCHING))

    assert ["changed: main.koi", "changed: AGENTS.md", "changed: AGENTS.md"] == [text.splitlines()[0] for text in told]
    assert ["1 requested again" in text for text in told] == [True] * 3, told


def test_a_change_ends_what_is_computed(watched: Watched) -> None:
    """A run that would never end is left for the next one."""
    watched.replace("suffix.koi", SUFFIX.replace('return "!"', 'console.log("in"); while (true) {}'))
    assert watched.process.stdout is not None
    begun = [watched.process.stdout.readline() for _ in range(2)]
    watched.replace("suffix.koi", SUFFIX.replace("!", "c"))
    told = watched.told_until(WATCHING)
    watched.process.send_signal(signal.SIGINT)
    out, _ = watched.process.communicate(timeout=LIMIT_S)

    assert (["ANTS!\n", "in\n"], "ANTSc\n") == (begun, out), told
    assert "changed: suffix.koi\n" in told


def test_what_is_saved_several_times_is_one_change(tmp_path: Path) -> None:
    """Files whose content is as it was have not changed, however often they are written."""
    files = [tmp_path / name for name in ("a", "b", "c")]
    for file in files:
        file.write_text("1")
    watch, stop = SourceWatch({str(file): content_hash(str(file)) for file in files}), Event()
    for text in "123":
        files[0].write_text(text)
        files[1].unlink(missing_ok=True)
    files[2].touch()
    changed = watch.wait(stop)
    stop.set()

    assert [str(file) for file in files[:2]] == changed
    assert [] == watch.wait(stop)
