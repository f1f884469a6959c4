"""`${id.output.x}` and conditions in actions: references to earlier results."""

from __future__ import annotations

import json
import math
import re
from collections import ChainMap
from collections.abc import Container, Iterator, Mapping
from enum import Enum
from typing import Any

from koi_lang.diagnostics import nearest
from koi_lang.errors import AgentError, ExpressionError, KoiError
from koi_lang.js.inspect_value import inspect as as_text
from koi_lang.js.operators import truth, type_of
from koi_lang.js.properties import get
from koi_lang.js.undefined import undefined
from koi_lang.runtime.guards.size import require_room, written_weight
from koi_lang.runtime.playbook.holes import (
    EARLIER_HOLE,
    CodeInText,
    fill_holes,
    holes_in_command,
    is_foreign,
    is_literal,
    spelled_in,
    texts_in,
    why_not_plain,
)
from koi_lang.runtime.playbook.told_expressions import ToldData
from koi_lang.runtime.prompts import value_text
from koi_lang.runtime.replay.digest_forms import FIRST_WITH_CODE, FIRST_WITH_FAILURES, FIRST_WITH_LITERALS, FORM
from koi_lang.system.interpolation import COMMANDS, HOLE, IMPLICIT_NAMES, USUAL_CODE, Evaluate, ExpressionRules

# Ids may hold `-`, so `first-step.output.n` is looked up as a path before it is computed as a difference.
PATH = re.compile(r"[\w$-]+(?:\.[\w$-]+|\[\d+\])*")
# A name that is no member of another; behind `...` it is one of its own.
NAME = re.compile(r"(?<![\w$])(?<!(?<!\.\.)\.)(?!\d)[\w$]+")
LINK = re.compile(r"\.?([\w$-]+)|\[(\d+)\]")
PLAIN_PATH = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d+\])*")
TEXTS = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")
# What shells have behind a name, `${OUT:-args}`, `${file%.args}`, `${text:0:3}`; steps of templates, and keys.
OTHER_CODE = re.compile(
    r"\$\{\w+(?:\[[@*\w$-]+\])?(?::?[-=+?]|:\s?[-\d(]|[#%/^,@])"
    r"|\{\{\s*(?:(?:range|with|template|include|define|block|partial)\s|[\w\"']+\s*:)"
)
# Text for people and models, nested actions and conditions keep their holes: they are resolved when their turn comes.
KEPT = frozenset({"condition", "instruction", "options", "actions", "then", "else", "otherwise"})
SILENT = frozenset({"print", "log", "format"})
REFERENCE = re.compile(r"(?<![\w$.-])([\w$-]+)\.output(?![\w$-])")
LAST = re.compile(r"(previousResult|lastResult)(?![\w$-])")
MAX_LISTED = 8
MAY_BE_MISSING = "Write `?? …` behind it where it may be missing."
AS_WRITTEN = object()  # in place of a value: the hole stays as it stands
AS_TEXT = r"A text `${…}` is written `\\${…}` in JSON."


class TextKind(Enum):
    """The kind of a text in an action, by which names count in it.

    Attributes:
        LINE: one line for people, models and programs.
        LINES: several, which may be a program; fields of results are no names in it.
        CODE: what goes into a file or a command; names that nobody has chosen are none in it alone either.
        COMMAND: the same on one line; what the playbook fills in itself is a name there.
        SCRIPT: a command of several lines.
    """

    LINE = "line"
    LINES = "lines"
    CODE = "code"
    COMMAND = "command"
    SCRIPT = "script"


IN_COMMANDS = (TextKind.COMMAND, TextKind.SCRIPT)
IN_CODE = (TextKind.CODE, *IN_COMMANDS)


