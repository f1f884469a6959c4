"""Seeds to small programs of many kinds of values, which Koi and Node must carry out alike.

Runs for long with `python -m tests.js_programs --count 5000 --seed 1`; what differs is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from koi_lang.program import loader
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services

Change = Callable[[str, Random], str]
NODE = shutil.which("node")
NUMBERS = (
    "0 1 2 3 5 7 10 -1 -2 -7 0.5 -0.5 1.5 2.25 100 1000003 4294967296 9007199254740991 9007199254740992"
    " 4503599627370496 -9007199254740991 1e21 1e308 -0 NaN Infinity"
).split()
TEXTS = ['""', '"a"', '"b"', '"abc"', '"10"', '" 7 "', '"x1"', '"-3"']
OTHERS = ["true", "false", "null", "undefined"]
BINARY = "+ + + - - * * / % < > <= >= === !== == != & | ^ << >> >>>".split()
ASSIGNMENTS = "= = = += += -= *= /= %= ??= ||= &&= &= |= ^= <<= >>= >>>=".split()
INDEXES = ["0", "1", "2", "-1", "7", "0.5", '"1"', '"length"', "9007199254740992"]


class Writer:
    """Writes one program: statements over a few variables whose kinds change now and then.

    Args:
        random: decides everything.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.scopes: list[list[str]] = [[]]
        self.constant: set[str] = set()
        self.functions: list[tuple[str, int]] = []
        self.count = 0
        self.loops = 0
        self.is_numeric = random.random() < 0.4

    def program(self) -> str:
        """The body of a function that shows its variables at the end."""
        lines = [self.declare() for _ in range(self.random.randrange(3, 6))]
        for _ in range(self.random.randrange(3, 8)):
            lines += self.statement(2)
        lines += [f"show({name})" for name in self.scopes[0]]
        return "\n".join(lines)

    # ------------------------------------------------------------ statements

    def statement(self, depth: int) -> list[str]:
        """A statement, with others inside of it as long as `depth` allows."""
        simple = [
            self.assign,
            self.assign,
            self.update,
            self.show,
            self.declare,
            self.store,
            self.push,
            self.keep,
            self.take_apart,
        ]
        nested = [
            self.branch,
            self.count_up,
            self.count_down,
            self.walk,
            self.function,
            self.guard,
            self.turn,
            self.each,
        ]
        kinds: list[Any] = [*simple, *(nested if depth else [])]
        made = self.random.choice(kinds)
        result = made(depth) if made in nested else made()
        return [result] if isinstance(result, str) else list(result)

    def declare(self) -> str:
        word = self.random.choice(["let", "let", "let", "const", "var"])
        value = self.value(2)
        name = self.fresh()
        if word == "const":
            self.constant.add(name)
        if word == "let" and self.random.random() < 0.1:
            return f"let {name}"
        return f"{word} {name} = {value}"

    def assign(self) -> str:
        name = self.variable(written=True)
        return f"{name} {self.random.choice(ASSIGNMENTS)} {self.value(2)}" if name else self.show()

    def update(self) -> str:
        name = self.variable(written=True)
        form = self.random.choice(["{}++", "{}--", "++{}", "{} += 1", "{} -= 2", "show({}++)", "show(--{})"])
        return form.format(name) if name else self.show()

    def show(self) -> str:
        return f"show({self.value(2)})"

    def store(self) -> str:
        holder, index = self.variable(), self.random.choice([*INDEXES[:3], self.value(0)])
        is_safe = f"Array.isArray({holder}) && Number.isInteger({index}) && {index} >= 0 && {index} < 9"
        return f"if ({is_safe}) {holder}[{index}] = {self.plain()}"

    def push(self) -> str:
        method = self.random.choice(["push", "push", "unshift"])
        holder = self.variable()
        return f"if (Array.isArray({holder}) && {holder}.length < 20) {holder}.{method}({self.plain()})"

    def plain(self) -> str:
        """A value that no array is in, so that none comes to hold itself."""
        return self.random.choice(
            [*NUMBERS, *TEXTS, *OTHERS, f"(({self.value(1)}) + ({self.value(0)}))", f"!({self.value(1)})"]
        )

    def keep(self) -> Iterator[str]:
        """A Map or Set that is asked for what it holds."""
        name = self.fresh_counter()
        yield f"const {name} = new Map([[{self.value(0)}, {self.value(1)}]])"
        yield f"{name}.set({self.value(0)}, {self.plain()})"
        yield f"show({name}.get({self.value(0)}))"
        yield f"show([{name}.size, {name}.has({self.value(0)}), new Set([{self.value(0)}, 1]).add(1).size])"

    def take_apart(self) -> str:
        source = self.random.choice([f"[{self.value(1)}, {self.value(1)}]", f"{{ x: {self.value(1)}, length: 1 }}"])
        first, second = self.fresh(), self.fresh()
        lists = ["[{}, {}] = {}", "[{} = 1, ...{}] = {}", "{{ length: {}, x: {} = 2 }} = {}"]
        key = self.random.choice(['"x"', '"len" + "gth"', self.value(0)])
        objects = ["{{ x: {}, length: {} }} = {}", f"{{{{ [{key}]: {{}}, ...{{}} }}}} = {{}}"]
        objects.append(f"{{{{ x: {{}}, [{key}]: {{}} = 4 }}}} = {{}}")
        form = self.random.choice(lists if source[0] == "[" else objects)
        word = self.random.choice(["let", "const"])
        if word == "const":
            self.constant |= {first, second}
        return f"{word} {form.format(first, second, source)}"

    def branch(self, depth: int) -> Iterator[str]:
        yield f"if ({self.value(2)}) {{"
        yield from self.block(depth)
        if self.random.random() < 0.5:
            yield "} else {"
            yield from self.block(depth)
        yield "}"

    def count_up(self, depth: int) -> Iterator[str]:
        index, step = self.fresh_counter(), self.random.choice(["++", "++", " += 2"])
        other = self.variable(written=True)
        more = self.random.choice([f", {other}++", f", {other} = {self.value(0)}"]) if other else ""
        first = f"{index} = {self.random.choice('0012')}"
        yield f"for (let {first}; {index} < {self.bound()}; {index}{step}{more}) {{"
        yield from self.loop_body(index, depth)
        yield "}"

    def count_down(self, depth: int) -> Iterator[str]:
        index = self.fresh_counter()
        yield f"for (let {index} = {self.random.choice('345')}; {index} > -2; {index}--) {{"
        yield from self.loop_body(index, depth)
        yield "}"

    def turn(self, depth: int) -> Iterator[str]:
        """A loop in whose last round a variable changes its kind."""
        name, index = self.variable(written=True), self.fresh_counter()
        yield f"for (let {index} = 0; {index} < 3; {index}++) {{"
        if name:
            yield f"if ({index} === 2) {name} = {self.random.choice([*TEXTS, *OTHERS, *NUMBERS, '[1, 2]'])}"
        yield from self.loop_body(index, depth)
        yield "}"

    def walk(self, depth: int) -> Iterator[str]:
        name = self.fresh_counter()
        yield f"for (const {name} of [{self.value(1)}, {self.value(1)}, {self.value(0)}]) {{"
        self.constant.add(name)
        yield from self.loop_body(name, depth)
        yield "}"

    def each(self, depth: int) -> Iterator[str]:
        method = self.random.choice(["map", "filter", "forEach", "some", "findIndex"])
        parameter = self.fresh_counter()
        body = self.inside([parameter], lambda: self.value(2))
        yield f"show([{self.value(1)}, {self.value(1)}, {self.value(0)}].{method}({parameter} => {body}))"

    def function(self, depth: int) -> Iterator[str]:
        name = f"f{self.count}"
        self.count += 1
        parameters = [self.fresh_counter() for _ in range(self.random.randrange(3))]
        shape = self.random.choice(["function {0}({1}) {{", "const {0} = ({1}) => {{"])
        default = f" = {self.value(0)}" if parameters and self.random.random() < 0.3 else ""
        yield shape.format(name, ", ".join(parameters) + default)
        yield from self.inside(parameters, lambda: [*self.block(depth), f"return {self.value(2)}"])
        yield "}"
        if not self.loops:
            self.functions.append((name, len(parameters)))
        yield f"show({name}({self.arguments(len(parameters))}))"

    def guard(self, depth: int) -> Iterator[str]:
        error = self.fresh_counter()
        yield "try {"
        yield from self.block(depth)
        if self.random.random() < 0.7:
            yield f"throw {self.value(1)}"
        if self.random.random() < 0.3:
            yield f"}} catch ({{ name: {error} = {self.value(0)}, ...rest }}) {{"
        else:
            yield f"}} catch ({error}) {{"
        yield f"show({error} instanceof Error ? {error}.name : {error})"
        yield from self.inside([error], lambda: list(self.block(depth)))
        yield "}"

    def loop_body(self, name: str, depth: int) -> Iterator[str]:
        self.loops += 1
        self.constant.add(name)
        yield from self.inside([name], lambda: list(self.block(depth)))
        self.loops -= 1

    def block(self, depth: int) -> list[str]:
        """Some statements with variables of their own."""

        def write() -> list[str]:
            return [line for _ in range(self.random.randrange(1, 4)) for line in self.statement(depth - 1)]

        functions = list(self.functions)
        result: list[str] = self.inside([], write)
        self.functions = functions
        return result

    def inside(self, names: list[str], write: Any) -> Any:
        self.scopes.append(list(names))
        result = write()
        self.scopes.pop()
        return result

    # ------------------------------------------------------------ expressions

    def value(self, depth: int) -> str:
        """An expression of any kind."""
        if not depth or self.random.random() < 0.25:
            return self.leaf()
        forms = [
            self.binary, self.binary, self.binary, self.prefix, self.choice, self.template, self.array, self.index,
            self.index, self.method, self.call, self.logic, self.math,
        ]  # fmt: skip
        if self.is_numeric:
            forms += [self.binary] * 25 + [self.math] * 3
        return str(self.random.choice(forms)(depth - 1))

    def leaf(self) -> str:
        name = self.variable()
        if name and self.random.random() < 0.55:
            return name
        if self.is_numeric and self.random.random() < 0.97:
            return self.random.choice(NUMBERS)
        return self.random.choice([*NUMBERS[:10], self.random.choice(NUMBERS), *TEXTS[:4], *OTHERS])

    def binary(self, depth: int) -> str:
        operator = self.random.choice(BINARY[:8] if self.is_numeric else BINARY)
        left, right = self.value(depth), self.value(depth)
        return (
            f"(({left}) {operator} ({right}))" if self.is_numeric or self.random.random() < 0.95 else f"(({left}) ** 2)"
        )

    def logic(self, depth: int) -> str:
        return f"(({self.value(depth)}) {self.random.choice(['&&', '||', '??'])} ({self.value(depth)}))"

    def prefix(self, depth: int) -> str:
        return f"{self.random.choice(['-', '+', '!', '~', 'typeof ', 'void '])}({self.value(depth)})"

    def choice(self, depth: int) -> str:
        return f"(({self.value(depth)}) ? ({self.value(depth)}) : ({self.value(depth)}))"

    def template(self, depth: int) -> str:
        return f"`{self.random.choice(['', 'a', '<'])}${{{self.value(depth)}}}b${{{self.value(depth)}}}`"

    def array(self, depth: int) -> str:
        return f"[{', '.join(self.value(depth) for _ in range(self.random.randrange(4)))}]"

    def index(self, depth: int) -> str:
        holder = self.random.choice([self.variable() or "[1, 2]", f"({self.value(depth)})"])
        name = self.variable() or "0"
        return f"{holder}?.[{self.random.choice([*INDEXES, name, name, name])}]"

    def method(self, depth: int) -> str:
        return self.random.choice(
            [
                f"String({self.value(depth)})",
                f"String({self.value(depth)}).slice({self.value(0)})",
                f"String({self.value(depth)}).length",
                f"[{self.value(depth)}, {self.value(depth)}].join()",
                f"[{self.value(depth)}, 2, 3].indexOf({self.value(0)})",
                f"[{self.value(depth)}, 2, 3].length",
                f"JSON.stringify({self.value(depth)})",
                f"String({self.value(depth)}).charCodeAt({self.random.choice('012')})",
                f"[{self.value(depth)}, {self.value(0)}].pop()",
            ]
        )

    def math(self, depth: int) -> str:
        one = ["floor", "ceil", "abs", "round", "trunc", "sqrt", "sign"]
        if self.random.random() < 0.3:
            return f"Math.{self.random.choice(['max', 'min'])}({self.value(depth)}, {self.value(depth)})"
        inner = self.random.choice([self.value(depth), f"({self.value(0)}) / ({self.random.choice('1237')})"])
        return f"Math.{self.random.choice(one)}({inner})"

    def call(self, depth: int) -> str:
        if not self.functions or self.loops:
            return self.leaf()
        name, count = self.random.choice(self.functions)
        return f"{name}({self.arguments(count)})"

    def arguments(self, count: int) -> str:
        given = max(0, count + self.random.choice([0, 0, 0, -1, 1]))
        return ", ".join(self.value(1) for _ in range(given))

    # ------------------------------------------------------------ names

    def variable(self, *, written: bool = False) -> str:
        names = [name for scope in self.scopes for name in scope if not written or name not in self.constant]
        return self.random.choice(names) if names else ""

    def bound(self) -> str:
        return self.random.choice(["3", "4", "2.5", "[1, 2, 3].length", '"3"'])

    def fresh(self) -> str:
        name = self.fresh_counter()
        self.scopes[-1].append(name)
        return name

    def fresh_counter(self) -> str:
        """A name that is not yet in scope."""
        self.count += 1
        return f"v{self.count}"


