"""Providers and efforts that an `llm` block names and that do not exist."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.diagnostics import SLIP_IN_FOUR, nearest
from koi_lang.efforts import EFFORTS, effort_help

PROVIDERS = (
    "openai", "anthropic", "gemini", "groq", "deepseek", "moonshot", "xai", "qwen", "together", "openrouter", "mistral",
    "bedrock", "ollama", "rehearsal", "scripted",
)  # fmt: skip
# Makers of models whose names look like a mistyped provider.
MAKERS = ("deepseek-ai", "mistralai", "moonshotai", "x-ai")
OPEN = ("auto", "")


@rule("E0418", "error")
def unknown_provider(file: Analysis, report: Report) -> None:
    """An `llm` block names a provider that does not exist, but for a few letters.

    The providers are `openai`, `anthropic`, `gemini`, `groq`, `deepseek`, `moonshot`, `xai`, `qwen`, `together`,
    `openrouter`, `mistral`, `bedrock`, `ollama`, and `rehearsal` and `scripted`, which work without a network. For
    anything else that speaks the interface of OpenAI, write `provider: "openai"` with its `base_url`. A name that is
    like none of these may be one that an extension adds; whether it is there turns out when the program runs.

    Wrong:

        in agent: llm default = { provider: "antropic", model: "haiku" }

    Right:

        in agent: llm default = { provider: "anthropic", model: "haiku" }
    """
    for llm, _ in file.index.of(n.Llm):
        for text in _wrong(llm.options):
            maker, mark, model = text.value.partition("/")
            help = f"did you mean `{nearest(maker, PROVIDERS)}{mark}{model}`?"
            report.add(text.span, f"there is no provider `{maker}`", help=help)


@rule("E0443", "error")
def unknown_effort(file: Analysis, report: Report) -> None:
    """An `llm` block asks for an effort that does not exist.

    How much a model thinks before it answers is `none`, `low`, `medium` or `high`; without `effort` the model decides.
    One that cannot be asked for just that gets the nearest level that it has, and the run says so.

    Wrong:

        in agent: llm default = { model: "openai/gpt-5.4", effort: "hihg" }

    Right:

        in agent: llm default = { model: "openai/gpt-5.4", effort: "high" }
    """
    for llm, _ in file.index.of(n.Llm):
        for options in _with_fallbacks(llm.options):
            for property in options.properties:
                if isinstance(property, n.Property) and property.key == "effort" and _is_no_effort(property.value):
                    given = property.value.value if isinstance(property.value, n.Text) else None
                    told = "an effort is a text" if given is None else f"there is no effort `{given}`"
                    report.add(property.value.span, told, help=effort_help(given))


def _with_fallbacks(options: n.Object) -> Iterator[n.Object]:
    """The options of a model, and of those in its `fallback`."""
    yield options
    for property in options.properties:
        if isinstance(property, n.Property) and property.key == "fallback" and isinstance(property.value, n.Array):
            yield from (item for item in property.value.items if isinstance(item, n.Object))


def _is_no_effort(value: n.Expression) -> bool:
    if isinstance(value, n.Text):
        return value.value not in EFFORTS
    return isinstance(value, (n.Literal, n.Object, n.Array))


def _wrong(options: n.Object) -> Iterator[n.Text]:
    """The texts that name a provider that does not exist, those of `fallback` included."""
    given = {each.key: each.value for each in options.properties if isinstance(each, n.Property)}
    provider, model, fallback = given.get("provider"), given.get("model"), given.get("fallback")
    if isinstance(provider, n.Text):
        is_known, name = provider.value.lower() in (*PROVIDERS, *OPEN), provider.value.lower()
        yield from () if is_known or not get_close_matches(name, PROVIDERS, n=1, cutoff=SLIP_IN_FOUR) else (provider,)
    if isinstance(model, n.Text) and (provider is None or _is_open(provider)) and _is_mistyped(model.value):
        yield model
    for other in fallback.items if isinstance(fallback, n.Array) else ():
        if isinstance(other, n.Object):
            yield from _wrong(other)
        elif isinstance(other, n.Text) and _is_mistyped(other.value):
            yield other


def _is_open(provider: n.Expression) -> bool:
    return isinstance(provider, n.Text) and provider.value.lower() in OPEN


def _is_mistyped(model: str) -> bool:
    """Whether what stands before the `/` is nearly a provider; else it may be the maker of a model."""
    maker, mark, _ = model.lower().partition("/")
    is_maker = not mark or maker in (*PROVIDERS, *MAKERS)
    return not is_maker and bool(get_close_matches(maker, PROVIDERS, n=1, cutoff=SLIP_IN_FOUR))
