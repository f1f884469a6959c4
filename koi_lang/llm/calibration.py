"""What models have counted to how much more than an estimate their requests may take."""

from __future__ import annotations

from dataclasses import dataclass

from koi_lang.llm.messages import Request
from koi_lang.llm.usage import Estimate, has_images, input_tokens_of

# Of a shorter request, what a provider adds to every request says more than how it counts texts.
LONG_TOKENS = 200


@dataclass(frozen=True, slots=True)
class _Excess:
    """How much more a model has counted than was estimated: in times of long requests, in tokens of short ones."""

    times: float = 1.0
    tokens: int = 0

    def with_count(self, estimated: int, counted: int) -> _Excess:
        if estimated < LONG_TOKENS:
            return _Excess(self.times, max(self.tokens, counted - estimated))
        return _Excess(max(self.times, counted / estimated), self.tokens)

    def factor(self, estimated: int) -> float:
        """How many times an estimate a request may take."""
        return max(self.times, 1 + self.tokens / max(1, estimated))


class Calibration:
    """What the models of a run have counted for requests beside their estimates; it never makes one lower."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], _Excess] = {}

    def learn(self, model: str, request: Request, counted: int) -> None:
        """Take in how many tokens a model has counted for a request; it may be called `provider/model`."""
        estimated, shows_images = input_tokens_of(request), has_images(request.messages)
        for name in {model, model.partition("/")[2] or model}:
            self._known[name, shows_images] = self._of(name, shows_images).with_count(estimated, counted)

    def adjust(self, need: Estimate) -> Estimate:
        """An estimate that is no lower than what its models have counted so far leads to expect."""
        kinds = (False, True) if need.has_images else (False,)
        found = [self._of(model, kind).factor(need.input_tokens) for model in need.models for kind in kinds]
        return need.times(max(found, default=1.0))

    def _of(self, model: str, has_images: bool) -> _Excess:
        return self._known.get((model, has_images)) or _Excess()
