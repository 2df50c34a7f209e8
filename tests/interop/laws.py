"""What our rewrite must leave as it was, checked by a plain replay of the log and the files' own Parquet footers.

Rows are the readers' business. Here is everything else that a reader or writer may depend on: metadata, protocol, the
meaning of our commit, partition values, statistics in the log and in the files, physical types, and the codec.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.interop.table_log import Action, TableLog, physical_name

_KEPT_AS_TEXT = ("minValues", "maxValues")


def broken_laws(before: Path, after: Path) -> list[str]:
    """Return one sentence for everything that differs and must not, none if all is well."""
    old, new = TableLog.read(before), TableLog.read(after)
    reported = [*_table(old, new), *_commits(old, new)]
    columns = {"\x00".join(path) for path in _primitive(new.schema)}
    for partition, inputs, outputs in _rewritten(old, new):
        reported += [f"{partition}: {what}" for what in _statistics(inputs, outputs, columns)]
        reported += [f"{partition}: {what}" for what in _files(old, new, inputs, outputs)]
    return sorted(set(reported))


def _table(old: TableLog, new: TableLog) -> Iterator[str]:
    if old.metadata != new.metadata:
        yield f"metadata changed from {old.metadata} to {new.metadata}"
    if old.protocol != new.protocol:
        yield f"protocol changed from {old.protocol} to {new.protocol}"


def _commits(old: TableLog, new: TableLog) -> Iterator[str]:
    """Our commits hold file actions without data change, and nothing that speaks for the table's owner."""
    for number in range(old.version + 1, new.version + 1):
        for action in new.commits[number]:
            kind = next(iter(action))
            if kind in ("add", "remove") and action[kind]["dataChange"]:
                yield f"version {number} claims a data change"
            if kind not in ("add", "remove", "commitInfo", "domainMetadata"):
                yield f"version {number} holds a {kind} action"


Partition = tuple[str, list[Action], list[Action]]


def _rewritten(old: TableLog, new: TableLog) -> Iterator[Partition]:
    """Give each partition that changed: its partition values, the files that went, and those that came."""
    before = {_key(add): add for add in old.live()}
    after = {_key(add): add for add in new.live()}
    partitions: dict[str, tuple[list[Action], list[Action]]] = {}
    for key in before.keys() - after.keys():
        partitions.setdefault(_partition(before[key]), ([], []))[0].append(before[key])
    for key in after.keys() - before.keys():
        partitions.setdefault(_partition(after[key]), ([], []))[1].append(after[key])
    for partition, (inputs, outputs) in partitions.items():
        yield partition, inputs, outputs


def _key(add: Action) -> str:
    return json.dumps([add["path"], add.get("deletionVector")])


def _partition(add: Action) -> str:
    return json.dumps(add["partitionValues"], ensure_ascii=False, sort_keys=True)


