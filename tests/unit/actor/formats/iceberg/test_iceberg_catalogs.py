"""Options of a catalog reach Java as the settings mean them, and a catalog whose token ended is opened again."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark is in the extra `actor`")

from actor.formats.iceberg.catalogs import TableLoader, java_options
from actor.formats.iceberg.scan_cache import Scan
from tests.support.java_errors import JavaError


@pytest.mark.parametrize("is_first", [True, False])
def test_an_option_for_actors_replaces_the_one_for_both_in_any_order(is_first: bool) -> None:
    """Otherwise actors open another catalog than the deciders follow, where one spells the other's address."""
    both = [("uri", "sqlite:///c.db"), ("jvm.uri", "jdbc:sqlite:c.db")]
    options = dict(both[::-1] if is_first else both)
    assert java_options({"type": "sql", **options, "warehouse": "w"}) == {"uri": "jdbc:sqlite:c.db", "warehouse": "w"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"s3.region": "eu-west-1"}, {"client.region": "eu-west-1"}),
        ({"client.region": "eu-west-1"}, {"client.region": "eu-west-1"}),
        ({"s3.region": "eu-west-1", "jvm.client.region": "eu-west-2"}, {"client.region": "eu-west-2"}),
        ({"s3.endpoint": "http://minio"}, {"s3.path-style-access": "true"}),
        ({"s3.endpoint": "http://minio", "s3.force-virtual-addressing": "True"}, {"s3.path-style-access": "false"}),
        ({"s3.endpoint": "http://minio", "s3.path-style-access": "false"}, {"s3.path-style-access": "false"}),
        ({"s3.access-key-id": "a"}, {"s3.access-key-id": "a"}),
    ],
)
def test_options_of_s3_reach_java_in_its_own_spelling(given: dict[str, str], meant: dict[str, str]) -> None:
    """Otherwise deciders read the table, and actors ask another host or sign for another region."""
    found = java_options({"type": "rest", **given})
    kept = {name: value for name, value in given.items() if not name.startswith("jvm.")}
    assert found == kept | meant


class Catalog:
    """A catalog of Java whose token is good for so many loads; `error` is raised afterwards."""

    def __init__(self, loads: int, error: str) -> None:
        self._left, self._error = loads, error
        self.is_closed = False

    def loadTable(self, _: object) -> str:  # noqa: N802 - Java's name
        self._left -= 1
        if self._left < 0:
            raise JavaError("RuntimeException", self._error)
        return "table"

    def close(self) -> None:
        self.is_closed = True


def loader(monkeypatch: pytest.MonkeyPatch, error: str, loads: list[int], **options: str) -> tuple[Any, list[Catalog]]:
    """Return a loader of one catalog, and the catalogs that it opens, each good for so many loads."""
    opened: list[Catalog] = []

    def open_next(*_: object) -> Catalog:
        opened.append(Catalog(loads[len(opened)], error))
        return opened[-1]

    monkeypatch.setattr(TableLoader, "_open", open_next)
    return TableLoader(SimpleNamespace(), SimpleNamespace(), {"lake": options}, reads_folders=False), opened  # type: ignore[arg-type]


def test_a_catalog_that_refuses_its_token_is_closed_and_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, opened = loader(monkeypatch, "NotAuthorizedException", [2, 1], credential="id:secret")
    assert [made._load("lake", "t") for _ in range(3)] == ["table"] * 3
    assert [one.is_closed for one in opened] == [True, False]


@pytest.mark.parametrize(
    ("own", "loaded"), [("/lake/t", "/lake/t"), ("file:/lake/t", "file:///lake/t"), ("/moved/t", "file:///lake/t")]
)
def test_a_table_in_a_folder_is_loaded_as_its_writers_spell_its_path(own: str, loaded: str) -> None:
    """Iceberg's lock is the text of a path: two spellings in one process are two locks, and commits get lost."""
    made = TableLoader(SimpleNamespace(), SimpleNamespace(), {}, reads_folders=True)  # type: ignore[arg-type]
    made._folders = SimpleNamespace(load=lambda path: SimpleNamespace(location=lambda: own, path=path))
    assert made.load("file:///lake/t").raw.path == loaded


@pytest.mark.parametrize(
    ("error", "loads", "options"),
    [
        ("NotAuthorizedException", [0], {"credential": "id:secret"}),
        ("NotAuthorizedException", [1], {"token": "a-token"}),
        ("ForbiddenException", [1], {"credential": "id:secret"}),
        ("NoSuchTableException", [1], {"credential": "id:secret"}),
    ],
)
def test_a_catalog_is_not_opened_again_where_a_new_token_would_not_help(
    monkeypatch: pytest.MonkeyPatch, error: str, loads: list[int], options: dict[str, str]
) -> None:
    """A token just got, one that does not change, a missing right, a missing table."""
    made, opened = loader(monkeypatch, error, loads, **options)
    for _ in range(loads[0]):
        made._load("lake", "t")
    with pytest.raises(JavaError):
        made._load("lake", "t")
    assert [one.is_closed for one in opened] == [False]


@pytest.mark.parametrize(
    ("options", "reports"),
    [
        ({"type": "rest"}, "false"),
        ({}, "false"),
        ({"type": "rest", "rest-metrics-reporting-enabled": "true"}, "true"),
        ({"type": "sql"}, None),
    ],
)
def test_no_reports_are_posted_to_a_rest_catalog_unless_its_options_want_them(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], reports: str | None
) -> None:
    opened: list[dict[str, str]] = []

    class Properties(dict[str, str]):
        put = dict.__setitem__

    catalogs = SimpleNamespace(loadCatalog=lambda _kind, _name, given, _hadoop: opened.append(given))
    scala: Any = SimpleNamespace(resolve=lambda name: Properties if name.endswith("HashMap") else catalogs)
    monkeypatch.setattr(TableLoader, "_hadoop", lambda _: None)
    TableLoader(scala, SimpleNamespace(), {"lake": options}, reads_folders=False)._catalog("lake")  # type: ignore[arg-type]
    assert opened[0].get("rest-metrics-reporting-enabled") == reports


def test_what_was_read_of_a_tables_files_is_let_go_of_with_its_job() -> None:
    loader = TableLoader(SimpleNamespace(), SimpleNamespace(), {}, reads_folders=True)  # type: ignore[arg-type]
    key = ("file:///t", "u", 7, None)
    loader._scans.put(key, Scan({}, frozenset(), has_floats=False))
    loader.forget_scans("file:///t")
    assert loader._scans.get(key, floats=False) is None
