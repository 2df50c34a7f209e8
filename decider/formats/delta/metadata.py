"""A table is read only if every feature it demands of its readers is understood; otherwise it is refused by name.

Delta's protocol lets readers ignore actions and fields they do not know, and makes up for it by the features listed
in `protocol`: one of them unknown means that the rest of the log may mean something else than it seems to.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from decider.formats.delta.bounds_change import bounds_change
from decider.formats.delta.damage import LogFile, shown
from shared.errors import Unsupported
from shared.formats.delta import FORMAT, PHYSICAL_NAME, sort_key
from shared.policy.properties import first_sort_column
from shared.table import PartitionColumn, TableMetadata, TableProtocol, schema_digest

MAX_READER_VERSION = 3
"""The newest reader version of the protocol; from there on only features are added."""

READER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Reader features that are understood, or that change data files alone and nothing in the log."""

_LOG_IS_ELSEWHERE = "commits are ratified by a catalog, so the files in _delta_log do not describe the whole table"

REFUSED_FEATURES: Mapping[str, str] = {
    "adaptiveMetadata": "live files are kept in manifests and not in the log",
    "adaptiveMetadata-preview": "live files are kept in manifests and not in the log",
    "catalogManaged": _LOG_IS_ELSEWHERE,
    "catalogOwned": _LOG_IS_ELSEWHERE,
    "catalogOwned-preview": _LOG_IS_ELSEWHERE,
    "coordinatedCommits-preview": _LOG_IS_ELSEWHERE,
}
"""Features, of readers or writers, under which the log alone does not define the table."""

LEAVE_TO_THE_CATALOG, UPDATE = "Let the catalog optimize the table", "Update Lakewright"
"""Remedies for people."""

_MAPPING_MODE = "delta.columnMapping.mode"
_TEXTS = "a list of texts"


def check_readable(protocol: TableProtocol, location: str) -> None:
    """Raise Unsupported, naming version or feature and the reason, unless the log can be read for what it means."""
    if protocol.min_reader > MAX_READER_VERSION:
        raise Unsupported(
            f"{location}: the table demands readers of version {protocol.min_reader}. {UPDATE}.",
            field="protocol.minReaderVersion",
            allowed=f"at most {MAX_READER_VERSION}",
        )
    known = ", ".join(sorted(READER_FEATURES))
    for feature in sorted(protocol.reader_features | protocol.writer_features):
        reason, remedy = REFUSED_FEATURES.get(feature), LEAVE_TO_THE_CATALOG
        if reason is None and feature in protocol.reader_features - READER_FEATURES:
            reason, remedy = "it is not known here, and may change what the log means", UPDATE
        if reason is not None:
            raise Unsupported(
                f"{location}: the table uses the feature {feature!r}: {reason}. {remedy}.",
                field="protocol.readerFeatures",
                allowed=known,
            )


def decode_protocol(action: object, log: LogFile, position: int) -> TableProtocol:
    """Decode a `protocol` action; whether it can be read is `check_readable`'s business."""
    if not isinstance(action, dict):
        raise log.wrong(position, "protocol", action, "an object")
    min_reader, min_writer = (
        _version(action.get(name), f"protocol.{name}", log, position)
        for name in ("minReaderVersion", "minWriterVersion")
    )
    reader, writer = (
        frozenset(_texts(action.get(name) or [], f"protocol.{name}", log, position))
        for name in ("readerFeatures", "writerFeatures")
    )
    return TableProtocol(min_reader, min_writer, reader, writer)


def decode_metadata(action: object, log: LogFile, position: int, sort_column: str | None = None) -> TableMetadata:
    """Decode a `metaData` action; the schema is read only where there are partition columns or a sort order.

    `sort_column`: column that becomes the sort key, whatever order the table names.
    """
    if not isinstance(action, dict):
        raise log.wrong(position, "metaData", action, "an object")
    table_uuid = action.get("id")
    if type(table_uuid) is not str or not table_uuid:
        raise log.wrong(position, "metaData.id", table_uuid, "a text")
    configuration = action.get("configuration") or {}
    if not isinstance(configuration, dict) or not all(type(value) is str for value in configuration.values()):
        raise log.wrong(position, "metaData.configuration", configuration, "texts by name")
    layout = action.get("format") or {"provider": "parquet"}
    if not isinstance(layout, dict) or layout.get("provider", "parquet") != "parquet":
        raise log.unsupported(position, f"data files are of the format {shown(layout)}, and only parquet is read")
    names = _texts(action.get("partitionColumns") or [], "metaData.partitionColumns", log, position)
    columns: tuple[PartitionColumn, ...] = ()
    is_mapped = _is_mapped(configuration, log, position)
    if names:
        fields = _schema_fields(action.get("schemaString"), log, position)
        columns = tuple(_partition_column(name, fields.get(name), log, position) for name in names)
        if is_mapped:
            columns = tuple(
                replace(column, physical=_physical(fields[column.name], log, position)) for column in columns
            )
    key: PartitionColumn | None = None
    change: Mapping[str, str] = {}
    if sort_column is not None or first_sort_column(configuration) is not None:
        schema = _schema_fields(action.get("schemaString"), log, position)
        key = sort_key(configuration, schema.values(), sort_column)
        if sort_column is not None and key is not None:
            change = bounds_change(configuration, schema.values(), names, key.name)
    digest = schema_digest(str(action.get("schemaString") or ""))
    return TableMetadata(table_uuid, columns, configuration, FORMAT, key, digest, change)


def _partition_column(name: str, field: Mapping[str, Any] | None, log: LogFile, position: int) -> PartitionColumn:
    if field is None:
        raise log.corrupt(position, f"partition column {name!r} is not in the schema")
    if type(field.get("type")) is not str:
        raise log.wrong(position, f"the type of partition column {name!r}", field.get("type"), "a primitive type")
    return PartitionColumn(name, name, field["type"])


def _physical(field: Mapping[str, Any], log: LogFile, position: int) -> str:
    properties = field.get("metadata")
    physical = properties.get(PHYSICAL_NAME) if isinstance(properties, dict) else None
    if type(physical) is not str or not physical:
        raise log.wrong(position, f"{PHYSICAL_NAME} of partition column {field['name']!r}", physical, "a text")
    return physical


def _schema_fields(text: object, log: LogFile, position: int) -> dict[str, Mapping[str, Any]]:
    try:
        schema = json.loads(text) if isinstance(text, str) else None
        return {field["name"]: field for field in schema["fields"]}  # type: ignore[index]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise log.wrong(position, "metaData.schemaString", text, "a schema in JSON with named fields") from None


def _is_mapped(configuration: Mapping[str, str], log: LogFile, position: int) -> bool:
    mode = configuration.get(_MAPPING_MODE, "none")
    if mode not in ("none", "name", "id"):
        raise log.unsupported(
            position, f"{_MAPPING_MODE} is {shown(mode)}, and only none, name and id are known. {UPDATE}."
        )
    return mode != "none"


def _version(value: object, field: str, log: LogFile, position: int) -> int:
    if type(value) is not int or value < 1:
        raise log.wrong(position, field, value, "a whole number from 1 on")
    return value


def _texts(value: object, field: str, log: LogFile, position: int) -> Sequence[str]:
    if not isinstance(value, list) or not all(type(item) is str for item in value):
        raise log.wrong(position, field, value, _TEXTS)
    return value
