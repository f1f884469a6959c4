"""Values that sentences of playbooks use, and that nothing brings: no question, no result, no payload, no state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import resolve_type
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.prose.playbooks import PlaybookSentence, PlaybookText, playbook_texts
from koi_lang.compiler.rules.prose.words import pattern, read_words
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.templates import payload_parts
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import nearest

RESULT = re.compile(r"\$\{\s*(?P<id>\w+)\.output\b")
ID = re.compile(r"[\"']id[\"']\s*:\s*[\"'](\w+)[\"']")
ANGLES = re.compile(r"(?<!\w)<(?P<words>[A-Za-zÁ-ú][\wÁ-ú' ]*)>")
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


@rule("E0626", "warning")
def value_from_nowhere(file: Analysis, report: Report) -> None:
    """A sentence of a playbook uses a value that nothing before it has brought.

    It may be an answer where nothing was asked, a name or the like of a person who was not asked for it, or the result
    of an action, `${found.output}`, where no action is called so. The model makes something up, or nothing is filled
    in. Sentences in English and Spanish are read; what a payload or the state may hold is left alone.

    Wrong:

        in agent: on start() { playbook "Say hello. Then greet them by name." }

    Right:

        in agent: on start() { playbook "Ask for their name. Then greet them by name." }
    """
    for text in report.program.for_file(playbook_texts, file):
        for start, end, what, help, near in (*_results(text), *_personal(text, report)):
            fixes = text.replacement(start, end, near) if near else ()
            report.add(text.place(start, end), f"nothing in this playbook brings {what}", help=help, fixes=fixes)


# Where it stands, what it is, the help, and what was meant.
Unbrought = tuple[int, int, str, str, str | None]


def _results(text: PlaybookText) -> Iterator[Unbrought]:
    """Results of actions that are not among those written out in the text."""
    ids = ID.findall(text.text.value)
    for found in RESULT.finditer(text.text.value):
        if text.is_whole and ids and found["id"] not in ids:
            near = nearest(found["id"], ids)
            help = (
                f"did you mean `${{{near}.output}}`?"
                if near
                else f"the actions are called {', '.join(f'`{each}`' for each in ids)}."
            )
            yield *found.span("id"), f"`{found['id']}.output`", help, near


def _personal(text: PlaybookText, report: Report) -> Iterator[Unbrought]:
    """Answers, names and what else a person is asked for, where nothing before has asked."""
    payload = payload_names(text.around, text.file, report.program)
    if not text.is_whole or payload is None:
        return
    words, whole = read_words()["values"], text.text.value
    known = " ".join(CAPITAL.sub(" ", name) for name in (*payload, *fields_of(text.agent)))
    brought = pattern(rf"\b{words['obtains']}\b|\?|\{{\{{").search(whole)
    mentioned: dict[str, int] = {}
    for sentence in (each for each in text.sentences if not each.is_negated and "{{" not in each.written):
        if brought is not None and brought.start() < sentence.start:
            return
        for start, end, thing in _uses(sentence, words):
            at = sentence.start + start
            if thing not in mentioned:
                mentioned[thing] = _find_mention(thing, whole)
            is_first = mentioned[thing] >= at and (brought is None or brought.start() >= at)
            if is_first and _find_mention(thing, known) >= len(known):
                asked = "it" if thing == "answer" else f"the {thing}"
                help = f"ask for {asked} first, or take it from the payload: `{{{{args.…}}}}`."
                yield at, sentence.start + end, f"the {thing}", help, None


def _uses(sentence: PlaybookSentence, words: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """What a sentence uses: offsets in it, and what it is called."""
    prose, written = sentence.prose, sentence.written
    for found in pattern(rf"(?<!\w)(?:{words['by_name']})").finditer(prose):
        yield *found.span(), "name"
    use = rf"(?<!\w)(?:{words['use']}) {{gap}}"
    for found in pattern(rf"{use}(?P<thing>{words['reply']})\b").finditer(prose):
        yield *found.span("thing"), "answer"
    for found in pattern(rf"{use}(?P<thing>(?:{words['owner']}) (?P<what>{words['personal']}))\b").finditer(prose):
        yield *found.span("thing"), found["what"]
    is_shown = pattern(r"\s*(?:{print})\b").match(prose) is not None
    for found in ANGLES.finditer(written) if is_shown else ():
        last = pattern(rf"(?:.*\W)?(?P<what>{words['personal']})").fullmatch(found["words"])
        if last and f"</{found['words']}>" not in written:
            yield *found.span(), last["what"]


def _find_mention(thing: str, text: str) -> int:
    """Where a thing is spoken of first, in one form or another; the end of the text where it is not."""
    words = (re.escape(word[:6]) for word in re.findall(r"[^\W\d_]{3,}", thing))
    found = re.search(rf"\b(?:{'|'.join(words)})", text, re.IGNORECASE)
    return len(text) if found is None else found.start()


def payload_names(around: Enclosing, file: Analysis, program: AnalysedProgram) -> frozenset[str] | None:
    """The fields that a payload has or may have; None where they cannot be known."""
    handler, agent = around.function, around.agent
    if not isinstance(handler, n.Handler) or agent is None:
        return None
    if not handler.parameters:
        return frozenset()
    type = handler.parameters[0].type
    declared = None if type is None else resolve_type(type, file.table)
    if declared is not None and declared.name == "object":
        return frozenset(field.name for field in declared.fields)
    parts = payload_parts(handler.parameters)
    if any(part.path for part in parts.values()):
        return frozenset(parts)
    return None if declared is not None else _given_names(agent, handler, program)


def _given_names(agent: n.Agent, handler: n.Handler, program: AnalysedProgram) -> frozenset[str] | None:
    """The fields of what the program calls a handler with; None where others may call it, or some are not known."""
    if not program.starts or any(isinstance(item, n.ExposeMcp | n.ExposeA2a) for item in agent.items):
        return None
    found = [payload for file in program.files for payload in _payloads(agent.name.name, handler.name.name, file)]
    if not found or not all(isinstance(each, n.Object) for each in found):
        return None
    items = [item for each in found if isinstance(each, n.Object) for item in each.properties]
    if not all(isinstance(item, n.Property) and isinstance(item.key, str) for item in items):
        return None
    return frozenset(str(item.key) for item in items if isinstance(item, n.Property))


def _payloads(agent: str, event: str, file: Analysis) -> Iterator[n.Node]:
    """What everything in a file that may call a handler gives it; some other node where that is not known."""
    for run, _ in file.index.of(n.Run):
        if (run.agent.name, run.handler.name) == (agent, event):
            yield from run.arguments[:1] or [run]
    for call, _ in file.index.of(n.Call):
        callee, first = call.callee, next(iter(call.arguments), None)
        if isinstance(callee, n.Member) and callee.name == event:
            yield first or call
        elif (
            isinstance(callee, n.Member)
            and callee.name == "handle"
            and isinstance(first, n.Text)
            and first.value == event
        ):
            yield call.arguments[1] if len(call.arguments) > 1 else call
    for send, _ in file.index.of(n.Send):
        if send.event == event:
            yield send
