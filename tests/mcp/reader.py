"""A reader of prompts: it calls each tool from what its line says, and knows nothing else of it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from koi_lang.llm.messages import Request
from tests.playbook.playing import act

LINE = re.compile(r"- (?P<server>\w+)\.(?P<tool>[\w-]+)\((?P<takes>.*)\)(?: \"(?P<about>.*)\")?")
COMMENT = re.compile(r"\s*/\*.*?\*/")
WORD = re.compile(r"[\w$-]+")
CONSTRAINT = re.compile(r"(\w+) ")
DECODER = json.JSONDecoder()


class Reader:
    """Writes a call for each tool of a prompt, one an answer.

    Args:
        wishes: texts and numbers by the name of the field, or of the tool and the field: `get_time.zone`. Where they
            stand, which fields there must be, and what else is in them, is up to the prompt.
    """

    def __init__(self, wishes: Mapping[str, Any]) -> None:
        self._wishes = wishes
        self.called: list[str] = []

    async def speak(self, request: Request) -> AsyncIterator[str]:
        """The call of the next tool; behind the last, a `return`. A server that asks for a model gets a word."""
        tools = [found for line in request.system.splitlines() if (found := LINE.fullmatch(line))]
        if not tools:
            yield "green"
            return
        if len(self.called) == len(tools):
            yield json.dumps(act("return", data={}))
            return
        tool = tools[len(self.called)]
        self.called.append(tool["tool"])
        given = Fields(tool["takes"], self._wishes, tool["tool"]).read()
        yield json.dumps(act("call_mcp", mcp=tool["server"], tool=tool["tool"], input=given))


class Fields:
    """Reads the parameters of one tool, and makes up arguments for them meanwhile."""

    def __init__(self, text: str, wishes: Mapping[str, Any], tool: str) -> None:
        self._text, self._at, self._wishes, self._tool = text, 0, wishes, tool

    def read(self) -> dict[str, Any]:
        """An object with all fields that must be there, and those that are wished for."""
        given: dict[str, Any] = {}
        while self._at < len(self._text) and not self._meets(" }"):
            name = self._word()
            is_optional = self._takes("?")
            assert self._takes(": "), self._rest
            value = self._type(self._wish(name))
            default = self._literal() if self._takes(" = ") else None
            self._skip_comment()
            if not is_optional or self._wish(name) is not None:
                given[name] = value if value is not None else default
            self._takes(", ")
        return given

    def _type(self, wish: Any) -> Any:
        """A value of the type that is written here, the wished one if there is one."""
        options = [self._option(wish)]
        while self._takes(" | "):
            options.append(self._option(wish))
        literals = [option for option in options if option == wish]
        return literals[0] if literals else options[0]

    def _option(self, wish: Any) -> Any:
        value = self._primary(wish)
        least = self._constraints().get("minimum")
        while self._takes("[]"):
            value = [value]
            self._constraints()
        return least if wish is None and least is not None else value

    def _primary(self, wish: Any) -> Any:
        if self._takes("("):
            value = self._type(wish)
            self._skip_comment()
            assert self._takes(")"), self._rest
            return value
        if self._takes("{ "):
            fields = self.read()
            assert self._takes(" }"), self._rest
            return fields
        if self._text[self._at] in '"-0123456789':
            return self._literal()
        kinds = {"string": "text", "number": 1, "integer": 1, "boolean": False, "null": None}
        word = self._word()
        return kinds[word] if wish is None or word == "null" else wish

    def _constraints(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._meets("(") and CONSTRAINT.match(self._text, self._at + 1):
            self._takes("(")
            while not self._takes(")"):
                name = self._word()
                assert self._takes(" "), self._rest
                found[name] = self._literal()
                self._takes(", ")
        return found

    # ------------------------------------------------------------ characters

    @property
    def _rest(self) -> str:
        return self._text[self._at :]

    def _wish(self, name: str) -> Any:
        return self._wishes.get(f"{self._tool}.{name}", self._wishes.get(name))

    def _meets(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _takes(self, text: str) -> bool:
        found = self._meets(text)
        self._at += len(text) if found else 0
        return found

    def _word(self) -> str:
        found = WORD.match(self._text, self._at)
        assert found is not None, self._rest
        self._at = found.end()
        return found[0]

    def _literal(self) -> Any:
        value, self._at = DECODER.raw_decode(self._text, self._at)
        return value

    def _skip_comment(self) -> None:
        found = COMMENT.match(self._text, self._at)
        self._at = found.end() if found else self._at
