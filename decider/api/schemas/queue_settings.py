"""The queue's own settings over the wire: what is in force, what each means, and what is to be different."""

from typing import Any

from pydantic import ConfigDict, Field

from decider.web.base_model import RequestModel, ResponseModel
from shared.queue.settings import SETTINGS


def _of(name: str) -> Any:
    """Return the field of one setting, with its range and its words."""
    known = SETTINGS[name]
    said = f"{known.meaning} In {known.unit}; {known.default} is the default."
    return Field(None, ge=known.low, le=known.high, description=said)


class QueueSettingsUpdate(RequestModel):
    """Settings that are to be different; what is left out stays."""

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
    "description": "One step of priority is worth this much waiting; what waits already is moved by the next audit.",
}


class QueueSettingView(ResponseModel):
    """One setting of the queue."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [SETTING]})

    name: str = Field(description="Its name, which ends with the unit where it is a time.")
    value: int = Field(description="What is in force.")
    unit: str = Field(description="What it counts: `bands`, `claims`, `attempts`, `slots` or `ms`.")
    default: int = Field(description="What is in force until somebody sets it.")
    minimum: int = Field(description="The least value it may have.")
    maximum: int = Field(description="The greatest value it may have.")
    writable: bool = Field(description="False for what the decider tells by itself.")
    description: str = Field(description="What it does.")


class QueueSettingsView(ResponseModel):
    """All settings of the queue."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"settings": [SETTING]}]})

    settings: tuple[QueueSettingView, ...] = Field(description="All of them.")
