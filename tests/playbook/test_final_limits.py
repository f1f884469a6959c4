"""No code catches the limit of the run, or of the playbook that started it: it could go on for ever."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.runtime.budget.limits import LimitReachedError
from tests.playbook.playing import Played, Player, act, ask, done

TEAM = """
    role Lead {{ can execute, can think, can delegate }}
    team T {{ worker: Worker, coder: Coder }}
    skill Asks {{ export async function all() {{ await send T.event("work").any()({{}}) }} }}
    agent Worker : Lead {{ budget {{ {budget} }}  on work(args) {{ playbook "Work." }} }}
    agent Coder : Lead {{ uses team T  uses skill Asks
      resilience "retried" {{ retry_max_attempts = 9 }}
      on retried(args) {{ console.log("tried")  await send peers.event("work").any()({{}}) }}
      on code(args) {{
        const work = async () => await send peers.event("work").any()({{}})
        {code}
        return "went on"
      }}
    }}
    agent Main : Lead {{ uses team T  uses skill Asks  budget {{ tokens: 9000 }}  on go(args) {{ playbook "Lead." }} }}
    """
WAYS = {
    "catch": "try { await work() } catch (e) { console.log(e.message) }",
    "loop": "while (true) { try { await work() } catch { console.log('caught') } }",
    "promise": "await work().catch(e => console.log(e.message))",
    "then": "await work().then(() => 1, e => console.log(e.message))",
    "allSettled": "await Promise.allSettled([work(), 1])",
    "any": "await Promise.any([work(), new Promise(done => setTimeout(done, 5))])",
    "new": "await new Promise((yes, no) => { work().then(yes, no) }).catch(e => console.log(e))",
}


def program(code: str = "", budget: str = "") -> str:
    """A team whose coder gets past errors in one way."""
    return TEAM.format(code=code, budget=budget)


def end_of(played: Played) -> tuple[Any, str]:
    """What a call gave, and whose limit ended it."""
    return played.result, played.error.what if isinstance(played.error, LimitReachedError) else played.told


@pytest.mark.parametrize("way", WAYS)
def test_code_does_not_catch_the_limit_of_the_run(play: Player, way: str) -> None:
    """Whatever code does with errors, it ends when the run may not spend more."""
    played = play(program(WAYS[way]), [done()], call="Coder.code", limits={"tokens": 100})

    assert ((None, "the run"), ()) == (end_of(played), played.printed)


@pytest.mark.parametrize("way", ["catch", "promise", "allSettled", "any"])
def test_code_catches_the_limit_of_what_it_called(play: Player, way: str) -> None:
    """A limit of a call that is over is an error as any other."""
    played = play(program(WAYS[way], budget="tokens: 100"), [done()], call="Coder.code")

    assert ("went on", "") == end_of(played)


def test_the_limit_of_the_run_is_not_tried_again(play: Player) -> None:
    """`resilience` gives up at once where nothing more may be spent."""
    played = play(program(), [done()], call="Coder.retried", limits={"tokens": 100})

    assert ((None, "the run"), ("tried",)) == (end_of(played), played.printed)


@pytest.mark.parametrize("way", ["catch", "allSettled"])
def test_code_does_not_catch_the_limit_of_the_playbook_that_started_it(play: Player, way: str) -> None:
    """The limit of the playbook that delegated to code ends the playbook."""
    working = [act("print", message="word " * 6000), done()]
    played = play(program(WAYS[way]), {"Lead": [ask("coder::code"), done(ok=True)], "Work": working})

    assert (None, "`Main.go`") == end_of(played)


def test_a_skill_does_not_hide_the_limit_of_the_run(play: Player) -> None:
    """What a playbook calls in a skill ends with the limit itself, not with a failure that the model is told."""
    calling = act("call_skill", skill="Asks", function="all", input={})
    played = play(program(), [{"batch": [calling]}, done()], limits={"tokens": 100})

    assert (None, "the run") == end_of(played)


def test_a_timer_ends_with_the_limit_of_the_run(play: Player) -> None:
    """What code does again and again in the background is over when the run may not spend more."""
    again = "setInterval(() => { work().catch(e => console.log(e.message)) }, 1)"

    with pytest.raises(LimitReachedError, match="the run has used 0 of its 100 tokens"):
        play(program(again), [done()], call="Coder.code", limits={"tokens": 100})
