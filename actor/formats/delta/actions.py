"""Delta's JSON actions are decoded here, once: no other module reads a dictionary of the log.

The field names are the Delta protocol's ("Actions"). Values that the log may leave out are None or empty here,
never guessed.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from shared.errors import Corrupt, InvalidInput, Unsupported
from shared.formats.delta import FORMAT, sort_key, sort_range
from shared.formats.delta_references import vector_path
from shared.layout import commit_metadata
from shared.partitions import partition_key
from shared.paths.boundary import vector_leads_out
from shared.table import CommitOrigin, DataFile, FileKey, PartitionColumn, TableMetadata, TableProtocol, schema_digest
from shared.typed_json import json_object


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A live file together with the JSON of its `add` action, from which the JVM's action can be made again."""

    file: DataFile
    json: str

    @property
    def key(self) -> FileKey:
        """Identity of the file."""
        return self.file.key

    @property
    def with_all_rows(self) -> "LoggedFile":
        """The same file as if no vector hid rows of it; how many it holds, statistics beside a vector may not say."""
        if self.file.dv_id is None:
            return self
        add = json.loads(self.json)
        del add["deletionVector"]
        return LoggedFile(replace(self.file, dv_id=None, deleted_rows=0, rows=None), encode(add))

    @property
    def vector_path(self) -> str | None:
        """Path of the file that holds its deletion vector; None without one, and where the log holds it.

        Raises Corrupt for a vector that has no such path.
        """
        if self.file.dv_id is None:
            return None
        try:
            return vector_path(json.loads(self.json).get("deletionVector"))
        except ValueError as error:
            raise Corrupt(f"the deletion vector {self.file.dv_id} of {self.file.path} has no valid name") from error


def read_paths(files: Iterable[LoggedFile]) -> Iterator[str]:
    """Yield the paths of all files that are opened to read rows: data files and files of their deletion vectors."""
    for logged in files:
        yield logged.file.path
        if (vector := logged.vector_path) is not None:
            yield vector


def decode_add(add: Mapping[str, Any], columns: Sequence[PartitionColumn]) -> DataFile:
    """Decode the fields of an `add` action; `columns` are the table's partition columns."""
    rows = json_object(add.get("stats")).get("numRecords")
    vector, values = add.get("deletionVector"), add.get("partitionValues") or {}
    return DataFile(
        path=add["path"],
        size_bytes=int(add["size"]),
        partition=partition_key(columns, values),
        dv_id=vector_id(vector),
        rows=rows if isinstance(rows, int) and not isinstance(rows, bool) else None,
        deleted_rows=int(vector["cardinality"]) if vector else 0,
        modified_ms=int(add.get("modificationTime", 0)),
        tags=dict(add.get("tags") or {}),
        spelling=", ".join(filter(None, (_spelling(column, values.get(column.physical)) for column in columns))),
    )


def _spelling(column: PartitionColumn, value: str | None) -> str:
    """Return how a value differs for some readers from others of the same partition; empty for nearly all values.

    By the protocol the empty string is null, yet Spark shows it as an empty string; and a timestamp without a zone is
    an instant of the reader's zone.
    """
    if column.type == "string":
        return f"{column.name!r} is an empty string" if value == "" else ""
    has_zone = column.type == "timestamp" and value and re.search(r"(Z|[+-]\d\d:?\d\d)$", value)
    return f"{column.name!r} has a zone" if has_zone else ""


def decode_adds(text: str, columns: Sequence[PartitionColumn]) -> tuple[LoggedFile, ...]:
    """Decode a JSON array of `add` fields, keeping each file's own text."""
    return tuple(LoggedFile(decode_add(add, columns), encode(add)) for add in json.loads(text))


def with_range(logged: LoggedFile, key: PartitionColumn | None) -> DataFile:
    """Return a file with its range of the sort key, where the table has one."""
    if key is None:
        return logged.file
    return replace(logged.file, key_range=sort_range(key, json_object(json.loads(logged.json).get("stats"))))


def encode(action: Mapping[str, Any]) -> str:
    """Write an action's fields as compact JSON."""
    return json.dumps(action, separators=(",", ":"), ensure_ascii=False)


def json_array(files: Sequence[LoggedFile]) -> str:
    """Join the files' JSON into one array."""
    return "[" + ",".join(logged.json for logged in files) + "]"


def vector_id(vector: Mapping[str, Any] | None) -> str | None:
    """Return the unique id of a deletion vector (protocol, "Deletion Vector Descriptor Schema"), None without one."""
    if not vector:
        return None
    if vector["storageType"] == "u" and vector_leads_out(vector["pathOrInlineDv"]):
        raise Unsupported(
            f"the deletion vector {vector['pathOrInlineDv']!r} leads out of its table and is not read", field="path"
        )
    offset = vector.get("offset")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


@lru_cache(maxsize=64)
def decode_metadata(text: str) -> TableMetadata:
    """Decode a `metaData` action; physical names of partition columns come from the schema under column mapping."""
    metadata = json.loads(text)["metaData"]
    fields = {field["name"]: field for field in json.loads(metadata.get("schemaString") or '{"fields":[]}')["fields"]}
    configuration = dict(metadata.get("configuration") or {})
    mapped = configuration.get("delta.columnMapping.mode", "none") != "none"
    return TableMetadata(
        table_uuid=metadata["id"],
        partition_columns=tuple(
            _partition_column(name, fields, mapped=mapped) for name in metadata.get("partitionColumns") or ()
        ),
        configuration=configuration,
        format=FORMAT,
        sort_key=sort_key(configuration, fields.values()),
        schema_digest=schema_digest(metadata.get("schemaString") or ""),
    )


def _partition_column(name: str, fields: Mapping[str, Mapping[str, Any]], *, mapped: bool) -> PartitionColumn:
    if name not in fields:
        raise Corrupt(f"the table's metadata names the partition column {name!r}, which its schema does not have")
    field = fields[name]
    physical = field["metadata"]["delta.columnMapping.physicalName"] if mapped else name
    return PartitionColumn(name=name, physical=physical, type=str(field["type"]))


@lru_cache(maxsize=64)
def decode_protocol(text: str) -> TableProtocol:
    """Decode a `protocol` action."""
    protocol = json.loads(text)["protocol"]
    return TableProtocol(
        min_reader=int(protocol["minReaderVersion"]),
        min_writer=int(protocol["minWriterVersion"]),
        reader_features=frozenset(protocol.get("readerFeatures") or ()),
        writer_features=frozenset(protocol.get("writerFeatures") or ()),
    )


def decode_origins(user_metadata: str | None) -> tuple[CommitOrigin, ...]:
    """Return whose commit this userMetadata marks: none if it is not one of ours, several if jobs shared it."""
    mark = commit_metadata.decode(user_metadata)
    return () if mark is None else mark.origins


def require_origins(user_metadata: str) -> tuple[CommitOrigin, ...]:
    """Return the jobs and tokens of a request's userMetadata; raises InvalidInput if it carries none."""
    origins = decode_origins(user_metadata)
    if not origins:
        raise InvalidInput(
            f"userMetadata {user_metadata!r} names no job and token: a commit without them could not be found again",
            field="user_metadata",
            allowed='{"lakewright": {"job": text, "token": number}}',
        )
    return origins
