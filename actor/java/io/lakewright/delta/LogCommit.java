package io.lakewright.delta;

import io.lakewright.spark.Json;
import io.lakewright.spark.SessionSettings;
import java.io.IOException;
import java.util.HashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.DeltaOperations;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.RowTracking$;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.util.FileNames;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/** A commit to a Delta log: what it takes besides its actions is made here, so that it is one call from Python. */
public final class LogCommit {
  private static final String CHECKSUM_IN_LOG = "in the log";
  private static final String CHECKSUM_IN_MEMORY = "in memory";
  private static final String NO_CHECKSUM = "none";

  private LogCommit() {}

  /**
   * Commits actions as an operation, and returns the version.
   *
   * @param metrics a JSON object of numbers, which the history shows
   * @param settings a JSON object of the session's settings while it commits
   */
  public static long commit(
      OptimisticTransaction txn,
      SparkSession session,
      Seq<Action> actions,
      DeltaOperations.Operation operation,
      String metrics,
      String settings)
      throws IOException {
    Map<String, String> none = PythonUtils.toScalaMap(java.util.Map.of());
    Map<String, String> tags =
        RowTracking$.MODULE$.addPreservedRowTrackingTagIfNotSet(txn.snapshot(), none);
    txn.registerSQLMetrics(session, metrics(session.sparkContext(), Json.object(metrics)));
    SessionSettings changed = SessionSettings.set(session, settings);
    try {
      return txn.commit(actions, operation, tags);
    } finally {
      changed.restore();
    }
  }

  /** Says where the checksum of a snapshot is: beside its commit as a file, only in the snapshot, or nowhere. */
  public static String checksum(Configuration configuration, String folder, Snapshot snapshot) throws IOException {
    Path file = FileNames.checksumFile(new Path(folder), snapshot.version());
    if (file.getFileSystem(configuration).exists(file)) {
      return CHECKSUM_IN_LOG;
    }
    return snapshot.checksumOpt().isDefined() ? CHECKSUM_IN_MEMORY : NO_CHECKSUM;
  }

  /** Returns the number of versions between two checkpoints of a table. */
  public static int checkpointInterval(DeltaLog log, Snapshot snapshot) {
    return log.checkpointInterval(snapshot.metadata());
  }

  private static Map<String, SQLMetric> metrics(SparkContext context, java.util.Map<String, Object> values) {
    java.util.Map<String, SQLMetric> metrics = new HashMap<>();
    values.forEach(
        (name, value) -> {
          SQLMetric metric = SQLMetrics.createMetric(context, name);
          metric.set(((Number) value).longValue());
          metrics.put(name, metric);
        });
    return PythonUtils.toScalaMap(metrics);
  }
}
