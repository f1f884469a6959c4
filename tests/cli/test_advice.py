"""What is advised where a name, a file or a model does not exist."""

from __future__ import annotations

import pytest

from koi_lang.cli import main
from koi_lang.diagnostics import suggestion
from koi_lang.llm.connection import ProviderConnection, Secret
from koi_lang.llm.model_name_check import unknown_model_error
from koi_lang.llm.providers import provider_named
from koi_lang.program import build
from tests.projects import Project


@pytest.mark.parametrize(
    ("wanted", "message", "help"),
    [
        ("std/txt", "the standard library has no `std/txt`", "did you mean `std/text`?"),
        ("std/nothing-like-it", "the standard library has no", "known parts are `std/"),
        ("./nope.koi", "there is no file `./nope.koi`", "it was looked for in "),
        ("./greter", "there is no file `./greter`", "did you mean `greeter.koi`?"),
    ],
)
def test_an_import_that_leads_nowhere(project: Project, wanted: str, message: str, help: str) -> None:
    """What is advised is a part of the standard library, or a file whose name is alike without its ending."""
    for name in ("35type.koi", "greeter.koi"):
        project.write(name, "role Idle { can rest }\n")
    main = project.write("main.koi", f'import "{wanted}"\n')

    first = build.check(str(main)).diagnostics[0]

    assert (message, help) == (first.message[: len(message)], (first.help or "")[: len(help)])


def test_a_list_that_is_cut_says_so() -> None:
    """Of many names the first eight are listed, and that there are more."""
    assert "known parts are `a0`, `a1`, `a2`, `a3`, `a4`, `a5`, `a6`, `a7`, …." == suggestion(
        "zz", [f"a{n}" for n in range(9)], "part"
    )


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("foo/bar", "there is no provider `foo`, and `openai` has no model `foo/bar`"),
        ("gpt-99x", "`openai` has no model `gpt-99x`"),
        ("acme/other", "`openai` has no model `acme/other`"),
    ],
)
def test_a_provider_that_does_not_exist(model: str, told: str) -> None:
    """What stands before the slash is called a provider unless it is the maker of a model in the list."""
    connection = ProviderConnection(provider_named("openai"), Secret("x"), model, "")

    assert told == unknown_model_error(connection, ["gpt-4o", "acme/one"]).message


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--max-usd", "abc"), "'abc' is not a valid number."),
        (("--max-usd", "inf"), "inf is no amount of money"),
        (("--max-usd", "nan"), "nan is no amount of money"),
        (("--max-turns", "x"), "'x' is not a valid whole number."),
        (("--answers", "none.json"), "error: cannot read the answers in `none.json`: no such file or directory\n"),
    ],
)
def test_options_that_cannot_be_used(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    """What is wrong with an option is told in plain words, before the program runs."""
    monkeypatch.chdir(project.folder)
    project.write("main.koi", 'role W { can think }\nagent A : W { on go() { console.log("ran") } }\nrun A.go({})')

    with pytest.raises(SystemExit) as ended:
        main(["run", "main.koi", *words])

    shown = capsys.readouterr()
    assert (2, "") == (ended.value.code, shown.out)
    assert told in shown.err
    assert "-->" not in shown.err


def test_several_files_and_folders_are_checked(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every program of a folder is checked once, those of hidden folders are not; one with errors decides the code."""
    monkeypatch.chdir(project.folder)
    for name in ("good.koi", "parts/fine.koi", "parts/bad.koi", ".hidden/worse.koi"):
        project.write(name, "run Nobody.go({})" if "bad" in name or "worse" in name else "role W { can think }\n")

    codes = []
    for words in (("good.koi", "parts"), ("good.koi", "parts/fine.koi"), (".hidden/none",)):
        with pytest.raises(SystemExit) as ended:
            main(["check", *words])
        codes.append(ended.value.code)

    told = capsys.readouterr().err
    assert [65, 0] == codes[:2]
    assert codes[2] != 0
    assert [line for line in told.splitlines() if ".koi: " in line] == [
        "good.koi: no problems",
        "parts/bad.koi: 1 error",
        "parts/fine.koi: no problems",
        "good.koi: no problems",
        "parts/fine.koi: no problems",
    ]
