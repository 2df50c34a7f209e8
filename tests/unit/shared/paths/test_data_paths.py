"""Which paths all engines spell alike: measured by letting deltalake remove a file from a log made by hand."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from shared.paths.data_paths import file_name, is_harmful, is_plain, is_portable


@pytest.mark.parametrize(
    "path",
    ["part-0.parquet", "dt=2026-01-01/part-0.c000.snappy.parquet", "aB/x_1.parquet", "p=__HIVE_DEFAULT_PARTITION__/x"],
)
def test_what_no_one_escapes_is_plain_and_portable(path: str) -> None:
    assert is_plain(path)
    assert is_portable(path)


@pytest.mark.parametrize("path", ["p=x%253Ay/a", "p=a+b/a", "p=a%2520b/a", "p=%25/a", "p=a@b/a", "p=%7B%7D/a"])
def test_what_all_engines_escape_alike_is_portable_but_not_plain(path: str) -> None:
    assert is_portable(path)
    assert not is_plain(path)


@pytest.mark.parametrize(
    "path",
    [
        "p=a%20b/a", "p=a b/a", "p=Zürich/a", "p=Z%C3%BCrich/a", "p=日本/a", "p=a%2fb/a", "p=a%2Fb/a", "p=%2B/a",
        "p=a*b/a", "p=a%2Ab/a", "p=%zz/a", "p=%FF/a", "p=%7b/a", "file:/t/a", "s3://b/t/a", "/t/a", "./a", "p=1//a",
        "p=1/../a", "p=\t/a", "", "p=1/",
    ],
)  # fmt: skip
def test_what_engines_spell_in_different_ways_is_neither(path: str) -> None:
    assert not is_portable(path)
    assert not is_plain(path)


def test_spellings_of_one_file_have_one_name() -> None:
    spellings = ("p=a%20b/x", "p=a b/x", "p=a%20%62/x")
    assert {file_name(path) for path in spellings} == {"p=a b/x"}
    assert file_name("p=Z%C3%BCrich/x") == file_name("p=Zürich/x")


CHARACTERS = [chr(code) for code in range(32, 127) if chr(code) != "/"] + list("üß日\u00a0😀")
SPELLINGS = sorted({f"p=a{text}b/x.parquet" for c in CHARACTERS for text in (c, quote(c, safe=""), quote(quote(c)))})


def test_deltalake_removes_every_portable_path_by_the_text_of_its_add(tmp_path: Path) -> None:
    """The rule errs on one side only: what it calls portable is removed, whatever else deltalake can remove."""
    deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
    portable = [path for path in SPELLINGS if is_portable(path)]
    assert len(portable) > 100, "nearly all of ASCII in one spelling each"
    adds = []
    for number, path in enumerate(portable):
        file = tmp_path / file_name(path)
        file.parent.mkdir(exist_ok=True)
        file.touch()
        stats = json.dumps({"numRecords": 1, "minValues": {"id": number}, "maxValues": {"id": number}})
        adds.append({"add": _add(path, stats)})
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("\n".join(map(json.dumps, [*_head(), *adds])))

    deltalake.DeltaTable(str(tmp_path)).delete()  # Without a condition no file is read.

    lines = (tmp_path / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
    removed = {json.loads(line)["remove"]["path"] for line in lines if '"remove"' in line}
    assert removed == set(portable)


def _add(path: str, stats: str) -> dict[str, object]:
    return {
        "path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True, "stats": stats
    }  # fmt: skip


def _head() -> list[dict[str, object]]:
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    metadata = {
        "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema, "partitionColumns": [],
        "configuration": {}, "createdTime": 0,
    }  # fmt: skip
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]


@pytest.mark.parametrize(
    ("path", "harmful"),
    [
        ("p=a%20b/x", True),
        ("p=Zürich/x", True),
        ("x", False),
        ("p=a%2520b/x", False),
        ("s3://b/ü", False),
        ("/ü", False),
    ],
)
def test_only_paths_inside_of_the_table_are_harmful(path: str, harmful: bool) -> None:
    assert is_harmful(path) is harmful