def _primitive(struct: Action, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Give the physical paths of columns that statistics speak of: what writers tell of lists and maps is their own."""
    for field in struct["fields"]:
        path = (*prefix, physical_name(field))
        if isinstance(field["type"], str):
            yield path
        elif field["type"]["type"] == "struct":
            yield from _primitive(field["type"], path)


def _statistics(inputs: list[Action], outputs: list[Action], columns: set[str]) -> Iterator[str]:
    if not outputs or not inputs:
        yield f"{len(inputs)} files became {len(outputs)}: the partition values are spelled in another way"
        return
    old, new = [_stats(add) for add in inputs], [_stats(add) for add in outputs]
    deleted = sum((add.get("deletionVector") or {}).get("cardinality", 0) for add in inputs)
    if all("numRecords" in stats for stats in old):
        rows = sum(stats["numRecords"] for stats in old) - deleted
        if rows != sum(stats.get("numRecords", -1) for stats in new):
            yield f"numRecords says {[stats.get('numRecords') for stats in new]} for {rows} rows"
    for bound in _KEPT_AS_TEXT:
        for column in columns & (_in_all(old, bound) - _in_all(new, bound)):
            yield f"{bound} of {column} is lost"
    if deleted:
        return  # Bounds may become tighter and nulls fewer, since the deleted rows are gone.
    for column in columns & (_in_all(old, "nullCount") - _in_all(new, "nullCount")):
        yield f"nullCount of {column} is lost"
    for column in columns & _in_all(old, "nullCount") & _in_all(new, "nullCount"):
        counts = [sum(_leaf(stats["nullCount"], column) for stats in side) for side in (old, new)]
        if counts[0] != counts[1]:
            yield f"nullCount of {column} is {counts[1]} instead of {counts[0]}"


def _stats(add: Action) -> dict[str, Any]:
    return json.loads(add["stats"]) if add.get("stats") else {}


def _in_all(stats: list[dict[str, Any]], name: str) -> set[str]:
    return set.intersection(*({path for path, _ in _leaves(one.get(name, {}))} for one in stats))


def _leaves(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}\x00")
        elif value is not None:
            yield f"{prefix}{name}", value


def _leaf(tree: dict[str, Any], path: str) -> int:
    value: Any = tree
    for name in path.split("\x00"):
        value = value[name]
    return int(value)


def _files(old: TableLog, new: TableLog, inputs: list[Action], outputs: list[Action]) -> Iterator[str]:
    if not inputs or not outputs:
        return
    before = [_footer(old.file(add)) for add in inputs]
    after = [_footer(new.file(add)) for add in outputs]
    partitions = {physical_name(field) for field in new.schema["fields"] if field["name"] in _partitions(new)}
    for column in sorted(set.union(*(set(footer) for footer in before)) - partitions):
        kept = [footer[column] for footer in before if column in footer]
        for footer in after:
            if column not in footer:
                yield f"column {column} is gone from the files"
                continue
            yield from _column(column, kept, footer[column])


def _partitions(log: TableLog) -> set[str]:
    return set(log.metadata["partitionColumns"])


def _column(name: str, inputs: list[dict[str, Any]], output: dict[str, Any]) -> Iterator[str]:
    for what in ("physical type", "logical type", "field id"):
        kinds = {column[what] for column in inputs}
        if len(kinds) == 1 and output[what] not in kinds and not _is_int96_repaired(inputs, output):
            yield f"{what} of {name} changed from {kinds.pop()} to {output[what]}"
    codecs = {column["codec"] for column in inputs}
    if len(codecs) == 1 and output["codec"] not in codecs:
        yield f"codec of {name} changed from {codecs.pop()} to {output['codec']}"
    if all(column["has bounds"] or column["is null"] for column in inputs) and not (
        output["has bounds"] or output["is null"]
    ):
        yield f"the files' own bounds of {name} are lost"


def _is_int96_repaired(inputs: list[dict[str, Any]], output: dict[str, Any]) -> bool:
    """INT96 is deprecated and has no bounds; microseconds hold every value that Delta knows."""
    return all(column["physical type"] == "INT96" for column in inputs) and output["physical type"] == "INT64"


def _footer(file: Path) -> dict[str, dict[str, Any]]:
    """Return what a data file's footer says of each leaf column; list and map levels are named the protocol's way."""
    footer = pq.ParquetFile(file)
    schema, metadata = footer.schema, footer.metadata
    columns = {}
    for index in range(len(schema)):
        column = schema.column(index)
        chunks = [metadata.row_group(group).column(index) for group in range(metadata.num_row_groups)]
        statistics = [chunk.statistics for chunk in chunks]
        columns[column.path] = {
            "physical type": column.physical_type,
            "logical type": str(column.logical_type),
            "field id": getattr(column, "field_id", None),
            "codec": ",".join(sorted({chunk.compression for chunk in chunks})),
            "has bounds": all(one is not None and one.has_min_max for one in statistics),
            "is null": all(one is not None and one.null_count == chunk.num_values
                           for one, chunk in zip(statistics, chunks, strict=True)),
        }  # fmt: skip
    return columns
