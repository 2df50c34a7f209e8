"""One event is one trace from the request to the commit, as a collector receives it; off, nothing is loaded."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from services.opentelemetry import OpenTelemetryTracer
from services.tracing import start_traces, stop_traces
from shared import tracing
from shared.queue import keys
from shared.table import PartitionKey
from shared.tracing import Origin, SpanName
from tests.support.live_decider import LiveDecider, WrittenTable, decider_settings
from tests.support.memory_engine import MemoryEngine
from tests.support.waiting import until
from tests.support.worker_bench import EIGHT, Bench


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


PARTITION = PartitionKey('{"dt":"2026-01-01"}')
CALLERS = [(f"{number:032x}", f"{number:016x}") for number in (0xA1, 0xB2)]
"""Trace and span of two callers."""

PRODUCER, CONSUMER, SERVER = 4, 5, 2
"""Kinds of spans in OTLP."""


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    made = OtlpReceiver()
    yield made
    made.close()


@pytest.fixture
def tracer(receiver: OtlpReceiver) -> Iterator[OpenTelemetryTracer]:
    made = start_traces("decider", "0.0.1", {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url})
    assert made is not None
    yield made
    stop_traces(made)


class Lake:
    """A decider that follows one table, and an actor whose engine is in memory."""

    def __init__(self, redis_url: str, tracer: OpenTelemetryTracer, folder: Path) -> None:
        settings = decider_settings(redis_url, roots=(folder.as_uri(),), buckets={"lake": folder.as_uri()})
        self.decider = LiveDecider(settings).start(traces=tracer.provider)
        self.table = WrittenTable(folder / "orders", days=("2026-01-01",))
        self.decider.register(self.table.path, "orders")
        self.engine = MemoryEngine()
        self.engine.append(EIGHT, PARTITION)
        self.engine.table_uuid = str(DeltaTable(str(self.table.path)).metadata().id)
        self.bench = Bench(redis_url, self.engine)

    def commit_and_tell(self, caller: tuple[str, str]) -> None:
        """Commit small files, and post the event of the newest under a caller's trace."""
        self.table.append(5)
        trace, span = caller
        headers = {"traceparent": f"00-{trace}-{span}-01"}
        answer = self.decider.client.post(
            "/v1/events", json=self.table.event(self.table.version), headers=headers
        ).raise_for_status()
        assert answer.json()["accepted"] == 1
        self.decider.drain()
        self.decider.answered()

    def close(self) -> None:
        self.bench.close()
        self.decider.close()