def program(seed: int) -> str:
    """The body of one program."""
    return Writer(Random(seed)).program()


SHOW = """const text = value => Object.is(value, -0) ? "-0" : String(value)
    const isObject = value => typeof value === "object" || typeof value === "function"
    const show = value => lines.push(isObject(value) ? JSON.stringify(value) ?? "none" : text(value))"""
KOI = """role Worker {{ can execute }}
agent Main : Worker {{
{handlers}
}}
"""
HANDLER = """  on p{seed}(args) {{
    const lines = []
    {show}
    try {{
{body}
    }} catch (failure) {{ lines.push("failed: " + (failure instanceof Error ? failure.name : String(failure))) }}
    return lines
  }}
"""


def run_koi(seeds: list[int], folder: Path, change: Change = lambda body, _: body) -> dict[int, list[str]]:
    """What the programs show in Koi, by seed; they are changed before, in a way that must make no difference."""
    bodies = {seed: change(program(seed), Random(seed)) for seed in seeds}
    handlers = "".join(HANDLER.format(seed=seed, show=SHOW, body=bodies[seed]) for seed in seeds)
    path = folder / f"programs{seeds[0]}.koi"
    path.write_text(KOI.format(handlers=handlers), "utf-8")
    module = loader.load(str(path))
    return asyncio.run(_run_all(module, seeds))


