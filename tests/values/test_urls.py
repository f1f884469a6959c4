"""`URL` and `URLSearchParams`, against the rules of the WHATWG and against Node."""

from __future__ import annotations

import json
import subprocess
from random import Random
from typing import Any

import pytest

from koi_lang.js.call_helpers import call, get, invoke, iterate, new, put
from koi_lang.js.errors import ErrorValue, TypeErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect
from koi_lang.js.json_text import stringify
from koi_lang.js.operators import instance_of, text
from koi_lang.js.undefined import undefined

PARTS = ("href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash")
READ: list[tuple[Any, ...]] = [
    (" \tHTTP://EXAMPLE.com:80\n", None, "http://example.com/"),
    ("https:example.org", None, "https://example.org/"),
    ("https:////x//y", None, "https://x//y"),
    (r"http:\\x\y", None, "http://x/y"),
    ("http://0x7f.1/", None, "http://127.0.0.1/"),
    ("http://0177.0.0.0x1", None, "http://127.0.0.1/"),
    ("http://4294967295", None, "http://255.255.255.255/"),
    ("http://1.2.3.", None, "http://1.2.0.3/"),
    ("http://[1:0::0:1]:443", None, "http://[1::1]:443/"),
    ("http://[::FFFF:1.2.3.4]/", None, "http://[::ffff:102:304]/"),
    ("http://mÜnchen.de", None, "http://xn--mnchen-3ya.de/"),
    ("http://faß.de", None, "http://xn--fa-hia.de/"),
    ("http://日本。jp", None, "http://xn--wgv71a.jp/"),
    ("http://a\u00adb.c", None, "http://ab.c/"),
    ("http://%65x.com", None, "http://ex.com/"),
    ("http://u:p@h:8080/a b?c d'#e f`", None, "http://u:p@h:8080/a%20b?c%20d%27#e%20f%60"),
    ("http://a@b@c/", None, "http://a%40b@c/"),
    ("http://h/a/./b/../%2E%2e/c", None, "http://h/c"),
    ("http://h/{}|^", None, "http://h/%7B%7D|^"),
    ("http://h/%zz\ud800", None, "http://h/%zz%EF%BF%BD"),
    ("file:///C|/a/../..", None, "file:///C:/"),
    ("file://localhost/a", None, "file:///a"),
    ("data:text/plain,a b#c", None, "data:text/plain,a b#c"),
    ("mailto:a@b", None, "mailto:a@b"),
    ("foo://h/../a?b", None, "foo://h/a?b"),
    ("web+demo:/.//not-a-host/", None, "web+demo:/.//not-a-host/"),
    ("?x", "http://h/a/b?c#d", "http://h/a/b?x"),
    ("", "http://h/a/b?c#d", "http://h/a/b?c"),
    ("#x", "data:a", "data:a#x"),
    ("../x", "http://h/a/b/c", "http://h/a/x"),
    ("//y/z", "https://h/a", "https://y/z"),
    ("/C:/x", "file:///D:/y", "file:///C:/x"),
    ("x", "file:///D:/y", "file:///D:/x"),
    ("\\x", "http://h/a/b", "http://h/x"),
]
REFUSED = [
    "", "x", "/a", "http:", "http://", "http://:80", "http://u@", "http://h:65536", "http://h:8a", "http://[::1",
    "http://[::1%25a]", "http://[1::2::3]", "http://a b", "http://a<b", "http://1.2.3.256", "http://1.2.3.4.5",
    "http://0x100000000", "http://%00", "http://xn--a-ß", "http://a\u200db", "foo://a b", "http://a%", "1x:a",
    "http://0x" + "f" * 5000, "http://\u2024",
]  # fmt: skip
SET: list[tuple[str, str, Any, str]] = [
    ("http://h:8080/", "protocol", "https", "https://h:8080/"),
    ("http://h:443/", "protocol", "https:x", "https://h/"),
    ("http://h/", "protocol", "data", "http://h/"),
    ("http://h/", "username", "a:b", "http://a%3Ab@h/"),
    ("file:///a", "username", "x", "file:///a"),
    ("http://h/", "host", "x:81", "http://x:81/"),
    ("http://h:1/", "hostname", "x:81", "http://h:1/"),
    ("http://h/", "hostname", "a b", "http://h/"),
    ("http://h/", "port", "90x", "http://h:90/"),
    ("http://h:90/", "port", "", "http://h/"),
    ("http://h:90/", "port", 80, "http://h/"),
    ("http://h/a", "pathname", "b/../c?d#e", "http://h/c%3Fd%23e"),
    ("data:a", "pathname", "b", "data:a"),
    ("http://h/a?b", "search", "", "http://h/a"),
    ("http://h/a?b", "search", "c#d", "http://h/a?c%23d"),
    ("http://h/a#b", "hash", "", "http://h/a"),
    ("http://h/a", "hash", "#b c", "http://h/a#b%20c"),
    ("http://h/a", "href", "ws://x", "ws://x/"),
]


def url(*given: Any) -> Any:
    """`new URL(…)`."""
    return new(GLOBALS["URL"], *given)


