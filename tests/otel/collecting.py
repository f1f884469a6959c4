"""Spans as a collector gets them: those of events, in memory, and those that come over HTTP, as protobuf."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from koi_lang.events import Event
from koi_lang.otel.run_spans import RunSpans
from koi_lang.otel.span_tree import SpanTree


def spans_of(
    events: Iterable[Event], *, has_content: bool = False, secret: str = "hunter2"
) -> tuple[ReadableSpan, ...]:
    """The spans that a run makes, in the order in which they end."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tree = SpanTree(provider.get_tracer("test"), lambda text: text.replace(secret, "***"))
    consumer = RunSpans(tree, "program", has_content=has_content)
    for event in events:
        consumer(event)
    return exporter.get_finished_spans()


def lines_of(spans: Iterable[ReadableSpan]) -> list[str]:
    """The names of spans as a tree, a line each, in the order in which they began."""
    found = sorted(spans, key=lambda span: (span.start_time or 0, span.end_time or 0))
    inside: dict[int, list[ReadableSpan]] = {}
    for span in found:
        inside.setdefault(0 if span.parent is None else span.parent.span_id, []).append(span)

    def lines(parent: int, depth: int) -> Iterator[str]:
        for span in inside.get(parent, []):
            yield "  " * depth + span.name
            assert span.context is not None
            yield from lines(span.context.span_id, depth + 1)

    return list(lines(0, 0))


@dataclass
class Collector:
    """What listens as a collector does.

    Attributes:
        spans: what has arrived, as name, attributes, id and parent's id.
        services: the names of the services that it came from.
    """

    port: int = 0
    spans: list[tuple[str, Mapping[str, Any], bytes, bytes]] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    traces: set[bytes] = field(default_factory=set)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        """Decode a request."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services |= {
                each.value.string_value for each in resource.resource.attributes if each.key == "service.name"
            }
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                self.traces.add(span.trace_id)
                told = {each.key: value_of(each.value) for each in span.attributes}
                self.spans.append((span.name, told, span.span_id, span.parent_span_id))


def value_of(value: Any) -> Any:
    """The value of an attribute in protobuf."""
    kind = value.WhichOneof("value")
    return [value_of(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@contextmanager
def listening() -> Iterator[Collector]:
    """A collector on a port of its own."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.headers.append(dict(self.headers))
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
