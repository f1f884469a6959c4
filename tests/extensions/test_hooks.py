"""Hooks around actions: what they allow, change, ask about, deny and replace, and what happens when they fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.runtime.hooks.types import ActionCall, Allow, Ask, Deny, Replace, Rewrite
from tests.extensions.hooking import Person, hooks, saying, told
from tests.playbook.playing import Player, act, ask, done, solo

PRINT = [act("print", message="one"), done()]
TEAM = """
    role Boss { can delegate }
    role Hand { can execute }
    team T { reader: Reader }
    agent Reader : Hand { on readAll(args: { name: string }) { return "read " + args.name } }
    agent Main : Boss { uses team T on go(args) { playbook "Have it read." } }
    """
CODE = """
    role Worker { can execute }
    agent Main : Worker { on go(args) { return await callAction("print", { message: "from code" }) } }
    """


def test_what_nothing_is_said_about_is_carried_out(play: Player) -> None:
    """None allows, as `Allow` does; a hook is shown agent, role, action and fields."""
    silent, allowing = saying(), saying(Allow(), Allow())
    played = play(solo(), PRINT, added=hooks(silent, allowing))

    assert played.printed == ("one",)
    assert silent.seen[0] == ActionCall("Main", "Worker", "print", {"message": "one"}, True)


def test_a_denial_is_told_to_the_model(play: Player) -> None:
    """What is denied is not done, and the model reads who denied it and why; hooks that follow are not asked."""
    later = saying()
    played = play(solo(), PRINT, added=hooks(saying(Deny("not today")), later))

    assert (played.printed, later.seen[0].intent) == ((), "return")
    assert "print DENIED: `print` was denied by `test.say`: not today" in played.feedback[1]


def test_updates_in_a_result_pass_the_same_hooks(play: Player) -> None:
    """Who guards `update_state` need not know that `return` can change the state, too."""
    guard = saying(None, Deny("not today"))
    source = solo("execute", more="state { n = 0 }")
    played = play(source, [done(state_updates={"n": 1}), done(ok=True)], added=hooks(guard))

    assert ({"ok": True}, {"n": 0}) == (played.result, played.state("Main"))
    assert ActionCall("Main", "Worker", "update_state", {"updates": {"n": 1}}, True) == guard.seen[1]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_hooks_are_plain_or_async(play: Player, kind: str) -> None:
    """An async hook is waited for."""

    def plain(call: ActionCall) -> Any:
        return Deny("no") if call.intent == "print" else None

    async def waiting(call: ActionCall) -> Any:
        await asyncio.sleep(0)
        return plain(call)

    played = play(solo(), PRINT, added=hooks(plain if kind == "plain" else waiting))

    assert played.printed == ()


def test_rewritings_chain(play: Player) -> None:
    """Each hook sees what those before it made of the fields."""

    def louder(call: ActionCall) -> Any:
        return Rewrite({"message": call.fields["message"].upper()}) if call.intent == "print" else None

    def longer(call: ActionCall) -> Any:
        is_new = call.intent == "print" and not call.fields["message"].endswith("!")
        return Rewrite({"message": call.fields["message"] + "!"}) if is_new else None

    assert play(solo(), PRINT, added=hooks(louder, longer)).printed == ("ONE!",)


def test_a_gate_sees_what_later_hooks_rewrite(play: Player) -> None:
    """What a hook has let pass and a later one has rewritten must pass it again, whatever the order."""

    def gate(call: ActionCall) -> Any:
        return Deny("it is secret") if "secret" in str(call.fields) else None

    def leak(call: ActionCall) -> Any:
        return Rewrite({"message": "a secret"}) if call.intent == "print" else None

    played = play(solo(), PRINT, added=hooks(gate, leak))

    assert (played.printed, "denied by `test.gate`" in played.feedback[1]) == ((), True)


def test_hooks_that_undo_each_other_deny(play: Player) -> None:
    """Two hooks that rewrite each other's work end in a denial that names them, not in a circle."""

    def one(call: ActionCall) -> Any:
        return Rewrite({"message": "one"})

    def two(call: ActionCall) -> Any:
        return Rewrite({"message": "two"})

    played = play(solo(), [PRINT[0], PRINT[0], PRINT[0]], added=hooks(one, two), limits={"turns": 2})

    assert played.printed == ()
    assert "is rewritten by `test.one` and a hook after it in turn" in played.feedback[1]


