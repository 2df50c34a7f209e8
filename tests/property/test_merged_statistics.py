"""Merged statistics hold for every row of every input, whoever wrote them and whatever they left out."""

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.delta.columns import Column
from actor.formats.delta.merged_statistics import merged

COLUMNS = (
    Column(("flag",), "BOOLEAN", "boolean"),
    Column(("whole",), "INT64", "int", (64,)),
    Column(("real",), "DOUBLE", "double"),
    Column(("money",), "FIXED_LEN_BYTE_ARRAY", "decimal", (15, 10)),
    Column(("day",), "INT32", "date"),
    Column(("at",), "INT64", "timestamp", ("MICROS", True)),
    Column(("wall",), "INT64", "timestamp", ("MICROS", False)),
    Column(("text",), "BYTE_ARRAY", "text"),
    Column(("s", "inner"), "INT32", "int", (32,)),
    Column(("list", "[]"), "INT32", "int", (32,), nested=True),
    Column(("raw",), "BYTE_ARRAY", "bytes"),
)
instants = st.datetimes(max_value=datetime.fromisoformat("9999-12-31T23:59:59.999999"))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "flag": st.booleans(),
    "whole": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(),
    "money": st.integers(-(10**15) + 1, 10**15 - 1).map(lambda unscaled: Decimal(unscaled).scaleb(-10)),
    "day": st.dates(),
    "at": instants.map(lambda moment: moment.replace(tzinfo=UTC)),
    "wall": instants,
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    "s.inner": st.integers(-5, 5),
}


class Spelled(str):
    """A number as a writer spells it."""

    __slots__ = ()


