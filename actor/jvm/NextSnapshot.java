package io.lakewright;

import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.Metadata;
import org.apache.spark.sql.delta.actions.Protocol;
import scala.Option;
import scala.Some;

/** A snapshot that follows from the one before it by what the commits since changed, without a Spark job. */
public final class NextSnapshot {
  private static final Option NONE = Option.empty();

  private NextSnapshot() {}

  /** Returns the newest segment of the log: that of the snapshot before, and what was added since. */
  public static LogSegment segment(DeltaLog log, Snapshot before) {
    return (LogSegment) log.getUpdatedLogSegment(before.logSegment(), NONE, NONE)._1();
  }

  /**
   * Returns the snapshot of a segment, with the checksum of the one before changed by this many live files and their
   * bytes. It holds what is known of each version: size, number of files, metadata and protocol.
   */
  public static Snapshot carried(DeltaLog log, LogSegment segment, Snapshot before, long files, long bytes) {
    VersionChecksum known = (VersionChecksum) before.checksumOpt().get();
    VersionChecksum checksum =
        checksum(known.tableSizeBytes() + bytes, known.numFiles() + files, NONE, known.metadata(), known.protocol());
    return log.createSnapshot(segment, NONE, NONE, new Some(checksum));
  }

  /** Returns the checksum of a version of which this is known; `domains`: its domain metadata, if it was read. */
  static VersionChecksum checksum(long bytes, long files, Option domains, Metadata metadata, Protocol protocol) {
    return new VersionChecksum(
        NONE, // txnId
        bytes,
        files,
        NONE, // numDeletedRecordsOpt
        NONE, // numDeletionVectorsOpt
        1L, // numMetadata
        1L, // numProtocol
        NONE, // inCommitTimestampOpt
        NONE, // setTransactions
        domains,
        metadata,
        protocol,
        NONE, // histogramOpt
        NONE, // deletedRecordCountsHistogramOpt
        NONE, // allFiles
        NONE); // The rest.
  }
}
