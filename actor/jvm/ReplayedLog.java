package io.lakewright;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.InMemoryLogReplay;
import org.apache.spark.sql.delta.actions.Metadata;
import org.apache.spark.sql.delta.actions.Protocol;
import org.apache.spark.util.SystemClock;
import scala.Option;
import scala.Some;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A log of Delta's whose snapshots need no Spark job while it is small: each comes with a checksum, from the file beside
 * its commit, or else from a replay.
 */
public final class ReplayedLog extends DeltaLog {
  private static final Option NONE = Option.empty();
  private static final Map NO_OPTIONS = (Map) Map$.MODULE$.empty();

  private ReplayedLog(Path folder) {
    super(folder, folder.getParent(), NO_OPTIONS, NO_OPTIONS, new SystemClock(), NONE);
  }

  /** Opens the log of the table at a location, as Hadoop spells it, and reads its newest snapshot. */
  public static ReplayedLog open(String location, Configuration conf) throws IOException {
    Path folder = new Path(location, "_delta_log");
    return new ReplayedLog(folder.getFileSystem(conf).makeQualified(folder));
  }

  public Snapshot createSnapshot(LogSegment segment, Option coordinator, Option table, Option checksum) {
    Option known = checksum;
    if (known.isEmpty()) {
      known = readChecksum(segment.version(), lastSeenChecksumFileStatusOpt());
    }
    return super.createSnapshot(segment, coordinator, table, known.isEmpty() ? replayed(segment) : known);
  }

  /** Returns the live files of a snapshot, null if only Delta's own job can list them. */
  public List liveFiles(Snapshot snapshot) {
    InMemoryLogReplay state = replay(snapshot.logSegment());
    return state == null ? null : CollectionConverters.asJava(state.allFiles());
  }

  private Option replayed(LogSegment segment) {
    InMemoryLogReplay state = replay(segment);
    if (state == null || state.getProtocol().isEmpty() || state.getMetadata().isEmpty()) {
      return NONE;
    }
    long bytes = 0;
    long files = 0;
    for (Iterator each = state.allFiles().iterator(); each.hasNext(); files++) {
      bytes += ((AddFile) each.next()).size();
    }
    Option domains = new Some(state.getDomainMetadatas().toSeq());
    Metadata metadata = (Metadata) state.getMetadata().get();
    return new Some(NextSnapshot.checksum(bytes, files, domains, metadata, (Protocol) state.getProtocol().get()));
  }

  private InMemoryLogReplay replay(LogSegment segment) {
    if (!LogReplay.isSmall(segment)) {
      return null;
    }
    try {
      return LogReplay.of(this, segment, NONE, NONE);
    } catch (Exception e) {
      return null; // Delta's own job says what is wrong, if anything is.
    }
  }
}
