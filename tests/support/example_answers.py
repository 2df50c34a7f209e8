"""Answers as the API describes them, composed from one table of values by the names of fields.

A name means the same everywhere in the API, so all examples speak of one table, `sales.orders`, and a new schema has an
example without writing one. A text whose name is not in the table is an error.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_JOB = "sales-orders-1f0c7a52.4b1e5a0c2d3f6e78.compact"
_TABLE = "sales-orders-1f0c7a52"
_FILE = "dt=2026-01-01/part-00000-6d1e.snappy.parquet"

VALUES: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "ActorView.id": ("worker-7-4711",),
        "ActorView.state": ("working",),
        "AdminResult.message": ("Tenant sales is paused.",),
        "AdviceView.id": ("5f0c9a1be2d4",),
        "AdviceView.job": ("",),
        "AdviceView.message": ("Set lakewright.target-file-size=256MiB.",),
        "CancelResult.message": ("The job is running; its actor stops after the current file groups.",),
        "CancelResult.outcome": ("stopping",),
        "ClusterDryRun.message": ("12 files with 48000 bytes are not clustered; a run would rewrite 208000 bytes.",),
        "ClusterDryRun.reason": ("unclustered_bytes",),
        "DecisionRecord.message": ("Version 41, dt=2026-01-01: skip. No group of files reaches the next level yet.",),
        "DecisionRecord.outcome": ("",),
        "DecisionRecord.predicted": ({},),
        "DecisionRecord.reason": ("no_promotion",),
        "DecisionRecord.reason_text": ("No group of files reaches the next level yet.",),
        "DefaultsInForce.version": ("5c1d0e7a",),
        "DeletionView.name": (_FILE,),
        "FailingTask.name": ("sweep",),
        "IgnoredEvents.reason": ("not_a_commit",),
        "JobSummary.id": (_JOB,),
        "JobSummary.state": ("finished",),
        "JobSummary.table": (_TABLE,),
        "Liveness.status": ("alive",),
        "MoveResult.message": ("The job is ready.",),
        "MoveResult.state": ("queued",),
        "MarkView.detail": ("lakewright.target-file-size = 256MiB",),
        "NextJobView.id": (_JOB,),
        "NextJobView.message": (
            f"Band normal and tenant sales are furthest below fair share; its table {_TABLE} is next.",
        ),
        "NextJobView.reason": ("fair_share",),
        "NextJobView.table": (_TABLE,),
        "OptimizePlan.message": ("12 files would be replaced, and 12.0 MiB would be read in 1 partition.",),
        "PolicyInForce.version": ("9ad1c2f0",),
        "QueueSettingView.description": ("Waiting time that equals one step of priority.",),
        "QueueSettingView.name": ("aging_ms",),
        "QueueSettingView.unit": ("ms",),
        "QueueSettingView.value": (120_000,),
        "RecommendationView.message": ("Keep the policy: no candidate is 5% cheaper.",),
        "RedisStatus.name": ("valkey",),
        "RedisStatus.version": ("9.1.2",),
        "RefusedFilesView.message": (f"{_FILE}: the column amount is an unsigned integer",),
        "RefusedFilesView.reason": ("types",),
        "RefusedFilesView.reason_text": ("The files have a type whose values a rewrite could not store as they were.",),
        "RejectedEventView.reason": ("body: expected JSON",),
        "RejectedEventView.source": ("https://sqs.eu-west-1.amazonaws.com/123456789012/lake-commits",),
        "RequestedJobView.id": (_JOB,),
        "RuleReplayed.name": ("lakewright",),
        "TableIndexResponse.kind": ("qbeast",),
        "TableJobView.action": ("vacuum",),
        "TableJobView.id": (f"{_TABLE}.4b1e5a0c2d3f6e78.vacuum",),
        "TablesFileView.path": ("/etc/lakewright/tables.yaml",),
        "UpkeepDryRun.message": ("Manifests of its snapshot: 240 with 1680000 bytes; 1 would be enough.",),
        "UpkeepDryRun.reason": ("many_manifests",),
        "VacuumDryRun.message": ("12 files with 5210 bytes would be deleted.",),
        "VacuumDryRun.removed_before_ms": (1_767_225_600_000,),
        "WorthView.text": ("pays: 4,200 opens avoided, worth 210 core-seconds, for 38 core-seconds in 7 days",),
        "abilities": (["delta/compact"],),
        "ability": ("iceberg/sort",),
        "action": ("compact",),
        "actor": ("worker-7-4711",),
        "actors": ({"working": 1},),
        "aof_enabled": (True,),
        "complete": (True,),
        "due": (True,),
        "in_sync": (True,),
        "reachable": (True,),
        "writable": (True,),
        "at_ms": (1_767_276_187_000,),
        "attempts": (0,),
        "band": ("normal",),
        "bands": ({"high": 4, "normal": 27},),
        "body": ("hello",),
        "change": ({"lakewright.target-file-size": "256MiB"},),
        "code": ("unsafe_feature",),
        "column": ("customer_id",),
        "columns": (["customer_id:linear", "price:linear"],),
        "condition": ("waiting",),
        "conditions": ({"waiting": 1},),
        "confirm": ("sales.orders",),
        "counters": ({"commits": 42, "pruned_by_levels": 37},),
        "cost": ("0.031250",),
        "currency": ("USD",),
        "custom": (None,),
        "damaged": ([],),
        "decision": ("skip",),
        "depth": ({"queued": 3, "delayed": 0, "leased": 1, "quarantined": 0}, 2),
        "description": ("Target size of data files.",),
        "detail": ("version 41",),
        "enabled": (True,),
        "engine_crashes": (None,),
        "error": ("",),
        "event": ("enqueued",),
        "eviction_policy": ("noeviction",),
        "fan_in": (8,),
        "files": (12, [_FILE]),
        "files_by_class": ({"indexed": 60, "unindexed": 1, "foreign_tags": 0, "legacy": 0, "malformed": 0},),
        "files_by_level": ({"5": 60},),
        "filter": ({"type": "eq", "term": "customer", "value": "(hash-1a2b3c4d)"},),
        "first_problem": ("",),
        "former": ({"lakewright.target-file-size": "134217728"},),
        "funnel": ({"commits": 640, "partitions_touched": 655, "pruned_by_levels": 570, "enqueued": 85},),
        "host": ("worker-7",),
        "id": (_TABLE, 1),
        "ignored": (None,),
        "ignored_properties": ([],),
        "index_selection": (None,),
        "issues": ([],),
        "job": (_JOB,),
        "jobs": (1, [_JOB]),
        "judgement": (None,),
        "kind": ("compact",),
        "left_out": (["note"],),
        "levels": ([0, 0, 0, 0, 0, 8, 0],),
        "location": ("s3://lake/sales/orders",),
        "measured": ({"files_replaced": 12, "files_removed": 11, "bytes": 12_582_912, "commit_ms": 210},),
        "may_act_as": (["viewer"],),
        "message": ("1 job.",),
        "mode": ("major",),
        "name": ("sales.orders",),
        "notes": ([],),
        "next_page_token": (None,),
        "object_store_requests": ({"get": 1_288, "list": 12, "head": 0},),
        "occupancy": ({"tenants": {"sales": 0.31}, "tables": {_TABLE: 0.31}},),
        "oldest_waits_s": ({"bands": {"normal": 12.5}, "tenants": {"sales": 12.5}, "tables": {_TABLE: 12.5}},),
        "optimization_name": ("major",),
        "other_jobs": ([],),
        "outcome": ("queued",),
        "own_version": ("5c1d0e7a",),
        "partition": ({"dt": "2026-01-01"},),
        "partition_key": ('{"dt":"2026-01-01"}',),
        "partition_label": ("dt=2026-01-01",),
        "path": ("sales/orders",),
        "paths": ([_FILE],),
        "policy_version": ("9ad1c2f0",),
        "paused": (None,),
        "prices": (None,),
        "predicted": ({"files_replaced": 12, "files_removed": 11, "bytes": 12_582_912},),
        "problem": ("",),
        "problems": ([],),
        "progress": ({},),
        "properties": ({"lakewright.target-file-size": "128MiB"},),
        "property": ("lakewright.target-file-size",),
        "quota_occupation": ({"tenants": {}, "tables": {_TABLE: 0.62}},),
        "reason": ("eligible",),
        "reason_text": ("The expected gain exceeds the tolerance, and a file group reaches a higher level.",),
        "reasons": ({"no_promotion": 29}, []),
        "rebuild_reason": ("first read of the table",),
        "record": (None,),
        "refusal": (None, ""),
        "release": ("0.1.0",),
        "remedy": ("Run OPTIMIZE in the table's own engine.",),
        "requested": ("compaction",),
        "result": ("done",),
        "running_jobs": ([],),
        "revision_id": (None,),
        "role": ("viewer",),
        "root": ("s3://lake",),
        "selection": ("leveled",),
        "set_by": ("default",),
        "settings": ({f"limit:table|{_TABLE}": "2"},),
        "since": ("2026-01-01T14:03:00Z",),
        "source": ("default",),
        "state": ("running",),
        "storage_cost_per_month": ("1.250000",),
        "statement": (
            "ALTER TABLE delta.`s3://lake/sales/orders` SET TBLPROPERTIES ('lakewright.target-file-size' = '256MiB')",
        ),
        "status": ("ready",),
        "stop_reason": ("",),
        "strategy": ("unindexed",),
        "table": ("sales.orders",),
        "table_id": (_TABLE,),
        "table_name": ("sales.orders",),
        "table_names": ({_TABLE: "sales.orders"},),
        "tables": (12, {_TABLE: 3}),
        "target_bytes": (134_217_728,),
        "group": ("etl",),
        "quota": ("25%",),
        "tenant": ("sales",),
        "tenants": ({"sales": 3},),
        "title": ("Lakewright",),
        "tolerance": (0.15,),
        "unit": ("bytes",),
        "unknown_tables": (["lake.sales.drafts"],),
        "validationResponse": ("512d38b6-c7b8-40c8-89fe-f46f9e9622b6",),
        "value": (134_217_728, "1e3x"),
        "version": (41, "0.1.0"),
        "versions": ([120, 520], {"lakewright": "0.1.0", "spark": "4.1.4", "delta": "4.4.0", "java": "17.0.13"}),
        "read_cost": (None,),
        "write_cost": (None,),
        "may_start_at": (None,),
        "waits_for": ("",),
        "note": ("",),
        "budget": ("2 core-hours/day",),
        "scope": ("tenant",),
        "work_window": (None,),
        "write_id": (f"{_JOB}/812/1",),
    }
)
"""Values by the name of a field, one for each type that fields of this name have; None where null is the usual one."""

_BY_UNIT: Mapping[str, float] = MappingProxyType(
    {"bytes": 12_582_912, "bytes2": 1.8e16, "files": 12, "ms": 1_940, "share": 0.35, "ratio": 0.87, "shortfall": 0.83}
)
"""Numbers by the unit in a field's name, which is its first or its last word."""

