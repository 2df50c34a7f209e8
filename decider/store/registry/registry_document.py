"""The saved registry as a value: entries by key, of which the latest change wins, and the text that they are saved as.

Redis and the saved document are two copies of the same entries. Each entry has the time of its last change, and a
removed one stays as a tombstone, so two copies merge in any order, and any number of times, to the same result. Neither
has to be known to be newer as a whole: a Redis that lost its last second, or is a backup of yesterday, merges like any.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from shared.errors import Corrupt, PermanentError
from shared.table import TableId, TableRef

FORMAT = 1
"""Version of the document's format; a release that knows only older ones writes nothing."""

TOMBSTONE_DAYS = 3_650
"""Days for which a removal is kept: discovery registers no table again that a person removed; each takes 50 bytes."""

DAY_MS = 86_400_000
TABLE = "table/"
"""Beginning of the keys of tables; the id follows."""


@dataclass(frozen=True, slots=True)
class SavedEntry:
    """One entry: JSON `value`, None once it is removed, and when that changed last."""

    changed_ms: int
    value: Any = None

    @property
    def rank(self) -> tuple[int, bool, bytes]:
        """Order of changes to one key: later wins; of two in the same millisecond a removal, then the greater text."""
        return self.changed_ms, self.value is None, orjson.dumps(self.value, option=orjson.OPT_SORT_KEYS)


Entries = Mapping[str, SavedEntry]


@dataclass(frozen=True, slots=True)
class RegistryDocument:
    """A generation of the saved registry; 0 is before the first."""

    generation: int = 0
    entries: Entries = field(default_factory=dict)


def newer(one: SavedEntry | None, other: SavedEntry | None) -> SavedEntry | None:
    """Return the later change of two; None only if there is neither."""
    if one is None or other is None:
        return one or other
    return one if one == other or one.rank >= other.rank else other


def merge(one: Entries, other: Entries) -> dict[str, SavedEntry]:
    """Return the latest change of each key."""
    found = dict(one)
    for key, entry in other.items():
        found[key] = entry if key not in found else newer(found[key], entry) or entry
    return found


def resolve_names(entries: Entries) -> dict[str, SavedEntry]:
    """Give every table a name of its own: of several tables with one name, the one that changed first keeps it.

    One that a person registered comes before those that discovery found. The others get their id as name, in a change
    that is later than the one that named them, so that it wins everywhere.
    """
    found, owners = dict(entries), dict[str, str]()
    named = [key for key, entry in entries.items() if key.startswith(TABLE) and entry.value]
    for key in sorted(named, key=lambda key: (_is_discovered(entries[key]), entries[key].changed_ms, key)):
        entry = entries[key]
        changed_ms = entry.changed_ms
        if owners.setdefault(entry.value["name"], key) != key:
            found[key] = SavedEntry(changed_ms + 1, entry.value | {"name": entry.value["id"]})
    return found


def _is_discovered(entry: SavedEntry) -> bool:
    return bool(entry.value.get("is_discovered"))


def without_old_tombstones(entries: Entries, now_ms: int) -> dict[str, SavedEntry]:
    """Drop the removals that are too old to matter."""
    oldest_ms = now_ms - TOMBSTONE_DAYS * DAY_MS
    return {key: entry for key, entry in entries.items() if entry.value is not None or entry.changed_ms >= oldest_ms}


def count_tables(entries: Entries) -> int:
    """Return how many tables are registered."""
    return sum(key.startswith(TABLE) and entry.value is not None for key, entry in entries.items())


def removed_tables(entries: Entries, before: Entries) -> list[TableId]:
    """Return the tables of `before` that are removed by later entries."""
    tables = (key for key, entry in before.items() if key.startswith(TABLE) and entry.value is not None)
    gone = (key for key in tables if key in entries and entries[key].value is None)
    return [TableId(key.removeprefix(TABLE)) for key in gone if entries[key].rank > before[key].rank]


def table_key(table: TableId) -> str:
    """Return the key of a table's entry."""
    return f"{TABLE}{table}"


def table_entry(table: TableRef) -> SavedEntry:
    """Return a registered table as an entry."""
    value = asdict(table)
    return SavedEntry(value.pop("changed_ms"), value)


def entry_of_record(raw: bytes | str) -> SavedEntry:
    """Return a table's record in Redis as an entry, with the fields that a later release may have added."""
    value = json.loads(raw)
    return SavedEntry(value.pop("changed_ms", 0), value)


def record_of_entry(entry: SavedEntry) -> str:
    """Return the record in Redis of an entry that was not removed."""
    return json.dumps(entry.value | {"changed_ms": entry.changed_ms})


def encode(document: RegistryDocument) -> bytes:
    """Return the document as JSON: a line for each entry, for people who compare two, and a digest at the end."""
    lines = [_line(key, document.entries[key]) for key in sorted(document.entries)]
    head = b'{"format":%d,"generation":%d,"entries":{\n' % (FORMAT, document.generation)
    body = head + b",\n".join(lines) + b"\n}"
    return body + b',"digest":"%s"}\n' % _digest(body).encode()


def decode(data: bytes, location: str) -> RegistryDocument:
    """Read a document.

    Raises Corrupt with its location and the line where it is damaged, PermanentError if a later release wrote it.
    """
    try:
        found = json.loads(data)
    except ValueError as problem:
        raise Corrupt(f"the saved registry {location} is damaged: {problem}") from problem
    if not isinstance(found, dict) or "format" not in found:
        raise Corrupt(f"the saved registry {location} is damaged: it is not a registry")
    if found["format"] != FORMAT:
        raise PermanentError(
            f"the saved registry {location} has format {found['format']}, which this release does not know: "
            "start the release that wrote it, or a later one"
        )
    body, _, _ = data.rpartition(b',"digest":')
    if found.get("digest") != _digest(body):
        raise Corrupt(f"the saved registry {location} is damaged: its content does not match the digest at its end")
    entries = {key: SavedEntry(one["changed_ms"], one["value"]) for key, one in found["entries"].items()}
    return RegistryDocument(found["generation"], entries)


def _line(key: str, entry: SavedEntry) -> bytes:
    value = {"changed_ms": entry.changed_ms, "value": entry.value}
    return orjson.dumps(key) + b":" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=16).hexdigest()
