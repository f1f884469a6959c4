"""Expressions of models and payloads: what is computed, and what is refused."""

from __future__ import annotations

import contextlib
import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koi_lang.errors import ExpressionError
from koi_lang.js.undefined import undefined
from koi_lang.program.safe_expressions import IN_CODE, evaluate
from koi_lang.system.interpolation import ExpressionRules

NAMES: dict[str, Any] = {
    "a": {"output": {"n": 3, "s": "Ada", "list": [1, 2, 3], "none": None}},
    "n": 5,
    "half": 0.5,
    "yes": True,
    "state": {"count": 4, "state": "inner"},
    "role": "lead",
    "big": "x" * 900_000,
    "many": list(range(900_000)),
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3 - -1", 10),
        ("7 % 4 / 2", 1.5),
        ("'a' + 1 + n", "a15"),
        ("a.output.n > 2 && a.output.n < 4", True),
        ("n >= 5 || nobody", True),
        ("!yes", False),
        ("n === 5 ? 'five' : 'other'", "five"),
        ("n == '5'", True),
        ("n !== '5'", True),
        ("a.output.none ?? 'nothing'", "nothing"),
        ("a.output.none?.x.y", undefined),
        ("a?.output?.n", 3),
        ("a.output.missing.deeper", undefined),
        ("a['output']['s']", "Ada"),
        ("a.output.list[1] + a.output.list.length", 5),
        ("a.output.list.at(-1)", 3),
        ("a.output.list.includes(2)", True),
        ("a.output.list.join('-')", "1-2-3"),
        ("a.output.s.toUpperCase().slice(1)", "DA"),
        ("a.output.s.split('d')", ["A", "a"]),
        ("'n' in a.output", True),
        ("typeof n", "number"),
        ("`${a.output.s} is ${n}`", "Ada is 5"),
        ("[1, 'b', n]", [1, "b", 5]),
        ("({ x: n, 'y z': [n] })", {"x": 5, "y z": [5]}),
        ("JSON.stringify({ x: n })", '{"x":5}'),
        ("JSON.parse('[1,2]')[1]", 2),
        ("Math.max(n, 7) + Math.floor(2.7)", 9),
        ("Object.keys(a.output).length", 4),
        ("Array.isArray(a.output.list)", True),
        ("Number('4') + parseInt('3px') + parseFloat('0.5')", 7.5),
        ("String(n) + Boolean('')", "5false"),
        ("isNaN(NaN)", True),
        ("half.toFixed(2)", "0.50"),
        ("undefined", undefined),
        ("state.count + state['state'].length", 9),
        ("role === 'lead' && 'state' === \"state\"", True),
        ("{ role: role }", {"role": "lead"}),
        ("1 / 0", math.inf),
        ("9" * 300 + " * " + "9" * 300, math.inf),
        ("a.output.list.map(x => x * n)", [5, 10, 15]),
        ("a.output.list.filter((x, at) => x > 1 && at < 2).length", 1),
        ("a.output.list.map(n => n + 1).some(x => x === 4) && a.output.list.every(x => x)", True),
        ("a.output.list.reduce((sum, x) => sum + x, 0)", 6),
        ("a.output.list.find(x => x > 1) + a.output.list.findIndex(x => x > 1)", 3),
        ("a.output.list.toSorted((x, y) => y - x).join()", "3,2,1"),
        ("[3, 1].sort()", [1, 3]),
        ("[[1], [2]].flatMap(x => x.map(y => [y, n]))", [[1, 5], [2, 5]]),
        ("a.output.none?.map(x => x)", undefined),
        ("a.output.list.map(x => ({ x: x }))[0].x", 1),
        ("Math.max(...a.output.list, ...[7])", 7),
        ("[...a.output.list, ...'ab']", [1, 2, 3, "a", "b"]),
        (
            "({ ...a.output, n: 4, [a.output.s + n]: 1 })",
            {"n": 4, "s": "Ada", "list": [1, 2, 3], "none": None, "Ada5": 1},
        ),
        ("({ a: 1 }).a + ({ b: { c: 2 } }).b.c", 3),
        ("[{ x: 1, y: [2, 3] }].map(({ x, y: [, z = 9], w = z, ...rest }) => [x, z, w, rest])", [[1, 3, 3, {}]]),
        ("[[1, 2, 3]].map(([x, ...more]) => more)", [[2, 3]]),
        ("[undefined, 1].map((x = 5, ...more) => [x, more.length])", [[5, 2], [1, 2]]),
        ("a.output.list.map(String).filter(Boolean)", ["1", "2", "3"]),
        ("`${a.output.list.map(x => `<${x}>`).join('')}`", "<1><2><3>"),
        ("'ab'.repeat(2) + 'x'.padStart(3) + 'a-b-c'.replaceAll('-', '+') + 'aa'.replace('a', 'b')", "abab  xa+b+cba"),
        ("[1].concat([2], 3).toReversed()", [3, 2, 1]),
        ("a.output.list.reverse().concat(a.output.list)", [3, 2, 1, 1, 2, 3]),
        ("n ** 2", 25),
        ("Object.fromEntries(Object.entries({ b: 1 }).map(([k, v]) => [k.toUpperCase(), v + 1]))", {"B": 2}),
    ],
)
def test_what_is_computed(text: str, value: Any) -> None:
    """Operators, members of plain values and a list of harmless functions give what they give in code."""
    assert value == evaluate(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "a.__class__", "a['__class__']", "''.__class__.__mro__", "a['__cl' + 'ass__']", "[].__init__", "a.constructor",
        "a['constructor']", "n.prototype", "a.__proto__", "a.output.list.__len__()",
        "n()", "a.output.n()", "a['output']()", "(1)(2)", "eval('1')", "exec('1')", "print(1)", "open('x')",
        "[1].push(2)", "'a'.replace(/a/, 'b')", "'a'.replace('a', x => x)",
        "a.output.list.map(n)", "a.output.list.map('x')", "a.output.s.map(x => x)", "a.output.list.forEach(x => x)",
        "a.output.list.map(x => y)", "a.output.list.map(async x => x)", "a.output.list.map(x => { return x })",
        "a.output.list.map(([x]) => x)", "a.output.list.map(({ x }) => x)",
        "a.output.list.map(function (x) { return x })",
        "a.output.list.map(x => y => x)", "a.output.list.map(x => x.constructor)",
        "a.output.list.map(x => x.__class__)",
        "a.output.list.map(fetch)", "many.map(x => x)", "many.slice(0, 9).map(x => big + x)",
        "many.slice(0, 999).map(x => many.slice(0, 999).some(y => y < 0))",
        "a.hasOwnProperty('x')", "a.toString()", "Math.random()", "Date.now()",
        "Object.assign(a, a)",
        "Math.max(...5)", "Math['max'](1)", "JSON['parse']('1')", "Promise.resolve(1)",
        "n = 6", "n += 1", "n++", "--n", "a.output.n = 1", "delete a.output",
        "await n", "await send peers.event('x').any()(1)", "() => 1", "x => x", "async () => 1", "function () { }",
        "new Date()", "new Error('x')", "n instanceof Object", "/a/.test('a')", "/a/",
        "1 & 2", "this", "this.state", "args", "registry", "process.env", "console", "globalThis", "Math",
        "JSON",
        "[...n]", "[...many, ...many]", "({ get x() { return 1 } })", "({ x() { return 1 } })", "({ x: y => y })",
        "'ab'.repeat(900000)", "'x'.padEnd(9e9)", "big.replaceAll('x', 'xx')", "'xx'.replaceAll('x', big)",
        "big.concat(big)", "[big].concat([big])", "'x'.repeat(-1)", "new Map()", "super.x", "n => { }",
        "", " ", "1 +", "a b", "a; b", "a, b", "if (n) { }", "return n", "import('os')", "'unclosed", "${n}",
        "JSON.parse('nope')", "half.toFixed(200)", "5 in 'x'", "n in n",
        "x" * 2001, "(" * 1000, "!" * 1999 + "n", "[" * 900 + "]" * 900, "-" * 1999 + "1",
        "big + big", "`${big}${big}`", "[big, big].join('')", "many.join(big)", "[big, big].toString()",
        "String([big, big])",
        "JSON.stringify([big, big])", "big.split('').join('--')",
    ],
)  # fmt: skip
def test_what_is_refused(text: str) -> None:
    """Everything that could reach out of the given values, change something or take for ever is an error."""
    with pytest.raises(ExpressionError):
        evaluate(text, NAMES)


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("nn + 1", "there is no `nn` here", "Did you mean `n`?"),
        ("state.cuont.x", "`state.cuont` has no value", "Write `?.` and `?? …` where a value may be missing."),
        ("a.output.none.x", "`a.output.none` is null", "Write `?.` and `?? …` where a value may be missing."),
        ("a.output.n.x", "`a.output.n` is a number, which has no members here", None),
        ("a.output.list.pop()", "`a.output.list.pop` cannot be called here: it changes", "Write `list.at(-1)`."),
        ("Object.assign(a, { n })", "`Object.assign` cannot be called here: it", "Write `({ ...a, ...b })`."),
        ("a.output.keys.clear()", "`a.output.keys.clear` cannot be called here: it changes a value", IN_CODE),
        ("a.output.s.toUppercase()", "`a.output.s.toUppercase` cannot be called here", "Did you mean `toUpperCase`?"),
        ("len(a.output.list)", "`len` cannot be called here", "Write `list.length`."),
        ("a.output.list.format()", "`a.output.list.format` cannot be called here", IN_CODE),
        ("a.output.s.upper()", "`a.output.s.upper` cannot be called here", "Write `text.toUpperCase()`."),
        ("new Date(n)", "`new` is not computed here", IN_CODE),
        ("Date.now()", "`Date` is not computed here", IN_CODE),
        ("Math.random()", "`Math.random` is not computed here", None),
        ("[1].map(x => { return x })", "a function in an expression has one expression behind its arrow", None),
        ("Math.max(...n)", "`n` is no list, but a number", None),
        ("state.count = 1", "an assignment is not computed here", "Write the new value alone, or use `update_state`."),
        ("[n].map(({ x }) => x)", "`{ x }` does not fit a value that is a number", None),
        ("-n ** 2", "`-` stands before `**` without parentheses", "Write `(-n) ** 2`, or `-(n ** 2)`."),
        ("n ?? half || 1", "`??` and `||` stand together", "Write `(a ?? b) || c`, or `a ?? (b || c)`."),
        ("n:.2f", "`n:.2f` is no expression", "Write `(n).toFixed(2)`."),
    ],
)
def test_what_is_refused_says_what_to_write(text: str, message: str, help: str | None) -> None:
    """The part that is wrong stands there as it was written, names of the language among them."""
    with pytest.raises(ExpressionError, match=re.escape(message)) as raised:
        evaluate(text, NAMES, ExpressionRules.STRICT)

    assert help is None or help == raised.value.help


