"""How files of an Iceberg table are merged column by column: with the settings that Iceberg's own writer would have.

For groups that could be copied but for the layout of their files, or what these have beside their columns. A property
of the table that the merge cannot obey leaves the group to Spark.
"""

from collections.abc import Mapping, Sequence

from actor.formats.parquet.footer_summary import FooterSummary, codec_bytes

_PREFIX = "write.parquet."

_SIZES: Mapping[str, tuple[str, int]] = {
    "row-group-size-bytes": ("parquet.block.size", 128 * 1024 * 1024),
    "page-size-bytes": ("parquet.page.size", 1024 * 1024),
    "page-row-limit": ("parquet.page.row.count.limit", 20_000),
    "dict-size-bytes": ("parquet.dictionary.page.size", 2 * 1024 * 1024),
}
"""Properties of a table after the prefix: parquet-java's settings, and what Iceberg's writer takes by default."""

_LEVELS: Mapping[str, str] = {"zstd": "parquet.compression.codec.zstd.level", "gzip": "zlib.compress.level"}

_CODECS = frozenset({"zstd", "gzip", "snappy", "uncompressed"})

_WITHOUT_EFFECT = frozenset(
    {
        *("compression-codec", "compression-level"),  # Read apart.
        *("row-group-check-min-record-count", "row-group-check-max-record-count"),  # How often a writer counts bytes.
    }
)


MergeSettings = tuple[str, Mapping[str, str]]
"""A codec, as Iceberg names it, and parquet-java's settings."""


def merge_settings(files: Sequence[FooterSummary], properties: Mapping[str, str]) -> MergeSettings | None:
    """Return the codec and parquet-java's settings for files of one schema, None if Spark has to encode them."""
    codec = _codec(files, properties)
    if codec is None:
        return None
    own = {name.removeprefix(_PREFIX): value for name, value in properties.items() if name.startswith(_PREFIX)}
    is_obeyed = all(
        name in _SIZES or name in _WITHOUT_EFFECT or (name.startswith("bloom-filter-") and value.lower() != "true")
        for name, value in own.items()
    )
    sizes = {setting: own.get(name, str(usual)) for name, (setting, usual) in _SIZES.items()}
    level = own.get("compression-level")
    if not is_obeyed or not all(text.isdecimal() for text in (*sizes.values(), level or "0")):
        return None
    fixed = {"parquet.writer.version": "PARQUET_1_0", "parquet.enable.dictionary": "true"}
    return codec, {**fixed, **sizes, **({_LEVELS[codec]: level} if level and codec in _LEVELS else {})}


def _codec(files: Sequence[FooterSummary], properties: Mapping[str, str]) -> str | None:
    """Return the table's codec, else the inputs', by bytes and first columns; None for one that is not known here."""
    named = properties.get(f"{_PREFIX}compression-codec", "").lower()
    if named:
        return named if named in _CODECS else None
    known = codec_bytes(files)
    return max(sorted(known.keys() & _CODECS), key=lambda codec: known[codec], default=None)
