"""Rules of the person that can never count, and those that deny everything, told once when a run begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from koi_lang.runtime.guards.access_rules import ANY, FILES, AccessRule, WantedAccess, rules_in
from koi_lang.runtime.guards.permissions import Restrictions
from koi_lang.runtime.guards.working_files import is_closed


def explain_rules(allow: Iterable[str], restrictions: Restrictions) -> Iterator[str]:
    """What to say of rules, a line each.

    Args:
        allow: all that is allowed; what is no rule of files, commands and pages is passed over.
    """
    yield from (f"the rule `{rule.text}` denies everything" for rule in restrictions.deny if rule.is_everything)
    for rule in dict.fromkeys((*rules_in(allow), *restrictions.ask)):
        if why := _why_never(rule, restrictions.deny):
            yield f"the rule `{rule.text}` never counts: {why}"
    for rule in restrictions.deny:
        if _leads_out(rule):
            yield f"the rule `{rule.text}` never counts: it leads out of the project"


def _why_never(rule: AccessRule, deny: Iterable[AccessRule]) -> str:
    if _leads_out(rule):
        return "it leads out of the project"
    parts = [part for part in rule.pattern.split("/") if part and part.strip("*")]
    if rule.kind in FILES and (why := is_closed(parts)):
        return f"what it names is closed to agents: {why}"
    denying = next((each for each in deny if _is_within(rule, each)), None)
    return f"`{denying.text}` denies all of it" if denying else ""


def _leads_out(rule: AccessRule) -> bool:
    return rule.kind in (*FILES, ANY) and (rule.pattern.startswith("~") or ".." in rule.pattern.split("/"))


def _is_within(rule: AccessRule, around: AccessRule) -> bool:
    """Whether a rule means nothing that another one does not mean; a pattern is looked at as a path of its own."""
    if around.is_everything or rule == around:
        return True
    if rule.kind in FILES:
        return around.means(WantedAccess("read" if rule.kind == "read" else "write", rule.pattern))
    return rule.pattern == around.pattern and around.kind == ANY
