"""A message that is given to a handler: what `koi chat` takes, `prompt` takes, too."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.runtime.model_calls.images import value_of
from koi_lang.sessions.message_targets import targets
from tests.message_cases import CASES, MessageCase
from tests.pictures import RED
from tests.rpc.talking import Talk, Talker

ROLE = "role W { can execute }\n"
SENT = [{"media_type": "image/png", "data": RED.data}]
TAKING = ["string", "{ q: string, n?: number }", "{ text?: string }", "{ message: string }", "Json", "any"]


def handler(takes: str, name: str = "x") -> str:
    """An agent with one handler."""
    return f"{ROLE}agent A : W {{ on {name}(args: {takes}) {{ return 1 }} }}"


async def given(client: Talk, **fields: Any) -> Any:
    """What the handler is given for a prompt."""
    count = len(client.events("call_ended"))
    await client.data("prompt", message="hi", **fields)
    await client.until("call_ended", count + 1)
    return client.events("call_started")[-1]["args"]


@pytest.mark.parametrize("takes", TAKING)
def test_a_prompt_is_what_the_handler_takes(talk: Talker, takes: str) -> None:
    """The text goes where `koi chat` puts it, with a name and, since the handler is the only one, without."""

    async def test(client: Talk) -> None:
        (target,) = targets(client.dispatcher.session.ready.agents)

        assert target.payload("hi") == await given(client, name="A.x") == await given(client)

    talk(handler(takes), test)


def test_images_of_a_prompt_stand_beside_its_text(talk: Talker) -> None:
    """Whatever the field for the text is called."""

    async def test(client: Talk) -> None:
        assert {"q": "hi", "images": [value_of(RED)]} == await given(client, images=SENT)

    talk(handler("{ q: string }"), test)


@pytest.mark.parametrize(
    ("takes", "fields", "message", "help"),
    [
        ("{ n: number }", {"name": "A.x"}, "`A.x` takes no message", "It takes (n: number)."),
        ("number", {"name": "A.x"}, "`A.x` takes no message", "It takes (number)."),
        ("{ n: number }", {}, "`A` has no handler that takes a message", "on chat(args: { message: string })"),
        ("string", {"name": "A.x", "images": SENT}, "`A.x` takes a text, which has no place for images", "an object"),
    ],
)
def test_a_prompt_that_a_handler_cannot_take_is_refused(
    talk: Talker, takes: str, fields: dict[str, Any], message: str, help: str
) -> None:
    """The client is told what the handler takes, or that none takes a message."""

    async def test(client: Talk) -> None:
        response = await client.ask("prompt", message="hi", **fields)

        assert (message, "invalid_request") == (response["error"], response["error_code"])
        assert help in response["help"]

    talk(handler(takes), test)


def test_several_handlers_are_named(talk: Talker) -> None:
    """Where `koi chat` would let the person choose, the client has to; the event `chat` goes first."""
    source = f"{ROLE}agent A : W {{ on a(args: string) {{ }} on b(args: string) {{ }} }}"

    async def refused(client: Talk) -> None:
        response = await client.ask("prompt", message="hi")

        assert ("several handlers take a message", "Name one: `A.a`, `A.b`.") == (
            response["error"],
            response["help"],
        )

    async def chosen(client: Talk) -> None:
        assert {"message": "hi"} == await given(client)

    talk(source, refused)
    talk(source.replace("on b(args: string)", "on chat(args)"), chosen)


@pytest.mark.parametrize(
    ("handlers", "event"),
    [
        ('on work(n: number) { playbook "x" } on chat(text: string) { }', "chat"),
        ('on work(topic: string) { playbook "x" } on chat(text: string) { }', "chat"),
        ('on work(topic: string) { playbook "x" } on other(text: string) { }', "work"),
    ],
)
def test_a_prompt_without_a_name_goes_where_chat_goes(talk: Talker, handlers: str, event: str) -> None:
    """A playbook is not preferred to a handler for messages; it is where the person would have to choose."""

    async def test(client: Talk) -> None:
        assert f"A.{event}" == (await client.data("prompt", message="hi"))["name"]

    talk(f"{ROLE}agent A : W {{ {handlers} }}", test)


def test_a_prompt_after_a_call_that_takes_none(talk: Talker) -> None:
    """The last handler gets the next message if it takes one; else it goes where the first would have gone."""

    async def test(client: Talk) -> None:
        await client.data("run_playbook", name="A.sum", args={"n": 1})
        await client.until("call_ended", 1)

        assert {"message": "hi"} == await given(client)

    talk(f"{ROLE}agent A : W {{ on sum(args: {{ n: number }}) {{ }} on chat(args) {{ }} }}", test)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case.agents)}:{case.name}")
def test_prompts_go_where_all_messages_go(talk: Talker, case: MessageCase) -> None:
    """To the same handler, with the same payload, or refused with the same words, as by any other surface."""

    async def test(client: Talk) -> None:
        response = await client.ask("prompt", message=case.text, name=case.name)
        assert case.refused == response.get("error", "")
        if case.call is not None:
            started = await client.until("call_started")
            assert case.call == (started["name"].partition(".")[0], started["args"])

    talk(case.source, test)


def test_an_empty_prompt_is_refused(talk: Talker) -> None:
    """As an empty line of a conversation is."""

    async def test(client: Talk) -> None:
        assert "there is nothing to say in an empty message" == (await client.ask("prompt", message=" "))["error"]

    talk(handler("string"), test)
