package io.lakewright;

import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
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
import org.apache.spark.sql.delta.util.FileNames;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
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
      Seq actions,
      DeltaOperations.Operation operation,
      String metrics,
      String settings)
      throws IOException {
    Object tags =
        RowTracking$.MODULE$.addPreservedRowTrackingTagIfNotSet(txn.snapshot(), PythonUtils.toScalaMap(new HashMap()));
    txn.registerSQLMetrics(session, metrics(session.sparkContext(), Json.object(metrics)));
    SessionSettings changed = SessionSettings.set(session, settings);
    try {
      return txn.commit(actions, operation, (scala.collection.immutable.Map) tags);
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

  private static scala.collection.immutable.Map metrics(SparkContext context, Map values) {
    HashMap metrics = new HashMap();
    for (Iterator each = values.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry one = (Map.Entry) each.next();
      SQLMetric metric = SQLMetrics.createMetric(context, (String) one.getKey());
      metric.set(((Number) one.getValue()).longValue());
      metrics.put(one.getKey(), metric);
    }
    return PythonUtils.toScalaMap(metrics);
  }
}
