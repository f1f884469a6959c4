"""How long a conversation may become, by what is known of the model and what an `llm` block says."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.errors import SettingsError
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.runtime.playbook.context_window import Window, window_of
from tests.playbook.tellers import Teller, in_turn, program
from tests.support import diagnostics_of_text

# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("model", "block", "expected"),
    [
        ("gpt-4o", {}, (128_000 - 16_384, 20_000)),
        ("nobody-knows", {}, (100_000, 20_000)),
        ("claude-sonnet-5-5", {}, (1_000_000 - 16_384, 20_000)),
        ("gpt-5.4-mini", {}, (272_000, 20_000)),
        ("gpt-5.4-mini", {"context_tokens": 400_000}, (272_000, 20_000)),
        ("gpt-6-luna", {}, (272_000, 20_000)),
        ("gpt-6-luna", {"context_tokens": 1_000_000}, (922_000, 20_000)),
        ("gpt-6-luna", {"compact": {"threshold_tokens": 500_000}}, (500_000, 20_000)),
        ("gpt-4o", {"compact": {"threshold_tokens": 50_000}}, (50_000, 50_000 // 3)),
        ("gpt-4o", {"context_tokens": 16_000}, (12_000, 4_000)),
        (
            "gpt-4o",
            {"context_tokens": 16_000, "compact": {"reserve_tokens": 1000, "keep_tokens": 9000}},
            (15_000, 7500),
        ),
        ("scripted", {}, (None, 20_000)),
        ("scripted", {"context_tokens": 16_000.0}, (12_000, 4_000)),
    ],
)
def test_the_window_follows_from_the_model_and_the_block(model: str, block: Any, expected: tuple[Any, ...]) -> None:
    """What is declared goes before what is known of the model; without both, 100,000 tokens are the limit.

    Requests that cost more for their length are made only if the block asks for that.
    """
    found = window_of(block, ScriptedModel([]) if model == "scripted" else Teller(in_turn(), name=model))

    assert expected == (found.limit, found.keep)


@pytest.mark.parametrize("value", [False, {"enabled": False}])
def test_compact_can_be_false(value: Any) -> None:
    """`compact: false` is short for switching it off."""
    assert (True, False) == (
        window_of({}, ScriptedModel([])).enabled,
        window_of({"compact": value}, ScriptedModel([])).enabled,
    )


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"context_tokens": "many"}, "`context_tokens` of an `llm` block is no number of tokens"),
        ({"context_tokens": -1}, "`context_tokens` of an `llm` block is no number of tokens"),
        ({"compact": "on"}, "`compact` of an `llm` block is neither an object nor true or false"),
        ({"compact": {"keep": 1}}, "`compact` of an `llm` block has no option `keep`"),
        (
            {"context_tokens": 1000, "compact": {"reserve_tokens": 1000}},
            "`reserve_tokens: 1000` leaves nothing of a window of 1000 tokens",
        ),
    ],
)
def test_settings_without_sense_are_refused(block: Any, message: str) -> None:
    """The message names the option, and there is something to do."""
    with pytest.raises(SettingsError) as raised:
        window_of(block, ScriptedModel([]))

    assert (message, True) == (raised.value.message, bool(raised.value.help))


def test_a_system_text_takes_room() -> None:
    """Where the rest of the window is small, less is kept; where it has none at all, nothing is shortened."""
    beside = Window(12_000, 4_000, 3_000).beside(10_000)

    assert (1000, 500) == (beside.keep, beside.record)
    assert [False, True] == [beside.is_exceeded(lambda: 13_000, "x" * 4 * system) for system in (12_000, 11_999)]


def test_keeping_answers_is_no_unknown_option() -> None:
    """What `[models]` of `koi.toml` may hold is known in an `llm` block, too, such as `cache`."""
    assert [] == diagnostics_of_text(program("cache: true"))


def test_a_mistyped_option_is_noticed() -> None:
    """An option inside of `compact` that does not exist is a warning."""
    (found,) = diagnostics_of_text(program("compact: { keep_token: 1 }"))

    assert ("E0416", "`compact` has no option `keep_token`") == (found.code, found.message)
