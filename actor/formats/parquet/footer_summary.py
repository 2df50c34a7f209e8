"""What footers of Parquet files say about whether the files can be joined as they are; nothing is judged here.

They are read in the JVM (`ParquetFooter.java`), several at once and in one call however many they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

THREADS = 8
"""Requests to the store at a time: its latency is the cost, and a footer is small."""


@dataclass(frozen=True, slots=True)
class FooterSummary:
    """One file: sizes in bytes of compressed pages alone, digests of what must be equal in files that are joined.

    obstacle: what of the file itself forbids to copy its row groups, as one word; empty: nothing does.
    schema: digest of every detail of the schema, of the columns' orders and of the format's version.
    dictionary_bytes: of dictionaries that a single row group with the same rows would not repeat, at most.
    codecs: of each leaf column, several joined by a plus sign. keys: of the key-value metadata, sorted.
    full_ids: of the field ids asked for, those of columns without nulls.
    """

    obstacle: str = ""
    schema: str = ""
    top_level: tuple[str, ...] = ()
    created_by: str = ""
    keys: tuple[str, ...] = ()
    key_values: str = ""
    codecs: tuple[str, ...] = ()
    rows: int = 0
    row_groups: int = 0
    data_bytes: int = 0
    dictionary_bytes: int = 0
    full_ids: tuple[int, ...] = ()


def decode_summary(read: Mapping[str, Any]) -> FooterSummary:
    """Decode what the JVM found in one footer."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in read.items()}
    return FooterSummary(**values)
