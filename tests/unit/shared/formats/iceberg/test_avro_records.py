"""Of a record nothing is decoded after the last field that is needed, and what is decoded is the same."""

import io
import random
from contextlib import suppress
from typing import Any

import fastavro
import pytest

from shared.formats.iceberg.avro_records import decoded
from shared.formats.iceberg.avro_skip import named_types, skip_of
from tests.support.iceberg_store import record

PAIR = record("pair", key="int", value="bytes")
COUNTS = record("counts", key="int", value="long")
KINDS: dict[str, Any] = {
    "number": "long",
    "truth": "boolean",
    "ratio": {"type": "double"},
    "small": "float",
    "none": "null",
    "text": ["null", "string"],
    "place": {"type": "fixed", "name": "spot", "size": 3},
    "again": "spot",
    "color": {"type": "enum", "name": "color", "symbols": ["red", "blue"]},
    "counts": ["null", {"type": "array", "items": COUNTS}],
    "bounds": {"type": "array", "items": PAIR},
    "others": {"type": "array", "items": "pair"},
    "within": record("within", a="int", b={"type": "map", "values": ["null", "double"]}),
}
SCHEMA = record("row", id="long", file=record("file", path="string", **KINDS))


def value(chance: random.Random, kind: str) -> Any:
    """Return a value of a field: lengths and numbers of one byte, and of several."""
    size = chance.choice([0, 1, 5, 63, 64, 65, 200])
    number = chance.choice([0, -1, 63, -64, 64, 2**31 - 1, -(2**31)])
    pairs = [{"key": at, "value": chance.randbytes(chance.choice([0, 8, 63, 64, 9_000]))} for at in range(size)]
    many: dict[str, Any] = {
        "number": number << 20,
        "truth": chance.random() < 0.5,
        "ratio": chance.random(),
        "small": 0.5,
        "none": None,
        "text": chance.choice([None, "a" * size]),
        "place": chance.randbytes(3),
        "again": chance.randbytes(3),
        "color": "blue",
        "counts": chance.choice([None, [{"key": at, "value": number * at} for at in range(size)]]),
        "bounds": pairs,
        "others": pairs[:2],
        "within": {"a": number, "b": {f"k{at}": chance.choice([None, 0.25]) for at in range(size)}},
    }
    return many[kind]


def rows(seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    files = [{"path": f"f{at}", **{kind: value(chance, kind) for kind in KINDS}} for at in range(20)]
    return [{"id": at, "file": file} for at, file in enumerate(files)]


def encoded(schema: Any, one: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), one)
    return stream.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
@pytest.mark.parametrize("interval", [1, 100_000])
def test_the_fields_that_are_needed_are_those_of_a_whole_decoding(codec: str, interval: int) -> None:
    written, stream = rows(3), io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(SCHEMA), written, codec=codec, sync_interval=interval)
    body = stream.getvalue()
    for needed in (("id", "file.path"), ("file.color",), ("id",), ("file",), ("file.within", "id"), ("id", "file.no")):
        found = decoded(body, needed, dict)
        assert [one["id"] for one in found] == list(range(20))
        for name in needed:
            part, _, field = name.partition(".")
            assert [field and one[part].get(field) for one in found] == [
                field and one[part].get(field) for one in written
            ]
    (first, *_) = decoded(body, ("file.path",), dict)
    assert list(first["file"]) == ["path"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_skipped_to_where_it_ends_and_one_that_is_cut_ends_nowhere_inside(kind: str) -> None:
    named, chance = named_types(SCHEMA), random.Random(kind)
    skip = skip_of([KINDS[kind]], named)
    types: dict[str, Any] = {"again": KINDS["place"], "others": PAIR}
    whole = record("one", type=["null", types[kind]] if kind in types else "null", value=KINDS[kind])
    for _ in range(20):
        body = encoded(whole, {"type": None, "value": value(chance, kind)})[int(kind in types) :]
        assert skip(body + b"\x55" * 3, 0) == len(body)
        for cut in {0, len(body) // 2, len(body) - 1} - {len(body)}:
            with suppress(EOFError, IndexError):
                assert skip(body[:cut], 0) > cut


def test_values_that_say_how_long_they_are_are_passed_at_once() -> None:
    skip = skip_of([{"type": "array", "items": "long"}], {})
    assert skip(b"\x03\x04\xff\xff\x00", 0) == 5, "two values in two bytes, whatever these are"
    with pytest.raises(EOFError):
        skip(b"\x03\x40\xff\xff\x00", 0)


def test_a_number_of_a_type_that_is_none_and_billions_of_values_are_no_values() -> None:
    with pytest.raises(ValueError, match="type 2 of 2"):
        skip_of([["null", "long"]], {})(b"\x04\x00", 0)
    billions = encoded("long", 1 << 40)
    for item in ("long", "string", "double"):
        with pytest.raises((EOFError, IndexError)):
            skip_of([{"type": "array", "items": item}], {})(billions + b"\x00" * 1_000, 0)
    with pytest.raises(EOFError):
        skip_of(["long"], {})(b"\xff" * 20, 0)
