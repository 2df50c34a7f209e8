package io.lakewright.delta;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.delta.kernel.data.Row;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.defaults.internal.json.JsonUtils;
import io.delta.kernel.engine.FileReadResult;
import io.delta.kernel.internal.actions.AddFile;
import io.delta.kernel.internal.actions.DomainMetadata;
import io.delta.kernel.internal.actions.Metadata;
import io.delta.kernel.internal.actions.Protocol;
import io.delta.kernel.internal.actions.RemoveFile;
import io.delta.kernel.internal.actions.SetTransaction;
import io.delta.kernel.internal.util.Utils;
import io.delta.kernel.types.StringType;
import io.delta.kernel.types.StructType;
import io.delta.kernel.utils.CloseableIterator;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.LogSegment;
import org.apache.spark.sql.delta.UninitializedCheckpointProvider;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.FileAction;
import org.apache.spark.sql.delta.actions.InMemoryLogReplay;
import org.apache.spark.sql.delta.actions.SingleAction;
import org.apache.spark.sql.delta.storage.ClosableIterator;
import org.apache.spark.sql.delta.util.FileNames;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The state of a small log by Delta's own replay. Delta runs it in the tasks of a Spark job; here it runs in the driver,
 * because to plan and start that job costs more than to replay a few files. The checkpoint is read by Delta's Kernel.
 */
public final class LogReplay {
  /** What a checkpoint holds: statistics as JSON only, as engines other than Spark write them. */
  public static final StructType CHECKPOINT_SCHEMA =
      new StructType()
          .add("txn", SetTransaction.FULL_SCHEMA)
          .add("add", AddFile.FULL_SCHEMA.add("clusteringProvider", StringType.STRING))
          .add("remove", without(RemoveFile.FULL_SCHEMA, "stats", "tags"))
          .add("metaData", Metadata.FULL_SCHEMA)
          .add("protocol", Protocol.FULL_SCHEMA)
          .add("domainMetadata", DomainMetadata.FULL_SCHEMA);

  /** What is read of one: also what names further files that hold its adds, which the protocol allows under this name. */
  private static final StructType READ_SCHEMA =
      CHECKPOINT_SCHEMA.add("sidecar", new StructType().add("path", StringType.STRING));

  /** Bytes of commits, and of a checkpoint, which is compressed: some 0.2 s to read. */
  private static final long MAX_COMMIT_BYTES = 8L << 20;

  private static final long MAX_CHECKPOINT_BYTES = 2L << 20;

  /** Each is a request to the store, one after the other: some 3 s. Delta's job takes as long where its code is new. */
  private static final int MAX_COMMITS = 200;

  private LogReplay() {}

  /** Returns whether a segment is small, and consists of commits and at most one checkpoint of one file. */
  public static boolean isSmall(LogSegment segment) {
    List<FileStatus> commits = CollectionConverters.asJava(segment.deltas());
    if (commits.size() > MAX_COMMITS) {
      return false;
    }
    long bytes = 0;
    for (FileStatus commit : commits) {
      if (!FileNames.isDeltaFile(commit.getPath())) {
        return false;
      }
      bytes += commit.getLen();
    }
    UninitializedCheckpointProvider checkpoint = segment.checkpointProvider();
    if (bytes > MAX_COMMIT_BYTES || checkpoint.isEmpty()) {
      return bytes <= MAX_COMMIT_BYTES;
    }
    List<FileStatus> files = CollectionConverters.asJava(checkpoint.topLevelFiles());
    if (files.size() != 1) {
      return false;
    }
    FileStatus file = files.get(0);
    return file.getLen() <= MAX_CHECKPOINT_BYTES
        && file.getPath().getName().matches("[0-9]{20}\\.checkpoint\\.parquet");
  }

  /**
   * Replays a small segment.
   *
   * @param removedAfter milliseconds since 1970: older removals are left out; none keeps all
   * @param notedAfter the same for the versions that applications noted
   * @throws IOException if a path has several spellings, which only Delta's job makes one, or if the checkpoint names
   *     further files
   */
  public static InMemoryLogReplay of(
      DeltaLog log, LogSegment segment, Option<Object> removedAfter, Option<Object> notedAfter)
      throws IOException {
    InMemoryLogReplay replay = new InMemoryLogReplay(removedAfter, notedAfter);
    Configuration conf = log.newDeltaHadoopConf();
    long step = 0;
    if (!segment.checkpointProvider().isEmpty()) {
      FileStatus checkpoint = CollectionConverters.asJava(segment.checkpointProvider().topLevelFiles()).get(0);
      replay.append(step++, PythonUtils.toSeq(checkpointActions(conf, checkpoint)).iterator());
    }
    for (FileStatus commit : CollectionConverters.asJava(segment.deltas())) {
      replay.append(step++, PythonUtils.toSeq(commitActions(log, conf, commit)).iterator());
    }
    return replay;
  }

  private static List<Action> commitActions(DeltaLog log, Configuration conf, FileStatus commit) throws IOException {
    List<Action> actions = new ArrayList<>();
    ClosableIterator<String> lines = log.store().readAsIterator(commit, conf);
    try {
      while (lines.hasNext()) {
        actions.add(action(lines.next()));
      }
    } finally {
      lines.close();
    }
    return actions;
  }

  private static List<Action> checkpointActions(Configuration conf, FileStatus checkpoint) throws IOException {
    List<Action> actions = new ArrayList<>();
    io.delta.kernel.utils.FileStatus file =
        io.delta.kernel.utils.FileStatus.of(
            checkpoint.getPath().toString(), checkpoint.getLen(), checkpoint.getModificationTime());
    CloseableIterator<FileReadResult> batches =
        DefaultEngine.create(conf)
            .getParquetHandler()
            .readParquetFiles(
                Utils.singletonCloseableIterator(file), READ_SCHEMA, Optional.empty());
    try {
      while (batches.hasNext()) {
        CloseableIterator<Row> rows = batches.next().getData().getRows();
        while (rows.hasNext()) {
          actions.add(action(JsonUtils.rowToJson(rows.next())));
        }
      }
    } finally {
      batches.close();
    }
    return actions;
  }

  private static Action action(String line) throws IOException {
    ObjectMapper mapper = org.apache.spark.sql.delta.util.JsonUtils.mapper();
    JsonNode node = mapper.readTree(line);
    if (node.has("sidecar")) {
      throw new IOException("a checkpoint that names further files: " + node.get("sidecar"));
    }
    // What is left out is null to Delta's job, but an empty map to this mapper.
    setMissing(node.get("add"), "tags");
    setMissing(node.get("remove"), "tags");
    setMissing(node.get("remove"), "partitionValues");
    Action action = mapper.treeToValue(node, SingleAction.class).unwrap();
    if (action instanceof FileAction file && !isPlain(file.path())) {
      throw new IOException("a path with several spellings: " + file.path());
    }
    return action;
  }

  /** What a removal keeps of the file is read from its commit alone. */
  private static StructType without(StructType fields, String one, String other) {
    StructType kept = new StructType();
    for (int i = 0; i < fields.length(); i++) {
      String name = fields.at(i).getName();
      if (!name.equals(one) && !name.equals(other)) {
        kept = kept.add(fields.at(i));
      }
    }
    return kept;
  }

  private static void setMissing(JsonNode action, String field) {
    if (action instanceof ObjectNode fields && !fields.has(field)) {
      fields.putNull(field);
    }
  }

  private static boolean isPlain(String path) {
    return path.indexOf(':') < 0 && !path.startsWith("/") && !path.contains("//") && !path.contains("./");
  }
}
