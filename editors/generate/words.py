"""The words of the language by what they do, read from its grammar and the tables of the compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from koi_lang.compiler.rules.actions import FIELDS, TOOLS
from koi_lang.compiler.rules.kinds import KINDS
from koi_lang.compiler.rules.limits import LIMITS
from koi_lang.compiler.rules.roles import PERMISSIONS
from koi_lang.compiler.rules.types import SHOWN
from koi_lang.compiler.scope import AGENT_NAMES, GLOBALS, RUN_NAMES, TEST_NAMES
from koi_lang.system import resources

# One terminal a line: its name, and a pattern or a text.
TERMINAL = re.compile(r'^([A-Z_]+)(?:\.-?\d+)?: (?:/(.+)/(i?)s?|"([a-z]+)")$', re.MULTILINE)
# What a pattern of words begins with: one of them, or several to choose from, and then what must follow.
SPELLING = re.compile(r"(?:(\w+)|\(\?:([\w|]+)\))(?:\\b|(?=\(\?:\\\*))(.*)")
# What each terminal of words is. The words of one line look alike in an editor.
GROUPS: Mapping[str, str] = {
    **dict.fromkeys("IMPORT PACKAGE FROM EXPORT".split(), "modules"),
    **dict.fromkeys("TYPE ROLE TEAM MCP PROMPT RUN TEST EVAL AGENT SKILL".split(), "declarations"),
    **dict.fromkeys(
        "USES EXPOSE AFFORDANCE EXAMPLES LLM AMNESIA GUARD ON STATE PLAYBOOK ANSWER RESILIENCE BUDGET PHASES "
        "TRANSITIONS".split(),
        "members",
    ),
    **dict.fromkeys(
        "CAN CANNOT NEEDS FUNCTION_NEEDS OVERRIDE PRIVATE ACCESSOR SKILLS INSTRUCTIONS MEMORY".split(), "modifiers"
    ),
    **dict.fromkeys(
        "USE COMPOSE FRAGMENTS TEMPLATE MODEL RULES OVER TIMES PASS EVERY WHEN INPUT OUTPUT ACTION".split(), "clauses"
    ),
    **dict.fromkeys("GIVEN EXPECT FAILS SCORE".split(), "testing"),
    **dict.fromkeys("VARIABLE FUNCTION ASYNC".split(), "storage"),
    **dict.fromkeys("IF ELSE FOR WHILE DO SWITCH CASE CASE_DEFAULT DEFAULT TRY CATCH FINALLY THROW".split(), "control"),
    **dict.fromkeys("RETURN BREAK CONTINUE YIELD YIELD_ALL AWAIT SEND START TIMEOUT".split(), "control"),
    **dict.fromkeys(
        "OF IN INSTANCEOF CAST IS WITHIN MATCHING READONLY KEYOF EXTENDS NEW TYPEOF VOID DELETE".split(), "operators"
    ),
    **dict.fromkeys(("BOOLEAN", "NULL"), "constants"),
}
# What an object of a plan says beside the fields of its action.
PLAN_FIELDS = ("actionType", "intent", "id", "data", "batch")


@dataclass(frozen=True, slots=True)
class Keyword:
    """A terminal of the grammar that stands for words.

    Attributes:
        behind: the pattern of what has to follow; empty where the parser alone decides.
    """

    terminal: str
    group: str
    words: tuple[str, ...]
    behind: str
    ignores_case: bool


def keywords() -> Iterator[Keyword]:
    """Every terminal of words. Raises AssertionError for one that has no group."""
    for terminal, pattern, case, text in TERMINAL.findall(resources.grammar().read_text("utf-8")):
        found = SPELLING.fullmatch(f"{text}\\b" if text else pattern)
        if found is None:
            continue
        assert terminal in GROUPS, f"no group of words has the terminal {terminal}"
        yield Keyword(terminal, GROUPS[terminal], tuple((found[1] or found[2]).split("|")), found[3], bool(case))


def tree() -> dict[str, list[str]]:
    """All words by their group, each group sorted."""
    groups: dict[str, set[str]] = {group: set() for group in dict.fromkeys(GROUPS.values())}
    for keyword in keywords():
        groups[keyword.group] |= {*keyword.words}
    groups |= {
        "globals": {*GLOBALS},
        "own_names": {*AGENT_NAMES, *RUN_NAMES, *TEST_NAMES},
        "types": {*KINDS, *SHOWN, *map(str.lower, SHOWN)} - {"null", "undefined"},
        "permissions": {*PERMISSIONS},
        "limits": {*LIMITS},
        "actions": {*FIELDS, *TOOLS},
        "plan_fields": {*PLAN_FIELDS, *(name for fields in FIELDS.values() for name in fields)},
    }
    return {group: sorted(words) for group, words in groups.items()}
