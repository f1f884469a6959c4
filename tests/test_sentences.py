"""How long the sentences of the manual are."""

from __future__ import annotations

import json
import re

import pytest

from tests import pages
from tests.pages import ROOT
from tests.sentences import Length, measure, sentences

# Words of a sentence: on average, and at most.
AIM = Length(mean=17, longest=35)
# Words that say less than the field's: "reported", "sent", "run", "reused", "anybody who".
VAGUE = re.compile(r"\b(?:told|[Ww]hoever|carr(?:y|ies|ied) out|came of|taken over)\b")
# Pages above the aim with what they may have instead. `pytest --accept tests/test_sentences.py` lowers these figures,
# and takes out pages that reach the aim; a figure goes up by hand alone.
CEILINGS = ROOT / "tests" / "data" / "sentences.json"
LIBRARY = sorted((ROOT / "stdlib_skills").glob("*.md"))
PAGES = {
    **pages.manual(),
    **{name: (ROOT / name).read_text("utf-8") for name in ("examples/README.md", "grammar/README.md")},
    **{f"stdlib_skills/{path.name}": path.read_text("utf-8") for path in LIBRARY},
}


def ceilings() -> dict[str, Length]:
    """The figures of pages above the aim."""
    return {name: Length(*figures) for name, figures in json.loads(CEILINGS.read_text("utf-8")).items()}


@pytest.mark.parametrize("name", PAGES)
def test_sentences_are_short(name: str) -> None:
    """The sentences of a page have at most 17 words on average and 35 each, or no more than they had before."""
    found = sentences(PAGES[name])
    most, length = ceilings().get(name, AIM), measure(found)

    assert length.mean <= most.mean, f"{length.mean} words on average, at most {most.mean}"
    assert [] == [sentence for sentence in found if measure([sentence]).longest > most.longest]


@pytest.mark.parametrize("name", PAGES)
def test_sentences_name_what_happens(name: str) -> None:
    """Pages use the verbs of the field; those that are still above the aim may have others."""
    vague = [sentence for sentence in sentences(PAGES[name]) if VAGUE.search(sentence)]

    assert [] == vague or name in ceilings()


def test_ceilings_of_sentences_only_fall(accept: bool) -> None:
    """A page that has reached the aim is held to it: it stands in the list no longer."""
    measured = {name: measure(sentences(page)) for name, page in PAGES.items()}
    lowest = {
        name: Length(*(max(aim, min(most, now)) for aim, most, now in zip(AIM, figures, measured[name], strict=True)))
        for name, figures in ceilings().items()
        if name in measured
    }
    above = {name: figures for name, figures in sorted(lowest.items()) if figures != AIM}
    if accept:
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(figures)}" for name, figures in above.items())
        whole = CEILINGS.with_suffix(".new")
        whole.write_text(f"{{\n{rows}\n}}\n", "utf-8")
        whole.replace(CEILINGS)

    assert [*above] == [*ceilings()]


def test_code_tables_and_headings_are_no_sentences() -> None:
    """What stands in a block, a table or a heading is not counted; code and links are words of their sentence."""
    page = "# A\n\nOne `a b c` here. Two [of\nthem](x.md), e.g. this!\n\n| a | b. |\n\n```\nx\n```\n* Item\n* Other.\n"

    assert ["One Code here.", "Two of them, e.g. this!", "Item", "Other."] == sentences(page)
    assert Length(3, 5) == measure(sentences(page))
