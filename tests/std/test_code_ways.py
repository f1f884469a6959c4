"""Work on a project by models that answer in text, call tools, or are held to a schema, through both SDKs."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.extensions import additions, find_extensions
from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.guards.permissions import Restrictions
from tests.playbook.conftest import play as play
from tests.playbook.playing import Player, act, done, solo
from tests.playbook.transports import WAYS, talk

PROGRAM = 'import "std/code"\n' + solo("write", "execute")
TURNS = [
    [act("read_file", path="m.py"), act("grep", pattern="parse")],
    [act("edit_file", path="m.py", before="parse", after="read")],
    [act("write_file", path="migrations/1.sql", content="drop")],
    [act("read_file", path=".env")],
    [act("run_command", command="cat m.py", description="to see it")],
    [done(ok=True)],
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_project_is_worked_on_in_all_ways(play: Player, tmp_path: Path, way: tuple[str, str]) -> None:
    """What is allowed is done, what a rule denies or what holds secrets is not, and the model is told each time."""
    (tmp_path / "m.py").write_text("def parse(x):\n    return x\n")
    (tmp_path / ".env").write_text("KEY=canary")
    services = {
        "added": additions(find_extensions(play.load(PROGRAM), use_installed=False)),
        "folder": tmp_path,
        "allow": ["write:**", "run:cat *"],
        "restrictions": Restrictions((parse_rule("*:migrations/**"),)),
    }

    played, asked, _ = talk(play, PROGRAM, TURNS, way, played=services)

    assert played.error is None
    assert (tmp_path / "m.py").read_text() == "def read(x):\n    return x\n"
    assert not (tmp_path / "migrations").exists()
    sent = [str(each.body) for each in asked]
    assert "def parse(x)" in sent[1]
    assert "the rule `*:migrations/**` of the person denies it" in sent[3]
    assert "files of that name hold secrets" in sent[4]
    assert "def read(x)" in sent[5]
    assert not any("canary" in body for body in sent)
