"""Recorded answers of models, looked up before a model is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from koi_lang.errors import ProviderError
from koi_lang.events import ConversationCompacted, ModelAsked, ModelFailed, ModelWrote
from koi_lang.runtime.budget.limits import RUN, LimitReachedError
from koi_lang.runtime.replay.digest_forms import is_of_same_form
from koi_lang.runtime.replay.error_records import class_name, from_data
from koi_lang.runtime.replay.location import Location, Path, current_place
from koi_lang.runtime.replay.policies import Change, ReplayPolicy
from koi_lang.runtime.replay.recorded_run import RecordedRun

if TYPE_CHECKING:
    from koi_lang.runtime.journal.history import History, RecordedAnswer

Diverge = Callable[[Change, Path, str], NoReturn]


class CutOffError(ProviderError):
    """The run was interrupted while an answer arrived; nothing is wrong with the model."""


NO_ANSWER = ProviderError("the recording holds no answer to this request")


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """The identity of a request, by which a recorded answer is reused.

    Attributes:
        path: of the request.
        fingerprint: changes with everything that the model is told.
        model: name of the model that would be asked; empty where that is decided later.
    """

    path: Path
    fingerprint: str
    model: str = ""


class RecordedBefore:
    """The recorded part of an answer.

    Attributes:
        answer: its text; None when there was none.
        failure: what it broke off with.
        unended: whether its call took too long before it could end or break off.
        lacks_secret: whether a secret was taken out of it, so that its text is not what the model had answered.
    """

    def __init__(
        self,
        answer: RecordedAnswer | None,
        failure: BaseException | None,
        *,
        unended: bool = False,
        lacks_secret: bool = False,
    ) -> None:
        self.answer = answer
        self.failure = failure
        self.unended = unended
        self.lacks_secret = lacks_secret
        if failure is None and answer is not None and not answer.is_whole:
            self.failure = CutOffError("the run was interrupted while the answer arrived")


def recall_answer(
    recorded: RecordedRun, asked: RequestIdentity, stop: Diverge, *, is_repeatable: bool
) -> RecordedBefore | None:
    """The recorded part of an answer; None when the model is to be asked.

    Args:
        stop: ends the run where it may not ask for something else than before.
        is_repeatable: whether the model answers the same again, and for nothing.
    """
    history = recorded.history
    place = current_place()
    path = asked.path
    if history is None or place is None or place.state.has_diverged:
        return None
    if _is_different(history, asked):
        if history.policy.on_different == "stop":
            stop("other", path, ModelAsked.type)
        place.diverge()
        return None
    answer, failed = history.answer(path), history.find(ModelFailed.type, path)
    if place.state.is_over and failed is None and (answer is None or not answer.is_whole):
        return RecordedBefore(answer, None, unended=True)
    if answer is not None and not answer.is_whole and history.policy.has_outside:
        if is_repeatable:
            return None
        if failed is None and not history.has(ModelWrote.type, path):  # no action of it had begun
            history.forget(path)
            return None
    if answer is None and failed is None:
        if history.is_settled:
            stop("new", path, ModelAsked.type)
        return _missing(history.policy, place)
    failure = None if failed is None else from_data(failed.data)
    is_refused = failed is not None and class_name(failed.data) == LimitReachedError.__name__
    end = None if answer is None else answer.end
    if history.policy.on_missing == "diverge" and (is_refused or (end is not None and end.data.get("changed"))):
        place.diverge()
    if isinstance(failure, LimitReachedError) and _is_open_again(failure, history.policy):
        return None
    return RecordedBefore(answer, failure, lacks_secret=end is not None and not history.can_give(end))


def _is_different(history: History, now: RequestIdentity) -> bool:
    """Whether a model was asked something else, or, where that matters, another model was asked.

    Where the recorded answer is taken in any case, nobody looks. A request for a summary also depends on what is known
    of the window of the model, which may be another one by now.

    What an earlier version of Koi told models in other words is the same as long as the program is.
    """
    asked = history.find(ModelAsked.type, now.path)
    if asked is None or history.policy.on_different == "take_recorded" or history.policy.is_of_past:
        return False
    if history.has(ConversationCompacted.type, now.path[:-1]):
        return False
    if history.policy.tells_models_apart and now.model and asked.data.get("model") != now.model:
        return True
    recorded = str(asked.data.get("request", ""))
    return recorded != now.fingerprint and (is_of_same_form(recorded, now.fingerprint) or history.is_of_changed_program)


def _missing(policy: ReplayPolicy, place: Location) -> RecordedBefore | None:
    """The policy's result for a request without a record."""
    if policy.on_missing == "diverge":
        place.diverge()
    return RecordedBefore(None, NO_ANSWER) if policy.on_missing == "refuse" else None


def _is_open_again(refusal: LimitReachedError, policy: ReplayPolicy) -> bool:
    """Whether a refused request is made again when a run goes on, since another budget may count then."""
    return policy.reopens_limits == "all" or (policy.reopens_limits == "of_run" and refusal.what == RUN)