class ActionScope:
    """The names that references can use: results by id, the last ones, args, state, loop counters.

    A nested block sees the names of the block around it.

    Attributes:
        missing: ids of actions that gave no result, with what became of them.
        copied: names that stand for fields of results; a later result with such a field takes the name. In texts only
            those of the same answer count, and those that the playbook itself refers to so; in code none do.
        form: of the request whose answer is carried out.
        is_of_program: whether the program has the answer written, as a frozen plan does: it means what is in its code.
    """

    def __init__(self, evaluate: Evaluate, args: Any, state: Mapping[str, Any]) -> None:
        self._evaluate = evaluate
        self._own: dict[str, Any] = {}
        self._all: ChainMap[str, Any] = ChainMap(self._own, {"args": args, "state": state})
        self.missing: dict[str, str] = {}
        self.copied: set[str] = set()
        self._told: ToldData | None = None
        self._answer: set[str] = set()
        self._copied_now: set[str] = set()
        self.form = int(FORM)
        self.is_of_program = True

    def begin_answer(self, data: ToldData, form: int) -> None:
        """Begin another answer, of a model with a known set of placeholder values.

        Args:
            form: of the request that it answers; holes of earlier ones are read as they were then.
        """
        self.form, self.is_of_program = form, False
        self._told = data if form >= FIRST_WITH_LITERALS else None
        self._answer = set()
        self._copied_now = set()

    @property
    def _can_fail(self) -> bool:
        return self.form >= FIRST_WITH_FAILURES

    @property
    def _holes(self) -> re.Pattern[str]:
        return HOLE if self._can_fail else EARLIER_HOLE

    def child_scope(self) -> ActionScope:
        """Names for the body of a loop or branch."""
        inner = ActionScope(self._evaluate, None, {})
        inner._all = ChainMap(inner._own, *self._all.maps)
        inner.missing, inner.copied = self.missing, self.copied
        inner._told = self._told
        inner._answer, inner._copied_now = self._answer, self._copied_now
        inner.form, inner.is_of_program = self.form, self.is_of_program
        return inner

    def add(self, own: Mapping[str, Any]) -> None:
        """Give names of this block a value, such as the counters of a loop."""
        self._own.update(own)
        self.copied -= own.keys()
        self._answer |= own.keys()

    def record(self, intent: str, id: str, value: Any) -> None:
        """Keep the result of an action; results with an id stay visible outside of a nested block."""
        value = open_result(value)
        if id:
            self.missing.pop(id, None)
            self._answer.add(id)
            self.copied.discard(id)
            *blocks, _ = self._all.maps
            for names in blocks:
                names[id] = {"output": value}
        if intent in SILENT:
            return
        self._own["previousResult"] = self._own["lastResult"] = value
        if isinstance(value, dict):
            fields = {key: item for key, item in value.items() if key in self.copied or key not in self._all}
            self._own.update(fields)
            self.copied |= fields.keys()
            self._copied_now |= fields.keys()

    def mark_missing(self, id: str, why: str) -> None:
        """Keep in mind that an action gave no result, and why."""
        if id:
            self.missing[id] = why
            self._answer |= {id} - self._all.keys()

    def results(self) -> list[str]:
        """The ids that references find a result by."""
        return [id for id, value in self._all.items() if isinstance(value, dict) and value.keys() == {"output"}]

    def open_holes(self, text: str) -> Iterator[re.Match[str]]:
        """The holes of a text that stand for values."""
        holes = self._holes.finditer(text)
        return (hole for hole in holes if not self._is_literal(hole) and not self.is_told(hole))

    def _is_literal(self, hole: re.Match[str]) -> bool:
        if self._can_fail and is_foreign(hole):
            return True
        return self.form >= FIRST_WITH_LITERALS and is_literal(hole)

    def is_told(self, hole: re.Match[str]) -> bool:
        """Whether the model has a hole from data, so that it is text, unless it is about results of the same answer."""
        spelled = spelled_in(hole)
        return self._told is not None and not self._is_of_answer(spelled) and self._told.holds(spelled)

    def _is_of_answer(self, spelled: str) -> bool:
        """Whether an expression mentions actions of the answer that is being carried out, and nothing else."""
        if PATH.fullmatch(spelled) and self.find(spelled) is not undefined:
            return LINK.findall(spelled)[0][0] in self._answer
        mentioned = NAME.findall(spelled)
        return bool(mentioned) and self._answer.issuperset(mentioned)

    def find(self, path: str) -> Any:
        """The value at a path such as `id.output.list[0]`; undefined if there is none."""
        return _by_path(path, self._all)

    def substitute(self, fields: Mapping[str, Any], code: Container[str] = USUAL_CODE) -> dict[str, Any]:
        """Fields of an action with their references replaced by values. Raises AgentError as `resolve` does.

        Args:
            code: names of fields whose texts are code, at any depth.
        """
        code = code if self.form >= FIRST_WITH_CODE else USUAL_CODE
        filled = {
            key: value if key in KEPT else self._resolve_field(key, value, TextKind.LINE, code)
            for key, value in fields.items()
        }
        require_room(written_weight(filled))
        return filled

    def resolve(self, value: Any) -> Any:
        r"""A value with its references replaced, at any depth; what is about none of the names stays as written.

        `\${…}` becomes `${…}`.

        Raises:
            AgentError: one has no value, or what comes of them is too large.
        """
        resolved = self._resolve_value(value, TextKind.LINE, USUAL_CODE)
        require_room(written_weight(resolved))
        return resolved

    def _resolve_field(self, name: str, value: Any, kind: TextKind, code: Container[str]) -> Any:
        own = TextKind.COMMAND if name in COMMANDS else TextKind.CODE
        return self._resolve_value(value, own if name in code else kind, code)

    def _resolve_value(self, value: Any, kind: TextKind, code: Container[str]) -> Any:
        if isinstance(value, str):
            return self._resolve_text(value, kind) if "${" in value or "{{" in value else value
        if isinstance(value, dict):
            filled = {key: self._resolve_field(key, item, kind, code) for key, item in value.items()}
            return (
                {value_text(self._resolve_value(key, TextKind.LINE, code)): item for key, item in filled.items()}
                if self._can_fail
                else filled
            )
        if isinstance(value, list):
            return [self._resolve_value(item, kind, code) for item in value]
        return value

    def _resolve_text(self, text: str, kind: TextKind) -> Any:
        """A text that is one reference becomes the value itself, also in code, but for all of `state` there."""
        if "\n" in text.strip():
            kind = {TextKind.LINE: TextKind.LINES, TextKind.COMMAND: TextKind.SCRIPT}.get(kind, kind)
        whole = self._holes.fullmatch(text.strip())
        if whole is not None:
            is_object = spelled_in(whole) in ("args", "state") and not isinstance(self._all[spelled_in(whole)], str)
            alone = TextKind.LINES if kind in IN_CODE and not is_object else kind
            self._require_own(whole, alone)
            if (value := self._value(whole, CodeInText(text), alone)) is not AS_WRITTEN:
                return value
        size, code = 0, CodeInText(text)
        is_checked = kind in IN_COMMANDS and self.form >= FIRST_WITH_CODE
        standing = {hole.start(): how for hole, how in holes_in_command(text)} if is_checked else {}

        def put(hole: re.Match[str]) -> str | None:
            nonlocal size
            value = self._value(hole, code, kind)
            if value is AS_WRITTEN:
                return None
            size += written_weight(value)
            require_room(size)  # before it is written down
            written = value_text(value)
            if is_checked and (why := why_not_plain(written, standing.get(hole.start(), "word"))):
                help = "Write the value itself into the command, quoted as the shell needs it."
                raise AgentError(f"`{hole[0]}` is {why}", help=help)
            return written

        if self.form >= FIRST_WITH_LITERALS:
            is_code = kind in IN_CODE and self.form >= FIRST_WITH_CODE
            return fill_holes(text, put, self._holes, is_own=lambda hole: not is_code or self.counts(hole, kind))
        return EARLIER_HOLE.sub(lambda hole: hole[0] if (value := put(hole)) is None else value, text)

    def _require_own(self, whole: re.Match[str], kind: TextKind) -> None:
        """Raise AgentError where a text that is one expression may repeat data, or be meant: nobody is to guess."""
        spelled = spelled_in(whole)
        if self.form < FIRST_WITH_CODE or is_foreign(whole) or not self.is_told(whole):
            return
        if self._told is None or self._told.is_of_tools(spelled):
            return
        if not self._names_for(spelled, kind).keys().isdisjoint(_names_in(spelled)):
            message = f"`{whole[0]}` is not computed, since the data that you were told has it, too"
            raise AgentError(message, help=f"Write its value. {AS_TEXT}")

    def _value(self, hole: re.Match[str], code: CodeInText, kind: TextKind) -> Any:
        """The value of a hole: the value at its path, else that of its expression; AS_WRITTEN where it is text.

        Raises:
            AgentError: it is about a name that is known here, and has no value; in backticks it is taken for code.
        """
        spelled = spelled_in(hole)
        if self.is_told(hole):
            return AS_WRITTEN
        names = self._names_for(spelled, kind) if self._can_fail else self._all
        if PATH.fullmatch(spelled) and (found := _by_path(spelled, names)) is not undefined:
            return found
        if not self._can_fail:
            return self._earlier_value(hole, spelled)
        if is_foreign(hole) or names.keys().isdisjoint(_names_in(spelled)):
            return AS_WRITTEN
        try:
            if PLAIN_PATH.fullmatch(spelled):
                self.raise_absent(hole[0], spelled)
            return self._compute(hole, spelled, names)
        except AgentError as error:
            if code.holds(hole) or not self._must_have_value(hole, names, error.__cause__):
                return AS_WRITTEN
            raise

    def counts(self, hole: re.Match[str], kind: TextKind) -> bool:
        """Whether a hole is about a name that counts in a kind of text."""
        spelled = spelled_in(hole)
        names = self._names_for(spelled, kind)
        return not (is_foreign(hole) or self.is_told(hole) or names.keys().isdisjoint(_names_in(spelled)))

    def _names_for(self, spelled: str, kind: TextKind) -> Mapping[str, Any]:
        """The names that count for an expression: without copies of earlier answers, on one line alone with any.

        Otherwise the id of a result is a name where `.output` stands behind it.
        """
        mentioned = _names_in(spelled)
        is_line = kind is TextKind.LINE
        is_of_author = self._told is not None and self._told.is_of_author(spelled)
        hidden = {name for name in mentioned & self.copied if not is_line or name not in self._copied_now}
        if is_line and is_of_author:
            hidden = set()
        if not is_line:
            hidden |= mentioned.intersection(self.results()).difference(REFERENCE.findall(spelled))
        is_filled_in = kind is TextKind.COMMAND and self._told is not None and self._told.is_filled_in(spelled)
        if kind in IN_CODE and not (is_of_author or is_filled_in or self.is_of_program or self.form < FIRST_WITH_CODE):
            others = mentioned - IMPLICIT_NAMES - hidden
            hidden |= IMPLICIT_NAMES if all(name not in self._all for name in others) else set()
        return {name: value for name, value in self._all.items() if name not in hidden} if hidden else self._all

    def _compute(self, hole: re.Match[str], spelled: str, names: Mapping[str, Any]) -> Any:
        """The value of an expression. Raises AgentError where it has none."""
        try:
            value = self._evaluate(spelled, names, ExpressionRules.STRICT)
        except KoiError as error:
            help = "Write an object as `${({ … })}`." if _is_object(hole) else error.help
            help = AS_TEXT if help is None else f"{help} {AS_TEXT}"
            raise AgentError(f"`{hole[0]}` has no value: {error.message}", help=help) from error
        if value is undefined:
            raise AgentError(f"`{hole[0]}` has no value: it is undefined", help=f"{MAY_BE_MISSING} {AS_TEXT}")
        if callable(value) or (isinstance(value, float) and not math.isfinite(value)):
            raise AgentError(f"`{hole[0]}` has no value: it is {as_text(value)}", help=AS_TEXT)
        return value

    def _must_have_value(self, hole: re.Match[str], names: Mapping[str, Any], cause: BaseException | None) -> bool:
        """Whether a hole that mentions a name, and has no value, is an error rather than text.

        Args:
            cause: why it has none; what is no expression may be one of another language, as `${OUT:-args}`.
        """
        spelled = spelled_in(hole)
        root = NAME.match(spelled)
        if root is not None and root[0] in names:
            return True
        if isinstance(cause, ExpressionError) and not cause.is_readable:
            around = _names_in(HOLE.sub("", spelled))  # the holes in it are read on their own
            return _is_object(hole) or (OTHER_CODE.match(hole[0]) is None and not around.isdisjoint(names))
        return any(name in names and name not in self.copied for name in _names_in(spelled))

    def _earlier_value(self, hole: re.Match[str], spelled: str) -> Any:
        """The value of a hole in an answer to an earlier version. Raises AgentError where there was an error then."""
        if PLAIN_PATH.fullmatch(spelled):
            return AS_WRITTEN
        try:
            return self._evaluate(spelled, self._all, ExpressionRules.EARLIER)
        except KoiError as error:
            root = NAME.match(spelled)
            if root is None or root[0] not in self._all or "`" in hole.string:
                return AS_WRITTEN
            raise AgentError(f"`{hole[0]}` has no value: {error.message}", help=error.help or AS_TEXT) from error

    def raise_absent(self, hole: str, path: str) -> None:
        """Raise AgentError for a path that leads to nothing, with the first part of it that is not there."""
        holder, part = "", ""
        value: Any = self._all
        for name, index in LINK.findall(path):
            part = name or f"[{index}]"
            if (member := _by_path(part, value)) is undefined:
                break
            holder = f"{holder}.{name}" if holder and name else f"{holder}{part}"
            value = member
        else:
            return
        message, help = f"`{holder}` is a {type_of(value)}, which has no `{part}`", MAY_BE_MISSING
        if isinstance(value, Mapping):
            near = nearest(part, [str(each) for each in value])
            known = f"It has {_list_names(list(value))}." if value else "It is empty."
            message = f"`{holder}` has no `{part}`"
            help = f"Did you mean `{holder}.{near}`?" if near else f"{known} {MAY_BE_MISSING}"
            if not holder:
                message, help = f"no action before it gave a `{part}`", "Write the value itself."
        elif isinstance(value, (str, list)) and callable(get(value, part)):
            message, help = f"`{holder}.{part}` is a function", f"Call it, as in `{holder}.{part}(…)`."
        elif isinstance(value, list):
            message = f"`{holder}` has {len(value)} item{'' if len(value) == 1 else 's'}, and no `{part}`"
        elif value is None:
            message = f"`{holder}` is null"
        raise AgentError(f"`{hole}` has no value: {message}", help=f"{help} {AS_TEXT}")

    def evaluate_condition(self, condition: Any) -> bool:
        """Whether a condition is true: a boolean, or the text of an expression, with or without `${…}` around parts.

        Raises:
            KoiError: it is something else, or the text is no expression over known names.
        """
        if isinstance(condition, bool):
            return condition
        if not isinstance(condition, str):
            raise AgentError(f"`condition` must be true, false or the text of an expression, not {as_text(condition)}")
        given: dict[str, Any] = {}
        # A hole in quotes of its own, as in `"${user.output.name}" == "Ada"`.
        unquoted = re.sub(rf"""(["'])({self._holes.pattern})\1""", r"String(\2)", condition)
        expression = self._holes.sub(lambda hole: self._operand(hole, given), unquoted)
        rules = ExpressionRules.LENIENT if self._can_fail else ExpressionRules.EARLIER
        return bool(truth(self._evaluate(expression, ChainMap(given, *self._all.maps), rules)))

    def _operand(self, hole: re.Match[str], given: dict[str, Any]) -> str:
        """A hole as an operand of an expression; a value found by path gets a name, so that any id can be used."""
        if self._is_literal(hole):
            return hole[0]
        spelled = spelled_in(hole)
        found = _by_path(spelled, self._all) if PATH.fullmatch(spelled) and not spelled.isdigit() else undefined
        if found is undefined:
            return f"({spelled})"
        name = f"_{len(given)}"
        given[name] = found
        return name


