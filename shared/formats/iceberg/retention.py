"""Expiry of snapshots, branches and tags of an Iceberg table: a pure function of its metadata, past and present.

A snapshot **stays** if any of these holds:

1. A branch or a tag names it, or did in metadata that were in force inside the retention.
2. It is one of the newest of a branch: `history.expire.min-snapshots-to-keep` of them, counted from the branch's own.
3. It was made inside the retention, or is the parent of one that was, or main's log says that it was main's then.
4. It is newer than another one of its branch that stays for its age or its number.
5. It is the newest of a line that main left, and main went on from there, or was replaced, inside the retention.

All others expire. So a snapshot that was the newest of a branch yesterday stays for the whole retention, however old
it is; Iceberg's own expiry counts from the time of its commit. A branch or tag other than main expires when its
snapshot is older than `history.expire.max-ref-age-ms` and than the retention. The limits of a branch or tag itself
replace the table's, except that no branch keeps its snapshots for less than the retention.

Metadata of the past are those that the table still names. Snapshots that only they have are gone: expired by others, or
by a run that ended before it deleted their files. These files are deleted by the same rule.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shared.errors import InvalidInput, Unsupported
from shared.formats.iceberg.metadata import SnapshotRecord, TableHead
from shared.formats.iceberg.names import MAIN
from shared.formats.retention import set_retention_s
from shared.whole_numbers import whole_number

MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"
GC_ENABLED = "gc.enabled"
NESSIE = "nessie."
"""Prefix of the properties that Nessie adds to the metadata of each table."""

DEFAULT_MAX_SNAPSHOT_AGE_MS = 5 * 86_400_000
"""Iceberg's default: snapshots of five days."""

DEFAULT_MIN_SNAPSHOTS = 1
"""Iceberg's default: the newest snapshot of each branch."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """Branches and tags, by name, and snapshots that expire; `stays`: all known snapshots whose files stay.

    `gone`: snapshots of the past that the metadata do not have any more, and that are not kept.
    """

    refs: tuple[str, ...]
    snapshots: frozenset[int]
    gone: frozenset[int]
    stays: frozenset[int]


def own_retention_s(configuration: Mapping[str, str]) -> int:
    """Return how long a table keeps snapshots by its own properties: the longest that any of them sets.

    Raises InvalidInput for one that cannot be read.
    """
    age_ms = _number(configuration, MAX_SNAPSHOT_AGE, DEFAULT_MAX_SNAPSHOT_AGE_MS, least=0)
    return max(set_retention_s(configuration), -(-age_ms // 1000))


def check_may_expire(configuration: Mapping[str, str], location: str) -> None:
    """Raise Unsupported for a table whose files may belong to other tables, and InvalidInput for unreadable limits."""
    if any(name.startswith(NESSIE) for name in configuration):
        raise Unsupported(
            f"{location}: branches and tags of Nessie may need any file of the table, which its metadata do not show; "
            "no file is deleted; use nessie-gc",
            field=NESSIE,
        )
    if configuration.get(GC_ENABLED, "true").lower() != "true":
        raise Unsupported(
            f"{location}: {GC_ENABLED} is not true, so files may belong to other tables, and none is deleted; set it "
            "to true if they do not",
            field=GC_ENABLED,
        )
    own_retention_s(configuration)
    _limits(configuration)


def plan_expiry(versions: Sequence[TableHead], cutoff_ms: int, now_ms: int) -> Expiry:
    """Plan the expiry of a table; `versions` are its metadata, oldest first, the newest last.

    `cutoff_ms`: the beginning of the retention, in milliseconds since 1970.
    """
    head = versions[-1]
    known = {one.id: one for version in versions for one in version.snapshots.values()}
    refs = _expired_refs(head, cutoff_ms, now_ms)
    stays = {*_named(versions, cutoff_ms), *_of_age(known, cutoff_ms), *_of_main(versions, cutoff_ms)}
    stays.update(_left_by_main(head, cutoff_ms))
    for name, ref in head.refs.items():
        if ref.is_branch and name not in refs:
            stays.update(_of_branch(head, name, cutoff_ms, now_ms))
    expired = head.snapshots.keys() - stays
    return Expiry(refs, frozenset(expired), frozenset(known.keys() - head.snapshots.keys() - stays), frozenset(stays))


def _expired_refs(head: TableHead, cutoff_ms: int, now_ms: int) -> tuple[str, ...]:
    _, max_ref_age_ms = _limits(head.metadata.configuration)
    found: list[str] = []
    for name, ref in sorted(head.refs.items()):
        age_ms = max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        snapshot = head.snapshots.get(ref.snapshot)
        if name == MAIN or age_ms is None or snapshot is None:
            continue
        if now_ms - snapshot.timestamp_ms > age_ms and snapshot.timestamp_ms < cutoff_ms:
            found.append(name)
    return tuple(found)


def _named(versions: Sequence[TableHead], cutoff_ms: int) -> Iterator[int]:
    """Yield the snapshots that branches and tags named inside the retention: metadata hold until the next ones."""
    later = [version.updated_ms for version in versions[1:]]
    for version, until_ms in zip(versions, [*later, None], strict=True):
        if until_ms is None or until_ms >= cutoff_ms:
            yield from (ref.snapshot for ref in version.refs.values())


def _of_age(known: Mapping[int, SnapshotRecord], cutoff_ms: int) -> Iterator[int]:
    """Yield the snapshots that were made inside the retention, and those that they replaced."""
    for snapshot in known.values():
        if snapshot.timestamp_ms >= cutoff_ms:
            yield snapshot.id
            if snapshot.parent is not None:
                yield snapshot.parent


def _of_main(versions: Sequence[TableHead], cutoff_ms: int) -> Iterator[int]:
    """Yield the snapshots that main's log shows inside the retention, such as one that was rolled back."""
    for version in versions:
        for (_, snapshot), (until_ms, _) in zip(version.records.main_log, version.records.main_log[1:], strict=False):
            if until_ms >= cutoff_ms:
                yield snapshot


