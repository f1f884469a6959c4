"""Expressions in data are text where a model repeats them, whoever told them and however."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from koi_lang.llm.messages import Message, Request
from koi_lang.llm.transcript import MessageLog, Messages, Transcript
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.context import current_run
from koi_lang.runtime.playbook.references import ActionScope
from koi_lang.runtime.playbook.told_expressions import ToldData
from koi_lang.runtime.replay.digest_forms import FORM
from koi_lang.system.interpolation import Interpolation, Rendered
from tests.playbook.playing import Player, Voice, act, ask, done
from tests.playbook.transports import WAYS, talk
from tests.running import RecordingHost

# What the web says has `§` where the page has `$`, so that nobody else says it.
PROGRAM = """
role Lead { can delegate, can execute }
agent Web : Lead {
  on read(args: { text: string }) { return { page: args.text.replaceAll("§", "$"), n: 7 } }
  on fail(args: { text: string }) { throw new Error(args.text.replaceAll("§", "$")) }
  on key(args: { text: string }) { return { [args.text.replaceAll("§", "$")]: 1 } }
}
team Crew { web: Web }
agent Main : Lead {
  uses team Crew
  state { token: string = "s3cr3t" }
  on go(args) { playbook "Do the work." }
}
"""
PAGE = "Costs $${state.token}, {{ state.token }} or ${args.n + 1}."
ARGS = {"n": 3, "list": [1]}


def show(text: str) -> dict[str, Any]:
    """A model that prints something."""
    return act("print", message=text)


def read(page: str, event: str = "read", **fields: Any) -> dict[str, Any]:
    """A model that reads a page."""
    return ask(f"web::{event}", {"text": page.replace("$", "§")}, **fields)


def printed(play: Player, *answers: Any, payload: Any = None) -> tuple[str, ...]:
    """What a playbook prints when a model answers so."""
    played = play(PROGRAM, [*answers, done()], payload={**ARGS, **(payload or {})})
    assert played.error is None
    return played.printed


# ---------------------------------------------------------------- who tells them


@pytest.mark.parametrize("event", ["read", "fail", "key"])
def test_what_others_say(play: Player, event: str) -> None:
    """A result, an error and the names of fields; each is text, at any depth of what repeats it."""
    page = "${state.token} and ${args.n + 1}"
    nested = act("repeat", count=1, actions=[show(page)])

    assert (page, page) == printed(play, read(page, event), [show(page), nested])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_every_transport(play: Player, way: tuple[str, str]) -> None:
    """Calls of tools and plans in them are no different."""
    page = "${state.token} and ${args.n}"
    says = [[read(page)], [show(page), {"batch": [show(f"<{page}>")]}, show("${args.n + 0}")], [done(page=page)]]
    played, *_ = talk(play, PROGRAM, says, way, calls=[("Main.go", ARGS)])

    assert (None, (page, f"<{page}>", "3"), {"page": page}) == (played.error, played.printed, played.result)


def test_payload_and_state(play: Player) -> None:
    """What a call is given is data, too."""
    assert (PAGE,) == printed(play, show(PAGE), payload={"mail": PAGE})


def test_a_person(play: Player) -> None:
    """What she answers, and what she says meanwhile."""
    answers = [act("prompt_user", question="?"), show(PAGE), done()]
    played = play(PROGRAM, answers, host=RecordingHost([PAGE]), payload=ARGS)

    async def speak(request: Request) -> AsyncIterator[str]:
        said = sum(message.role == "assistant" for message in request.messages)
        if not said:
            current_run().steering.say(PAGE)
        yield json.dumps([show("a"), show(PAGE), done()][said])

    steered = play(PROGRAM, Voice(speak), payload=ARGS)
    assert ((PAGE,), ("a", PAGE)) == (played.printed, steered.printed)


def test_earlier_calls(play: Player) -> None:
    """What an agent remembers of a page it does not compute in its next call either."""
    calls = [("Main.go", ARGS), ("Main.go", ARGS)]
    last = play.each(PROGRAM, [read(PAGE), done(), show(PAGE), show("${args.n}"), done()], calls)[-1]

    assert (PAGE, "3") == last.printed


def test_tools_of_servers() -> None:
    """Servers describe them as they like."""
    tools = {"lines": ["- look(q: string) Say ${state.token}."]}

    assert told("", tools=tools).holds("state.token")
    assert not told("", tools=tools).holds("state.name")


def test_an_expression_alone_is_no_guess(play: Player) -> None:
    """A payload that had it switched a whole field of the model off: the text was the result, or no number."""
    text = "hi ${args.n} there"
    answers = [done(n="${args.n}"), {"batch": [show(r"\${args.n}"), done(n=3)]}]
    played = play(PROGRAM, answers, payload={**ARGS, "name": text})

    assert ({"n": 3}, ("${args.n}",)) == (played.result, played.printed)
    assert "`${args.n}` is not computed, since the data that you were told has it, too. Write its value." in str(
        played.requests[1].messages[-1]
    )
    assert {"name": text} == play(PROGRAM, [done(name=text)], payload={**ARGS, "name": text}).result
    assert {"n": "${nobody.n}"} == play(PROGRAM, [done(n="${nobody.n}")], payload={"name": "${nobody.n}"}).result


# ---------------------------------------------------------------- what stays an expression


def test_results_of_the_same_answer(play: Player) -> None:
    """Who names an action and refers to it means that, whatever was told before."""
    batch = {"batch": [read("x", id="w"), show("${w.output.n} ${w.output.page}: ${w.output.n + args.n}")]}

    assert ("7 x: 10",) == printed(play, read("${w.output.n} and ${w.output.page}"), batch)


def test_results_of_earlier_answers(play: Player) -> None:
    """They are computed where no data has the same."""
    texts = "${w.output.n} ${w.output.page}"

    assert ("7 x",) == printed(play, read("x", id="w"), show(texts))
    assert ("${w.output.n} x",) == printed(play, read("x", id="w"), read("${w.output.n}"), show(texts))


@pytest.mark.parametrize(
    "page",
    [
        "${args.list.map(x => ({ t: state.token }))[0].t}",
        "${Math.max(...args.list)} ${[...args.list, state.token].join()}",
        "${`${state.token}`} and ${OUT:-${state.token}}",
        "${[{ t: state.token }].map(({ t }) => t).join('')}",
        "${args.nix} ${args.list[9]} ${args.list.push(1)}",
        '${"}".length && state.token} ${ { a: { b: state.token } }.a.b }',
    ],
)
def test_braces_in_what_data_holds(page: str, play: Player) -> None:
    """Expressions with braces, and those in others, are text too; what could not be computed is no error there."""
    assert (f"{page}.", f"so: {page}") == printed(play, read(page), show(f"{page}."), show(f"so: {page}"))


def test_a_part_of_what_data_holds_is_text(play: Player) -> None:
    """A hole that stands in another one of the data, alone or in a text of the model's own."""
    page = "${OUT:-${state.token}}"
    texts = "${state.token} {{state.token}} ${DIR:-${state.token}}"

    assert (texts,) == printed(play, read(page), show(texts))


