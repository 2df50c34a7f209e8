"""Databases of advisories hold what their documents name, and a document that is not one is an error."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.support.advisory_samples import ADVISORY
from tests.tools.advisories import Database, ScanError, archive, read_database, write_databases


def advisory(name: str, ecosystem: str, **fields: Any) -> dict[str, Any]:
    affected = [{"package": {"name": "group:parcel", "ecosystem": ecosystem}, "versions": ["1.0"]}]
    return {"id": name, "modified": "2030-01-01T00:00:00Z", "affected": affected, **fields}


def written(databases: Path, ecosystem: str) -> list[dict[str, Any]]:
    with ZipFile(archive(databases, ecosystem)) as whole:
        return [json.loads(whole.read(name)) for name in whole.namelist()]


def test_versions_of_a_yaml_file_stay_text_and_unknown_fields_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "vulns/parcel").mkdir(parents=True)
    (tmp_path / "vulns/parcel/PYSEC-2030-1.yaml").write_text(ADVISORY)
    (tmp_path / "other.yaml").write_text("not: an advisory")
    write_databases([tmp_path], tmp_path / "databases")
    (one,) = written(tmp_path / "databases", "PyPI")
    (affected,) = one.pop("affected")
    assert affected == {
        "package": {"ecosystem": "PyPI", "name": "par-cel"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.10"}]}],
        "versions": ["1.8", "1.10a1", "1.0"],
    }
    assert one.keys() == {"id", "modified", "published", "aliases"}
    assert read_database(tmp_path / "databases", "PyPI") == Database(1, "2030-02-01")


def test_each_ecosystem_has_a_database_which_the_next_run_replaces(tmp_path: Path) -> None:
    first, second, databases = (tmp_path / name for name in ("first", "second", "databases"))
    first.mkdir()
    second.mkdir()
    (first / "a.json").write_text(json.dumps(advisory("GHSA-a", "Maven")))
    (second / "b.json").write_text(json.dumps(advisory("PYSEC-b", "PyPI")))
    (second / "c.json").write_text(json.dumps(advisory("PYSEC-c", "PyPI", withdrawn="2031-01-01T00:00:00Z")))
    write_databases([first, second], databases)
    assert [one["id"] for one in written(databases, "Maven")] == ["GHSA-a"]
    assert read_database(databases, "PyPI") == Database(1, "2030-01-01")  # Without the one that was withdrawn.
    write_databases([second], databases)
    assert read_database(databases, "Maven") is None


@pytest.mark.parametrize(
    "text",
    ["id: [", "", "- a list", "id: x", "{id: x, modified: yesterday}", "{id: x, modified: 2030-01-01, affected: [1]}"],
)
def test_a_document_that_is_not_an_advisory_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.yaml").write_text(text)
    with pytest.raises(ScanError, match=r"broken\.yaml is not an advisory"):
        write_databases([tmp_path], tmp_path / "databases")


def test_a_folder_without_advisories_and_a_damaged_database_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ScanError, match="there is no YAML or JSON file"):
        write_databases([tmp_path], tmp_path / "databases")
    archive(tmp_path, "PyPI").parent.mkdir(parents=True)
    archive(tmp_path, "PyPI").write_text("cut off")
    with pytest.raises(ScanError, match="is damaged"):
        read_database(tmp_path, "PyPI")
