"""What agents declare with `uses instructions`, `uses skills`, `uses memory` and `import Name : skill from "…"`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guidance.test_skill_files import put
from tests.projects import Project
from tests.support import diagnostics_of_text

PROGRAM = """
import Review : skill from "./.agents/skills/review"
role Worker { can execute }
skill instructions { export function one(): number { return 1 } }
skill skills { export function two(): number { return 2 } }
skill memory { export function three(): number { return 3 } }
agent Plain : Worker { uses skill skills on go(args) { return args } }
agent Main : Worker {
  uses skill instructions, skills, memory
  uses instructions
  uses skills
  uses memory
  uses skill Review
  state { skills: number = 1, instructions: number = 2 }
  on go(args) {
    const skills = 3
    const instructions = skills + this.state.instructions
    return [skills, instructions, one(), two()]
  }
}
run Main.go({})
"""


@pytest.fixture
def here(project: Path) -> Project:
    """The project, with a skill in it."""
    put(project / ".agents" / "skills")
    return Project(project)


def test_an_agent_says_what_it_uses(here: Project) -> None:
    """Skills in files stand beside those of functions, under the same word."""
    main, plain = (getattr(here.load("a.koi", PROGRAM), name).about for name in ("Main", "Plain"))

    assert (True, True, True) == (main.instructions, main.offers_skills, main.reads_notes)
    assert [("review", "program", "./.agents/skills/review")] == [(g.name, g.origin, g.path) for g in main.guides()]
    assert ["instructions", "skills", "memory"] == [skill.name for skill in main.skills()]
    assert (False, False, False) == (plain.instructions, plain.reads_notes, plain.reads_files)
    assert (False, (), False) == (plain.offers_skills, tuple(plain.guides()), plain.reads_skills)


def test_the_words_are_names_elsewhere(here: Project) -> None:
    """Skills, fields and variables may be called `skills` and `instructions`."""
    here.write("a.koi", PROGRAM.replace("return [", "console.log(").replace("two()]", "two())"))
    done = here.koi("run", "a.koi")

    assert ("3 5 1 2\n", 0) == (done.stdout, done.returncode), done.stderr


def test_a_skill_travels_through_imports(here: Project) -> None:
    """Who imports a program has its skills, those in files among them."""
    here.write("a.koi", PROGRAM.replace("run Main.go({})", ""))
    text = 'import "./a.koi"\nagent Other : Worker { uses skill Review on go(args) { return args } }'
    (guide,) = here.load("b.koi", text).Other.about.guides()

    assert here.folder / ".agents" / "skills" / "review" == guide.folder


WRONG = {
    "uses skills Review": ("`Review` does not belong here", "write `uses skill Review`, or `uses skills` alone"),
    "uses instruction": ("`instruction` does not belong here", "write `uses instructions`."),
    "uses memories": ("`memories` does not belong here", "write `uses memory`."),
    "uses notes": ("`notes` does not belong here", "write `uses memory`."),
    "uses skill Reviews": ("there is no skill `Reviews`", "did you mean `Review`?"),
}


@pytest.mark.parametrize("line", WRONG)
def test_near_misses_are_told(line: str) -> None:
    """What was meant is said."""
    text = PROGRAM.replace("  uses instructions\n", f"  {line}\n")
    (problem, *_) = diagnostics_of_text(text, {".agents/skills/review/SKILL.md": "---\ndescription: x\n---\n"})

    assert problem.message == WRONG[line][0]
    assert str(problem.help).startswith(WRONG[line][1])


FILES = {
    "Look twice.": "the skill `./.agents/skills/review` has no front matter",
    "---\nname: a: b\n---\n": "the skill `./.agents/skills/review` has front matter whose line 2 has a second `:`",
    "": "there is no skill `./.agents/skills/review`",
}


@pytest.mark.parametrize("text", FILES)
def test_a_skill_that_is_none_is_told(text: str) -> None:
    """In the program that imports it, with the line of the file."""
    others = {".agents/skills/review/SKILL.md": text} if text else {}
    messages = [problem.message for problem in diagnostics_of_text(PROGRAM, others)]

    assert FILES[text] == messages[0]
