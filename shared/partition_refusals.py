"""Refusals that are remembered with a partition: its files that no job is queued for until something changes.

An actor refuses files that only another release, or a change of the files, the table's schema or its properties, can
make it rewrite. Without memory each batch of commits would write, refuse and delete the same group again. Deciders do
not count remembered files, and actors do not plan them; the partition's other files go on. Runs that found nothing but
refusals are counted: a writer that makes only such files gets an attempt after 8, 16, 32, ... commits, not for each. A
job on the table as a whole is refused as such, by its kind, and waits in the same way.
Pure; the queue keeps the text of one partition as an opaque value.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from shared.errors import LakewrightError
from shared.layout.eligibility import is_purgeable
from shared.layout.file_selection import GENERATED_TAG, file_contribution, generated_ms
from shared.layout.partition_stats import CUBE_TAG, EMPTY_STATS, IDLE_COMPACTED_TAG, SORT_LEVEL_TAG, PartitionStats
from shared.paths.data_paths import canonical_path
from shared.policy.policy import Policy
from shared.refusals import RefusalReason
from shared.release import RELEASE, is_newer
from shared.table import DataFile, ExaminedTable, PartitionKey, TableMetadata
from shared.typed_json import from_json, to_json

MAX_BYTES = 32 * 1024
"""Text kept per partition, some 1,000 files: what exceeds it is refused without a list, as the partition as a whole."""

MAX_REFUSALS = 50
"""Refusals kept per partition, each with one message; more are the partition as a whole, too."""

MAX_MESSAGE_CHARS = 500
"""Length at which the message of a refusal is cut."""

PATHS_SHOWN = 3
"""Paths that a refusal keeps for people; the others are digests."""

FIRST_HOLD = 8
"""Commits without an attempt after the second futile run in a row; doubled by each further one."""

LONGEST_HOLD = 4096
"""Commits after which there is an attempt in any case: an hour or a day of a busy table."""

_KEPT_TAGS = (IDLE_COMPACTED_TAG, CUBE_TAG, SORT_LEVEL_TAG, GENERATED_TAG)
"""Tags that are counted."""

_SET_BY_COMMITS = frozenset(
    {
        *("transient_lastDdlTime", "last_modified_time", "last_modified_by", "COLUMN_STATS_ACCURATE"),
        *("numFiles", "numRows", "rawDataSize", "totalSize"),
    }
)
"""Properties that writers and catalogs set with their commits; they say nothing about how files are rewritten."""

_PREFIX_SET_BY_COMMITS = "qbeast."
"""Prefix of more of them."""


@dataclass(frozen=True, slots=True)
class TableFingerprint:
    """Causes that lift a refusal beside a change of its files: another schema, other properties, or a newer release."""

    schema: str = ""
    properties: str = ""
    release: str = ""

    @staticmethod
    def of(metadata: TableMetadata, policy: Policy, release: str | None = None) -> "TableFingerprint":
        """Return the fingerprint of a table; of the policy only that counts which bears on how files are rewritten."""
        own = sorted((name, value) for name, value in metadata.configuration.items() if not _is_set_by_commits(name))
        terms = (policy.proofread, policy.row_group_copy, policy.sort_by, policy.zorder_by, policy.clustering_order)
        schema = metadata.schema_digest and _digest(metadata.table_uuid, metadata.schema_digest)
        return TableFingerprint(
            schema, _digest(json.dumps(own), *map(str, terms)), RELEASE if release is None else release
        )

    @property
    def parts(self) -> tuple[str, str, str]:
        """The fingerprint as texts, from which it is made again."""
        return self.schema, self.properties, self.release

    def still_describes(self, other: "TableFingerprint") -> bool:
        """Return whether a table is the same by now: as far as its schema is known, and by no newer release."""
        is_same_schema = self.schema == other.schema or not (self.schema and other.schema)
        return is_same_schema and self.properties == other.properties and not is_newer(other.release, self.release)


def _is_set_by_commits(name: str) -> bool:
    return name in _SET_BY_COMMITS or name.startswith(_PREFIX_SET_BY_COMMITS)


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A refused file as far as it is counted; `id` is a digest of its path, `deletes` one of its deletion vector."""

    id: str
    size_bytes: int
    deletes: str = ""
    deleted_rows: int = 0
    is_purgeable: bool = False
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    key_range: tuple[int, int] | None = None

    @staticmethod
    def of(file: DataFile, policy: Policy) -> "RefusedFile":
        """Return what is kept of a live file."""
        tags = {name: file.tags[name] for name in _KEPT_TAGS if name in file.tags}
        if policy.time_window_s is not None:
            tags[GENERATED_TAG] = str(generated_ms(file))
        return RefusedFile(
            *(file_id(file.path), file.size_bytes, _deletes(file), file.deleted_rows),
            *(is_purgeable(file, policy), tags, file.key_range),
        )

    def stats(self, policy: Policy) -> PartitionStats:
        """Return what the file adds to the state of its partition."""
        dv_id = self.deletes or None
        file = DataFile(
            *(self.id, self.size_bytes, PartitionKey("{}"), dv_id),
            deleted_rows=self.deleted_rows,
            tags=self.tags,
            key_range=self.key_range,
        )
        return file_contribution(file, policy)

    def encode(self) -> list[Any]:
        """Write as JSON values; nearly every file is an id and a size."""
        rest = [self.deletes, self.deleted_rows, int(self.is_purgeable), dict(self.tags), self.key_range]
        is_plain = not any(rest)
        return [self.id, self.size_bytes, *([] if is_plain else rest)]

    @staticmethod
    def decode(raw: list[Any]) -> "RefusedFile":
        """Read what `encode` wrote."""
        name, size, *rest = raw
        if not rest:
            return RefusedFile(name, size)
        deletes, deleted_rows, purgeable, tags, key_range = rest
        return RefusedFile(name, size, deletes, deleted_rows, bool(purgeable), tags, tuple(key_range or ()) or None)