def params(*given: Any) -> Any:
    """`new URLSearchParams(…)`."""
    return new(GLOBALS["URLSearchParams"], *given)


@pytest.mark.parametrize(("source", "base", "expected"), READ)
def test_urls_are_written_as_the_rules_say(source: str, base: str | None, expected: str) -> None:
    """Schemes, hosts in all spellings, escapes, dots and relative ones; what comes out stays what it is."""
    href = get(url(source, base or undefined), "href")

    assert [expected, expected] == [href, get(url(href), "href")]


@pytest.mark.parametrize("source", REFUSED)
def test_what_is_no_url_is_a_type_error_that_holds_it(source: str) -> None:
    """`canParse` tells it beforehand, `parse` gives null."""
    with pytest.raises(TypeErrorValue, match="Invalid URL") as failure:
        url(source)

    assert [source, "ERR_INVALID_URL", False, None] == [
        get(failure.value, "input"), get(failure.value, "code"),
        invoke(GLOBALS["URL"], "canParse", source), invoke(GLOBALS["URL"], "parse", source),
    ]  # fmt: skip


@pytest.mark.parametrize(("source", "name", "value", "expected"), SET)
def test_parts_can_be_set(source: str, name: str, value: Any, expected: str) -> None:
    """What a part cannot be leaves the URL as it is."""
    changed = url(source)
    put(changed, name, value)

    assert expected == get(changed, "href")


def test_an_invalid_href_is_refused() -> None:
    """Of all parts this one throws, and changes nothing."""
    kept = url("http://h/")
    with pytest.raises(TypeErrorValue, match="Invalid URL"):
        put(kept, "href", "x")

    assert "http://h/" == text(kept)


def test_the_pairs_of_the_query_are_in_step_with_the_url() -> None:
    """Either one changes the other, and they stay the same object."""
    whole = url("http://h/?a=1&a=2&b=%20+c")
    pairs = get(whole, "searchParams")
    invoke(pairs, "append", "d", "é&=")
    after_append = text(whole)
    put(whole, "search", "?x=1")
    after_search = list(iterate(pairs))
    invoke(pairs, "delete", "x")

    assert ["http://h/?a=1&a=2&b=++c&d=%C3%A9%26%3D", [["x", "1"]], "http://h/", True] == [
        after_append, after_search, text(whole), pairs is get(whole, "searchParams"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (undefined, ""), ("?a=b", "a=b"), ("a&&=&b=c=d", "a=&=&b=c%3Dd"), ({"a": 1, "b": [1, 2]}, "a=1&b=1%2C2"),
        ([["a", 1], ["a", None]], "a=1&a=null"), ("a=%zz%F0", "a=%25zz%EF%BF%BD"), (5, "5="),
        ("~!*'()-._ ", "%7E%21*%27%28%29-._+="),
    ],
)  # fmt: skip
def test_queries_are_made_of_texts_pairs_and_objects(given: Any, expected: str) -> None:
    """They are written as forms are sent."""
    assert expected == text(params(given))


def test_pairs_are_read_changed_and_listed() -> None:
    """Names may occur several times; `set` keeps the first place, `sort` the order of equal ones."""
    pairs = params("b=1&a=2&b=3&c")
    seen = [invoke(pairs, "get", "b"), invoke(pairs, "getAll", "b"), invoke(pairs, "get", "x"),
            invoke(pairs, "has", "b", "3"), invoke(pairs, "has", "b", "4"), get(pairs, "size")]  # fmt: skip
    invoke(pairs, "sort")
    listed = [list(iterate(invoke(pairs, name))) for name in ("keys", "values")]
    invoke(pairs, "set", "b", 9)
    invoke(pairs, "delete", "a", "5")

    assert [["1", ["1", "3"], None, True, False, 4], [["a", "b", "b", "c"], ["2", "1", "3", ""]], "a=2&b=9&c="] == [
        seen, listed, text(pairs),
    ]  # fmt: skip


