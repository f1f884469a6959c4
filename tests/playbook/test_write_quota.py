"""How much one answer of a model may have written to the journal and to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.guards import write_quota
from koi_lang.runtime.guards.size import MAX_BYTES
from koi_lang.runtime.guards.write_quota import json_size
from tests.playbook.playing import Player, act, done, solo
from tests.projects import Project

KEEPING = solo("execute", "registry", more='state { t: string = "" }')
READING = """
import "std/files"
role Worker { can write }
agent Main : Worker { uses skill Files, FileChanges  on go(args) { playbook "Do the work." } }
"""
# A text of 1,000 characters in as many steps as it takes.
TEXT = act("update_state", updates={"t": "0123456789" * 100})
GROWN = act("update_state", updates={"t": "${state.t}" * 100})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """A quota of 1 MB."""
    monkeypatch.setattr(write_quota, "MAX_ANSWER_BYTES", 1_000_000)
    return 1_000_000


def written_by(play: Player, source: str, *answers: Any, **services: Any) -> tuple[int, list[str]]:
    """How much of a journal is not the model's own words in a run with these answers, and what the model was told."""
    played = play(source, [*({"batch": list(answer)} for answer in answers), done()], detailed=True, **services)
    assert played.error is None
    caused = [event.fields for event in played.events if not event.type.startswith("model_")]
    told = ["".join(message.text for message in request.messages[-2:]) for request in played.requests[1:]]
    return sum(len(json.dumps(data, default=str)) for data in caused), told


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "many",
    [
        act("print", message="${state.t}"),
        act("registry_set", key="k", value="${state.t}"),
        act("update_state", updates={"t": "${state.t}"}),
        {"parallel": [act("print", message="${state.t}")] * 40},
        act("repeat", count=90, actions=[act("print", message="${state.t}")]),
        act("repeat", count=90, actions=[act("registry_get", key="none"), act("print", message="\x01" * 20_000)]),
    ],
    ids=lambda action: str(action.get("intent", "parallel")),
)
def test_one_answer_does_not_fill_the_disk(play: Player, small: int, many: dict[str, Any]) -> None:
    """However it goes about it, an answer has about its quota written; the model is told of it, and can go on."""
    size, told = written_by(play, KEEPING, [TEXT, GROWN, *[many] * 40], [act("print", message="small")])

    assert size < 1.3 * small
    assert "one answer may have 1.0 MB written" in told[0]
    assert "✅ print" in told[1]


def test_the_largest_value_can_be_used(play: Player) -> None:
    """One value as large as values may be is kept, and no second one in the same answer."""
    almost = act("update_state", updates={"t": "${state.t}" * (MAX_BYTES // 100_000 - 1)})
    _, told = written_by(play, KEEPING, [TEXT, GROWN, almost, act("print", message="${state.t}")])

    assert (3, 1) == (told[0].count("✅ update_state"), told[0].count("❌"))
    assert "what `print` is given (19.9 MB) is too much: one answer may have 64.0 MB written" in told[0]


def test_files_count(play: Player, small: int, tmp_path: Path) -> None:
    """What is read from and written to files counts, also where many actions begin at the same time."""
    (tmp_path / "a.txt").write_text("x" * 90_000)
    read = act("call_skill", skill="Files", function="readFile", input={"path": "a.txt"}, id="r")
    write = act("call_skill", skill="FileChanges", function="writeFile", input={"path": "b", "text": "${r.output}"})
    size, told = written_by(play, READING, [{"parallel": [read] * 40}], [read, *[write] * 40], folder=tmp_path)

    assert size < 2 * 1.3 * small
    assert all("one answer may have 1.0 MB written" in each for each in told)


def test_every_answer_has_a_quota(play: Player, small: int) -> None:
    """What an answer has had written does not count for the next one, nor for an answer of a delegate."""
    answers = [[TEXT, GROWN, act("print", message=f"{n} ${{state.t}}")] for n in range(6)]
    size, told = written_by(play, KEEPING, *answers)

    assert size > 2 * small
    assert all("❌" not in each for each in told)


def test_a_run_that_was_refused_can_be_replayed(project: Project) -> None:
    """What was refused is refused again where outcomes are taken from the journal."""
    project.write("quota.py", "from koi_lang.runtime.guards import write_quota\nwrite_quota.MAX_ANSWER_BYTES = 150_000")
    program = KEEPING.replace("go(args)", "go(args: Json)")
    project.write("a.koi", f'import quota from "./quota.py"\n{program}run Main.go({{}})\n')
    answers = [{"batch": [TEXT, GROWN, act("print", message="${state.t}")]}, act("print", message="x"), done()]
    project.write("answers.json", json.dumps(answers))
    ran = project.koi("run", "a.koi", "--answers", "answers.json")
    replayed = project.koi("replay", "last")

    assert (0, "x\n") == (ran.returncode, ran.stdout)
    assert (0, "x\n") == (replayed.returncode, replayed.stdout)


def test_the_size_of_a_value() -> None:
    """Sizes are those of JSON in UTF-8, a little more than less, for values that hold themselves, too."""
    around: list[Any] = ["x"]
    around.append(around)
    for value in ("a", "\x00é€𝄞\ud800", {"é": [1, None, "\n"]}, ["a"] * 100):
        size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        assert size <= json_size(value, MAX_BYTES) <= 4 * size + 8

    assert json_size(around, MAX_BYTES) < 50
    assert 1000 <= json_size(["x" * 600] * 10**6, 1000) < 5000
