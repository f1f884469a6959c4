"""How much a model is told before it begins, and that it is told what it needs."""

from __future__ import annotations

from tests.playbook.playing import Player, done

# Three agents; before values stood apart from the playbook, its lead was told 2,427 characters, of which then 10 % of
# 3,111, what the lead of a larger program was told, may have been added.
PROGRAM = """
role Lead { can delegate, can execute }
role Worker { can execute }
agent Researcher : Worker {
  affordance "Finds facts about a topic."
  on research(args: { topic: string }) { playbook "Return two facts about {{args.topic}} as a list of texts." }
}
agent Writer : Worker {
  affordance "Writes a short text from facts."
  on write(args: { facts: string, words: number }) { playbook "Write about {{args.words}} words." }
}
team Desk { researcher: Researcher, writer: Writer }
agent Editor : Lead {
  uses team Desk
  on start(args: { topic: string }) {
    playbook \"\"\"Have facts about {{args.topic}} found, have a text written from them, print it, and return { "text": "<the text>" }.\"\"\"
  }
}
"""  # noqa: E501
TODAY = "Wednesday, 2026-11-25, America/Argentina/Buenos_Aires"
BEFORE, MORE = 2_427, 311


def test_the_lead_of_three_agents_is_told_no_more(play: Player) -> None:
    """Date and place, an example and what is data, too, in the room that there is for them."""
    played = play(PROGRAM, [done(text="x")], call="Editor.start", payload={"topic": "tea"}, today=TODAY)
    request = played.requests[0]
    told = len(request.system) + sum(len(message.text) for message in request.messages)

    assert TODAY in request.messages[0].text
    assert told <= BEFORE + MORE, told - BEFORE
