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


def test_code_is_held_to_it_too(play: Player) -> None:
    """What a code handler returns is checked; calls within have types of their own."""
    wrong = play(
        PROGRAM.format(body='return await Poet.handle("count", { n: "x" }, { returns: { type: "integer" } })'), []
    )
    inner = play(PROGRAM.format(body='return await Poet.handle("both", {}, { returns: { type: "array" } })'), [])

    assert "`Poet.count` cannot give what it returns" in wrong.told
    assert ["many", 2] == inner.result


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ('{ returns: "text" }', "the type of a result is a JSON Schema, not 'text'"),
        ('{ returns: { type: "words" } }', "the type of the result of `Poet.count` is no JSON Schema: "),
        ('{ returns: { $ref: "#/$defs/Nobody" } }', "the type of the result of `Poet.count` is no JSON Schema: "),
        ("{ model: 3 }", "the option `model` of `handle` is a text, not 3"),
        ("{ retuns: {} }", "`handle` has no option `retuns`"),
    ],
)
def test_options_that_make_no_sense_are_refused(play: Player, options: str, told: str) -> None:
    """Nothing is called."""
    body = f'const given = {options}; return await Poet.handle("count", {{ n: 1 }}, given)'

    assert told in play(PROGRAM.format(body=body), []).told
