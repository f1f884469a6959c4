"""Names of variables and fields that hold secrets; whole words are compared, joined in any way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

# How much of what is called so is secret: every text and number; every text; texts that look like credentials; nothing.
Secrecy: TypeAlias = Literal["always", "text", "credential", ""]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")
PASSWORDS = frozenset("password passwords passwd passphrase passphrases passcode passcodes".split())
SECRETS = frozenset(
    "secret secrets credential credentials apikey apikeys privatekey secretkey accesskey authtoken accesstoken "
    "refreshtoken sessiontoken bearer jwt pwd pass".split()
)
CREDENTIALS = frozenset("auth authorization cookie cookies token".split())
# What may stand before `key`, so that together they name a secret.
OF_KEYS = frozenset(
    "api secret access private signing signature encryption decryption master root ssh pgp gpg auth session shared "
    "service account storage license deploy consumer client app application webhook hmac aes rsa server host".split()
)
NOT_OF_TOKENS = frozenset(
    "page next prev previous continuation cursor sync start end stop first last max min input output prompt total eos "
    "bos pad unk mask special reserved count per cached current lexer".split()
)
# What is said about a secret and is none: the last word of the name of a file, a person, a socket, a number.
ABOUT = frozenset(
    "name names id ids type kind file files filename path paths dir folder home url uri host port user username email "
    "sock socket count length size limit max min policy hint expiry expires ttl at date age enabled disabled required "
    "prompt label field fields version status state format strength manager provider method mode algorithm scheme "
    "prefix suffix message error errors parallelism index rotation reset page mask description title location region "
    "author timeout valid invalid used info".split()
)
# What may follow and changes nothing.
AFTER = frozenset(
    "value values text string plain raw hash hashed old new current confirm confirmation confirmed repeat repeated "
    "again encrypted base base64 b64 hex json data header primary secondary".split()
)
WHOLE_ENDINGS = ("password", "passwd", "passphrase", "apikey", "secretkey", "privatekey", "accesskey", "authtoken")
# Words of variables that name a secret wherever they stand, and what words that name one end with.
IN_VARIABLES = PASSWORDS | SECRETS | frozenset("auth authorization token key pat cookie sshpass".split())
ENDINGS_IN_VARIABLES = (*WHOLE_ENDINGS, "token", "secret", "key")
NO_KEYS = frozenset("monkey turkey hockey donkey whiskey jockey hotkey passkey".split())
PUBLIC = frozenset("public primary foreign".split())


@lru_cache(4096)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: `clientSecret`, `CLIENT_SECRET` and `client-secret` are the same two."""
    return tuple(word.lower() for word in _WORD.findall(name))


@lru_cache(4096)
def secrecy_of(name: str) -> Secrecy:
    """The secrecy of a field by its name."""
    words = list(words_of(name))
    while len(words) > 1 and (words[-1] in AFTER or words[-1].isdigit()):
        words.pop()
    if not words:
        return ""
    *before, last = words
    if last in PASSWORDS or (last.endswith(WHOLE_ENDINGS) and last not in SECRETS):
        return "always"
    if last in SECRETS:
        return "credential" if words == ["pass"] else "text"
    if last in ("key", "keys"):
        return "text" if before and before[-1] in OF_KEYS and not PUBLIC.intersection(before) else ""
    if last == "token" and before:
        return "" if NOT_OF_TOKENS.intersection(before) else "text"
    return "credential" if last in CREDENTIALS else "text" if words[-3:] == ["access", "key", "id"] else ""


@lru_cache(1024)
def is_secret_variable(name: str) -> bool:
    """Whether the value of a variable of that name must not be shown, written or given to other programs.

    More names count than for fields: a program that does not get a variable says so, one that gets it says nothing.
    """
    words = words_of(name)
    if not words or name in ("PWD", "OLDPWD"):
        return False
    if words[-1] in ABOUT or PUBLIC.intersection(words):
        return words[-3:] == ("access", "key", "id")
    if NOT_OF_TOKENS.intersection(words) and "token" in words:
        return False
    return any(word in IN_VARIABLES or (word.endswith(ENDINGS_IN_VARIABLES) and word not in NO_KEYS) for word in words)


# Everything else may be a key, or what a session is known by; only its name is written down.
OPEN = frozenset(
    "accept accept-encoding accept-language cache-control content-encoding content-language content-type if-match"
    " if-modified-since if-none-match if-unmodified-since origin prefer range user-agent x-requested-with".split()
)
# The field of an effect that holds them; journals of older versions have none.
HEADER_VALUES = "header_values"


def shown_headers(headers: Mapping[str, str]) -> dict[str, str | None]:
    """The headers by their names in small letters, with the values of those that are never secret; None for others."""
    names = {name.lower(): value for name, value in headers.items()}
    return {name: value if name in OPEN else None for name, value in sorted(names.items())}