@pytest.mark.parametrize("fields", [{}, {"options": 3}, "no object"])
def test_what_is_rewritten_is_checked(play: Player, fields: Any) -> None:
    """A rewriting that the action cannot take denies it, and is told as a failure of the hook."""
    wrong = saying(Rewrite(fields))
    played = play(solo(), PRINT, added=hooks(wrong))

    assert played.printed == ()
    assert "what it rewrote is wrong" in told(played, "hook_failed")[0]["error"]


def test_a_rewriting_widens_no_permission(play: Player) -> None:
    """What the role lacks stays denied before any hook is asked, and a rewritten command needs its own approval."""
    hook = saying(Rewrite({"command": "ls", "description": "list"}))
    refused = play(solo("think"), [act("shell", command="pwd", description="x"), done()], added=hooks(hook))
    rewritten = saying(Rewrite({"command": "id", "description": "x"}))
    asked = play(
        solo("execute"),
        [act("shell", command="pwd", description="x"), done()],
        added=hooks(rewritten),
        allow=["shell:pwd"],
    )

    assert (hook.seen[0].intent, "the role `Worker` lacks" in refused.feedback[1]) == ("return", True)
    assert "nobody can be asked to allow `id`" in asked.feedback[1]


def test_a_replaced_action_is_not_carried_out(play: Player) -> None:
    """The model gets the result of the hook."""
    played = play(solo(), PRINT, added=hooks(saying(Replace({"printed": "no"}))))

    assert (played.printed, '{"printed":"no"}' in played.feedback[1]) == ((), True)


@pytest.mark.parametrize(
    ("decisions", "printed", "questions"),
    [(["yes", "yes"], 2, 2), (["always"], 2, 1), (["yes", "no"], 1, 2), (["no", "no"], 0, 2)],
)
def test_the_person_decides(play: Player, decisions: list[Any], printed: int, questions: int) -> None:
    """`Ask` lets the person decide; what they allow for always is not asked again, for the same fields."""

    def careful(call: ActionCall) -> Any:
        return Ask("it is loud") if call.intent == "print" else None

    person = Person(decisions=decisions)
    played = play(solo(), [PRINT[0], PRINT[0], done()], added=hooks(careful), host=person)

    assert (len(played.printed), len(person.asked)) == (printed, questions)
    assert person.asked[0] == ("carry out `print`", 'it is loud: {"message": "one"}')


def test_always_covers_the_same_fields_only(play: Player) -> None:
    """Another text is another question."""

    def careful(call: ActionCall) -> Any:
        return Ask("it is loud") if call.intent == "print" else None

    person = Person(decisions=["always", "no"])
    played = play(solo(), [PRINT[0], act("print", message="two"), done()], added=hooks(careful), host=person)

    assert (played.printed, len(person.asked)) == (("one",), 2)


def test_nobody_to_ask_denies(play: Player) -> None:
    """Without a person, what is asked about is not done."""
    played = play(solo(), PRINT, added=hooks(saying(Ask("it is loud"))))

    failed = next(event for event in played.events if event.type == "action_failed")

    assert (played.printed, "nobody can be asked to allow `print`" in played.feedback[1]) == ((), True)
    assert ("NobodyAllowsError", "Run the program in a terminal.") == (failed.fields["class"], failed.fields["help"])


def test_what_is_asked_hides_nothing(play: Player) -> None:
    """Control characters in fields cannot move over what the person reads."""
    person = Person(decisions=["no"])
    play(solo(), [act("print", message="\x1b[2Jfine"), done()], added=hooks(saying(Ask("a\rb"))), host=person)

    assert person.asked[0][1] == 'a\\rb: {"message": "\\u001b[2Jfine"}'


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize("said", [True, False, "yes", {"allow": True}, Allow])
def test_what_is_no_decision_denies(play: Player, said: Any) -> None:
    """A hook that says something else than a decision has not allowed anything."""
    played = play(solo(), PRINT, added=hooks(saying(said)))

    assert (played.printed, "which is no decision" in played.feedback[1]) == ((), True)


def test_a_broken_hook_denies(play: Player) -> None:
    """A hook that raises denies, and an event tells which hook and what was wrong."""

    def broken(call: ActionCall) -> Any:
        return 1 / 0 if call.intent == "print" else None

    played = play(solo(), PRINT, added=hooks(broken))

    expected = {"hook": "test.broken", "when": "before_action", "intent": "print"}
    assert played.printed == ()
    assert told(played, "hook_failed") == [{**expected, "error": "ZeroDivisionError: division by zero"}]


