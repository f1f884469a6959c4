"""The names a compiled module uses, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from koi_lang.js.accessors import Accessor, AccessorObject
from koi_lang.js.call_helpers import (
    apply,
    apply_member,
    apply_to,
    call,
    get,
    invoke,
    invoke_found,
    iterate,
    keys,
    new,
    put,
    remove,
    spread,
)
from koi_lang.js.errors import catch_value as caught
from koi_lang.js.errors import read_early, thrown
from koi_lang.js.generators import (
    AsyncDelegate,
    AsyncItems,
    GeneratorLeftError,
    async_generator,
    delegate,
    end_walk,
    fail_walk,
    generator,
    walk,
)
from koi_lang.js.globals import GLOBALS
from koi_lang.js.operators import (
    add,
    and_bits,
    decrement,
    divide,
    equal,
    greater,
    greater_equal,
    has,
    increment,
    instance_of,
    invert_bits,
    less,
    less_equal,
    multiply,
    negate,
    nullish,
    number,
    or_bits,
    power,
    remainder,
    same,
    shift_left,
    shift_right,
    shift_unsigned,
    subtract,
    template,
    text,
    truth,
    type_of,
    xor_bits,
)
from koi_lang.js.promises import settle
from koi_lang.js.regexes import regex
from koi_lang.js.undefined import undefined
from koi_lang.runtime.a2a.member import remote_agent
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Mcp, Team, on
from koi_lang.runtime.agents.declarations import role as Role  # noqa: N812 -- as compiled modules call it
from koi_lang.runtime.agents.exports import export, needs, with_types
from koi_lang.runtime.agents.result_types import ResultType
from koi_lang.runtime.agents.skills import skill
from koi_lang.runtime.agents.team import Query, peers_of, query, send, start
from koi_lang.runtime.context import current_run
from koi_lang.runtime.destructuring import (
    Box,
    both,
    coalesce,
    count,
    count_to_entry,
    count_to_length,
    either,
    named,
    open_object,
    peek,
    put_last,
    unpack,
    without,
)
from koi_lang.runtime.guidance.skill_places import skill_folder
from koi_lang.runtime.mcp.remote import server, tool
from koi_lang.runtime.modules.python_files import python_file
from koi_lang.runtime.narrowing import require_function
from koi_lang.runtime.prompts import ChosenPrompt, Composed, Prompt, fill
from koi_lang.runtime.test_blocks.context import given, output
from koi_lang.runtime.test_blocks.evals import EvalBlock, current_case, give_score, note_misses
from koi_lang.runtime.test_blocks.expect import compare, expect, expect_failure
from koi_lang.schedules.job import Job

if TYPE_CHECKING:
    from koi_lang.runtime.registry import KeptRegistry

globals().update(GLOBALS)
# Of a text or array.
length = len
# The items of an array behind their indexes, as many as it has when each is asked for.
indexed = enumerate
# Numbers that are whole and at most 2**53 are of this class.
class_of, WholeNumber = type, int


def live(declared: Any) -> Any:
    """The agent or team of the current run that a declaration stands for."""
    run = current_run()
    return Query(run, (declared,)) if isinstance(declared, Team) else run.agent(declared)


def peers(agent: Agent | None, team: Any = None) -> Query:
    """The members that an agent can send to: those of all its teams, or of one."""
    wanted = team.teams[0] if isinstance(team, Query) else team
    return peers_of(current_run(), agent, wanted)


def registry() -> KeptRegistry:
    """The key/value store of the current run."""
    return current_run().registry


async def run(agent: type[Agent], event: str, payload: Any) -> Any:
    """A `run` statement."""
    return await current_run().start(agent, event, payload)


async def playbook(agent: Agent, event: str, args: Any, parts: Any) -> Any:
    """Have a model carry out a playbook."""
    return await agent.run.run_playbook(agent, event, args, parts)


__all__ = [
    "Accessor", "AccessorObject", "Agent", "Any", "AsyncDelegate", "AsyncItems", "Box", "ChosenPrompt", "Composed",
    "EvalBlock", "GeneratorLeftError", "Job", "Literal", "Mcp", "NotRequired", "Prompt", "ResultType", "Role",
    "Team", "TypedDict", "WholeNumber", "add", "and_bits", "apply", "apply_member", "apply_to", "async_generator",
    "both", "call", "caught", "class_of", "coalesce", "compare", "count", "count_to_entry", "count_to_length",
    "current_case", "decrement", "delegate", "divide", "either", "end_walk", "equal", "expect", "expect_failure",
    "export", "fail_walk", "fill", "generator", "get", "give_score", "given", "greater", "greater_equal", "has",
    "increment", "indexed", "instance_of", "invert_bits", "invoke", "invoke_found", "iterate", "keys", "length",
    "less", "less_equal", "live", "multiply", "named", "needs", "negate", "new", "note_misses", "nullish", "number",
    "on", "open_object", "or_bits", "output", "peek", "peers", "playbook", "power", "put", "put_last",
    "python_file", "query", "read_early", "regex", "registry", "remainder", "remote_agent", "remove",
    "require_function", "run", "same", "send", "server", "settle", "shift_left", "shift_right", "shift_unsigned",
    "skill", "skill_folder", "spread", "start", "subtract", "template", "text", "thrown", "tool", "truth",
    "type_of", "undefined", "unpack", "walk", "with_types", "without", "xor_bits",
]  # fmt: skip
