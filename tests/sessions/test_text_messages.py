"""Texts that models are writing, to messages that are streamed."""

from __future__ import annotations

from koi_lang.sessions.text_messages import TextMessages


def test_pieces_that_arrive_behind_their_text_begin_no_other_message() -> None:
    """What a model writes is told apart from what is journaled, and may come later; another text is a message."""
    texts = TextMessages("r1")
    piece = {"path": ["Main.chat#1", "model#1"], "field": "message", "action": "print", "so_far": True}
    said = [
        *texts.complete("print", ["Main.chat#1", "print#1"], "It is 8 and counting."),
        *texts.add({**piece, "number": 1, "text": "It is ${c.output"}),
        *texts.add({**piece, "number": 1, "text": "It is ${c.output} and counting."}),
        *texts.add({**piece, "number": 2, "text": "Bye"}),
        *texts.complete("print", ["Main.chat#1", "print#2"], "Bye."),
    ]

    pieces = [(update.id, update.delta) for update in said if update.phase == "content"]
    assert [("r1-text-1", "It is 8 and counting."), ("r1-text-2", "Bye"), ("r1-text-2", ".")] == pieces
    assert texts.finished == [("r1-text-1", "It is 8 and counting."), ("r1-text-2", "Bye.")]
