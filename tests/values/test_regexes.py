"""Regular expressions, against what Node gives."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.js.call_helpers import get, invoke, new, put
from koi_lang.js.errors import SyntaxErrorValue
from koi_lang.js.inspect_value import inspect
from koi_lang.js.regexes import REGEXP, regex
from koi_lang.js.undefined import undefined

MATCHES: list[tuple[Any, ...]] = [
    ("\\d+", "a12b3", "", "[ '12', index: 1, input: 'a12b3', groups: undefined ]"),
    ("^a.c$", "abc", "", "[ 'abc', index: 0, input: 'abc', groups: undefined ]"),
    ("^b", "a\nb", "m", "[ 'b', index: 2, input: 'a\\nb', groups: undefined ]"),
    ("a.b", "a\nb", "", "null"),
    ("a.b", "a\nb", "s", "[ 'a\\nb', index: 0, input: 'a\\nb', groups: undefined ]"),
    (
        "(?<y>\\d{4})-(?<m>\\d\\d)",
        "on 2024-03",
        "",
        "[\n  '2024-03',\n  '2024',\n  '03',\n  index: 3,\n  input: 'on 2024-03',\n"
        "  groups: [Object: null prototype] { y: '2024', m: '03' }\n]",
    ),
    ("(a)|(b)", "b", "", "[ 'b', undefined, 'b', index: 0, input: 'b', groups: undefined ]"),
    ("\\bfoo\\b", "a foo b", "", "[ 'foo', index: 2, input: 'a foo b', groups: undefined ]"),
    ("[^]", "x", "", "[ 'x', index: 0, input: 'x', groups: undefined ]"),
    ("[]", "x", "", "null"),
    ("(?<=\\$)\\d+", "$42", "", "[ '42', index: 1, input: '$42', groups: undefined ]"),
    ("(?<!\\$)\\b\\d+", "$42 7", "", "[ '7', index: 4, input: '$42 7', groups: undefined ]"),
    ("\\u0041\\x42", "AB", "", "[ 'AB', index: 0, input: 'AB', groups: undefined ]"),
    ("(['\\\"]).*?\\1", "say 'hi'", "", '[ "\'hi\'", "\'", index: 4, input: "say \'hi\'", groups: undefined ]'),
    (
        "(?<q>['\\\"]).*?\\k<q>",
        "'x'",
        "",
        '[\n  "\'x\'",\n  "\'",\n  index: 0,\n  input: "\'x\'",\n  groups: [Object: null prototype] { q: "\'" }\n]',
    ),
    ("a{,2}", "a{,2}", "", "[ 'a{,2}', index: 0, input: 'a{,2}', groups: undefined ]"),
    ("[[&~|-]+", "a[&b", "", "[ '[&', index: 1, input: 'a[&b', groups: undefined ]"),
    ("\\w", "é_", "", "[ '_', index: 1, input: 'é_', groups: undefined ]"),
    ("\\s+", "a\xa0\u2028b", "", "[ '\xa0\u2028', index: 1, input: 'a\xa0\u2028b', groups: undefined ]"),
    ("\\S+", " ab ", "", "[ 'ab', index: 1, input: ' ab ', groups: undefined ]"),
    ("HELLO", "say hello", "i", "[ 'hello', index: 4, input: 'say hello', groups: undefined ]"),
    ("\\W", "sſKk", "i", "[ 'ſ', index: 1, input: 'sſKk', groups: undefined ]"),
    ("\\p{Lu}+", "aÉZb", "u", "[ 'ÉZ', index: 1, input: 'aÉZb', groups: undefined ]"),
    ("[^\\p{L}]", "aé1", "u", "[ '1', index: 2, input: 'aé1', groups: undefined ]"),
    ("\\cJ", "\n", "", "[ '\\n', index: 0, input: '\\n', groups: undefined ]"),
    ("$", "ab", "", "[ '', index: 2, input: 'ab', groups: undefined ]"),
    ("a$", "a\n", "", "null"),
    ("\\/", "a/b", "", "[ '/', index: 1, input: 'a/b', groups: undefined ]"),
    ("(z)?b", "ab", "", "[ 'b', undefined, index: 1, input: 'ab', groups: undefined ]"),
    ("[\\b]", "a\x08b", "", "[ '\\b', index: 1, input: 'a\\bb', groups: undefined ]"),
    ("\\d", "٣", "", "null"),
    ("\\p{L}", "ap{L}", "", "[ 'p{L}', index: 1, input: 'ap{L}', groups: undefined ]"),
    ("\\u{2}", "auu", "", "[ 'uu', index: 1, input: 'auu', groups: undefined ]"),
    ("[\\w]\\w", "ſK", "iu", "[ 'ſK', index: 0, input: 'ſK', groups: undefined ]"),
    ("\\W", "ſ", "iu", "null"),
    ("\\k<a>", "k<a>", "", "[ 'k<a>', index: 0, input: 'k<a>', groups: undefined ]"),
    ("\\c", "c\\c", "", "[ '\\\\c', index: 1, input: 'c\\\\c', groups: undefined ]"),
]


@pytest.mark.parametrize(
    ("pattern", "flags", "reason"),
    [
        ("(?<=a+)b", "", "a lookbehind has to match a fixed number of characters here"),
        ("(", "", "Unterminated group"),
        (")", "", "Unmatched ')'"),
        ("[z-a]", "", "Range out of order in character class"),
        ("a{2,1}", "", "numbers out of order in {} quantifier"),
        ("(?<a>x)(?<a>y)", "", "Duplicate capture group name"),
        ("\\k<b>(?<a>x)", "", "Invalid named capture referenced"),
        ("\\u{110000}", "u", "Invalid Unicode escape"),
        ("\\", "", "\\ at end of pattern"),
    ],
)
def test_a_wrong_pattern_is_told_in_the_words_of_javascript(pattern: str, flags: str, reason: str) -> None:
    """Nothing is said in words of Python."""
    with pytest.raises(SyntaxErrorValue) as raised:
        regex(pattern, flags)

    assert f"Invalid regular expression: /{pattern}/{flags}: {reason}" == raised.value.message


@pytest.mark.parametrize(("pattern", "subject", "flags", "expected"), MATCHES)
def test_patterns_match_what_javascript_matches(pattern: str, subject: str, flags: str, expected: str) -> None:
    """The match and its groups are those that Node prints."""
    assert expected == inspect(invoke(regex(pattern, flags), "exec", subject))


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("(?:(a)|(b))*", "ab", "[ 'ab', undefined, 'b' ]"),
        ("((a)|b)*", "ab", "[ 'ab', 'b', undefined ]"),
        ("(z)((a+)?(b+)?(c))*", "zaacbbbcac", "[ 'zaacbbbcac', 'z', 'ac', 'a', undefined, 'c' ]"),
        ("(?:(?:(a)|b)+c(d)?)*", "acdbc", "[ 'acdbc', undefined, undefined ]"),
        ("(?:(?<k>a)|(b)){2}(c)\\3", "abcc", "[ 'abcc', undefined, 'b', 'c' ]"),
        ("(?:(?<=(a))b|a)*", "ab", "[ 'ab', 'a' ]"),
        ("(?:(a)|[(]|\\()*", "a((", "[ 'a((', undefined ]"),
        ("(?:(?=(a))a|b)*", "ab", "[ 'ab', undefined ]"),
        ("(?:(a)|b)?", "b", "[ 'b', undefined ]"),
    ],
)
def test_each_round_begins_with_empty_groups(pattern: str, subject: str, expected: str) -> None:
    """Groups in a repeated group are those of its last round, by index and by name, as Node has them."""
    found = invoke(regex(pattern, "d"), "exec", subject)
    where = ["undefined" if each is undefined else repr(subject[each[0] : each[1]]) for each in get(found, "indices")]

    assert expected == inspect(list(found))
    assert expected == f"[ {', '.join(where)} ]"
    assert ["k"] * ("<k>" in pattern) == [*(get(found, "groups") or ())]


def test_members_tell_the_pattern_and_its_flags() -> None:
    """Flags are sorted; each has a member."""
    expression = regex("a+", "ig")

    assert [
        *(get(expression, name) for name in ("source", "flags", "global", "ignoreCase", "sticky")),
        str(expression),
    ] == ["a+", "gi", True, True, False, "/a+/gi"]


def test_a_global_expression_goes_on_where_it_was() -> None:
    """`exec` moves `lastIndex` and starts again after the last match."""
    expression = regex("a", "g")
    seen = []
    for _ in range(4):
        found = invoke(expression, "exec", "aba")
        seen.append((found and get(found, "index"), get(expression, "lastIndex")))

    assert seen == [(0, 1), (2, 3), (None, 0), (0, 1)]


def test_the_place_to_start_can_be_set() -> None:
    """`lastIndex` is written like any member; a sticky expression matches there or not at all."""
    sticky = regex("b", "y")
    at_start = invoke(sticky, "test", "abb")
    put(sticky, "lastIndex", 1)

    assert [at_start, invoke(sticky, "test", "abb"), get(sticky, "lastIndex")] == [False, True, 2]


def test_a_pattern_made_of_text_is_written_with_escaped_slashes() -> None:
    """`new RegExp("a/b")` prints as the literal that means the same."""
    assert [str(new(REGEXP, "a/b", "g")), str(new(REGEXP))] == [r"/a\/b/g", "/(?:)/"]


@pytest.mark.parametrize(
    ("pattern", "flags"), [("(", ""), ("[a", ""), ("a", "x"), ("a", "gg"), ("\\", ""), ("(?<=a+)b", "")]
)
def test_what_cannot_be_matched_is_a_syntax_error(pattern: str, flags: str) -> None:
    """Broken patterns, unknown flags and lookbehinds without a fixed width are refused."""
    with pytest.raises(SyntaxErrorValue, match="Invalid"):
        regex(pattern, flags)


def test_groups_that_took_no_part_match_nothing_again() -> None:
    """A reference to such a group matches the empty text, as in JavaScript."""
    assert [invoke(regex(r"(z)?ab\1"), "exec", "ab")[0], invoke(regex(r"\1(b)"), "exec", "b")[0]] == ["ab", "b"]
