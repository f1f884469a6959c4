"""Words that begin declarations are names everywhere else."""

from __future__ import annotations

import pytest

from koi_lang.compiler.build import CONTEXTUAL, RESERVED
from koi_lang.compiler.parser import parse
from koi_lang.source import Source
from tests.support import must_not_compile

# Places of code in which a name, here `§`, stands.
CODE = (
    "const { §, content } = message",
    "const { other: §, ...rest } = message",
    "const [§, ...rest] = list",
    "let § = 1\n§ = 2\n§ += §\n§++\n--§\n§ ??= 3",
    "let § = 1\n§ ^= 2\n§ >>>= 1\n§ &= 1\n§ |= 1\n§ /= 2\n§ %= 2\n§ ** 2\n§ === 1 && f()\n§ !== 1 || f()",
    "let x = § as §\n§ = x! satisfies §\n§!.a = f<§>(§)",
    "let §\nlet other, §\nlet last = §\ncall(last)",
    "const before = {}\n§ = before",
    'const text = "a"\n§.field = text',
    "const made = f()\n§(made)\n§[0] = 1\n§?.[0]()",
    "const f = § => §.name, g = async § => ({ §, [§]: § }), h = (§) => §",
    "const f = (a, § = 1, ...others) => { § = a }",
    "const f = (§: string, b?: number) => { §: b }",
    "function §(§) { return §\n }\n§(1)",
    "const o = { §, § : §, a: §, ...§ }",
    "const o = { §() { return § }, async § (a) { } }",
    "return §\n",
    "return § ? § : §",
    "throw §",
    "for (const § of list) { call(§) }",
    "for (const one of §) call(one)",
    "for (const § in §.all) { § }",
    "for (let § = 0; § < 3; §++) { continue }",
    "if (§) §()\nelse §.stop()",
    "while (§ in list && § instanceof Object) { break }",
    "try { §() } catch (§) { throw § } finally { § = null }",
    "const y = await §, z = await §(1), x = await §.all()",
    "const a = § + §\nconst b = -§ * (!§) ** 2, c = typeof §, d = `${§}`",
    "const a = §\n§.call()\nconst b = §\nawait other()",
    "const a = new §(1), b = new §.Kind()",
    "call(§, ...§, § => §)\ncall(§)",
    "playbook § + Other\n",
    'playbook Rules + §("a", §.name) + Other(§)',
    'await send §.event("x").any()({ § })\n§ = 1',
    "§ = §\n",
    "const a: § = 1, b: §[] = 2, c: { §?: § } = {}",
)
DECLARED = (
    "agent § : § { }",
    "role § { can §, can §:read }",
    "team § { §: §, § = § }",
    "team § override { §: § } { §: § }",
    'prompt § = § + "a" + §\nrole R { can x }',
    'prompt §(§: string) = "{{§}}"',
    'export prompt § = compose (§) { fragments: { §: § } template: "a" }',
    'import § from "./a.py"\nimport § : § from "./b.md"',
    'mcp § = { §: 1, § }\nmcp other = { command: "x" }',
    "run §.§({ § })\nrun §.§()",
    "skill § { const § = 1\nlet other = §\nagent A : R { }\nteam T { a: A } }",
    "skill § { export function §(§) { return § } function other() { } }",
    "skill § { const a = §\nconst b = {}\nagent A : § { } }",
    "agent A : R { uses skill §, §\nuses team §\nuses mcp §, §(§, a_*) state { a = 1 } }",
    "agent A : R { state { §: string = §, § = {}\n §\n other = {} } on start() { } }",
    "agent A : R { llm § = { §: 1 } on §(§) { return § } private on other({ § }) { } }",
    'agent A : R { resilience "a" { § = 1, §: 2 } on a() { } }',
    "agent A : R { expose mcp { prompt § = §, resource \"a\" = § } on start() { } }",
    "role § { can x }\ntype § = §\ntype Other = { §: §[] } | §\nagent A : § { on §(a: §): § { return a } }",
    'test "a" { const § = 1\nexpect § == 1\nexpect § fails "a" }',
)  # fmt: skip


def in_handler(code: str) -> str:
    """A program whose handler holds some code."""
    return f"agent A : R {{\n  on start(message) {{\n{code}\n  }}\n  state {{ last = 1 }}\n}}\nrun A.start()"


def shape(template: str, name: str) -> str:
    """What a program with a name means, with `§` for the name; no problem may be found."""
    program, problems = parse(Source("words.koi", template.replace("§", name)))

    assert [] == problems
    return repr(program).replace(name, "§")


@pytest.mark.parametrize("template", [*map(in_handler, CODE), *DECLARED])
def test_a_word_reads_like_any_other_name(template: str) -> None:
    """A program with a word of declarations as a name has the tree of the same program with another name."""
    for word in sorted(CONTEXTUAL):
        expected = shape(template, "q" * len(word))

        assert expected.replace("§", word) == shape(template, word).replace("§", word)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_what_javascript_reserves_is_no_name(word: str) -> None:
    """A word that JavaScript cannot use as a name names nothing here, and there is a message for it."""
    for code in (f"const {word} = 1", f"const {{ {word} }} = message", f"message = {{ {word} }}"):
        assert must_not_compile(f"role R {{ can execute }}\n{in_handler(code)}")
