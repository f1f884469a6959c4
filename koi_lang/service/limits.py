"""What sessions may take together: their accounts, and how many are awake."""

from __future__ import annotations

from dataclasses import dataclass

from koi_lang.service.accounts import Accounts
from koi_lang.service.slots import SessionSlots


@dataclass(frozen=True, slots=True)
class HostLimits:
    """The limits of a service."""

    accounts: Accounts
    slots: SessionSlots
