"""Readers that break off and come back: over thousands of events nothing is lost, and nothing is told twice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import pytest

from tests.service.serving_process import ServiceProcess

PROGRAM = """
role Worker { can execute }
agent Main : Worker {
  on count(args: Json) {
    for (let n = 0; n < COUNT; n++) {
      console.log(n)
      if (n % 100 === 0) { await new Promise((done) => setTimeout(done, 5)) }
    }
  }
}
"""
BREAKS = 20


@pytest.mark.parametrize("total", [2_000, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_nothing_is_lost_over_twenty_breaks(start_service: Callable[..., ServiceProcess], total: int) -> None:
    """A reader that breaks off while much is told goes on behind the last message that it has taken."""
    service = start_service(main=PROGRAM.replace("COUNT", str(total)))
    run = service.begin(handler="Main.count")
    since, numbers, printed = "0", list[int](), list[str]()
    for number in range(BREAKS + 1):
        count = total // 300 + total // 250 * number if number < BREAKS else None
        for id, message in islice(service.follow(run, since), count):
            if "n" in message:
                since, event = id, message["event"]
                numbers.append(message["n"])
                printed += [event["message"]] if event["type"] == "printed" else []
                if event["type"] == "call_ended":
                    break

    assert list(range(1, len(numbers) + 1)) == numbers
    assert [str(n) for n in range(total)] == printed
