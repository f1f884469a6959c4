"""Python classes in code: what their constructors and clocks do is an effect, what only stores values is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journal.commands import Commands

MODULE = """
    import enum
    from dataclasses import dataclass

    class Plain:
        def __init__(self, name, items=()):
            self.name = name
            self.items = [*items]

    @dataclass
    class Point:
        x: int
        y: int = 0

    class Bare:
        pass

    class Colour(enum.Enum):
        RED = "red"

    class OddError(Exception):
        pass

    class Box:
        def __init__(self, name):
            self.name = name
            with open("effects", "a") as file:
                file.write(name + "\\n")

    class Sly:
        @property
        def name(self):
            return self.known
        @name.setter
        def name(self, name):
            self.known = name
            with open("effects", "a") as file:
                file.write(name + "\\n")
        def __init__(self, name):
            self.name = name
    """


def recorded(koi: Commands, body: str) -> Commands:
    """A run of some code that was killed behind what it printed first."""
    koi.project.write("tool.py", MODULE)
    head = 'import tool from "./tool.py"\nimport datetime from "python:datetime"\nrole R { can execute }\n'
    done = koi.record(f"{head}agent A : R {{ on go(x: Json) {{\n{body}\n}} }}\nrun A.go({{}})\n")
    assert 0 == done.code, done.err
    koi.cut_behind("printed")
    return koi


@pytest.mark.parametrize(
    "make", ['new tool.Box("a")', 'tool.Box("a")', '["a"].map(n => new tool.Box(n))[0]', 'new tool.Sly("a")']
)
def test_a_constructor_is_not_run_twice_unasked(koi: Commands, make: str) -> None:
    """An object cannot be kept, so that somebody decides whether it is made again; else nothing is done."""
    recorded(koi, f'const box = {make}\nconsole.log("made", box.name)\nconsole.log(box.name)')
    refused = koi("resume")
    assert (1, ["a"]) == (refused.code, koi.lines("effects"))
    assert "what it gave cannot be kept in a journal" in refused.err
    done = koi("resume", "--on-doubt", "retry")

    assert (0, "a\n", ["a", "a"]) == (done.code, done.out, koi.lines("effects")), done.err
    assert "nothing is different" in koi("replay", "last").err


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        ('new tool.Plain("a", [1]).items.length', "1"),
        ("new tool.Point(1, 2).y", "2"),
        ("typeof new tool.Bare()", "object"),
        ('tool.Colour("red").value', "red"),
        ('String(new tool.OddError("odd"))', "odd"),
        ("new datetime.date(2020, 1, 31).isoformat()", "2020-01-31"),
        ('datetime.date.fromisoformat("2020-01-31").day', "31"),
    ],
)
def test_what_only_stores_values_is_made_again(koi: Commands, make: str, shown: str) -> None:
    """Nobody is asked about it, and it takes no room in the journal."""
    recorded(koi, f'const made = {make}\nconsole.log("first")\nconsole.log(made)')
    assert ["run_started", "handler_started", "printed"] == [entry.kind for entry in koi.entries()]
    done = koi("resume")

    assert (0, f"{shown}\n") == (done.code, done.out), done.err


@pytest.mark.parametrize(
    "look", ["datetime.datetime.now()", "datetime.date.today()", "datetime.datetime.now(datetime.timezone.utc)"]
)
def test_the_clock_of_python_is_kept(koi: Commands, look: str) -> None:
    """A run that goes on, and a replay, see the moment at which it was looked at first."""
    recorded(koi, f"const now = {look}\nconsole.log(now.isoformat())\nconsole.log(now.isoformat())")
    first = koi.entries()[-1].data["message"]
    done = koi("resume")

    assert (0, f"{first}\n") == (done.code, done.out), done.err
    assert "nothing is different" in koi("replay", "last").err


def test_a_class_is_still_a_class(koi: Commands) -> None:
    """`instanceof` and its members are what they were."""
    body = 'const b = new tool.Box("a")\nconst B = tool.Box\nconsole.log(b instanceof B, tool.Colour.RED.value)'

    recorded(koi, body)
    assert "true red" == koi.entries()[-1].data["message"]
    assert Path(koi.folder / "effects").read_text() == "a\n"
