"""Which handler of a program messages are for, and what it is given."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koi_lang.cli.chat.view import answer_in, result_text
from koi_lang.errors import UsageError
from koi_lang.program import declarations, loader
from koi_lang.sessions.message_targets import targets, text_of
from tests.message_cases import CASES, MessageCase
from tests.projects import Project

ROLE = "role W { can execute }\n"


def found(project: Project, source: str, *chosen: str) -> list[str]:
    """The handlers that messages may be for."""
    module = project.load("a.koi", ROLE + source)
    return [target.name for target in targets(declarations.agents_of(module), *chosen)]


@pytest.mark.parametrize(
    ("handlers", "expected"),
    [
        ("on other(args: string) {} on message(args: Json) {} on chat(args) {}", ["A.chat"]),
        ("on other(args: string) {} on message(args: Json) {}", ["A.message"]),
        ("on other(args: string) {} on any(args: Json) {}", ["A.other"]),
        ("on sum(args: { n: number }) {} on ask(args: { question: string, n?: number }) {}", ["A.ask"]),
        ("private on chat(args: string) {} on any(args: Json) {}", ["A.any"]),
        ("on a(args: string) {} on b(args: { text: string }) {}", ["A.a", "A.b"]),
        ("on a(args: string) {} on chat(args: { n: number }) {}", ["A.a"]),
        ('on a(args: string) {} on b(args: string) { playbook "x" }', ["A.b"]),
    ],
)
def test_the_handler_is_found(project: Project, handlers: str, expected: list[str]) -> None:
    """`chat` goes first, then `message`, then whatever says that it takes a text, then whatever takes anything."""
    assert expected == found(project, f"agent A : W {{ {handlers} }}")


def test_an_agent_and_an_event_can_be_chosen(project: Project) -> None:
    """Whoever is named is talked to, whatever else there is."""
    source = "agent A : W { on chat(args) {} on x(args) {} } agent B : W { on chat(args) {} }"

    assert ["A.chat", "B.chat"] == found(project, source)
    loader.unload()
    assert ["B.chat"] == found(project, source, "B")
    loader.unload()
    assert ["A.x"] == found(project, source, "A", "x")


@pytest.mark.parametrize(
    ("chosen", "message", "help"),
    [
        (("Mein",), "there is no agent `Mein`", "did you mean `Main`?"),
        (("Main", "sum"), "`Main.sum` takes no message", "It takes (n: number). These take one: `Main.ask`."),
        (("Main", "no"), "`Main` has no handler for `no`", "These take one: `Main.ask`."),
        (("Other",), "`Other` has no handler that takes a message", "on chat(args: { message: string })"),
    ],
)
def test_nobody_to_talk_to(project: Project, chosen: tuple[str, ...], message: str, help: str) -> None:
    """Who is not there, or takes no messages, is told with what to do."""
    source = (
        "agent Main : W { on sum(args: { n: number }) {} on ask(args) {} } agent Other : W { on x(args: number) {} }"
    )
    with pytest.raises(UsageError) as raised:
        found(project, source, *chosen)

    assert (message, True) == (raised.value.message, help in (raised.value.help or ""))


@pytest.mark.parametrize(
    ("handler", "payload"),
    [("string", "hi"), ("{ q: string, n?: number }", {"q": "hi"}), ("Json", {"message": "hi"})],
)
def test_what_the_handler_is_given(project: Project, handler: str, payload: Any) -> None:
    """The text itself, or an object with it in the field that must be given; and the text is found again."""
    module = project.load("a.koi", f"{ROLE}agent A : W {{ on x(args: {handler}) {{}} }}")
    (target,) = targets(declarations.agents_of(module))

    assert (payload, "hi") == (target.payload("hi"), text_of(payload))


@pytest.mark.parametrize(
    ("result", "text"),
    [(None, ""), ({}, ""), ("a", "a"), ({"answer": "a"}, "a"), ({"n": 1}, '{\n  "n": 1\n}'), (3, "3")],
)
def test_what_is_shown_of_a_result(result: Any, text: str) -> None:
    """One text is shown as such; nothing is nothing; all else is JSON."""
    told = answer_in(result)

    assert text == (result_text(result) if told is None else told)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case.agents)}:{case.name}")
def test_a_conversation_goes_where_all_messages_go(project: Project, case: MessageCase) -> None:
    """To the same handler, with the same payload, or refused with the same words, as by any other surface."""
    project.write("a.koi", case.source)

    outcome = project.koi("chat", "a.koi", *([case.name] if case.name else []), stdin=f"{case.text}\n")

    agent, payload = case.call or ("", None)
    printed = f"{agent} {json.dumps(payload, separators=(',', ':'))}\n" if agent else ""
    assert (printed, True) == (outcome.stdout, case.refused in outcome.stderr)
