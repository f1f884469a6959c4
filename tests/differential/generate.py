"""Programs out of the table of productions, the same ones for the same seed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from random import Random

from koi_lang.compiler.build import CONTEXTUAL
from tests.differential.forms import FORMS, KINDS, LEAVES

# Words of declarations, which are also names, here and in strict JavaScript.
WORDS = sorted(CONTEXTUAL - {"private"})
LABELS = ("label", "spot")
# What a program about numbers mostly has instead of other kinds.
NUMERIC = {"any": "number", "number": "sum"}
BLOCKS = ("block", "loop", "case")
# Kinds of names whose values are not printed at the end.
SILENT = ("fn", "tf", "af", "gen", "late", "steps", "label", "spot")
HOLE = re.compile(r"@(?:(new|let|in|var|put|body):)?(\w+)")
DEEPEST = 3


class NoNameError(Exception):
    """A form asks for a name of a kind that none is visible of."""


@dataclass(frozen=True, slots=True)
class Form:
    """A line of the table: its text between the holes, and the holes as (role, kind)."""

    pieces: tuple[str, ...]
    holes: tuple[tuple[str, str], ...]

    @property
    def has_blocks(self) -> bool:
        """Whether statements stand in it."""
        return any(role == "body" or kind in BLOCKS for role, kind in self.holes)

    @property
    def is_function(self) -> bool:
        """Whether what stands in it cannot wait."""
        text = "".join(self.pieces)
        return ("=>" in text or text.startswith("function")) and "async" not in text

    @property
    def waits(self) -> bool:
        """Whether it has to stand where code can wait."""
        return "await " in "".join(self.pieces)


@dataclass(slots=True)
class Scope:
    """The names between two braces, with their kinds and whether they can be assigned."""

    names: dict[str, tuple[str, bool]] = field(default_factory=dict)


@cache
def table(kind: str) -> tuple[list[Form], list[int]]:
    """The forms of a kind with how often each is chosen."""
    forms, weights = [], []
    for line in filter(None, re.sub(r"\n {4}", " ", FORMS[kind]).splitlines()):
        weight, _, text = line.rpartition("| ") if re.match(r"\d+\| ", line) else ("1", "", line)
        parts = HOLE.split(text)
        roles = [role or "" for role in parts[1::3]]
        forms.append(Form(tuple(parts[::3]), tuple(zip(roles, parts[2::3], strict=True))))
        weights.append(int(weight))
    return forms, weights


def is_inside_arrow(written: str) -> bool:
    """Whether a text ends in what an arrow function gives."""
    _, arrow, result = written.rpartition("=>")
    depths = list(accumulate((c in "([{") - (c in ")]}") for c in result))
    return bool(arrow) and all(depth > 0 or (depth == 0 and c != ",") for depth, c in zip(depths, result, strict=True))


class Generator:
    """One program: the scopes around what is being written, and how deep that is."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.scopes = [Scope()]
        self.count = 0
        self.jumps: list[str] = []
        self.results = ["any"]
        self.functions = 0
        self.is_numeric = random.random() < 0.4
        self.words = random.sample(WORDS, len(WORDS))

    def program(self) -> str:
        """Some statements, and what the variables hold at the end."""
        lines = [self.statement(DEEPEST) for _ in range(self.random.randint(2, 9))]
        kept = [name for name, (kind, _) in self.scopes[0].names.items() if kind not in SILENT]
        return "\n".join([*lines, *(f"console.log({name});" for name in kept)])

    def statement(self, depth: int) -> str:
        """A statement; in loops sometimes one that leaves them."""
        chance = self.random.random()
        if chance < 0.03:
            return self.fill("return", depth)
        if chance < 0.15 and self.jumps:
            return self.fill("jump", depth) if self.jumps[-1] == "loop" else f"if ({self.fill('flag', 1)}) break;"
        return self.fill("statement", depth)

    def fill(self, kind: str, depth: int) -> str:
        """A form of a kind; a leaf where it may not go deeper, or where nothing else is possible."""
        if self.is_numeric and kind in NUMERIC and self.random.random() < 0.8:
            kind = NUMERIC[kind] if depth > 0 else "number"
        if kind in LEAVES and (depth <= 0 or kind not in FORMS):
            return self.leaf(kind)
        for _ in range(20):
            form = self.random.choices(*table(kind))[0]
            if (form.waits and self.functions) or (form.has_blocks and depth <= 0):
                continue
            try:
                return self.write(form, depth)
            except NoNameError:
                continue
        return self.leaf(kind) if kind in LEAVES else "console.log(0);"

    def leaf(self, kind: str) -> str:
        """A short text of a kind: a variable where there is one, or a literal."""
        known = self.visible(kind)
        if known and self.random.random() < 0.5:
            return self.random.choice(known)
        return self.random.choice(LEAVES[kind].split(";"))

    def write(self, form: Form, depth: int) -> str:
        """A form with its holes filled; what it declares is visible afterwards. Raises NoNameError."""
        inner, declared, names = Scope(), Scope(), list[str]()
        generic = "number" if self.is_numeric else self.random.choice(KINDS)
        written = [form.pieces[0]]
        self.functions += form.is_function
        try:
            for (role, name), piece in zip(form.holes, form.pieces[1:], strict=True):
                kind, before = generic if name == "T" else name, "".join(form.pieces[: len(written) // 2 + 1])
                sees_inner = role == "body" or kind in BLOCKS or is_inside_arrow(before)
                sees_inner = sees_inner and "finally" not in before
                self.scopes.append(inner if sees_inner else Scope())
                try:
                    written += [self.hole(role, kind, depth, (inner, declared, names)), piece]
                finally:
                    self.scopes.pop()
        finally:
            self.functions -= form.is_function
        self.scopes[-1].names |= declared.names
        return "".join(written)

    def hole(self, role: str, kind: str, depth: int, binders: tuple[Scope, Scope, list[str]]) -> str:
        """What stands in a hole."""
        inner, declared, names = binders
        if role in ("new", "let", "in"):
            self.count += 1
            name = self.words.pop() if self.words and self.random.random() < 0.05 else f"v{self.count}"
            (inner if role == "in" else declared).names[name] = (kind, role == "let" and kind != "count")
            names.append(name)
            return name
        if role in ("var", "put"):
            return self.pick(kind, must_assign=role == "put")
        if role == "body":
            return self.body(kind, depth)
        if kind.isdigit():
            return names[int(kind) - 1]
        if kind in BLOCKS:
            return self.block(depth, kind)
        return self.fill(self.results[-1] if kind == "result" else kind, depth - 1)

    def pick(self, kind: str, must_assign: bool) -> str:
        """A visible name of a kind. Raises NoNameError."""
        known = self.visible(kind, must_assign)
        if not known:
            raise NoNameError
        return self.random.choice(known)

    def visible(self, kind: str, must_assign: bool = False) -> list[str]:
        """The names of a kind, of which a `number` may also be a counter."""
        kinds = {kind, "count"} if kind == "number" and not must_assign else {kind}
        names = [pair for scope in self.scopes for pair in scope.names.items()]
        return [name for name, (own, assignable) in names if own in kinds and (assignable or not must_assign)]

    def block(self, depth: int, kind: str) -> str:
        """Statements between braces; in a loop or a `case`, they may jump."""
        jumps = self.jumps
        if kind == "loop" or (kind == "case" and not jumps):
            self.jumps = [*jumps, kind]
        lines = self.lines(depth, 1, 3)
        self.jumps = jumps
        return braces(lines)

    def body(self, kind: str, depth: int) -> str:
        """The body of a function, which ends with a value; labels around it are out of its reach."""
        outer, self.jumps, scopes = self.jumps, [], self.scopes
        self.scopes = [Scope({n: own for n, own in each.names.items() if own[0] not in LABELS}) for each in scopes]
        self.results.append(kind)
        lines = [*self.lines(depth, 0, 2), f"return {self.fill(kind, depth - 1)};"]
        self.results.pop()
        self.jumps, self.scopes = outer, scopes
        return braces(lines)

    def lines(self, depth: int, least: int, most: int) -> list[str]:
        """Some statements with names of their own."""
        self.scopes.append(Scope())
        lines = [self.statement(depth - 1) for _ in range(self.random.randint(least, most))]
        self.scopes.pop()
        return lines


def braces(statements: list[str]) -> str:
    """Statements between braces."""
    return "\n".join(["{", *(f"  {line}" for text in statements for line in text.split("\n")), "}"])


def programs(seed: int) -> Iterator[str]:
    """Programs without end."""
    random = Random(seed)
    while True:
        yield Generator(Random(random.getrandbits(64))).program()
