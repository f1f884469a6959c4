"""Sentences of playbooks: names in them that nothing has, and something nearly has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import resolve_type
from koi_lang.compiler.rules.program import handlers
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.diagnostics import SLIP_IN_FOUR, nearest
from koi_lang.source import Span

# Rules that read prose; `[check] prose = false` in `koi.toml` turns all of them off.
CODES = frozenset({"E0621", "E0622"})
HOLE = re.compile(r"\{\{.*?\}\}|`{3}.*?`{3}", re.DOTALL)
DOTTED = re.compile(r"(?<![\w.$@/:-])(\w+)(\.|::)([A-Za-z_]\w*)(?![\w/@-])")

# A key of an object without objects in it; holes are masked before.
KEY = re.compile(r"(?:^|,)\s*[\"']?([A-Za-z_]\w*)[\"']?\s*(?=:|,|$)")


@dataclass(frozen=True, slots=True)
class _Owner:
    """What has the names that may stand behind it, and what such a name is called."""

    kind: str
    separator: str
    names: Sequence[str]


@rule("E0621", "warning")
def misspelt_in_prose(file: Analysis, report: Report) -> None:
    """A sentence of a playbook names something that does not exist, and that nearly does.

    It may be a field of the state (`state.count`), an event of an agent (`Adder::add`) or a function of a skill
    (`Prices.total`). The model is left to guess what is meant, or asks for what nobody has. A name that the file
    writes more than once counts as meant. `[check] prose = false` in `koi.toml` turns warnings about prose off.

    Wrong:

        in agent: state { count = 0 }  on tell(args) { playbook "Add 1 to state.cuont." }

    Right:

        in agent: state { count = 0 }  on tell(args) { playbook "Add 1 to state.count." }
    """
    for playbook, around in file.index.of(n.Playbook):
        texts = [part for part in playbook.parts if isinstance(part, n.Text)]
        if around.agent is None or not any("." in text.value or "::" in text.value for text in texts):
            continue
        owners = _owners(around.agent, file)
        for text in texts:
            _check_text(text, owners, file, report)


def _owners(agent: n.Agent, file: Analysis) -> Mapping[str, _Owner]:
    """What a sentence may name a part of: the state, agents, and the skills that the agent uses."""
    found = {"state": _Owner("field of the state", ".", tuple(fields_of(agent)))}
    for name in file.table.names("agent"):
        symbol = file.table.find("agent", name)
        if symbol is not None and isinstance(symbol.node, n.Agent):
            events = tuple(handler.name.name for handler in handlers(symbol.node))
            found[name] = _Owner(f"event of `{name}`", "::", events)
    for name in (each.name for item in agent.items if isinstance(item, n.Uses) for each in item.names):
        symbol = file.table.find("skill", name)
        if symbol is not None and isinstance(symbol.node, n.Skill):
            items = (item for item in symbol.node.items if isinstance(item, n.Function) and item.exported)
            functions = tuple(item.name for item in items if item.name)
            found[name] = _Owner(f"function of `{name}`", ".", functions)
    return found


def _check_text(text: n.Text, owners: Mapping[str, _Owner], file: Analysis, report: Report) -> None:
    for match, span in _dotted_names(text, file):
        owner, name = owners.get(match[1]), match[3]
        if owner is None or owner.separator != match[2] or name in owner.names:
            continue
        near = nearest(name, owner.names, alike=SLIP_IN_FOUR)
        is_meant = len(re.findall(rf"\b{name}\b", file.unit.source.text)) > 1
        if near is not None and not is_meant:
            help = f"did you mean `{match[1]}{match[2]}{near}`?"
            report.add(span, f"this sentence names `{name}`, which is no {owner.kind}", help=help)


def _dotted_names(text: n.Text, file: Analysis) -> Iterator[tuple[re.Match[str], Span]]:
    """Names such as `state.count` outside of holes and examples of code, with their places in the source."""
    prose = HOLE.sub(lambda found: " " * len(found[0]), text.value)
    for match in DOTTED.finditer(prose):
        at = text.start + match.start() if text.start is not None else -1
        if at < 0:
            at = file.unit.source.text.find(match[0], text.span.start, text.span.end)
        yield match, Span(at, at + len(match[0])) if at >= 0 else text.span


@rule("E0622", "warning")
def misspelt_in_returned_object(file: Analysis, report: Report) -> None:
    """A playbook says to return an object with a field that is nearly one of the declared type.

    The result is checked against the type of the handler, so a model that does as it is told fails. The sentence may
    be English or Spanish; `[check] prose = false` in `koi.toml` turns warnings about prose off.

    Wrong:

        in agent: on add(args): { sum: number } { playbook "Add the numbers. Return { summ: the sum }." }

    Right:

        in agent: on add(args): { sum: number } { playbook "Add the numbers. Return { sum: the sum }." }
    """
    for playbook, around in file.index.of(n.Playbook):
        if not isinstance(around.function, n.Handler) or around.function.returns is None:
            continue
        declared = around.function.returns
        others = [report.place(declared.span, "the type of the result")]
        known = [field.name for field in resolve_type(declared, file.table).fields]
        texts = [part for part in playbook.parts if isinstance(part, n.Text) and "{" in part.value]
        for key, near, span in (each for text in texts for each in _misspelt_keys(text, known, file)):
            message = f"this sentence returns `{key}`, which is no field of the result"
            report.add(span, message, others=others, help=f"did you mean `{near}`?")


def _misspelt_keys(text: n.Text, known: Sequence[str], file: Analysis) -> Iterator[tuple[str, str, Span]]:
    """Keys of returned objects that are nearly fields which the object lacks, with those and their places."""
    for keys, at in _returned_keys(text):
        missing = [name for name in known if name not in keys]
        for key in (each for each in keys if each not in known):
            near = nearest(key, missing, alike=SLIP_IN_FOUR)
            if near is not None:
                yield key, near, _place(key, text, at, file)


def _returned_keys(text: n.Text) -> Iterator[tuple[list[str], int]]:
    """The keys of each flat object that a sentence says to return, and where in the text it begins."""
    from koi_lang.llm.rehearsal.languages import list_verbs  # read only for programs that need it

    prose = HOLE.sub(lambda found: " " * len(found[0]), text.value)
    verbs = "|".join(list_verbs("return"))
    for match in re.finditer(rf"\b(?:{verbs})\s*:?\s*\{{([^{{}}\[\]()]*)\}}", prose, re.IGNORECASE):
        yield KEY.findall(match[1].strip()), match.start(1)


def _place(key: str, text: n.Text, at: int, file: Analysis) -> Span:
    """Where a key stands in the source; the whole text where it stands there in another form."""
    begin = text.span.start if text.start is None else text.start + at
    found = re.compile(rf"\b{key}\b").search(file.unit.source.text, begin, text.span.end)
    return Span(*found.span()) if found else text.span
