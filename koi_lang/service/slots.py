"""How many sessions are awake at a time: of each user, and of all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import Protocol

from koi_lang.service.errors import ServiceError
from koi_lang.settings.service import ServiceLimits, UserSettings
from koi_lang.system.capacity import are_files_short, file_limits, is_memory_short

HELP = "Wait until the work of one has ended, or cancel one."
AT_WORK = "sessions at work, all that may be awake at a time"
# Half of the files that the process may open are for connections. A session has its journal and its socket open, and at
# work about as many files besides.
SHARE_OF_SESSIONS, FILES_OF_SESSION = 1 / 2, 4
# The shares of the sessions that may be awake from which on open files are counted, and idle ones sleep early.
COUNTED_SHARE, CROWDED_SHARE = 1 / 4, 3 / 4


class AwakeSession(Protocol):
    """The facts about a session for its slot."""

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
    """The slots of awake sessions; when all are taken, an idle session is put to sleep for a new one.

    There are enough by the settings, or where the process can open few more files.
    """

    def __init__(self, limits: ServiceLimits, users: Mapping[str, UserSettings]) -> None:
        self._limits, self._users = limits, users
        self._awake: dict[str, AwakeSession] = {}

    @cached_property
    def max_by_files(self) -> float:
        """How many sessions may be awake by the limit of open files."""
        limits = file_limits()
        return inf if limits is None else max(1.0, limits[0] * SHARE_OF_SESSIONS // FILES_OF_SESSION)

    async def take(self, session: AwakeSession) -> None:
        """Let a session be awake. Raises ServiceError where too many are at work."""
        while (found := self._find_full(session)) is not None:
            full, refusal = found
            resting = next((each for each in sorted(full, key=attrgetter("used")) if each.is_at_rest), None)
            if resting is None:
                raise refusal
            await resting.sleep_at_rest()
        self._awake[session.id] = session

    def free(self, session: AwakeSession) -> None:
        """Note that a session sleeps."""
        self._awake.pop(session.id, None)

    def _find_full(self, session: AwakeSession) -> tuple[Sequence[AwakeSession], ServiceError] | None:
        """Those of which one has to sleep first, and the error where none can; None where there is room."""
        count, owner = len(self._awake) - (session.id in self._awake), session.owner
        user, most_of_all = self._users.get(owner), self._limits.sessions
        most = (user.sessions if user is not None else None) or self._limits.sessions_per_user
        if most is not None and len(own := [each for each in self._others(session) if each.owner == owner]) >= most:
            return own, ServiceError("limit_reached", f"`{owner}` has {len(own)} {AT_WORK}", help=HELP)
        if most_of_all is not None and count >= most_of_all:
            message = f"all users together have {count} {AT_WORK}"
            return self._others(session), ServiceError("limit_reached", message, help=HELP)
        share = count / self.max_by_files
        if count and (share >= 1 or (share >= COUNTED_SHARE and are_files_short())):
            message = f"the service has no room for more than {count} sessions at work"
            return self._others(session), ServiceError("overloaded", message, help="Try again in some seconds.")
        return None

    def _others(self, session: AwakeSession) -> list[AwakeSession]:
        return [each for each in self._awake.values() if each is not session]

    @property
    def is_crowded(self) -> bool:
        """Whether idle sessions are to sleep early, since there is soon no room for others."""
        return len(self._awake) > self.max_by_files * CROWDED_SHARE or are_files_short() or is_memory_short()
