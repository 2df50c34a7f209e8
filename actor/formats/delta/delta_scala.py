"""The bridge into the JVM for Delta: its classes and ours around it, by the names that Python calls them by."""

from functools import cached_property
from typing import Any

from actor.jvm.scala import JavaStatics, Scala

_DELTA = "org.apache.spark.sql.delta"


class DeltaScala(Scala):
    """Handles to Delta's classes. Those of Java classes of ours hold what each of them does in one call."""

    @property
    def delta_log(self) -> Any:
        """Class `DeltaLog`."""
        return self.resolve(f"{_DELTA}.DeltaLog")

    @property
    def rewrite_transaction(self) -> Any:
        """Our transaction of Delta's, which leaves the checkpoint to us (`RewriteTransaction.java`)."""
        return self.resolve("io.lakewright.delta.RewriteTransaction")

    @property
    def sql_parser(self) -> Any:
        """Object `CatalystSqlParser`."""
        return self.module("org.apache.spark.sql.catalyst.parser.CatalystSqlParser")

    @property
    def java_string(self) -> Any:
        """Class `java.lang.String`."""
        return self.resolve("java.lang.String")

    @property
    def glob_filter(self) -> Any:
        """Class `GlobFilter`, a filter of names in a listing."""
        return self.resolve("org.apache.hadoop.fs.GlobFilter")

    @property
    def uri(self) -> Any:
        """Class `java.net.URI`."""
        return self.resolve("java.net.URI")

    @cached_property
    def row_tracking(self) -> Any:
        """Object `RowTracking`."""
        return self.module(f"{_DELTA}.RowTracking")

    @cached_property
    def optimize(self) -> Any:
        """A `DeltaOperations.Optimize` of chosen files: without predicates and columns to cluster by."""
        is_auto = is_full = False
        operation = self.resolve(f"{_DELTA}.DeltaOperations$Optimize")
        return operation(self.seq(), self.seq(), is_auto, self.none, is_full)

    @cached_property
    def replayed_log(self) -> JavaStatics:
        """Our log of Delta's that needs no Spark job while it is small (`ReplayedLog.java`)."""
        return JavaStatics(self, "delta.ReplayedLog")

    @cached_property
    def checkpoint_file(self) -> JavaStatics:
        """Our class that writes the checkpoint of a small log (`CheckpointFile.java`)."""
        return JavaStatics(self, "delta.CheckpointFile")

    @cached_property
    def next_snapshot(self) -> JavaStatics:
        """Our class that makes a snapshot out of the one before (`NextSnapshot.java`)."""
        return JavaStatics(self, "delta.NextSnapshot")

    @cached_property
    def staged_statement(self) -> JavaStatics:
        """Our class that keeps what a statement would commit (`StagedStatement.java`)."""
        return JavaStatics(self, "delta.StagedStatement")

    @cached_property
    def row_vectors(self) -> JavaStatics:
        """Our class that reads and writes deletion vectors (`RowVectors.java`)."""
        return JavaStatics(self, "delta.RowVectors")

    @property
    def vacuum_end(self) -> Any:
        """Case class `DeltaOperations.VacuumEnd`."""
        return self.resolve(f"{_DELTA}.DeltaOperations$VacuumEnd")

    @property
    def delete_operation(self) -> Any:
        """Case class `DeltaOperations.Delete`."""
        return self.resolve(f"{_DELTA}.DeltaOperations$Delete")

    @property
    def set_properties_operation(self) -> Any:
        """Case class `DeltaOperations.SetTableProperties`."""
        return self.resolve(f"{_DELTA}.DeltaOperations$SetTableProperties")

    @property
    def delta_options(self) -> Any:
        """Class `DeltaOptions`, made of a Scala map and a session's configuration."""
        return self.resolve(f"{_DELTA}.DeltaOptions")

    @cached_property
    def commit_file(self) -> JavaStatics:
        """Our class that reads a commit of a Delta log (`CommitFile.java`)."""
        return JavaStatics(self, "delta.CommitFile")

    @cached_property
    def data_files(self) -> JavaStatics:
        """Our class that asks a store for data files and free space (`DataFiles.java`)."""
        return JavaStatics(self, "delta.DataFiles")

    @cached_property
    def log_commit(self) -> JavaStatics:
        """Our class that commits to a Delta log (`LogCommit.java`)."""
        return JavaStatics(self, "delta.LogCommit")

    @cached_property
    def group(self) -> JavaStatics:
        """Our class that reads footers of a group's files, and writes them as one (`DeltaGroup.java`)."""
        return JavaStatics(self, "delta.DeltaGroup")

    @cached_property
    def qbeast(self) -> JavaStatics:
        """Our classes that place rows in an index of Qbeast's."""
        return JavaStatics(self, "qbeast")

    @cached_property
    def _log_actions(self) -> JavaStatics:
        return JavaStatics(self, "delta.LogActions")

    @cached_property
    def _metadata(self) -> Any:
        """The class `Metadata[]`."""
        return self._gateway.new_array(self.resolve(f"{_DELTA}.actions.Metadata"), 0).getClass()

    def metadata(self, fields_json: str) -> Any:
        """Read a `Metadata` from the JSON of its fields (without the `metaData` wrapper)."""
        return self._mapper.readValue(f"[{fields_json}]", self._metadata)[0]

    def shape(self, snapshot: Any) -> tuple[str, str]:
        """Return the JSON of a snapshot's metadata and of its protocol, as the log has them."""
        metadata, protocol = str(self._log_actions.shape(snapshot)).split("\n")
        return metadata, protocol

    def adds(self, json_array: str) -> Any:
        """Read a Scala `Seq` of `AddFile`s from a JSON array of their fields (without the `add` wrapper)."""
        return self._log_actions.adds(json_array)

    def replacement(self, txn: Any, inputs: str, outputs: str, at_ms: int) -> Any:
        """Return the actions that replace files, which the transaction has read then, by others; both such arrays."""
        return self._log_actions.replacement(txn, inputs, outputs, at_ms)

    def removes(self, adds: Any, at_ms: int, *, data_change: bool) -> Any:
        """Return a Scala `Seq` of the `RemoveFile` of each `AddFile` of a `Seq`."""
        return self._log_actions.removes(adds, at_ms, data_change)
