"""Who gets colours: the command line, the environment and the kind of stream decide, in this order."""

from __future__ import annotations

import io

import click
import pytest

from koi_lang.cli import main
from koi_lang.cli.ui.colours import Colours, command_words
from koi_lang.cli.ui.text import colour_report, has_colours
from tests.projects import Project

VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM")
BROKEN = "run Nobody.go({})\n"
REPORT = """\
warning: `a` --> `b` [W0000]
 --> a.koi:9:1
  |
9 | = help: ^^
  |         ^^ here
  = help: write `c`."""
COLOURED = """\
{33}warning{0}: `a` --> `b` [W0000]
{2} -->{0} a.koi:9:1
{2}  |{0}
{2}9 |{0} = help: ^^
{2}  |{0}         {33}^^ here{0}
{2}  = help:{0} write `c`."""


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.mark.parametrize(
    ("when", "environment", "at_a_terminal", "piped"),
    [
        ("auto", {}, True, False),
        ("auto", {"TERM": "dumb"}, False, False),
        ("auto", {"NO_COLOR": "1"}, False, False),
        ("auto", {"FORCE_COLOR": "1"}, True, True),
        ("auto", {"CLICOLOR_FORCE": "1"}, True, True),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ("always", {"NO_COLOR": "1"}, True, True),
        ("never", {"FORCE_COLOR": "1"}, False, False),
    ],
)
def test_who_gets_colours(
    monkeypatch: pytest.MonkeyPatch, when: str, environment: dict[str, str], at_a_terminal: bool, piped: bool
) -> None:
    """`--color` counts before NO_COLOR, that before FORCE_COLOR, and then whether there is a terminal."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with click.Context(click.Command("koi"), obj=Colours(when)):
        assert (at_a_terminal, piped) == (has_colours(Screen()), has_colours(io.StringIO()))


@pytest.mark.parametrize(
    ("words", "has"),
    [
        (["check", "a.koi"], False),
        (["check", "a.koi", "--color", "always"], True),
        (["--color=always", "check", "a.koi"], True),
        (["--color", "always", "check", "a.koi", "--color", "never"], False),
        (["audit", "a.koi"], False),
        (["--color", "always", "audit", "a.koi"], True),
    ],
)
def test_the_option_may_stand_anywhere(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], has: bool
) -> None:
    """`--color` may stand before the command and behind it, where the last one counts, also for what ends a command."""
    project.write("a.koi", BROKEN)
    monkeypatch.chdir(project.folder)

    with pytest.raises(SystemExit):
        main(words)

    assert ("\x1b[31merror\x1b[0m: " if has else "error: ") == capsys.readouterr().err.partition("there")[0]


def test_a_report_has_colours() -> None:
    """The kind of a report and its marks stand out, what frames them is weak, and the text itself stays as it is."""
    codes = {f"{{{code}}}": f"\x1b[{code}m" for code in (0, 2, 33)}
    expected = COLOURED
    for name, code in codes.items():
        expected = expected.replace(name, code)

    assert expected == colour_report(REPORT)
    assert "^^ no report" == colour_report("^^ no report")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ()),
        (["run", "a.koi", "--color", "never"], ("run", "a.koi", "--color", "never")),
        (["--color", "never", "run", "a.koi"], ("run", "a.koi")),
        (["--color=never", "--color", "auto", "run", "a.koi"], ("run", "a.koi")),
    ],
)
def test_the_words_of_a_command(words: list[str], expected: tuple[str, ...]) -> None:
    """What a journal keeps of a command line begins with the command."""
    assert expected == command_words(words)
