"""The plan of one vacuum of an Iceberg table: what decider (dry run) and actor (run) read becomes what is deleted.

Both walk through the same metadata, by the same generators (`shared.formats.iceberg.walk`). So a dry run lists what a
run deletes.

Candidates are the files of snapshots that expire or are gone. A candidate that a snapshot needs which stays, live in
any of its manifests, is none; nor is one that another entry of the table needs. Metadata of snapshots that stay have to
be readable, or nothing is deleted; of others, what is missing was deleted before. Content is deleted first, then
manifests, then lists of manifests, so that a run after a crash finds the rest.
"""

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from shared.errors import Corrupt, InvalidInput
from shared.formats.iceberg.manifests import Manifest, decode_live_files, decode_manifest_list
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead, decode_head, parse_metadata
from shared.formats.iceberg.orphans import (
    NotOrphan,
    TableFolders,
    base_key,
    file_key,
    is_head_file,
    is_metadata_file,
    table_uuid,
    without_host,
)
from shared.formats.iceberg.other_entries import newer_unknown
from shared.formats.iceberg.retention import Expiry
from shared.formats.iceberg.walk import Bodies, Read, Reading, chunks
from shared.formats.table_marks import ICEBERG, NO_ORPHANS, shared_folder, tables_of_others
from shared.paths.locations import canonical_location, file_location, is_under
from shared.paths.stored_file import StoredFile

START_BYTES = 65_536
"""Bytes of a metadata file that show of which table it is; writers put that first."""

MAX_METADATA_FILES = 10_000
"""Metadata files that are not known by name, beyond which a vacuum searches for no orphans."""


METADATA_PATH = "write.metadata.path"
"""Iceberg's property: where the metadata of the table are, unless in its folder."""


class Stage(IntEnum):
    """The order in which files are deleted."""

    CONTENT = 0
    MANIFEST = 1
    LIST = 2
    ORPHAN = 3


@dataclass(frozen=True, slots=True)
class UnneededFile:
    """A file to delete, by its path as the metadata or the listing spell it."""

    path: str
    size_bytes: int
    stage: Stage


@dataclass(frozen=True, slots=True)
class StoreListing:
    """Files below the table's folder; those that were written since `young_ms` are too young to be orphans."""

    files: Sequence[StoredFile]
    young_ms: int


@dataclass(slots=True)
class Unneeded:
    """Candidates, less the files that turned out to be needed.

    files: by the keys of their names below the table's folder. orphans: by the keys of their base names. bases: these
    keys for `files`. snapshots and manifests: ids and paths of those that were read as needed. outside: number of files
    outside of the table's folder, which stay. kept: why listed files are no orphans. foreign: why the table's folder
    may be another table's, too, so that there are no orphans; empty if it is not. others: metadata files that may
    be of another entry of the table.
    """

    location: str
    files: dict[str, UnneededFile] = field(default_factory=dict)
    orphans: dict[str, list[UnneededFile]] = field(default_factory=dict)
    bases: set[str] = field(default_factory=set)
    snapshots: set[int] = field(default_factory=set)
    manifests: set[str] = field(default_factory=set)
    outside: int = 0
    kept: Counter[NotOrphan] = field(default_factory=Counter)
    foreign: str = ""
    others: tuple[str, ...] = ()

    def offer(self, path: str, size_bytes: int, stage: Stage) -> None:
        """Take a file for deletion, if it lies in the table's folder."""
        name = name_below(self.location, path)
        if name is None:
            self.outside += 1
        elif (key := _name_key(name)) not in self.files:
            self.files[key] = UnneededFile(path, size_bytes, stage)
            self.bases.add(base_key(path))

    def offer_orphan(self, file: StoredFile) -> None:
        """Take a listed file for deletion, unless it is a candidate already."""
        path = f"{self.location}/{file.name}"
        if _name_key(file.name) not in self.files:
            self.orphans.setdefault(base_key(path), []).append(UnneededFile(path, file.size_bytes, Stage.ORPHAN))

    def need(self, path: str) -> None:
        """Keep a file, by whichever way its path leads into the table's folder, and every orphan with its name."""
        place = file_key(path)
        base = place.rpartition("/")[2]
        if base in self.bases:
            for key in _suffixes(place):
                self.files.pop(key, None)
        self.kept[NotOrphan.NEEDED] += len(self.orphans.pop(base, ()))

    @property
    def unrecognized(self) -> int:
        """Number of old files in the listing that are not recognized as the table's, and stay."""
        return self.kept[NotOrphan.FOREIGN]

    @property
    def left_out(self) -> str:
        """Why files are left that look unneeded; empty if none are."""
        reasons = [f"{NO_ORPHANS}: {self.foreign}"] if self.foreign else []
        if self.others:
            reasons.append(
                f"what {min(self.others)} needs stays: it is unknown to this table, which may be in two catalogs"
            )
        return "; ".join(reasons)

    def keep_strange(self, folders: TableFolders) -> None:
        """Keep the orphans that lie in no folder of the table."""
        start = len(self.location) + 1
        for key, some in list(self.orphans.items()):
            self.orphans[key] = [one for one in some if folders.may_hold(one.path[start:])]
            heads = sum(is_head_file(one.path[start:]) for one in some)
            self.kept[NotOrphan.FOREIGN] += len(some) - len(self.orphans[key]) - heads

    def ordered(self) -> tuple[UnneededFile, ...]:
        """Return what is to be deleted, in the order of deletion."""
        found = [*self.files.values(), *(one for some in self.orphans.values() for one in some)]
        return tuple(sorted(found, key=lambda one: (one.stage, one.path)))

    def has(self, candidate: UnneededFile) -> bool:
        """Return whether a candidate is still one."""
        if candidate.stage is Stage.ORPHAN:
            return candidate in self.orphans.get(base_key(candidate.path), ())
        return candidate in (self.files.get(key) for key in _suffixes(file_key(candidate.path)))


