"""Events to spans: their tree, what they tell, and what they keep to themselves."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind, StatusCode

import koi_lang
from koi_lang.events import (
    Event,
    EventData,
    HandlerEnded,
    HandlerStarted,
    ModelAnswered,
    ModelAsked,
    RetryStarted,
    RunEnded,
    RunStarted,
)
from koi_lang.otel import conventions
from tests.otel.collecting import lines_of, spans_of
from tests.projects import Project
from tests.running import run_file

DESK = """
    role Worker { can execute }
    role Chief { can delegate }
    agent Clerk : Worker {
      on look(args: { topic: string }) { playbook "Look up {{args.topic}}." }
    }
    team Desk { clerk: Clerk }
    agent Lead : Chief {
      uses team Desk
      on start(args: { topic: string }) { playbook "Arrange for {{args.topic}}." }
    }
    run Lead.start({ topic: "hunter2" })
    """
ANSWERS = {
    "Arrange for": [
        {"id": "a", "actionType": "delegate", "intent": "clerk::look", "data": {"topic": "tea"}},
        {"intent": "return", "data": "done"},
    ],
    "Look up": [{"intent": "return", "data": "found"}],
}
TREE = [
    "invoke_workflow program",
    "  invoke_agent Lead",
    "    chat scripted",
    "    execute_tool clerk::look",
    "      invoke_agent Clerk",
    "        chat scripted",
    "        execute_tool return",
    "    chat scripted",
    "    execute_tool return",
]


def told(*happened: tuple[EventData, Sequence[str]], recalled: int = 0) -> list[Event]:
    """Events of a run, a second apart, of which the first ones happened in an earlier part of it."""
    return [
        Event(number, float(number), "r1", "Lead", data, tuple(path), recalled=number <= recalled)
        for number, (data, path) in enumerate(happened, 1)
    ]


def span(spans: Sequence[ReadableSpan], name: str) -> ReadableSpan:
    """The first one of a name."""
    return next(span for span in spans if span.name == name)


def attributes(spans: Sequence[ReadableSpan], name: str) -> dict[str, Any]:
    """Those of the first span of a name."""
    return dict(span(spans, name).attributes or {})


def test_a_run_is_a_tree(project: Project) -> None:
    """Delegates are inside the actions that asked them, models and actions inside their agents."""
    outcome = run_file(project.write("desk.koi", DESK), project.folder, answers=ANSWERS)
    spans = spans_of(outcome.events)

    assert TREE == lines_of(spans)
    assert {SpanKind.CLIENT} == {each.kind for each in spans if each.name.startswith("chat")}
    assert attributes(spans, "execute_tool clerk::look")["gen_ai.tool.call.id"] == "a"


def test_forty_delegates_at_once_are_forty_branches(project: Project) -> None:
    """Each request hangs below its own agent, each agent below the handler that asked it, all in one trace."""
    text = """
        role Worker { can execute, can delegate }
        agent Clerk : Worker { on look(args: { n: number }) { playbook "Look at {{args.n}}." } }
        team Desk { clerk: Clerk }
        agent Lead : Worker {
          uses team Desk
          on start(args: Json) {
            const numbers = Array.from({ length: 40 }, (_, n) => n)
            await Promise.all(numbers.map(async n => await send peers.event("look").any()({ n })))
          }
        }
        run Lead.start({})
        """
    answers = {f"Look at {n}.": [{"intent": "return", "data": n}] for n in range(40)}
    spans = spans_of(run_file(project.write("many.koi", text), project.folder, answers=answers).events)
    names = {each.context.span_id: each.name for each in spans if each.context is not None}
    edges = Counter((names[each.parent.span_id], each.name) for each in spans if each.parent is not None)
    asked = [each.parent.span_id for each in spans if each.name == "chat scripted" and each.parent is not None]

    assert edges == {
        ("invoke_workflow program", "invoke_agent Lead"): 1,
        ("invoke_agent Lead", "invoke_agent Clerk"): 40,
        ("invoke_agent Clerk", "chat scripted"): 40,
        ("invoke_agent Clerk", "execute_tool return"): 40,
    }
    assert len(set(asked)) == 40
    assert len({each.context.trace_id for each in spans if each.context is not None}) == 1


def test_a_request_tells_what_it_took() -> None:
    """Provider, model, tokens by kind, money, and why the answer ended."""
    answered = ModelAnswered(
        "mistral/large", {"input": 9, "output": 4, "cached": 3, "thinking": 2}, 0.25, stop="length"
    )
    spans = spans_of(told((RunStarted(), ()), (ModelAsked("mistral/large"), ["model#1"]), (answered, ["model#1"])))

    assert attributes(spans, "chat large") == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "mistral_ai",
        "gen_ai.request.model": "large",
        "gen_ai.response.model": "large",
        "gen_ai.agent.name": "Lead",
        "gen_ai.conversation.id": "r1",
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "gen_ai.response.finish_reasons": ("length",),
        "koi.usage.cost_usd": 0.25,
        "koi.run.id": "r1",
        "koi.path": "model#1",
    }


def test_names_are_those_of_the_conventions() -> None:
    """What begins with `gen_ai.` is an attribute of the conventions, and so is the class of an error."""
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    ours = {value for value in vars(conventions).values() if isinstance(value, str) and value.startswith("gen_ai.")}

    assert len(ours) > 15
    assert ours - known == set()
    assert conventions.ERROR == error_attributes.ERROR_TYPE
    assert {"chat", "embeddings", "execute_tool", "invoke_agent", "invoke_workflow"} <= {
        each.value for each in gen_ai_attributes.GenAiOperationNameValues
    }


async def collect(project: Project) -> list[Event]:
    """All that a session tells, with what is given and what comes of it."""
    seen: list[Event] = []
    model = koi_lang.ScriptedModel(ANSWERS)
    async with koi_lang.open(project.write("desk.koi", DESK), model=model) as program:
        program.subscribe(seen.append)
        await program.agent("Lead").start(topic="hunter2")
    return seen


def test_contents_are_kept_back(project: Project) -> None:
    """Neither prompts nor answers, arguments nor results are in spans, unless that is asked for."""
    spans = spans_of(asyncio.run(collect(project)))
    values = json.dumps([dict(each.attributes or {}) for each in spans])

    assert [text for text in ("hunter2", "tea", "found", "done", "Arrange") if text in values] == []


def test_contents_are_told_where_they_are_wanted(project: Project) -> None:
    """Then a request has all its messages, and secrets are out of them."""
    spans = spans_of(asyncio.run(collect(project)), has_content=True)
    asked = [dict(each.attributes or {}) for each in spans if each.name == "chat scripted"]
    messages = [json.loads(each["gen_ai.input.messages"]) for each in asked]
    texts = json.dumps([dict(each.attributes or {}) for each in spans])

    assert [2, 2, 4] == [len(each) for each in messages]
    assert "***" in messages[0][0]["parts"][0]["content"]
    assert "Arrange for" in messages[0][1]["parts"][0]["content"]
    assert "hunter2" not in texts
    assert json.loads(asked[-1]["gen_ai.output.messages"])[0]["finish_reason"] == "stop"
    assert json.loads(attributes(spans, "execute_tool clerk::look")["gen_ai.tool.call.arguments"]) == {
        "data": {"topic": "tea"}
    }
    assert "done" in attributes(spans, "invoke_agent Lead")["gen_ai.output.messages"]


def test_calls_of_a_session_are_traces_of_their_own(project: Project) -> None:
    """A session may last for days; what belongs together is found by the conversation."""
    spans = spans_of(asyncio.run(collect(project)))

    assert [line[2:] for line in TREE[1:]] == lines_of(spans)
    assert len({(each.attributes or {})["gen_ai.conversation.id"] for each in spans}) == 1


def test_a_failure_is_told_where_it_happened(project: Project) -> None:
    """The action has the class of its error, and every handler around it that it ended."""
    text = """
        role Worker { can execute, can delegate }
        agent Sub : Worker { on fail(args: Json) { throw new TypeError("hunter2 is no number") } }
        team Desk { sub: Sub }
        agent Main : Worker {
          uses team Desk
          on start(args: Json) { await send peers.event("fail").any()({}) }
        }
        run Main.start({})
        """
    spans = spans_of(run_file(project.write("failing.koi", text), project.folder).events)
    failed = {each.name: each.status.description for each in spans if each.status.status_code is StatusCode.ERROR}

    assert set(failed) == {"invoke_agent Sub", "invoke_agent Main", "invoke_workflow program"}
    assert "*** is no number" in str(failed["invoke_agent Sub"])


def test_attempts_are_events_of_their_request() -> None:
    """What is tried again is told at the place where it is tried."""
    retry = RetryStarted("openai/gpt", attempt=1, tries=3, delay_s=0.5, error="status 500")
    start, end = HandlerStarted("start"), HandlerEnded("start")
    spans = spans_of(
        told((RunStarted(), ()), (start, ["Lead.start#1"]), (retry, ["Lead.start#1"]), (end, ["Lead.start#1"]))
    )
    (event,) = span(spans, "invoke_agent Lead").events

    assert (event.name, dict(event.attributes or {})) == (
        "koi.retry_started",
        {"koi.attempt": 1, "koi.tries": 3, "koi.delay_s": 0.5, "koi.error": "status 500"},
    )


def test_what_was_cancelled_ends_with_what_is_around_it() -> None:
    """A request that nobody waits for any more has no event of its own."""
    spans = spans_of(
        told(
            (RunStarted(), ()),
            (HandlerStarted("start"), ["Lead.start#1"]),
            (ModelAsked("a/b"), ["Lead.start#1", "model#1"]),
            (HandlerEnded("start"), ["Lead.start#1"]),
            (RunEnded(ok=True), ()),
        )
    )

    assert ["chat b", "invoke_agent Lead", "invoke_workflow program"] == [each.name for each in spans]
    assert attributes(spans, "chat b")["koi.cancelled"] is True
    assert "koi.cancelled" not in attributes(spans, "invoke_agent Lead")


def test_what_is_gone_over_again_is_not_told_twice() -> None:
    """Of a run that is resumed only what is new becomes spans, and what is around it."""
    spans = spans_of(
        told(
            (RunStarted(), ()),
            (HandlerStarted("start"), ["Lead.start#1"]),
            (ModelAsked("a/b"), ["Lead.start#1", "model#1"]),
            (ModelAnswered("a/b", {"input": 1, "output": 1}, None), ["Lead.start#1", "model#1"]),
            (ModelAsked("a/b"), ["Lead.start#1", "model#2"]),
            (ModelAnswered("a/b", {"input": 1, "output": 1}, None), ["Lead.start#1", "model#2"]),
            (HandlerEnded("start"), ["Lead.start#1"]),
            (RunEnded(ok=True), ()),
            recalled=4,
        )
    )

    assert ["invoke_workflow program", "  invoke_agent Lead", "    chat b"] == lines_of(spans)
    assert attributes(spans, "chat b")["koi.path"] == "Lead.start#1/model#2"


@pytest.mark.parametrize("text", ["x" * 200_000])
def test_long_texts_are_cut(text: str) -> None:
    """Collectors refuse requests that are too large."""
    spans = spans_of(
        told((RunStarted(), ()), (HandlerStarted("s", {"a": text}), ["s#1"]), (HandlerEnded("s"), ["s#1"])),
        has_content=True,
    )

    assert len(attributes(spans, "invoke_agent Lead")["gen_ai.input.messages"]) < 40_000
