"""Hosts of URLs, by the rules of the WHATWG and of Unicode for domains."""

from __future__ import annotations

import pytest

from koi_lang.js.url_hosts import HostError, parse_host
from koi_lang.js.url_parser import parse_url

HOSTS = [
    ("EXAMPLE.com", "example.com"), ("%41b", "ab"), ("a_b", "a_b"), ("127.1", "127.0.0.1"), ("0x", "0.0.0.0"),
    ("1.256", "1.0.1.0"), ("1.2.3", "1.2.0.3"), ("010.0x10.1", "8.16.0.1"), ("[::]", "[::]"), ("[1::]", "[1::]"),
    ("[0:0:1:0:0:0:1:0]", "[0:0:1::1:0]"), ("[1:0:0:2:0:0:3:4]", "[1::2:0:0:3:4]"),
    ("[1:0:2:3:4:5:6:7]", "[1:0:2:3:4:5:6:7]"),
    ("ΣΑΣ.gr", "xn--mxa9ab.gr"), ("faß.de", "xn--fa-hia.de"), ("☃.net", "xn--n3h.net"), ("ａ．ｂ", "a.b"),
    ("अ\u094d\u200dअ", "xn--l1ba9s254f"), ("אבג", "xn--4dbcd"), ("xn--4dbc", "xn--4dbc"),
]  # fmt: skip
REFUSED = [
    "", "a b", "a%", "a%00", "256.1.1.1", "1.2.3.4.5", "08.1", "4294967296", "1..2", "0x100.1.1.1", "[", "[1]", "[::1",
    "[1::2::3]", "[::%31]", "[::1/64]", "[::01.2.3.4]", "xn--a", "xn--é", "\u0301a", "a\u200cb", "אa", "a\ue000", "…",
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), HOSTS)
def test_hosts_have_one_spelling(source: str, expected: str) -> None:
    """Domains are in lower case and ASCII, IPv4 in four decimals, IPv6 as short as it can be."""
    assert expected == parse_host(source, special=True)


@pytest.mark.parametrize("source", REFUSED)
def test_what_is_no_host_is_refused(source: str) -> None:
    """Numbers that are too large, brackets without an address, and names that could pass for others."""
    with pytest.raises(HostError):
        parse_host(source, special=True)


def test_hosts_of_other_schemes_are_any_text() -> None:
    """Nothing is known of them; what would end them is refused."""
    assert "A.%C3%A9%" == parse_host("A.é%", special=False)
    with pytest.raises(HostError):
        parse_host("a|b", special=False)


def test_a_url_is_a_record_of_its_parts() -> None:
    """Each part is as it is written, without the marks between them."""
    record = parse_url("../b?#", parse_url("ws://u:p@h:81/a/c?d"))

    assert ("u", "p", "h", 81, ("b",), "", "") == (
        record.username, record.password, record.host, record.port, record.path, record.query, record.fragment,
    )  # fmt: skip