def read_past(head: TableHead, known: Collection[str] = ()) -> Generator[Read, Bodies, tuple[TableHead, ...]]:
    """Return the metadata that a table still names, oldest first, and the newest last; none of another table.

    `known`: paths of those that are left out.
    """
    versions: list[TableHead] = []
    for paths in chunks(path for path in head.records.previous if path not in known):
        bodies = yield Read(paths)
        for path, body in zip(paths, bodies, strict=True):
            if body is not None:
                found = decode_head(parse_metadata(body, path), path)
                versions += [found] if found.metadata.table_uuid == head.metadata.table_uuid else []
    return (*versions, head)


def find_unneeded(
    versions: Sequence[TableHead],
    expiry: Expiry,
    listing: StoreListing | None = None,
    others: Sequence[TableHead] = (),
) -> Generator[Read, Bodies, Unneeded]:
    """Return the files that no snapshot needs which stays; `listing`: where to search for orphans, None: nowhere.

    `others`: metadata that may be of another entry of the table, all of whose snapshots stay. Raises Corrupt if
    metadata of a snapshot that stays cannot be read.
    """
    head = versions[-1]
    known = {one.id: one for version in (*others, *versions) for one in version.snapshots.values()}
    expired = (expiry.gone | expiry.snapshots).difference(*(one.snapshots for one in others))
    staying = [one for one in known.values() if one.id not in expired]
    statistics = {one for version in versions for one in version.records.statistics}
    found = Unneeded(head.location, others=tuple(one.records.path for one in others))
    needed = _Lists()
    yield from needed.read(staying, required=head.snapshots.keys() - expired)
    unneeded = _Lists()
    yield from unneeded.read([known[one] for one in sorted(expired)], required=())
    for path in unneeded.present:
        found.offer(path, 0, Stage.LIST)
    for statistic in sorted(statistics, key=lambda one: one.path):
        if statistic.snapshot in expired:
            found.offer(statistic.path, statistic.size_bytes, Stage.CONTENT)
    folders: set[str] = set()
    nested: tuple[str, ...] = ()
    yield from _offer_manifests(found, [one for one in unneeded.manifests.values() if one.path not in needed.manifests])
    if listing is not None:
        nested = yield from _offer_orphans(found, listing, head)
    for path in (*needed.present, *needed.manifests):
        found.need(path)
    # Of a snapshot that the metadata have, only the newest statistics count; of one that is gone, all of them.
    for statistic in (
        *head.records.statistics,
        *(one for one in statistics if one.snapshot not in head.snapshots),
        *(one for other in others for one in other.records.statistics),
    ):
        if statistic.snapshot not in expired:
            found.need(statistic.path)
    found.snapshots.update(one.id for one in staying)
    yield from _need_content(found, needed, folders)
    if listing is not None:
        names = (name_below(head.location, f"{folder}/x") for folder in folders)
        own = frozenset(name.rpartition("/")[0] for name in names if name is not None)
        found.keep_strange(TableFolders(nested, own))
    return found


def need_newer(found: Unneeded, head: TableHead) -> Reading:
    """Keep what the snapshots need that the metadata have now, and had not when the files were found.

    A file may become live again: by a rollback, a snapshot that is cherry-picked, or a file that is added once more.
    """
    newer = [one for one in head.snapshots.values() if one.id not in found.snapshots]
    lists = _Lists()
    yield from lists.read(newer, required={one.id for one in newer})
    for path in (*lists.present, *lists.manifests, *(one.path for one in head.records.statistics)):
        found.need(path)
    yield from _need_content(found, lists, set())
    found.snapshots.update(one.id for one in newer)


