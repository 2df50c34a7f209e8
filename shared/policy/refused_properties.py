"""Properties that mean something else than one may hope, and why each is not obeyed.

They are named to the owner with what to use instead, and otherwise ignored.
"""

from collections.abc import Mapping

from shared.policy.names import AMORO, PREFIX, QBEAST

_NO_INDEX = "is ignored except on tables with a Qbeast index: it names a revision of the index"
_NO_UNINDEXED = "is ignored except on tables with a Qbeast index"

INDEX_PROPERTIES = frozenset(
    f"{QBEAST}{name}"
    for name in (
        *("autoOptimize.revisionId", "revision-id", "revision-rewrite"),
        *(f"autoOptimize.optimizeUnindexedFiles.{one}" for one in ("enabled", "prioritize", "batchBytes")),
        "autoOptimize.optimizeUnindexedFiles.fromTimestamp",
    )
)
"""Properties that are obeyed on tables with a Qbeast index alone."""

_NO_EXPIRY = "is ignored; use lakewright.delete-rows-after, such as 90 days of ts"
_NO_TAGS = "is ignored: Lakewright makes no tags"
_NO_TRASH = "is ignored: deleted files are not kept; lakewright.retain and lakewright.min-retain delay their deletion"
_RETRIES = "is ignored: the queue counts attempts for all tables; set max-attempts with `lakewright queue set`"

REFUSED: Mapping[str, str] = {
    AMORO + "execute.num-retries": _RETRIES,
    AMORO + "num-retries": _RETRIES,
    AMORO + "allow-partial-commit": (
        "is ignored: each file group whose inputs are untouched is committed, and the others are planned again"
    ),
    AMORO + "max-file-count": (
        "is ignored: the size of a job is limited in bytes, and one run after another plans what is left; use "
        "lakewright.max-bytes-per-job"
    ),
    AMORO + "full.rewrite-all-files": "is ignored: a full rewrite leaves files alone that are full and have no deletes",
    AMORO + "min-plan-interval": "is ignored: a commit is evaluated from a few numbers, and plans need no pause",
    AMORO + "refresh-event.identifier": "is ignored: events name the table; see docs/events",
    "snapshot.keep.min-count": "is ignored: versions are kept by time; use lakewright.retain",
    "snapshot.change.keep.minutes": "is ignored: the tables have no change store; use lakewright.retain",
    "change.data.ttl.minutes": "is ignored: the tables have no change store; use lakewright.retain",
    "clean-orphan-file.enabled": (
        "is ignored, because it does not permit to delete all that a vacuum deletes; use lakewright.vacuum=on and "
        "lakewright.orphans-every"
    ),
    "clean-orphan-file.min-existing-time-minutes": (
        "is ignored: files that no commit names are kept for the table's retention; use lakewright.min-retain"
    ),
    "clean-dangling-delete-files.enabled": (
        "is ignored: vacuums remove delete files that apply to no data file; use lakewright.vacuum=on"
    ),
    **dict.fromkeys(
        (
            "data-expire.enabled",
            "data-expire.level",
            "data-expire.field",
            "data-expire.datetime-string-pattern",
            "data-expire.datetime-number-format",
            "data-expire.retention-time",
            "data-expire.base-on-rule",
        ),
        _NO_EXPIRY,
    ),
    **dict.fromkeys(("table-trash.enabled", "table-trash.custom-root-location", "table-trash.file-pattern"), _NO_TRASH),
    **dict.fromkeys(
        (
            "tag.auto-create.enabled",
            "tag.auto-create.trigger.period",
            "tag.auto-create.trigger.offset.minutes",
            "tag.auto-create.trigger.max-delay.minutes",
            "tag.auto-create.max-age-ms",
            "tag.auto-create.tag-format",
        ),
        _NO_TAGS,
    ),
    "table-expire.enabled": "is ignored, because Amoro sets it for itself; use lakewright.vacuum=on",
    PREFIX + "retain-hours": "is ignored; use lakewright.retain, such as 48 hours, or acid.data.retain.hours",
    QBEAST + "autoOptimize.revisionId": _NO_INDEX,
    QBEAST + "revision-id": _NO_INDEX,
    QBEAST + "revision-rewrite": _NO_INDEX,
    QBEAST + "autoOptimize.optimizeUnindexedFiles.enabled": _NO_UNINDEXED,
    QBEAST + "autoOptimize.optimizeUnindexedFiles.prioritize": _NO_UNINDEXED,
    QBEAST + "autoOptimize.optimizeUnindexedFiles.batchBytes": (
        f"{_NO_UNINDEXED}; use lakewright.max-bytes-per-job for the bytes of one job"
    ),
    QBEAST + "autoOptimize.optimizeUnindexedFiles.fromTimestamp": (
        f"{_NO_UNINDEXED}; use lakewright.filter for the partitions to optimize"
    ),
}
"""Why each is not obeyed, by its name, and what to use instead."""
