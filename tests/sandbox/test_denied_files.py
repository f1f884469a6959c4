"""Rules that deny files, which hold for commands in the sandbox, however they write a name."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.guards.permissions import Restrictions, Trust
from tests.playbook.conftest import play as play
from tests.playbook.playing import Player, act, solo
from tests.playbook.test_shell import command
from tests.sandbox.conftest import Machine
from tests.sandbox.test_confinement import start
from tests.sandbox.test_git_and_closed_files import COMMIT, make
from tests.sandbox.test_repositories import git

# Commands that make their words while they run, and name no file that a rule could be held against.
CHANGING = (
    "x=keep; echo BAD > data/$x.txt",
    "cd data; rm -f keep.txt",
    "rm -rf data; rm -rf migrations",
    "mv data other",
    "find . -name '*.sql' -delete",
    "sed -i s/GOOD/BAD/ $(ls -d m*)/1.sql",
    "ln -s migrations l && echo BAD > l/2.sql",
    "echo BAD > migrations/new.sql",
    "python3 -c \"open('mig' + 'rations/3.sql', 'w').write('BAD')\"",
    "printf 'echo BAD > migrations/1.sql' > s.sh; sh s.sh",
    "cp -r migrations copy; mv -T copy migrations; tar -C migrations -xf nothing; git apply nothing",
)
READING = ("cat data/*", "grep -r GOOD .", "cd data && cat keep.txt", "tar cf - data | cat", "x=keep; cat data/$x.txt")


def deny(*rules: str) -> Restrictions:
    """Rules that deny."""
    return Restrictions(deny=tuple(map(parse_rule, rules)))


@pytest.fixture
def project(confined: Machine) -> Path:
    """A project with some files."""
    for name in ("data/keep.txt", "migrations/1.sql", "src/a.py"):
        (confined.project / name).parent.mkdir()
        (confined.project / name).write_text("GOOD\n")
    return confined.project


def files_of(project: Path) -> dict[str, str]:
    """The files of some folders, with their text."""
    folders = [project / "data", project / "migrations"]
    return {file.relative_to(project).as_posix(): file.read_text() for each in folders for file in each.rglob("*")}


@pytest.mark.parametrize("rules", [("write:migrations/**", "write:data/**"), ("*:migrations", "*:data")], ids=str)
def test_commands_change_nothing_that_rules_deny(confined: Machine, project: Path, rules: Sequence[str]) -> None:
    """Neither a file, nor the folder that a rule names as a whole; the rest of the project is theirs."""
    before = files_of(project)
    _, told = start(confined, f"{'; '.join(f'({each})' for each in CHANGING)}; echo b > src/b.py", deny(*rules))

    assert before == files_of(project)
    assert "b\n" == (project / "src/b.py").read_text(), told


@pytest.mark.parametrize("rule", ["read:data/**", "*:data/*", "read:keep.txt"])
@pytest.mark.parametrize("is_tracked", [False, True])
def test_commands_read_nothing_that_rules_deny(confined: Machine, project: Path, rule: str, is_tracked: bool) -> None:
    """Whether git has the file or not, which takes it for unchanged."""
    if is_tracked and shutil.which("git") is None:
        pytest.skip("GIT IS MISSING: repositories are not tested")
    (project / "data/keep.txt").write_text("SECRET\n")
    if is_tracked:
        make(project, "data/keep.txt")
        (project / "data/keep.txt").write_text("SECRET\n")
        git(project, "add", ".")
        git(project, "commit", "-qm", "b")
    tries = f"({'); ('.join(READING)}); cat src/a.py"
    _, told = start(confined, tries, deny(rule))
    _, committed = start(
        confined, f"echo c >> src/a.py; git add -A && {COMMIT} && git show --stat --format= HEAD", deny(rule)
    )

    assert "SECRET" not in told.replace("\0", "")
    assert "GOOD" in told
    assert not is_tracked or " src/a.py | 1 +\n 1 file changed, 1 insertion(+)\n" == committed
    assert "SECRET\n" == (project / "data/keep.txt").read_text()


@pytest.mark.parametrize("rule", ["write:app/deep/**", "*:app/deep/1.sql", "read:app/deep/1.sql"])
def test_folders_around_what_is_denied_keep_their_names(confined: Machine, rule: str) -> None:
    """Nothing is denied of a file behind another name of a folder, so that is not given."""
    file = confined.project / "app/deep/1.sql"
    file.parent.mkdir(parents=True)
    file.write_text("GOOD\n")
    renaming = (
        "mv app app2",
        "mv app/deep app/d2",
        "mkdir d3; rm -r app/deep; mv -T d3 app/deep",
        "mv -T d3 app",
    )
    told = [start(confined, each, deny(rule)) for each in renaming]
    _, read = start(confined, "cat app*/*/*.sql; echo made > app/new; mv app/new app/newer", deny(rule))

    assert [] == [each for each, (code, _) in zip(renaming, told, strict=True) if code == 0]
    assert ("GOOD\n", "made\n") == (file.read_text(), (confined.project / "app/newer").read_text())
    assert rule.startswith("write") == ("GOOD" in read)


def test_a_running_program_in_a_folder(play: Player, confined: Machine) -> None:
    """The folder around it is not renamed either, so that the next run is of the same program."""
    (confined.project / "tools").mkdir()
    player = Player(confined.project / "tools")
    command_text = "mv tools t2; echo x >> t2/*.koi; mv t2 tools; true"
    answers = [{"batch": [command(command_text, id="x"), act("return", data="${x.output.stderr}")]}]
    played = player(solo("execute"), answers, allow=["shell"], folder=confined.project)
    (program,) = (confined.project / "tools").glob("*.koi")

    assert solo("execute") == program.read_text()
    assert "Device or resource busy" in str(played.result)


def test_own_folders_in_the_project(confined: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are hidden with the keys in them, also behind another name of the folder around them."""
    config = confined.project / "state/config"
    config.mkdir(parents=True)
    for name in ("signing.key", "keys.json"):
        (config / name).write_text("SECRET")
    monkeypatch.setenv("KOI_CONFIG_DIR", str(config))
    code, told = start(confined, "ls state/config; mv state s2; cat s2/config/* state/config/*; echo done")

    assert code == 0
    assert told.endswith("done\n")
    assert "SECRET" not in told


