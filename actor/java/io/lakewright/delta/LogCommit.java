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
   * Commits actions as an operation, and returns the version and the number of versions between two checkpoints.
   *
   * @param metrics a JSON object of numbers, which the history shows
   * @param settings the session's settings while it commits: a JSON object of objects, by what `checksum` returns
   */
  public static String commit(
      OptimisticTransaction txn,
      Configuration configuration,
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
    DeltaLog log = txn.deltaLog();
    String where = checksum(configuration, log.logPath().toString(), txn.snapshot());
    SessionSettings changed = SessionSettings.set(session, Json.text(Json.object(settings).get(where)));
    try {
      long version = txn.commit(actions, operation, tags);
      return version + " " + log.checkpointInterval(txn.snapshot().metadata());
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
