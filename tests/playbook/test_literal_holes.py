r"""What stands for a value in an answer, and how `${` is written as text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koi_lang.errors import AgentError
from koi_lang.llm.rehearsal.values import without_references
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.playbook.references import ActionScope, require_results
from tests.playbook.playing import Player, act, done, solo
from tests.playbook.transports import MODELS, talk


def scope(**args: object) -> ActionScope:
    """What references can mention."""
    return ActionScope(evaluate, args, {"n": 2})


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        (r"\${args.n}", "${args.n}"),
        (r"\\${args.n}", r"\3"),
        (r"\\\${args.n}", r"\${args.n}"),
        (r"\\\\${args.n}\\", r"\\3\\"),
        (r"\{{args.n}}", "{{args.n}}"),
        (r"a \${args.n} costs $${args.n}", "a ${args.n} costs $3"),
        (r"\$${args.n}", r"\$3"),
        (r"\${HOME} and ${HOME}", "${HOME} and ${HOME}"),
        (r"C:\new\{args} \$ \n", r"C:\new\{args} \$ \n"),
        (r"\${args.n", r"\${args.n"),
        (r"\${}", r"\${}"),
        (r"${\${args.n}}", "${${args.n}}"),
        (r"${args.n}\${args.n}${state.n}", "3${args.n}2"),
    ],
)
def test_backslashes(written: str, filled: str) -> None:
    """One has what follows stand as it is, two stand for one; in front of anything else they are characters."""
    assert {"a": [filled]} == scope(n=3).resolve({"a": [written]})


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("${args.list.map(x => x.name).push(1)}", "this call is not allowed"),
        ("in all ${args.list.map(a => a + c)}", "there is no `c` here"),
        ("${args.list.map(x => }", "is no expression"),
        ("{{state.n.map(x => x)}}", "`map` cannot be called on a number"),
    ],
)
def test_what_cannot_be_computed_is_told(written: str, message: str) -> None:
    """It is no text that passes for a result: whoever wrote it begins with a value that is known."""
    with pytest.raises(AgentError, match=message):
        scope(list=[{"name": "Ada"}]).resolve({"data": [written]})


@pytest.mark.parametrize(
    "written", ["${total + args.n}", "${x => args.n}", "`${args.list.forEach(x => 1)}`", "{{#each args}}"]
)
def test_texts_for_others_stay(written: str) -> None:
    """Templates, programs in backticks and names that nobody here knows are texts."""
    assert written == scope(list=[1], n=3).resolve(written)


def test_a_literal_refers_to_nothing() -> None:
    """What is not there is no error, and has no type of its own."""
    require_results(scope(), {"message": r"\${nobody.output.x}"})

    assert "${state.n}" == scope().resolve(r"\${state.n}")


def test_a_literal_in_a_condition() -> None:
    """In quotes it is what it is in code: text."""
    assert scope(text="${state.n}").evaluate_condition(r"""args.text == '\${state.n}'""")
    assert not scope(text="2").evaluate_condition(r"""args.text == '\${state.n}'""")


@given(st.text("$\\{}x", max_size=12))
def test_a_rehearsal_writes_any_value(value: str) -> None:
    """What is no reference of its author arrives as it is, between backslashes of the author, too."""
    answer = without_references([("a", True), (value, False), ("${args.x}\\", True), (value, False)])

    assert f"a{value}<x>\\{value}" == scope(x="<x>").resolve(answer)


@given(st.text("\\$", max_size=6))
def test_backslashes_of_a_value(value: str) -> None:
    """They have no reference of the author stand as it is."""
    assert f"{value}1." == scope(x=1).resolve(without_references([(value, False), ("${args.x}.", True)]))


@pytest.mark.parametrize("text", ["\\" * 2_000_000, "${" * 1_000_000, "\\${x}" * 400_000], ids=["\\", "${", "\\${x}"])
def test_long_texts_take_time_in_proportion(text: str) -> None:
    """However many backslashes there are."""
    began = time.process_time()
    scope().resolve(text)

    assert time.process_time() - began < 5


@pytest.mark.parametrize("transport", ["text", "tools"])
@pytest.mark.parametrize("provider", list(MODELS))
def test_a_model_writes_a_literal(play: Player, provider: str, transport: str) -> None:
    """In an action and in one within a plan."""
    says = [
        act("print", message=r"\${args.n} is ${args.n}"),
        act("repeat", count=1, actions=[act("print", message=r"\${state}")]),
    ]
    played, *_ = talk(
        play, solo("think", "execute"), [[*says, done()]], (provider, transport), calls=[("Main.go", {"n": 3})]
    )

    assert (None, ("${args.n} is 3", "${state}")) == (played.error, played.printed)


def test_a_model_learns_how_to_write_a_literal(play: Player) -> None:
    """Where it refers to a result that nobody has; what it is told works."""
    text = "${nobody.output.x}"
    played = play(solo("think", "execute"), [act("print", message=text), act("print", message=f"\\{text}"), done()])

    assert r"A text `${…}` is written `\\${…}` in JSON" in played.feedback[1]
    assert (text,) == played.printed
