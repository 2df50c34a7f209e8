"""An Avro file that would end, fill or stall the process that decodes it is refused before that."""

import io
import json
import random
import tracemalloc
from typing import Any

import fastavro
import pytest

from shared.errors import Corrupt
from shared.formats.iceberg import avro_limits
from shared.formats.iceberg.avro_limits import check_blocks
from shared.formats.iceberg.manifests import decode_manifest_list

PATHS = {"type": "record", "name": "manifest_file", "fields": [{"name": "manifest_path", "type": "string"}]}


def number(value: int) -> bytes:
    zigzag, found = value << 1, b""
    while zigzag > 0x7F:
        found, zigzag = found + bytes([zigzag & 0x7F | 0x80]), zigzag >> 7
    return found + bytes([zigzag])


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def file(schema: Any, records: int, block: bytes) -> bytes:
    """Return a file that says whatever it likes; a sound writer refuses to."""
    header = text(b"avro.schema") + text(json.dumps(schema).encode())
    return b"Obj\x01" + number(1) + header + number(0) + b"0" * 16 + number(records) + text(block) + b"0" * 16


def record(field: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": field}]}


def nested(depth: int) -> Any:
    return "long" if depth == 0 else {"type": "array", "items": nested(depth - 1)}


def written(codec: str, rows: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(PATHS), rows, codec=codec, sync_interval=1_000)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (file(record("r"), 1, b""), "r within itself"),
        (file(record(["null", {"type": "array", "items": "r"}]), 1, b"\2" * 100_000), "r within itself"),
        (file(record({"type": "array", "items": "null"}), 1, number(1 << 40) + b"\0"), "values without a size"),
        (file(record({"type": "array", "items": record("null") | {"name": "s"}}), 1, b"\0"), "values without a size"),
        (file(record(nested(100)), 1, b"\2" * 100), "nested more than 32"),
        (file({"type": "record", "name": "r", "fields": []}, 1 << 40, b""), "1099511627776 records"),
        (file(PATHS, 1, b"\2a").replace(b"avro.schema", b"avro.codecs"), "KeyError|NoneType|TypeError"),
        (b"Obj\x01" + b"\xff" * 20, "64 bits"),
        (b"Obj\x01" + b"\xff" * 3, "the file ends inside of a number, after 7 bytes"),
        (b"PAR1", "no Avro file"),
        (written("xz", []), "codec is xz; expected one of null, deflate, snappy, zstandard"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_no_decoder_survives_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(Corrupt, match=reason):
        decode_manifest_list(body, "m")


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_blocks_are_decompressed_up_to_a_limit(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row takes 10,000 bytes, and 20 rows twenty times as many."""
    few, many = ([{"manifest_path": "m" * 9_997}] * rows for rows in (10, 20))
    monkeypatch.setattr(avro_limits, "MAX_BYTES", 100_000)
    check_blocks(written(codec, few))
    with pytest.raises(ValueError, match="more than 100000 bytes"):
        check_blocks(written(codec, many))
    bomb = written(codec, [{"manifest_path": "m" * 5_000_000}])
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 100000 bytes"):
            check_blocks(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000, "the rest is never in memory"
    finally:
        tracemalloc.stop()


def test_what_a_writer_writes_is_decoded_by_every_codec() -> None:
    chance = random.Random(3)
    rows = [{"manifest_path": f"m{chance.randrange(10**9)}"} for _ in range(2_000)]
    for codec in ("null", "deflate", "snappy", "zstandard"):
        check_blocks(written(codec, rows))
