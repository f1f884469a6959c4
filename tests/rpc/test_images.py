"""Messages of a client with images: shown to the model, kept in the journal, shown again when a session goes on."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.llm.images import MAX_IMAGES
from koi_lang.runtime.model_calls.images import value_of
from tests.pictures import DARK, RED
from tests.playbook.playing import act, done
from tests.rpc.talking import Talk, Talker
from tests.rpc.test_resuming import resumed

PROGRAM = '''
role Worker { can execute }
agent Main : Worker { on chat(args: { message: string }) { playbook """Answer the person.""" } }
'''
SENT = {"media_type": "image/png", "data": RED.data}


async def shown(client: Talk, *answers: Any, images: list[Any]) -> None:
    """Have the agent answer a message with images."""
    count = len(client.events("call_ended"))
    client.answer(*answers)
    await client.data("prompt", message="What is this?", name="Main.chat", images=images)
    await client.until("call_ended", count + 1)


def test_a_message_has_images(talk: Talker) -> None:
    """Images of a prompt reach the model, and are a value of the arguments."""

    async def test(client: Talk) -> None:
        await shown(client, done(), images=[SENT, {"data": DARK.data}])

        assert (RED, DARK) == client.model.requests[0].messages[0].images
        assert [value_of(RED), value_of(DARK)] == client.events("call_started")[0]["args"]["images"]
        listed = (await client.data("get_messages"))["messages"][0]["images"]
        assert [{"media_type": "image/png", "bytes": image.size} for image in (RED, DARK)] == listed

    talk(PROGRAM, test)


@pytest.mark.parametrize("command", ["steer", "follow_up"])
def test_a_queued_message_has_images(talk: Talker, command: str) -> None:
    """What is said to a playbook that works may show something; taken back, the images come back, too."""

    async def test(client: Talk) -> None:
        await client.data("prompt", message="Begin", name="Main.chat")
        await client.asked(1)
        await client.data(command, message="and this?", images=[SENT])
        assert [value_of(RED)] == (await client.data("take_back"))["taken"][0]["images"]
        await client.data(command, message="and this?", images=[SENT])
        client.answer(*([act("print", message="x")] if command == "steer" else []), done(), done())
        await client.until("call_ended")

        assert [(RED,)] == [message.images for message in client.model.requests[1].messages if message.images]

    talk(PROGRAM, test)


def test_a_session_that_goes_on_shows_the_same(talk: Talker) -> None:
    """A resumed session knows what was shown, and its fingerprints agree: nobody is asked again."""

    async def test(client: Talk) -> None:
        await shown(client, done(), images=[SENT])
        await resumed(client)
        await shown(client, done(), images=[{"data": DARK.data}])
        images = [message.images for message in client.model.requests[-1].messages if message.images]

        assert (2, [(RED,), (DARK,)]) == (len(client.model.requests), images)

    talk(PROGRAM, test)


@pytest.mark.parametrize(
    ("images", "told"),
    [
        ([{"data": "x" * 8}], "`image 1` is no image that models read"),
        ([SENT, {"data": "*"}], "the data of `image 2` is not base64"),
        ([{"url": "x"}], "image 1 is not an object with `media_type` and `data`"),
        ([SENT] * (MAX_IMAGES + 1), "the message has 21 images, and it may have at most 20"),
    ],
)
def test_what_is_no_image_is_refused(talk: Talker, images: list[Any], told: str) -> None:
    """Nothing begins with an image that no model reads; the refusal says which one it is."""

    async def test(client: Talk) -> None:
        response = await client.ask("prompt", message="What is this?", name="Main.chat", images=images)

        assert ("bad_image", told) == (response["error_code"], response["error"])
        assert [] == client.events("call_started")

    talk(PROGRAM, test)
