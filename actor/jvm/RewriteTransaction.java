package io.lakewright;

import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import scala.Option;

/**
 * A transaction of Delta's that leaves the checkpoint after its commit to the caller. Delta's own computes the table's
 * size for it by a query over the table's state; a caller that knows the size needs none.
 */
public final class RewriteTransaction extends OptimisticTransaction {
  public RewriteTransaction(DeltaLog log, Snapshot snapshot) {
    super(log, Option.empty(), snapshot);
  }

  public boolean isCheckpointNeeded(long version, Snapshot snapshot) {
    return false;
  }
}
