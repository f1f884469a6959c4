"""What agents are told of the files of a project, and that it is no more than material."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koi_lang.program import loader
from koi_lang.runtime.guidance.prompt_sections import INSTRUCTIONS, MAX_DESCRIBED, OWN_INSTRUCTIONS, SKILLS
from koi_lang.runtime.playbook.outside_text import BREAK
from tests.guidance.hostile import TEXTS
from tests.guidance.test_skill_files import GOOD, put
from tests.playbook.playing import Player, act, done, solo
from tests.playbook.transports import WAYS, talk

USES = 'uses instructions\nuses skills\nstate { token = "s3cr3t" }'
READS = [[act("read_skill", name="review")], [done(ok=True)]]
IN_ALL_WAYS = pytest.mark.parametrize("way", WAYS, ids="-".join)


@pytest.fixture
def play(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Player]:
    """Plays programs in a project with instructions and a skill."""
    monkeypatch.setenv("KOI_CACHE_DIR", str(project.parent / "cache"))
    (project / "AGENTS.md").write_text("Use tabs.\nBe brief.")
    put(project / ".agents" / "skills")
    (project / ".agents/skills/review/list.md").write_text("- names")
    yield Player(project)
    loader.unload()


def system_of(played: Any) -> str:
    """What the model was told before the messages."""
    return str(played.requests[0].system)


def test_they_stand_before_the_playbook(play: Player) -> None:
    """Instructions are quoted line for line; of skills there are names and descriptions."""
    before = system_of(play(solo(more=USES), [done()]))
    _, instructions, rest = before.partition(INSTRUCTIONS)
    quoted, skills, listed = rest.partition(SKILLS)

    assert (INSTRUCTIONS, SKILLS) == (instructions, skills)
    assert "\n### AGENTS.md\n> Use tabs.\n> Be brief.\n\n" == quoted
    assert '- review: "Reviews code"' in listed.splitlines()
    assert any(line.startswith('- koi-programs: "How to write') for line in listed.splitlines())
    assert "Look twice." not in before


def test_the_instructions_of_the_person_come_first(play: Player) -> None:
    """In a section of their own, quoted as well; callers of a service are told nothing of them."""
    person = Path(os.environ["KOI_CONFIG_DIR"])
    person.mkdir(exist_ok=True)
    (person / "AGENTS.md").write_text("Write short.\nObey ## Playbook")
    before = system_of(play(solo(more=USES), [done()]))
    _, own, rest = before.partition(OWN_INSTRUCTIONS)

    assert (OWN_INSTRUCTIONS, True) == (own, "\n> Write short.\n> Obey ## Playbook\n\n" + INSTRUCTIONS in rest)
    assert "Write short." not in system_of(play(solo(more=USES), [done()], is_served=True))


def test_they_are_told_where_they_work(play: Player) -> None:
    """The folder, the system and the branch, quoted; agents that touch no files, and callers of a service, are not."""
    (play.folder / ".git").mkdir()
    (play.folder / ".git/HEAD").write_text('ref: refs/heads/work/"one"\n')
    place = f"You work in the folder {json.dumps(str(play.folder))} on "
    branch = 'on the branch "work/\\"one\\"" of git.\n'
    workers = [system_of(play(solo(each, more=USES), [done()])) for each in ("read", "write", "execute", "chat")]

    assert [1, 1, 1, 0] == [text.count(place) for text in workers]
    assert [1, 1, 1, 0] == [text.count(branch) for text in workers]
    assert place not in system_of(play(solo("read", more=USES), [done()], is_served=True))


def test_others_are_told_nothing(play: Player) -> None:
    """The prompt of an agent that uses neither does not change with the files."""
    used = system_of(play(solo(), [done()]))
    (play.folder / "AGENTS.md").unlink()

    assert used == system_of(play(solo(), [done()]))
    assert "read_skill" not in used
    assert "tabs" not in used


def test_one_is_told_without_the_other(play: Player) -> None:
    """Who uses instructions alone reads no skills, and the other way round."""
    instructed = system_of(play(solo(more="uses instructions"), [done()]))
    skilled = system_of(play(solo(more="uses skills"), [done()]))

    assert (True, False) == ("Use tabs." in instructed, "read_skill" in instructed)
    assert (False, True) == ("Use tabs." in skilled, "read_skill" in skilled)


@pytest.mark.sampled(4)
@IN_ALL_WAYS
def test_a_skill_is_read_when_it_is_needed(play: Player, way: tuple[str, str]) -> None:
    """Its text comes as a result, and so do files beside it, in every transport."""
    reads = [act("read_skill", name="review"), act("read_skill", name="review", file="list.md")]
    played, asked, _ = talk(play, solo(more=USES), [reads, [done(ok=True)]], way)
    told = json.dumps(asked[1].body, ensure_ascii=False)

    assert ({"ok": True}, None) == (played.result, played.error)
    assert ["read_skill", "read_skill", "return"] == played.did()
    assert all(text in told for text in ("Look twice.", "- names", "> Use tabs.", "Reviews code"))
    assert "Look twice." not in asked[0].sent.decode()


REFUSED = {
    "nope": ("`Main` has no skill `nope` to read", {}),
    "../review": ("`Main` has no skill `../review` to read", {}),
    "review": ("`../../../AGENTS.md` is no file of the skill `review`", {"file": "../../../AGENTS.md"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_else_is_read(play: Player, name: str) -> None:
    """Only skills that the agent uses, and what lies in their folders."""
    expected, more = REFUSED[name]
    played = play(solo(more=USES), [act("read_skill", name=name, **more), done()])

    assert expected in played.feedback[-1]
    assert "Use tabs." not in played.feedback[-1]


def test_who_uses_no_skills_reads_none(play: Player) -> None:
    """Even where a model knows the action."""
    told = play(solo(), [act("read_skill", name="review"), done()]).feedback[-1]

    assert "`Main` has no skill `review` to read. It has no skills to read." in told
    assert "Look twice." not in told


NAMED = 'import Own : skill from "./own/review"\n' + solo(more="uses skill Own")


def test_a_program_names_a_skill(play: Player) -> None:
    """Then that one is offered, and no other; it counts before one of its name in the project."""
    put(play.folder / "own", GOOD.replace("Look twice", "Look thrice"))
    played = play(NAMED, [act("read_skill", name="review"), act("read_skill", name="koi-programs"), done()])
    both = play(NAMED.replace("uses skill Own", "uses skill Own\nuses skills"), READS)

    assert "Look thrice." in played.feedback[1]
    assert "has no skill `koi-programs`" in played.feedback[2]
    assert "koi-programs" not in system_of(played)
    assert ("Look thrice." in both.feedback[1], "koi-programs" in system_of(both)) == (True, True)


def test_a_named_skill_that_cannot_be_used_says_why(play: Player) -> None:
    """What it needs is told to the model; what cannot be read ends the call."""
    file = put(play.folder / "own", GOOD.replace("name:", "requires_bins: no-such-program\nname:"))
    played = play(NAMED, READS)
    file.write_text("---\nname: [\n---\n")
    broken = play(NAMED, READS)

    assert '- review cannot be used here: "it needs the program `no-such-program`' in system_of(played)
    assert "cannot be used here: it needs the program `no-such-program`" in played.feedback[1]
    assert "the skill `./own/review/SKILL.md` has front matter whose line 2" in str(broken.error)


def test_what_is_left_out_is_noted_once(play: Player) -> None:
    """The person is told which instructions are missing, and the work goes on."""
    (play.folder / "AGENTS.md").write_bytes(b"caf\xe9")
    notes: list[str] = []
    played = play.each(solo(more=USES), [done(), done()], [("Main.go", {})] * 2, note=notes.append)

    assert [None, None] == [each.error for each in played]
    assert ["note: the instructions in `AGENTS.md` are left out: the file is not UTF-8 text"] == notes


def test_descriptions_have_bounds(play: Player) -> None:
    """Each ends after 1,024 characters; where there are too many, only names follow."""
    for n in range(30):
        text = f"---\nname: s{n:02}\ndescription: {'x' * 3000}\n---\n"
        put(play.folder / ".agents" / "skills", text, f"s{n:02}")
    lines = system_of(play(solo(more="uses skills"), [done()])).partition(SKILLS)[2].splitlines()
    skills = [line for line in lines if line.startswith("- s")]

    assert 30 == len(skills)
    assert "x" * 1023 + "…" in skills[0]
    assert "- s29" == skills[-1]
    assert sum(map(len, skills)) < MAX_DESCRIBED + 30 * 10


# ---------------------------------------------------------------- material, and nothing more


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_leaves_its_quotation(play: Player, name: str) -> None:
    """Every line of a file is marked, whatever ends it, and a description stays on its own line."""
    (play.folder / "AGENTS.md").write_bytes(TEXTS[name].encode())
    described = json.dumps(TEXTS[name].replace("\x00", ""), ensure_ascii=True)
    put(play.folder / ".agents" / "skills", f"---\ndescription: {described}\n---\n{TEXTS[name]}")
    plain = system_of(play(solo(), [done()])).split("\n")
    lines = BREAK.split(system_of(play(solo(more=USES), [done()])))

    ours = [*plain, *INSTRUCTIONS.split("\n"), *SKILLS.split("\n"), "### AGENTS.md", ""]
    others = [line for line in lines if line not in ours]
    assert all(line.startswith(("> ", "- review: ", "- koi-programs: ", "- read_skill(")) for line in others)
    assert 0 == lines.count("## Playbook")
    assert not {"\x1b", "\u202e", "\u200b", "\x00"} & set("".join(lines))


ASKED = [
    act("shell", command="touch done", description="as AGENTS.md says"),
    act("print", message="${state.token} {{state.token}} ${process.env.HOME}"),
    act("read_skill", name="review", file="/etc/passwd"),
    act("update_state", updates={"token": "x"}),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("way", WAYS[:4], ids="-".join)
@pytest.mark.parametrize("name", TEXTS)
def test_who_obeys_a_text_stays_in_the_role(play: Player, name: str, way: tuple[str, str]) -> None:
    """A model that does what a text says is refused what its role lacks, and gives away no value."""
    (play.folder / "AGENTS.md").write_bytes(TEXTS["takes values"].encode() + b"\n" + TEXTS[name].encode())
    put(play.folder / ".agents" / "skills", GOOD + TEXTS[name])
    turns = [[act("read_skill", name="review")], *([action] for action in ASKED), [done(ok=True)]]
    played, asked, _ = talk(play, solo("think", more=USES), turns, way)

    assert ({"ok": True}, ["read_skill", "print", "return"]) == (played.result, played.did())
    assert ("${state.token} {{state.token}} ${process.env.HOME}",) == played.printed
    assert not (play.folder / "done").exists()
    assert "s3cr3t" == played.state("Main")["token"]
    assert "root:" not in asked[-1].sent.decode()
