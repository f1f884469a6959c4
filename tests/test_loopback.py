"""Which hosts and addresses lead to this machine."""

from __future__ import annotations

import pytest

from koi_lang.cli.attaching.tokens import warning_of
from koi_lang.system.loopback import is_loopback, is_loopback_url

HERE = ["localhost", "LocalHost", "127.0.0.1", "127.255.255.254", "[::1]"]
ELSEWHERE = ["127.example.org", "127.0.0.1.example.org", "127.0.0.256", "127.1", "128.0.0.1", "[::2]", "0.0.0.0", ""]


@pytest.mark.parametrize("host", HERE)
def test_this_machine_is_known_by_its_names(host: str) -> None:
    """Nothing that is sent there can be read on the way."""
    address = f"http://{host}:8080/v1#model"

    assert (True, True, None) == (is_loopback(host), is_loopback_url(address), warning_of(address, "token"))


@pytest.mark.parametrize("host", ELSEWHERE)
def test_what_only_looks_like_this_machine_is_another(host: str) -> None:
    """A name that begins like a number of this machine may lead anywhere."""
    address = f"http://{host}:8080/v1"

    assert (False, False) == (is_loopback(host), is_loopback_url(address))
    assert "without encryption" in str(warning_of(address, "token"))


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1@example.org", "http://127.0.0.1:80@example.org/", "http://127.0.0.1\\@example.org", "localhost"],
)
def test_an_address_that_can_be_read_in_two_ways_leads_elsewhere(address: str) -> None:
    """Libraries differ about its host."""
    assert not is_loopback_url(address)
