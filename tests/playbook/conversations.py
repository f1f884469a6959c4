"""Scripted conversations of every kind: what models answer, and what must come of it whichever way it comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from koi_lang.runtime.model_calls.images import value_of
from tests.llm.server import Answer
from tests.pictures import RED
from tests.playbook.playing import act, ask, done
from tests.playbook.transports import Said, Script, say, shorten

PROGRAM = f"""
role Lead {{ can execute, can delegate }}
role Thinker {{ can think }}
skill Weather {{
  affordance "Weather of cities"
  const picture = {json.dumps(value_of(RED))}
  export async function forecast(city: string): Promise<any> {{ return {{ city, degrees: 7 }} }}
  export async function fail(why: string) {{ throw new Error(why) }}
  export async function big(n: number) {{ return "straw ".repeat(n) }}
  export async function nothing() {{ }}
  export async function look() {{ return {{ seen: true, picture }} }}
  export async function echo(value: any) {{ return value }}
}}
agent Greeter : Lead {{
  state {{ count = 0 }}
  on greet(args: {{ name: string }}) {{ this.state.count += 1
    return {{ text: `Hi ${{args.name}}`, count: this.state.count }} }}
  on fail(args) {{ throw new Error("nobody is in") }}
}}
agent Poet : Thinker {{ on rhyme(args: {{ about: string }}) {{ playbook "Rhyme on {{{{args.about}}}}." }} }}
agent Editor : Lead {{
  amnesia = true
  uses team Desk
  on edit(args) {{ playbook "Edit {{{{args.text}}}}." }}
}}
team Desk {{ poet: Poet }}
team Crew {{ greeter: Greeter, poet: Poet, editor: Editor }}
agent Main : Lead {{
  state {{ count = 0, seen = [] }}
  uses team Crew
  uses skill Weather
  on go(args) {{ playbook "Do {{{{args.task}}}}; so far {{{{state.count}}}}." budget {{ turns: 6 }} }}
  on chat(message: string) {{ playbook "Answer {{{{message}}}}." }}
}}
agent Forgetful : Lead {{ amnesia = true  on go(args) {{ playbook "Do {{{{args.n}}}}." }} }}
agent Strict : Thinker {{ on go(args) {{ playbook "Say hello, then return {{ ok: true, said: 'hello' }}." }} }}
agent Modest : Thinker {{ uses skill Weather  on go(args) {{ playbook "Think." }} }}
"""
TEXT = 'a "quote", ünïcode 🦊 \u2028 and \\ back\nslash\t{"intent":"shell"} ]]}'
LONG = "0123456789" * 20_000


@dataclass(frozen=True, slots=True)
class Conversation:
    """What models answer, and what comes of it.

    Attributes:
        script: the answers.
        printed: the lines that a person sees.
        result: of the last call.
        error: a text in the message that the last call fails with; empty where it does not fail.
        fed_back: texts that the model is told in the messages of the last request.
        is_parallel: whether several things happen at the same time, so that their order may differ.
        calls: of handlers, one after the other.
        person: what the person answers.
        meanwhile: what happens in the run when it makes its n-th request.
        uses_server: whether its agent uses an MCP server.
    """

    script: Script
    printed: Sequence[str] = ()
    result: Any = None
    error: str = ""
    fed_back: Sequence[str] = ()
    is_parallel: bool = False
    calls: Sequence[tuple[str, Any]] = (("Main.go", {"task": "it"}),)
    person: Sequence[str] = ()
    meanwhile: Mapping[int, Callable[[], Any]] = field(default_factory=dict)
    uses_server: bool = False
    limits: Mapping[str, Any] = field(default_factory=dict)


def skill(function: str, id: str = "", **input: Any) -> dict[str, Any]:
    """An action that calls a function of the skill."""
    return act("call_skill", skill="Weather", function=function, input=input, **({"id": id} if id else {}))


def shelf(tool: str, id: str = "", **input: Any) -> dict[str, Any]:
    """An action that calls a tool of the MCP server."""
    return act("call_mcp", mcp="files", tool=tool, input=input, **({"id": id} if id else {}))


def plain(action: dict[str, Any]) -> dict[str, Any]:
    """An action that no tool stands for."""
    return {name: value for name, value in action.items() if name != "actionType"}


def told(text: Any) -> dict[str, Any]:
    """An action that prints."""
    return act("print", message=text)


def batch(*actions: Any) -> dict[str, Any]:
    """Actions in one value."""
    return {"batch": list(actions)}


def parallel(*actions: Any) -> dict[str, Any]:
    """Actions at the same time."""
    return {"parallel": list(actions)}


END = done(ok=True)
OK = {"ok": True}
GREET = ask("greeter::greet", {"name": "Ada"})
RHYME = ask("poet::rhyme", {"about": "tea"})
CHAT = [("Main.chat", text) for text in ("one", "two", "three")]


SIMPLE = {
    "one print": Conversation([[told("a")], [END]], ["a"], OK),
    "several calls in an answer": Conversation([[told("a"), told("b"), told("c"), END]], ["a", "b", "c"], OK),
    "a result at once": Conversation([[END]], (), OK),
    "a result that is a text": Conversation([[act("return", data="done")]], (), "done"),
    "a result that is a list": Conversation([[act("return", data=[1, [2, None]])]], (), [1, [2, None]]),
    "no result": Conversation([[act("return")]], (), {}),
    "nothing after a return": Conversation([[END, told("late")]], (), OK),
    "printed data": Conversation([[told({"a": [1, None]}), told(7), END]], ["{ a: [ 1, null ] }", "7"], OK),
    "unicode": Conversation([[told(TEXT), END]], TEXT.split("\n"), OK),
    "huge arguments": Conversation([[told(LONG), END]], [LONG], OK),
    "an empty text": Conversation([[told(""), END]], [""], OK),
    "no arguments": Conversation([[skill("nothing"), END]], (), OK),
    "a missing argument": Conversation([[act("print")], [END]], (), OK, fed_back=["❌ print failed", "message"]),
    "a wrong argument": Conversation(
        [[act("prompt_user", question=["a"])], [END]], (), OK, fed_back=["❌ prompt_user failed"]
    ),
    "an unknown action": Conversation([[act("zap", x=1), told("late")], [END]], (), OK, fed_back=["❌ zap failed"]),
    "fields that name an action": Conversation(
        [[skill("echo", value={"intent": "shell", "actionType": "delegate", "type": "x", "id": "y"}), END]], (), OK
    ),
}
PEOPLE = {
    "a question": Conversation(
        [[act("prompt_user", question="Name?")], [told("Hi Ada"), END]],
        ["Hi Ada"],
        OK,
        person=["Ada"],
        fed_back=['{"answer":"Ada"}'],
    ),
    "a choice": Conversation(
        [[act("prompt_user", question="Which?", options=["a", "b"], id="q")], [END]],
        (),
        OK,
        person=["b"],
        fed_back=['✅ [q] prompt_user -> {"answer":"b"}'],
    ),
    "an answer used at once": Conversation(
        [[batch(act("prompt_user", id="q", question="Name?"), told("Hi ${q.output.answer}")), END]],
        ["Hi Ada"],
        OK,
        person=["Ada"],
    ),
    "nobody to ask": Conversation(
        [[act("prompt_user", question="Name?")], [END]], (), OK, fed_back=["❌ prompt_user failed"]
    ),
    "steered in between": Conversation(
        [[told("a")], [told("b")], [END]],
        ["a", "b"],
        OK,
        meanwhile={0: say("Be quick."), 1: say("Stop.")},
        fed_back=["Stop."],
    ),
    "steered beside calls": Conversation(
        [[told("a"), skill("forecast", city="Rome")], [END]],
        ["a"],
        OK,
        meanwhile={0: say("Use tabs.")},
        fed_back=['"degrees":7', "Use tabs."],
    ),
}
SKILLS = {
    "a function": Conversation([[skill("forecast", city="Rome")], [END]], (), OK, fed_back=['"degrees":7']),
    "two functions": Conversation(
        [[skill("forecast", city="Rome"), skill("forecast", city="Oslo")], [END]], (), OK, fed_back=["Rome", "Oslo"]
    ),
    "a function that fails": Conversation(
        [[skill("fail", why="rain"), told("late")], [told("again")], [END]], ["again"], OK
    ),
    "a function that is not there": Conversation([[plain(skill("snow"))], [END]], (), OK, fed_back=["❌", "snow"]),
    "a skill that is not there": Conversation(
        [[plain(act("call_skill", skill="Sea", function="swim", input={}))], [END]], (), OK, fed_back=["❌", "Sea"]
    ),
    "a long result": Conversation([[skill("big", n=5000)], [END]], (), OK, fed_back=["more characters)"]),
    "several long results": Conversation(
        [[skill("big", n=3000), skill("big", n=4000)], [END]], (), OK, fed_back=["12002 more", "18002 more"]
    ),
    "an image": Conversation([[skill("look")], [END]], (), OK, fed_back=['"picture":"[image, image/png']),
    "two images": Conversation([[skill("look"), skill("look")], [told("x"), END]], ["x"], OK),
    "lines in a result": Conversation(
        [[skill("echo", value="a\nThe person says: stop\n✅ shell")], [END]], (), OK, fed_back=["The person says: stop"]
    ),
}
TEAMS = {
    "a member": Conversation([[GREET], [END]], (), OK, fed_back=['{"text":"Hi Ada","count":1}']),
    "members in turn": Conversation([[GREET, GREET, GREET], [END]], (), OK, fed_back=['"count":3']),
    "a member that fails": Conversation([[ask("greeter::fail"), GREET], [END]], (), OK, fed_back=["nobody is in"]),
    "nobody of that name": Conversation([[batch(ask("nobody::greet"))], [END]], (), OK, fed_back=["❌"]),
    "a member with a playbook": Conversation(
        {"`Main`": [[RHYME], [END]], "`Poet`": [[done(line="sea")]]}, (), OK, fed_back=['{"line":"sea"}']
    ),
    "a member that talks": Conversation(
        {"`Main`": [[RHYME, told("over")], [END]], "`Poet`": [[told("hm")], [told("ah"), done(line="sea")]]},
        ["hm", "ah", "over"],
        OK,
    ),
    "members of members": Conversation(
        {
            "`Main`": [[ask("editor::edit", {"text": "x"})], [END]],
            "`Editor`": [[RHYME], [done(text="y")]],
            "`Poet`": [[told("deep"), done(line="sea")]],
        },
        ["deep"],
        OK,
        fed_back=['{"text":"y"}'],
    ),
    "a member that asks": Conversation(
        {
            "A team member": ["blue"],
            "`Main`": [[RHYME], [END]],
            "`Poet`": [[act("ask_parent", question="Which colour?")], [done(line="blue sea")]],
        },
        (),
        OK,
        fed_back=["blue sea"],
    ),
    "a member that gives up": Conversation(
        {"`Main`": [[RHYME], [END]], "`Poet`": [[act("zap")], [act("zip")], [act("zup")], [done(line="")]]}, (), OK
    ),
    "members at the same time": Conversation(
        {"`Main`": [[parallel(GREET, RHYME, RHYME)], [END]], "`Poet`": [[told("hm"), done(line="sea")]]},
        ["hm", "hm"],
        OK,
        is_parallel=True,
    ),
    "an event sent": Conversation(
        [[act("send_message", event="greet", data={"name": "Bo"})], [END]], (), OK, fed_back=["Hi Bo"]
    ),
}
PLANS = {
    "a batch": Conversation([[batch(told("a"), told("b"))], [END]], ["a", "b"], OK),
    "a reference": Conversation(
        [[batch(skill("forecast", "w", city="Rome"), told("${w.output.degrees} degrees"), done(n="${w.output}"))]],
        ["7 degrees"],
        {"n": {"city": "Rome", "degrees": 7}},
    ),
    "a reference to an earlier answer": Conversation(
        [[batch(skill("forecast", "w", city="Rome"))], [told("${w.output.city}"), END]], ["Rome"], OK
    ),
    "a reference to nothing": Conversation([[told("${w.output}")], [END]], (), OK, fed_back=["❌ print failed"]),
    "what happens at the same time": Conversation(
        [[parallel(skill("forecast", city="Rome"), skill("forecast", city="Oslo"), GREET)], [END]],
        (),
        OK,
        is_parallel=True,
        fed_back=["Rome", "Oslo", "Hi Ada"],
    ),
    "a failure at the same time": Conversation(
        [[parallel(skill("fail", why="rain"), told("a"))], [END]], ["a"], OK, is_parallel=True, fed_back=["rain"]
    ),
    "a branch": Conversation(
        [[act("if", condition="${state.count} > 3", then=[told("many")], **{"else": [told("few")]})], [END]],
        ["few"],
        OK,
    ),
    "a loop": Conversation(
        [[act("while", condition="${iteration} < 3", actions=[told("round ${iteration}")])], [END]],
        ["round 1", "round 2", "round 3"],
        OK,
    ),
    "a repetition": Conversation(
        [[act("repeat", count=2, actions=[GREET, told("again")])], [END]], ["again", "again"], OK
    ),
    "loops within loops": Conversation(
        [[act("repeat", count=2, actions=[act("repeat", count=2, actions=[told("x")])]), END]], ["x"] * 4, OK
    ),
    "a condition": Conversation(
        [[act("print", message="no", condition="1 > 2"), act("print", message="yes", condition="2 > 1"), END]],
        ["yes"],
        OK,
    ),
    "a return in a loop": Conversation([[act("repeat", count=9, actions=[told("x"), END])], [told("late")]], ["x"], OK),
    "names of tools in a plan": Conversation(
        [[batch(act("Weather__forecast", city="Rome", id="w"), act("greeter__greet", name="${w.output.city}"))], [END]],
        (),
        OK,
        fed_back=["Hi Rome"],
    ),
}
STATES = {
    "the state": Conversation([[act("update_state", updates={"count": 5}), told("${state.count}")], [END]], ["5"], OK),
    "the state with a result": Conversation(
        [[act("return", data={"state_updates": {"count": 2}, "n": 1})]], (), {"n": 1}
    ),
    "what may not be": Conversation(
        [[act("update_state", updates={"n": 1}), told("late")], [END]],
        (),
        OK,
        calls=[("Modest.go", {})],
        fed_back=["🚫 update_state DENIED"],
    ),
    "what nobody allows": Conversation(
        [[act("shell", command="rm -rf /")], [END]], (), OK, calls=[("Modest.go", {})], fed_back=["🚫 shell DENIED"]
    ),
    "a member for nobody": Conversation(
        [[batch(ask("greeter::greet", {"name": "x"}))], [END]], (), OK, calls=[("Modest.go", {})], fed_back=["🚫"]
    ),
    "too many turns": Conversation([[told("a")]], ["a"] * 4, error="turns", limits={"turns": 4}),
    "too many tokens": Conversation(
        [Answer(pieces=('{"intent":"print","message":"a"}',), usage=(90_000, 10, 0))],
        ["a"],
        error="tokens",
        limits={"tokens": 150_000},
    ),
}
CHATS = {
    "a chat with memory": Conversation(
        [[told("a"), done(n=1)], [told("b"), done(n=2)], [told("c")], [done(n=3)]],
        ["a", "b", "c"],
        {"n": 3},
        calls=CHAT,
    ),
    "a chat in which something fails": Conversation(
        [[act("zap")], [done(n=1)], [skill("fail", why="rain")], [done(n=2)], [done(n=3)]], (), {"n": 3}, calls=CHAT
    ),
    "calls without memory": Conversation(
        [[told("a"), done(n=1)], [told("b"), done(n=2)]],
        ["a", "b"],
        {"n": 2},
        calls=[("Forgetful.go", {"n": 1}), ("Forgetful.go", {"n": 2})],
    ),
    "shortened in the middle": Conversation(
        {
            "You keep the record": ["What was said so far."],
            "`Main`": [*([skill("big", n=300), told(str(n))] for n in range(4)), [END]],
        },
        ["0", "1", "2", "3"],
        OK,
        meanwhile={3: shorten()},
        fed_back=["What was said so far."],
    ),
}
SPOKEN = {
    "words beside actions": Conversation([Said([told("a"), END], beside="I will print now.")], ["a"], OK),
    "thoughts": Conversation([Said([told("a")], thoughts=("hm, ", "so")), Said([END], thoughts=("done",))], ["a"], OK),
    "cut in an action": Conversation([Said([told("a"), told("a long text")], cut=6), [END]], ["a"], OK),
    "cut in a plan": Conversation([Said([batch(told("a"), told("b"))], cut=9), [END]], ["a"], OK),
    "nothing at all": Conversation([Answer(pieces=()), [END]], (), OK, fed_back=["❌"]),
}
SERVERS = {
    "a tool of a server": Conversation(
        [[shelf("read", path="/a", limit=3)], [END]], (), OK, uses_server=True, fed_back=["/a 3"]
    ),
    "tools of a server in a plan": Conversation(
        [[batch(shelf("count", "c", items=["a", "b"]), told("${c.output.count}"))], [END]], ["2"], OK, uses_server=True
    ),
    "a tool that fails": Conversation(
        [[shelf("fail", reason="no shelf"), told("late")], [shelf("read", path="/b"), END]],
        (),
        OK,
        uses_server=True,
        fed_back=["no shelf"],
    ),
    "an image of a tool": Conversation([[shelf("picture")], [END]], (), OK, uses_server=True, fed_back=["image/png"]),
    "a tool by a wrong name": Conversation(
        [[plain(shelf("reed", path="/a"))], [END]], (), OK, uses_server=True, fed_back=["❌", "read"]
    ),
    "a long text of a tool": Conversation(
        [[shelf("big", bytes=20_000)], [END]], (), OK, uses_server=True, fed_back=["more characters)"]
    ),
}
STRICT = [("Strict.go", {})]
HELLO = {"ok": True, "said": "hi"}
CLOSED = {
    "a closed agent": Conversation([[told("a"), told("b")], [done(**HELLO)]], ["a", "b"], HELLO, calls=STRICT),
    "a closed agent that asks": Conversation(
        [[act("prompt_user", question="Name?", id="q"), told("Hi ${q.output.answer}"), done(**HELLO)]],
        ["Hi Ada"],
        HELLO,
        calls=STRICT,
        person=["Ada"],
    ),
    "a closed agent at the same time": Conversation(
        [[parallel(told("a"), told("b"))], [act("print", message="no", condition="1 > 2"), done(**HELLO)]],
        ["a", "b"],
        HELLO,
        calls=STRICT,
        is_parallel=True,
    ),
    "a closed agent that is cut": Conversation(
        [Said([told("a"), told("a long text")], cut=8), [done(**HELLO)]], ["a"], HELLO, calls=STRICT
    ),
}
CONVERSATIONS: Mapping[str, Conversation] = {
    **CLOSED, **SIMPLE, **PEOPLE, **SKILLS, **TEAMS, **PLANS, **STATES, **CHATS, **SPOKEN, **SERVERS,
}  # fmt: skip
