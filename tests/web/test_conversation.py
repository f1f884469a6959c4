"""What the page for people makes of the messages of a run: the same code that the browser runs, in Node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.needs("node")
Ask = Callable[..., Any]
TOP, INNER = ["Writer.chat#1"], ["Writer.chat#1", "researcher::research#1", "Researcher.research#1"]
PROGRAMS = [
    {
        "name": "desk",
        "agents": [
            {"name": "Researcher", "affordance": "Finds facts.", "handlers": [{"name": "research", "affordance": ""}]},
            {"name": "Writer", "affordance": "Writes", "handlers": [{"name": "chat", "affordance": "Write a note."}]},
        ],
    }
]
PLAN = (
    "`Planner` proposes a plan. It is full.\n1. List (notes)\n2. Move\n"
    "Accept it, edit it, or say what is wrong with it."
)


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Asks the code of the page."""
    script = str(Path(__file__).with_name("reduce.mjs"))
    with subprocess.Popen(["node", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def answer(what: str, **given: Any) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"what": what, **given}) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield answer
        process.stdin.close()


def test_a_changed_program_is_told_apart(ask: Ask) -> None:
    """A conversation that does not fit its program has not failed: it says how the program has changed."""
    greeting = {"type": "rpc_ready", "state": "asleep", "changed": "the program has changed since: x"}
    failed = {"type": "session_failed", "code": "program_changed", "error": "the program has changed since: y"}
    shown = [
        ask("reduce", messages=messages) for messages in ([greeting], [greeting, failed], [{**failed, "code": ""}])
    ]

    assert ["x", "y", ""] == [each["changed"].rpartition(" ")[2] for each in shown]
    assert [0, 0, 1] == [len(each["items"]) for each in shown]


def event(type: str, path: list[str], agent: str = "", **fields: Any) -> dict[str, Any]:
    """A message about something that passes."""
    return {"type": "event", "event": {"type": type, "path": path, "agent": agent, **fields}}


