"""What models have counted makes estimates larger, and nothing makes them smaller."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koi_lang.llm.images import Image
from koi_lang.llm.messages import Message, Request
from koi_lang.llm.token_weight import weight
from koi_lang.llm.usage import Calibration, Candidate, Estimate, estimate, input_tokens_of

LONG = Request("", (Message("user", "four" * 1000),))
LOOK = Request("", (Message("user", "four" * 1000, (Image("image/png", "aGk="),)),))


def need(request: Request = LONG, *models: str) -> Estimate:
    """The most that a request should take."""
    return estimate(request, [Candidate(model) for model in models or ("gpt-4o-mini",)])


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The quick brown fox jumps over the lazy dog. " * 10, 90, 130),
        ('{"intent":"print","message":"hi","n":12345}', 14, 25),
        ("吾輩は猫である。名前はまだ無い。", 16, 20),
        ("中华人民共和国万岁", 9, 12),
        ("안녕하세요 세계", 7, 10),
        ("Съешь ещё этих мягких булок", 8, 15),
        ("👍🏽🎉", 6, 6),
        ("\ud800", 1, 2),
    ],
)
def test_tokens_of_a_text(text: str, least: int, most: int) -> None:
    """Words of English are several letters a token; characters of other scripts, digits and marks take more."""
    assert least <= weight(text) <= most


def test_the_weight_of_pieces_is_that_of_the_whole() -> None:
    """However an answer is cut, it takes the same."""
    text = 'ä 猫 "x": 12 👍 words'

    assert weight(text) == pytest.approx(sum(map(weight, text)))


@pytest.mark.parametrize(("counted", "times"), [(0.1, 1), (1, 1), (1.5, 1.5), (3, 3)])
def test_what_was_counted_bounds_the_next_estimate(counted: float, times: float) -> None:
    """The largest ratio counts; a provider that counts less lowers nothing."""
    calibration, tokens = Calibration(), input_tokens_of(LONG)
    for told in (1, tokens * counted, 1):
        calibration.learn("gpt-4o-mini", LONG, int(told))

    sized = calibration.adjust(need())
    assert tokens * times == pytest.approx(sized.input_tokens, abs=3)
    assert need().input_usd * times == pytest.approx(sized.input_usd, rel=0.01)
    assert need().answer_tokens == sized.answer_tokens


def test_each_model_is_learnt_for_itself() -> None:
    """One that counts a lot does not make others dearer; of those that may answer the dearest counts."""
    calibration = Calibration()
    calibration.learn("a/gpt-4o", LONG, 3 * input_tokens_of(LONG))

    assert need() == calibration.adjust(need())
    assert need().input_tokens * 2.9 < calibration.adjust(need(LONG, "gpt-4o-mini", "gpt-4o")).input_tokens


def test_what_a_provider_adds_to_every_request() -> None:
    """Fifty tokens more than a short request has are fifty for every other, not many times as much for a long one."""
    short = Request("", (Message("user", "hi"),))
    calibration, tokens = Calibration(), input_tokens_of(short)
    calibration.learn("gpt-4o-mini", short, tokens + 50)

    assert tokens + 50 == calibration.adjust(need(short)).input_tokens
    assert need().input_tokens + 50 == pytest.approx(calibration.adjust(need()).input_tokens, abs=1)


def test_images_count_where_there_are_images() -> None:
    """A model that counts much for images does not count more for texts; what it counts for texts is in both."""
    calibration = Calibration()
    calibration.learn("gpt-4o-mini", LOOK, 5 * input_tokens_of(LOOK))

    assert need() == calibration.adjust(need())
    assert need(LOOK).input_tokens * 4.9 < calibration.adjust(need(LOOK)).input_tokens

    calibration.learn("gpt-4o-mini", replace(LONG), 9 * input_tokens_of(LONG))
    assert need(LOOK).input_tokens * 8.9 < calibration.adjust(need(LOOK)).input_tokens
