"""A collector of traces: takes OTLP over HTTP on a free port and decodes the protobuf that exporters send."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """One span as it arrived; ids are hex, `links` are (trace, span)."""

    service: str
    name: str
    kind: int
    trace: str
    id: str
    parent: str
    links: tuple[tuple[str, str], ...]
    attributes: Mapping[str, Any]
    is_error: bool
    started_ns: int
    ended_ns: int


class OtlpReceiver:
    """Keeps every span; `url` is what OTEL_EXPORTER_OTLP_ENDPOINT names."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
                receiver.spans += decoded(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="otlp-receiver")
        self._thread.start()

    def named(self, name: str) -> list[ReceivedSpan]:
        """Return the spans of a name, in the order of their arrival."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReceivedSpan:
        """Return the only span of a name."""
        (found,) = self.named(name)
        return found

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def decoded(body: bytes) -> list[ReceivedSpan]:
    """Decode the body of an export."""
    request = ExportTraceServiceRequest.FromString(body)
    return [
        ReceivedSpan(
            service=str(_values(of_resource.resource.attributes)["service.name"]),
            name=span.name,
            kind=span.kind,
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
            attributes=_values(span.attributes),
            is_error=span.status.code == 2,
            started_ns=span.start_time_unix_nano,
            ended_ns=span.end_time_unix_nano,
        )
        for of_resource in request.resource_spans
        for scope in of_resource.scope_spans
        for span in scope.spans
    ]


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
