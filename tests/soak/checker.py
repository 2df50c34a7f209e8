"""Compares what a reader found with what the model expects, and what writers were told with what the log holds.

A checker that cannot fail is worth nothing: its tests plant each fault that it names.

Readers of a table at a pinned version, each of which must find the rows that the model expects.

Spark reads in the process of its writer: see `spark_writer`. A filter on `at` makes a reader use statistics.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from shared.layout.partition_stats import IDLE_COMPACTED_TAG, PartitionStats, file_stats
from shared.policy.levels import SizeLevels
from shared.queue import keys
from tests.soak.journal import Journals
from tests.soak.log import TableLog, deleted_rows, newest_version
from tests.soak.model import Model
from tests.soak.tables import TableSpec
from tests.soak.values import ARROW, Kind, Row, Value, from_arrow, from_log, literal_for_datafusion
from tests.support.outside import POLICY, levels_of
from tests.support.stack import Stack

SAMPLE = 2
"""Ids that a difference names."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a reader and the model differ: numbers of ids, and a few of them for whoever looks into it.

    twice: there more than once. missing: expected and not there. unexpected: there though deleted or never written.
    changed: there with other values.
    """

    table: str
    version: int
    reader: str
    twice: int
    missing: int
    unexpected: int
    changed: int
    sample: Mapping[str, Sequence[object]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.twice or self.missing or self.unexpected or self.changed)

    def __str__(self) -> str:
        counts = f"{self.twice} twice, {self.missing} missing, {self.unexpected} unexpected, {self.changed} changed"
        return f"{self.table} version {self.version} by {self.reader}: {counts}; {dict(self.sample)}"


def compare(place: tuple[str, int, str], expected: Mapping[int, Row], found: Sequence[Row]) -> Difference:
    """Compare the rows of a table; `place`: table, version, reader. A column that a row lacks is null."""
    times = Counter(row["id"] for row in found)
    twice = [key for key, count in times.items() if count > 1]
    missing = [key for key in expected if key not in times]
    unexpected = [key for key in times if key not in expected]
    by_id = {row["id"]: row for row in found}
    changed = [
        (key, expected[key], by_id[key])
        for key in expected.keys() & by_id.keys()
        if _without_nulls(expected[key]) != _without_nulls(by_id[key])
    ]
    sample = {"twice": twice, "missing": missing, "unexpected": unexpected, "changed": changed}
    shown = {name: some[:SAMPLE] for name, some in sample.items() if some}
    return Difference(*place, len(twice), len(missing), len(unexpected), len(changed), shown)


def broken_answers(journals: Journals, models: Mapping[str, Model]) -> list[str]:
    """Return operations that a writer was told are committed, and that the log does not hold, or holds elsewhere."""
    problems = []
    for nonce, answer in journals.answers.items():
        operation = journals.operations[nonce]
        model = models[operation.table]
        if answer.version is None:
            continue
        version = model.found.get(nonce)
        if version is None and not model.effect_is_empty(operation, answer.version):
            problems.append(f"{operation.table}: {nonce} ({operation.action}) was accepted and is not in the log")
        if version is not None and answer.version < version:
            problems.append(f"{operation.table}: {nonce} was accepted as {answer.version} and is version {version}")
    return problems


def lost_answers(journals: Journals, models: Mapping[str, Model]) -> int:
    """Count operations that are in the log though their writer was told otherwise or nothing."""
    found = (nonce for model in models.values() for nonce in model.found)
    return sum(1 for nonce in found if nonce not in journals.answers or journals.answers[nonce].version is None)


def _without_nulls(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


Reader = Callable[[TableSpec, TableLog, int | None], list[Row]]
"""Reads the table at the version that its log was read to; the number: only rows whose `at` is at least this."""


def by_pyarrow(spec: TableSpec, log: TableLog, since: int | None) -> list[Row]:
    """Deltalake's own snapshot, with pyarrow reading the files."""
    table = DeltaTable(log.folder.as_uri(), version=log.version)
    wanted = None if since is None else pc.field("at") >= pa.scalar(since, pa.int64()).cast(ARROW[Kind.TIMESTAMP])
    return _rows(spec, table.to_pyarrow_dataset().to_table(filter=wanted))


def by_datafusion(spec: TableSpec, log: TableLog, since: int | None) -> list[Row]:
    """Deltalake with DataFusion, which knows column mapping and deletion vectors, too."""
    table = DeltaTable(log.folder.as_uri(), version=log.version)
    where = "" if since is None else f" where at >= {literal_for_datafusion(Kind.TIMESTAMP, since)}"
    return _rows(spec, pa.table(QueryBuilder().register("t", table).execute(f"select * from t{where}").read_all()))


def by_duckdb(spec: TableSpec, log: TableLog, since: int | None) -> list[Row]:
    """DuckDB over the live files of our plain replay: nothing of Delta's, and no statistics of its log."""
    if not log.live:
        return []
    by_path = {str(log.folder / live.path): live for live in log.live.values()}
    assert len(by_path) == len(log.live), "one file is live twice"
    source = duckdb.connect().from_parquet(
        list(by_path), filename=True, file_row_number=True, union_by_name=True, hive_partitioning=False
    )
    there = {name: physical for name, physical in log.columns.items() if physical in source.columns}
    columns = ", ".join(_for_duckdb(spec.kind(name), physical) for name, physical in there.items())
    wanted = source if since is None else source.filter(f'epoch_us("{log.columns["at"]}") >= {since}')
    found = wanted.project(f"filename, file_row_number, {columns}").fetchall()
    hidden = {path: deleted_rows(log.folder, live.add.get("deletionVector")) for path, live in by_path.items()}
    rows: list[Row] = []
    for path, position, *values in found:
        if position in hidden[path]:
            continue
        partition: Mapping[str, str | None] = by_path[path].add["partitionValues"]
        typed = {name: from_log(kind, partition[log.columns[name]]) for name, kind in spec.by.items()}
        rows.append(dict(zip(there, values, strict=True)) | typed)
    return rows


def _for_duckdb(kind: Kind, physical: str) -> str:
    return f'epoch_us("{physical}")' if kind is Kind.TIMESTAMP else f'"{physical}"'


def _rows(spec: TableSpec, table: pa.Table) -> list[Row]:
    columns = {name: from_arrow(spec.kind(name), table.column(name)) for name in table.column_names}
    for name in spec.by:
        columns[name] = [None if value == "" else value for value in columns[name]]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def readers_of(spec: TableSpec) -> dict[str, Reader]:
    """Return the readers that can read this table at all: pyarrow's dataset knows neither mapping nor vectors."""
    both: dict[str, Reader] = {"deltalake (DataFusion)": by_datafusion, "DuckDB": by_duckdb}
    return {"deltalake (pyarrow)": by_pyarrow, **both} if spec.deltalake else both


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
    levels = levels_of(client, table_id)
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
