"""What a parameter of a command may be, as completion offers it: programs, runs, codes, parts of the library, names.

Each function has the form that click wants: of a context, a parameter, and what has been typed of the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from click import Context, Parameter
from click.shell_completion import CompletionItem

from koi_lang.errors import JournalError
from koi_lang.lazy import lazy_module
from koi_lang.system import resources

if TYPE_CHECKING:
    from koi_lang.compiler import rules
    from koi_lang.llm import providers
    from koi_lang.runtime.journal import reader, store
else:
    rules = lazy_module("koi_lang.compiler.rules")
    providers = lazy_module("koi_lang.llm.providers")
    reader = lazy_module("koi_lang.runtime.journal.reader")
    store = lazy_module("koi_lang.runtime.journal.store")

# Of many runs only the last ones are offered before something of an id has been typed.
MAX_RUNS = 30
# Heads of agents and of their handlers; a program that is being written need not compile.
HEAD = re.compile(
    r"^[ \t]*(?:agent[ \t]+(\w+)[ \t]*:|(?:private[ \t]+)?on[ \t]+(\w+)[ \t]*\()", re.MULTILINE | re.IGNORECASE
)


def complete_program(_: Context, __: Parameter, word: str) -> list[CompletionItem]:
    """Programs and folders, which the shell finds itself."""
    return [CompletionItem(word, type="koi")]


def complete_file(_: Context, __: Parameter, word: str) -> list[CompletionItem]:
    """Files of any kind, which the shell finds itself."""
    return [CompletionItem(word, type="file")]


def complete_run(_: Context, __: Parameter, word: str) -> list[CompletionItem]:
    """The ids of runs that were recorded in this folder, the latest first, with what was run."""
    paths = [path for path in reversed(store.journals(Path.cwd())) if path.stem.startswith(word)]
    last = [CompletionItem(store.LAST, help="the last run")] if paths and store.LAST.startswith(word) else []
    return [*last, *(CompletionItem(path.stem, help=_describe_run(path)) for path in paths[:MAX_RUNS])]


def complete_program_or_run(context: Context, parameter: Parameter, word: str) -> list[CompletionItem]:
    """Runs, and programs beside them."""
    return [*complete_run(context, parameter, word), *complete_program(context, parameter, word)]


def complete_code(_: Context, __: Parameter, word: str) -> list[CompletionItem]:
    """Codes of messages, with what each says."""
    known = sorted(rules.explanations().items())
    return [CompletionItem(code, help=text.partition("\n")[0]) for code, text in known if code.startswith(word.upper())]


def complete_part(_: Context, __: Parameter, word: str) -> list[CompletionItem]:
    """Parts of the standard library, as they are typed: with `std/` or without it."""
    prefix = "std/" if word.startswith("std/") else ""
    names = sorted(path.stem for path in resources.standard_skills().glob("*.koi"))
    return _starting(word, (prefix + name for name in names))


def complete_provider(_: Context, __: Parameter, word: str) -> list[CompletionItem]:
    """Providers of models."""
    return _starting(word, sorted(provider.name for provider in providers.PROVIDERS))


def complete_agent(context: Context, _: Parameter, word: str) -> list[CompletionItem]:
    """The agents of the program that stands before on the line."""
    return _starting(word, dict.fromkeys(agent for agent, _ in _handlers_of(context)))


def complete_handler(context: Context, _: Parameter, word: str) -> list[CompletionItem]:
    """The handlers of the program that stands before on the line, as `Agent.handler`."""
    return _starting(word, (f"{agent}.{handler}" for agent, handler in _handlers_of(context) if handler))


def _starting(word: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.lower().startswith(word.lower())]


def _describe_run(path: Path) -> str:
    try:
        header = reader.read_header(path)
    except JournalError:
        return "cannot be read"
    return f"{Path(header.program).name}, {datetime.fromtimestamp(header.started):%d %b %H:%M}"


def _handlers_of(context: Context) -> Iterator[tuple[str, str]]:
    """Each agent with an empty name, and with each of its handlers, as they are spelt in the file."""
    try:
        text = Path(str(context.params.get("file") or "")).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return
    agent = ""
    for head in HEAD.finditer(text):
        agent = head[1] or agent
        if agent:
            yield agent, head[2] or ""
