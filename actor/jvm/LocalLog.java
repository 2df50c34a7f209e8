package io.lakewright;

import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.InMemoryLogReplay;
import org.apache.spark.util.SystemClock;
import scala.Option;
import scala.Some;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/** A log of Delta's whose snapshots have a checksum without a Spark job, as long as the log is small. */
public final class LocalLog extends DeltaLog {
  private static final Option NONE = Option.empty();

  private LocalLog(Path folder, Map options) {
    super(folder, folder.getParent(), options, options, new SystemClock(), NONE);
  }

  /** Opens the log of the table at a location. */
  public static LocalLog open(SparkSession session, String location) throws IOException {
    Path folder = new Path(location, "_delta_log");
    folder = folder.getFileSystem(((org.apache.spark.sql.classic.SparkSession) session).sessionState().newHadoopConf()).makeQualified(folder);
    return new LocalLog(folder, (Map) Map$.MODULE$.empty());
  }

  public Snapshot createSnapshot(LogSegment segment, Option coordinator, Option table, Option checksum) {
    Option known = checksum;
    if (known.isEmpty()) {
      known = readChecksum(segment.version(), lastSeenChecksumFileStatusOpt());
    }
    if (known.isEmpty() && LogReplay.isSmall(segment)) {
      known = replayed(segment);
    }
    return super.createSnapshot(segment, coordinator, table, known);
  }

  /** Returns the live files of a snapshot, null if its log is not small or not plain. */
  public Seq liveFiles(Snapshot snapshot) {
    if (!LogReplay.isSmall(snapshot.logSegment())) {
      return null;
    }
    try {
      return LogReplay.of(this, snapshot.logSegment(), NONE, NONE).allFiles();
    } catch (Exception e) {
      return null;
    }
  }

  private Option replayed(LogSegment segment) {
    InMemoryLogReplay state;
    try {
      state = LogReplay.of(this, segment, NONE, NONE);
    } catch (Exception e) {
      return NONE; // Delta's own job says what is wrong, if anything is.
    }
    if (state.getProtocol().isEmpty() || state.getMetadata().isEmpty()) {
      return NONE;
    }
    long bytes = 0;
    long files = 0;
    for (Iterator each = state.allFiles().iterator(); each.hasNext(); files++) {
      bytes += ((AddFile) each.next()).size();
    }
    return new Some(
        new VersionChecksum(
            NONE, // txnId
            bytes,
            files,
            NONE, // numDeletedRecordsOpt
            NONE, // numDeletionVectorsOpt
            1L, // numMetadata
            1L, // numProtocol
            NONE, // inCommitTimestampOpt
            NONE, // setTransactions
            new Some(state.getDomainMetadatas().toSeq()),
            (org.apache.spark.sql.delta.actions.Metadata) state.getMetadata().get(),
            (org.apache.spark.sql.delta.actions.Protocol) state.getProtocol().get(),
            NONE, // histogramOpt
            NONE, // deletedRecordCountsHistogramOpt
            NONE, // allFiles
            NONE)); // The rest.
  }
}
