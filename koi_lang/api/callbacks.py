"""The host of a program that Python has opened: a person, as far as there are callbacks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, TypeAlias

from koi_lang.errors import UsageError
from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest, NobodyToAskError, choose_option

# What is asked, and the answers to choose from; gives the answer, or None where nobody answers.
Ask: TypeAlias = Callable[[str, Sequence[str]], "str | Awaitable[str | None] | None"]
# What is wanted, with what, and by which agent; gives whether that is allowed, `always` for the rest of the run.
Approve: TypeAlias = Callable[[str, str, str], "bool | str | Awaitable[bool | str | None] | None"]
ANSWERS: dict[Any, Approval] = {True: "yes", False: "no", None: "no", "yes": "yes", "always": "always", "no": "no"}
LOG = logging.getLogger("koi_lang")


@dataclass(frozen=True, slots=True)
class CallbackHost:
    """A host that asks callbacks, which may be async. Without one nobody answers, and nothing is allowed.

    Attributes:
        output: takes what the program prints, a piece at a time.
    """

    on_question: Ask | None = None
    on_approval: Approve | None = None
    output: Callable[[str], object] = print

    def print(self, text: str) -> None:
        """Hand on a piece of output."""
        self.output(text)

    def log(self, text: str) -> None:
        """Log a line that is not output as `koi_lang`."""
        LOG.warning("%s", text)

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask; an option may be named by its number. Raises NobodyToAskError."""
        on_question = self.on_question
        answer = None if on_question is None else await _answer_of(lambda: on_question(question, options))
        if answer is None:
            help = "Give `koi_lang.open` a callback: `ask=lambda question, options: …`."
            raise NobodyToAskError(f"nobody answers the question `{question.strip()}`", help=help)
        return choose_option(str(answer).strip(), options)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask for permission. Raises NobodyToAskError without a callback."""
        on_approval = self.on_approval
        if on_approval is None:
            help = "Give `koi_lang.open` a callback: `approve=lambda what, detail, agent: …`."
            raise NobodyToAskError(f"nobody can be asked for permission to {request.what}", help=help)
        answer = await _answer_of(lambda: on_approval(request.what, request.detail, request.agent))
        if isinstance(answer, bool | str | None) and answer in ANSWERS:
            return ApprovalDecision(ANSWERS[answer])
        raise UsageError(f"`approve` gave {answer!r}", help='Give True, False, or "always".')

    async def secret(self, name: str) -> str:
        """Ask for a value that is not shown. Raises NobodyToAskError."""
        return await self.ask(f"{name}:")


async def _answer_of(callback: Callable[[], Any]) -> Any:
    """What a callback gives, at once or later. Raises NobodyToAskError when it was cancelled, but not who asks."""
    try:
        given = callback()
        return await given if isawaitable(given) else given
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        help = "Have the callback give None, or False, where there is no answer."
        raise NobodyToAskError("nobody answers: the callback was cancelled", help=help) from error
