"""How work ends that is not accepted: as a best effort, or because a limit was reached."""

from __future__ import annotations

from typing import NoReturn

from koi_lang.errors import BestEffortError, OverLimitError
from koi_lang.runtime.context import current


def end(decision: str, checks: str) -> NoReturn:
    """End the run with what came of rounds of work that was not accepted.

    Args:
        decision: as `improve` gives it.
        checks: what the checks said of it, as a clause.

    Raises:
        OverLimitError: a limit has ended the rounds.
        BestEffortError: for every other decision.
    """
    run = current.get()
    if run is not None and run.planning.is_on:
        raise BestEffortError("no plan was accepted, so nothing was changed", help="Say what the plan is to be like.")
    if decision == "budget":
        raise OverLimitError(f"a limit has ended the work; {checks}", help="Give it more, such as `--max-usd 2`.")
    help = "Look at what was changed; `koi undo` puts it back."
    raise BestEffortError(f"this is the best that came of it: {checks}", help=help)