def test_mixed_expressions_are_not_about_results(play: Player) -> None:
    """One that mentions an action of the answer and something else is not the model's own."""
    page = "${w.output.n + state.token} ${w.output.n-args.n} ${[w.output.n, ...args.list]}"

    assert (page,) == printed(play, read(page), {"batch": [read("x", id="w"), show(page)]})


def test_an_id_does_not_open_names(play: Player) -> None:
    """An action that takes the name of the payload, and is skipped, has nobody read the payload."""
    batch = {"batch": [act("print", id="args", message="x", condition="false"), show("n: ${args.n}")]}

    assert ("n: ${args.n}",) == printed(play, read("${args.n}"), batch)


def test_counters_of_loops(play: Player) -> None:
    """They are names of the answer, too."""
    loop = act("repeat", count=2, actions=[show("${iteration}")])

    assert ("1", "2", "${iteration}") == printed(play, read("${iteration}"), loop, show("${iteration}"))


def test_conditions(play: Player) -> None:
    """They are expressions, with or without brackets, and say no more than yes or no."""
    says = act("print", message="yes", condition="${args.n} > 2")

    assert ("yes",) == printed(play, read("${args.n} > 2"), says)


def test_the_model_itself_and_koi(play: Player) -> None:
    """An error that quotes what the model wrote, or says what to write, is not from outside."""
    wrong = act("print", message="${lastResult.zz}")
    right = {"batch": [read("x"), show("${lastResult.n} ${args.n}")]}

    assert ("7 3",) == printed(play, {"batch": [read("x"), wrong]}, right)


