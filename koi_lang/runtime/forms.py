"""Forms: the fields of a JSON Schema put to a person one after the other, and answers as values of their types."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from math import isfinite
from typing import Any

from koi_lang.runtime.host import FormHost, Host
from koi_lang.runtime.mcp import validation
from koi_lang.runtime.mcp.safe_text import one_line

Ask = Callable[[str], Awaitable[str]]
MAX_TRIES = 3
# Nobody fills in a form that is longer.
MAX_FIELDS = 50
YES, NO = ("yes", "y", "true"), ("no", "n", "false")
# The form that the person is asked about just now, and the field of it.
form_field: ContextVar[Mapping[str, Any] | None] = ContextVar("form_field", default=None)
# Types as people call them.
NAMES = {"string": "text", "integer": "whole number", "boolean": "yes or no"}
# Stands for an answer that has no value of the type that is asked for.
UNFIT = object()


async def fill(host: Host, question: str, form: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answers to a form, put to the person as the host can; None when they decline. Raises NobodyToAskError."""
    if isinstance(host, FormHost):
        return await host.fill(question, form)
    return await Form(question, form).fill_in(host.ask)


class Form:
    """Questions, one a field. A field that is left empty has its default; without one, leaving it empty declines.

    Attributes:
        title: stands above each question.
    """

    def __init__(self, title: str, schema: Mapping[str, Any]) -> None:
        properties, required = schema.get("properties"), schema.get("required")
        self.title, self._schema = title, schema
        self._fields: dict[str, Any] = properties if isinstance(properties, dict) else {}
        self._required = required if isinstance(required, list) else []

    async def fill_in(self, ask: Ask) -> dict[str, Any] | None:
        """The answers by field; None when the person declines. Raises NobodyToAskError."""
        if not self._fields:
            return {} if (await ask(f"{self.title} (yes or no)")).strip().lower() in YES else None
        if len(self._fields) > MAX_FIELDS:
            return None
        await asyncio.to_thread(validation.load)
        content: dict[str, Any] = {}
        for name, about in self._fields.items():
            token = form_field.set({"title": self.title, "schema": self._schema, "field": name})
            try:
                answer = await self._field(ask, name, about if isinstance(about, dict) else {})
            finally:
                form_field.reset(token)
            if answer is not UNFIT:
                content[name] = answer
            elif name in self._required:
                return None
        return content or None

    async def _field(self, ask: Ask, name: str, about: Mapping[str, Any]) -> Any:
        """The answer to one question; UNFIT when there is none, or none that fits after three attempts."""
        question = f"{self.title}\n{_question(name, about)}"
        for _ in range(MAX_TRIES):
            given = (await ask(question)).strip()
            if not given:
                return about.get("default", UNFIT)
            value = _convert(given, about)
            if value is not UNFIT and _fits(value, about):
                return value
        return UNFIT


def _question(name: str, about: Mapping[str, Any]) -> str:
    said = one_line(str(about.get("description", "")))
    title = one_line(str(about.get("title") or name))
    default = f", else {one_line(_as_text(about['default']))}" if "default" in about else ""
    return f"{title}{f': {said}' if said else ''} ({one_line(_kind(about), 500)}{default})"


def _kind(about: Mapping[str, Any]) -> str:
    """The permitted answers: the options with their titles, or the type."""
    options = _options(about)
    if options:
        named = (f"{value}: {title}" if title and title != str(value) else str(value) for value, title in options)
        several = ", several with commas" if about.get("type") == "array" else ""
        return " / ".join(named) + several
    kind = str(about.get("format") or about.get("type", "string"))
    return NAMES.get(kind, kind)


def _options(about: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """The values that may be chosen, with their titles, in each way that servers describe them."""
    items = about.get("items")
    if about.get("type") == "array" and isinstance(items, dict):
        return _options(items)
    for keyword in ("oneOf", "anyOf"):
        if isinstance(about.get(keyword), list):
            known = [option for option in about[keyword] if isinstance(option, dict) and "const" in option]
            return [(option["const"], str(option.get("title", ""))) for option in known]
    values, names = about.get("enum"), about.get("enumNames")
    if not isinstance(values, list):
        return []
    titles = names if isinstance(names, list) and len(names) == len(values) else [""] * len(values)
    return [(value, str(title)) for value, title in zip(values, titles, strict=True)]


def _convert(given: str, about: Mapping[str, Any]) -> Any:
    """An answer as a value of the type that is asked for; UNFIT when it is not one."""
    kind, options = about.get("type"), _options(about)
    if kind == "array":
        pieces = [piece.strip() for piece in given.split(",")]
        chosen = [_find_option(piece, options) for piece in pieces] if options else pieces
        return UNFIT if UNFIT in chosen else chosen
    if options:
        return _find_option(given, options)
    match kind:
        case "boolean":
            return True if given.lower() in YES else False if given.lower() in NO else UNFIT
        case "integer" | "number":
            return _number(given, whole=kind == "integer")
    return given


def _find_option(given: str, options: list[tuple[Any, str]]) -> Any:
    """The option that an answer names, by its value or its title."""
    named = [value for value, title in options if given == str(value)]
    titled = [value for value, title in options if title and given.lower() == title.lower()]
    return next(iter(named + titled), UNFIT)


def _number(given: str, *, whole: bool) -> Any:
    try:
        value = float(given)
    except ValueError:
        return UNFIT
    if value.is_integer():
        return int(value)
    return value if isfinite(value) and not whole else UNFIT


def _fits(value: Any, about: Mapping[str, Any]) -> bool:
    """Whether a value meets all conditions of its field; those that cannot be checked count as met."""
    try:
        return not any(validation.Checks(about, has_formats=True).problems(value))
    except ValueError:
        return True


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
