"""The end of a vacuum in a log: ours says what it deleted, another engine's is understood by Delta's rule.

Spark and deltalake end a vacuum with the same operation. Which retention it had is not in that commit, so the table's
own is assumed: if it was longer, the files that are left are found as orphans later; if it was shorter, a vacuum finds
less.
"""

from shared.formats.delta_vacuum import COMPLETED, VACUUM_END, vacuum_mark
from shared.formats.delta_vacuum_plan import DEFAULT_RETENTION_S, RETENTION
from shared.policy.parsers import interval
from shared.table import TableMetadata, VacuumMark


def decode_vacuum(info: object, timestamp_ms: int, metadata: TableMetadata | None) -> VacuumMark | None:
    """Return what the vacuum that a commit ends has deleted, None for any other commit."""
    if not isinstance(info, dict) or info.get("operation") != VACUUM_END:
        return None
    mark = vacuum_mark(info)
    if mark is not None and mark.vacuumed_until_ms is not None:
        return VacuumMark(mark.vacuumed_until_ms, bool(mark.vacuumed_orphans))
    parameters = info.get("operationParameters")
    status = parameters.get("status") if isinstance(parameters, dict) else None
    if str(status).strip('"') != COMPLETED:
        return None
    return VacuumMark(timestamp_ms - _retention_s(metadata) * 1000)


def _retention_s(metadata: TableMetadata | None) -> int:
    spelled = None if metadata is None else metadata.configuration.get(RETENTION)
    try:
        return DEFAULT_RETENTION_S if spelled is None else interval(spelled)
    except ValueError:
        return DEFAULT_RETENTION_S