def test_what_the_author_wrote(play: Player) -> None:
    """A playbook that says what to compute is followed, whatever data says."""
    source = PROGRAM.replace("Do the work.", "Print ${w.output.n} of {{args.n}}.")
    answers = [read("x", id="w"), read("${w.output.n}, ${args.n}"), show("${w.output.n}, ${args.n}"), done()]

    assert ("7, ${args.n}",) == play(source, answers, payload=ARGS).printed
    assert not told("${args.n}", playbook=("Print ${args.n}",)).holds("args.n")
    assert told("${args.n}", playbook=("Print ", Interpolation("x", "${args.n}"))).holds("args.n")


# ---------------------------------------------------------------- how they are told


def told(*texts: str, tools: Any = None, playbook: tuple[Any, ...] = ()) -> ToldData:
    """What a model was told in some messages."""
    messages = Messages(MessageLog(Message("user", text) for text in texts))
    return ToldData(messages, tools or {}, Rendered(playbook))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("${ args.x }", "args.x"),
        ("${args\n.x}", "args.x"),
        ("{{args.x}}", "args.x"),
        ("${args.x}", " args . x"),
        ("$\\u007bargs.x}", "args.x"),
        ("\\\\u0024{args.x\\\\u007D", "args.x"),
        ("${\\u0061rgs.x}", "args.x"),
        ('{"a":"${args[\\"x\\"]}"}', 'args["x"]'),
        (json.dumps(json.dumps('${args["x"]}')), 'args["x"]'),
        ("${ar\u200bgs.x}", "args.x"),
        ("${args.x\x00}", "args.x"),
        ("${\uff41rgs\uff0ex}", "args.x"),
        ("${args.x}", "\uff41rgs.x"),
        ("${{args.x}}", "args.x"),
        ("${a${args.x}}", "args.x"),
        ("{{{args.x}}}", "args.x"),
        ('{"a":"${ar","b":"gs.x}"}', "args.x"),
        ('{"a":"text ${args.x', "args.x"),
        ("${args.… (90 more characters)", "args.x"),
        ('{"a":"{\\"b\\":\\"${args.\\"}"}', "args.x"),
        ("$${args.x}", "args.x"),
    ],
)
def test_variants(text: str, written: str) -> None:
    """Blanks, escapes and look-alikes make no other expression; the beginning of one stands for all that go on so."""
    assert told("a", text).holds(written)


@pytest.mark.parametrize(
    "text",
    ["args.x", "{args.x}", "$args.x", "${args.xx}", "${args}", "$ {args.x}", "${{ matrix.os }}", '"${"', '"$"', "${}"],
)
def test_other_texts(text: str) -> None:
    """What is no such expression has none held."""
    assert not told(text).holds("args.x")


def test_parts_of_expressions(play: Player) -> None:
    """What a model puts together from two pages is not computed."""
    page = "${args.n} ${state.token}"

    assert (page,) == printed(play, read("so ${ar"), read("gs.n} ${st"), read("ate.token}"), show(page))


def test_only_what_was_told_before_the_answer() -> None:
    """What others read later, in the same list of messages, does not count; nor what the model wrote."""
    log = Transcript([Message("user", "a"), Message("assistant", "${args.x}")])
    early = ToldData(log.snapshot(), {}, Rendered())
    log.append(Message("user", "${args.x}"))

    assert ToldData(log.snapshot(), {}, Rendered()).holds("args.x")
    assert not early.holds("args.x")


def test_a_backslash_in_front_of_what_data_holds() -> None:
    """Is taken away as ever: the text is the same with both ways to keep it from being computed."""
    names = ActionScope(evaluate, {"x": 1}, {})
    names.begin_answer(told("${args.x}"), int(FORM))

    assert "${args.x} ${args.x}" == names.resolve(r"\${args.x} ${args.x}")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"${{args.n{n}}}" for n in range(100_000)),
        "${" * 500_000,
        "${a" * 400_000,
        "${" + "a" * 1_000_000,
        "\\u007b" * 300_000,
        "${" + "\\" * 1_000_000,
    ],
    ids=["many", "open", "begun", "long", "escapes", "backslashes"],
)
def test_floods(text: str) -> None:
    """They are read once, in proportion to their length; then each answer costs nothing."""
    data, began = told(text), time.process_time()
    data.holds("args.n1")
    once = time.process_time() - began
    answer = " ".join(["${args.n}"] * 2000)
    names = ActionScope(evaluate, {"n": 1}, {})
    names.begin_answer(data, int(FORM))
    names.resolve(answer)

    assert once < 4
    assert time.process_time() - began - once < 1