@pytest.fixture
def lake(redis_url: str, tracer: OpenTelemetryTracer, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(redis_url, tracer, tmp_path)
    yield made
    made.close()


def child_of(parent: ReceivedSpan, spans: list[ReceivedSpan]) -> ReceivedSpan:
    (found,) = [span for span in spans if (span.trace, span.parent) == (parent.trace, parent.id)]
    return found


@pytest.mark.redis
def test_one_event_is_one_trace_of_connected_spans_from_the_request_to_the_commit(
    lake: Lake, receiver: OtlpReceiver, tracer: OpenTelemetryTracer
) -> None:
    lake.commit_and_tell(CALLERS[0])
    assert lake.bench.worker().run_next()
    tracer.provider.force_flush()
    ours = [span for span in receiver.spans if span.trace == CALLERS[0][0]]
    (request,) = [span for span in ours if span.parent == CALLERS[0][1]]
    chain = [request]
    while len(chain) < len(ours):
        chain.append(child_of(chain[-1], ours))
    assert [span.name for span in chain] == [
        "POST /v1/events", "refresh table", "decide", "enqueue default", "run default", "rewrite", "commit",
    ]  # fmt: skip
    assert [chain[at].kind for at in (0, 3, 4)] == [SERVER, PRODUCER, CONSUMER]
    assert not any(span.is_error or span.links for span in chain)
    assert all(before.started_ns <= after.started_ns for before, after in pairwise(chain[:6]))
    run, rewrite = chain[4], chain[5]
    assert request.attributes["http.response.status_code"] == 202
    assert chain[1].attributes["lakewright.table"] == "orders"
    assert chain[2].attributes["lakewright.commits"] == 5
    assert chain[3].attributes["messaging.batch.message_count"] == 1
    assert run.attributes["messaging.message.id"] == run.attributes["lakewright.job.id"]
    assert run.attributes["lakewright.partition"] == PARTITION
    assert (run.attributes["lakewright.action"], run.attributes["lakewright.outcome"]) == ("compact", "done")
    # The commit names its rewrite's span, and the run's record the run's: logs and traces lead to each other.
    (mark,) = lake.engine.marks.values()
    assert mark.traceparent == f"00-{rewrite.trace}-{rewrite.id}-01"
    (record,) = lake.bench.runs()
    report = json.loads(record.result)
    assert report["traceparent"] == f"00-{run.trace}-{run.id}-01"
    assert run.attributes["lakewright.bytes"] == report["measured"]["bytes"] > 0


@pytest.mark.redis
def test_events_that_lead_to_one_job_are_linked_to_its_run(
    lake: Lake, receiver: OtlpReceiver, tracer: OpenTelemetryTracer
) -> None:
    for caller in CALLERS:
        lake.commit_and_tell(caller)
    assert lake.bench.worker().run_next()
    tracer.provider.force_flush()
    older, newer = receiver.named("enqueue default")
    assert [older.trace, newer.trace] == [trace for trace, _ in CALLERS]
    run = receiver.one("run default")
    assert (run.trace, run.parent, run.links) == (newer.trace, newer.id, ((older.trace, older.id),))
    assert receiver.one("commit").trace == newer.trace


@pytest.mark.redis
def test_requests_of_probes_and_of_the_stream_are_not_recorded(
    lake: Lake, receiver: OtlpReceiver, tracer: OpenTelemetryTracer
) -> None:
    for path in ("/readyz", "/metrics", "/v1/me"):
        lake.decider.client.get(path).raise_for_status()
    lake.decider.answered()
    tracer.provider.force_flush()
    assert [span.name for span in receiver.spans if span.name.startswith("GET")] == ["GET /v1/me"]


@pytest.mark.redis
def test_without_traces_a_job_carries_none(redis_url: str, decider: LiveDecider, tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "orders", days=("2026-01-01",))
    table.append(11)
    headers = {"traceparent": f"00-{CALLERS[0][0]}-{CALLERS[0][1]}-01"}
    decider.client.post("/v1/tables", json={"location": str(table.path)}, headers=headers).raise_for_status()
    decider.drain()
    (job,) = decider.get("/v1/jobs")["jobs"]
    redis = Bench(redis_url, MemoryEngine()).queue.redis
    assert not redis.hexists(keys.job("default", job["id"]), "traces")


def test_a_collector_that_is_away_does_not_keep_a_service_from_ending() -> None:
    tracer = start_traces("actor", "0.0.1", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"})
    assert tracer is not None
    tracing.start(SpanName.REWRITE, Origin(), {}).end()
    ending = threading.Thread(target=stop_traces, args=(tracer,), daemon=True)
    ending.start()
    until("traces are stopped", lambda: not ending.is_alive())
    assert not tracing.is_on()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_traces_are_off_unless_an_endpoint_that_we_can_reach_is_configured(settings: dict[str, str]) -> None:
    assert start_traces("actor", "0.0.1", settings) is None
    assert not tracing.is_on()


def test_a_service_without_traces_loads_neither_tracer_nor_exporter() -> None:
    """FastAPI loads OpenTelemetry's API, and Redis' client the SDK's metrics where it is installed; we load nothing."""
    program = """
import sys
import services.actor.__main__
from services.decider.build import build_app
from services.decider.settings import DeciderSettings
from services.tracing import start_traces
build_app(DeciderSettings())
assert start_traces("actor", "1", {}) is None
heavy = ("opentelemetry.exporter", "opentelemetry.sdk.trace", "opentelemetry.proto", "services.opentelemetry")
print([name for name in sys.modules if name.startswith(heavy)])
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
