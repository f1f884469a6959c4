"""How many sessions are awake at a time: of each user, and of all together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from math import inf
from operator import attrgetter
from typing import Final, Protocol

from koi_lang.service.errors import ServiceError
from koi_lang.settings.service import ServiceLimits, UserSettings
from koi_lang.system.capacity import are_files_short, file_limits, is_memory_short

HELP = "Wait until the work of one has ended, or cancel one."
HELP_WAITING = "Answer or cancel one that waits, or wait until the work of one has ended."
# Half of the files that the process may open are for connections. A session has its journal and its socket open, and at
# work about as many files besides.
SHARE_OF_SESSIONS, FILES_OF_SESSION = 1 / 2, 4
# How long a session waits for room in the process before its client is told to come again.
MAX_WAIT_S = 2.0
OVERLOADED: Final = "overloaded"
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

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a person: for an answer, or for leave."""

    used: float

    async def sleep_at_rest(self) -> None:
        """End its run, unless it has got something to do."""


Refuse = Callable[[Sequence[AwakeSession]], ServiceError]


class SessionSlots:
    """The slots of awake sessions; when all are taken, an idle session is put to sleep for a new one.

    There are enough by the settings, or where the process can open few more files.
    """

    def __init__(self, limits: ServiceLimits, users: Mapping[str, UserSettings]) -> None:
        self._limits, self._users = limits, users
        self._awake: dict[str, AwakeSession] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()

    @cached_property
    def max_by_files(self) -> float:
        """How many sessions may be awake by the limit of open files."""
        limits = file_limits()
        return inf if limits is None else max(1.0, limits[0] * SHARE_OF_SESSIONS // FILES_OF_SESSION)

    async def take(self, session: AwakeSession) -> None:
        """Let a session be awake, as soon as there is room. Raises ServiceError where too many are at work for long."""
        deadline = asyncio.get_running_loop().time() + MAX_WAIT_S
        while (found := self._find_full(session)) is not None:
            full, refuse = found
            resting = next((each for each in sorted(full, key=attrgetter("used")) if each.is_at_rest), None)
            if resting is not None:
                await resting.sleep_at_rest()
                continue
            refusal = refuse(full)
            if refusal.code != OVERLOADED or not await self._wait_for_room(deadline):
                raise refusal
        self._awake[session.id] = session

    async def _wait_for_room(self, deadline: float) -> bool:
        """Wait until a session rests or sleeps; gives whether one does before a time of the loop."""
        room = asyncio.get_running_loop().create_future()
        self._waiting.append(room)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await room
        return room.done() and not room.cancelled()

    def free(self, session: AwakeSession) -> None:
        """Note that a session sleeps."""
        self._awake.pop(session.id, None)
        self.tell_room()

    def tell_room(self) -> None:
        """Have the one that waits longest look for room, since a session rests or sleeps."""
        while self._waiting:
            room = self._waiting.popleft()
            if not room.done():
                room.set_result(None)
                return

    def _find_full(self, session: AwakeSession) -> tuple[Sequence[AwakeSession], Refuse] | None:
        """Those of which one has to sleep first, and what makes the error where none can; None where there is room."""
        count, owner = len(self._awake) - (session.id in self._awake), session.owner
        user, most_of_all = self._users.get(owner), self._limits.sessions
        most = (user.sessions if user is not None else None) or self._limits.sessions_per_user
        if most is not None and len(own := [each for each in self._others(session) if each.owner == owner]) >= most:
            return own, partial(_refusal, f"`{owner}` has")
        if most_of_all is not None and count >= most_of_all:
            return self._others(session), partial(_refusal, "all users together have")
        share = count / self.max_by_files
        if count and (share >= 1 or (share >= COUNTED_SHARE and are_files_short())):
            return self._others(session), partial(_refusal, "")
        return None

    def _others(self, session: AwakeSession) -> list[AwakeSession]:
        return [each for each in self._awake.values() if each is not session]

    @property
    def is_crowded(self) -> bool:
        """Whether idle sessions are to sleep early, since there is soon no room for others."""
        return len(self._awake) > self.max_by_files * CROWDED_SHARE or are_files_short() or is_memory_short()


def _refusal(who: str, sessions: Sequence[AwakeSession]) -> ServiceError:
    """The error of a session for which there is no room, by the limits of somebody, or of the process."""
    if not who:
        message = f"the service has no room for more than {len(sessions)} sessions at work"
        return ServiceError(OVERLOADED, message, help="Try again in some seconds.")
    waiting = sum(each.is_waiting for each in sessions)
    what = "sessions at work" if not waiting else "sessions that wait for an answer"
    if 0 < waiting < len(sessions):
        what = f"sessions awake, of which {waiting} {'wait' if waiting > 1 else 'waits'} for an answer"
    message = f"{who} {len(sessions)} {what}, all that may be awake at a time"
    return ServiceError("limit_reached", message, help=HELP_WAITING if waiting else HELP)
