"""One place has one spelling, in SQL as well, and options of stores hold where they are set."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from shared.errors import InvalidInput
from shared.paths.data_paths import file_name, is_harmful, is_plain, is_portable
from shared.paths.locations import (
    MAX_ENCODINGS,
    canonical_location,
    catalog_name,
    deltalake_location,
    file_location,
    hadoop_path,
    is_under,
    key_location,
    table_id,
)
from shared.paths.sql_text import cluster_by, literal, set_properties, table_name
from shared.paths.store_options import StoreOptions

SPELLINGS = [
    ("/x/y", "file:///x/y"),
    ("/x/y/", "file:///x/y"),
    ("//x//y", "file:///x/y"),
    ("file:/x/y", "file:///x/y"),
    ("file:///x/y/", "file:///x/y"),
    ("FILE://localhost/x/y", "file:///x/y"),
    ("/", "file:///"),
    ("/a b/ü", "file:///a%20b/%C3%BC"),
    ("file:///a%20b/%c3%bc", "file:///a%20b/%C3%BC"),
    ("file:///a%2Db", "file:///a-b"),
    ("/50%", "file:///50%25"),
    ("/a%20b", "file:///a%2520b"),
    ("/a+b", "file:///a+b"),
    ("/x#y", "file:///x%23y"),
    ("/q?z/", "file:///q%3Fz"),
    ("file:///x%23y/q%3fz", "file:///x%23y/q%3Fz"),
    ("/Z\u00fcrich", "file:///Z%C3%BCrich"),
    ("/Zu\u0308rich", "file:///Zu%CC%88rich"),
    ("file:///dt=1,2/x", "file:///dt=1,2/x"),
    ("catalog://prod/sales/orders/", "catalog://prod/sales/orders"),
    ("s3a://b/k/", "s3://b/k"),
    ("s3n://b/k", "s3://b/k"),
    ("s3://b", "s3://b"),
    ("gs://b/k%20x", "gs://b/k%20x"),
    ("gcs://b/k", "gs://b/k"),
    ("abfs://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
    ("abfss://c@a.blob.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
    ("abfss://c@storage.example/t", "abfss://c@storage.example/t"),
    ("wasbs://c@a.blob.core.windows.net/t/", "abfss://c@a.dfs.core.windows.net/t"),
    ("https://a.blob.core.windows.net/c/t/x%20y", "abfss://c@a.dfs.core.windows.net/t/x%20y"),
    ("https://a.dfs.core.chinacloudapi.cn/c/t", "abfss://c@a.dfs.core.chinacloudapi.cn/t"),
]

REFUSED = [
    ("", "empty"),
    ("x/y", "relative path"),
    ("file:x/y", "relative path"),
    ("file://host/x", "host"),
    ("/x/../y", "'..' segment"),
    ("file:///x/%2e%2e/y", "'..' segment"),
    ("s3://b/./k", "'.' segment"),
    ("s3://b/k?versionId=1", "query"),
    ("s3://b/k#part", "fragment"),
    ("s3://b//k", "empty segment"),
    ("s3:///k", "no bucket"),
    ("s3:k", "no bucket"),
    ("s3://user:secret@b/k", "no bucket"),
    ("ftp://b/k", "scheme 'ftp'"),
    ("https://example.com/c/t", "blobs of Azure only"),
    ("https://a.blob.core.windows.net", "no bucket or container"),
    ("https://user@example.com/c/t", "blobs of Azure only"),
    ("file:///x/a%2Fb", "escaped slash"),
    ("file:///x/%00", "control character"),
    ("/x\\y", "backslash"),
    ("file:///x%5Cy", "backslash"),
    ("file:///x/50%", "percent sign"),
    ("file:///x/%ff", "UTF-8"),
    ("/x/\ud800", "UTF-8"),
    ("/" + "x" * 3000, "3001 characters"),
    ("/" + "ü" * 400, "2408 characters"),
]


@pytest.mark.parametrize(("text", "canonical"), SPELLINGS)
def test_every_spelling_of_a_place_has_one_canonical_uri(text: str, canonical: str) -> None:
    assert canonical_location(text) == canonical
    assert canonical_location(canonical) == canonical


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_a_text_that_is_no_absolute_place_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refusal:
        canonical_location(text)
    assert refusal.value.field == "location"


def test_hadoop_is_given_a_decoded_path_which_it_does_not_decode_again() -> None:
    assert hadoop_path("file:///x/a%2520b%20c") == "file:///x/a%20b c"
    assert hadoop_path("s3a://b/Z%C3%BCrich/") == "s3://b/Zürich"
    assert hadoop_path("s3://b") == "s3://b"
    assert hadoop_path("wasbs://c@a.blob.core.windows.net/x%23y") == "abfss://c@a.dfs.core.windows.net/x#y"


def test_a_place_that_deltalake_would_take_for_another_is_refused() -> None:
    """It decodes a location twice: `a%20b` is written, and `a b` beside it is read."""
    assert deltalake_location("/x/a b/100%/Zürich") == "file:///x/a%20b/100%25/Z%C3%BCrich"
    with pytest.raises(InvalidInput, match="percent sign"):
        deltalake_location("/x/a%20b")


def test_a_raw_object_key_is_escaped_and_not_decoded() -> None:
    assert key_location("s3://b", "a b/50%/x%20y") == "s3://b/a%20b/50%25/x%2520y"
    with pytest.raises(InvalidInput, match="segment"):
        key_location("file:///data", "../etc")


def test_a_root_allows_itself_and_what_is_below_it_by_segments() -> None:
    assert is_under("file:///data/t", ["/data/"])
    assert is_under("file:///data", ["/data"])
    assert is_under("file:///data/t", ["/"])
    assert is_under("s3a://b/x/t", ["gs://b", "s3://b/x"])
    assert not is_under("file:///data-private/t", ["/data"])
    assert not is_under("s3://b2/t", ["s3://b"])
    assert not is_under("file:///data/t", [])


def test_a_table_has_one_readable_id_however_its_location_is_spelled() -> None:
    assert table_id("s3a://lake/sales/Orders.v2/") == table_id("s3://lake/sales/Orders.v2")
    assert table_id("s3://lake/sales/Orders.v2").startswith("sales-orders-v2-")
    assert table_id("/x/y") != table_id("/x/Y")
    assert set(table_id("/ü/ß ")[:-16]) <= set("table-")


def test_a_path_that_is_encoded_again_and_again_leads_nowhere() -> None:
    path = "%2e%2e/x"
    for _ in range(MAX_ENCODINGS):
        path = path.replace("%", "%25")
    assert file_location("file:///lake/t", path) is None


def test_an_object_key_with_half_a_character_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not valid Unicode"):
        key_location("s3://b", "a/\ud800")


def test_a_table_of_a_catalog_is_known_by_the_parts_of_its_name() -> None:
    assert catalog_name("catalog://prod/sales/eu/orders%20%C3%BC") == ("prod", ("sales", "eu", "orders ü"))
    assert catalog_name("catalog://prod") == ("prod", ())
    assert catalog_name("s3://prod/sales/orders") is None


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("file:///lake/a`b", "delta.`file:///lake/a``b`"),
        ("catalog://prod/sales/a%20b", "`prod`.`sales`.`a b`"),
        ("catalog://prod/sales/x`y/t", "`prod`.`sales`.`x``y`.`t`"),
    ],
)
def test_a_table_is_named_by_its_path_or_by_the_names_in_its_catalog(location: str, name: str) -> None:
    assert table_name(location, "delta") == name


def test_a_format_without_a_name_for_paths_names_only_the_tables_of_catalogs() -> None:
    assert table_name("catalog://prod/sales/t", "") == "`prod`.`sales`.`t`"
    assert table_name("file:///lake/t", "") == ""
    assert set_properties("catalog://prod/t", {"a": "1"}, "") == "ALTER TABLE `prod`.`t` SET TBLPROPERTIES ('a' = '1')"
    assert set_properties("file:///lake/t", {"a": "1"}, "") == ""
    assert cluster_by("catalog://prod/t", "a, `b c`", "") == "ALTER TABLE `prod`.`t` CLUSTER BY (a, `b c`)"
    assert cluster_by("file:///lake/t", "a", "") == ""


def test_quotes_and_backslashes_in_a_value_end_no_literal() -> None:
    assert literal("a'b\\c") == "'a\\'b\\\\c'"
    assert set_properties("s3://lake/t", {"lakewright.filter": "d = 'x'", "lakewright.fan-in": "4"}, "delta") == (
        "ALTER TABLE delta.`s3://lake/t` SET TBLPROPERTIES ('lakewright.filter' = 'd = \\'x\\'', "
        "'lakewright.fan-in' = '4')"
    )


OPTIONS = StoreOptions(
    {
        "": {"region": "eu", "fs.s3a.threads.max": "9"},
        "s3://": {"region": "us", "endpoint": "http://minio"},
        "s3://lake": {"endpoint": "http://other"},
    }
)


def test_the_narrower_place_wins_option_by_option() -> None:
    assert OPTIONS.of("s3", "lake") == {"region": "us", "endpoint": "http://other", "fs.s3a.threads.max": "9"}
    assert OPTIONS.of("s3") == {"region": "us", "endpoint": "http://minio", "fs.s3a.threads.max": "9"}
    assert OPTIONS.of("gs", "lake") == {"region": "eu", "fs.s3a.threads.max": "9"}


def test_at_a_location_the_options_of_hadoop_are_left_out() -> None:
    assert OPTIONS.at("s3://lake/t/x") == {"region": "us", "endpoint": "http://other"}
    assert OPTIONS.at("gs://lake/t") == {"region": "eu"}


def test_buckets_of_a_scheme_are_listed_by_their_names() -> None:
    assert OPTIONS.buckets("s3") == {"lake": {"endpoint": "http://other"}}
    assert OPTIONS.buckets("gs") == {}


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
FILE_SPELLINGS = sorted(
    {f"p=a{text}b/x.parquet" for c in CHARACTERS for text in (c, quote(c, safe=""), quote(quote(c)))}
)


def test_deltalake_removes_every_portable_path_by_the_text_of_its_add(tmp_path: Path) -> None:
    """The rule errs on one side only: what it calls portable is removed, whatever else deltalake can remove."""
    deltalake = pytest.importorskip("deltalake", reason="deltalake is in the extra `decider`")
    portable = [path for path in FILE_SPELLINGS if is_portable(path)]
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
