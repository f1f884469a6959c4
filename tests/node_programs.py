"""Random functions that mean the same in JavaScript and Koi, run by Node and by Koi, and what both say.

Runs for long with `python -m tests.node_programs --seed 1 --count 20000`; each function that differs is printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.limits import LIMIT_S
from tests.running import run_file

# How many functions stand in one program.
IN_ONE = 150
# How many steps a function takes at most.
FUEL = 60
HEAD = """
    const results = {}
    let log = [], fuel = 0
    const step = value => {
      fuel -= 1
      if (fuel < 0) { throw new Error("no fuel") }
      log.push(value)
      return value
    }
    const cut = value => typeof value === "string" ? value.slice(0, 9) : value
    const attempt = async (name, f) => {
      log = []
      fuel = %d
      try { log.push("=", await f()) } catch (error) { log.push("!", String(error?.message ?? error)) }
      results[name] = log
    }
"""
OBJECT = """{
  a: %s,
  get g() { return step(this.a) },
  set g(value) { this.a = cut(value); step("set") },
  m(value) { this.a = value; return this },
  k: function () { const inner = () => this.a; return inner() },
  n: { a: %s, up() { this.a = cut([this.a, 1].join()); return this.a } },
  only: { get one() { return typeof this.one2 } },
}"""
OF_OBJECT = (
    "o.a o.g o.m(x).a o.m(y).g o.k() o.n.up() ({...o}).g ({...o,a:y}).k() Object.assign({a:5},o).k() o['m'](x).k() "
    "o?.k?.() o.k.call({a:x}) Object.keys(o).length o.only.one JSON.stringify(o.n) o.zzz?.(step(1)) o.n?.['up']() "
    "Object.values(o.n)[0] o.m.bind({a:y})(x).a"
).split()
GENERATORS = """
      function* each(n) {
        try {
          for (let i = 0; i < n; i++) { const got = yield i; if (got !== undefined) { step(got) } }
          return step("end")
        } catch (error) { yield step("caught"); return "c" } finally { step("closed") }
      }
      const pair = { n: 2, *both() { yield this.n; const r = yield* each(2); yield r; yield* ["p"] } }
      async function* late(n) {
        try {
          for (let i = 0; i < n; i++) { step(await i); const got = yield Promise.resolve(i); step(got) }
          return "z"
        } finally { await null; step("shut") }
      }
      async function* outer(n) { const r = yield* late(n); step(r); yield* [x, y] }
      const g = each(3)
