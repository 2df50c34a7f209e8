"""The chunks that a footer describes are those that pyarrow finds; a footer that ends pyarrow's process is an error."""

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decider.formats.delta.checkpoint_limits import DecodedBytes
from decider.formats.delta.parquet_footer import MAX_FOOTER_BYTES, chunks

OPTIONAL, REQUIRED = b"\x25\x02\x18\x01c", b"\x25\x00\x18\x01c"
"""What a footer says of a column `c`: that it may be null, or that it may not, which its histograms contradict."""
NUMBERS = list(range(1_000))
TABLE = pa.table(
    {
        "n": pa.array(NUMBERS),
        "half": pa.array([number / 2 for number in NUMBERS]),
        "text": pa.array([f"{number % 7}" for number in NUMBERS]),
        "map": pa.array([[("k", "v")]] * len(NUMBERS), pa.map_(pa.string(), pa.string())),
        "flag": pa.array([number % 2 == 0 for number in NUMBERS]),
    }
)


def written(**how: object) -> memoryview:
    file = io.BytesIO()
    pq.write_table(TABLE, file, row_group_size=300, **how)  # type: ignore[arg-type]
    return memoryview(file.getvalue())


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"compression": "zstd", "write_page_index": True},
        {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
        {"compression": "lz4", "write_statistics": False, "bloom_filter_options": {"text": True}},
        {"version": "1.0", "store_schema": False},
    ],
)
def test_a_footer_is_read_as_pyarrow_reads_it(how: dict[str, object]) -> None:
    data = written(**how)
    described = pq.ParquetFile(pa.BufferReader(data)).metadata
    found = chunks(data, described.num_columns)
    assert len(found) == described.num_row_groups == 4
    for group, columns in enumerate(found):
        for index, chunk in enumerate(columns):
            wanted = described.row_group(group).column(index)
            start = wanted.dictionary_page_offset if wanted.has_dictionary_page else wanted.data_page_offset
            assert (chunk.start, chunk.size, chunk.values) == (start, wanted.total_compressed_size, wanted.num_values)
            assert chunk.codec.removesuffix("_RAW") == wanted.compression
            assert chunk.is_bytes == (wanted.physical_type == "BYTE_ARRAY")


def with_footer(footer: bytes) -> memoryview:
    return memoryview(b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1")


def nested(levels: int) -> bytes:
    return b"\x1c" * levels + b"\0" * (levels + 1)


DAMAGED = {
    "without columns": b"\x49\x1c\0\0",
    "with a text for a number": b"\x49\x1c\x19\x1c\x3c\x18\0\x38\0\x18\0\x28\0\x28\0\0\0\0\0",
    "with a number for its row groups": b"\x45\0\0",
    "with more values than bytes": b"\x49\xf6\xff\xff\xff\xff\x0f\0",
    "with a number of more than 64 bits": b"\x16" + b"\xff" * 11 + b"\0",
    "that nests without an end": nested(5_000),
    "with an unknown kind": b"\x1b\0\0",
    "that ends early": b"\x16",
}


@pytest.mark.parametrize("footer", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_footer_is_an_error(footer: bytes) -> None:
    with pytest.raises(ValueError, match=r"its|a value|a number|expected"):
        chunks(with_footer(footer), 1)


def test_a_footer_of_other_columns_or_of_any_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="differ from its 2 columns"):
        chunks(written(), 2)
    with pytest.raises(ValueError, match="at most"):
        chunks(memoryview(struct.pack("<I", MAX_FOOTER_BYTES + 1) + b"PAR1"), 1)


def test_a_footer_that_ends_the_process_of_pyarrow_is_read() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"c": [1, None]}), file)
    data = file.getvalue()
    assert data.count(OPTIONAL) == 1
    DecodedBytes().open("part", memoryview(data.replace(OPTIONAL, REQUIRED)), ["c"])
