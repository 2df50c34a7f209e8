"""Iceberg tables: the rules that decider and actor share, so that both name positions, partitions and refusals alike.

A position is a moment of the main branch. Its version is the time of its snapshot in milliseconds, raised where needed
so that it grows along the chain of parents. Sequence numbers would be no versions: tables of format version 1 have
none, and neither a rollback nor a change of properties moves them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from json import dumps, loads
from typing import Any
from uuid import UUID

from shared.refusals import Refusal, RefusalCode
from shared.table import PartitionKey, TableMetadata, TableProtocol

FORMAT = "iceberg"
"""Name of the format: in metadata, in jobs, and in what actors announce."""

FORMAT_VERSIONS = range(1, 4)
"""Versions of the format whose meaning is known here."""

MAIN = "main"
"""The branch that is followed and rewritten; no other one is."""

COMMIT_KEY = "lakewright"
"""Entry of a snapshot's summary that holds our `CommitMetadata`."""

TAGS_KEY = "lakewright.tags"
"""Entry of a snapshot's summary that holds the tags of the data files that it added; Iceberg's files have none."""

SPEC_KEY = "#spec"
"""Entry of a partition key that names the partition spec; left out for the first one."""

ENCRYPTION_KEY = "encryption.key-id"
"""The property that turns on table encryption."""

MIXED_FORMAT = "mixed-format."
"""What the properties of Amoro's mixed format begin with."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = 12


def chain_versions(timestamps_ms: Iterable[int]) -> list[int]:
    """Return the version of each snapshot of a chain, oldest first: its time, or one more than its parent's version.

    Clocks of writers differ, and Iceberg lets a snapshot be up to a minute older than its parent.
    """
    versions: list[int] = []
    for timestamp_ms in timestamps_ms:
        versions.append(max(timestamp_ms, versions[-1] + 1) if versions else timestamp_ms)
    return versions


def position_digest(table_uuid: str, snapshot_id: int | None) -> str:
    """Return the digest of a position: the snapshot of which table it is, None for a table without one."""
    return f"{table_uuid}.{'' if snapshot_id is None else snapshot_id}"


def digest_snapshot(digest: str, table_uuid: str) -> int | None:
    """Return the snapshot that a digest of this table names, None for a table without one.

    Raises ValueError for the digest of another table, and for one that is none.
    """
    prefix, dot, snapshot = digest.partition(".")
    if not dot or prefix != table_uuid:
        raise ValueError(f"{digest!r} is no position of the table {table_uuid}")
    return int(snapshot) if snapshot else None


@dataclass(frozen=True, slots=True)
class SpecField:
    """One field of a partition spec: `transform` and `type` (of its values) as Iceberg's metadata spell them."""

    name: str
    transform: str
    type: str

    @property
    def is_void(self) -> bool:
        """Whether its value is always null: what format version 1 leaves of a removed field."""
        return self.transform == "void"


@dataclass(frozen=True, slots=True)
class Spec:
    """A partition spec."""

    id: int
    fields: tuple[SpecField, ...] = ()

    def key(self, values: Sequence[Any]) -> PartitionKey:
        """Return the key of the partition of a file with these values, in the order of the fields.

        Partitions of different specs have different keys, and so do null and an empty text.
        """
        texts = {
            field.name: partition_text(field, value)
            for field, value in zip(self.fields, values, strict=True)
            if not field.is_void
        }
        if self.id:
            texts[SPEC_KEY] = str(self.id)
        return PartitionKey(dumps(texts, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def partition_text(field: SpecField, value: Any) -> str | None:
    """Return a partition value as Iceberg's readers write it in paths, unescaped; None for null.

    `value` has the type that a manifest stores: dates as days, times as microseconds.
    """
    if value is None:
        return None
    try:
        return _readable(field, value)
    except (OverflowError, ValueError):
        return str(value)  # Beyond the years that Python counts.


def _readable(field: SpecField, value: Any) -> str:
    text = _TEXTS.get(field.transform) or _TEXTS.get(field.type) or _plain
    return text(value)


def _year(value: Any) -> str:
    return f"{_EPOCH.year + int(value):04d}"


def _month(value: Any) -> str:
    return f"{_EPOCH.year + int(value) // _MONTHS:04d}-{int(value) % _MONTHS + 1:02d}"


def _hour(value: Any) -> str:
    return (_EPOCH + timedelta(hours=int(value))).strftime("%Y-%m-%d-%H")


def _day(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else (_EPOCH + timedelta(days=int(value))).date().isoformat()


def _timestamp(value: Any) -> str:
    moment = value if isinstance(value, datetime) else _EPOCH + timedelta(microseconds=int(value))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")


def _time(value: Any) -> str:
    moment = value if isinstance(value, time) else (_EPOCH + timedelta(microseconds=int(value))).time()
    return moment.isoformat("microseconds")


def _plain(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case bytes() | bytearray():
            return bytes(value).hex()
        case Decimal():
            return format(value, "f")
        case UUID():
            return str(value)
        case _:
            return str(value)


_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "year": _year,
    "month": _month,
    "day": _day,
    "hour": _hour,
    "date": _day,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamp,
}
"""How values of a transform, or of a type, are written."""


def encode_tags(tags: Mapping[str, Mapping[str, str]]) -> str:
    """Write the tags of data files, by the last part of their paths, as the text of `TAGS_KEY`."""
    return dumps({name: dict(of_file) for name, of_file in sorted(tags.items())}, separators=(",", ":"))


def decode_tags(text: str | None) -> dict[str, dict[str, str]]:
    """Read what `encode_tags` wrote; nothing from any other text, which somebody else wrote."""
    try:
        found = loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        return {}
    return {name: {key: value for key, value in one.items() if isinstance(value, str)} for name, one in found.items()}


def file_tags(tags: Mapping[str, Mapping[str, str]], path: str) -> Mapping[str, str]:
    """Return the tags of a data file by its path."""
    return tags.get(path.rpartition("/")[2], {})


def refusal(metadata: TableMetadata, protocol: TableProtocol) -> Refusal | None:
    """Return why a table must not be rewritten, None if it may be; of several reasons the first one."""
    if protocol.min_writer not in FORMAT_VERSIONS:
        return Refusal(
            RefusalCode.PROTOCOL,
            "format-version",
            f"the table has format version {protocol.min_writer}, which is unknown "
            f"(known: {FORMAT_VERSIONS.start} to {FORMAT_VERSIONS.stop - 1})",
            "Update Lakewright",
        )
    if metadata.configuration.get(ENCRYPTION_KEY):
        return Refusal(
            RefusalCode.FEATURE,
            "encryption",
            f"the table is encrypted ({ENCRYPTION_KEY} is set), and no rewrite of encrypted files was tested",
            "Rewrite it in the engine that encrypts it",
        )
    if mixed := min((name for name in metadata.configuration if name.startswith(MIXED_FORMAT)), default=""):
        return Refusal(
            RefusalCode.FEATURE,
            "mixed-format",
            f"this is a store of a table in Amoro's mixed format ({mixed} is set), whose files depend on each other",
            "Optimize it with Amoro",
        )
    return None
