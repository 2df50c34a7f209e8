"""The bridge into the JVM for Iceberg: our Java classes around it, by the names that Python calls them by."""

from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from actor.jvm.scala import JavaStatics, Scala, jvm_session


class IcebergScala(Scala):
    """Handles to our classes for Iceberg, of which each does in one call what takes hundreds from Python."""

    def actions(self, session: SparkSession) -> Any:
        """Return Iceberg's own actions; their Spark jobs carry this thread's tag, so cancelling the job ends them."""
        return self.resolve("org.apache.iceberg.spark.actions.SparkActions").get(jvm_session(session))

    @property
    def watched_commit(self) -> Any:
        """Our operations of an Iceberg table for one commit (`WatchedCommit.java`)."""
        return self.resolve("io.lakewright.iceberg.WatchedCommit")

    @cached_property
    def iceberg_head(self) -> JavaStatics:
        """Our class that finds what changed in a table's metadata (`IcebergHead.java`)."""
        return JavaStatics(self, "iceberg.IcebergHead")

    @cached_property
    def iceberg_scan(self) -> JavaStatics:
        """Our class that describes what a scan of an Iceberg table found (`IcebergScan.java`)."""
        return JavaStatics(self, "iceberg.IcebergScan")

    @cached_property
    def iceberg_ages(self) -> JavaStatics:
        """Our class that finds files by values of a column of times (`IcebergAges.java`)."""
        return JavaStatics(self, "iceberg.IcebergAges")

    @cached_property
    def iceberg_cells(self) -> JavaStatics:
        """Our class that reads bounds of clustering columns (`IcebergCells.java`)."""
        return JavaStatics(self, "iceberg.IcebergCells")

    @cached_property
    def iceberg_deletes(self) -> JavaStatics:
        """Our class that lists the delete files that apply to data files (`IcebergDeletes.java`)."""
        return JavaStatics(self, "iceberg.IcebergDeletes")

    @cached_property
    def staged_table(self) -> JavaStatics:
        """Our class that has Spark read and write groups of files under names (`StagedTable.java`)."""
        return JavaStatics(self, "iceberg.StagedTable")

    @cached_property
    def output_counts(self) -> JavaStatics:
        """Our class that counts the nulls that Iceberg's writers leave out (`OutputCounts.java`)."""
        return JavaStatics(self, "iceberg.OutputCounts")
