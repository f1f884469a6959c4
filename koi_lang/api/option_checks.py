"""The checks of the options of `koi_lang.open` and `koi_lang.run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from reprlib import Repr
from types import ModuleType
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError
from koi_lang.settings.efforts import EFFORTS, effort_help

# How values are shown that are none.
SHORT = Repr()


def _is_place(given: Any) -> bool:
    return isinstance(given, str) or (isinstance(given, os.PathLike) and isinstance(os.fspath(given), str))


def _is_program(given: Any) -> bool:
    return _is_place(given) or (isinstance(given, ModuleType) and isinstance(given.__file__, str))


def _is_model(given: Any) -> bool:
    return isinstance(given, str) or (callable(given) and not isinstance(given, type))


def _is_output(given: Any) -> bool:
    return callable(given) and not iscoroutinefunction(given) and not iscoroutinefunction(type(given).__call__)


def _is_object(given: Any) -> bool:
    return isinstance(given, Mapping) and all(isinstance(name, str) for name in given)


def _is_list_of_texts(given: Any) -> bool:
    return isinstance(given, list | tuple | set | frozenset) and all(isinstance(rule, str) for rule in given)


def _is_switch(given: Any) -> bool:
    return isinstance(given, bool)


# Of each option: whether it may be None, what a value has to be, and what to give.
CHECKS: dict[str, tuple[bool, Callable[[Any], bool], str]] = {
    "model": (True, _is_model, 'Give `"provider/model"`, or an object such as `koi_lang.ScriptedModel([…])`.'),
    "effort": (True, lambda given: given in EFFORTS, effort_help(None)),
    "budget": (True, _is_object, 'Give limits by their names, such as `budget={"usd": 0.1}`.'),
    "payload": (True, _is_object, 'Give fields by their names, such as `payload={"topic": "tea"}`.'),
    "allow": (False, _is_list_of_texts, 'Give a list of rules, such as `allow=["run"]`.'),
    "ask": (True, callable, "Give a function: `ask=lambda question, options: …`."),
    "approve": (True, callable, "Give a function: `approve=lambda what, detail, agent: …`."),
    "output": (True, _is_output, "Give a function that takes a text and is not async, such as `print`."),
    "folder": (True, _is_place, "Give the path of a folder."),
    "record": (True, _is_switch, "Give True or False."),
    "keys": (True, _is_place, "Give the path of a file."),
    "rehearse": (False, _is_switch, "Give True or False."),
    "extensions": (False, _is_switch, "Give True or False."),
    "trust_folder": (False, _is_switch, "Give True or False."),
}


def check_options(program: Any, options: Mapping[str, Any]) -> None:
    """Check the options of a program. Raises UsageError for an invalid one."""
    if not _is_program(program):
        help = "Give the path of a `.koi` file, or its module."
        raise UsageError(f"{SHORT.repr(program)} is no program", help=help)
    for name, given in options.items():
        if name not in CHECKS:
            raise UsageError(f"there is no option `{name}`", help=suggestion(name, list(CHECKS), "option"))
        may_be_none, is_right, help = CHECKS[name]
        if not (is_right(given) if given is not None else may_be_none):
            raise UsageError(f"the option `{name}` cannot be {SHORT.repr(given)}", help=help)
