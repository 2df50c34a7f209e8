"""A table's log, read by plain Python: commits in order, live files by comparing texts, and paths that do not match.

It shares no line with our reader or with Delta's. It reads JSON commits alone, every one from 0, so that a checkpoint
that tells otherwise is found by the readers that use it. Like all engines it compares the texts of paths.

Rows that a deletion vector hides, read as the Delta protocol describes its file, without Delta.

The bitmaps themselves are Roaring's portable 64-bit format behind a magic number; pyroaring reads them.
"""

import base64
import hashlib
import json
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyroaring import BitMap64

from tests.soak.tables import RETENTION_S

RESTORABLE_VERSIONS, RESTORABLE_S = 20, RETENTION_S / 2
"""How far back RESTORE reaches: half as far as VACUUM."""

PHYSICAL_NAME = "delta.columnMapping.physicalName"

Key = tuple[str, str | None]
"""Of a live file: the text of its path, and its deletion vector's id."""


@dataclass(frozen=True, slots=True)
class Live:
    """A live file: its add action, and the version and engine that added it."""

    add: Mapping[str, Any]
    version: int
    engine: str

    @property
    def path(self) -> str:
        """Path below the table, decoded as the protocol asks."""
        return unquote(self.add["path"])


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `nonce`: the operation that it carries out, empty if it names none; `ours`: made by Lakewright."""

    version: int
    actions: tuple[dict[str, Any], ...]
    digest: str

    @property
    def info(self) -> Mapping[str, Any]:
        """Fields of its commitInfo."""
        return next((action["commitInfo"] for action in self.actions if "commitInfo" in action), {})

    @property
    def ours(self) -> bool:
        """Whether Lakewright made it."""
        return '"lakewright"' in str(self.info.get("userMetadata", ""))

    @property
    def jobs(self) -> int:
        """How many jobs of ours share it: each is about one partition."""
        return 1 + len(json.loads(self.info["userMetadata"])["lakewright"].get("others", ()))

    @property
    def engine(self) -> str:
        """Who made it."""
        return "lakewright" if self.ours else str(self.info.get("engineInfo", "unknown")).partition(":")[0]

    @property
    def nonce(self) -> str:
        """Nonce of the operation, as deltalake and Spark pass it on."""
        return "" if self.ours else str(self.info.get("soak") or self.info.get("userMetadata") or "")

    def files(self, kind: str) -> list[dict[str, Any]]:
        """Its actions of this kind."""
        return [action[kind] for action in self.actions if kind in action]


@dataclass(frozen=True, slots=True)
class StrayRemove:
    """A remove of a path that was never added: the file stays live. `owner`: who added the file that was meant."""

    version: int
    path: str
    by: str
    owner: str


def newest_version(table: Path) -> int:
    """Return the newest version of a table on disk."""
    return max(int(file.stem) for file in (table / "_delta_log").glob("*.json") if file.stem.isdecimal())


def restorable_versions(table: Path, newest: int, now_s: float) -> list[int]:
    """Return versions with the columns of `newest` and with files that no VACUUM may remove, for RESTORE.

    RESTORE brings an old schema back, too; and files that it adds again must not have been removed for so long that a
    VACUUM which has read the log before is about to delete them. `now_s`: seconds since 1970.
    """
    versions: list[int] = []
    for version in range(newest, max(0, newest - RESTORABLE_VERSIONS), -1):
        file = _file(table, version)
        if now_s - file.stat().st_mtime > RESTORABLE_S or '"metaData":' in file.read_text():
            return versions
        versions.append(version - 1)
    return versions


def _file(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


@dataclass(slots=True)
class TableLog:
    """The log of one table, read as it grows.

    `columns`: names of the columns in data files and partition values, by the names that readers see;
    `removed_twice`: removes of files that were gone already; `broken`: promises of our own commits that do not hold.
    """

    folder: Path
    commits: list[Commit] = field(default_factory=list)
    live: dict[Key, Live] = field(default_factory=dict)
    stray: list[StrayRemove] = field(default_factory=list)
    removed_twice: int = 0
    broken: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    _added: dict[str, str] = field(default_factory=dict)
    _meant: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """Newest version that was read, -1 before the first."""
        return len(self.commits) - 1

    def newest(self) -> int:
        """Return the newest version on disk, of an unbroken row."""
        version = self.version
        while _file(self.folder, version + 1).exists():
            version += 1
        return version

    def read_to(self, version: int) -> list[Commit]:
        """Read up to this version, and return the new commits."""
        fresh = [self._commit(number) for number in range(self.version + 1, version + 1)]
        for commit in fresh:
            self._fold(commit)
        return fresh

    def known_paths(self) -> set[str]:
        """Return every file that the log ever named, data and deletion vectors, decoded."""
        vectors = (add.get("deletionVector") for commit in self.commits for add in commit.files("add"))
        return {unquote(path) for path in self._added} | {vector_file(vector) for vector in vectors if vector}

    def changed_commits(self) -> list[int]:
        """Return versions whose files are not what they were when they were read: a commit was replaced or is gone."""
        return [
            commit.version
            for commit in self.commits
            if not _file(self.folder, commit.version).exists() or self._commit(commit.version).digest != commit.digest
        ]

    def _commit(self, version: int) -> Commit:
        raw = _file(self.folder, version).read_bytes()
        # Lines end in \n alone: what splitlines() takes for a line's end may stand inside a partition value.
        actions = tuple(json.loads(line) for line in raw.decode().split("\n") if line.strip())
        return Commit(version, actions, hashlib.sha256(raw).hexdigest())

    def _fold(self, commit: Commit) -> None:
        for metadata in commit.files("metaData"):
            fields = json.loads(metadata["schemaString"])["fields"]
            self.columns = {one["name"]: one["metadata"].get(PHYSICAL_NAME, one["name"]) for one in fields}
        for remove in commit.files("remove"):
            if remove["path"] not in self._added:
                owner = self._meant.get(_bare(remove["path"]), "no one")
                self.stray.append(StrayRemove(commit.version, remove["path"], commit.engine, owner))
            elif self.live.pop(_key(remove), None) is None:
                self.removed_twice += 1
        for add in commit.files("add"):
            self._added[add["path"]] = commit.engine
            self._meant.setdefault(_bare(add["path"]), commit.engine)
            self.live[_key(add)] = Live(add, commit.version, commit.engine)
        if commit.ours:
            self.broken += [f"version {commit.version}: {problem}" for problem in _broken(commit)]
        self.commits.append(commit)


def _broken(commit: Commit) -> list[str]:
    """Return what a commit of ours must not do and did."""
    files = [*commit.files("add"), *commit.files("remove")]
    problems = []
    if not files:
        problems.append("a commit of ours without files")
    if any(file.get("dataChange") is not False for file in files):
        problems.append("a commit of ours says that it changes data")
    if len({_partition(file) for file in files}) > commit.jobs:
        problems.append("a commit of ours touches more partitions than it has jobs")
    problems += [
        f"a commit of ours has the action {kind}"
        for kind in ("metaData", "protocol", "txn", "domainMetadata")
        if any(kind in action for action in commit.actions)
    ]
    return problems


def _partition(file: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return a file's partition values; Delta leaves nulls out of removes, and writes them in adds."""
    values: Mapping[str, str | None] = file.get("partitionValues") or {}
    return frozenset((name, value) for name, value in values.items() if value is not None)