class _Lists:
    """Manifests of some snapshots, by path; `present`: the lists that were read."""

    def __init__(self) -> None:
        self.present: list[str] = []
        self.manifests: dict[str, Manifest] = {}
        self.required: set[str] = set()

    def read(self, snapshots: Sequence[SnapshotRecord], *, required: Collection[int]) -> Reading:
        """Read the lists of snapshots; the lists of `required`, and their manifests, have to be there."""
        must = {one.manifest_list for one in snapshots if one.id in required}
        for paths in chunks(sorted({one.manifest_list for one in snapshots})):
            bodies = yield Read(paths)
            for path, body in zip(paths, bodies, strict=True):
                if body is None:
                    _refuse_missing(path, is_required=path in must)
                    continue
                self.present.append(path)
                manifests = decode_manifest_list(body, path)
                self.manifests.update((one.path, one) for one in manifests)
                self.required.update(one.path for one in manifests if path in must)


def _offer_manifests(found: Unneeded, manifests: Sequence[Manifest]) -> Reading:
    """Take manifests that no snapshot needs for deletion, with the files that are live by them."""
    for some in chunks(manifests):
        bodies = yield Read(tuple(one.path for one in some))
        for manifest, body in zip(some, bodies, strict=True):
            if body is not None:
                found.offer(manifest.path, manifest.size_bytes, Stage.MANIFEST)
                for path, size_bytes in decode_live_files(body, manifest.path):
                    found.offer(path, size_bytes, Stage.CONTENT)


def _need_content(found: Unneeded, lists: _Lists, folders: set[str]) -> Reading:
    """Keep the files that are live by manifests, and note their folders; nothing is read if nothing is left."""
    unread = [path for path in lists.manifests if path not in found.manifests]
    for paths in chunks(unread):
        if not found.files and not found.orphans:
            return
        bodies = yield Read(paths)
        for path, body in zip(paths, bodies, strict=True):
            if body is None:
                _refuse_missing(path, is_required=path in lists.required)
                continue
            for file, _ in decode_live_files(body, path):
                found.need(file)
                folders.add(file.rpartition("/")[0])
        found.manifests.update(paths)


def _offer_orphans(found: Unneeded, listing: StoreListing, head: TableHead) -> Generator[Read, Bodies, tuple[str, ...]]:
    """Take old files for deletion, unless the table's folder may be another table's, too.

    Returns the folders below it that are other tables.
    """
    others = tables_of_others((file.name for file in listing.files), ICEBERG)
    if "" in others:
        found.foreign = shared_folder(others[""])
    else:
        yield from _search_foreign(found, listing, head)
    if found.foreign:
        return ()
    for file in listing.files:
        if file.modified_ms < listing.young_ms:
            found.offer_orphan(file)
        else:
            found.kept[NotOrphan.YOUNG] += 1
    return tuple(sorted(others))


def _search_foreign(found: Unneeded, listing: StoreListing, head: TableHead) -> Reading:
    """Note why the table's folder may be another table's, too: a metadata file that is not the table's own."""
    if METADATA_PATH in head.metadata.configuration:
        found.foreign = f"{METADATA_PATH} is set, so metadata of other tables would not be seen"
        return
    files = {f"{found.location}/{file.name}": file for file in listing.files if is_metadata_file(file.name)}
    known = {file_key(one) for one in (*head.records.previous, head.records.path)}
    unknown = [path for path in files if file_key(path) not in known]
    newer = newer_unknown(head, files)
    if newer:
        found.foreign = f"{min(newer)} is new and unknown to this table, which may be in two catalogs"
        return
    if len(unknown) > MAX_METADATA_FILES:
        found.foreign = f"{len(unknown)} metadata files in the table's folder are not known to it"
        return
    for some in chunks(unknown):
        bodies = yield Read(some, START_BYTES)
        for path, body in zip(some, bodies, strict=True):
            if body is None or table_uuid(body) != head.metadata.table_uuid:
                found.foreign = f"{path} may be of another table"
                return


def _refuse_missing(path: str, *, is_required: bool) -> None:
    if is_required:
        raise Corrupt(f"{path} is missing, and a snapshot that stays needs it; nothing is deleted")


def _name_key(name: str) -> str:
    """Return the key of a name below the table's folder, with which the key of each path to this file ends."""
    return file_key("/" + name)


def _suffixes(key: str) -> Iterator[str]:
    """Yield the key of a path, and what is left of it without its first folder, its first two, and so on."""
    while key:
        yield key
        key = key.partition("/")[2]


def name_below(location: str, path: str) -> str | None:
    """Return the name of a file below the table's folder as its path spells it, None for a file elsewhere."""
    if ".." in path.split("/"):
        return None
    if path.startswith(f"{location}/"):
        return path[len(location) + 1 :]
    try:
        place, root = file_location(location, path), canonical_location(location)
    except InvalidInput:
        return None
    spelled, below = without_host(path), without_host(location).rstrip("/") + "/"
    if place is None or not spelled.startswith(below) or not is_under(place, [root]):
        return None
    return spelled.removeprefix(below)
