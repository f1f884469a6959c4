"""Spans on their way out of the process, which nothing waits for but its end, and that not for long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace import export as exporting
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
else:
    exporting = lazy_module("opentelemetry.sdk.trace.export")

# How long the end of the process waits for spans that are still to be delivered.
MAX_WAIT_S = 2.0
LOG = logging.getLogger("koi_lang")


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