"""
OF_GENERATORS = (
    "g.next().value;g.next(x).done;g.next(1).value;g.return(x).value;[...each(2)].join();Math.max(...each(2));"
    "[...pair.both()].length;Array.from(each(2)).length;new Set(each(3)).size;JSON.stringify(g.next(y));"
    "(([p,q])=>q)(each(3));typeof g.next;Object.fromEntries([[x,[...each(1)][0]]])[x];g.throw(x).value"
).split(";")
OF_ASYNC = (
    "(await late(2).next()).value",
    "JSON.stringify(await late(1).return(x))",
    "(await outer(1).next(y)).done",
)
SOURCES = ("each(3)", "pair.both()", "g", "[0,...each(2)]")
ASYNC_SOURCES = ("late(3)", "outer(2)", "each(2)", "[x,Promise.resolve(y)]", "pair.both()")
PLACES = ("o.g", "o.a", "o.n.a", "o['g']")
VALUES = ["0", "1", "2", '"a"', '"1"', "null", "true", "NaN", "undefined"]


class Writer:
    """Writes the statements of one function; every name it uses is declared."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = 0
        self.variables = ["x", "y"]
        self.labels: list[tuple[str, bool]] = []
        self.loops = self.breakable = 0
        self.is_async = False

    def fresh(self, base: str) -> str:
        """A name that no other has."""
        self.names += 1
        return f"{base}{self.names}"

    def value(self) -> str:
        """An expression that changes nothing but the log."""
        r = self.random.random()
        name = self.random.choice(self.variables)
        if r < 0.35:
            return name
        if r < 0.45:
            return self.random.choice(OF_OBJECT)
        if r < 0.52:
            waiting = self.is_async and self.random.random() < 0.3
            return f"({self.random.choice(OF_ASYNC)})" if waiting else self.random.choice(OF_GENERATORS)
        if r < 0.6:
            return self.random.choice(VALUES)
        if r < 0.7:
            return f"step({name})"
        if r < 0.8 and self.is_async:
            return f"(await {name})"
        return f"({name} {self.random.choice(['+', '===', '!==', '<', '&&', '||', '??'])} {self.value()})"

    def block(self, depth: int) -> str:
        """Statements in braces."""
        kept = list(self.variables)
        count = self.random.randrange(1, 4)
        lines = [self.statement(depth - 1) for _ in range(count)]
        self.variables = kept
        return "{ " + "\n".join(lines) + " }"

    def statement(self, depth: int) -> str:
        """A statement with a nesting of at most `depth`."""
        simple = [self.assign, self.declare, self.note, self.note, self.jump, self.jump]
        nested = [self.branch, self.switch, self.switch, self.do_loop, self.for_loop, self.each, self.while_loop]
        nested += [self.attempt, self.label, self.label]
        kind = self.random.choice(simple if depth <= 0 or self.random.random() < 0.35 else nested)
        return kind(depth)

    def note(self, depth: int) -> str:
        """Something for the log."""
        return f"step({self.value()})"

    def assign(self, depth: int) -> str:
        """A new value of a variable."""
        if self.random.random() < 0.2:
            return f"{self.random.choice(PLACES)} = cut({self.value()})"
        return f"{self.random.choice(self.variables)} {self.random.choice(['=', '??=', '='])} cut({self.value()})"

    def declare(self, depth: int) -> str:
        """A variable of the block."""
        value, name = self.value(), self.fresh("v")
        self.variables.append(name)
        return f"let {name} = {value}"

    def jump(self, depth: int) -> str:
        """A jump that is allowed here, seldom without a condition."""
        jumps = ["return step(x)", "return y", 'throw new Error("t")', "throw step(1)"]
        jumps += ["break"] * 3 * bool(self.breakable) + ["continue"] * 3 * bool(self.loops)
        for label, is_loop in self.labels:
            jumps += [f"break {label}"] * 3 + [f"continue {label}"] * 3 * is_loop
        jump = self.random.choice(jumps)
        if self.random.random() < 0.2:
            return jump
        return f"if ({self.value()}) {{ {jump} }}"

    def branch(self, depth: int) -> str:
        """`if`, perhaps with an `else`."""
        other = f" else {self.block(depth)}" if self.random.random() < 0.5 else ""
        return f"if ({self.value()}) {self.block(depth)}{other}"

    def _body(self, depth: int) -> str:
        saved = self.loops, self.breakable
        self.loops, self.breakable = 1, 1
        body = self.block(depth)
        self.loops, self.breakable = saved
        return "{ step('l'); " + body[2:]

    def do_loop(self, depth: int) -> str:
        """`do … while`."""
        return f"do {self._body(depth)} while ({self.value()})"

    def while_loop(self, depth: int) -> str:
        """`while`."""
        return f"while ({self.value()}) {self._body(depth)}"

    def for_loop(self, depth: int) -> str:
        """`for (;;)`, whose counter closures may keep."""
        name = self.fresh("i")
        self.variables.append(name)
        body = self._body(depth)
        self.variables.remove(name)
        return f"for (let {name} = 0; {name} < {self.random.randrange(1, 4)}; {name}++) {body}"

    def each(self, depth: int) -> str:
        """`for … of` over a list."""
        name = self.fresh("e")
        over = self.random.random()
        if over < 0.5:
            self.variables.append(name)
            body = self._body(depth)
            self.variables.remove(name)
            waits = self.is_async and over < 0.3
            source = self.random.choice(ASYNC_SOURCES if waits else SOURCES)
            return f"for {'await ' * waits}(let {name} of {source}) {body}"
        values = ", ".join(self.random.choice(VALUES) for _ in range(self.random.randrange(4)))
        self.variables.append(name)
        body = self._body(depth)
        self.variables.remove(name)
        return f"for (let {name} of [{values}]) {body}"

    def switch(self, depth: int) -> str:
        """`switch` with `default` anywhere or nowhere; most clauses end."""
        saved, self.breakable = self.breakable, 1
        kept, clauses = list(self.variables), list[str]()
        count = self.random.randrange(1, 5)
        default = self.random.randrange(-2, count)
        for index in range(count):
            head = "default" if index == default else f"case {self.value()}"
            lines = [self.statement(depth - 1) for _ in range(self.random.randrange(3))]
            lines += [self.random.choice(["break", "break", "return x"])] * (self.random.random() < 0.6)
            clauses.append(f"{head}: " + "\n".join(self._in_block(lines)))
            self.variables = list(kept)
        self.breakable = saved
        return f"switch ({self.value()}) {{ " + "\n".join(clauses) + " }"

    def _in_block(self, lines: Sequence[str]) -> Sequence[str]:
        needs_block = any(line.startswith("let ") for line in lines) or self.random.random() < 0.3
        return ["{", *lines, "}"] if needs_block else lines

    def attempt(self, depth: int) -> str:
        """`try` with `catch`, `finally` or both."""
        body, form = self.block(depth), self.random.randrange(3)
        handler = f" catch (error) {self.block(depth)}" if form != 1 else ""
        return f"try {body}{handler}" + (f" finally {self.block(depth)}" if form else "")

    def label(self, depth: int) -> str:
        """A labelled loop, `switch` or block."""
        name = self.fresh("at")
        kinds = [self.do_loop, self.for_loop, self.each, self.while_loop, self.switch, self.branch]
        kind = self.random.choice(kinds)
        self.labels.append((name, kind not in (self.switch, self.branch)))
        body = kind(depth)
        self.labels.pop()
        return f"{name}: {body}"


