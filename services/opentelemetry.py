"""OpenTelemetry's SDK, which sends spans by OTLP over HTTP; loaded by `services.tracing` if traces are configured."""

import threading

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

CLOSE_S = 3.0
"""Seconds in which the last spans are sent when a service stops: supervisors wait about ten."""


class OpenTelemetryTracer:
    """The tracer of a service; `provider` is for libraries that record spans themselves."""

    def __init__(self, endpoint: str, *, service: str, release: str) -> None:
        # The variables OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have precedence.
        resource = Resource({"service.version": release}).merge(Resource.create())
        if str(resource.attributes.get("service.name")).startswith("unknown_service"):
            resource = resource.merge(Resource({"service.name": service}))
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self.tracer = self.provider.get_tracer("lakewright", release)

    def close(self) -> None:
        """Send what was recorded, in a thread that a silent collector does not let the process wait for."""
        closing = threading.Thread(target=self.provider.shutdown, name="traces-close", daemon=True)
        closing.start()
        closing.join(CLOSE_S)