def numbered(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """The same as entries of a journal; what passes has no number."""
    made, n = [], 0
    for each in events:
        passes = each["event"]["type"].endswith(("_delta", "partial_result"))
        n += not passes
        made.append(each if passes else {**each, "n": n, "event": {**each["event"], "ts": float(n)}})
    return made


def written(text: str, path: list[str] = TOP, action: str = "print", number: int = 1, **more: Any) -> dict[str, Any]:
    """A piece of a text that a model writes."""
    model = [*path, "model#1"]
    return {**event("output_delta", model, action=action, field="message", number=number, text=text), **more}


CALLED = event("call_started", ["call#1"], name="Writer.chat", args={"message": "tea?"})
ENDED = event("call_ended", ["call#1"], name="Writer.chat", ok=True, result={"done": True})


def told(ask: Ask, *events: dict[str, Any]) -> list[tuple[str, Any]]:
    """The kinds and texts of what stands on the page."""
    items = ask("reduce", messages=numbered(*events), programs=PROGRAMS)["items"]
    return [(item["kind"], item.get("text", item.get("steps"))) for item in items]


def test_a_text_grows_and_is_then_the_one_that_was_said(ask: Ask) -> None:
    """What is printed takes the place of what was written, also where it came out differently."""
    said = event("printed", [*TOP, "print#1", "printed#1"], message="Tea is one plant.")

    assert [("person", "tea?"), ("answer", "Tea is")] == told(ask, CALLED, written("Tea"), written(" is"))
    assert [("person", "tea?"), ("answer", "Tea is one plant.")] == told(ask, CALLED, written("Tea i"), said, ENDED)


def test_missed_pieces_come_as_the_text_so_far(ask: Ask) -> None:
    """After a break a text is not told twice."""
    assert ("answer", "Tea is one") == told(ask, CALLED, written("Tea"), written("Tea is one", so_far=True))[-1]


def test_an_attempt_that_came_to_nothing_is_not_shown(ask: Ask) -> None:
    """A text that will not be said goes away."""
    assert [("person", "tea?")] == told(ask, CALLED, written("Te"), event("answer_discarded", [*TOP, "model#2"]))


def test_what_a_delegate_returns_is_not_for_people(ask: Ask) -> None:
    """An agent's answer to another one is no message; that it works is told by what it is for."""
    started = event("handler_started", INNER, "Researcher", event="research")
    shown = told(ask, CALLED, started, written("a", INNER, "return"), event("handler_ended", INNER, "Researcher"))

    assert [("person", "tea?"), ("work", [["Researcher: finds facts", "done", ""]])] == shown


def test_who_prints_nothing_has_answered_with_its_result(ask: Ask) -> None:
    """A text, alone or as the only field, is a message, data is a table; after something printed neither is."""
    text = event("call_ended", ["call#1"], ok=True, result={"answer": "four"})
    said = event("printed", [*TOP, "print#1", "printed#1"], message="x")

    assert ("answer", "four") == told(ask, CALLED, written("fo", action="return"), text)[-1]
    assert "result" == told(ask, CALLED, ENDED)[-1][0]
    assert ("answer", "x") == told(ask, CALLED, said, ENDED)[-1]


def grown(value: Any, path: list[str] = TOP) -> dict[str, Any]:
    """The part of a result that has arrived."""
    return event("partial_result", [*path, "model#1"], value=value)


def test_a_result_grows_in_its_place(ask: Ask) -> None:
    """The part that has arrived stands as data, where the result then stands; its texts are not shown beside it."""
    text, part = written("All", action="return"), {"title": "All about"}
    whole = {"title": "All about tea", "parts": ["leaves"]}
    said = event("printed", [*TOP, "print#1", "printed#1"], message="x")
    growing = (CALLED, text, grown(part), text)
    ends = (
        (),
        (event("call_ended", ["call#1"], ok=True, result=whole),),
        (event("call_ended", ["call#1"], ok=True, result=part),),
        (event("call_ended", ["call#1"], ok=False, error="no"),),
        (event("answer_discarded", [*TOP, "model#2"]),),
    )
    items = [ask("reduce", messages=numbered(*growing, *end), programs=PROGRAMS)["items"][1:] for end in ends]
    shown = [[(item["kind"], item.get("value"), item.get("isGrowing")) for item in each] for each in items]

    assert [("result", part, True)] == shown[0]
    assert [("result", whole, False)] == shown[1]
    assert ("answer", "All about") == (items[2][0]["kind"], items[2][0]["text"])
    assert ["failure"] == [item["kind"] for item in items[3]]
    assert [] == items[4]
    assert "answer" == told(ask, CALLED, said, grown(part))[-1][0]
    assert "person" == told(ask, CALLED, grown(part, INNER))[-1][0]


def test_entries_that_were_seen_are_passed_over(ask: Ask) -> None:
    """The same entries twice give the same page as once."""
    messages = numbered(CALLED, event("printed", [*TOP, "printed#1"], message="x"), ENDED)
    once, twice = (ask("reduce", messages=messages * times) for times in (1, 2))

    assert (once, 3, False) == (twice, once["last"], once["busy"])


def test_stopped_and_failed_calls_say_so(ask: Ask) -> None:
    """What the person ended is no failure, and what failed is told with what helps."""
    stopped = event("call_ended", ["call#1"], ok=False, aborted=True)
    failed = event("call_ended", ["call#1"], ok=False, error="no `OPENAI_API_KEY`", help="Set it.")
    unreached = [
        event("model_failed", [*TOP, "model#1"], **{"class": name}) for name in ("RequestError", "LimitReachedError")
    ]

    assert ("note", "Stopped.") == told(ask, CALLED, written("x"), stopped)[-1]
    assert ("failure", "That did not work.") == told(ask, CALLED, failed)[-1]
    assert [
        ("failure", "The assistant cannot be reached."),
        ("failure", "A limit is reached of what this may cost."),
    ] == [told(ask, CALLED, each, failed)[-1] for each in unreached]


def test_a_stop_keeps_what_was_read(ask: Ask) -> None:
    """A half answer stays, also for those who come later and find it in the journal alone; no other is made of one."""
    stopped = event("call_ended", ["call#1"], ok=False, aborted=True)
    cut = event("model_answered", [*TOP, "model#1"], stop="cut", written={"action": "return", "text": "Tea is"})
    of_colleague = event("model_answered", [*INNER, "m#1"], stop="cut", written={"action": "return", "text": "no"})
    stayed = [("person", "tea?"), ("answer", "Tea is"), ("note", "Stopped.")]

    assert stayed == told(ask, CALLED, written("Tea is", action="return"), cut, stopped)
    assert stayed == told(ask, CALLED, cut, stopped)
    assert [stayed[0], stayed[2]] == told(ask, CALLED, of_colleague, stopped)


def test_requests_are_open_until_somebody_answers(ask: Ask) -> None:
    """A question that another tab has answered is gone, and stands in the conversation with its answer."""
    asked = event("asked", [*TOP, "ask#1"], question="Publish?", options=["yes"])
    request = {"type": "question", "id": "r1", "question": "Publish?", "options": ["yes"], "path": TOP}
    answered = event("answered", [*TOP, "ask#1"], question="Publish?", answer="yes")
    messages = [*numbered(CALLED, asked), request]
    open_, closed = (ask("reduce", messages=[*messages, *more]) for more in ([], numbered(CALLED, asked, answered)[2:]))

    assert (["r1"], []) == ([each["id"] for each in open_["requests"]], closed["requests"])
    assert ("asked", "Publish?", "yes") == tuple(closed["items"][-1][name] for name in ("kind", "text", "answer"))


def test_a_session_says_what_is_open(ask: Ask) -> None:
    """On connecting anew, requests are those that the service tells, and nothing goes on where nothing does."""
    request = {"type": "approval_request", "id": "r1", "what": "run `ls`", "agent": "Writer"}
    queued = event("queue_update", [], steering=[{"id": 1, "text": "shorter"}], follow_up=[])
    before = [*numbered(CALLED, queued), request]
    held = ask("reduce", messages=[*before, {"type": "rpc_ready", "state": "waiting"}, request])
    left = ask("reduce", messages=[*before, {"type": "rpc_ready", "state": "asleep"}])

    assert (1, True, "shorter") == (len(held["requests"]), held["busy"], held["waiting"][0]["text"])
    assert ([], False, True) == (left["requests"], left["busy"], left["isInterrupted"])


def test_plans_are_read_and_changed(ask: Ask) -> None:
    """Steps with what they touch; what was changed in them becomes the answers that say so, in an order that holds."""
    plan = ask("plan", question=PLAN, proposed=[{"text": "List", "touches": ["notes"]}, {"text": "Move"}])
    wanted = [{"from": 1, "text": "Move the old"}, {"from": None, "text": "Tell me"}, {"from": None, "text": " "}]

    assert ("`Planner` proposes a plan. It is full.", [("List", ["notes"]), ("Move", [])]) == (
        plan["head"],
        [(step["text"], step["touches"]) for step in plan["steps"]],
    )
    assert ["2: Move the old", "+ Tell me", "-1", "accept"] == ask("edits", steps=plan["steps"], wanted=wanted)
    assert ask("plan", question="1. a\n2. b\nWhich?", proposed=[]) is None


def test_versions_of_a_message_stand_beside_each_other(ask: Ask) -> None:
    """They are runs with another message where what was said before is the same."""
    family = [
        {"run": "a", "parent": None},
        {"run": "b", "parent": "a", "calls": 1},
        {"run": "c", "parent": "b", "calls": 1},
        {"run": "d", "parent": "c", "calls": 2},
    ]
    places = [["a", 1], ["a", 2], ["c", 2], ["d", 2], ["d", 3]]
    beside = ["a", "b", "c"]

    assert [(["a"], 0), (beside, 0), (beside, 2), (beside, 2), (["c", "d"], 1)] == [
        (each["runs"], each["at"]) for each in ask("versions", family=family, places=places)
    ]


def test_conversations_stand_by_days(ask: Ask) -> None:
    """Branches are one conversation, pinned ones stand on top, runs of programs apart, and words choose by title."""
    day = 86_400
    runs = [
        {"id": "a", "title": "Tea", "started": 40 * day, "updated": 40 * day},
        {"id": "b", "title": "Tea", "started": 40 * day, "updated": 40 * day + 9, "parent": "a"},
        {"id": "c", "title": "Desk.tick", "started": 40 * day},
        {"id": "d", "title": "Salt", "started": 39 * day},
        {"id": "e", "title": "Old tea", "started": 36 * day},
    ]
    how = {"now": (40 * day + 60) * 1000, "handlers": ["Desk.tick"]}
    today, week = ["Today", [["b", ["a", "b"]]]], ["Last 7 days", [["e", ["e"]]]]

    assert [[today, ["Yesterday", [["d", ["d"]]]], week], ["c"]] == ask("grouped", runs=runs, how=how)
    assert [[["Pinned", [["d", ["d"]]]], today, week], ["c"]] == ask("grouped", runs=runs, how={**how, "pinned": ["d"]})
    assert [[today, week], []] == ask("grouped", runs=runs, how={**how, "words": "tea "})
    assert [[week], []] == ask("grouped", runs=runs, how={**how, "words": "tea", "hidden": ["a"]})


def test_steps_open_to_what_they_did(ask: Ask) -> None:
    """A command with its output and exit code, a change as a diff, the answer of a colleague."""
    none = {"command": "", "diff": "", "output": "", "exit": None, "value": None}
    shell = {"fields": {"command": "ls"}, "result": {"success": False, "exitCode": 3, "stdout": "a\n", "stderr": "b\n"}}
    edit = {
        "fields": {"path": "n", "before": "two", "after": "three\nfour\n"},
        "result": {"success": True, "path": "n"},
    }

    assert [
        {**none, "command": "ls", "output": "a\nb", "exit": 3},
        {**none, "command": "ls"},
        {**none, "diff": "-two\n+three\n+four"},
        {**none, "output": "facts"},
        {**none, "value": ["one", "two"]},
        None,
    ] == ask(
        "details",
        steps=[
            shell,
            {"fields": {"command": "ls"}},
            edit,
            {"result": "facts"},
            {"result": ["one", "two"]},
            {"fields": {}},
        ],
    )


def test_the_time_of_a_person_is_not_that_of_the_work(ask: Ask) -> None:
    """A step that waited for a permission tells how long it waited."""
    path = [*TOP, "shell#1"]
    events = [
        CALLED,
        event("action_started", path, intent="shell", fields={"command": "ls"}),
        event("approval_requested", path, what="run `ls`"),
        event("approval_given", path, what="run `ls`", answer="yes"),
        event("action_ended", path, intent="shell"),
    ]

    assert [[3.0, 1.0]] == ask("timed", messages=numbered(*events))


def test_a_form_has_fields_by_type(ask: Ask) -> None:
    """Each field is what its type wants, says why a value does not fit, and is answered with a text."""
    properties = {
        "full_name": {"type": "string", "pattern": "^A"},
        "mail": {"type": "string", "format": "email", "default": "a@b.example"},
        "guests": {"type": "integer", "minimum": 1},
        "room": {"enum": ["single", "double"]},
        "extras": {"type": "array", "items": {"enum": ["tea", "towels"]}},
        "late": {"type": "boolean"},
    }
    values = {"full_name": "Bob", "guests": "2", "extras": ["tea", "towels"]}

    assert [
        ["Full name", "text", "This has not the form that is asked for.", "Bob"],
        ["Mail", "email", "", "a@b.example"],
        ["Guests", "number", "", "2"],
        ["Room", "choice", "Choose one.", ""],
        ["Extras", "several", "", "tea, towels"],
        ["Late", "boolean", "", "no"],
    ] == ask("form", schema={"properties": properties, "required": ["room"]}, values=values)


def test_a_form_is_one_item(ask: Ask) -> None:
    """The questions about the fields of a form stand together in the conversation."""
    questions = {"Booking\nFull name (text)": "Ada", "Booking\nguests: How many. (whole number)": "2"}
    events = [
        each
        for question, answer in questions.items()
        for each in (
            event("asked", [*TOP, "q#1"], question=question, options=[]),
            event("answered", [*TOP, "q#1"], question=question, answer=answer),
        )
    ]
    items = ask("reduce", messages=numbered(CALLED, *events))["items"]

    assert [["Full name", "Ada"], ["guests", "2"]] == items[-1]["rows"]
    assert 2 == len(items)


def test_a_rehearsal_is_told(ask: Ask) -> None:
    """The model that is asked tells whether anybody is there; costs are told also where they are small."""
    asked = [event("model_asked", [*TOP, "model#1"], model=name) for name in ("rehearsal", "gpt")]

    assert [True, False] == [ask("reduce", messages=numbered(CALLED, each))["isRehearsal"] for each in asked]
    assert ["$0.00", "under $0.01", "$1.50"] == ask("money", usd=[0, 0.001, 1.5])


def test_what_is_finished_is_read_aloud(ask: Ask) -> None:
    """Whole sentences; the number of a list ends none, and tables and code are read when they are whole."""
    texts = ["One. Two", "1. Warm", "A.\n\n2. Wait", "A.\n\n| a |\n| b", "A.\n\n```\nx. y", "Is it: yes"]

    assert [4, 0, 4, 4, 4, 6] == ask("finished", texts=texts)


def test_no_word_of_the_language_is_shown(ask: Ask) -> None:
    """Actions are told in words for people; what arranges a model's work is not told at all."""
    known = [["shell", {"command": "ls"}], ["readFile", {"path": "a.md"}], ["registry_get", {}], ["zap_mcp", {}]]
    silent = [[name, {}] for name in ("print", "return", "prompt_user", "call_llm", "researcher::research")]

    assert [["runs a command", "ls"], ["reads", "a.md"], ["looks into its notes", ""], ["uses a tool", ""]] == ask(
        "deeds", actions=known
    )
    assert [None] * 5 == ask("deeds", actions=silent)
    assert "Reads 2 times · runs a command" == ask("summary", actions=["read_file", "shell", "read_file"])
    assert ["Weather desk", "Weather desk", ""] == ask("words", names=["WeatherDesk", "weather_desk", ""])
    assert ["finds facts", "SQL for people"] == ask("clauses", texts=["Finds facts.", "SQL for people."])
    assert ["999 B", "1.5 kB", "4.2 MB"] == ask("sizes", bytes=[999, 1500, 4_200_000])


def test_files_go_with_a_message(ask: Ask) -> None:
    """The agent reads of them in the text, people see them beside it; a text that only looks alike stays one."""
    told = "Sum it up\n\nFiles: `a b.csv`, `c.md`"

    assert [told, {"text": "Sum it up", "names": ["a b.csv", "c.md"]}] == ask(
        "files", text="Sum it up", names=["a b.csv", "c.md"]
    )
    assert ["Files: `a`", {"text": "", "names": ["a"]}] == ask("files", text="", names=["a"])
    assert ["Files: all", {"text": "Files: all", "names": []}] == ask("files", text="Files: all", names=[])


def test_a_stream_may_be_cut_anywhere(ask: Ask) -> None:
    """Events come out whole, with their ids, whatever the pieces are; comments are nothing."""
    text = 'id: 7\ndata: {"a":\ndata: 1}\n\n: ping\n\r\nid: 7.1\r\ndata: x\r\n\r\ndata: y\n\nid: 8\ndata: unfinished'
    expected = [["7", '{"a":\n1}'], ["7.1", "x"], ["", "y"]]

    assert [expected] * 3 == [
        ask("stream", pieces=[text[at : at + size] for at in range(0, len(text), size)]) for size in (1, 7, 1000)
    ]