@dataclass(frozen=True, slots=True)
class FileRefusal:
    """Why files are refused, and which; no files: the partition as a whole. `paths` are the first of `count` files."""

    reason: str
    message: str
    files: tuple[RefusedFile, ...]
    paths: tuple[str, ...]
    count: int
    at_ms: int

    @property
    def is_whole(self) -> bool:
        """True if the partition as a whole is refused."""
        return not self.files


@dataclass(frozen=True, slots=True)
class JobRefusal:
    """Why jobs of one kind on the table as a whole are refused: no timer leads to one before a version of the table.

    runs: how many in a row were refused. It names no files, because such a job may rewrite any. examined: what it left
    there does not count for another job; None: not known.
    """

    kind: str
    reason: str
    message: str
    at_ms: int
    runs: int
    held_until: int
    paths: tuple[str, ...] = ()
    count: int = 0
    examined: ExaminedTable | None = None


@dataclass(frozen=True, slots=True)
class PartitionRefusals:
    """All that is remembered of one partition, under one fingerprint.

    futile_runs: runs in a row that committed nothing and refused something. held_until: version of the table before
    which no commit leads to a job for the partition. jobs: kinds of jobs on the table as a whole that are refused.
    """

    fingerprint: TableFingerprint = TableFingerprint()
    refusals: tuple[FileRefusal, ...] = ()
    futile_runs: int = 0
    held_until: int = 0
    jobs: tuple[JobRefusal, ...] = ()

    @property
    def all(self) -> "tuple[FileRefusal | JobRefusal, ...]":
        """Refusals of files, then of jobs."""
        return (*self.refusals, *self.jobs)

    def in_force(self, fingerprint: TableFingerprint) -> "PartitionRefusals":
        """Return what still holds for a table with this fingerprint: all, or nothing."""
        return self if self.fingerprint.still_describes(fingerprint) else replace(NOTHING, fingerprint=fingerprint)

    def after_removal(self, removed: Collection[str]) -> "PartitionRefusals":
        """Return what holds after files with these ids were removed: each refusal of one of them is lifted."""
        if not removed:
            return self
        kept = tuple(one for one in self.refusals if one.files and not any(file.id in removed for file in one.files))
        return self if len(kept) == len(self.refusals) else replace(self, refusals=kept)

    def among(self, live: Mapping[str, str]) -> "PartitionRefusals":
        """Return what holds where these files are live, each id with the digest of its deletes."""
        kept = tuple(one for one in self.refusals if all(live.get(file.id) == file.deletes for file in one.files))
        return self if len(kept) == len(self.refusals) else replace(self, refusals=kept)

    def after_hold(self, version: int) -> "PartitionRefusals":
        """Return what holds at a version: a refusal of the partition as a whole ends with the hold."""
        if version < self.held_until:
            return self
        kept = tuple(one for one in self.refusals if one.files)
        is_same = not self.held_until and len(kept) == len(self.refusals)
        return self if is_same else replace(self, refusals=kept, held_until=0)

    def without(self, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
        """Return the files that are not refused."""
        if not self.refusals:
            return tuple(files)
        refused = self.ids
        return tuple(file for file in files if file_id(file.path) not in refused)

    @property
    def ids(self) -> frozenset[str]:
        """Ids of all refused files that are listed."""
        return frozenset(file.id for one in self.refusals for file in one.files)

    @property
    def purgeable(self) -> int:
        """How many of the refused files would be rewritten even alone."""
        return sum(file.is_purgeable for one in self.refusals for file in one.files)

    def stats(self, policy: Policy) -> PartitionStats:
        """Return what the refused files add to the state of their partition."""
        return sum((file.stats(policy) for one in self.refusals for file in one.files), EMPTY_STATS)

    def blocks(self, version: int, *, is_automatic: bool) -> bool:
        """Return whether the partition gets no job at a version, by a commit (`is_automatic`) or at all."""
        is_whole = any(one.is_whole for one in self.refusals)
        return version < self.held_until and (is_automatic or is_whole)

    def added(
        self, refused: LakewrightError, files: Iterable[DataFile], policy: Policy, *, now_ms: int
    ) -> "PartitionRefusals":
        """Remember the refusal of these files; none: of the partition as a whole. A file is refused once."""
        known = self.ids
        every = tuple(files)
        new = tuple(RefusedFile.of(file, policy) for file in every if file_id(file.path) not in known)
        if every and not new:
            return self
        one = FileRefusal(
            str(getattr(refused, "reason", RefusalReason.UNSUPPORTED)),
            str(refused)[:MAX_MESSAGE_CHARS],
            new,
            tuple(file.path for file in every[:PATHS_SHOWN]),
            len(every),
            now_ms,
        )
        kept = tuple(old for old in self.refusals if not (one.is_whole and old.is_whole))
        return replace(self, refusals=(*kept, one)).bounded()

    def bounded(self) -> "PartitionRefusals":
        """Return at most `MAX_REFUSALS` in at most `MAX_BYTES`: where there are more, the newest as a whole."""
        if len(self.refusals) <= MAX_REFUSALS and len(self.encode().encode()) <= MAX_BYTES:
            return self
        files = sum(one.count for one in self.refusals)
        newest = self.refusals[-1]
        # Of long paths, none is shown in full.
        paths = tuple(path[-MAX_MESSAGE_CHARS:] for path in newest.paths)
        return replace(self, refusals=(replace(newest, files=(), paths=paths, count=files),))

    def after_run(
        self, version: int, *, has_committed: bool, has_refused: bool, commit_step: int = 1
    ) -> "PartitionRefusals":
        """Return what holds after a run that ended at a version: a futile one makes the next attempt wait longer.

        commit_step: by how much versions grow with a commit.
        """
        if not has_committed and not has_refused:
            return self
        is_whole = any(one.is_whole for one in self.refusals)
        futile = 0 if has_committed else self.futile_runs + 1
        doublings = max(futile - 1, 0) if is_whole else futile - 2
        held_until = 0 if doublings < 0 else version + _hold(doublings) * commit_step
        return replace(self, futile_runs=futile, held_until=held_until)

    def after_job(
        self,
        kind: str,
        refused: LakewrightError | None,
        version: int,
        *,
        now_ms: int,
        is_futile: bool = True,
        commit_step: int = 1,
    ) -> "PartitionRefusals":
        """Return what holds after a job on the whole table that was refused at a version; None: it was not.

        Not `is_futile`: it did a part of its work, so that the next one is not held.
        """
        others = tuple(one for one in self.jobs if one.kind != kind)
        if refused is None:
            return replace(self, jobs=others)
        before = sum(one.runs for one in self.jobs if one.kind == kind)
        runs, held_until = (before + 1, version + _hold(before) * commit_step) if is_futile else (0, 0)
        reason = str(getattr(refused, "reason", RefusalReason.UNSUPPORTED))
        message, examined = str(refused)[:MAX_MESSAGE_CHARS], getattr(refused, "examined", None)
        one = JobRefusal(kind, reason, message, now_ms, runs, held_until, examined=examined)
        return replace(self, jobs=(*others, one))

    def holds_job(self, kind: str, version: int) -> bool:
        """Return whether no timer leads to a job of a kind on the whole table at a version."""
        return any(one.kind == kind and version < one.held_until for one in self.jobs)

    @property
    def examined(self) -> Mapping[str, ExaminedTable]:
        """The state in which a job of each kind on the whole table left work, as far as that is known."""
        return {one.kind: one.examined for one in self.jobs if one.examined is not None}

    def encode(self) -> str:
        """Write as JSON text; empty where nothing is remembered."""
        return to_json(self) if self.refusals or self.futile_runs or self.jobs else ""

    @staticmethod
    def decode(text: str) -> "PartitionRefusals":
        """Read what `encode` wrote; what another release wrote otherwise is no memory, and is made again."""
        try:
            return from_json(PartitionRefusals, text) if text else NOTHING
        except (ValueError, LookupError, TypeError):
            return NOTHING


NOTHING = PartitionRefusals()
"""Nothing is remembered."""


def _hold(doublings: int) -> int:
    """Return the commits without an attempt."""
    return min(LONGEST_HOLD, FIRST_HOLD << min(doublings, LONGEST_HOLD.bit_length()))


def file_id(path: str) -> str:
    """Return the digest under which a file is remembered, whichever way the log spells its path."""
    return _digest(canonical_path(path))


def _deletes(file: DataFile) -> str:
    return "" if file.dv_id is None else _digest(file.dv_id)


def live_ids(files: Iterable[DataFile]) -> dict[str, str]:
    """Return the id of each file with the digest of its deletes."""
    return {file_id(file.path): _deletes(file) for file in files}


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
