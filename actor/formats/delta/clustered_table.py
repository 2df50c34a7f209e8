"""Checks of a table with `CLUSTER BY`, and the columns that it is clustered by."""

import json
from typing import Any

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.log import TableShape
from actor.formats.delta.preflight import check_table
from actor.not_wanted import reason_not_wanted
from actor.ports import TableJob
from actor.rewrite.checks import check_identity
from shared.errors import Unsupported
from shared.formats.delta import CLUSTERING
from shared.layout.cells.tags import ColumnPath

_DOMAIN = "delta.clustering"


def clustering_not_wanted(job: TableJob, shape: TableShape) -> str:
    """Return why a job has nothing to do; raises OtherTable or Unsupported for a table not to be touched."""
    check_identity(job.location, shape.metadata, job.table_uuid)
    check_table(job.location, shape.metadata, shape.protocol, job.kind)
    features = shape.protocol.reader_features | shape.protocol.writer_features
    if CLUSTERING not in features:
        raise Unsupported(
            f"{job.location} has no CLUSTER BY: OPTIMIZE would compact it by its own rules", field=CLUSTERING
        )
    return reason_not_wanted(job, shape.metadata)


def clustering_columns(scala: DeltaScala, snapshot: Any, location: str) -> tuple[ColumnPath, ...]:
    """Return the clustering columns by their names in files.

    Raises Unsupported after `CLUSTER BY NONE`, where OPTIMIZE compacts by its own rules.
    """
    checksum = snapshot.checksumOpt()
    known = checksum.get().domainMetadata() if checksum.isDefined() else checksum
    # To compute the state of the table costs a Spark job, which Delta starts even where the checksum says it.
    domains = json.loads(scala.to_json(known.get() if known.isDefined() else snapshot.domainMetadata()))
    found = [json.loads(one["configuration"]) for one in domains if one["domain"] == _DOMAIN and not one.get("removed")]
    columns = tuple(tuple(path) for one in found for path in one["clusteringColumns"])
    if not columns:
        raise Unsupported(
            f"{location} no longer has clustering columns (CLUSTER BY NONE): unset lakewright.cluster, or drop the "
            f"feature {CLUSTERING!r}, and the table is compacted as others are",
            field=CLUSTERING,
        )
    return columns
