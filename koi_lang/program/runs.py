"""The run of a loaded program, whatever it is for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from koi_lang.lazy import lazy_module
from koi_lang.program import declarations
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import MADE_WHEN_USED, Factories, Services
from koi_lang.system.interpolation import ExpressionRules

if TYPE_CHECKING:
    from koi_lang.program import safe_expressions
    from koi_lang.runtime.model_calls.pool import Connect
else:
    safe_expressions = lazy_module("koi_lang.program.safe_expressions")


def run_of(module: ModuleType, connect: Connect, factories: Factories = MADE_WHEN_USED, **own: Any) -> Run:
    """A run that has not started yet.

    Args:
        connect: makes a model from the settings of an `llm` block.
        factories: make the parts that only some runs need.
        own: further fields of `Services`.
    """
    teams = partial(declarations.teams_of, module)
    return Run(Services(connect, teams=teams, evaluate=_evaluate, **own), factories)


def _evaluate(text: str, names: Mapping[str, Any], rules: ExpressionRules = ExpressionRules.LENIENT, /) -> Any:
    """An expression that arrived while running; the reader of expressions is loaded with the first one."""
    return safe_expressions.evaluate(text, names, rules)
