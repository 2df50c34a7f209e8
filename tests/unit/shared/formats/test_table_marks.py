"""Which formats are served, and how a folder is known to be a table of another system."""

import pytest

from shared.formats.options import FormatOptions
from shared.formats.table_marks import DELTA, ICEBERG, PAIMON, left_out_note, tables_of_others

MARKS = [
    ("metadata/v1.metadata.json", ICEBERG),
    ("metadata/00001-a.metadata.json.gz", ICEBERG),
    ("metadata/version-hint.text", ICEBERG),
    ("_delta_log/00000000000000000000.json", DELTA),
    ("_delta_log/_last_checkpoint", DELTA),
    ("snapshot/snapshot-1", PAIMON),
    ("snapshot/LATEST", PAIMON),
    ("schema/schema-0", PAIMON),
    (".hoodie/hoodie.properties", "Apache Hudi"),
    (".hoodie_partition_metadata", "Apache Hudi"),
    (".hoodie_partition_metadata.parquet", "Apache Hudi"),
    ("_versions/1.manifest", "Lance"),
    ("Metadata/schema", "Apache CarbonData"),
]


@pytest.mark.parametrize(("name", "system"), MARKS)
def test_a_folder_with_metadata_of_a_system_is_a_table_of_it_wherever_it_lies(name: str, system: str) -> None:
    below = tables_of_others([f"deep/er/{name}"], own=ICEBERG)
    assert below == {"deep/er/": system}
    for own in (ICEBERG, DELTA):
        assert tables_of_others([name], own=own) == ({} if system == own else {"": system})


@pytest.mark.parametrize(
    "name",
    [
        "data/a.parquet",
        "metadata/snap-1.avro",
        "metadata/below/v1.metadata.json",
        "snapshot/a.parquet",
        "snapshot=1/snapshot-a",
        "schema/schema-0.parquet",
        "x_delta_log/0.json",
        "data/LATEST",
    ],
)
def test_other_names_are_no_metadata(name: str) -> None:
    assert tables_of_others([name], own="") == {}


@pytest.mark.parametrize(
    ("left_out", "unrecognized", "note"),
    [
        ("", 0, ""),
        ("no orphans are searched for", 0, "No orphans are searched for."),
        ("", 2, "2 files are not recognized as the table's, and stay."),
        ("no orphans", 2, "No orphans. 2 files are not recognized as the table's, and stay."),
    ],
)
def test_each_reason_why_files_stay_is_a_sentence(left_out: str, unrecognized: int, note: str) -> None:
    assert left_out_note(left_out, unrecognized) == note


def test_there_can_be_iceberg_tables_with_a_catalog_or_with_folders() -> None:
    assert not FormatOptions().has_iceberg
    assert FormatOptions({"prod": {}}).has_iceberg
    assert FormatOptions(iceberg_folders=True).has_iceberg


def test_options_of_catalogs_are_shown_nowhere() -> None:
    assert "secret" not in repr(FormatOptions({"prod": {"credential": "secret"}}))


def test_a_unity_catalog_has_no_iceberg_tables() -> None:
    both = FormatOptions({"prod": {}, "unity": {"type": "unity"}})
    assert list(both.iceberg_catalogs) == ["prod"]
    assert not FormatOptions({"unity": {"type": "unity"}}).has_iceberg
