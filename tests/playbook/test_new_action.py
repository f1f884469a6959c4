"""An action is described in one place: one that a test makes up is known to prompts, checks, pages and editors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.generate import actions_page, runtime_facts_module
from koi_lang.acp.tool_calls import start_of
from koi_lang.cli.lsp import count_actions
from koi_lang.runtime.actions import lookup, registered
from koi_lang.runtime.actions.registered import ActionContext, ActionKind, action
from tests.playbook.playing import Player, act, done, solo


@pytest.fixture
def weigh(monkeypatch: pytest.MonkeyPatch) -> Iterator[ActionKind]:
    """A new action, in a module of its own."""

    async def weigh(context: ActionContext, what: str, often: int = 1) -> Any:
        """Weigh something; gives `grams`."""
        return {"grams": len(what) * often}

    module = ModuleType("scales")
    weigh.__module__ = module.__name__
    monkeypatch.setattr(lookup, "MODULES", (*lookup.MODULES, module))
    action("execute", tool="search", only_looks=True)(weigh)
    yield registered._ACTIONS["weigh"]
    del registered._ACTIONS["weigh"]


def test_a_model_is_offered_it_and_gets_its_result(play: Player, weigh: ActionKind) -> None:
    """The prompt has its signature, a missing permission is named, and its result goes back."""
    played = play(solo("execute"), [act("weigh", what="tea", often=2), done()])
    denied = play(solo("think"), [act("weigh", what="tea"), done()])

    assert "- weigh(what: string, often?: integer) Weigh something; gives `grams`." in played.requests[0].system
    assert '"grams":6' in played.feedback[1].replace(" ", "")
    assert "`weigh` needs the permission `execute`" in denied.feedback[1]


def test_checks_pages_and_editors_know_it(weigh: ActionKind) -> None:
    """The compiler's table and the manual are made from it; editors show its kind, and count it for a role."""
    event = {"intent": "weigh", "fields": {"what": "tea"}}
    with_it = count_actions(("execute",))

    assert '    "weigh": "what:string often?:number",\n' in runtime_facts_module()
    assert "### `weigh`" in actions_page()
    assert "search" == start_of(event, Path("/"), weigh)["kind"]
    assert weigh.only_looks
    # Beside itself it makes `read_output` one of them.
    assert with_it == 2 + sum(kind.needs in (None, "execute") for kind in lookup.all_actions() if _is_usual(kind))


def _is_usual(kind: ActionKind) -> bool:
    return kind.name != "weigh" and not kind.is_occasional
