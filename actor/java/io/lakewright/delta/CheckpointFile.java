package io.lakewright.delta;

import static scala.Option.empty;

import io.delta.kernel.data.ColumnVector;
import io.delta.kernel.data.ColumnarBatch;
import io.delta.kernel.data.FilteredColumnarBatch;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.engine.Engine;
import io.delta.kernel.internal.util.Utils;
import io.delta.kernel.internal.util.VectorUtils;
import io.delta.kernel.types.StringType;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LastCheckpointInfo;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.TruncationGranularity;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.AddFile;
import org.apache.spark.sql.delta.actions.InMemoryLogReplay;
import org.apache.spark.sql.delta.util.FileNames;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/** A checkpoint of a small log, without a Spark job: Delta's own replay says what it holds, its Kernel writes it. */
public final class CheckpointFile {
  private CheckpointFile() {}

  /**
   * Returns the files of a snapshot since the newest checkpoint. A snapshot that follows from an older one names all
   * commits since the checkpoint of that one.
   */
  public static LogSegment segment(DeltaLog log, Snapshot snapshot) {
    Option<Object> version = new Some<>(snapshot.version());
    return log.createLogSegment(version, empty(), empty(), empty(), log.readLastCheckpointFile()).get();
  }

  /**
   * Writes the checkpoint of a snapshot and the record of the last one, if its log is small.
   *
   * @param segment the files of the snapshot
   * @return whether it was written: if not, only Delta's job can
   * @throws Exception if the log cannot be read or written, or holds other files than the snapshot; no file is left then
   */
  public static boolean write(DeltaLog log, Snapshot snapshot, LogSegment segment) throws Exception {
    if (!LogReplay.isSmall(segment)) {
      return false;
    }
    InMemoryLogReplay state =
        LogReplay.of(
            log,
            segment,
            new Some<>(snapshot.minFileRetentionTimestamp()),
            snapshot.minSetTransactionRetentionTimestamp());
    long files = 0;
    long bytes = 0;
    for (AddFile file : CollectionConverters.asJava(state.allFiles())) {
      bytes += file.size();
      files++;
    }
    VersionChecksum expected = snapshot.checksumOpt().get();
    if (files != expected.numFiles() || bytes != expected.tableSizeBytes()) {
      throw new IllegalStateException(
          "the log has " + files + " files of " + bytes + " bytes, the snapshot " + expected.numFiles() + " of "
              + expected.tableSizeBytes());
    }
    List<String> lines = new ArrayList<>();
    CollectionConverters.asJava(state.checkpoint()).forEachRemaining(action -> lines.add(action.json()));
    Path target = FileNames.checkpointFileSingular(log.logPath(), snapshot.version());
    Configuration conf = new Configuration(log.newDeltaHadoopConf());
    conf.set("parquet.compression", "SNAPPY");
    put(target, conf, parquet(lines, conf));
    Option<Object> size = new Some<>(files);
    LastCheckpointInfo last =
        new LastCheckpointInfo(snapshot.version(), lines.size(), empty(), empty(), size, empty(), empty(), empty());
    log.writeLastCheckpointFile(log, last, true);
    return true;
  }

  /**
   * Deletes the commits and checkpoints that no version of the last hours needs, by Delta's own rule.
   *
   * @param retainMs for how many milliseconds commits are kept, up to the hour
   */
  public static void cleanLog(DeltaLog log, Snapshot snapshot, long retainMs) {
    if (log.enableExpiredLogCleanup(snapshot.metadata())) {
      log.cleanUpExpiredLogs(snapshot, empty(), new Some<>(retainMs), TruncationGranularity.HOUR());
    }
  }

  private static byte[] parquet(List<String> lines, Configuration conf) throws IOException {
    MemoryFile file = new MemoryFile(conf);
    Engine engine = DefaultEngine.create(file);
    ColumnVector texts = VectorUtils.buildColumnVector(lines, StringType.STRING);
    ColumnarBatch batch = engine.getJsonHandler().parseJson(texts, LogReplay.CHECKPOINT_SCHEMA, Optional.empty());
    FilteredColumnarBatch all = new FilteredColumnarBatch(batch, Optional.empty());
    engine.getParquetHandler().writeParquetFileAtomically("checkpoint", Utils.singletonCloseableIterator(all));
    return file.bytes();
  }

  /** Gives a file its name only when it is whole. */
  private static void put(Path target, Configuration conf, byte[] bytes) throws IOException {
    FileSystem store = target.getFileSystem(conf);
    Path temporary = new Path(target.getParent(), "." + target.getName() + "." + UUID.randomUUID() + ".tmp");
    boolean isWhole = false;
    try {
      try (OutputStream stream = store.create(temporary, false)) {
        stream.write(bytes);
      }
      isWhole = store.rename(temporary, target);
    } finally {
      if (!isWhole) {
        store.delete(temporary, false);
      }
    }
    if (!isWhole && !store.exists(target)) {
      throw new IOException("could not rename " + temporary + " to " + target);
    }
  }
}
