"""What providers make of a JSON Schema: the libraries that hold a model to one, each as a function of schema and text.

They are the extra `grammars`; without one of them the tests that need it are skipped and say how to install it. Of
`xgrammar` only compiler and matcher are used: the whole package would import `torch` and bring gigabytes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, TypeAlias

import pytest

Schema: TypeAlias = Mapping[str, Any]
Accepts: TypeAlias = Callable[[str], bool]
# Any JSON, as providers hold a model to it that is asked for `json_object`.
ANY: Schema = {"type": "object"}
XGRAMMAR = "0.2.8"
INSTALL = {
    "llguidance": "pip install -e '.[grammars]'",
    "outlines_core": "pip install -e '.[grammars]'",
    "xgrammar": f"pip install -e '.[grammars]' && pip install --no-deps xgrammar=={XGRAMMAR}",
}
LIBRARIES = pytest.mark.parametrize("library", list(INSTALL))


def grammar(library: str, schema: Schema) -> Accepts:
    """Whether a model that a library holds to a schema can write a text. Skips the test without the library.

    Raises:
        Exception: of the library, for a schema it makes no grammar of.
    """
    needed = (library, "tvm_ffi") if library == "xgrammar" else (library,)
    if any(find_spec(name) is None for name in needed):
        pytest.skip(f"`{library}` is not installed: {INSTALL[library]}")
    return MAKERS[library](json.dumps(schema))


def _llguidance(schema: str) -> Accepts:
    library: Any = import_module("llguidance")
    tokenizer, wanted = library.LLTokenizer("byte"), library.LLMatcher.grammar_from_json_schema(schema)
    error = library.LLMatcher.validate_grammar(wanted, tokenizer)
    if error:
        raise ValueError(error)

    def accepts(text: str) -> bool:
        matcher, tokens = library.LLMatcher(tokenizer, wanted), tokenizer.tokenize_str(text)
        return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())

    return accepts


def _outlines_core(schema: str) -> Accepts:
    pattern = re.compile(import_module("outlines_core.json_schema").build_regex_from_schema(schema))
    return lambda text: pattern.fullmatch(text) is not None


def _xgrammar(schema: str) -> Accepts:
    core, grammars = _core_of_xgrammar()
    wanted = grammars.Grammar.builtin_json_grammar() if schema == json.dumps(ANY) else None
    wanted = wanted or grammars.Grammar.from_json_schema(schema)
    compiler = core.GrammarCompiler(core.TokenizerInfo([], 0, None, None, False), 1, False, -1)
    compiled = compiler.compile_grammar_ebnf(wanted._handle)

    def accepts(text: str) -> bool:
        matcher = core.GrammarMatcher(compiled, None, True, -1, None)
        return bool(matcher.accept_string(text, False) and matcher.is_terminated())

    return accepts


@cache
def _core_of_xgrammar() -> tuple[Any, ModuleType]:
    """Compiler and matcher, and what makes grammars, without what the package imports beside them."""
    if metadata.version("xgrammar") != XGRAMMAR:
        pytest.skip(f"this `xgrammar` may be made of other parts: {INSTALL['xgrammar']}")
    if "xgrammar" not in sys.modules:
        spec = find_spec("xgrammar")
        assert spec is not None
        sys.modules["xgrammar"] = module_from_spec(spec)
    import_module("xgrammar.load_binding")
    core = import_module("xgrammar.base")._core
    return core, import_module("xgrammar.grammar")


MAKERS: Mapping[str, Callable[[str], Accepts]] = {
    "llguidance": _llguidance,
    "outlines_core": _outlines_core,
    "xgrammar": _xgrammar,
}