def functions(random: Random, count: int) -> list[str]:
    """The text of functions without names."""
    found = []
    for _ in range(count):
        writer = Writer(random)
        writer.is_async = random.random() < 0.3
        arguments = ", ".join(random.choice(VALUES) for _ in range(2))
        body = writer.block(4)
        mark = "async " if writer.is_async else ""
        made = OBJECT % (random.choice(VALUES), random.choice(VALUES))
        found.append(f"{mark}() => {{ let [x, y] = [{arguments}]\n const o = {made}\n{GENERATORS} {body} }}")
    return found


def differences(texts: Sequence[str], folder: Path) -> list[tuple[str, object, object]]:
    """The functions for which Node and Koi say different things, with what they say."""
    calls = "\n".join(f'await attempt("f{index}", {text})' for index, text in enumerate(texts))
    body = f"{HEAD % FUEL}\n{calls}\nconsole.log(JSON.stringify(results))"
    koi, script = folder / "flow.koi", folder / "flow.mjs"
    koi.write_text(
        f"role Worker {{ can execute }}\nagent Demo : Worker {{\n on start() {{{body}\n}}\n}}\nrun Demo.start()\n"
    )
    script.write_text(body)
    node = subprocess.run(["node", str(script)], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    outcome = run_file(koi, folder)
    assert outcome.error == "", outcome.error
    theirs, ours = json.loads(node.stdout), json.loads(outcome.printed[-1])
    names = [f"f{index}" for index in range(len(texts))]
    pairs = zip(names, texts, strict=True)
    return [(text, theirs[name], ours[name]) for name, text in pairs if theirs[name] != ours[name]]


def main(arguments: list[str] | None = None) -> int:
    """Compare functions; 1 when one in a thousand or more differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3000)
    options = parser.parse_args(arguments)
    random, wrong, done = Random(options.seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while done < options.count:
            for text, theirs, ours in differences(functions(random, IN_ONE), Path(folder)):
                wrong += 1
                print(text, "\nNode:", theirs, "\nKoi: ", ours, "\n", file=sys.stderr)
            done += IN_ONE
    print(f"{done} functions, seed {options.seed}: {wrong} differ")
    return int(wrong * 1000 >= done)


if __name__ == "__main__":
    sys.exit(main())
