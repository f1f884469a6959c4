"""The tracer provider by the standard variables of OpenTelemetry, shared by all runs of the process."""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

from koi_lang import settings
from koi_lang.errors import SettingsError
from koi_lang.lazy import lazy_module
from koi_lang.otel.variables import ENDPOINTS
from koi_lang.version import __version__

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.sdk import resources
    from opentelemetry.sdk import trace as sdk_trace
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace import export as exporting
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace.propagation import tracecontext
else:
    exporting = lazy_module("opentelemetry.sdk.trace.export")
    resources = lazy_module("opentelemetry.sdk.resources")
    sdk_trace = lazy_module("opentelemetry.sdk.trace")
    trace = lazy_module("opentelemetry.trace")
    tracecontext = lazy_module("opentelemetry.trace.propagation.tracecontext")

PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
EXPORTERS = "opentelemetry_traces_exporter"
DEFAULT_PROTOCOL = "http/protobuf"
# How long the end of the process waits for spans that are still to be delivered.
MAX_WAIT_S = 2.0
LOG = logging.getLogger("koi_lang")


def is_installed() -> bool:
    """Whether the SDK of OpenTelemetry is installed."""
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None


@cache
def delivery() -> SpanDelivery | None:
    """The delivery of this process's spans; None where the program around Koi has set up its own.

    Raises:
        SettingsError: a variable names an exporter that is not there.
    """
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    _keep_quiet()
    exporter = CountingExporter(_exporter())
    provider = sdk_trace.TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(exporting.BatchSpanProcessor(exporter))  # type: ignore[arg-type]
    made = SpanDelivery(provider, exporter, _target())
    atexit.register(made.finish)
    return made


def tracer() -> trace.Tracer:
    """The tracer: of the provider of the program around Koi, else of that of the variables."""
    made = delivery()
    return trace.get_tracer("koi_lang", __version__, None if made is None else made.provider)


def outer_context() -> Context | None:
    """The span of the process that has started this one, which TRACEPARENT names."""
    carrier = {name.lower(): settings.variable(name) or "" for name in ("TRACEPARENT", "TRACESTATE")}
    if not carrier["traceparent"]:
        return None
    return tracecontext.TraceContextTextMapPropagator().extract(carrier)


def _protocol() -> str:
    return next(filter(None, map(settings.variable, PROTOCOLS)), DEFAULT_PROTOCOL)


def _target() -> str:
    named = next(filter(None, map(settings.variable, ENDPOINTS)), None)
    return f"`{named}`" if named else "the collector"


def _exporter() -> exporting.SpanExporter:
    """The exporter that variables name. Raises SettingsError."""
    name = settings.variable("OTEL_TRACES_EXPORTER") or "otlp"
    if name == "console":
        return exporting.ConsoleSpanExporter(out=sys.stderr)
    if name == "otlp":
        name = f"otlp_proto_{_protocol().partition('/')[0]}"
    found = next(iter(metadata.entry_points(group=EXPORTERS, name=name)), None)
    if found is None:
        help = "OTEL_TRACES_EXPORTER may be `otlp`, `console` or `none`, OTEL_EXPORTER_OTLP_PROTOCOL `http/protobuf`."
        raise SettingsError(f"there is no exporter `{name}` for traces", help=help)
    made: exporting.SpanExporter = found.load()()
    return made


def _resource() -> resources.Resource:
    """The resource of the spans: `koi`, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES name it."""
    named = resources.Resource.create()
    if str(named.attributes.get(resources.SERVICE_NAME, "")).startswith("unknown_service"):
        named = named.merge(resources.Resource({resources.SERVICE_NAME: "koi"}))
    return named


def _keep_quiet() -> None:
    """Attempts are logged for those who set up logging; losses are reported once, at the end."""
    log = logging.getLogger("opentelemetry")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
        log.propagate = False


class CountingExporter:
    """An exporter that counts the spans that another one could not deliver, and is quiet about each."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self.lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Hand spans on."""
        self.lost += len(spans)  # until it is known better: the process may end meanwhile
        result = self._inner.export(spans)
        if result is exporting.SpanExportResult.SUCCESS:
            self.lost -= len(spans)
        return result

    def shutdown(self) -> None:
        """End the other one."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have the other exporter send its spans."""
        return self._inner.force_flush(timeout_millis)


class SpanDelivery:
    """The delivery of this process's spans, and its end.

    Args:
        flush: sends all spans that have ended.
        target: where they go, for people.
    """

    def __init__(self, provider: TracerProvider, exporter: CountingExporter, target: str) -> None:
        self.provider = provider
        self._exporter = exporter
        self._target = target
        self._flush: Callable[[], object] = provider.force_flush
        self._thread: threading.Thread | None = None

    def begin_flush(self) -> None:
        """Begin sending in the background; a running flush takes new spans along."""
        if self._thread is None or not self._thread.is_alive():
            # A thread that was begun now may be waited for at the end of the process, when none can be begun any more.
            self._thread = threading.Thread(target=self._flush, name="koi-otel-flush", daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Wait for the current flush, and report undelivered spans."""
        if self._thread is not None:
            self._thread.join(MAX_WAIT_S)
        if self._exporter.lost:
            LOG.warning("%s", f"warning: {self._exporter.lost} spans could not be delivered to {self._target}")
