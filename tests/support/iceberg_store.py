"""An Iceberg table in memory: a store, metadata and manifests as writers make them, and who needed which file when.

It is `actor.formats.iceberg.vacuum.IcebergVacuumTable`, so that a vacuum runs on it without a JVM. What a snapshot
needs is noted when it is made, and never read from its manifests: tests compare the two.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import fastavro

from actor.formats.iceberg.vacuum import IcebergVacuum
from actor.ports import TableJob, TableJobOutcome
from actor.vacuum.steps import VacuumLimits
from shared.errors import Conflict
from shared.formats.iceberg.manifests import Entry
from shared.formats.iceberg.metadata import TableHead, decode_head
from shared.formats.iceberg.names import MAIN, VACUUM_KEY
from shared.formats.iceberg.retention import Expiry
from shared.jobs.options import VacuumOptions
from shared.jobs.payload import VACUUM
from shared.paths.stored_file import StoredFile
from shared.policy.policy import Policy
from shared.table import CommitOrigin
from tests.support.local_vacuum import ON, Control


def record(name: str, **fields: Any) -> dict[str, Any]:
    """Return the schema of a record; a field's type is a name, a union or another record."""
    return {"type": "record", "name": name, "fields": [{"name": one, "type": kind} for one, kind in fields.items()]}


HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LOCATION = "s3://lake/t"

_FILE = record(
    "file",
    content="int",
    file_path="string",
    file_format="string",
    partition=record("partition"),
    record_count="long",
    file_size_in_bytes="long",
)
_ENTRY = record("entry", status="int", sequence_number="long", file_sequence_number="long", data_file=_FILE)
_MANIFEST = record("manifest", manifest_path="string", manifest_length="long", partition_spec_id="int", content="int")
EXISTING, ADDED, DELETED = 0, 1, 2


@dataclass
class Made:
    """What one snapshot needs, and its manifests with their live files."""

    list: str
    manifests: dict[str, tuple[str, ...]]

    @property
    def live(self) -> set[str]:
        return {file for files in self.manifests.values() for file in files}

    @property
    def needs(self) -> set[str]:
        return {self.list, *self.manifests, *self.live}


