"""Schemas of queue settings."""

from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import RequestModel, ResponseModel
from shared.queue.settings import SETTINGS


def _of(name: str) -> Any:
    """Return the field of one setting, with its range and its words."""
    known = SETTINGS[name]
    description = f"{known.description} Unit: {known.unit}. Default: {known.default}."
    return Field(None, ge=known.low, le=known.high, description=description)


class QueueSettingsUpdate(RequestModel):
    """Settings to change; omitted settings stay unchanged."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"aging_ms": 120_000, "max_attempts": 5}]},
    )

    strict_bands: int | None = _of("strict_bands")
    strict_in_row: int | None = _of("strict_in_row")
    aging_ms: int | None = _of("aging_ms")
    max_attempts: int | None = _of("max_attempts")
    backoff_base_ms: int | None = _of("backoff_base_ms")
    backoff_cap_ms: int | None = _of("backoff_cap_ms")
    half_open_ms: int | None = _of("half_open_ms")


SETTING: dict[str, Any] = {
    "name": "aging_ms",
    "value": 120_000,
    "unit": "ms",
    "default": 60_000,
    "minimum": 0,
    "maximum": 86_400_000,
    "writable": True,
    "description": "Waiting time that equals one step of priority; the next audit applies it to waiting jobs.",
}


class QueueSettingView(ResponseModel):
    """One setting of the queue."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [SETTING]})

    name: str = Field(description="Setting name; names of durations end with the unit.")
    value: int = Field(description="Current value.")
    unit: str = Field(description="Unit: `bands`, `claims`, `attempts`, `slots` or `ms`.")
    default: int = Field(description="Default value.")
    minimum: int = Field(description="Minimum value.")
    maximum: int = Field(description="Maximum value.")
    writable: bool = Field(description="False for values that the decider sets.")
    description: str = Field(description="Description.")


class QueueSettingsView(ResponseModel):
    """All settings of the queue."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"settings": [SETTING]}]})

    settings: tuple[QueueSettingView, ...] = Field(description="Settings.")