def test_a_hook_that_takes_too_long_denies(play: Player) -> None:
    """Time is limited for async hooks."""

    async def slow(call: ActionCall) -> Any:
        if call.intent == "print":
            await asyncio.Event().wait()

    played = play(solo(), PRINT, added=hooks(slow, timeout_s=0.01))

    assert (played.printed, "it did not answer within 0.01 s" in played.feedback[1]) == ((), True)


def test_changing_what_is_shown_changes_nothing(play: Player) -> None:
    """Fields are copies at any depth: only `Rewrite` changes what is done."""

    def meddle(call: ActionCall) -> Any:
        if call.intent == "print":
            call.fields["message"].append("more")  # type: ignore[index]

    played = play(solo(), [act("print", message=["one"]), done()], added=hooks(meddle))

    assert played.printed == ("[ 'one' ]",)


# ---------------------------------------------------------------- after


def test_after_hooks_replace_results(play: Player) -> None:
    """Each is shown what those before it left."""

    def first(call: ActionCall, result: Any) -> Any:
        return Replace({**result, "first": True}) if call.intent == "print" else None

    def second(call: ActionCall, result: Any) -> Any:
        return Replace({"was": result}) if call.intent == "print" else None

    played = play(solo(), PRINT, added=hooks(first, second, kind="after_action"))

    assert '{"was":{"printed":true,"message":"one","first":true}}' in played.feedback[1]


@pytest.mark.parametrize("said", [Deny("too late"), "nothing", None])
def test_after_hooks_fail_open(play: Player, said: Any) -> None:
    """A broken one leaves the result as it is and is told, also to the person."""

    def broken(call: ActionCall, result: Any) -> Any:
        if call.intent == "print":
            result["message"] = "spoilt"
            return said if said is not None else {}["missing"]
        return None

    played = play(solo(), PRINT, added=hooks(broken, kind="after_action"))

    assert "✅ print\nContinue." == played.feedback[1]
    assert (len(told(played, "hook_failed")), "`test.broken` failed after `print`" in played.logged[0]) == (1, True)


# ---------------------------------------------------------------- where


@pytest.mark.parametrize("intent", ["reader::readAll", "Reader.read_all", "READALL"])
def test_delegations_have_one_name(play: Player, intent: str) -> None:
    """However a model writes whom it means, hooks see `member::event` and the data."""
    seen = saying()
    played = play(TEAM, [ask(intent, {"name": "a"}), done()], added=hooks(seen))

    assert played.error is None
    assert (seen.seen[0].intent, seen.seen[0].fields) == ("reader::readAll", {"data": {"name": "a"}})


@pytest.mark.parametrize(
    ("decision", "told_back"),
    [
        (Deny("no reading"), "was denied by `test.say`: no reading"),
        (Rewrite({"data": {"name": "b"}}), '"read b"'),
        (Rewrite({"data": {"name": 3}}), "`name` must be a text"),
        (Rewrite({"name": "b"}), "`reader::readAll` cannot be carried out: `data` is missing"),
        (Replace("not read"), '"not read"'),
    ],
)
def test_delegations_have_hooks(play: Player, decision: Any, told_back: str) -> None:
    """What is decided about a delegation counts; rewritten data is checked as that of the model is."""
    played = play(TEAM, [ask("reader::readAll", {"name": "a"}), done()], added=hooks(saying(decision)))

    assert told_back in played.feedback[1]


def test_actions_inside_of_others_have_hooks(play: Player) -> None:
    """The body of a loop is asked about action by action."""
    seen = saying()
    loop = act("repeat", count=2, actions=[act("print", message="x")])
    play(solo("execute"), [loop, done()], added=hooks(seen))

    assert [call.intent for call in seen.seen] == ["repeat", "print", "print", "return"]


def test_actions_of_code_have_hooks(play: Player) -> None:
    """What code calls is asked about, too; hooks can tell it from what a model asks for."""
    hook = saying(Deny("no output"))
    played = play(CODE, [], added=hooks(hook))

    assert (played.printed, hook.seen[0].by_model) == ((), False)
    assert "`print` was denied by `test.say`: no output" in played.told


@pytest.mark.parametrize(("length", "begins"), [(5000, "sure?: {"), (9000, "(3")])
def test_a_person_sees_what_they_decide_about(play: Player, length: int, begins: str) -> None:
    """All of a long call, or else, before anything else, how much of it is not shown."""
    person = Person(decisions=["no", "yes"])
    answers = [act("print", message="x" * length + "the end"), done()]
    play(solo(), answers, added=hooks(saying(Ask("sure?"))), host=person)

    assert person.asked[0][1].startswith(begins)
    assert ("the end" in person.asked[0][1]) == (length == 5000)
