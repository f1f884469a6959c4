"""The name of a key's variable turned into the key: the first place that has one counts.

The places, in order: a file named on the command line, the environment, `.env`, and what `koi connect` has kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from koi_lang.errors import SettingsError
from koi_lang.lazy import lazy_module
from koi_lang.redaction.names import is_secret_variable
from koi_lang.redaction.redactor import MAX_FOUND, Redactor, Secrets, redactor
from koi_lang.settings import ProjectSettings, config_folder, dotenv, environment
from koi_lang.setup.keys.store import KeyStore
from koi_lang.system.loopback import is_loopback_url

if TYPE_CHECKING:
    from koi_lang.llm import providers
else:
    providers = lazy_module("koi_lang.llm.providers")

LONG = 20
DOTENV, ADDRESS = ".env", "_BASE_URL"
LOCAL_ADDRESS = f"LOCAL{ADDRESS}"
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, repr=False)
class StoredKey:
    """A key where it was found; printing it does not show the key.

    Attributes:
        name: of the variable.
        place: the words for the place, such as `environment`.
    """

    name: str
    place: str
    value: str

    def __repr__(self) -> str:
        return f"Found({self.name!r}, {self.place!r})"

    @property
    def masked_key(self) -> str:
        """The visible part of the key: its end, if it is long."""
        return f"…{self.value[-4:]}" if len(self.value) >= LONG else "…"


class Keys:
    """The keys that programs of a project can use; calling it gives one, or any other variable, by its name.

    Args:
        given: variables of the command line, by their names.
        store: where `koi connect` keeps keys.
        found: secrets that come up by their names in what is shown and written, where several share them.

    Attributes:
        settings: of the project.
        store: where `koi connect` keeps keys.
    """

    def __init__(
        self,
        settings: ProjectSettings,
        *,
        given: Mapping[str, str] = NOTHING,
        store: KeyStore | None = None,
        found: Secrets | None = None,
    ) -> None:
        self.settings, self.store = settings, store or KeyStore(config_folder())
        self._variables = {
            "command line": given,
            "environment": environment(),
            DOTENV: dotenv(settings),
        }
        self._given_out = Secrets()
        self._found = Secrets(most=MAX_FOUND) if found is None else found
        self._redactor: Redactor | None = None

    def __call__(self, name: str) -> str | None:
        """The value of a variable. A key may be asked for by any variable of its provider. Raises KoiError."""
        found = self.find(name)
        return found.value if found else None

    def find(self, name: str) -> StoredKey | None:
        """A variable in the place that counts. Raises KoiError."""
        for found in self.copies(name):
            if found.place != DOTENV or not name.endswith(ADDRESS) or self._own_key(found) is None:
                return found
            if not _needs_no_trust(found):
                raise _leads_elsewhere(found)
        return None

    @property
    def notes(self) -> list[str]:
        """What of `.env` does not count, a line each: an address here that would get a key from elsewhere."""
        return [
            f"`{found.name}` in `.env` does not count, since `{key.name}` is from elsewhere ({key.place}); "
            f"`export {found.name}=…` if the key is for that address"
            for found in self.copies(LOCAL_ADDRESS)
            if _needs_no_trust(found) and (key := self._own_key(found)) is not None
        ]

    def _own_key(self, address: StoredKey) -> StoredKey | None:
        """The key of the person that an address in `.env`, which may come with a project, would lead elsewhere."""
        provider = _provider_at(address)
        names = next((row.keys for row in providers.PROVIDERS if row.name == provider), ())
        key = next((copy for name in names for copy in self.copies(name)), None)
        return key if key is not None and key.place != DOTENV else None

    def learn(self, name: str, secret: str) -> None:
        """Keep a secret that came up meanwhile, such as a token, out of all that is shown and written."""
        self._given_out.add(secret)

    def copies(self, name: str) -> Iterator[StoredKey]:
        """Every place that has a key, the one that counts first. Raises KoiError."""
        # Several variables may hold the same key.
        names = next((provider.keys for provider in providers.PROVIDERS if name in provider.keys), (name,))
        for place, variables in self._variables.items():
            yield from (StoredKey(each, place, variables[each].strip()) for each in names if variables.get(each))
        places = self.store.places()
        for each in names:
            value = self.store.value(each) if each in places else None
            if value:
                if is_secret_variable(each):
                    self._given_out.add(value)
                yield StoredKey(each, places[each], value)

    def redactor(self, fields: Mapping[str, Any] | None = None) -> Redactor:
        """The redactor of all keys, also of those that the keyring returns later.

        Args:
            fields: further values by name; those with names such as `password` are secrets.
        """
        if self._redactor is None or fields:
            # Of a folder that nobody has trusted, too: its keys are not used, and hidden all the same.
            hidden = dotenv(replace(self.settings, is_trusted=True))
            variables = (*self._variables.values(), hidden, self.store.in_file())
            made = redactor(*variables, fields=fields or {}, known=[self._given_out], found=self._found)
            if fields:
                return made
            self._redactor = made
        return self._redactor


def _provider_at(address: StoredKey) -> str:
    return address.name.removesuffix(ADDRESS).lower()


def _needs_no_trust(address: StoredKey) -> bool:
    """Whether nobody was asked about an address: one in `.env`, for a server of this machine."""
    is_local = address.place == DOTENV and address.name == LOCAL_ADDRESS
    return is_local and is_loopback_url(address.value)


def _leads_elsewhere(address: StoredKey) -> SettingsError:
    """The error for an address in `.env` that the person agreed to, and that has no key beside it."""
    provider = _provider_at(address)
    message = f"`{address.name}` in `.env` would send the key of `{provider}` from elsewhere to `{address.value}`"
    help = f"If you trust that address, write the key into `.env`, too, or `export {address.name}=…`."
    return SettingsError(message, help=help)
