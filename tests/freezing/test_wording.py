"""Words of playbooks that no recording has shown, and days of recordings in constants."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.freezing.candidates import UnexplainedError
from koi_lang.freezing.wording import (
    FixedText,
    days_in,
    fixed_texts,
    open_sentences,
    require_whole,
    select_unconfirmed,
)

PRINT = {"intent": "print", "message": "${args.who}: ${args.sum}"}
LOOP = {"intent": "for_each", "of": "${args.rows}", "as": "item", "actions": [PRINT]}
BRANCH = {"intent": "if", "condition": "args.sum > 1000", "then": [PRINT]}
TODAY = "Monday, 2026-11-30, Etc/UTC"


@pytest.mark.parametrize("intent", ["print", "shell"])
def test_invisible_characters_are_in_doubt(intent: str) -> None:
    """Also at the end of a word, and where text is no echo; layout and what the playbook says are not."""
    plan = [{"intent": intent, "message": "hello\u200b\u202e ${args.who}\n"}]
    (found,) = (each for each in fixed_texts("Say hello", plan, []) if "hello" not in each.doubtful and each.doubtful)
    said = fixed_texts("Say hello\u200b\u202e", plan, [])

    assert ("\u200b", "\u202e") == found.doubtful
    assert () == select_unconfirmed([found], ["\u202e\u200b"])
    assert () == select_unconfirmed(said, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("If it is high, tell the boss.", "If"),
        ("In case it is high, tell the boss.", "In case"),
        ("Should it be high, tell the boss.", "Should it"),
        ("Only high sums are told to the boss.", "Only"),
        ("High sums are told to the boss.", "High"),
        ("Tell the boss, but not about low sums.", "but not"),
        ("Tell the boss, except about those from Oslo.", "except"),
        ("Print the shop with the cheapest offer.", "cheapest"),
        ("Store the code without blanks around it.", "without"),
        ("Print by how much both differ.", "differ"),
        ("Print how many different people came.", "different"),
        ("Print the names, sorted.", "sorted"),
        ("Begin the name with a capital letter.", "capital"),
        ("Print the first few items.", "few"),
        ("Print the first three items.", "3"),
        ("Tell about sums that reach a thousand.", "1000"),
        ("Print it with two decimals.", "2"),
        ("Once the sum passes the limit, tell the boss.", "Once the"),
        ("Larger sums go to the boss.", "Larger"),
        ("Greet everyone but Bo.", "everyone but"),
        ("Never greet guests from Oslo.", "Never greet guests from"),
        ("Greet guests who are late.", "who are"),
        ("Wenn sie hoch ist, melde es dem Chef.", "Wenn"),
        ("Falls sie hoch ist, sag es dem Chef.", "Falls"),
        ("Melde nur hohe Summen.", "nur"),
        ("Melde alle, außer die aus Oslo.", "außer"),
        ("Si es alta, avisa al jefe.", "Si"),
        ("Imprime solo las altas.", "solo"),
        ("Affiche les sommes, sauf celles de Lyon.", "sauf"),
        ("Members pay half.", "half"),
        ("Strangers pay double.", "double"),
        ("Members pay a tenth less.", "a tenth"),
        ("Mitglieder zahlen die Hälfte.", "hälfte"),
        ("It is free of charge to children.", "free of charge"),
        ("Print how many can be delivered.", "can be"),
        ("The stock limits it.", "limits"),
        ("Print the names in order.", "in order"),
        ("Print the names from A to Z.", "from A to Z"),
        ("Print each colour once.", "each colour once"),
        ("Print every colour, no repeats.", "no repeats"),
        ("Print the name of the winner.", "winner"),
        ("Nenne den Gewinner.", "Gewinner"),
        ("Drucke jeden Namen, Hunde lass weg.", "lass weg"),
        ("Affiche chaque nom, hormis les chiens.", "hormis"),
    ],
)
def test_what_no_recording_shows_is_refused(words: str, said: str) -> None:
    """A loop shows nothing of it either."""
    for plan in ([PRINT], [LOOP]):
        with pytest.raises(UnexplainedError, match=f"the playbook (?:says `{said}`|names {said},)"):
            require_whole(f"Print the sum of ⟨args.who⟩. {words}", plan)


@pytest.mark.parametrize(
    "words",
    [
        "Sums above a thousand are told to the boss.",
        "If it is more than 1000, tell the boss, otherwise Bo.",
        "When it is higher than a thousand, tell the boss.",
    ],
)
def test_a_branch_shows_one_condition(words: str) -> None:
    """A second one needs a second branch."""
    require_whole(f"Print the sum. {words}", [BRANCH])

    with pytest.raises(UnexplainedError, match="the playbook says `Unless`, and the plan has only 1"):
        require_whole(f"Print the sum. {words} Unless it is paid, store it.", [BRANCH])


@pytest.mark.parametrize(
    "words",
    [
        "For each row print the sum.",
        "Ask the person if they want it.",
        "Print `only today` behind the sum.",
        "Store it under the name of the guest, and print it on request.",
        "Print the sum twice, and say\n        where it is.",
        "Print the sum in order to tell what is in order now, and double-check it.",
    ],
)
def test_other_words_need_nothing(words: str) -> None:
    """Loops, questions, quotations and words that only look alike."""
    require_whole(words, [LOOP])


def doubtful(playbook: str, message: Any) -> list[str]:
    """The words of a message that a person is to confirm."""
    texts = fixed_texts(playbook, [{"intent": "print", "message": message}], ["name", "host", "articles"])
    return [word for each in texts for word in each.doubtful]


@pytest.mark.parametrize(
    ("playbook", "message", "words"),
    [
        ("Print the mood.", "happy", ["happy"]),
        ("Imprime el humor.", "feliz", ["feliz"]),
        ("Greet ⟨args.name⟩.", "Hello, ${args.name}!", ["Hello"]),
        ("Tell them the weather.", "${args.city}: ${args.temp} degrees", ["degrees"]),
        ("Tell them whether they may come.", "${args.name} may not come", ["not"]),
        ("Print the number of the floor.", "floor 7", ["7"]),
        ("Print the mood, which is always `happy`.", "happy", []),
        ("Greet each guest in the name of the host.", "In the name of ${args.host}: to the guests", []),
        ("Reserve the article, and return the sum.", "articles of ${args.name}", []),
        ("Classify the text as spam or ham.", "ham", ["ham"]),
        ("Print the sentiment, positive or negative.", "sentiment: positive", ["sentiment", "positive"]),
        ("Print one of a list: low, medium, high.", "medium", ["medium"]),
        ("Rate it (1, 2, 3).", "rated 2", ["2"]),
        ("Is it a bug/feature? Print which.", "bug", ["bug"]),
        ("Di si es `alta` o `baja`.", "alta", ["alta"]),
        ("Sag, ob es gut oder schlecht ist.", "gut", ["gut"]),
        (
            "Greet them with good evening, good morning or whatever fits.",
            "Good evening, ${args.name}",
            ["evening"],
        ),
        ('Print "Good morning" or "Good evening" and ⟨args.name⟩.', "Good evening, ${args.name}", ["evening"]),
        ("Wish ⟨args.name⟩ a nice morning or a nice evening.", "a nice evening, ${args.name}", ["evening"]),
        ("Say whether it is an early bird or a late bird.", "early bird", ["early"]),
        ("Greet them with good evening or what fits.", "Good evening", ["evening"]),
        ("Print the name, the host, the article.", "host: ${args.host}", []),
        ("Print paid or open.", '${args.paid ? "paid" : "open"}', []),
        ("Print paid or open, then the name.", "name: ${args.name}", []),
        ("Return whether it is spam.", False, ["false"]),
        ("Return whether it is paid.", "${args.paid}", []),
    ],
)
def test_words_that_a_person_is_to_confirm(playbook: str, message: Any, words: list[str]) -> None:
    """What the playbook does not say may stand for what it asks for; one of several is a decision of the model."""
    assert words == doubtful(playbook, message)


@pytest.mark.parametrize(
    ("playbook", "sentences"),
    [
        ("Greet ⟨args.name⟩; doctors get their title.", ["doctors get their title"]),
        ("Print the name. Mark VIPs with a star.", ["Mark VIPs with a star"]),
        ("Print the name. Add order_no 7 or orderNo2x.", ["Add order_no 7 or orderNo2x"]),
        ("Stampa ogni persona, tranne i cani.", ["Stampa ogni persona, tranne i cani"]),
        ("Greet ⟨args.name⟩. Then say it. Print, and return.", []),
        ("Print each name:\n- the name\n- the title", ["- the title"]),
        ("Make sure that ⟨args.name⟩ is a draft. Print it.", ["Make sure that ⟨args.name⟩ is a draft"]),
        ("First check the name ⟨args.name⟩. Print it.", ["First check the name ⟨args.name⟩"]),
        ("Prüfe, ob ⟨args.name⟩ volljährig ist. Drucke den Namen.", ["Prüfe, ob ⟨args.name⟩ volljährig ist"]),
    ],
)
def test_sentences_that_a_person_is_to_confirm(playbook: str, sentences: list[str]) -> None:
    """A plan in which no word of a sentence stands may leave out what it asks for."""
    actions = [{"intent": "print", "message": "Hello ${args.name}"}]

    assert sentences == [each.text for each in open_sentences(playbook, actions)]
    assert () == select_unconfirmed(open_sentences(playbook, actions), sentences)


def test_a_field_that_the_playbook_asks_for_is_no_doubt() -> None:
    """It is nothing but the name of a field; a sentence that says more of it may be left out by the plan."""
    actions = [{"intent": "return", "data": [{"cost": "${s1.output.price}"}]}]
    playbook = "Return the cost. Give { cost }. Double the cost for children. Check the cost."

    assert ["Double the cost for children", "Check the cost"] == [
        each.text for each in open_sentences(playbook, actions)
    ]


def test_a_check_that_a_plan_makes_is_not_asked_about() -> None:
    """By a condition about the same, or by an action that is called so."""
    check, show = "Make sure that ⟨args.sum⟩ is high.", {"intent": "print", "message": "${args.sum}"}
    by_condition = [{"intent": "if", "condition": "args.sum > 9", "then": [show]}]
    by_value = [{"intent": "print", "message": "${args.sum > 9 ? args.sum : 0}"}]

    assert [1, 0, 0] == [len(list(open_sentences(check, each))) for each in ([show], by_condition, by_value)]
    asked = [{"intent": "bank::check", "data": "${args.sum}"}, show]
    assert [] == list(open_sentences("Check the ⟨args.sum⟩. Print it.", asked))


def test_what_a_person_has_confirmed_is_always_so() -> None:
    """In any letter case, as a part of more words."""
    texts = [FixedText("print", "message", "Dear …", ("Dear",)), FixedText("print", "message", "ham", ("ham",), True)]

    assert () == select_unconfirmed(texts, ["dear friend", "ham"])
    assert texts[1:] == list(select_unconfirmed(texts, ["Dear"]))
    assert "`message` of `print` was always `ham`, and the playbook names `ham` as one of several" == texts[1].doubt


def test_the_name_of_a_field_is_no_condition() -> None:
    """What the plan has by this name is what the playbook means."""
    require_whole("Print the best offer.", [{"intent": "print", "message": "${args.best}"}])


@pytest.mark.parametrize(
    "text",
    [
        *("Monday", "on Mondays", "Montag", "lunes", "lundi", "Mon", "2026", "2026-11-30", "2026-12-01", "30.11.2026"),
        *("30.11.", "11/30/26", "30/11/26", "26-11-30", "11/30", "20261130", "301126", "November", "NOVEMBER", "Nov"),
        *("30 de noviembre", "novembre", "the first of December", "Dezember", "W49", "KW 49", "week 48", "semana 49"),
        *("visits-november", "the 30th", "2026-W49", "29 January 2027", "Ada 26", "Q4", "4. Quartal", "4th quarter"),
        *("Good afternoon", "Buenas tardes", "Guten Abend", "Bonsoir", "cet été", "a nice autumn"),
    ],
)
def test_a_day_near_to_the_recording_is_recognized(text: str) -> None:
    """In whatever order and language it is written."""
    assert [] != list(days_in(f"see {text} now", TODAY))


@pytest.mark.parametrize(
    "text",
    [
        "March on",
        "You may go",
        "W12",
        "3.14",
        "30.11",
        "12/99",
        "a month",
        "room 7",
        "the 3rd",
        "27",
        "2.26",
        "26-b",
        "Q1",
        "a quarter",
    ],
)
def test_other_texts_are_no_days(text: str) -> None:
    """Numbers, words and days that are far away."""
    assert [] == list(days_in(text, TODAY))
