"""A partition key says of which spec and values a file is, in the texts that Iceberg's readers use."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from struct import pack, unpack
from typing import Any
from uuid import UUID

import pytest

from shared.formats.iceberg.partitions import Spec, SpecField, partition_text

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC)


@pytest.mark.parametrize(
    ("transform", "kind", "value", "text"),
    [
        ("identity", "string", "", ""),
        ("identity", "string", None, None),
        ("identity", "string", "null", "null"),
        ("identity", "boolean", True, "true"),
        ("identity", "boolean", False, "false"),
        ("identity", "int", -7, "-7"),
        ("identity", "double", 0.1, "0.1"),
        ("identity", "decimal(9, 2)", Decimal("1E+1"), "10"),
        ("identity", "binary", b"\x00\xff", "00ff"),
        ("identity", "uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("identity", "uuid", UUID(int=1).bytes, "00000000-0000-0000-0000-000000000001"),
        ("identity", "date", -1, "1969-12-31"),
        ("identity", "date", date(2026, 1, 2), "2026-01-02"),
        ("identity", "date", 10**9, "1000000000"),
        ("identity", "timestamp", 1, "1970-01-01T00:00:00.000001"),
        ("identity", "timestamptz", MOMENT, "2026-01-02T03:04:05.000600"),
        ("identity", "time", 1_000_000, "00:00:01.000000"),
        ("identity", "time", time(1, 2), "01:02:00.000000"),
        ("truncate[2]", "string", "ab", "ab"),
        ("bucket[16]", "string", 3, "3"),
        ("year", "date", -1, "1969"),
        ("month", "date", -1, "1969-12"),
        ("month", "timestamp", 12, "1971-01"),
        ("day", "timestamp", 0, "1970-01-01"),
        ("hour", "timestamp", -1, "1969-12-31-23"),
    ],
)
def test_a_value_is_written_as_readers_write_it(transform: str, kind: str, value: Any, text: str | None) -> None:
    assert partition_text(SpecField("f", transform, kind), value) == text


def test_partitions_of_different_specs_null_and_an_empty_text_are_different_ones() -> None:
    fields = (SpecField("dt", "identity", "string"), SpecField("old", "void", "int"))
    keys = {Spec(number, fields).key((value, None)) for number in (0, 1) for value in ("a", "", None, "null")}
    assert len(keys) == 8
    assert Spec(0, fields).key(("a", None)) == '{"dt":"a"}'
    assert Spec(1, fields).key((None, None)) == '{"#spec":"1","dt":null}'
    assert Spec(0).key(()) == "{}"


def test_a_float_is_the_same_in_the_digits_of_java_and_in_the_bits_of_avro() -> None:
    field = SpecField("f", "identity", "float")
    assert partition_text(field, 0.1) == partition_text(field, unpack("<f", pack("<f", 0.1))[0])
    assert partition_text(field, 0.5) == "0.5"


@pytest.mark.parametrize("kind", ["float", "double", "long"])
def test_keys_that_are_remembered_are_those_of_the_values(kind: str) -> None:
    """The two zeros of a float are equal, and two partitions."""
    spec = Spec(0, (SpecField("v", "identity", kind),))
    zeros = [0.0, -0.0, 0.0] if kind != "long" else [0, 1, 0]
    key = spec.remembered_key()
    assert [key((one,)) for one in zeros] == [spec.key((one,)) for one in zeros]
    assert len({key((one,)) for one in zeros}) == 2