def _left_by_main(head: TableHead, cutoff_ms: int) -> Iterator[int]:
    """Yield the newest snapshots of lines that main left inside the retention at the latest, as far as times show it.

    A table that was replaced has no log of what main was before, and a busy one soon none of its metadata.
    """
    main = list(head.chain())[::-1]
    next_ms = {one.parent: one.timestamp_ms for one in main}
    on_main = {one.id for one in main}
    parents = {one.parent for one in head.snapshots.values()}
    for newest in head.snapshots:
        if newest in on_main or newest in parents:
            continue
        line = list(head.ancestors(newest))
        fork = next((one.id for one in line if one.id in on_main), line[-1].parent)
        if fork in next_ms and next_ms[fork] >= cutoff_ms:
            yield newest


def _of_branch(head: TableHead, name: str, cutoff_ms: int, now_ms: int) -> list[int]:
    """Return the snapshots of a branch from its newest one to the oldest that stays."""
    ref = head.refs[name]
    least, _ = _limits(head.metadata.configuration)
    least = least if ref.min_snapshots is None else ref.min_snapshots
    own_ms = cutoff_ms if ref.max_snapshot_age_ms is None else min(cutoff_ms, now_ms - ref.max_snapshot_age_ms)
    chain = list(head.ancestors(ref.snapshot))
    kept = 0
    made_ms: int | None = None  # When the snapshot before, which is the next one of the branch, was made.
    for place, snapshot in enumerate(chain, start=1):
        until_ms = snapshot.timestamp_ms if made_ms is None else max(made_ms, snapshot.timestamp_ms)
        if place <= least or until_ms >= own_ms:
            kept = place
        made_ms = snapshot.timestamp_ms
    return [one.id for one in chain[:kept]]


def _limits(configuration: Mapping[str, str]) -> tuple[int, int | None]:
    """Return the least number of snapshots of a branch, and the greatest age of refs, None if they never expire."""
    least = _number(configuration, MIN_SNAPSHOTS, DEFAULT_MIN_SNAPSHOTS, least=1)
    return least, _number(configuration, MAX_REF_AGE, 0, least=1) or None


def _number(configuration: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = configuration.get(name)
    if text is None:
        return default
    found = whole_number(text.strip())
    if found is not None and found >= least:
        return found
    raise InvalidInput(
        f"{name} = {text!r} cannot be read: expected an integer of at least {least}; nothing is deleted", field=name
    )
