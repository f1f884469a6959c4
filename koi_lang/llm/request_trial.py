"""The requests for one answer, each weaker than the one before, until the provider accepts one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from koi_lang.errors import RequestError
from koi_lang.llm.downgrades import DOWNGRADES, TOOLS, changed_parts, next_downgrade, reduce_body
from koi_lang.llm.messages import Request
from koi_lang.llm.provider_errors import document_of, status_of
from koi_lang.llm.request_parts import PARTS
from koi_lang.llm.token_weight import weight
from koi_lang.llm.usage import tokens_of

# Of the tokens that tools are estimated to take, that a server must have counted if it has passed them on.
LEAST_SHARE = 0.3
# Names of downgrades that models need, by the address of the provider and the name of the model.
Refused: TypeAlias = MutableMapping[tuple[str, str], set[str]]


@dataclass(slots=True)
class RequestTrial:
    """One answer that is asked for.

    Attributes:
        request: what is asked.
        make_body: a request to its body, with all that is wanted.
        known: names of what the model is known to refuse; it grows.
        weaker: names of what was tried for this answer alone.
        body: of the request that was made last.
        sent: names of all that it did without; what is known may have grown since.
        requests: how many were sent.
        is_over: whether one of them was accepted.
    """

    request: Request
    make_body: Callable[[Request], Mapping[str, Any]]
    known: set[str]
    weaker: list[str] = field(default_factory=list)
    body: Mapping[str, Any] = field(default_factory=dict)
    sent: tuple[str, ...] = ()
    requests: int = 0
    is_over: bool = False

    @property
    def attempts(self) -> int:
        """How many requests there were, those of earlier attempts at the answer included."""
        return self.request.attempts + self.requests

    @property
    def has_tools(self) -> bool:
        """Whether the last request may offer tools."""
        return self.request.offer is not None and TOOLS not in self.sent

    def begin(self) -> None:
        """Make the body that is sent next."""
        self.requests += 1
        self.sent = (*self.known, *self.weaker)
        request = replace(self.request, offer=None) if TOOLS in self.sent else self.request
        self.body = reduce_body(self.make_body(request), self.sent)

    def leave_out(self, error: Exception) -> bool:
        """Go on without what an error of an SDK says is refused; whether that is possible."""
        document = document_of(error)
        if self.attempts >= self.request.most_requests:
            return False
        found = next_downgrade(document, status_of(error, document), self.body, self.sent)
        if found is not None:
            self.weaker.append(found.name)
        return found is not None

    def settle(self, note: Callable[[str], None]) -> None:
        """Keep, and tell, what the answer was had without."""
        if not self.weaker:
            return
        for each in DOWNGRADES:
            if each.name in self.weaker and each.name not in self.known:
                self.known.add(each.name)
                note(f"`{self.request.model}` {each.told}")
        self.weaker.clear()

    def give_up_tools(self, counted_tokens: int, note: Callable[[str], None]) -> bool:
        """Do without tools from now on if the tokens of a request show that its server has left them out.

        Templates that know no tools do that in silence, and the model is told of no action. Only where the tools are
        longer than the rest can an estimate tell one from the other.

        Returns:
            Whether they do.
        """
        if not self.has_tools or self.request.offer is None:
            return False
        said = tokens_of(self.request.messages, self.request.offer.system)
        offered = weight(json.dumps(self.body.get("tools", [])))
        are_left_out = offered > said and counted_tokens < said + offered * LEAST_SHARE
        if are_left_out:
            self.weaker.append(TOOLS)
            self.settle(note)
        return are_left_out

    def conclude(self, failure: RequestError) -> RequestError:
        """The failure that ends the trial, with what was tried."""
        if not self.weaker or failure.repeatable:
            return failure
        names = ", ".join(part.called for part in PARTS if part.name in changed_parts(self.weaker))
        return failure.with_message(f"{failure.message} (also after a change of {names})")