def test_a_link_out_of_the_project(confined: Machine, project: Path) -> None:
    """What it leads to is hidden by the name of the link; a link within the project is passed over."""
    system = next(each for each in map(Path, ("/etc/pam.d", "/etc/default", "/etc")) if any(each.glob("*")))
    links = {"far": str(system), "file": "/etc/passwd", "near": "src", "nowhere": "missing"}
    for name, target in links.items():
        (project / name).symlink_to(target)
    _, told = start(confined, f"ls far {system}; cat file /etc/passwd; cat near/a.py", deny("read:[fn]*/**"))

    assert told.endswith("GOOD\n")
    assert "root:" not in told
    assert [] == [each.name for each in system.iterdir() if f"\n{each.name}\n" in told]


def test_a_topic_that_nothing_may_write(confined: Machine, project: Path) -> None:
    """`[trust] write = "never"` has all of the project for reading."""
    never = Restrictions(trust=Trust((("write", "never"),)))
    _, told = start(confined, "cat data/keep.txt; echo BAD > data/keep.txt; echo BAD > new; mkdir more", never)

    assert told.startswith("GOOD\n")
    assert ["data", "migrations", "src"] == sorted(each.name for each in project.iterdir() if each.name[0] != ".")
    assert "GOOD\n" == (project / "data/keep.txt").read_text()


def test_more_files_than_can_be_hidden(confined: Machine) -> None:
    """A command is refused rather than run beside what it may not read."""
    (confined.project / "data").mkdir()
    for number in range(1001):
        (confined.project / f"data/{number}.csv").touch()

    with pytest.raises(ValueError, match="more than 1,000 files that are closed to agents"):
        start(confined, "true", deny("read:*.csv"))
    assert (0, "") == start(confined, "ls data", deny("read:data/**"))
    for rule in ("write:data/**", "write:**"):
        assert (1, "") == start(confined, "rm data/1.csv 2> /dev/null", deny(rule))


def test_rules_of_a_run_hold_for_its_commands(play: Player, confined: Machine, project: Path) -> None:
    """No word of the command is the name of a file that they deny."""
    answers = [{"batch": [command("x=grations; echo BAD > mi$x/1.sql; echo b > src/b.py", id="x"), act("return")]}]
    played = play(solo("execute"), answers, allow=["shell"], restrictions=deny("*:migrations/**"), folder=project)

    assert played.error is None
    assert ("GOOD\n", "b\n") == ((project / "migrations/1.sql").read_text(), (project / "src/b.py").read_text())
