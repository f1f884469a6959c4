"""`[serve]` of `koi.toml`: what it may hold, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.errors import SettingsError
from koi_lang.settings import read_settings
from koi_lang.settings.project import service_settings
from koi_lang.settings.service import OWN_PATHS, ServiceSettings, UserSettings
from koi_lang.web.app import ROUTES
from koi_lang.web.dev_routes import DEV_ROUTES
from koi_lang.web.mounts import A2A, AGUI, MCP
from koi_lang.web.pages import PageFiles

HASH, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


def read(folder: Path, text: str) -> ServiceSettings:
    """The settings of a file."""
    (folder / "koi.toml").write_text(text)
    return service_settings(read_settings(folder))


def test_without_the_section_nothing_is_limited(tmp_path: Path) -> None:
    """Nobody has a token but who starts it, and nothing is told to anybody."""
    found = read(tmp_path, "")

    assert ((), {}, {}, None, "UTC") == (found.programs, found.users, found.hooks, found.http, found.limits.zone)


def test_users_are_hashes_or_tables(tmp_path: Path) -> None:
    """A name has the hash of its token, or a table with more."""
    text = f'[serve.users]\nada = "{HASH}"\nbob = {{ token = "{OTHER}", admin = true, usd_per_day = 2.5 }}\n'

    assert {
        "ada": UserSettings(HASH),
        "bob": UserSettings(OTHER, admin=True, usd_per_day=2.5),
    } == read(tmp_path, text).users


def test_a_hook_has_one_address_or_several(tmp_path: Path) -> None:
    """Both are a list for whoever reads them."""
    hooks = read(tmp_path, '[serve.hooks]\n"run.ended" = "https://a.org/x?y=1"\n"run.failed" = ["http://b.org"]').hooks

    assert {"run.ended": ["https://a.org/x?y=1"], "run.failed": ["http://b.org"]} == hooks


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("https://A.org/app?x", "https://a.org"),
        ("https://a.org:443", "https://a.org"),
        ("http://a.org:80", "http://a.org"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
    ],
)
def test_an_origin_is_written_as_browsers_send_it(tmp_path: Path, written: str, exact: str) -> None:
    """Another spelling would never match, so the one that does is told."""
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, f'[serve]\norigins = ["{written}"]')

    assert f'Write each exactly: `origins = ["{exact}"]`.' == caught.value.help
    assert [exact] == read(tmp_path, f'[serve]\norigins = ["{exact}"]').origins


def test_a_public_url_takes_no_path_of_the_service() -> None:
    """A proxy may leave its path before those of the service, and nobody could tell which is meant."""
    paths = [*ROUTES, *DEV_ROUTES, *PageFiles().routes]

    assert {each.path.split("/")[1] for each in paths} - {""} <= {*OWN_PATHS}
    assert {each.strip("/") for each in (MCP, AGUI, A2A)} <= {*OWN_PATHS}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[serve]\nprogrammes = []", "`[serve]` in `koi.toml` has no `programmes`"),
        ("serve = 1", "`serve` in `koi.toml` is no table"),
        ('[serve]\nhttp = "nowhere"', "must be an address to listen at"),
        ('[serve]\nhttp = "127.0.0.1:99999"', "must be an address to listen at"),
        ("[serve]\nusers = 3", "`users` in `[serve]` of `koi.toml` is no table"),
        ('[serve.users]\nada = "a-secret-token"', "must be the hash of a token"),
        (f'[serve.users]\nada = {{ token = "{HASH}", commands = ["branch"] }}', 'no list of `"set_model"`'),
        ("[serve.users.ada]\nadmin = true", "has no hash of a token"),
        (f'[serve.users]\nada = {{ token = "{HASH}", usd = 3 }}', "`[serve.users.ada]` in `koi.toml` has no `usd`"),
        (f'[serve.users]\nada = "{HASH}"\nbob = "{HASH}"', "have the same token"),
        (f'[serve.users]\nadmin = "{HASH}"', "whoever has the token of the start"),
        (f'[serve.users]\n"../x" = "{HASH}"', "is no name of a user"),
        ("[serve.limits]\nusd_per_usr = 3", "has no `usd_per_usr`"),
        ("[serve.limits]\ntokens_per_day = 0", "must be a whole number above 0"),
        ('[serve.limits]\nzone = "Mars/Base"', "which is no time zone"),
        ('[serve.hooks]\n"run.end" = "https://a.org"', "has no `run.end`"),
        ('[serve.hooks]\nrun.ended = "https://a.org"', "`run` in `[serve.hooks]` of `koi.toml` is a table"),
        ('[serve.hooks]\n"run.ended" = "ftp://a.org"', "must be an address of the web"),
        ('[serve.hooks]\n"run.ended" = "https://u:p@a.org"', "must be an address of the web"),
        ('[serve]\norigins = "https://a.org"', "`origins` in `[serve]` of `koi.toml` is no list of texts"),
        ('[serve]\norigins = ["*"]', "has `*`, which is no origin"),
        ('[serve]\norigins = ["null"]', "has `null`, which is no origin"),
        ('[serve]\norigins = ["a.org"]', "has `a.org`, which is no origin"),
        ('[serve]\norigins = ["https://a.org/"]', "has `https://a.org/`, which is no origin"),
        ('[serve]\norigins = ["https://*.a.org:0"]', "has `https://*.a.org:0`, which is no origin"),
        ('[serve]\npublic_url = "koi.example.org"', "`public_url` in `[serve]` of `koi.toml` must be an address"),
        ('[serve]\npublic_url = "https://a.org/%2e%2e"', "must be an address of the web"),
        ('[serve]\npublic_url = "https://a.org/a/../b"', "must be an address of the web"),
        ('[serve]\npublic_url = "https://a.org/api"', "`/api` is a path of the service itself"),
        ('[serve]\npublic_url = "https://A.org:443/koi/?x"', "is 'https://A.org:443/koi/?x'"),
        ('[serve.hook_secrets]\ngithub = "x"', "neither `out` nor begins with `/`"),
        ('[serve.hook_secrets]\n"/github" = 3', "is no text"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, told: str) -> None:
    """One sentence says which key of which table, and a token that was written instead of its hash is not repeated."""
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text)

    assert told in caught.value.message
    assert "a-secret-token" not in f"{caught.value.message}{caught.value.help}"