async def _run_all(module: Any, seeds: list[int]) -> dict[int, list[str]]:
    async with Run(Services(_no_model)) as run:
        return {seed: list(await run.call(module.Main, f"p{seed}", {})) for seed in seeds}


def _no_model(_: Any) -> Any:
    raise AssertionError("code handlers ask no model")


def run_node(seeds: list[int], folder: Path) -> dict[int, list[str]]:
    """What the programs show in Node, by seed."""
    bodies = "".join(HANDLER.format(seed=seed, show=SHOW, body=program(seed)) for seed in seeds).replace(
        "  on p", "async function p"
    )
    calls = ", ".join(f"{seed}: await p{seed}({{}})" for seed in seeds)
    path = folder / f"programs{seeds[0]}.js"
    path.write_text(f"'use strict'\n{bodies}\n;(async () => console.log(JSON.stringify({{ {calls} }})))()\n", "utf-8")
    assert NODE is not None
    output = subprocess.run([NODE, str(path)], check=True, capture_output=True, text=True).stdout
    return {int(seed): lines for seed, lines in json.loads(output).items()}


def differences(seeds: list[int], change: Change = lambda body, _: body) -> list[tuple[int, list[str], list[str]]]:
    """The programs that Koi and Node carry out differently: the seed and what each shows."""
    with tempfile.TemporaryDirectory() as folder:
        koi, node = run_koi(seeds, Path(folder), change), run_node(seeds, Path(folder))
    return [(seed, koi[seed], node[seed]) for seed in seeds if koi[seed] != node[seed]]


def main(arguments: list[str] | None = None) -> int:
    """Compare many programs; 1 when one is carried out differently."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    wrong = 0
    for start in range(options.seed, options.seed + options.count, 50):
        for seed, koi, node in differences(list(range(start, min(start + 50, options.seed + options.count)))):
            wrong += 1
            first = next((pair for pair in zip(koi, node, strict=False) if pair[0] != pair[1]), (len(koi), len(node)))
            print(f"program {seed}: koi {first[0]}, node {first[1]}")
    print(f"{options.count} programs from seed {options.seed}: {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
