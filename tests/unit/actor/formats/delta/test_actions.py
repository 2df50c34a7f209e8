"""Actions of a log are decoded as the protocol says, and what would lead astray is refused."""

import json

import pytest

from actor.formats.delta.actions import decode_metadata, vector_id
from shared.errors import Corrupt, Unsupported
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


def test_the_id_of_a_deletion_vector_has_its_offset_where_there_is_one() -> None:
    assert vector_id({"storageType": "u", "pathOrInlineDv": UUID, "offset": 4}) == f"u{UUID}@4"
    assert vector_id({"storageType": "i", "pathOrInlineDv": "inline"}) == "iinline"
    assert vector_id(None) is None