def test_they_are_shown_and_written_as_in_node() -> None:
    """`console.log` lists the parts; JSON has the text."""
    shown = inspect([params("a=1&b=2"), params(), invoke(params("a=1"), "entries")])
    whole = url("http://h/?a=1")

    assert "[\n  URLSearchParams { 'a' => '1', 'b' => '2' },\n  URLSearchParams {},\n  " in shown
    assert inspect({"u": whole}).startswith("{\n  u: URL {\n    href: 'http://h/?a=1',\n    origin: 'http://h',\n")
    assert ["{\"u\":\"http://h/?a=1\"}", True, False] == [
        stringify({"u": whole}), instance_of(whole, GLOBALS["URL"]), instance_of({}, GLOBALS["URL"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (url, "The \"url\" argument must be specified"),
        (lambda: params([["a"]]), "Each query pair must be an iterable"),
        (lambda: invoke(params(), "append", "x"), 'The "name" and "value" arguments must be specified'),
        (lambda: call(GLOBALS["URL"], "http://h"), "Class constructor URL cannot be invoked without 'new'"),
        (lambda: put(url("http://h"), "origin", "x"), "Cannot set property 'origin' of `URL`"),
    ],
)  # fmt: skip
def test_wrong_uses_say_what_is_missing(make: Any, message: str) -> None:
    """They are errors of the program, with Node's words where it has some."""
    with pytest.raises(ErrorValue, match=message):
        make()


# What the corpus is made of; left out is what version 2 of Node's parser does otherwise than the rules: an empty query
# of a base, and `..` at the end of paths behind a host of a scheme without rules of its own.
SCHEMES = ["http", "https", "ftp", "ws", "wss", "file", "HTTP"]
HOSTS = [
    "example.com", "EXAMPLE.com", "127.1", "0x7f.1", "0177.0.0.1", "256.1.1.1", "4294967296", "1.2.3.4.", "0x.0x",
    "[::1]", "[1:2:3:4:5:6:7:8]", "[1:0:0:2:0:0:3:4]", "[::1", "[::1.2.3.256]", "münchen.de", "日本語.jp", "a.xn--p1ai",
    "faß.de", "a_b.c", "a%20b", "a%2Eb", "a b", "a^b", "ex%ample", "☃.net", "a..b", ".", "a.", "ａ。ｂ", "אבג.com",
    "", "08.1", "ÀÉ.com", "%5Bx%5D", "İ.com", "1.0x1.com", "foo.0x4", "1e3", "x" * 70,
]  # fmt: skip
USERS = ["", "", "", "u@", "user:p@", ":@", "u%40:p:q@", "a b@", "é@", "[]^|@", "u;=@"]
PORTS = ["", "", "", ":80", ":443", ":8080", ":", ":0", ":65536", ":8a", ":00080"]
SEGMENTS = [
    "a", "b c", "..", ".", "%2e", "%2E%2e", ".%2e", "...", "", "é", "a%zz", "{x}", "<y>", "`", "^", "|", "a;b", "@",
    "\\", "\\..", "%", "日本", "~", "'", '"', "[x]", "a+b", "\t", "\x01", "\x7f", "😀",
]  # fmt: skip
TAILS = ["", "", "?a=b", "?a b'\"<>`{}", "?é#f", "?a=1&b=2&a=3", "?a+b=c%20d", "#", "#a b`<>", "??x#a#b"]
VALUES = {
    "protocol": ["https", "ws:", "file", "x y", ""], "username": ["", "a:b", "é"], "password": ["", "a@b", "%40"],
    "host": HOSTS, "hostname": HOSTS, "port": ["", "80", "443", "8x", "65536", "0"],
    "pathname": ["", "a/../b", "?", "\\"], "search": TAILS, "hash": TAILS,
}  # fmt: skip
NODE = """
const { cases, parts } = JSON.parse(require("fs").readFileSync(0, "utf8"))
const show = u => [...parts.map(part => u[part]), [...u.searchParams]]
console.log(JSON.stringify(cases.map(([source, base, sets]) => {
  try {
    const url = base === null ? new URL(source) : new URL(source, base), seen = [show(url)]
    for (const [name, value] of sets) { url[name] = value; seen.push(show(url)) }
    return seen
  } catch { return null }
})))
"""


def _path(random: Random) -> str:
    return "".join(random.choice(["/", "/", "\\"]) + random.choice(SEGMENTS) for _ in range(random.randrange(5)))


def _absolute(random: Random) -> str:
    slashes = random.choice(["//", "//", "//", "/", "", "///", "\\\\"])
    where = random.choice(HOSTS) + random.choice(PORTS)
    return f"{random.choice(SCHEMES)}:{slashes}{random.choice(USERS)}{where}{_path(random)}{random.choice(TAILS)}"


def _case(random: Random) -> list[Any]:
    base = _absolute(random) if random.random() < 0.4 else None
    relative = [f"//{random.choice(HOSTS)}", random.choice(SEGMENTS), "", f"../{random.choice(SEGMENTS)}"]
    source = _absolute(random) if base is None else random.choice(relative) + _path(random) + random.choice(TAILS)
    names = random.choices(list(VALUES), k=random.randrange(3))
    return [source, base, [[name, random.choice(VALUES[name])] for name in names]]


def _seen(source: str, base: str | None, sets: list[list[str]]) -> Any:
    def show(value: Any) -> list[Any]:
        return [*(get(value, part) for part in PARTS), list(iterate(get(value, "searchParams")))]

    try:
        value = url(source, base or undefined)
    except TypeErrorValue:
        return None
    seen = [show(value)]
    for name, new_value in sets:
        put(value, name, new_value)
        seen.append(show(value))
    return seen


@pytest.mark.needs("node", "npm")
def test_generated_urls_are_those_of_node() -> None:
    """Four thousand texts, relative ones and assignments have the same parts in Node, or are refused by both."""
    random = Random(20_261)
    cases = [_case(random) for _ in range(4000)]
    given = json.dumps({"cases": cases, "parts": PARTS})
    node = subprocess.run(
        ["node", "-e", NODE],
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = json.loads(node.stdout)

    assert 1000 < sum(each is not None for each in expected) < 3500
    assert [] == [(case, want) for case, want in zip(cases, expected, strict=True) if _seen(*case) != want]
