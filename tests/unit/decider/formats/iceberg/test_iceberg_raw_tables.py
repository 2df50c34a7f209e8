"""Catalogs name a metadata file, which is read as it is: whatever kind of catalog, and whatever is in the file."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyiceberg
import pytest
from pyiceberg.exceptions import NoSuchIcebergTableError
from pyiceberg.io.pyarrow import PyArrowFileIO

from decider.formats.iceberg.raw_tables import with_raw_tables
from shared.errors import Corrupt

METADATA = {"properties": {"owner": "me"}, "schemas": [{"fields": [{"type": "a type of the future"}]}]}


class Catalog:
    """What pyiceberg's catalogs have: an entry becomes a table by the method of its kind."""

    def __init__(self, method: str, entry: Any) -> None:
        self._method = method
        self._entry = entry
        self.opened: list[dict[str, str]] = []

    def load_table(self, _name: str) -> Any:
        return getattr(self, self._method)(self._entry)

    def _load_file_io(self, properties: dict[str, str] | None = None, location: str = "") -> PyArrowFileIO:
        assert location
        self.opened.append(dict(properties or {}))
        return PyArrowFileIO()


def entries(place: str, kind: str = "ICEBERG") -> dict[str, tuple[str, Any]]:
    pointer = {"table_type": kind, "metadata_location": place}
    return {
        "sql": ("_convert_orm_to_iceberg", SimpleNamespace(metadata_location=place)),
        "glue": ("_convert_glue_to_iceberg", {"DatabaseName": "d", "Name": "t", "Parameters": pointer}),
        "hive": ("_convert_hive_into_iceberg", SimpleNamespace(parameters=pointer)),
    }


@pytest.mark.parametrize("kind", ["sql", "glue", "hive"])
def test_a_table_is_what_its_metadata_file_has_with_access_by_the_catalogs_options(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "v1.metadata.json"
    place.write_text(json.dumps(METADATA))
    made = Catalog(*entries(place.as_uri())[kind])
    found: Any = with_raw_tables(made, kind).load_table("d.t")
    assert (found.raw, found.path, made.opened) == (METADATA, place.as_uri(), [{}])


@pytest.mark.parametrize("kind", ["sql", "glue", "hive"])
def test_a_metadata_file_that_is_missing_or_damaged_is_reported_with_its_path(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "v1.metadata.json"
    made: Any = with_raw_tables(Catalog(*entries(place.as_uri())[kind]), kind)
    with pytest.raises(Corrupt, match=r"v1\.metadata\.json, which the catalog names, is missing"):
        made.load_table("d.t")
    place.write_text("{")
    with pytest.raises(Corrupt, match=r"v1\.metadata\.json: the metadata are no JSON"):
        made.load_table("d.t")


@pytest.mark.parametrize("kind", ["glue", "hive"])
def test_an_entry_of_another_format_is_no_table(kind: str) -> None:
    made: Any = with_raw_tables(Catalog(*entries("file:///x", "HUDI")[kind]), kind)
    with pytest.raises(NoSuchIcebergTableError):
        made.load_table("d.t")


def test_the_method_that_is_replaced_is_one_of_pyicebergs() -> None:
    """Sources are compared, for its catalogs import clients that are not installed here."""
    folder = Path(pyiceberg.__file__).parent / "catalog"
    for kind, (method, _) in entries("").items():
        source = (folder / f"{kind}.py").read_text()
        assert f"def {method}(" in source
        assert f"self.{method}(" in source