def open_result(value: Any) -> Any:
    """A result whose only field is `result`, an object as JSON text, with the fields of that object beside it."""
    if not isinstance(value, dict) or value.keys() != {"result"} or not isinstance(value["result"], str):
        return value
    try:
        inner = json.loads(value["result"])
    except (ValueError, RecursionError):
        return value
    return {**inner, **value} if isinstance(inner, dict) else value


def _names_in(spelled: str) -> set[str]:
    """The names that an expression mentions; ids of paths may hold `-`."""
    names = set(NAME.findall(TEXTS.sub("", spelled)))
    return {*names, LINK.findall(spelled)[0][0]} if PATH.fullmatch(spelled) else names


def _is_object(hole: re.Match[str]) -> bool:
    """Whether a hole looks like an object in one, as in `${{ a: 1 }}`."""
    return hole[0].startswith("{{") and hole.string[: hole.start()].endswith("$")


def _by_path(path: str, names: Mapping[str, Any]) -> Any:
    value: Any = names
    for name, index in LINK.findall(path):
        if value is None or value is undefined or not isinstance(value, (Mapping, list, str)):
            return undefined
        value = value.get(name, undefined) if isinstance(value, Mapping) else get(value, name or int(index))
        value = undefined if callable(value) else value  # methods are for code
    return value


