"""Programs of JavaScript to the same ones with types of TypeScript and with words of declarations as names."""

from __future__ import annotations

import re
from random import Random

from koi_lang.compiler.build import CONTEXTUAL

WORDS = sorted(CONTEXTUAL)
TYPES = (
    "any", "number", "string | null", "Array<string>", "readonly number[]", "[string, number?: any][]",
    "{ a: number; b?: string }", "(x: number, ...rest: any[]) => void", "Map<string, Array<Set<number>>>",
    "keyof typeof Math", "{ [key: string]: unknown }", "A.B & C", '"a" | 1 | true', "(string | number)[]",
    "Promise<void>", "unknown", 'Record<"a", number>["a"]',
)  # fmt: skip
# What may carry a type: a declared name, a function, a shown value, a call, parentheses with a `?.` behind.
DECLARED = re.compile(r"\b((?:let|const|var) v\d+) =")
FUNCTION = re.compile(r"^(function f\d+|const f\d+ = )\(([^()]*)\) (=> )?\{", re.MULTILINE)
SHOWN = re.compile(r"^show\((.*)\)$", re.MULTILINE)
CALL = re.compile(r"(?<!function )\b(f\d+)\(")
REACHED = re.compile(r"\)(?=\?\.\[)")
VARIABLE = re.compile(r"\bv(\d+)\b")


def add_types(program: str, random: Random) -> str:
    """The program with types at random places; a name of a word is a name of TypeScript, too."""

    def some() -> str:
        return random.choice(TYPES).replace("?:", ":")

    def declare(found: re.Match[str]) -> str:
        return f"{found[1]}: {some()} =" if random.random() < 0.6 else found[0]

    def function(found: re.Match[str]) -> str:
        given = [re.sub(r"^(v\d+)", rf"\1: {some()}", each) for each in found[2].split(", ") if each]
        result = (
            f": {some()} " if found[3] is None else random.choice([": any ", ": x is string[] ", ": A | { b: C } "])
        )
        return f"{found[1]}<T extends {some()}, U = {some()}>({', '.join(given)}){result}{found[3] or ''}{{"

    def show(found: re.Match[str]) -> str:
        return f"show({found[1]} {random.choice(['as', 'satisfies', 'as unknown as'])} {some()})"

    for pattern, change in (
        (DECLARED, declare), (FUNCTION, function), (SHOWN, show),
        (CALL, lambda found: f"{found[1]}<number, {random.choice(['T', 'Map<string, U[]>', '{ a: 1 }'])}>("),
        (REACHED, lambda _: random.choice([")", ")!", " as any)"])),
    ):  # fmt: skip
        program = pattern.sub(change, program)
    return VARIABLE.sub(lambda found: WORDS[int(found[1])] if int(found[1]) < len(WORDS) else found[0], program)
