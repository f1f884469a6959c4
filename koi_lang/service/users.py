"""Tokens to the users who show them."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

ADMIN = "admin"


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
    """

    def __init__(self, token: str | None) -> None:
        self._token = token

    @property
    def is_open(self) -> bool:
        """Whether no token is needed."""
        return self._token is None

    def of_token(self, token: str) -> User | None:
        """Who shows a token; None where nobody is known by it."""
        if self._token is not None and hmac.compare_digest(token.encode(), self._token.encode()):
            return EVERYBODY
        return None