@pytest.mark.parametrize("text", ["a?.nix?.x", "a.nix?.x.y", "a.output.none?.map(x => x)", "state.nix ?? 1", "a.nix"])
def test_what_may_be_missing_is_no_error(text: str) -> None:
    """A chain with `?.` ends, and the last part of a path is `undefined`, as in code."""
    assert evaluate(text, NAMES, ExpressionRules.STRICT) in (undefined, 1)


@pytest.mark.parametrize(
    "text",
    ["Math.max(...[1])", "({ [n]: 1 })", "[[1]].map(([x]) => x)", "n ** 2", "[1].map(String)", "'x'.repeat(2)"],
)
def test_answers_of_old_journals_compute_what_they_did(text: str) -> None:
    """What was an error then is one where the journal is replayed."""
    with pytest.raises(ExpressionError):
        evaluate(text, NAMES, ExpressionRules.EARLIER)


def test_names_hide_functions() -> None:
    """A result that is called like a function of the language is a value and nothing else."""
    assert 3 == evaluate("Math.max", {"Math": {"max": 3}})
    with pytest.raises(ExpressionError):
        evaluate("String(1)", {"String": 5})


def test_values_that_are_not_plain_have_no_members() -> None:
    """Nothing but objects, lists and texts can be looked into."""
    with pytest.raises(ExpressionError):
        evaluate("thing.name", {"thing": test_names_hide_functions})


