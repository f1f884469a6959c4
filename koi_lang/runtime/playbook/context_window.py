"""The settings of an `llm` block for long conversations: when to shorten them, and to which length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import SettingsError
from koi_lang.llm.cards import ModelCard
from koi_lang.llm.messages import Adapter
from koi_lang.llm.models import card_of
from koi_lang.llm.usage import tokens_of
from koi_lang.runtime.budget.limits import UNPAID
from koi_lang.settings.project import COMPACT_OPTIONS

RESERVE = 16_384
KEEP = 20_000
THRESHOLD = 100_000
MIN_RECORD = 250
FORM = "Write for example `context_tokens: 32000, compact: { keep_tokens: 8000 }`."


@dataclass(frozen=True, slots=True)
class Window:
    """How long a conversation with a model may become; all in tokens.

    Attributes:
        limit: a request that takes more is shortened; None where nothing bounds it.
        keep: about how much of the newest messages stays as it is.
        record: most for the summary of the others.
        enabled: whether it is shortened without being asked for.
    """

    limit: int | None
    keep: int
    record: int
    enabled: bool = True

    def is_exceeded(self, tokens: Callable[[], int], system: str) -> bool:
        """Whether a request should be shortened; where the system text alone is too long, that does not help.

        Args:
            tokens: counts what the request takes; is called only where there is a limit.
        """
        return self.enabled and self.limit is not None and tokens_of((), system) < self.limit < tokens()

    def beside(self, system_tokens: int) -> Window:
        """The same for a conversation that shares the window with a system text."""
        if self.limit is None:
            return self
        room = max(0, self.limit - system_tokens)
        return replace(self, keep=min(self.keep, room // 2), record=max(MIN_RECORD, min(self.record, room // 4)))


def window_of(block: Mapping[str, Any], model: Adapter) -> Window:
    """The size at which conversations are shortened: `context_tokens`, less the room for the answer.

    Where it is not known how much the model reads, `threshold_tokens` counts alone. Of a small window, a quarter is
    reserved and a third of the rest is kept. Some models may be sent less than their window holds, and some take more
    for long requests, which are made only if the block names a window or a threshold. Models inside this process read
    everything.

    Args:
        block: the options of an `llm` block.

    Raises:
        SettingsError: they make no sense.
    """
    given = _options(block.get("compact"))
    card = card_of(model.model)
    wanted = _tokens(block, "context_tokens")
    context = wanted or card.context_tokens
    reserve, keep = _tokens(given, "reserve_tokens"), _tokens(given, "keep_tokens")
    reserve = reserve or (RESERVE if context is None else min(RESERVE, context // 4))
    threshold = _tokens(given, "threshold_tokens")
    if threshold is None and wanted is None and model.provider not in UNPAID:
        threshold = _usual_threshold(card)
    bounds = (threshold, card.input_tokens, None if context is None else context - reserve)
    limit = min((bound for bound in bounds if bound is not None), default=None)
    if limit is None:
        return Window(None, keep or KEEP, reserve * 4 // 5, given.get("enabled") is not False)
    if limit < 1:
        raise SettingsError(f"`reserve_tokens: {reserve}` leaves nothing of a window of {context} tokens", help=FORM)
    keep = min(KEEP, limit // 3) if keep is None else min(keep, limit // 2)
    return Window(limit, keep, reserve * 4 // 5, given.get("enabled") is not False)


def _usual_threshold(card: ModelCard) -> int | None:
    """Where requests become dear, or a careful guess for a model of which nothing is known."""
    if card.longer is not None:
        return card.longer[0]
    return THRESHOLD if card.context_tokens is None else None


def _options(compact: Any) -> Mapping[str, Any]:
    """The options of `compact`; `true` and `false` switch it on and off."""
    if compact is None or isinstance(compact, bool):
        return {"enabled": compact is not False}
    if not isinstance(compact, Mapping):
        raise SettingsError("`compact` of an `llm` block is neither an object nor true or false", help=FORM)
    unknown = [name for name in compact if name not in COMPACT_OPTIONS]
    if unknown:
        help = suggestion(str(unknown[0]), list(COMPACT_OPTIONS), "option")
        raise SettingsError(f"`compact` of an `llm` block has no option `{unknown[0]}`", help=help)
    return compact


def _tokens(options: Mapping[str, Any], name: str) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 1 or value != int(value):
        raise SettingsError(f"`{name}` of an `llm` block is no number of tokens", help=FORM)
    return int(value)
