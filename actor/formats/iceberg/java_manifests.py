"""The manifests of one Iceberg table in the JVM: counted by its newest snapshot, rewritten by Iceberg's own action."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from actor.formats.iceberg.iceberg_scala import IcebergScala
from actor.formats.iceberg.java_table import JavaTable
from shared.formats.iceberg.manifests import TARGET_PROPERTY, count_groups, target_bytes
from shared.formats.iceberg.metadata import TableHead
from shared.layout.upkeep import UpkeepFound


class JavaManifests:
    """`ManifestTable` in a session that runs the Spark jobs."""

    def __init__(self, scala: IcebergScala, table: JavaTable, session: SparkSession) -> None:
        self._scala = scala
        self._table = table
        self._session = session
        self.location = table.location

    def refresh(self) -> TableHead:
        """Read the newest metadata, and return them."""
        return self._table.refresh()

    def manifests(self) -> Mapping[int, UpkeepFound]:
        """Return the manifests of the newest snapshot by their partition specs."""
        raw = self._table.raw
        target = target_bytes(str(raw.properties().getOrDefault(TARGET_PROPERTY, "")))
        sizes: dict[int, dict[str, list[int]]] = {}
        for one in self._scala.items(raw.currentSnapshot().allManifests(raw.io())):
            of_spec = sizes.setdefault(int(one.partitionSpecId()), {})
            of_spec.setdefault(str(one.content()), []).append(int(one.length()))
        return {spec: count_groups(groups.values(), target) for spec, groups in sizes.items()}

    def rewrite_manifests(self, spec: int, summary: Mapping[str, str]) -> tuple[int, int]:
        """Rewrite the manifests of a spec in one snapshot; returns how many were replaced and written."""
        action = self._scala.actions(self._session).rewriteManifests(self._table.raw).specId(spec)
        for name, value in summary.items():
            action = action.snapshotProperty(name, value)
        result = action.execute()
        count = self._scala.resolve("org.apache.iceberg.relocated.com.google.common.collect.Iterables").size
        return int(count(result.rewrittenManifests())), int(count(result.addedManifests()))
