"""Starts the traces of a service: off unless an OTLP endpoint is configured; OpenTelemetry's SDK is not loaded then.

OpenTelemetry's own variables configure the rest (docs/monitoring.md). A collector that cannot be reached, or a setting
that cannot be used, never stops a service: traces are only observed.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

from services.settings import OTLP_ENDPOINT, OTLP_TRACES_ENDPOINT
from shared import tracing

if TYPE_CHECKING:
    from services.opentelemetry import OpenTelemetryTracer

SUPPORTED_PROTOCOL = "http/protobuf"

log = structlog.get_logger()


def start_traces(service: str, release: str, environment: Mapping[str, str]) -> "OpenTelemetryTracer | None":
    """Install a tracer for this process if traces are configured; None: they are off."""
    endpoint = _endpoint(environment)
    if not endpoint:
        return None
    try:
        from services.opentelemetry import OpenTelemetryTracer  # noqa: PLC0415 - an optional extra, loaded if needed
    except ImportError as missing:
        log.warning("traces_off", reason=f"{missing}; install the extra: pip install 'lakewright[traces]'")
        return None
    tracer = OpenTelemetryTracer(endpoint, service=f"lakewright-{service}", release=release)
    tracing.install(tracer.tracer)
    log.info("traces_on", endpoint=endpoint)
    return tracer


def stop_traces(tracer: "OpenTelemetryTracer | None") -> None:
    """Send what was recorded, for a few seconds at most."""
    if tracer is not None:
        tracing.install(None)
        tracer.close()


def _endpoint(environment: Mapping[str, str]) -> str:
    """Return the URL that spans are sent to; empty: traces are off."""
    base = environment.get(OTLP_ENDPOINT, "").rstrip("/")
    endpoint = environment.get(OTLP_TRACES_ENDPOINT, "") or (f"{base}/v1/traces" if base else "")
    if not endpoint or environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    if environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return ""
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((value for name in names if (value := environment.get(name))), SUPPORTED_PROTOCOL)
    if protocol != SUPPORTED_PROTOCOL:
        log.warning("traces_off", reason=f"protocol {protocol} is not supported; use {SUPPORTED_PROTOCOL}, port 4318")
        return ""
    return endpoint