_BY_TYPE: Mapping[str, Any] = MappingProxyType(
    {"integer": 3, "number": 12.5, "boolean": False, "object": {}, "array": [], "null": None}
)

_TYPES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "object": (dict,),
        "array": (list, tuple),
        "null": (type(None),),
    }
)


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str = "") -> Any:
    """Return an example for a schema; `name`: its `Schema.field`. Raises KeyError for a text without a value."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    if "properties" in schema:
        fields = schema["properties"].items()
        return {field: example_of(part, schemas, f"{schema['title']}.{field}") for field, part in fields}
    if "anyOf" in schema:
        options = schema["anyOf"]
        if None in _values(name) and {"type": "null"} in options:
            return None
        return example_of(next((one for one in options if _named(one, name)), options[0]), schemas, name)
    if "enum" in schema:
        return next((one for one in _values(name) if one in schema["enum"]), schema["enum"][0])
    named = _named(schema, name)
    return named[0] if named else _composed(schema, schemas, name)


def _values(name: str) -> tuple[Any, ...]:
    return VALUES.get(name) or VALUES.get(name.rpartition(".")[2], ())


def _named(schema: Mapping[str, Any], name: str) -> list[Any]:
    """Return the values of a field's name that have the type of a schema; none for lists and objects of schemas."""
    parts = (schema.get("items"), schema.get("additionalProperties"))
    if any(isinstance(part, dict) and "$ref" in part for part in parts):
        return []
    fitting = _TYPES.get(schema.get("type", ""), (object,))
    return [one for one in _values(name) if isinstance(one, fitting)]


def _composed(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str) -> Any:
    """Return a list or an object of composed examples, or a value that follows from the type and the unit alone."""
    if "prefixItems" in schema:
        return [example_of(part, schemas, name) for part in schema["prefixItems"]]
    if "items" in schema:
        return [example_of(schema["items"], schemas, name)]
    if isinstance(values := schema.get("additionalProperties"), dict) and "$ref" in values:
        return {"delta": example_of(values, schemas, name)}
    if schema.get("format") == "date-time":
        return "2026-01-01T14:03:07Z"
    words = name.rpartition(".")[2].split("_")
    units = (_BY_UNIT[word] for word in (words[-1], words[0]) if word in _BY_UNIT)
    is_number = schema["type"] in {"integer", "number"}
    return next(units, _BY_TYPE[schema["type"]]) if is_number else _BY_TYPE[schema["type"]]
