"""All kinds of attacks by their names."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.security import budgets, commands, folders, journals, paths, sandbox, services, texts
from benchmarks.security.trials import AttackKind

KINDS: Mapping[str, AttackKind] = {
    kind.name: kind
    for module in (sandbox, services, commands, paths, folders, journals, texts, budgets)
    for kind in module.KINDS
}
