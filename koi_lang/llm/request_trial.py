"""The requests for one answer, each weaker than the one before, until the provider accepts one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from koi_lang.errors import RequestError
from koi_lang.llm.downgrades import DOWNGRADES, changed_parts, next_downgrade, reduce_body, refuses_tools
from koi_lang.llm.messages import Request
from koi_lang.llm.provider_errors import document_of, status_of, tools_refused
from koi_lang.llm.request_parts import PARTS

# Names of downgrades that models need, by the address of the provider and the name of the model.
Refused: TypeAlias = MutableMapping[tuple[str, str], set[str]]
TOOLS = "tools"


@dataclass(slots=True)
class RequestTrial:
    """One answer that is asked for.

    Attributes:
        request: what is asked.
        provider: its name.
        whole: the body with all that is wanted.
        known: names of what the model is known to refuse; it grows.
        weaker: names of what was tried for this answer alone.
        sent: names of all that the last request did without; what is known may have grown since.
        requests: how many were sent.
        is_over: whether one of them was accepted.
    """

    request: Request
    provider: str
    whole: Mapping[str, Any]
    known: set[str]
    weaker: list[str] = field(default_factory=list)
    sent: tuple[str, ...] = ()
    requests: int = 0
    is_over: bool = False

    def next_body(self) -> Mapping[str, Any]:
        """The body that is sent next. Raises RequestError where it offers tools that are known to be refused."""
        if TOOLS in self.known and TOOLS in self.whole:
            raise tools_refused(self.provider, self.request.model)
        self.requests += 1
        self.sent = (*self.known, *self.weaker)
        return self._body

    @property
    def attempts(self) -> int:
        """How many requests there were, those of earlier attempts at the answer included."""
        return self.request.attempts + self.requests

    @property
    def _body(self) -> Mapping[str, Any]:
        return reduce_body(self.whole, self.sent)

    def leave_out(self, error: Exception) -> bool:
        """Go on without what an error of an SDK says is refused; whether that is possible."""
        document = document_of(error)
        if self.attempts >= self.request.most_requests:
            return False
        found = next_downgrade(document, status_of(error, document), self._body, self.sent)
        if found is not None:
            self.weaker.append(found.name)
        return found is not None

    def settle(self, note: Callable[[str], None]) -> None:
        """Keep, and tell, what the answer was had without."""
        for each in DOWNGRADES:
            if each.name in self.weaker and each.name not in self.known:
                self.known.add(each.name)
                note(f"`{self.request.model}` {each.told}")
        self.weaker.clear()

    def conclude(self, failure: RequestError, error: Exception) -> RequestError:
        """The failure that ends the trial, with what was tried, and whether tools were the reason."""
        document = document_of(error)
        if self.weaker and not failure.repeatable:
            names = ", ".join(part.called for part in PARTS if part.name in changed_parts(self.weaker))
            failure = failure.with_message(f"{failure.message} (also after a change of {names})")
        if refuses_tools(document, status_of(error, document), self._body):
            failure = tools_refused(self.provider, self.request.model)
            self.known.add(TOOLS)
        return failure
