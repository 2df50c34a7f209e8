"""Loads tables in the JVM: from the catalogs of the settings, or from a folder without a catalog."""

import threading
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from pyspark.sql import SparkSession

from actor.formats.iceberg.conflicts import is_token_refused
from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.java_table import JavaTable
from actor.formats.iceberg.scan_cache import ScanCache
from actor.jvm.scala import jvm_session
from shared.errors import InvalidInput, Unsupported
from shared.formats.iceberg.head_cache import TABLES, HeadCache
from shared.paths.locations import catalog_name, hadoop_path

CREDENTIAL = "credential"
"""Option from which the client gets a token, and another one when it asks again."""

JVM_PREFIX = "jvm."
"""Prefix of the options of a catalog that are meant for the actor alone."""

_SILENT: Mapping[str, str] = {"rest-metrics-reporting-enabled": "false"}
"""Iceberg's client would post a report of each scan and commit to a REST catalog, four requests of twelve for a job."""

_KINDS: Mapping[str, str] = {
    "rest": "org.apache.iceberg.rest.RESTCatalog",
    "sql": "org.apache.iceberg.jdbc.JdbcCatalog",
    "glue": "org.apache.iceberg.aws.glue.GlueCatalog",
    "hive": "org.apache.iceberg.hive.HiveCatalog",
}


def java_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for Java's catalog; one with the prefix replaces the one without, wherever it stands.

    What pyiceberg spells otherwise, or has another default for, is translated, so that both find the same store.
    """
    shared = {name: value for name, value in options.items() if name != "type" and not name.startswith(JVM_PREFIX)}
    own = {name.removeprefix(JVM_PREFIX): value for name, value in options.items() if name.startswith(JVM_PREFIX)}
    return _translated(shared) | shared | own


def _translated(options: Mapping[str, str]) -> dict[str, str]:
    """Return Java's spelling of pyiceberg's options of S3."""
    found: dict[str, str] = {}
    if region := options.get("s3.region") or options.get("client.region"):
        found["client.region"] = region
    if "s3.endpoint" in options:
        is_virtual = options.get("s3.force-virtual-addressing", "").strip().lower() in ("true", "1", "yes", "on")
        found["s3.path-style-access"] = "false" if is_virtual else "true"
    return found


class TableLoader:
    """Opens each catalog once, when its first table is loaded."""

    def __init__(
        self,
        scala: IcebergScala,
        spark: SparkSession,
        catalogs: Mapping[str, Mapping[str, str]],
        *,
        reads_folders: bool,
    ) -> None:
        self._scala = scala
        self._spark = spark
        self._options = catalogs
        self._reads_folders = reads_folders
        self._opened: dict[str, Any] = {}
        self._opening = threading.Lock()
        self._heads, self._scans = HeadCache(), ScanCache()
        self._spelled: dict[str, str] = {}  # A folder that was loaded, and its path as its metadata spell it.
        self._identifier = lru_cache(maxsize=TABLES)(self._made_identifier)  # Each takes five round trips.

    def load(self, location: str) -> JavaTable:
        """Load a table; raises InvalidInput for an unknown catalog, Unsupported for a folder that may not be read."""
        named = catalog_name(location)
        if named is None:
            return JavaTable(self._scala, self._folder(location), location, self._heads, self._scans)
        name, parts = named
        if not parts:
            raise InvalidInput(f"{location} names a catalog and no table", field="location")
        return JavaTable(self._scala, self._load(name, self._identifier(parts)), location, self._heads, self._scans)

    def forget_scans(self, location: str) -> None:
        """Let go of what was read of a table's files."""
        self._scans.drop(location)

    def _made_identifier(self, parts: tuple[str, ...]) -> Any:
        namespace = self._scala.resolve("org.apache.iceberg.catalog.Namespace").of(self._array(parts[:-1]))
        return self._scala.resolve("org.apache.iceberg.catalog.TableIdentifier").of(namespace, parts[-1])

    def _load(self, name: str, identifier: Any) -> Any:
        """Load a table; a catalog that has been open for a while is opened again if it refuses its token."""
        was_open = name in self._opened
        catalog = self._catalog(name)
        try:
            return catalog.loadTable(identifier)
        except Exception as error:
            if not was_open or CREDENTIAL not in self._options[name] or not is_token_refused(error):
                raise
        return self._reopened(name, catalog).loadTable(identifier)

    def _reopened(self, name: str, catalog: Any) -> Any:
        with self._opening:
            if self._opened.get(name) is catalog:
                self._opened.pop(name).close()  # Nothing that still uses it can succeed.
        return self._catalog(name)

    def _folder(self, location: str) -> Any:
        if not self._reads_folders:
            raise Unsupported(
                f"{location} is a table without a catalog, where two writers could replace each other's commits; set "
                "LAKEWRIGHT_ICEBERG_FOLDERS=true if only one process commits to such tables",
                field="location",
            )
        place = self._spelled.get(location) or hadoop_path(location)
        table = self._folders.load(place)
        # Iceberg locks by the text of a path: with another spelling than a writer's in this process, commits get lost.
        own = str(table.location())
        if own == place or own.removeprefix("file://") != place.removeprefix("file://"):
            return table
        self._spelled[location] = own
        return self._folders.load(own)

    @cached_property
    def _folders(self) -> Any:
        return self._scala.resolve("org.apache.iceberg.hadoop.HadoopTables")(self._hadoop())

    def _catalog(self, name: str) -> Any:
        with self._opening:
            if name not in self._opened:
                self._opened[name] = self._open(name)
            return self._opened[name]

    def _open(self, name: str) -> Any:
        if name not in self._options:
            known = ", ".join(sorted(self._options))
            raise InvalidInput(
                f"there is no catalog {name!r}; add it to LAKEWRIGHT_CATALOGS", field="location", allowed=known
            )
        kind = self._options[name].get("type", "rest")
        if kind not in _KINDS:
            raise InvalidInput(f"catalog {name}: type {kind!r} is unknown", field="type", allowed=", ".join(_KINDS))
        own = {**(_SILENT if kind == "rest" else {}), **java_options(self._options[name])}
        properties = self._scala.resolve("java.util.HashMap")()
        for option, value in own.items():
            properties.put(option, value)
        build = self._scala.resolve("org.apache.iceberg.CatalogUtil").loadCatalog
        return build(own.pop("catalog-impl", _KINDS[kind]), name, properties, self._hadoop())

    def _hadoop(self) -> Any:
        return jvm_session(self._spark).sessionState().newHadoopConf()

    def _array(self, texts: tuple[str, ...]) -> Any:
        array = self._spark.sparkContext._gateway.new_array(self._scala.resolve("java.lang.String"), len(texts))  # noqa: SLF001
        for index, text in enumerate(texts):
            array[index] = text
        return array