# ---------------------------------------------------------------- references to what is not there


def require_results(names: ActionScope, fields: Mapping[str, Any]) -> None:
    """Raise AgentError where a field refers to a failed or skipped action, or to a value missing in its result.

    Text may hold `${…}` for other reasons, such as code that a model writes: what names no result stays as it is.
    """
    for key, value in fields.items():
        for text in texts_in(value) if key not in KEPT else ():
            for hole in names.open_holes(text):
                _require(names, spelled_in(hole), hole[0], text)


def _require(names: ActionScope, spelled: str, hole: str, text: str) -> None:
    # In JavaScript that a model writes, holes stand in backticks.
    alone, in_code = hole == text.strip(), "`" in text
    known, referred = names.results(), REFERENCE.findall(spelled)
    for id in referred:
        if id in names.missing:
            raise AgentError(f"`{hole}` has no value: `{id}` {names.missing[id]}", help="Go on without its result.")
    is_path = PATH.fullmatch(spelled) is not None
    if is_path and names.find(spelled) is not undefined:
        return
    for id in referred:
        near = nearest(id, [*known, *names.missing])
        if id not in known and (alone or (near and not in_code)):
            help = f"There are results of {_list_names(known)}. {AS_TEXT}" if known else AS_TEXT
            help = help if near is None else f"Did you mean `{near}`?"
            raise AgentError(f"`{hole}` has no value: there is no result `{id}`", help=help)
    root = (REFERENCE.match(spelled) or LAST.match(spelled)) if is_path else None
    if root is not None and (alone or names.find(root[0]) is not undefined):
        names.raise_absent(hole, spelled)


def _list_names(names: list[str]) -> str:
    more = ", …" if len(names) > MAX_LISTED else ""
    return ", ".join(f"`{name}`" for name in names[:MAX_LISTED]) + more
