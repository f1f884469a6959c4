"""Where keys are found and kept, and that nobody else sees them."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from koi_lang.errors import KoiError
from koi_lang.settings import read_settings
from koi_lang.setup.keys import system
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.keys.store import KeyStore
from tests.first.machine import KEY, Machine
from tests.llm.server import ModelServer

NAME = "OPENAI_API_KEY"


@pytest.fixture
def keyring(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system has a keyring; gives the file it is in."""
    import keyring as package

    from tests.first.file_keyring import FileKeyring

    file = machine.base / "keyring.json"
    machine.set(TEST_KEYRING=str(file))
    monkeypatch.setattr(package.core, "_keyring_backend", FileKeyring())
    return file


def mode_of(path: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_place_that_has_a_key_counts(machine: Machine) -> None:
    """The order is: command line, environment, `.env`, what koi keeps."""
    machine.project.write(".env", f"{NAME}=in-dotenv\n")
    machine.set(**{NAME: "in-environment"})
    KeyStore(machine.config).keep(NAME, "in-file")

    found = list(Keys(read_settings(machine.folder), given={NAME: "in-command-line"}).copies(NAME))

    assert ["command line", "environment", ".env", "file"] == [copy.place for copy in found]
    assert ["in-command-line", "in-environment", "in-dotenv", "in-file"] == [copy.value for copy in found]


def test_a_place_counts_before_the_order_of_names(machine: Machine) -> None:
    """A provider's second variable in the environment goes before its first one in the file."""
    machine.set(GOOGLE_API_KEY="in-environment")
    KeyStore(machine.config).keep("GEMINI_API_KEY", "in-file")

    assert Keys(read_settings(machine.folder))("GEMINI_API_KEY") == "in-environment"


def test_an_empty_variable_is_no_key(machine: Machine) -> None:
    """A variable that is set to nothing does not hide a key that is kept."""
    machine.set(**{NAME: ""})
    KeyStore(machine.config).keep(NAME, "in-file")

    assert Keys(read_settings(machine.folder))(NAME) == "in-file"


def test_a_found_key_does_not_print_itself(machine: Machine) -> None:
    """Neither `repr` nor `str` of what was found has the key; of a long one four characters may be shown."""
    machine.set(**{NAME: KEY})
    (found,) = Keys(read_settings(machine.folder)).copies(NAME)

    assert KEY not in f"{found!r} {found}"
    assert found.masked_key == "…MARK"


def test_secrets_are_known_before_and_after_they_are_looked_up(machine: Machine, keyring: Path) -> None:
    """A key in the file is hidden at once, one in the keyring as soon as it was used."""
    KeyStore(machine.config).keep(NAME, "in-the-keyring")
    entries = json.loads((machine.config / "keys.json").read_text())
    (machine.config / "keys.json").write_text(
        json.dumps({**entries, "XAI_API_KEY": {"in": "file", "key": "in-the-file"}})
    )
    keys = Keys(read_settings(machine.folder))
    redact = keys.redactor()

    before = redact("in-the-file in-the-keyring")
    keys(NAME)

    assert (before, redact("in-the-keyring")) == ("[redacted] in-the-keyring", "[redacted]")


def test_without_a_keyring_only_the_owner_can_read_the_file(machine: Machine) -> None:
    """Folder and file are made with their permissions, whatever the umask; nothing else is left beside them."""
    before = os.umask(0)
    try:
        place = KeyStore(machine.config).keep(NAME, KEY)
    finally:
        os.umask(before)

    assert (place, mode_of(machine.config), mode_of(machine.config / "keys.json")) == ("file", 0o700, 0o600)
    assert os.listdir(machine.config) == ["keys.json"]


def test_with_a_keyring_no_file_has_the_key(machine: Machine, keyring: Path) -> None:
    """The key is in the keyring alone, and found there; an earlier copy in the file is gone."""
    store = KeyStore(machine.config)
    machine.config.mkdir()
    store.path.write_text(json.dumps({NAME: {"in": "file", "key": KEY}}))

    assert (store.keep(NAME, KEY), store.value(NAME)) == ("keyring", KEY)
    assert KEY not in store.path.read_text()
    assert KEY in keyring.read_text()


def test_a_key_can_be_forgotten_everywhere(machine: Machine, keyring: Path) -> None:
    """Copies in keyring and file are both removed, also one that the list of keys does not know."""
    store = KeyStore(machine.config)
    system.write(NAME, KEY)

    assert store.forget(NAME) == ["keyring"]
    store.keep(NAME, KEY)
    assert (store.forget(NAME), store.places(), store.value(NAME)) == (["keyring"], {}, None)
    assert KEY not in keyring.read_text()


def test_what_a_killed_command_began_is_removed(machine: Machine) -> None:
    """A file that was not renamed any more, with a key in it, goes with the next change."""
    store = KeyStore(machine.config)
    store.keep(NAME, KEY)
    (machine.config / ".keys-1").write_text(KEY)

    store.keep("GROQ_API_KEY", "another")

    assert os.listdir(machine.config) == ["keys.json"]


def test_commands_at_the_same_time_lose_no_key(machine: Machine) -> None:
    """Twenty writers leave twenty keys."""
    names = [f"KEY_{number}" for number in range(20)]
    threads = [threading.Thread(target=KeyStore(machine.config).keep, args=(name, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(KeyStore(machine.config).places()) == set(names)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"A": 1}', '{"A": {"key": 1}}'])
def test_a_damaged_file_of_keys_is_said_with_what_to_do(machine: Machine, text: str) -> None:
    """It is never overwritten silently."""
    machine.config.mkdir()
    path = machine.config / "keys.json"
    path.write_text(text)

    with pytest.raises(KoiError) as caught:
        KeyStore(machine.config).keep(NAME, KEY)

    assert (path.read_text(), f"rm {path}" in (caught.value.help or "")) == (text, True)


def test_a_folder_that_cannot_be_made_is_one_sentence(machine: Machine) -> None:
    """A file where the folder should be is an error of koi, not of Python."""
    machine.config.write_text("")

    with pytest.raises(KoiError, match="keys cannot be kept"):
        KeyStore(machine.config).keep(NAME, KEY)


def test_a_keyring_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A locked keyring ends with an error after the limit."""
    release = threading.Event()
    monkeypatch.setattr("keyring.get_keyring", release.wait)

    with pytest.raises(system.KeyringError, match="did not answer within"):
        system.backend(0.02)
    release.set()


def test_connecting_tests_and_keeps_a_key(machine: Machine) -> None:
    """The key is sent to the provider once, kept, used by the next run, and shown by its end only."""

    async def use() -> None:
        async with ModelServer(models=["gpt-4o"]) as server:
            machine.use(server)
            done = await machine.koi("connect", "openai", said=f"{KEY}\n")
            assert (done.code, done.err) == (0, "")
            assert "offers 1 models" in done.out
            assert [f"Bearer {KEY}"] == [look.headers["authorization"] for look in server.looks]

    asyncio.run(use())
    states = json.loads(machine.now("connect", "--status", "--json").out)

    assert machine.now("connect", "status").out.split() == ["openai", "file", NAME, "…MARK"]
    assert states == [{"provider": "openai", "place": "file", "variable": NAME, "key": "…MARK", "also": []}]


def test_a_refused_key_is_not_kept(machine: Machine) -> None:
    """After a wrong key there is no file."""
    from tests.first.test_errors import refused

    async def use() -> int:
        async with ModelServer(refused(401)) as server:
            machine.use(server)
            return (await machine.koi("connect", "openai", said=f"{KEY}\n")).code

    assert (asyncio.run(use()), machine.config.exists()) == (69, False)


def test_a_provider_without_a_list_is_asked_for_a_word(machine: Machine) -> None:
    """Where there is no list of models, one short answer shows that the key is good."""

    async def use() -> tuple[int, list[object]]:
        async with ModelServer(["ok"], models=["x"]) as server:
            machine.set(GROQ_BASE_URL=f"{server.url}/models/of-nobody")
            done = await machine.koi("connect", "groq", said=f"{KEY}\n")
            return done.code, [request.body.get("max_tokens") for request in server.requests]

    assert asyncio.run(use()) == (0, [16])


def test_disconnecting_all_proves_that_nothing_is_left(machine: Machine, keyring: Path) -> None:
    """Keys in keyring and file are gone for every provider; what is not koi's is named and left alone."""
    for name in ("anthropic", "openai", "xai"):
        machine.now("connect", name, "--no-test", said=f"{KEY}-{name}\n")
    machine.project.write(".env", f"XAI_API_KEY={KEY}-mine\n")

    done = machine.now("disconnect", "all")

    assert done.out.splitlines() == [
        f"{n}: the key was removed from the keyring" for n in ("openai", "anthropic", "xai")
    ]
    assert "`.env` still has `XAI_API_KEY`" in done.err
    assert machine.now("disconnect", "all").out == "koi keeps no key\n"
    assert (keyring.read_text(), (machine.config / "keys.json").read_text()) == ("{}", "{}")


def test_services_that_search_are_connected_like_providers(machine: Machine) -> None:
    """Their keys are kept under their own variables, listed without being shown, and removed again."""
    done = machine.now("connect", "Brave", said=f"{KEY}\n")

    assert done.out.startswith("brave is connected; the key is in ")
    assert machine.now("connect", "status").out.split() == ["brave", "file", "BRAVE_SEARCH_API_KEY", "…MARK"]
    assert machine.now("disconnect", "brave").out == "brave: the key was removed from the file\n"
    assert machine.now("disconnect", "brave").out == "koi keeps no key of brave\n"


def test_connecting_says_what_counts_before(machine: Machine) -> None:
    """Who keeps a key while the environment has another is told which one is used."""
    machine.set(**{NAME: "sk-another-key-0123456789"})

    done = machine.now("connect", "openai", "--no-test", said=f"{KEY}\n")

    assert done.err == "note: the key in the environment counts before it\n"
    assert "(also in the file, not used)" in machine.now("connect", "status").out
