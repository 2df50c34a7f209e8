"""Summary of footers of Parquet files, as far as it decides whether the files can be joined; nothing is judged here.

They are read in the JVM (`ParquetFooter.java`), several at once and in one call however many they are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

THREADS = 8
"""Requests to the store at a time: its latency is the cost, and a footer is small."""


@dataclass(frozen=True, slots=True)
class FooterSummary:
    """One file: sizes in bytes of compressed pages alone, digests of what must be equal in files that are joined.

    obstacle: what of the file itself forbids to copy its row groups, as one word; empty: nothing does.
    schema: digest of every detail of the schema, of the columns' orders and of the format's version. columns: the same,
    without what only shows who wrote it: the root's name, the format's version, a type given in the old way, too.
    dictionary_bytes: of dictionaries that a single row group with the same rows would not repeat, at most.
    codecs: of each leaf column, several joined by a plus sign. keys: of the key-value metadata, sorted. spark: the
    version of Spark that wrote the file, if it says so.
    full_ids: of the field ids asked for, the ids of columns without nulls.
    """

    obstacle: str = ""
    schema: str = ""
    columns: str = ""
    top_level: tuple[str, ...] = ()
    created_by: str = ""
    keys: tuple[str, ...] = ()
    key_values: str = ""
    spark: str = ""
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


def codec_bytes(files: Sequence[FooterSummary]) -> Counter[str]:
    """Return the bytes of files by the codec of their first column; files without columns have none."""
    found: Counter[str] = Counter()
    for file in files:
        if file.codecs and file.codecs[0]:
            found[file.codecs[0]] += file.data_bytes
    return found
