"""Delegates and skills found by what words mean, through a model for embeddings where one is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from koi_lang.llm.connect import ModelEnvironment
from koi_lang.llm.embeddings import embedder
from koi_lang.llm.messages import Request
from koi_lang.runtime.hooks.additions import Additions
from koi_lang.runtime.hooks.types import Deny, Hook, ModelCall, Replace, Rewrite
from koi_lang.runtime.journal.history import History
from koi_lang.runtime.routing.lexical import MeaningScale, Route, rank_by_meaning, texts
from tests.journal.again import Recorder
from tests.llm.meanings import close_together, meaning
from tests.llm.server import Answer, ModelServer
from tests.playbook.playing import Played, Player, act, ask, done

PROGRAM = """
role Lead { can delegate, can execute }
role Worker { can execute }
skill Forecasts { affordance "Tells the weather"  export function today(): string { return "dry" } }
agent Editor : Worker {
  on condense(args) { affordance "Leaves out what does not matter"  return { by: "condense" } }
  on proofread(args) { affordance "Looks for mistakes"  return { by: "proofread" } }
}
agent Painter : Worker { on portray(args) { affordance "Makes a picture"  return { by: "portray" } } }
team Crew { editor: Editor, artist: Painter }
agent Main : Lead { uses team Crew  uses skill Forecasts  LLM  on go(args) { playbook "Do the work." } }
"""
MODEL = "text-embedding-3-small"
DECLARED = PROGRAM.replace("LLM", f'llm embedding = {{ provider: "openai", model: "{MODEL}" }}')
PARAPHRASE = "make my text shorter"
KEYS = {"OPENAI_API_KEY": "sk-test-0123456789abcdef"}


async def _no_pause(seconds: float) -> None:
    """Nothing is waited for between attempts."""


def connected(server: ModelServer) -> dict[str, Any]:
    """The services of a run whose models for embeddings are at a server."""

    def connect(llm: Any) -> Any:
        return embedder({**llm, "base_url": server.url}, KEYS.get, around=ModelEnvironment(sleep=_no_pause))

    return {"connect_embedder": connect}


def answering(*intents: str) -> list[Any]:
    """The answers of a model that delegates and returns who did it."""
    asked = [{**ask(intent), "id": f"x{n}"} for n, intent in enumerate(intents)]
    got = [f"${{x{n}.output.by}}" for n in range(len(intents))]
    return [{"batch": [*asked, act("return", data={"by": got})]}, done()]


def served(server: ModelServer, work: Callable[[], Any]) -> Any:
    """What some work comes to in a thread while a server answers."""

    async def run() -> Any:
        async with server:
            return await asyncio.to_thread(work)

    return asyncio.run(run())


def with_server(
    play: Player, *intents: str, server: ModelServer | None = None, source: str = DECLARED, **services: Any
) -> tuple[Played, list[Sequence[str]]]:
    """What delegating by some intents came to, and the texts of every request for embeddings."""
    given = server or ModelServer(embed=meaning)
    played = served(given, lambda: play(source, answering(*intents), **connected(given), **services))
    return played, [request.body["input"] for request in given.embedded]


def test_an_intent_reaches_who_does_what_it_means(play: Player) -> None:
    """A paraphrase that has no word in common with an event finds it; without a model for embeddings it does not."""
    found, _ = with_server(play, PARAPHRASE, "is there anything wrong in it", "editor::make it brief")
    without = play(PROGRAM.replace("LLM", ""), answering(PARAPHRASE))

    assert {"by": ["condense", "proofread", "condense"]} == found.result
    assert f"nobody `Main` can reach handles `{PARAPHRASE}`" in without.feedback[1]


def test_a_model_that_puts_everything_close_together_ranks_the_same(play: Player) -> None:
    """What counts is how much nearer an offer is than what has nothing to do with the intent."""
    found, _ = with_server(play, PARAPHRASE, server=ModelServer(embed=close_together))
    nobody, _ = with_server(play, "bake a cake", server=ModelServer(embed=close_together))

    assert {"by": ["condense"]} == found.result
    assert "nobody `Main` can reach handles `bake a cake`" in nobody.feedback[1]


@pytest.mark.parametrize("intent", ["condense", "editor::condense", "Painter::portray", "port_ray", "condnse", " "])
def test_a_name_is_no_question_of_meaning(play: Player, intent: str) -> None:
    """Who is named, also with a slip, is reached without any request."""
    _, asked = with_server(play, intent)

    assert [] == asked


def test_without_configuration_nobody_is_asked(play: Player) -> None:
    """Where no model for embeddings is configured, no model is made and words decide."""
    made: list[Any] = []
    played = play(PROGRAM.replace("LLM", ""), answering("look for mistakes"), connect_embedder=made.append)

    assert ({"by": ["proofread"]}, []) == (played.result, made)
    assert [] == [event.type for event in played.events if "embed" in event.type]


def test_the_project_configures_it_too(play: Player) -> None:
    """The role `embedding` of `koi.toml` counts for agents that declare none."""
    models = {"embedding": lambda: {"provider": "openai", "model": "other"}}
    server = ModelServer(embed=meaning)
    played, _ = with_server(play, PARAPHRASE, server=server, source=PROGRAM.replace("LLM", ""), models=models)

    assert ({"by": ["condense"]}, "other") == (played.result, server.embedded[0].body["model"])


def test_offers_are_embedded_once(play: Player) -> None:
    """The second intent of a run sends only itself."""
    _, (first, second) = with_server(play, PARAPHRASE, "paint a boat")

    assert (PARAPHRASE, ["paint a boat"]) == (first[0], second)
    assert "condense: Leaves out what does not matter" in first


SMALL = PROGRAM.replace("LLM", 'llm small = { provider: "openai", model: "small" }')


def test_a_small_model_chooses_where_words_do_not_fit(play: Player) -> None:
    """One request for equal intents; a name that nobody has is none; and what words or names decide is not asked."""
    chosen, nobody = ["editor::condense"], ["`none`."]
    cases = [
        play(SMALL, [*answering(PARAPHRASE, PARAPHRASE)[:1], *chosen, done()]),
        play(SMALL, [answering("bake a cake")[0], *nobody, done()]),
        play(SMALL, answering("look for mistakes")),
        play(PROGRAM.replace("LLM", ""), answering(PARAPHRASE)),
    ]

    assert {"by": ["condense", "condense"]} == cases[0].result
    assert "nobody `Main` can reach handles `bake a cake`" in cases[1].feedback[-1]
    assert [2, 3, 1, 2] == [len(each.requests) for each in cases]
    asked = cases[0].requests[1]
    assert "Which of the offers" in asked.system
    assert "Leaves out what does not matter" in str(asked.messages[0])


def test_a_choice_is_replayed(play: Player) -> None:
    """The answer stands in the journal: a replay and a run that goes on ask nobody."""
    answers = [answering(PARAPHRASE)[0], "editor::condense", done()]
    recorder = Recorder(play, SMALL, lambda: list(answers))
    tape = recorder.run()
    replayed = play(SMALL, list(answers), detailed=True, history=History(tape.entries, "replay"))

    assert [{"by": ["condense"]}] * 2 == [tape.played.result, replayed.result]


def test_a_skill_is_found_by_what_is_meant(play: Player) -> None:
    """`call_skill` with free words calls the skill that means them."""
    server = ModelServer(embed=meaning)
    call = {**act("call_skill", skill="do I need an umbrella", function="today"), "id": "s"}
    answers = [{"batch": [call, act("return", data="${s.output}")]}]

    assert "dry" == served(server, lambda: play(DECLARED, answers, **connected(server))).result


# ---------------------------------------------------------------- what it takes


def test_what_it_takes_is_told_and_counted(play: Player) -> None:
    """Tokens and price are part of the bill, of the run and of its budget."""
    played, (texts,) = with_server(play, PARAPHRASE)
    (told,) = [event for event in played.events if event.type == "texts_embedded"]
    tokens = sum(len(text.split()) for text in texts)

    assert (MODEL, {"input": tokens, "output": 0, "cached": 0}) == (told.fields["model"], told.fields["tokens"])
    assert pytest.approx(tokens * 0.02 / 1_000_000) == told.fields["usd"] == played.run.spending.usd


def test_a_budget_bounds_it(play: Player) -> None:
    """What a budget does not allow is not sent."""
    tight = DECLARED.replace("llm embedding", "budget { usd: 0.000001 } llm embedding")
    played, asked = with_server(play, PARAPHRASE, source=tight)

    assert [] == asked
    assert (
        "`Main.go` has spent $0.0000 of its $1e-06, and the next request costs about $2.7e-06 at the least"
        in played.told
    )


# ---------------------------------------------------------------- when it cannot be had

DOWN = Answer(status=503, error={"error": {"message": "down"}})


def test_a_failure_leaves_it_to_words(play: Player) -> None:
    """When the model cannot be asked after all attempts, words decide, and the person hears it once."""
    server = ModelServer([DOWN])
    played, _ = with_server(play, "look for the mistakes", "look for mistakes", server=server)
    failed = [event.fields["error"] for event in played.events if event.type == "embedding_failed"]

    assert {"by": ["proofread", "proofread"]} == played.result
    assert (6, 2, 1) == (len(server.requests), len(failed), len(played.logged))
    assert "`openai` has a problem of its own (status 503): down (3 attempts), so words decide" in played.logged[0]


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ('provider: "anthropic"', "`anthropic` makes no embeddings, so words decide who is meant. These do: `openai`"),
        ('provider: "mistral"', "the provider `mistral` needs a key"),
        ('model: "openai/a", fallback: ["mistral/b"]', "a model for embeddings has no `fallback`"),
    ],
)
def test_a_model_that_cannot_embed_is_told_and_does_no_harm(play: Player, declared: str, told: str) -> None:
    """The person hears what to do; the delegation goes on by words."""
    source = PROGRAM.replace("LLM", f"llm embedding = {{ {declared} }}")
    connect = partial(embedder, key=lambda name: None)
    played = play(source, answering("look for mistakes"), connect_embedder=connect)

    assert {"by": ["proofread"]} == played.result
    assert told in played.logged[0]


# ---------------------------------------------------------------- again


def test_a_replay_and_a_resumed_run_ask_nobody(play: Player) -> None:
    """A ranking is recorded without vectors, and taken from the recording, whatever is configured by then."""
    server = ModelServer(embed=meaning)
    recorder = Recorder(play, DECLARED, lambda: answering(PARAPHRASE), connected(server))
    tape = served(server, recorder.run)
    (ranked,) = [entry.data["result"] for entry in tape.entries if entry.data.get("intent") == "rank_by_meaning"]
    replayed = play(DECLARED, answering(PARAPHRASE), detailed=True, history=History(tape.entries, "replay"))
    resumed = Recorder(play, DECLARED, lambda: answering(PARAPHRASE)).again(tape.entries[:-3])

    assert ("editor::condense", {"ranked", "model", "tokens", "usd"}) == (ranked["ranked"][0][0], set(ranked))
    assert [{"by": ["condense"]}] * 2 == [replayed.result, resumed.played.result]
    assert tape.played.run.spending.tokens == replayed.run.spending.tokens
    assert len(str(ranked)) < 200


def test_what_was_decided_by_words_stays_so(play: Player) -> None:
    """The replay of a run without a model for embeddings does not want one that is configured now."""
    recorder = Recorder(play, DECLARED, lambda: answering("look for mistakes"))
    tape = recorder.run()
    connect = partial(embedder, key=lambda name: None)
    past = History(tape.entries, "replay")
    replayed = play(DECLARED, answering("look for mistakes"), detailed=True, history=past, connect_embedder=connect)

    assert ({"by": ["proofread"]}, ()) == (replayed.result, replayed.logged)


def test_a_run_that_goes_on_keeps_what_words_decided(play: Player) -> None:
    """A model for embeddings that is configured meanwhile is asked about what is new, and nothing else."""
    answers = partial(answering, "look for mistakes", "paint a boat")
    tape = Recorder(play, DECLARED, answers).run()
    cut = next(n for n, entry in enumerate(tape.entries) if entry.kind == "done")
    server = ModelServer(embed=meaning)
    resumed = served(
        server, lambda: Recorder(play, DECLARED, answers, connected(server)).again(tape.entries[: cut + 1])
    )

    assert {"by": ["proofread", "portray"]} == resumed.played.result
    assert ["paint a boat"] == [request.body["input"][0] for request in server.embedded]


# ---------------------------------------------------------------- hooks


def hooked(decide: Callable[[ModelCall], Any]) -> Additions:
    """A hook before requests for embeddings."""

    def hook(call: ModelCall) -> Any:
        return decide(call) if call.use == "embedding" else None

    return Additions(hooks=(Hook("test.guard", "before_model", hook),))


@pytest.mark.parametrize(
    ("decision", "told"),
    [(Deny("private"), "private, so words decide"), (Replace("x"), "answers in place of the model")],
)
def test_a_hook_may_keep_texts_here(play: Player, decision: Any, told: str) -> None:
    """What a hook denies, or answers itself, is not sent; words decide."""
    played, asked = with_server(play, "look for mistakes", added=hooked(lambda call: decision))

    assert ({"by": ["proofread"]}, []) == (played.result, asked)
    assert told in played.logged[0]


def test_a_hook_may_change_what_is_sent(play: Player) -> None:
    """The model for embeddings reads what the hook made of the texts."""

    def shortened(call: ModelCall) -> Rewrite:
        messages = tuple(type(each)("user", each.text.replace("my text", "it")) for each in call.request.messages)
        return Rewrite(Request("", messages, max_tokens=0))

    played, (texts,) = with_server(play, PARAPHRASE, added=hooked(shortened))

    assert ({"by": ["condense"]}, "make it shorter") == (played.result, texts[0])


# ---------------------------------------------------------------- the ranking itself

OFFERS = [Route("a", "condense", "Makes it short"), Route("b", "paint", "Makes a picture"), Route("c", "brief")]


def ranked(intent: str, **options: Any) -> list[str]:
    """The names of what an intent means, nearest first."""

    async def embed(texts: Sequence[str]) -> list[Sequence[float]]:
        lengths = [sum(x * x for x in meaning(text)) ** 0.5 or 1.0 for text in texts]
        return [[x / length for x in meaning(text)] for text, length in zip(texts, lengths, strict=True)]

    return [match.offer.name for match in asyncio.run(rank_by_meaning(intent, OFFERS, embed=embed, **options))]


def test_how_near_is_near_enough() -> None:
    """A family of models that puts everything apart needs a lower score, and one that does not a higher one."""
    assert [] == ranked("shorten", scale=MeaningScale(min_score=1.01))
    assert 3 == len(ranked("bake", scale=MeaningScale(min_score=0.0)))


def test_texts_begin_as_their_model_wants() -> None:
    """Models such as E5 are told what is looked for, and what it is looked for among."""
    scale = MeaningScale(query_prefix="query: ", passage_prefix="passage: ")

    first, *others = texts("shorten", OFFERS, scale)

    assert first == "query: shorten"
    assert {"passage: "} == {text[:9] for text in others}


def test_the_nearest_comes_first() -> None:
    """What is near in meaning is listed by nearness, no more than asked for, and nothing that is not near."""
    assert ["c::brief", "a::condense"] == ranked("shorten")
    assert ["c::brief"] == ranked("shorten", limit=1)
    assert [] == ranked("bake")
