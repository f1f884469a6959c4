"""Options of one call: a result type that is a value, and a model."""

from __future__ import annotations

import pytest

from tests.playbook.playing import Player, act, done

PROGRAM = """
role Worker {{ can execute, can delegate }}
type Line = {{ text: string }}
agent Poet : Worker {{
  on write(args): Line {{ playbook "Write about {{{{args.about}}}}." }}
  on count(args) {{ return args.n }}
  on both(args) {{ return [await this.count({{ n: "many" }}), await this.handle("count", {{ n: 2 }})] }}
}}
agent Main : Worker {{ on go(args) {{
  const properties = {{ title: {{ type: "string" }}, n: {{ type: "integer" }} }}
  const schema = {{ type: "object", properties, required: ["title"] }}
  {body}
}} }}
"""
SAYING = 'return await Poet.handle("write", { about: "tea" }, { returns: schema })'


def test_a_result_has_the_type_of_its_call(play: Player) -> None:
    """The schema of the call counts in the place of the declared type, and the model is told of it."""
    played = play(PROGRAM.format(body=SAYING), [done(title="Tea", n=2)])

    assert {"title": "Tea", "n": 2} == played.result
    assert '"title"' in str(played.requests[0])
    assert '"text": "<text>"' not in str(played.requests[0])


def test_another_result_is_refused(play: Player) -> None:
    """The model is told once what is wrong with its result."""
    played = play(PROGRAM.format(body=SAYING), [act("return", data={"n": "two"}), act("return", data={"title": "Tea"})])

    assert {"title": "Tea"} == played.result
    assert "title" in played.requests[1].messages[-1].text


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ('{ type: "object", patternProperties: { "^x": { type: "integer" } } }', {"xa": "s"}),
        ('{ type: "object", patternProperties: { "^x": {} }, additionalProperties: false }', {"y": 1}),
        ('{ type: "string", format: "date" }', "xx"),
    ],
)
def test_patterns_of_names_and_formats_count(schema: str, value: object, play: Player) -> None:
    """They were passed over."""
    body = f'return await Poet.handle("write", {{ about: "tea" }}, {{ returns: {schema} }})'
    played = play(PROGRAM.format(body=body), [act("return", data=value)] * 9)

    assert played.result is None
    assert getattr(played.error, "failure_code", "") in ("E0505", "E0506")


@pytest.mark.parametrize(
    "field",
    [
        'type: ["string", "null"]',
        'type: ["object", "null"]',
        'type: "null"',
        'anyOf: [{ type: "string" }, { type: "null" }]',
    ],
)
def test_a_field_that_is_needed_may_be_null(field: str, play: Player) -> None:
    """Null is a value of it, and not one that was left out."""
    schema = f'{{ type: "object", properties: {{ a: {{ {field} }} }}, required: ["a"] }}'
    body = f'return await Poet.handle("write", {{ about: "tea" }}, {{ returns: {schema} }})'

    assert {"a": None} == play(PROGRAM.format(body=body), [act("return", data={"a": None})] * 2).result


def test_code_is_held_to_it_too(play: Player) -> None:
    """What a code handler returns is checked; calls within have types of their own."""
    wrong = play(
        PROGRAM.format(body='return await Poet.handle("count", { n: "x" }, { returns: { type: "integer" } })'), []
    )
    caught = play(
        PROGRAM.format(
            body='try { return await Poet.handle("count", { n: "x" }, { returns: { type: "integer" } }) } '
            "catch (error) { return `caught: ${error.message}` }"
        ),
        [],
    )
    inner = play(PROGRAM.format(body='return await Poet.handle("both", {}, { returns: { type: "array" } })'), [])

    assert "`Poet.count` cannot give what it returns" in wrong.told
    assert str(caught.result).startswith("caught: `Poet.count` cannot give what it returns")
    assert ["many", 2] == inner.result


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ('{ returns: "text" }', "the type of a result is a JSON Schema, not 'text'"),
        ('{ returns: { type: "words" } }', "the type of the result of `Poet.count` is no JSON Schema: "),
        (
            '{ returns: { items: { format: "hostname" } } }',
            '`format: "hostname"` is not checked here; write a `pattern`',
        ),
        ("{ returns: { anyOf: [{ nullable: true }] } }", '`nullable` is not checked here; write `type: [..., "null"]`'),
        ('{ returns: { properties: { a: { pattern: "(?P<x>a)" } } } }', 'the pattern "(?P<x>a)" is not checked here: '),
        ('{ returns: { dependencies: { a: ["b"] } } }', "`dependencies` is not checked here"),
        ('{ returns: { $ref: "#/$defs/Nobody" } }', "the type of the result of `Poet.count` is no JSON Schema: "),
        ("{ model: 3 }", "the option `model` of `handle` is a text, not 3"),
        ("{ retuns: {} }", "`handle` has no option `retuns`"),
    ],
)
def test_options_that_make_no_sense_are_refused(play: Player, options: str, told: str) -> None:
    """Nothing is called."""
    body = f'const given = {options}; return await Poet.handle("count", {{ n: 1 }}, given)'

    assert told in play(PROGRAM.format(body=body), []).told


@pytest.mark.parametrize(("value", "fits"), [(19.99, True), (4.35, True), (0.07, True), (3, True), (0.005, False)])
def test_multiples_are_those_of_the_numbers_as_written(value: float, fits: bool, play: Player) -> None:
    """Prices are multiples of 0.01, though no binary fraction is."""
    body = 'return await Poet.handle("write", { about: "x" }, { returns: { type: "number", multipleOf: 0.01 } })'

    played = play(PROGRAM.format(body=body), [act("return", data=value), act("return", data=1)])

    assert (value if fits else 1) == played.result