@dataclass
class IcebergStore:
    """A table; time passes when a test says so. `before` plays what happens before a call of a vacuum."""

    now_ms: int = 1_000 * DAY_MS
    files: dict[str, bytes] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    made: dict[int, Made] = field(default_factory=dict)
    named: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    before: Callable[[str], object] = lambda _call: None
    clock_skew_ms: int = 0
    deletes: set[str] = field(default_factory=set)
    _sequences: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self.raw: dict[str, Any] = {
            "format-version": 2,
            "table-uuid": "a-table",
            "location": LOCATION,
            "schemas": [{"schema-id": 0, "fields": []}],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "properties": {},
            "snapshots": [],
            "refs": {},
            "snapshot-log": [],
            "metadata-log": [],
            "statistics": [],
        }
        self._current = ""
        self.change()

    # What writers do.

    def write(self, name: str, body: bytes = b"x") -> str:
        """Write a file that no snapshot needs, and return its path."""
        self._count += 1
        path = f"{LOCATION}/{name.format(self._count)}"
        self.files[path], self.times[path] = body, self.now_ms
        return path

    def commit(
        self,
        added: int = 1,
        removed: Sequence[str] = (),
        *,
        again: Sequence[str] = (),
        deletes: int = 0,
        branch: str | None = MAIN,
    ) -> int:
        """Make a snapshot of a branch (None: of none, as a staged one), and return its id.

        It adds new files, those of `again`, whose manifests others may have, too, and delete files, by value.
        """
        base = self.head_of(MAIN if branch is None else branch) or self.head_of(MAIN)
        before = self.made[base].manifests if base is not None else {}
        manifests: dict[str, tuple[str, ...]] = {}
        for path, live in before.items():
            gone = [one for one in live if one in removed]
            if not gone:
                manifests[path] = live
                continue
            kept = tuple(one for one in live if one not in removed)
            entries = [(EXISTING, one) for one in kept] + [(DELETED, one) for one in gone]
            manifests[self._manifest(entries)] = kept
        new = [*(self.write("data/{}.parquet") for _ in range(added)), *again]
        hiding = [self.write("data/{}-deletes.parquet") for _ in range(deletes)]
        self.deletes.update(hiding)
        for files in (new, hiding):
            self._sequences |= {one: len(self.made) + 1 for one in files}
            if files:
                manifests[self._manifest([(ADDED, one) for one in files])] = tuple(files)
        self._count += 1
        snapshot = self._count
        listing = self.write("metadata/snap-{}.avro", _avro(_MANIFEST, [self._line(*one) for one in manifests.items()]))
        self.made[snapshot] = Made(listing, manifests)
        self.raw["snapshots"].append(
            {
                "snapshot-id": snapshot,
                **({"parent-snapshot-id": base} if base is not None else {}),
                "timestamp-ms": self.now_ms,
                "manifest-list": listing,
                "summary": {"operation": "append"},
            }
        )
        if branch is not None:
            self._point(branch, snapshot, "branch")
        self.change()
        return snapshot

    def tag(self, name: str, snapshot: int, kind: str = "tag", **limits: int) -> None:
        """Point a tag, or a branch, at a snapshot; limits are spelled with underscores."""
        self._point(name, snapshot, kind)
        self.raw["refs"][name] |= {key.replace("_", "-"): value for key, value in limits.items()}
        self.change()

    def drop(self, name: str) -> None:
        """Drop a branch or tag."""
        del self.raw["refs"][name]
        self.change()

    def rollback(self, snapshot: int) -> None:
        self._point(MAIN, snapshot, "branch")
        self.change()

    def configure(self, **properties: str) -> None:
        """Set properties; dots are spelled as two underscores, minus signs as one."""
        spelled = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
        self.raw["properties"] = self.raw["properties"] | spelled
        self.change()

    def forget(self, snapshots: AbstractSet[int]) -> None:
        """Remove snapshots from the metadata and delete nothing, as pyiceberg's expiry does."""
        self.raw["snapshots"] = [one for one in self.raw["snapshots"] if one["snapshot-id"] not in snapshots]
        self.raw["statistics"] = [one for one in self.raw["statistics"] if one["snapshot-id"] not in snapshots]
        self.raw["refs"] = {name: one for name, one in self.raw["refs"].items() if one["snapshot-id"] not in snapshots}
        log: list[Any] = []
        for entry in self.raw["snapshot-log"]:  # As Iceberg: before a snapshot that is gone, the log is unknown.
            log = [*log, entry] if entry["snapshot-id"] in self.snapshots else []
        self.raw["snapshot-log"] = log
        self.change()

    def statistics(self, snapshot: int) -> str:
        """Add a file of statistics to a snapshot, and return its path."""
        path = self.write("metadata/{}.stats")
        self.raw["statistics"] = [
            *(one for one in self.raw["statistics"] if one["snapshot-id"] != snapshot),
            {"snapshot-id": snapshot, "statistics-path": path, "file-size-in-bytes": 1},
        ]
        self.change()
        return path

    def other_entry(self, head: int) -> str:
        """Write metadata as an entry in another catalog does whose newest snapshot is this one; return their path."""
        raw = self.raw | {
            "current-snapshot-id": head,
            "refs": {MAIN: {"snapshot-id": head, "type": "branch"}},
            "snapshots": [one for one in self.raw["snapshots"] if one["snapshot-id"] <= head],
            "statistics": [one for one in self.raw["statistics"] if one["snapshot-id"] <= head],
        }
        return self.write("metadata/other-{}.metadata.json", json.dumps(raw).encode())

    def change(self) -> None:
        """Write the metadata as they are now."""
        self.now_ms += 1
        log = self.raw["metadata-log"]
        if self._current:
            log = [*log, {"timestamp-ms": self.raw["last-updated-ms"], "metadata-file": self._current}][-100:]
        current = self.head_of(MAIN)
        self.raw |= {"metadata-log": log, "last-updated-ms": self.now_ms}
        self.raw["current-snapshot-id"] = -1 if current is None else current
        self._current = self.write("metadata/{}.metadata.json", json.dumps(self.raw).encode())
        self.named.append((self.now_ms, frozenset(one["snapshot-id"] for one in self.raw["refs"].values())))

    # What tests ask.

    def head_of(self, branch: str) -> int | None:
        found = self.raw["refs"].get(branch)
        return None if found is None else int(found["snapshot-id"])

    @property
    def refs(self) -> set[str]:
        return set(self.raw["refs"])

    @property
    def snapshots(self) -> set[int]:
        return {one["snapshot-id"] for one in self.raw["snapshots"]}

    def named_since(self, cutoff_ms: int) -> set[int]:
        """Return the snapshots that a branch or tag named at this moment or later."""
        found: set[int] = set()
        for number, (_, snapshots) in enumerate(self.named):
            later = self.named[number + 1][0] if number + 1 < len(self.named) else None
            if later is None or later >= cutoff_ms:
                found |= snapshots
        return found

    def needed(self, snapshots: AbstractSet[int]) -> set[str]:
        """Return the files that these snapshots need."""
        return {path for one in snapshots for path in self.made[one].needs}

    def missing(self, snapshots: AbstractSet[int]) -> set[str]:
        """Return which of the files that these snapshots need are not there."""
        return self.needed(snapshots) - self.files.keys()

    # What a vacuum calls.

    def refresh(self) -> TableHead:
        self.before("refresh")
        return decode_head(json.loads(json.dumps(self.raw)), LOCATION, self._current)

    def expire(self, expiry: Expiry) -> None:
        known = self._current
        self.before("expire")
        if self._current != known:
            raise Conflict("others were faster", kind="busy")
        for name in expiry.refs:
            del self.raw["refs"][name]
        self.forget(expiry.snapshots)

    def remove_deletes(self, snapshot: int, deletes: Sequence[Entry], summary: Mapping[str, str]) -> None:
        self.before("remove_deletes")
        if self.head_of(MAIN) != snapshot:
            raise Conflict("others were faster", kind="taken")
        self.commit(0, [one.path for one in deletes])
        self.raw["snapshots"][-1]["summary"] = {"operation": "replace", **summary}
        self.change()

    def read(self, path: str, length: int) -> bytes | None:
        self.before("read")
        body = self.files.get(path)
        return body[:length] if body is not None and length else body

    def list_files(self) -> Iterator[StoredFile]:
        for path, body in self.files.items():
            yield StoredFile(path.removeprefix(f"{LOCATION}/"), len(body), self.times[path])

    def list_metadata(self, folder: str) -> Iterator[StoredFile]:
        for path, body in self.files.items():
            if path.startswith(f"{folder}/"):
                yield StoredFile(path.removeprefix(f"{folder}/"), len(body), self.times[path])

    def existing(self, paths: Sequence[str]) -> AbstractSet[str]:
        return self.files.keys() & set(paths)

    def clock_ms(self) -> int:
        return self.now_ms + self.clock_skew_ms

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ms += round(seconds * 1000)

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.before("delete")
            del self.files[path]
            self.deleted.append(path)

    def end(self, mark: str) -> None:
        self.before("end")
        self.raw["properties"] = self.raw["properties"] | {VACUUM_KEY: mark}
        self.change()

    def _point(self, name: str, snapshot: int, kind: str) -> None:
        limits: Mapping[str, Any] = self.raw["refs"].get(name, {})
        self.raw["refs"] = self.raw["refs"] | {name: {**limits, "snapshot-id": snapshot, "type": kind}}
        if name == MAIN:
            entry = {"timestamp-ms": self.now_ms + 1, "snapshot-id": snapshot}
            self.raw["snapshot-log"] = [*self.raw["snapshot-log"], entry]

    def _manifest(self, entries: Sequence[tuple[int, str]]) -> str:
        rows = [
            {
                "status": status,
                "sequence_number": self._sequences[path],
                "file_sequence_number": self._sequences[path],
                "data_file": {
                    "content": 2 if path in self.deletes else 0,
                    "file_path": path,
                    "file_format": "PARQUET",
                    "partition": {},
                    "record_count": 1,
                    "file_size_in_bytes": 1,
                },
            }
            for status, path in entries
        ]
        return self.write("metadata/m-{}.avro", _avro(_ENTRY, rows))

    def _line(self, path: str, live: Sequence[str]) -> dict[str, Any]:
        of_deletes = bool(self.deletes.intersection(live))
        return {"manifest_path": path, "manifest_length": 1, "partition_spec_id": 0, "content": int(of_deletes)}


def _avro(schema: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, dict(schema), rows)
    return out.getvalue()


def run_in_memory(
    store: IcebergStore,
    options: VacuumOptions = VacuumOptions(),  # noqa: B008 - a constant
    *,
    policy: Policy = ON,
    control: Control | None = None,
    limits: VacuumLimits = VacuumLimits(files_per_s=10**9),  # noqa: B008 - a constant
) -> TableJobOutcome:
    """Run a vacuum on a table in memory."""
    job = TableJob(VACUUM, LOCATION, policy, CommitOrigin("job", 7), options=options.encode())
    return IcebergVacuum(store, job, control or Control(), limits, lambda: store.now_ms, store.pause).run()
