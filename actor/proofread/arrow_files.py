"""Files as Arrow decodes them, some rows at a time: Parquet with its page checksums, and ORC by the reader of C++."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    import pyarrow.parquet as pq
    from pyarrow import ArrowInvalid, orc
except ImportError:
    orc = pq = None

ROWS_AT_ONCE = 2048
"""Rows that are decoded at once: as many as a vector of DuckDB has."""

BUFFER_BYTES = 1 << 20
"""Bytes of a column that are read at once, instead of a whole chunk."""

_OPTIONS = {"page_checksum_verification": True, "coerce_int96_timestamp_unit": "us", "buffer_size": BUFFER_BYTES}
_IDS = (b"PARQUET:field_id", b"iceberg.id")
"""Names under which Arrow keeps the id of a field: that of Parquet, and Iceberg's attribute of types in ORC."""


@contextmanager
def opened(place: str) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Yield the schema of a local file and its batches of rows in their order; raises what Arrow raises."""
    if place.endswith(".orc"):
        file = orc.ORCFile(place)
        yield file.schema, _rows_of_stripes(file)
        return
    with pq.ParquetFile(place, pre_buffer=False, **_OPTIONS) as parquet:
        yield parquet.schema_arrow, parquet.iter_batches(ROWS_AT_ONCE, use_threads=False)


def _rows_of_stripes(file: Any) -> Iterator[Any]:
    """Yield parts of stripes, which are decoded as wholes.

    Arrow's scanner decodes less at once, but on its one thread, which waits for these rows: it would wait for ever.
    """
    for number in range(file.nstripes):
        stripe = file.read_stripe(number)
        yield from (stripe.slice(start, ROWS_AT_ONCE) for start in range(0, stripe.num_rows, ROWS_AT_ONCE))


def undecodable(place: str) -> bool:
    """Return whether a page of a file cannot be decoded, although there is a decoder for its encoding."""
    if pq is None or not Path(place).is_file():
        return False
    try:
        with opened(place) as (_, batches):
            for _batch in batches:
                pass
    except (ArrowInvalid, OSError):
        return True
    except Exception:  # noqa: BLE001 - such as a codec or a type that Arrow lacks, which says nothing of the file
        return False
    return False


def field_id(field: Any) -> int | None:
    """Return the id that a file gives to a field of Arrow."""
    metadata = field.metadata or {}
    return next((int(metadata[name]) for name in _IDS if name in metadata), None)
