"""10,000 random actions of hostile models: nothing is known or changed that rules and roles do not allow."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from koi_lang.extensions import additions, find_extensions
from koi_lang.program import loader
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.guards.permissions import Restrictions
from koi_lang.runtime.host import ApprovalDecision
from tests.adversary.hostile_project import FILES, build, may_change, may_see, tree_of, word_of
from tests.adversary.random_actions import ActionSource
from tests.playbook.playing import Played, Player, done
from tests.std.test_code import Person

RUNS, ACTIONS, USUAL = 250, 40, 8
ROLES = ("read, can write, can execute, can delegate", "read", "read, can write", "write", "execute, can delegate")
PROGRAM = """// {word}
import "std/code"
role Worker {{ can {can} }}
role Helper {{ can think }}
agent Other : Helper {{ on help(args) {{ return 1 }} }}
team Crew {{ other: Other }}
agent Main : Worker {{
  uses skill CodeReading, CodeChanges  uses skills  uses team Crew
  on go(args) {{ playbook "Do the work." }}
}}
"""
ALLOWED = ((), ("write:src/**",), ("write:**", "shell"), ("run:true *", "write:docs/**"))
DENIED = ((), ("*:migrations/**",), ("*:migrations/**", "*:docs/*.md"), ("read:README.md",))
# What denied patterns mean of the files that may be read.
FOLDERS = {"*:migrations/**": "migrations/", "*:docs/*.md": "docs/", "read:README.md": "readme.md"}
OURS = re.compile(r"Traceback|\[Errno|internal error|object has no attribute|not in the subpath")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the project, and another one beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KOI_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
        yield tmp_path_factory.mktemp("hostile")
    loader.unload()


@pytest.mark.sampled(USUAL)
@pytest.mark.parametrize("number", range(RUNS))
def test_nothing_is_known_or_changed_beyond_the_rules(base: Path, number: int) -> None:
    """No word of a file that may not be read is told to anybody; no other file is another one afterwards."""
    chance = random.Random(number)
    build(base)
    source = PROGRAM.format(word=word_of("program"), can=chance.choice(ROLES))
    allow, deny = chance.choice(ALLOWED), chance.choice(DENIED)
    play = Player(base / "project")
    module = play.load(source)
    before, actions = tree_of(base), ActionSource(chance, str(base / "project"), Path(str(module.__file__)).name)
    person = Person(decision=ApprovalDecision(chance.choice(("yes", "no", "always"))))
    tried = [actions.action() for _ in range(ACTIONS)]

    played = play(
        source, [*tried, done()], host=person, allow=allow,
        added=additions(find_extensions(module, use_installed=False)),
        restrictions=Restrictions(tuple(map(parse_rule, deny))),
    )  # fmt: skip

    assert played.error is None or isinstance(played.error, LimitReachedError), played.told
    assert len(played.requests) >= ACTIONS or played.error is not None  # who makes a mistake twice is not asked on
    denied = [FOLDERS[rule] for rule in deny]
    told = everything_told(played)
    assert [] == [path for path in FILES if word_of(path) in told and not may_see(path, denied)]
    assert word_of("program") not in told
    after = tree_of(base)
    changed = [path for path in before | after if before.get(path) != after.get(path)]
    writes = [rule for rule in denied if rule != "readme.md"]
    assert [] == [path for path in changed if not may_change(path, writes)]
    assert [] == [text for text in played.feedback if OURS.search(text)]


def everything_told(played: Played) -> str:
    """Whatever a model, or a reader of events or of output was told."""
    requests = [text for request in played.requests for text in (request.system, *(m.text for m in request.messages))]
    events = [str(event.fields) for event in played.events]
    return "\n".join((*requests, *events, *played.printed, *played.logged))