@st.composite
def inputs(draw: st.DrawFn) -> tuple[dict[str, list[Any]], str]:
    """The values of one file by column, and its statistics as one of several writers logs them."""
    rows = draw(st.integers(1, 6))
    data = {name: draw(st.lists(st.none() | one, min_size=rows, max_size=rows)) for name, one in VALUES.items()}
    style = draw(st.sampled_from(["spark", "exact"]))
    left_out = draw(st.sets(st.sampled_from(sorted(VALUES)), max_size=2)) if draw(st.booleans()) else set()
    logged: dict[str, Any] = {"numRecords": rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name, values in data.items():
        if name in left_out or (style == "spark" and name == "flag"):
            continue
        put(logged["nullCount"], name, sum(value is None for value in values))
        held = [value for value in values if value is not None]
        if held:
            put(logged["minValues"], name, spelled(min(held, key=order), style, is_least=True))
            put(logged["maxValues"], name, spelled(max(held, key=order), style, is_least=False))
    if draw(st.integers(0, 9)) == 0:
        return data, "" if draw(st.booleans()) else json.dumps({"numRecords": rows})
    return data, dumped(logged)


def order(value: Any) -> Any:
    """The order of values as Delta's readers have it."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def spelled(value: Any, style: str, *, is_least: bool) -> Any:
    text = value
    match value:
        case float():
            text = Spelled(repr(value)) if math.isfinite(value) else _NOT_FINITE[str(value)]
        case Decimal():
            text = Spelled(format(value, "f"))
        case datetime():
            digits = "milliseconds" if style == "spark" else "microseconds"
            text = value.replace(tzinfo=None).isoformat(timespec=digits) + ("Z" if value.tzinfo else "")
        case date():
            text = value.isoformat()
        case str() if len(value) > 32:
            text = value[:32] if is_least else value[:32] + "\U0010ffff"
    return text


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def put(section: dict[str, Any], name: str, value: Any) -> None:
    *above, last = name.split(".")
    for one in above:
        section = section.setdefault(one, {})
    section[last] = value


def get(section: dict[str, Any] | None, name: str) -> Any:
    found: Any = section
    for one in name.split("."):
        found = found.get(one) if isinstance(found, dict) else None
    return found


def dumped(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{dumped(inside)}" for name, inside in value.items()) + "}"
    return str(value) if isinstance(value, Spelled) else json.dumps(value)


def read(bound: Any, sample: Any) -> Any:
    """A bound as readers of this type of value read it."""
    match sample:
        case bool() | int():
            return bound
        case float():
            return float(bound)
        case Decimal():
            return Decimal(bound)
        case datetime():
            return datetime.fromisoformat(bound)
        case date():
            return date.fromisoformat(bound)
    return bound


@given(st.lists(inputs(), min_size=1, max_size=4))
def test_merged_statistics_are_never_tighter_than_the_rows(files: list[tuple[dict[str, list[Any]], str]]) -> None:
    total = sum(len(data["whole"]) for data, _ in files)

    found = json.loads(merged([text for _, text in files], COLUMNS, rows=total), parse_float=Decimal)

    assert found["numRecords"] == total
    for name in VALUES:
        values = [value for data, _ in files for value in data[name]]
        held = [value for value in values if value is not None]
        nulls = get(found.get("nullCount"), name)
        assert nulls is None or nulls == len(values) - len(held)
        least, greatest = get(found.get("minValues"), name), get(found.get("maxValues"), name)
        if not held:
            assert least is greatest is None
        for value in held:
            assert least is None or order(read(least, value)) <= order(value)
            assert greatest is None or order(read(greatest, value)) >= order(value)


@given(st.lists(inputs(), min_size=1, max_size=4))
def test_what_all_inputs_say_of_a_column_is_said_of_the_output(files: list[tuple[dict[str, list[Any]], str]]) -> None:
    logged = [json.loads(text or "{}") for _, text in files]

    found = json.loads(merged([text for _, text in files], COLUMNS, rows=1))

    for name in VALUES:
        held = [one for one, (data, _) in zip(logged, files, strict=True) if any(v is not None for v in data[name])]
        for section in ("minValues", "maxValues"):
            if held and all(get(one.get(section), name) is not None for one in held) and _has_nulls(logged, name):
                assert get(found.get(section), name) is not None
        if _has_nulls(logged, name):
            assert get(found.get("nullCount"), name) is not None


def _has_nulls(logged: list[dict[str, Any]], name: str) -> bool:
    return all(get(one.get("nullCount"), name) is not None for one in logged)


def test_bounds_of_unknown_form_and_of_other_kinds_are_left_out() -> None:
    wide = {"numRecords": 1, "minValues": {"day": "+10000-01-01", "raw": "a", "list": 1}, "nullCount": {"day": 0}}
    wide |= {"maxValues": {"day": "+10000-01-01", "real": "oops"}}
    found = json.loads(merged([json.dumps(wide)], COLUMNS, rows=1))
    assert found == {"numRecords": 1, "nullCount": {"day": 0}}


def test_bounds_that_deletions_left_wide_say_nothing_of_the_output() -> None:
    wide = json.dumps({"numRecords": 3, "minValues": {"whole": 1}, "nullCount": {"whole": 1}, "tightBounds": False})
    tight = json.dumps({"numRecords": 3, "minValues": {"whole": 1}, "nullCount": {"whole": 0}, "tightBounds": True})
    assert json.loads(merged([wide, tight], COLUMNS, rows=6)) == {"numRecords": 6}
    assert json.loads(merged([tight, tight], COLUMNS, rows=6)) == {
        "numRecords": 6,
        "minValues": {"whole": 1},
        "nullCount": {"whole": 0},
        "tightBounds": True,
    }


def test_bounds_of_a_file_whose_rows_are_hidden_hold_all_that_is_left() -> None:
    """Of the second input the visible rows were counted, one of which is not null."""
    wide = {"numRecords": 3, "minValues": {"whole": 1}, "nullCount": {"whole": 1}, "tightBounds": False}
    counted = {"numRecords": 2, "minValues": {"whole": -5}, "nullCount": {"whole": 2}, "tightBounds": False}
    null = {"numRecords": 2, "nullCount": {"whole": 2}}
    both = json.loads(merged([json.dumps(wide), json.dumps(counted)], COLUMNS, rows=6, hides_rows=True))
    assert both == {"numRecords": 6, "minValues": {"whole": -5}}
    unknown = json.loads(merged([json.dumps(wide), json.dumps(null)], COLUMNS, rows=6, hides_rows=True))
    assert unknown == {"numRecords": 6}


def test_a_greatest_instant_that_may_be_cut_to_milliseconds_is_rounded_up() -> None:
    logged = '{"numRecords":1,"maxValues":{"at":"2026-01-01T00:00:00.123Z","wall":"2026-01-01T00:00:00.123456"}}'
    found = json.loads(merged([logged], COLUMNS, rows=1))
    assert found["maxValues"] == {"at": "2026-01-01T00:00:00.123999Z", "wall": "2026-01-01T00:00:00.123456"}


def test_numbers_keep_every_digit() -> None:
    logged = '{"numRecords":1,"minValues":{"money":-12345678901234567.0000000001},"nullCount":{"money":0}}'
    assert "-12345678901234567.0000000001" in merged([logged, logged], COLUMNS, rows=2)


def test_bounds_of_wide_decimals_are_left_to_the_footers_because_some_writers_round_them_to_doubles() -> None:
    columns = [Column(("d",), "FIXED_LEN_BYTE_ARRAY", "decimal", (digits, 0)) for digits in (15, 16)]
    logged = '{"numRecords":1,"minValues":{"d":1e15},"maxValues":{"d":1e15},"nullCount":{"d":0}}'
    found = [json.loads(merged([logged], [column], rows=1)) for column in columns]
    assert [("minValues" in one, "maxValues" in one) for one in found] == [(True, True), (False, False)]
