"""Actions of a log are decoded as the protocol says, and what would lead astray is refused."""

import json

import pytest

from actor.formats.delta.actions import (
    LoggedFile,
    decode_add,
    decode_metadata,
    decode_statistics,
    encode,
    read_paths,
    vector_id,
    with_range,
)
from actor.formats.delta.live_files import LiveGroup
from shared.errors import Corrupt, Unsupported
from shared.layout.planner import FileGroup, RewriteMode
from shared.partitions import WHOLE_TABLE
from shared.table import PartitionColumn


def metadata(columns: list[str], *fields: dict[str, object], **configuration: str) -> str:
    schema = json.dumps({"fields": list(fields)})
    body = {"id": "t", "partitionColumns": columns, "schemaString": schema, "configuration": configuration}
    return json.dumps({"metaData": body})


def test_a_partition_column_that_the_schema_does_not_have_is_damage() -> None:
    with pytest.raises(Corrupt, match="'day', which its schema does not have"):
        decode_metadata(metadata(["day"], {"name": "dt", "type": "date"}))


def test_under_column_mapping_a_partition_column_has_its_physical_name() -> None:
    field = {"name": "dt", "type": "date", "metadata": {"delta.columnMapping.physicalName": "col-1"}}
    mapped = decode_metadata(metadata(["dt"], field, **{"delta.columnMapping.mode": "name"}))
    assert mapped.partition_columns == (PartitionColumn("dt", "col-1", "date"),)


UUID = "ab^-aqEH.-t@S}K{vb[*"


@pytest.mark.parametrize("prefix", ["../other/", "/lake/other", "a/../../b"])
def test_a_deletion_vector_that_leads_out_of_the_table_is_not_read(prefix: str) -> None:
    with pytest.raises(Unsupported, match="leads out of its table"):
        vector_id({"storageType": "u", "pathOrInlineDv": prefix + UUID, "offset": 1})


def logged(path: str, vector: dict[str, object] | None = None) -> LoggedFile:
    add: dict[str, object] = {"path": path, "size": 1, "partitionValues": {}}
    add |= {"deletionVector": vector | {"cardinality": 1}} if vector else {}
    return LoggedFile(decode_add(add, ()), encode(add))


def test_rows_are_read_from_data_files_and_from_those_of_their_vectors() -> None:
    own = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    files = [
        logged("a"),
        logged("b", own),
        logged("c", {"storageType": "i", "pathOrInlineDv": "x"}),
        logged("d", {"storageType": "p", "pathOrInlineDv": "s3://b/v.bin"}),
    ]
    vector = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert [*read_paths(files)] == ["a", "b", vector, "c", "d", "s3://b/v.bin"]
    assert LiveGroup(FileGroup(WHOLE_TABLE, (), RewriteMode.FULL), tuple(files), 1, None).delete_files == (
        vector,
        "s3://b/v.bin",
    )
    with pytest.raises(Corrupt, match="of e has no valid name"):
        list(read_paths([logged("e", {"storageType": "u", "pathOrInlineDv": "short"})]))


def test_the_id_of_a_deletion_vector_has_its_offset_where_there_is_one() -> None:
    assert vector_id({"storageType": "u", "pathOrInlineDv": UUID, "offset": 4}) == f"u{UUID}@4"
    assert vector_id({"storageType": "i", "pathOrInlineDv": "inline"}) == "iinline"
    assert vector_id(None) is None


@pytest.mark.parametrize("stats", [None, "", "no JSON", '{"numRecords":3', "[3]", "3"])
def test_statistics_that_are_no_json_object_say_nothing_of_their_file(stats: str | None) -> None:
    assert decode_statistics(stats) == {}
    assert decode_add({"path": "x", "size": 1, "stats": stats}, ()).rows is None


def ranged(low: object, high: object, kind: str = "long") -> tuple[int, int] | None:
    stats = json.dumps({"numRecords": 1, "minValues": {"col-1": low}, "maxValues": {"col-1": high}})
    add = {"path": f"f{low}", "size": 1, "stats": stats}
    return with_range(LoggedFile(decode_add(add, ()), encode(add)), PartitionColumn("k", "col-1", kind)).key_range


def test_a_file_has_the_range_of_the_key_that_its_statistics_say() -> None:
    assert ranged(3, 9) == (3, 9)
    file = LoggedFile(decode_add({"path": "f", "size": 1}, ()), '{"path":"f"}')
    assert with_range(file, None) is file.file
    assert with_range(file, PartitionColumn("k", "col-1", "long")).key_range is None


def test_ranges_of_texts_that_the_log_cuts_touch_at_what_it_keeps() -> None:
    same = "x" * 32
    before, after = ranged("a", same + "\U0010ffff", "string"), ranged(same, same + "\U0010ffff", "string")
    assert before is not None
    assert after is not None
    assert before[1] <= after[0]
