"""Calls of functions that need a permission which the role of the caller lacks."""

from __future__ import annotations

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.kinds import find_calls
from koi_lang.compiler.rules.program import place_of, with_permission
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.grants import permits


@rule("E0405", "warning")
def call_without_permission(file: Analysis, report: Report) -> None:
    """Code of an agent calls a function of a skill that needs a permission which the role of the agent lacks.

    What a role lists bounds what its agents do. Code is the author's own, so this is a warning there; with `--strict`
    it is an error, and for what a model calls the permission is always required. One message an agent and permission.

    Wrong:

        skill Notes { needs write  export function save(text: string): number { return text.length } }
        role Reader { can read }
        agent Clerk : Reader { on start(args) { return save("x") } }

    Right:

        skill Notes { needs write  export function save(text: string): number { return text.length } }
        role Writer { can write }
        agent Clerk : Writer { on start(args) { return save("x") } }
    """
    seen: set[tuple[n.Agent, str]] = set()
    for call in report.program.for_file(find_calls, file):
        agent, permission = call.around.agent, report.program.permissions.get(call.function)
        if agent is None or permission is None or (agent, permission) in seen:
            continue
        seen.add((agent, permission))
        role = report.program.role_of(agent, file)
        if role is None or not isinstance(role.node, n.Role):
            continue
        if not permits([name.name for name in role.node.capabilities], permission):
            others = [place_of(role, f"the role of `{agent.name.name}`")]
            message = f"`{agent.name.name}` may not call `{call.function.name}`"
            advice = with_permission(role, permission)
            place = report.place(call.place, f"needs the permission `{permission}`")
            report.add(place, message, others=others, help=advice.help, fixes=advice.fixes)
