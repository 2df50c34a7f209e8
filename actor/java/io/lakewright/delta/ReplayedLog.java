package io.lakewright.delta;

import static scala.Option.empty;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.DomainMetadata;
import org.apache.spark.sql.delta.actions.InMemoryLogReplay;
import org.apache.spark.sql.delta.coordinatedcommits.TableCommitCoordinatorClient;
import org.apache.spark.util.SystemClock;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A log of Delta's whose snapshots need no Spark job while it is small: each comes with a checksum, from the file beside
 * its commit, or else from a replay.
 */
public final class ReplayedLog extends DeltaLog {
  private static final Map<String, String> NO_OPTIONS = PythonUtils.toScalaMap(java.util.Map.of());

  private ReplayedLog(Path folder) {
    super(folder, folder.getParent(), NO_OPTIONS, NO_OPTIONS, new SystemClock(), empty());
  }

  /** Opens the log of the table at a location, as Hadoop spells it, and reads its newest snapshot. */
  public static ReplayedLog open(String location, Configuration conf) throws IOException {
    Path folder = new Path(location, "_delta_log");
    return new ReplayedLog(folder.getFileSystem(conf).makeQualified(folder));
  }

  @Override
  public Snapshot createSnapshot(
      LogSegment segment,
      Option<TableCommitCoordinatorClient> coordinator,
      Option<CatalogTable> table,
      Option<VersionChecksum> checksum) {
    Option<VersionChecksum> known = checksum;
    if (known.isEmpty()) {
      known = readChecksum(segment.version(), lastSeenChecksumFileStatusOpt());
    }
    return super.createSnapshot(segment, coordinator, table, known.isEmpty() ? replayed(segment) : known);
  }

  /** Returns the live files of a snapshot, null if only Delta's own job can list them. */
  public List<AddFile> liveFiles(Snapshot snapshot) {
    InMemoryLogReplay state = replay(snapshot.logSegment());
    return state == null ? null : CollectionConverters.asJava(state.allFiles());
  }

  private Option<VersionChecksum> replayed(LogSegment segment) {
    InMemoryLogReplay state = replay(segment);
    if (state == null || state.getProtocol().isEmpty() || state.getMetadata().isEmpty()) {
      return empty();
    }
    long bytes = 0;
    long files = 0;
    for (AddFile file : CollectionConverters.asJava(state.allFiles())) {
      bytes += file.size();
      files++;
    }
    Option<Seq<DomainMetadata>> domains = new Some<>(state.getDomainMetadatas().toSeq());
    return new Some<>(
        NextSnapshot.checksum(bytes, files, domains, state.getMetadata().get(), state.getProtocol().get()));
  }

  private InMemoryLogReplay replay(LogSegment segment) {
    if (!LogReplay.isSmall(segment)) {
      return null;
    }
    try {
      return LogReplay.of(this, segment, empty(), empty());
    } catch (Exception e) {
      return null; // Delta's own job says what is wrong, if anything is.
    }
  }
}
