"""Tokens to the users who show them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from koi_lang.settings.service import ADMIN, UserSettings

# Tokens that are made begin so: whoever finds one somewhere knows what it is.
BEGINNING = "koi_"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may reach the service.

    Attributes:
        is_admin: whether the runs of all others are theirs, too.
    """

    name: str
    is_admin: bool = False


EVERYBODY = User(ADMIN, is_admin=True)


class Users:
    """Who may reach the service.

    Args:
        token: that of whoever started it; None lets everybody in, as that user.
        known: users by name, with the hashes of their tokens.

    Attributes:
        is_open: whether no token is needed.
    """

    def __init__(self, token: str | None, known: Mapping[str, UserSettings] | None = None) -> None:
        first = [] if token is None else [(hash_of(token), EVERYBODY)]
        others = [(str(about.token), User(name, about.admin)) for name, about in (known or {}).items()]
        self._by_hash, self.is_open = [*first, *others], token is None

    def all(self) -> list[User]:
        """All of them; without tokens everybody is one."""
        return [EVERYBODY] if self.is_open else [user for _, user in self._by_hash]

    def of_token(self, token: str) -> User | None:
        """Who shows a token; None where nobody is known by it. It takes as long for everybody."""
        shown, found = hash_of(token), None
        for known, user in self._by_hash:
            if hmac.compare_digest(shown, known):
                found = user
        return found


def new_token() -> str:
    """A token that nobody has yet."""
    return f"{BEGINNING}{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    """What is kept of a token: its SHA-256, which is enough for one that was drawn from 256 bits."""
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'surrogateescape')).hexdigest()}"
