"""Results of actions to whether they tell a model anything that it has not written itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koi_lang.runtime.playbook.action_parsing import Action

# Actions whose results hold what they were given; and what else such a result says.
REPEATING = frozenset({"print", "return", "update_state", "registry_set"})
CARRIED_OUT = {"printed": True, "state_updated": True, "success": True, "saved": True}


def is_written_by_model(action: Action, result: Any) -> bool:
    """Whether a result only repeats the answer; values made by `${…}` or a hook are new."""
    if action.delegated or action.intent not in REPEATING:
        return False
    written = list(action.data.values())
    if action.intent == "return":
        return result == {} or any(_is_part(result, each) for each in written)
    return isinstance(result, Mapping) and all(
        CARRIED_OUT.get(name) is value or any(_is_part(each, value) for each in written)
        for name, value in result.items()
    )


def _is_part(part: Any, whole: Any) -> bool:
    """Whether a value is another one, or has some of its fields."""
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        return all(name in whole and whole[name] == value for name, value in part.items())
    return bool(part == whole)
