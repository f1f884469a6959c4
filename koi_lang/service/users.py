"""Users of a service, by tokens and signed-in browsers."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from koi_lang.service.store import Database
from koi_lang.settings.service import ADMIN, UserSettings

# Tokens that are made begin so: whoever finds one somewhere knows what it is.
BEGINNING = "koi_"
# Browsers that are signed in by one token at a time, and for how long each is.
MAX_BROWSERS, BROWSER_S = 50, 30 * 86400


@dataclass(frozen=True, slots=True)
class User:
    """A user of the service.

    Attributes:
        is_admin: whether the runs of all others are theirs, too.
        commands: of admins that they have, too.
    """

    name: str
    is_admin: bool = False
    commands: tuple[str, ...] = ()


EVERYBODY = User(ADMIN, is_admin=True)


class Users:
    """The users of the service.

    Args:
        token: that of whoever started it; None lets everybody in, as that user.
        known: users by name, with the hashes of their tokens.

    Attributes:
        is_open: whether no token is needed.
    """

    def __init__(self, token: str | None, known: Mapping[str, UserSettings] | None = None) -> None:
        first = [] if token is None else [(hash_of(token), EVERYBODY)]
        others = [
            (str(about.token), User(name, about.admin, tuple(about.commands))) for name, about in (known or {}).items()
        ]
        self._by_hash, self.is_open = [*first, *others], token is None

    def all(self) -> list[User]:
        """All of them; without tokens everybody is one."""
        return [EVERYBODY] if self.is_open else [user for _, user in self._by_hash]

    def of_token(self, token: str) -> User | None:
        """The user of a token; None for an unknown one."""
        return self.of_hash(hash_of(token))

    def of_hash(self, shown: str) -> User | None:
        """Whose token has a hash; None where nobody's has. It takes as long for everybody."""
        found = None
        for known, user in self._by_hash:
            if hmac.compare_digest(shown, known):
                found = user
        return found


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser that is signed in.

    Attributes:
        key: the hash of its id.
        expires: seconds since the epoch.
    """

    key: str
    user: User
    expires: float


class BrowserSessions:
    """The browsers that are signed in, by random ids of which the database has the hashes alone.

    A session lasts as long as the token by which it began: one whose user was removed, or has another token, is over.

    Args:
        clock: seconds since the epoch.
    """

    def __init__(self, database: Database, users: Users, clock: Callable[[], float] = time.time) -> None:
        self.users = users
        self._database = database
        self._clock = clock
        # What ends the open streams of each, by its key.
        self._streams = defaultdict[str, set[Callable[[], None]]](set)
        database.execute(
            "create table if not exists browser_sessions"
            " (key text primary key, token text not null, expires real not null)"
        )
        for (token,) in database.execute("select distinct token from browser_sessions"):
            if users.of_hash(token) is None:
                database.execute("delete from browser_sessions where token = ?", (token,))

    def begin(self, token: str) -> str:
        """Sign a browser in with a token; returns the id that it is to show. The oldest of too many ends."""
        id = secrets.token_urlsafe(32)
        by = hash_of(token)
        now = self._clock()
        self._database.execute("delete from browser_sessions where expires < ?", (now,))
        self._database.execute("insert into browser_sessions values (?, ?, ?)", (hash_of(id), by, now + BROWSER_S))
        others = "select key from browser_sessions where token = ? order by expires desc, rowid desc limit -1 offset ?"
        for (key,) in self._database.execute(others, (by, MAX_BROWSERS)):
            self._end(key)
        return id

    def find(self, id: str) -> BrowserSession | None:
        """The session with an id; None where there is none, or it is over."""
        statement = "select token, expires from browser_sessions where key = ? and expires > ?"
        for token, expires in self._database.execute(statement, (key := hash_of(id), self._clock())):
            user = self.users.of_hash(token)
            return None if user is None else BrowserSession(key, user, expires)
        return None

    def end(self, id: str) -> None:
        """Sign a browser out, and end its streams; no-op where no session has the id."""
        self._end(hash_of(id))

    def _end(self, key: str) -> None:
        self._database.execute("delete from browser_sessions where key = ?", (key,))
        for end_stream in self._streams.pop(key, ()):
            end_stream()

    def seconds_left(self, session: BrowserSession) -> float:
        """How long a session lasts; 0 where it is over."""
        is_over = not self._database.execute("select 1 from browser_sessions where key = ?", (session.key,))
        return 0.0 if is_over else session.expires - self._clock()

    @contextmanager
    def streaming(self, session: BrowserSession, end_stream: Callable[[], None]) -> Iterator[None]:
        """A context in which a stream is open, which ends with its session."""
        self._streams[session.key].add(end_stream)
        try:
            yield
        finally:
            streams = self._streams.get(session.key, set())
            streams.discard(end_stream)
            if not streams:
                self._streams.pop(session.key, None)


def new_token() -> str:
    """A token that nobody has yet."""
    return f"{BEGINNING}{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    """The stored form of a token: its SHA-256, which is enough for 256 random bits."""
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'surrogateescape')).hexdigest()}"
