"""What an answer quotes, gives as an example or thinks is never carried out."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koi_lang.llm.messages import Request
from koi_lang.runtime.playbook.action_parsing import ReplyError
from koi_lang.runtime.playbook.framing import frame, without_thoughts
from koi_lang.runtime.playbook.reply_parser import CUT, LESS, MIXED, REPEATS, ReplyReader, read_reply
from tests.playbook.playing import Player, Voice, act, done, solo

SHELL = '{"intent":"shell","command":"rm -rf ."}'
A, B = '{"intent":"a"}', '{"intent":"b"}'
NAMES = ("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "THINK")


def taken(text: str, size: int) -> tuple[list[str], str]:
    """The intents of an answer that arrives in pieces of a size, and what is wrong with the rest."""
    reader, intents = ReplyReader(), list[str]()
    try:
        for start in range(0, len(text), size):
            for action in reader.feed(text[start : start + size]):
                intents.append(action.intent)
        for action in reader.finish():
            intents.append(action.intent)
    except ReplyError as error:
        return intents, error.message
    return intents, ""


def check(answer: str, intents: list[str], problem: str = "") -> None:
    """An answer gives these actions, however it is cut into pieces, and the model is told this of the rest."""
    for size in (1, 2, 3, 7, 10_000):
        assert (intents, problem) == taken(answer, size)


# ---------------------------------------------------------------- quoted

QUOTED = [
    f"The page says: {SHELL} I will not do that.",
    f"The page says `{SHELL}`",
    f'They wrote "{SHELL}"',
    f"They wrote “{SHELL}”.",
    f"The page says:\n> {SHELL}",
    f"I could do this:\n// {SHELL}",
    f"# {SHELL}",
    f"An example:\n```json\n{SHELL}\n```\nI will not do that.",
    f"```json\n{SHELL}\n```\nThat is what the page wants.",
    f"```\n{SHELL}\n```\n```\n{SHELL}\n```\nNeither of them.",
    f"First {A}, then {B}",
    f"See {{x}} {A} or\n{B}",
    f"They say </think>{SHELL}<think> and I will not.",
    f"They say {SHELL}<think>",
    f"Either [{A}] or {B}",
    f"<b>{SHELL}</b>",
    f"The tool <tool_call>{SHELL}</tool_call> is not what I want.",
]


@pytest.mark.parametrize("answer", QUOTED)
def test_what_is_quoted_is_not_carried_out(answer: str) -> None:
    """JSON in prose is not meant unless it is the only one and ends the answer; the model is told."""
    check(answer, [], MIXED)


@pytest.mark.parametrize(
    "answer",
    [
        f"Sure: {A}",
        f"Sure:\n\n```json\n{A}\n```\n",
        f"See [1] and {{x}} and [y, z]: {A}",
        f"Sure <b>here</b>:\n{A}\n\ufeff",
    ],
)
def test_the_only_json_behind_prose_is_meant(answer: str) -> None:
    """Many models say a sentence first."""
    check(answer, ["a"])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (f"{A} The page says: {SHELL}", MIXED),
        (f"{A}\n```json\n{SHELL}\n``` is an example", MIXED),
        (f"{A} and [1] {{x}} is all", ""),
        (f"{A}\n```", ""),
        (f"{A} see {SHELL[:20]}", f"the answer stops in the middle of {SHELL[:20]!r}"),
    ],
)
def test_json_behind_json_and_prose_is_not_carried_out(answer: str, problem: str) -> None:
    """In an answer that begins with JSON the first character decides, until there is prose."""
    check(answer, ["a"], problem)


@pytest.mark.parametrize(
    "answer",
    [
        f"\ufeff \n\t{A}{B}",
        f"\u00a0{A},\u200b{B}\n",
        f"```json\n{A}\n{B}\n```",
        f"```JSON5 {A}``` ~~~\n{B}\n~~~",
        f"````\n{A}\n````\n```c++\n{B}\n```",
        f"```json{A}{B}```",
        f" [ {A} , {B} ] ",
        f"```\n[\n{A},{B}]\n```",
    ],
)
def test_blanks_and_fences_around_all_of_it_mean_nothing(answer: str) -> None:
    """Marks of bytes, blanks of every width, fences of every length and language."""
    check(answer, ["a", "b"])


@pytest.mark.parametrize(
    "text",
    [
        SHELL,
        f"```json\n{SHELL}\n```",
        f"<think>{SHELL}</think>",
        f"</think>{SHELL}",
        "<think>",
        "</tool_call>",
        "\\u12",
    ],
)
@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "<think>hm</think>{}", "Sure: {}"])
def test_what_stands_in_a_text_is_data(text: str, around: str) -> None:
    """JSON, fences and tags inside of texts of JSON are what the action is about."""
    answer = around.replace("{}", json.dumps({"intent": "print", "message": text}))

    check(answer, ["print"])
    assert text == read_reply(answer)[0].data["message"]


def test_json_that_is_written_as_a_text_is_not_carried_out() -> None:
    """Escaped once more it is no JSON, but a text that somebody has written down."""
    text = json.dumps(SHELL)

    check(text, [], f"the answer holds no action: {text!r}")


# ---------------------------------------------------------------- thought


@pytest.mark.parametrize("name", NAMES)
def test_thoughts_are_never_read(name: str) -> None:
    """Before, between and behind what is meant; with attributes and in capitals; also one that never ends."""
    thought = f'<{name} about="it">The page says {SHELL}, and {SHELL} again. </other></{name}>'

    check(f"{thought}\n{A}", ["a"])
    check(f"{thought}```json\n{A}\n```{thought}{B}", ["a", "b"])
    check(f"{A}{thought}{B}", ["a", "b"])
    check(f"{A}<{name}>{SHELL}", ["a"])
    check(f"```\n{SHELL}\n```<{name}>no", [], MIXED)
    check(f"[THINK]{SHELL}[/THINK]{A}", ["a"])


def test_an_answer_that_only_thinks_holds_no_action() -> None:
    """What a thought without an end says counts as little."""
    answer = f"<think>I could {SHELL}"

    check(answer, [], f"the answer holds no action: {answer!r}")


@pytest.mark.parametrize(
    "thought",
    [
        f"The page says {SHELL}. </think>",
        f"<think>The page says </think>{SHELL} and I will not. </think>",
        f"<think>They say </think>\n{SHELL}\nso</think>",
        '<think>They say </think>{"a": "so</think>',
        f"<think><think>{SHELL}</think>{SHELL}</think>",
    ],
)
def test_the_end_of_a_thought_makes_all_before_it_one(thought: str) -> None:
    """Some servers leave the tag at the beginning out, and a model may quote the one at the end while it thinks."""
    check(f"{thought}{A}", ["a"])
    check(f"{thought}", [], f"the answer holds no action: {thought.strip()!r}")


def test_a_thought_inside_of_json_is_an_error() -> None:
    """Outside of texts JSON holds no tags."""
    intents, problem = taken('{"intent": <think>"a"</think> "b"}', 3)

    assert [] == intents
    assert problem.startswith("the JSON is broken near")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("true", "true"),
        ("<think>false?</think>\n\ntrue", "true"),
        (" <Thinking a>x</Thinking><think>y</think>\n a <think>b</think> c", "a <think>b</think> c"),
        ("<think> is a tag.", "<think> is a tag."),
        ("", ""),
    ],
)
def test_a_plain_answer_is_had_without_its_thoughts(answer: str, expected: str) -> None:
    """Only such as it begins with: elsewhere a tag may be what the answer is about."""
    assert expected == without_thoughts(answer)


def test_conditions_and_calls_of_models_do_not_see_thoughts(play: Player) -> None:
    """A model that thinks aloud can judge, too, and what it thinks is no part of a result."""
    condition = {"llm_eval": True, "instruction": "is it so", "data": 1}
    plan = [
        act("if", condition=condition, then=[act("print", message="yes")]),
        act("call_llm", id="x", data=1, instruction="sum up"),
        act("return", data="${x.output.result}"),
    ]
    answers = {
        "Do the work": [{"batch": plan}],
        "is it so": ["<think>no</think>true"],
        "sum up": ["<think>a</think> b"],
    }
    played = play(solo("execute"), answers)

    assert (("yes",), "b") == (played.printed, played.result)


# ---------------------------------------------------------------- while it streams


def test_what_follows_json_waits_for_the_end() -> None:
    """An answer that begins with JSON is carried out as it arrives; behind a thought it is known at the end."""
    reader = ReplyReader()
    first, later = [*reader.feed(f"{A}<think>no")], [*reader.feed(f"</think>{SHELL} so </think>{B}")]

    assert ["a"] == [action.intent for action in first]
    assert [] == later
    assert ["b"] == [action.intent for action in reader.finish()]


@pytest.mark.parametrize("begin", ["```json\n", "<think>hm</think>", "Sure: "])
def test_nothing_begins_before_it_is_known_to_be_meant(play: Player, begin: str) -> None:
    """What a fence, a thought or prose introduces is looked at when the answer has ended."""
    printed: list[str] = []

    async def speak(request: Request) -> AsyncIterator[str]:
        if len(request.messages) > 2:
            yield json.dumps(done(printed=list(printed)))
            return
        yield begin + json.dumps(act("print", message="meant"))
        printed.append("written")
        yield "\n```"[: 4 if begin.startswith("`") else 0] or "\n"

    played = play(solo(), Voice(speak))

    assert (("meant",), {"printed": ["written"]}) == (played.printed, played.result)


def test_an_answer_that_is_cut_off_means_nothing_of_its_rest() -> None:
    """At its limit of tokens a quotation looks like the end; what was read as it arrived counts."""
    for answer, intents in ((f"They say {SHELL}", []), (f"```json\n{A}", []), (f"{A}<think>b</think>{SHELL}", ["a"])):
        reader = ReplyReader()
        assert intents == [action.intent for action in reader.feed(answer)]
        with pytest.raises(ReplyError) as error:
            list(reader.finish(is_cut=True))
        assert f"{CUT}, so that it is not known what of it is meant; {LESS}" == error.value.message


def test_an_answer_that_repeats_itself_says_so() -> None:
    """What was complete before counts, and is all that was meant where nothing but blanks followed."""
    for answer, is_refused in (
        (f"{A}\n\n", False),
        ('{"id":"1000', True),
        (f"{A}{SHELL[:9]}", True),
        ("a a a a", True),
    ):
        reader = ReplyReader()
        list(reader.feed(answer))
        with pytest.raises(ReplyError, match=REPEATS) if is_refused else nullcontext():
            list(reader.finish(is_endless=True))


# ---------------------------------------------------------------- anything

VALUES = [A, B, SHELL, f"[{A},{B}]", json.dumps({"intent": "print", "message": f"</think>```{SHELL}"})]
BROKEN = [SHELL[:9], '{"', "}", "[", '"', "\\", "\ud800", "`", "<thi", "nk>", "</thi"]
WORDS = ["prose", " I will not. ", "[1]", "{x}", "\n> ", "// ", "\n", " ", ",", "\ufeff"]
MARKS = ["```json\n", "\n```", "~~~", "<think>", "</think>", "<Thinking a>", "</thinking >", "[THINK]", "[/THINK]"]
PARTS = st.sampled_from([*VALUES, *BROKEN, *WORDS, *MARKS, "<tool_call>", "</tool_call>"])


@given(st.lists(PARTS, max_size=9).map("".join), st.lists(st.integers(0, 200), max_size=12))
@settings(max_examples=200, deadline=None)
def test_where_an_answer_is_cut_does_not_matter(text: str, cuts: list[int]) -> None:
    """Actions and error are those of the whole, at whichever characters the pieces begin."""
    ends = sorted({min(cut, len(text)) for cut in cuts})
    reader, intents, problem = ReplyReader(), list[str](), ""
    try:
        for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
            intents += [action.intent for action in reader.feed(text[start:end])]
        for action in reader.finish():
            intents.append(action.intent)
    except ReplyError as error:
        problem = error.message

    assert taken(text, 10_000)[1] == problem
    assert taken(text, 1) == taken(text, 10_000)


@given(st.lists(PARTS, max_size=6).map("".join), st.sampled_from(["no.", "so", "\n- x"]))
@settings(max_examples=300, deadline=None)
def test_prose_at_the_end_denies_what_prose_began(middle: str, end: str) -> None:
    """Whatever stands between: an answer that begins and ends with prose does nothing."""
    assert [] == taken(f"The page says {middle} {end}", 5)[0]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "flood",
    ["<think>", "</think>", "<think ", "[ ", '{"', "```", f"{A} ", "> ", '{"a":"', "prose [x] ", "<", '"', "\n", "[{"],
)
def test_reading_is_linear(flood: str) -> None:
    """Half a megabyte of anything takes no more than some four times as long as a quarter of it."""
    count = 500_000 // len(flood)
    gc.disable()
    try:
        started = time.process_time()
        frame("so " + flood * (count // 4))
        quarter = time.process_time() - started
        started = time.process_time()
        frame("so " + flood * count)
        whole = time.process_time() - started
    finally:
        gc.enable()

    assert whole < 10 * quarter + 0.3


def test_nothing_is_carried_out_of_a_page(play: Player) -> None:
    """The whole way: a model that quotes a command is told, and the command does not run."""
    answers: list[Any] = [f"The page says: {SHELL} I will not do that.", done(ok=True)]
    played = play(solo("execute"), answers, allow=["shell"])

    assert ({"ok": True}, ["return"]) == (played.result, played.did("action_started"))
    assert f"❌ Nothing of your answer was carried out: {MIXED}. Go on from here" in played.feedback[1]
