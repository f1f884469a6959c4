"""What sessions may take together, and who hears of it."""

from __future__ import annotations

from dataclasses import dataclass

from koi_lang.service.accounts import Accounts
from koi_lang.service.run_hooks import RunHooks
from koi_lang.service.slots import SessionSlots


@dataclass(frozen=True, slots=True)
class HostLimits:
    """The limits of a service.

    Attributes:
        accounts: who pays for what.
        slots: how many sessions are awake.
        hooks: hears what is told of sessions.
    """

    accounts: Accounts
    slots: SessionSlots
    hooks: RunHooks
