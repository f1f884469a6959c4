"""What models think is shown while it arrives, and nothing comes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from koi_lang.cli.ui.activity import Activity
from koi_lang.cli.ui.activity_text import doing_now
from koi_lang.events import Event, HandlerStarted, ModelAsked, ThoughtDelta
from koi_lang.llm.messages import Delta, Request, ThinkingDelta, Usage
from koi_lang.runtime.context import current_run
from koi_lang.runtime.events import Events
from tests.playbook.playing import Player, Voice, solo

RETURN = '{"actionType": "direct", "intent": "return", "data": {"n": 1}}'
PRINT = '{"actionType": "direct", "intent": "print", "data": {"message": "from a thought"}}'


class Thinker(Voice):
    """A model that thinks before it answers."""

    def __init__(self, *thoughts: str, usage: Usage | None = None) -> None:
        super().__init__(speak_end, usage)
        self._thoughts = thoughts
        self.seen: list[Event] = []

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream thoughts, then an action that ends the playbook."""
        current_run().events.subscribe(self.seen.append, transient=True)
        for thought in self._thoughts:
            yield ThinkingDelta(thought)
        async for delta in super().__call__(request):
            yield delta


async def speak_end(request: Request) -> AsyncIterator[str]:
    """The action that ends a playbook."""
    yield RETURN


@pytest.mark.parametrize(
    "thoughts",
    [
        (PRINT,),
        (PRINT[:20], PRINT[20:]),
        (f"[{PRINT},", f"{PRINT}]"),
        ("```json\n", PRINT, "\n```"),
        ('{"actions": [',),
    ],
)
def test_an_action_in_a_thought_does_nothing(play: Player, thoughts: tuple[str, ...]) -> None:
    """A thought may hold a whole action, or the beginning of one: only the answer is read, and kept."""
    played = play(solo(), Thinker(*thoughts))

    assert ({"n": 1}, (), ["return"]) == (played.result, played.printed, played.did())
    kept = [event for event in played.events if "from a thought" in repr(event.fields)]
    assert [] == kept


def test_thoughts_are_told_as_they_come(play: Player) -> None:
    """Whoever watches sees each piece; the event is passing, and the tokens of thoughts stand beside the others."""
    model = Thinker("Hm. ", "So.", usage=Usage(10, 8, thinking_tokens=5))

    played = play(solo(), model)

    assert ["Hm. ", "So."] == [event.data.text for event in model.seen if isinstance(event.data, ThoughtDelta)]
    (answered,) = [event.fields["tokens"] for event in played.events if event.type == "model_answered"]
    assert {"input": 10, "output": 8, "cached": 0, "thinking": 5} == answered


def test_thoughts_are_counted_where_nobody_counts(play: Player) -> None:
    """A provider that tells no numbers is estimated with what its model thought."""

    def output_of(*thoughts: str) -> int:
        played = play(solo(), Thinker(*thoughts))
        (answered,) = [event.fields["tokens"]["output"] for event in played.events if event.type == "model_answered"]
        return int(answered)

    assert 100 == output_of("word" * 100) - output_of()


def test_the_end_of_a_thought_is_shown_in_one_line() -> None:
    """Without secrets and escapes, and without a word of which a part may be missing; the answer takes its place."""
    work, path = Activity(lambda: 0.0, lambda text: text.replace("hunter2", "[redacted]")), ("Ann.go#1", "model#1")
    seen: list[Event] = []
    events = Events("r")
    events.subscribe(seen.append)
    events.emit(HandlerStarted("go"), "Ann", path=path[:1])
    events.emit(ModelAsked("m"), "Ann", path=path)
    for event in seen:
        work.follow(event)
    (ann,) = work.workers()

    work.think(path, "They say \x1b[2Jhunter2,\nso th")
    thinking = doing_now(work, ann, 60)
    work.wrote(path, '{"intent": "print", "message": "Hello Ada')

    assert "thinking: They say [redacted], so" == thinking
    assert 'writing print "Hello"' == doing_now(work, ann, 60)
    assert not work.think(path[:1], "too late")