@pytest.mark.parametrize("text", ["10//3", "n // 2", "n /* half */ / 2", "n > 1 // large"])
def test_a_comment_is_refused(text: str) -> None:
    """Who writes `10//3` means a division; an answer of 10 would be wrong without anybody noticing."""
    with pytest.raises(ExpressionError, match="holds a comment") as raised:
        evaluate(text, NAMES)

    assert raised.value.help == "Write `Math.floor(a / b)` to divide whole numbers."


def test_slashes_in_texts_are_no_comments() -> None:
    """An address is a text like any other."""
    assert evaluate("'http://a' + \"/*b*/\" + `//${'//'}`", {}) == "http://a/*b*/////"


@given(st.text(alphabet="a1n.+-*/%()[]{}<>=!&|?:,'\"` \\$xyz_", max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_has_a_value_or_is_refused(text: str) -> None:
    """No text brings anything but a value or an ExpressionError."""
    with contextlib.suppress(ExpressionError):
        evaluate(text, NAMES)


def test_the_values_stay_as_they_are() -> None:
    """Computing changes nothing."""
    names = {"list": [3, 1], "o": {"a": 1}}
    evaluate("list.slice(1).concat", names)
    evaluate("[list, o, list.join('')]", names)
    evaluate("list.sort((a, b) => a - b)", names)

    assert {"list": [3, 1], "o": {"a": 1}} == names
