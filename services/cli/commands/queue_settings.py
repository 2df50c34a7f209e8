"""The queue's settings as people read and write them: `aging=2min` is `aging_ms: 120000` of the REST API.

What is shown can be typed: each value is written so that `lakewright queue set` takes it back.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import typer

from services.cli.name_values import name_values
from shared.policy.parsers import integer, parse_ms
from shared.queue.settings import SETTINGS, QueueSetting, SettingUnit

COLUMNS = ("name", "value", "unit", "default", "from", "to", "meaning")

_SPANS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))

_HINT = "NAME=VALUE"


def rows(answer: dict[str, Any]) -> list[Sequence[str]]:
    """Return a row for each setting of the API's answer."""
    return [_row(one) for one in answer["settings"]]


def changes(pairs: Iterable[str]) -> dict[str, int]:
    """Read `aging=60s max-attempts=5` into the API's names and units. Raises BadParameter, naming what is known."""
    return dict(_change(name, value) for name, value in name_values(pairs, _HINT).items())


def _row(one: dict[str, Any]) -> Sequence[str]:
    value, default, low, high = (
        _spelled(one[name], one["unit"]) for name in ("value", "default", "minimum", "maximum")
    )
    unit = "time" if one["unit"] == SettingUnit.MS else str(one["unit"])
    return (_short(one["name"]), value, unit, default, low, high, one["description"])


def _change(name: str, text: str) -> tuple[str, int]:
    known = {_short(full): full for full, setting in SETTINGS.items() if not setting.is_set_by_decider}
    asked = _short(name)
    if asked not in known:
        why = f"{name!r} is set by the decider" if _is_set_by_decider(asked) else f"{name!r} is no setting"
        raise typer.BadParameter(f"{why}; NAME is one of {', '.join(known)}", param_hint=_HINT)
    try:
        return known[asked], _value(text, SETTINGS[known[asked]])
    except ValueError as problem:
        raise typer.BadParameter(f"{asked}: {problem}, found {text!r}", param_hint=_HINT) from problem


def _value(text: str, setting: QueueSetting) -> int:
    if setting.unit is not SettingUnit.MS:
        return int(integer(setting.low, setting.high)(text))
    found = parse_ms(text)
    if not setting.low <= found <= setting.high:
        raise ValueError(
            f"expected {_spelled(setting.low, SettingUnit.MS)} to {_spelled(setting.high, SettingUnit.MS)}"
        )
    return found


def _is_set_by_decider(short: str) -> bool:
    return any(setting.is_set_by_decider and _short(name) == short for name, setting in SETTINGS.items())


def _short(name: str) -> str:
    """Return a name as options are written: without the unit, which is part of the value."""
    return name.replace("_", "-").removesuffix("-ms")


def _spelled(value: int, unit: str) -> str:
    """Return a value as it may be typed; a time in the largest unit that leaves nothing over."""
    if unit != SettingUnit.MS:
        return str(value)
    if value == 0:
        return "0s"
    span_ms, name = next(span for span in _SPANS_MS if value % span[0] == 0)
    return f"{value // span_ms}{name}"
