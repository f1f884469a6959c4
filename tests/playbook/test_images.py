"""Images in what a playbook is given, told and answered: shown to its model, told in words, counted once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from koi_lang.events import ActionEnded, Event
from koi_lang.llm.images import TOKENS, Image
from koi_lang.llm.messages import Message, Request
from koi_lang.llm.usage import tokens_of
from koi_lang.redaction.redactor import HIDDEN, redactor
from koi_lang.runtime.context import current_run
from koi_lang.runtime.journal.entries import entry_in, entry_of, line_of
from koi_lang.runtime.model_calls.images import image_in, images_in, prompt_text, replace_images, value_of
from koi_lang.runtime.playbook.summaries import ConversationSummary
from koi_lang.runtime.replay.location import Location
from koi_lang.runtime.replay.request_digest import ToldDigests
from tests.pictures import DARK, RED
from tests.playbook.playing import Player, Voice, act, ask, done, playbook_in, solo

NOTE = f"[image, image/png, {RED.size} bytes]"
FAMILY = """
role Lead { can delegate }
agent Helper : Lead {
  on look(args) { playbook "Look." }
  on fetch(args) { return { screen: args.picture } }
}
team Crew { helper: Helper }
agent Main : Lead { uses team Crew  on go(args) { playbook "Have somebody look." } }
"""


def voice(answers: Sequence[Any], name: str = "gpt-4o") -> Voice:
    """A model of a name that gives answers in order."""
    given = iter(answers)

    async def speak(request: Request) -> AsyncIterator[str]:
        yield json.dumps(next(given))

    return Voice(speak, name=name)


# ---------------------------------------------------------------- what is shown


def test_images_in_arguments_are_shown(play: Player) -> None:
    """The first message shows each image once, and tells of it where its data would stand."""
    payload = {"message": "what?", "images": [value_of(RED), value_of(RED), value_of(DARK)]}
    played = play(solo(), voice([done()]), payload=payload)
    opening, _ = played.requests[0].messages

    assert (RED, DARK) == opening.images
    assert f'"images":["{NOTE}","{NOTE}","[image, image/png, {DARK.size} bytes]"]' in opening.text


def test_the_playbook_text_has_no_data(play: Player) -> None:
    """A playbook that quotes its arguments names them; what is computed of them is told as a note."""
    program = solo(playbook="Look at ${args} and ${args.picture ?? 1}.")
    request = play(program, voice([done()]), payload={"picture": value_of(RED)}).requests[0]

    assert "Look at ⟨args⟩ and ⟨args.picture ?? 1⟩." == playbook_in(request)
    assert f'{{"⟨args.picture ?? 1⟩":"{NOTE}"}}' in request.messages[1].text


def test_a_delegate_is_shown_what_it_is_given(play: Player) -> None:
    """A model hands an image on by reference, and the model of the delegate sees it."""
    answers = [ask("helper::look", {"picture": "${args.picture}"}), done(), done()]
    played = play(FAMILY, voice(answers), payload={"picture": value_of(RED)})

    assert (RED,) == played.requests[1].messages[0].images


@pytest.mark.parametrize(("name", "expected"), [("gpt-4o", (RED,)), ("gpt-3.5-turbo", ()), ("some-model", ())])
def test_images_in_results_are_shown_to_models_that_see(play: Player, name: str, expected: tuple[Image, ...]) -> None:
    """A model that is known to see gets the image of a result beside the note; others go on with the note."""
    answers = [ask("helper::fetch", {"picture": "${args.picture}"}), done()]
    played = play(FAMILY, voice(answers, name), payload={"picture": value_of(RED)})
    feedback = played.requests[1].messages[-1]

    assert (True, expected) == (f'-> {{"screen":"{NOTE}"}}' in feedback.text, feedback.images)


def test_call_llm_is_shown_images_in_its_data(play: Player) -> None:
    """Code and playbooks can ask about an image in some data."""
    answers = [
        act("call_llm", data={"about": "${args.picture}"}, instruction="Which colour?"),
        {"it is": "red"},
        done(),
    ]
    played = play(solo(), voice(answers), payload={"picture": value_of(RED)})
    asked = played.requests[1].messages[0]

    assert (f'{{"about":"{NOTE}"}}', (RED,)) == (asked.text, asked.images)


def test_a_note_with_an_image_is_heard(play: Player) -> None:
    """What is said while a playbook works may have an image, which its next request shows."""
    given = iter([act("print", message="working"), done()])

    async def speak(request: Request) -> AsyncIterator[str]:
        if len(request.messages) == 2:
            current_run().steering.say(Message("user", "[image 1: a.png] Look here", (RED,)))
        yield json.dumps(next(given))

    played = play(solo(), Voice(speak))

    assert (RED,) == played.requests[1].messages[-1].images
    assert "[image 1: a.png] Look here" in played.requests[1].messages[-1].text


# ---------------------------------------------------------------- values


def test_what_is_no_image_is_left_as_it_is() -> None:
    """Only an object whose data is an image of a known form is one; the rest is told as before."""
    others = [
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "image", "data": 3},
        {"type": "text", "data": RED.data},
        None,
    ]

    assert [None] * 4 == [image_in(value) for value in others]
    assert "[image, image/png, 2 bytes]" == replace_images(others)[0]


def test_images_in_a_circle_end() -> None:
    """A value that contains itself is looked through once, and one that is nested too deeply is not to its end."""
    value: dict[str, Any] = {"picture": value_of(RED)}
    value["again"] = [value]
    deep: Any = value_of(RED)
    for _ in range(5000):
        deep = [deep]

    assert ((RED,), ()) == (images_in(value), images_in(deep))


def test_text_of_a_value_has_notes() -> None:
    """As text, a value has notes where its images are."""
    assert f'{{"a":["{NOTE}"],"b":1}}' == prompt_text({"a": [value_of(RED)], "b": 1})


# ---------------------------------------------------------------- long conversations, journals


def test_an_image_counts_in_a_window() -> None:
    """A conversation is shortened for its images, too."""
    assert TOKENS + 1 == tokens_of([Message("user", "four", (RED,))])


def test_a_record_shows_the_images_of_the_opening() -> None:
    """Where the beginning of a call is summed up, its images stay: the work is about them."""
    assert (RED,) == ConversationSummary.of("done so far", Message("user", "Look.", (RED,))).images


def test_a_fingerprint_changes_with_an_image() -> None:
    """The same words about another image are another request, and words alone have the fingerprint they had."""
    requests = [Request("s", (Message("user", "t", images),)) for images in ((), (RED,), (DARK,), (RED, DARK))]
    fingerprints = [ToldDigests().news(Location(()), request, "Main").fingerprint for request in requests]

    assert 4 == len(set(fingerprints))


@pytest.mark.parametrize("secret", ["", "hunter22hunter22"])
def test_a_journal_keeps_images_and_hides_secrets(secret: str) -> None:
    """The data of an image comes back as it was, even if a secret could be found in it; secrets beside it do not."""
    value = {"picture": value_of(RED), "word": secret}
    redact = redactor({"MY_KEY": RED.data[20:60], "OTHER_KEY": secret})
    found = entry_in(line_of(entry_of(Event(1, 5.0, "r", "Ada", ActionEnded("read_image", value), ()), 1), redact))

    assert found is not None
    assert {"picture": value_of(RED), "word": HIDDEN if secret else ""} == found.data["result"]
