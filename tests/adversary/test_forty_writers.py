"""Forty calls that write at once, the same file and files of their own, and a person who answers slowly and crossed."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest
from tests.playbook.conftest import play as play
from tests.playbook.playing import Player
from tests.std.test_code import Person

COUNT = 40
PROGRAM = """import "std/code"
role Worker { can write, can delegate }
agent Main : Worker {
  uses skill CodeChanges
  on go({ numbers }) { return await Promise.all(numbers.map(n => this.handle("one", { n }))) }
  on one({ n }) { return { n, own: await this.own({ n }), shared: await this.shared({ n }) } }
  private on own({ n }) {
    try { return (await write_file(`own/${n}.txt`, `text ${n}\\n`)).success } catch (error) { return error.message }
  }
  private on shared({ n }) {
    try {
      return (await edit_file("shared.txt", `line ${n};`, `done ${n};`)).success
    } catch (error) {
      return error.message
    }
  }
}
"""


@dataclass(slots=True)
class SlowPerson(Person):
    """Somebody who answers the later ones first, and no to every third new file."""

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """After others have asked, too."""
        self.requests.append(request)
        number = int(re.findall(r"\d+", request.what + request.preview)[0])
        for _ in range(COUNT - number):
            await asyncio.sleep(0)
        is_refused = request.what.startswith("create") and number % 3 == 0
        return ApprovalDecision("no", f"not {number}") if is_refused else ApprovalDecision("yes")


def test_nothing_is_lost_and_no_answer_mixed_up(play: Player, tmp_path: Path) -> None:
    """Each call gets the answer to its own question; what it is told was written stands there, and nothing else."""
    numbers = range(1, COUNT + 1)
    (tmp_path / "shared.txt").write_text("".join(f"line {n};\n" for n in numbers))
    person = SlowPerson()

    played = play(PROGRAM, [], payload={"numbers": [*numbers]}, folder=tmp_path, host=person)

    assert played.error is None, played.told
    told = {int(each["n"]): each for each in played.result}
    for n in numbers:
        refused = f"the person did not allow to create `own/{n}.txt`: not {n}"
        assert told[n]["own"] == (refused if n % 3 == 0 else True)
        assert (tmp_path / f"own/{n}.txt").exists() is (n % 3 != 0)
    done = {n for n in numbers if told[n]["shared"] is True}
    others = {told[n]["shared"] for n in numbers if n not in done}
    expected = "".join(f"{'done' if n in done else 'line'} {n};\n" for n in numbers)
    assert expected == (tmp_path / "shared.txt").read_text()
    assert done
    assert all("changed by somebody else meanwhile" in each for each in others)
    assert len({request.id for request in person.requests}) == len(person.requests)
