"""The queue's own settings: the literal table of default, range, unit and purpose of each.

They live in the queue's `cfg` hash, so that every script of every process reads the same and a change holds with the
next call. What is absent there counts as its default, of which `lua/include/config.lua` holds the same numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from shared.errors import InvalidInput
from shared.queue.limits import MAX_DELAY_MS, require_range
from shared.queue.model import Band


class SettingUnit(StrEnum):
    """Unit of a setting."""

    BANDS = "bands"
    CLAIMS = "claims"
    ATTEMPTS = "attempts"
    SLOTS = "slots"
    ACTORS = "actors"
    MS = "ms"


@dataclass(frozen=True, slots=True)
class QueueSetting:
    """Range and meaning of one setting; `is_set_by_decider`: the decider sets it, not people."""

    default: int
    low: int
    high: int
    unit: SettingUnit
    description: str
    is_set_by_decider: bool = False


SETTINGS: Mapping[str, QueueSetting] = MappingProxyType(
    {
        "strict_bands": QueueSetting(
            1,
            0,
            int(Band.BACKGROUND),
            SettingUnit.BANDS,
            "Number of bands with strict priority; the others share by weight.",
        ),
        "strict_in_row": QueueSetting(
            8, 1, 1_000, SettingUnit.CLAIMS, "Strict claims in a row after which a waiting weighted band is served."
        ),
        "aging_ms": QueueSetting(
            2 * 3_600_000,
            0,
            24 * 3_600_000,
            SettingUnit.MS,
            "Waiting time that equals one step of priority, a factor of two in benefit per cost; the next audit "
            "applies it to waiting jobs.",
        ),
        "max_attempts": QueueSetting(8, 1, 100, SettingUnit.ATTEMPTS, "Failed attempts before a job is quarantined."),
        "backoff_base_ms": QueueSetting(
            10_000,
            1,
            MAX_DELAY_MS,
            SettingUnit.MS,
            "Delay after the first failure; doubles with each further failure; jitter subtracts up to half.",
        ),
        "backoff_cap_ms": QueueSetting(
            900_000, 1, MAX_DELAY_MS, SettingUnit.MS, "Maximum delay after a failure; at least backoff-base."
        ),
        "half_open_ms": QueueSetting(
            6 * 3_600_000,
            1,
            10 * MAX_DELAY_MS,
            SettingUnit.MS,
            "Time after which a quarantined job is tried once more.",
        ),
        "slots": QueueSetting(
            0,
            0,
            100_000,
            SettingUnit.SLOTS,
            "Total slots of all actors, the base of quotas; set by the decider, 0 if unknown.",
            is_set_by_decider=True,
        ),
        "actors": QueueSetting(
            1, 0, 32, SettingUnit.ACTORS, "Actors that the standalone keeps running; elsewhere a scaler decides."
        ),
    }
)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The settings in force; the meaning of each is in `SETTINGS`."""

    strict_bands: int = SETTINGS["strict_bands"].default
    strict_in_row: int = SETTINGS["strict_in_row"].default
    aging_ms: int = SETTINGS["aging_ms"].default
    max_attempts: int = SETTINGS["max_attempts"].default
    backoff_base_ms: int = SETTINGS["backoff_base_ms"].default
    backoff_cap_ms: int = SETTINGS["backoff_cap_ms"].default
    half_open_ms: int = SETTINGS["half_open_ms"].default
    slots: int = SETTINGS["slots"].default
    actors: int = SETTINGS["actors"].default


def require_settings(settings: Mapping[str, int]) -> None:
    """Refuse a name that is no setting, and a value out of its range."""
    for name, value in settings.items():
        if name not in SETTINGS:
            raise InvalidInput(
                f"{name[:80]!r} is no setting of the queue; there are {', '.join(SETTINGS)}",
                field=name[:80],
                allowed=", ".join(SETTINGS),
            )
        require_range(value, name, SETTINGS[name].low, SETTINGS[name].high)
