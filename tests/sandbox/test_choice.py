"""Whether commands are confined: what the settings say, and what works on the machine."""

from __future__ import annotations

import pytest

from koi_lang.errors import SettingsError
from koi_lang.settings import read_settings
from koi_lang.settings.project import shell_settings
from koi_lang.system import bubblewrap
from tests.limits import LIMIT_S
from tests.playbook.playing import Played, Player, done, solo
from tests.playbook.test_shell import Deciding, command
from tests.projects import Project
from tests.sandbox.conftest import Machine

PROGRAM = solo("execute")
HANGING = "exec sleep 3600"
LISTER = """
    role Worker { can execute }
    agent Main : Worker {
      on go() { await this.callAction("shell", { command: "true", description: "x" }) }
    }
    run Main.go()
    """


def run(play: Player, machine: Machine, *texts: str, notes: list[str] | None = None) -> Played:
    """A run whose model has commands carried out at the same time."""
    answers = [{"batch": [command(text) for text in texts]}, done()]
    told = [] if notes is None else notes

    def note(name: str, line: str) -> None:
        told.append(line)

    return play(PROGRAM, answers, allow=["shell"], folder=machine.project, note_once=note)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "bubblewrap is not installed"),
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1",
         "bubblewrap does not work here (bwrap: No permissions to create new namespace)"),
        ("exit 3", "bubblewrap does not work here (`BIN/bwrap` ended with exit code 3)"),
        (HANGING, "bubblewrap does not work here (`BIN/bwrap` did not answer within 0.2 s)"),
    ],
)  # fmt: skip
def test_without_bubblewrap(
    play: Player, machine: Machine, monkeypatch: pytest.MonkeyPatch, script: str | None, why: str
) -> None:
    """With `auto` commands run, and it is said once; with `bwrap` none runs, and the model is told why."""
    monkeypatch.setattr(bubblewrap, "PROBE_LIMIT_S", 0.2 if script == HANGING else LIMIT_S)
    if script is not None:
        machine.install(script)
    why = why.replace("BIN", str(machine.bin))
    notes: list[str] = []
    run(play, machine, "touch a", "touch b", notes=notes)
    machine.set_up('sandbox = "bwrap"')
    refused = run(play, machine, "touch c", notes=notes)

    assert [f"commands run without a sandbox: {why}; `koi doctor` says more"] == notes
    assert ["a", "b", "koi.toml"] == sorted(path.name for path in machine.project.iterdir())
    assert f"`koi.toml` has commands run in a sandbox only, and {why}" in refused.feedback[1]


def test_bubblewrap_is_tried_once(play: Player, machine: Machine) -> None:
    """Forty commands at once try it once, and a run without commands does not try it at all."""
    machine.install(f"echo >> {machine.bin}/tried; exit 1")
    run(play, machine, *["true"] * 40)
    tried = (machine.bin / "tried").read_text()
    play(PROGRAM, [done()], folder=machine.project)

    assert "\n" == tried == (machine.bin / "tried").read_text()


def test_a_person_is_not_asked_about_what_cannot_be_run(play: Player, machine: Machine) -> None:
    """Who says yes would be told of the missing sandbox only then."""
    machine.set_up('sandbox = "bwrap"')
    host = Deciding()
    play(PROGRAM, [command("true"), done()], host=host, folder=machine.project)

    assert [] == host.requested


def test_a_project_that_holds_the_home_folder(play: Player, confined: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """There a sandbox would hide nothing, which is said."""
    notes: list[str] = []
    monkeypatch.setenv("HOME", str(confined.project))
    run(play, confined, "true", notes=notes)

    assert f"the project, `{confined.project}`, holds the home folder" in notes[0]


def test_nothing_is_said_where_it_is_meant(play: Player, machine: Machine) -> None:
    """`none` is a choice."""
    machine.set_up('sandbox = "none"')
    notes: list[str] = []
    run(play, machine, "touch a", notes=notes)

    assert ([], True) == (notes, (machine.project / "a").exists())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('sandbox = "bubblewrap"', "`sandbox` in `[shell]` of `koi.toml` is 'bubblewrap', not one of `\"auto\"`"),
        ("sandbox = true", "is True, not one of"),
        ('home = "~/.cargo"', "is no list of texts"),
        ('home = ["~"]', "holds '~', which is no part of the home folder"),
        ('home = ["~/"]', "is no part of the home folder"),
        ('home = ["~/../x"]', "is no part of the home folder"),
        ('home = ["/etc"]', "is no part of the home folder"),
        ('home = ["~/a/../.."]', "is no part of the home folder"),
    ],
)
def test_settings_that_mean_nothing(machine: Machine, line: str, told: str) -> None:
    """One sentence says what is wrong with them."""
    machine.set_up(line)

    with pytest.raises(SettingsError) as raised:
        shell_settings(read_settings(machine.project))
    assert told in raised.value.message


def test_a_person_is_told_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with every run, but once."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("KOI_CACHE_DIR", str(project.folder / "cache"))
    project.write("a.koi", LISTER)
    told = [project.koi("run", "a.koi", "--allow", "shell").stderr for _ in range(2)]

    assert [1, 0] == [text.count("commands run without a sandbox: bubblewrap is not installed") for text in told]


def test_a_broken_setting_is_told(project: Project) -> None:
    """No command runs by a setting that was misspelt; the words are those of all settings."""
    project.write("a.koi", LISTER)
    project.write("koi.toml", '[shell]\nsandbox = "bubble"\n')
    told = project.koi("run", "a.koi", "--allow", "shell")

    assert (2, 1) == (told.returncode, told.stderr.count("`sandbox` in `[shell]` of `koi.toml` is 'bubble'")), told
