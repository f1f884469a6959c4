"""How many sessions are awake at a time: of each user, and of all together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from koi_lang.service.errors import ServiceError
from koi_lang.settings.service import ServiceLimits, UserSettings

HELP = "Wait until the work of one has ended, or cancel one."


class AwakeSession(Protocol):
    """What is to be known of a session."""

    @property
    def id(self) -> str:
        """That of its run."""

    @property
    def owner(self) -> str:
        """The name of its user."""

    @property
    def is_at_rest(self) -> bool:
        """Whether it has nothing to do."""

    used: float

    async def sleep_at_rest(self) -> None:
        """End its run, unless it has got something to do."""


class SessionSlots:
    """The sessions that are awake; who comes when there are enough has one that is idle put to sleep."""

    def __init__(self, limits: ServiceLimits, users: Mapping[str, UserSettings]) -> None:
        self._limits, self._users = limits, users
        self._awake: dict[str, AwakeSession] = {}

    async def take(self, session: AwakeSession) -> None:
        """Let a session be awake. Raises ServiceError where too many are at work."""
        while full := self._full(session):
            resting = [each for each in full if each.is_at_rest]
            if not resting:
                own = all(each.owner == session.owner for each in full)
                who = f"`{session.owner}` has" if own and self._most_of(session.owner) else "all users together have"
                told = f"{who} {len(full)} sessions at work, all that may be awake at a time"
                raise ServiceError("limit_reached", told, help=HELP)
            await min(resting, key=lambda each: each.used).sleep_at_rest()
        self._awake[session.id] = session

    def free(self, session: AwakeSession) -> None:
        """Note that a session sleeps."""
        self._awake.pop(session.id, None)

    def _full(self, session: AwakeSession) -> list[AwakeSession]:
        """Those of which one has to sleep first; empty where there is room."""
        others = [each for each in self._awake.values() if each.id != session.id]
        own = [each for each in others if each.owner == session.owner]
        most = self._most_of(session.owner)
        if most is not None and len(own) >= most:
            return own
        return others if self._limits.sessions is not None and len(others) >= self._limits.sessions else []

    def _most_of(self, owner: str) -> int | None:
        user = self._users.get(owner)
        return (user.sessions if user is not None else None) or self._limits.sessions_per_user