def _key(action: Mapping[str, Any]) -> Key:
    vector = action.get("deletionVector")
    if not vector:
        return action["path"], None
    return action["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _bare(path: str) -> str:
    """Return a path without any escapes, however often it was escaped: whom a remove meant, whatever it says."""
    while (bare := unquote(path)) != path:
        path = bare
    return path


MAGIC = 1681511377
ASCII85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_CHARS = 20


def deleted_rows(table: Path, vector: Mapping[str, Any] | None) -> set[int]:
    """Return the positions of the rows that are deleted; raises ValueError for what is no deletion vector."""
    if not vector:
        return set()
    if vector["storageType"] == "i":
        return _positions(_z85(vector["pathOrInlineDv"]))
    with (table / vector_file(vector)).open("rb") as opened:
        opened.seek(int(vector.get("offset") or 0))
        (size,) = struct.unpack(">i", opened.read(4))
        return _positions(opened.read(size))


def vector_file(vector: Mapping[str, Any]) -> str:
    """Return the file below the table that holds the vector, empty for one that stands in the log itself."""
    if vector["storageType"] == "i":
        return ""
    if vector["storageType"] != "u":
        raise ValueError(f"a deletion vector outside its table: {vector}")
    prefix, encoded = vector["pathOrInlineDv"][:-_UUID_CHARS], vector["pathOrInlineDv"][-_UUID_CHARS:]
    name = f"deletion_vector_{uuid.UUID(bytes=_z85(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def _positions(raw: bytes) -> set[int]:
    (magic,) = struct.unpack("<i", raw[:4])
    if magic != MAGIC:
        raise ValueError(f"a deletion vector that begins with {magic}, expected {MAGIC}")
    return set(BitMap64.deserialize(raw[4:]))


def _z85(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(bytes.maketrans(Z85, ASCII85)))


LOG_ENDINGS = (".json", ".parquet")
LOG_NAMES = ("_last_checkpoint", "_last_vacuum_info")


@dataclass(frozen=True, slots=True)
class Orphans:
    """Paths below one table.

    data: data files that no log ever named. staged: commits and checkpoints that never came to their name. hidden:
    Hadoop's checksums of files that others have removed, which no VACUUM reads.
    """

    data: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def counts(self) -> Mapping[str, int]:
        """Return how many of each there are."""
        return {"data": len(self.data), "staged": len(self.staged), "hidden": len(self.hidden)}


def orphans_of(table: Path, known: set[str]) -> Orphans:
    """Return the orphans of a table; `known`: every path that its log ever named."""
    data, staged, hidden = [], [], []
    for path in sorted(one for one in table.rglob("*") if one.is_file()):
        name = str(path.relative_to(table))
        if path.name.startswith(".") and path.name.endswith(".crc"):
            if not path.with_name(path.name[1:].removesuffix(".crc")).exists():
                hidden.append(name)
        elif path.parent.name == "_delta_log":
            if path.name not in LOG_NAMES and not _is_log(path.name):
                staged.append(name)
        elif name not in known:
            data.append(name)
    return Orphans(tuple(data), tuple(staged), tuple(hidden))


def _is_log(name: str) -> bool:
    return name[:20].isdecimal() and name.endswith((*LOG_ENDINGS, ".crc")) and "tmp" not in name
