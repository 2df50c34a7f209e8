"""The decider's rolling state beside a rebuild of the live files that our plain replay finds, integer for integer."""

import json

from decider.store.tables.table_state import TableState
from shared.layout.partition_stats import IDLE_COMPACTED_TAG, PartitionStats, file_stats
from shared.policy.levels import SizeLevels
from shared.queue import keys
from tests.soak.log import TableLog, newest_version
from tests.soak.tables import TableSpec
from tests.soak.values import Value, from_log
from tests.support.outside import POLICY
from tests.support.stack import Stack


def is_at_rest(stack: Stack, spec: TableSpec) -> bool:
    """Whether the decider has read the table's whole log, and nothing waits or runs."""
    status, known = stack.get("/v1/status"), stack.get(f"/v1/tables/soak.{spec.name}")
    depth = status["queue"]["depth"]
    return (
        known["state"]["version"] == newest_version(stack.tables / spec.place)
        and not status["backlog"]["tables_waiting"]
        and not any(depth[state] for state in ("queued", "delayed", "leased"))
    )


def state_differences(stack: Stack, spec: TableSpec, log: TableLog) -> list[str]:
    """Return the partitions whose stored state is not what a rebuild finds."""
    table_id = stack.get(f"/v1/tables/soak.{spec.name}")["id"]
    client = stack.redis.client()
    raw = client.hgetall(keys.partitions("default", table_id))
    fit = TableState.decode(client.hgetall(keys.table_state("default", table_id))).level_fit
    levels = POLICY.fitted_to(fit.typical_file_bytes).size_levels
    stored = {
        _values(spec, log, json.loads(partition)): PartitionStats.decode(text.decode())
        for partition, text in raw.items()
    }
    counted = count_files(spec, log, levels)
    return [
        f"{spec.name} {partition}: stored {stored.get(partition)}, counted {counted.get(partition)}"
        for partition in sorted(stored.keys() | counted.keys(), key=str)
        if stored.get(partition, PartitionStats()) != counted.get(partition, PartitionStats())
    ]


def count_files(
    spec: TableSpec, log: TableLog, levels: SizeLevels = POLICY.size_levels
) -> dict[tuple[Value, ...], PartitionStats]:
    """Return the state of each partition by its values, from the live files and the table's levels alone."""
    partitions: dict[tuple[Value, ...], PartitionStats] = {}
    for live in log.live.values():
        vector = live.add.get("deletionVector")
        one = file_stats(
            levels,
            int(live.add["size"]),
            has_dv=bool(vector),
            deleted_rows=int(vector["cardinality"]) if vector else 0,
            is_idle_compacted=IDLE_COMPACTED_TAG in (live.add.get("tags") or {}),
        )
        partition = _values(spec, log, live.add["partitionValues"])
        partitions[partition] = partitions.get(partition, PartitionStats()) + one
    return partitions


def _values(spec: TableSpec, log: TableLog, values: dict[str, str | None]) -> tuple[Value, ...]:
    return tuple(from_log(kind, values[log.columns[name]]) for name, kind in spec.by.items())
