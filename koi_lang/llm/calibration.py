"""What models have counted to how much more than an estimate their requests may take."""

from __future__ import annotations

from collections.abc import Iterable

from koi_lang.llm.accounting import Estimate, input_tokens_of
from koi_lang.llm.messages import Request

# What a provider adds to every request of its own says little about texts: shorter ones count as if they had so many.
LEAST_TOKENS = 200


class Calibration:
    """How many times its estimate each model of a run has counted for a request, at the most; never less than once."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, bool], float] = {}

    def learn(self, model: str, request: Request, counted: int) -> None:
        """Take in how many tokens a model has counted for a request; it may be called `provider/model`."""
        times = counted / max(LEAST_TOKENS, input_tokens_of(request))
        for name in {model, model.partition("/")[2] or model}:
            key = (name, _has_images(request))
            self._times[key] = max(times, self._times.get(key, 1.0))

    def sized(self, need: Estimate) -> Estimate:
        """An estimate that is no lower than what its models have counted so far leads to expect."""
        return need.times(max((self._of(model, need.has_images) for model in need.models), default=1.0))

    def _of(self, model: str, has_images: bool) -> float:
        """What is known from texts; where there are images, from requests with images, too."""
        kinds: Iterable[bool] = (False, True) if has_images else (False,)
        return max(self._times.get((model, kind), 1.0) for kind in kinds)


def _has_images(request: Request) -> bool:
    return any(message.images for message in request.messages)
