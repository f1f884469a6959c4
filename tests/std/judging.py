"""A program that judges, and the answers of its judge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

PROGRAM = """
import "std/judge"
role Writer { can execute }
agent Main : Writer {
  on go(args: Json) {
    return await judged(args.rubric ?? "prose-quality", args.task ?? "Write.", args.result, args.options ?? {})
  }
  on rounds(args: { count: int, asList?: boolean }) {
    const rounds = []
    for (let n = 0; n < args.count; n++) {
      const before = rounds[n - 1]
      const earlier = args.asList ? before?.findings : before
      rounds.push(await judged("prose-quality", "Write.", `Text ${n}.`, { earlier }))
    }
    return rounds
  }
  on many(args: { count: int }) {
    const texts = [...Array(args.count).keys()].map(n => `Text ${n}.`)
    return await Promise.all(texts.map(async text => await judged("prose-quality", "Write.", text)))
  }
}
run Main.go({ result: "Some text." })
"""
WEIGHTS = {"clarity": 0.3, "accuracy": 0.3, "tone": 0.15, "structure": 0.25}


def finding(title: str, severity: str = "important", dimension: str = "tone", **more: Any) -> dict[str, Any]:
    """A finding as a judge gives it."""
    return {"severity": severity, "dimension": dimension, "title": title, **more}


def grades(*findings: Mapping[str, Any], resolved: tuple[str, ...] = (), **scores: float) -> dict[str, Any]:
    """What a judge gives; dimensions that are not named get 1."""
    given = [{"name": name, "score": scores.get(name, 1)} for name in WEIGHTS]
    return {"dimensions": given, "findings": list(findings), "resolved": list(resolved)}


def answer(data: Any) -> dict[str, Any]:
    """The action with which a judge gives something."""
    return {"intent": "return", "data": data}


def told(message: str) -> dict[str, Any]:
    """The payload of the judge, as its first message tells it."""
    args: dict[str, Any] = json.JSONDecoder().raw_decode(message.partition("Context: ")[2])[0]["args"]
    return args


def numbers_in(value: Any) -> Iterator[float]:
    """Every number in a value."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)
