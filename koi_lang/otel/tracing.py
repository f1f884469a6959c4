"""A run to the consumers of its events that make a trace of it, where a variable asks for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from koi_lang.errors import SettingsError
from koi_lang.events import Event, RunEnded
from koi_lang.lazy import lazy_module
from koi_lang.otel.variables import is_content_wanted
from koi_lang.system.installation import this_installation

if TYPE_CHECKING:
    from koi_lang.otel import provider, run_spans, span_tree
else:
    provider = lazy_module("koi_lang.otel.provider")
    run_spans = lazy_module("koi_lang.otel.run_spans")
    span_tree = lazy_module("koi_lang.otel.span_tree")


def trace_run(
    program: str, redact: Callable[[str], str], note_once: Callable[[str, str], None]
) -> list[Callable[[Event], None]]:
    """The consumers that make a trace of a run; none where nothing can make one.

    Args:
        program: the path of its file.
        redact: takes secrets out of a text.
        note_once: tells the person something of a name, once.
    """
    if not provider.is_installed():
        help = f"Install it with `{this_installation().install_command('otel')}`, or set OTEL_SDK_DISABLED=true."
        note_once("otel", f"no traces are written: the SDK of OpenTelemetry is missing. {help}")
        return []
    try:
        tracer = provider.tracer()
    except SettingsError as error:
        note_once("otel-exporter", f"no traces are written: {error.message}. {error.help}")
        return []
    tree = span_tree.SpanTree(tracer, redact, provider.outer_context())
    spans = run_spans.RunSpans(tree, Path(program).stem, has_content=is_content_wanted())
    return [spans, _flush_at_end]


def _flush_at_end(event: Event) -> None:
    made = provider.delivery()
    if made is not None and isinstance(event.data, RunEnded):
        made.begin_flush()
