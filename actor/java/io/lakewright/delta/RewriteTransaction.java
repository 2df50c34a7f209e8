package io.lakewright.delta;

import io.delta.storage.commit.Commit;
import org.apache.spark.sql.delta.CurrentTransactionInfo;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import scala.Option;
import scala.Tuple3;
import scala.collection.Iterator;

/**
 * A transaction of Delta's that leaves the checkpoint after its commit to the caller. Delta's own computes the table's
 * size for it by a query over the table's state; a caller that knows the size needs none. It says whether the log was
 * asked for the commit: one that fails before was certainly not made.
 */
public final class RewriteTransaction extends OptimisticTransaction {
  private volatile boolean isAsked;

  public RewriteTransaction(DeltaLog log, Snapshot snapshot) {
    super(log, Option.empty(), snapshot);
  }

  public boolean isAsked() {
    return isAsked;
  }

  @Override
  public Tuple3<Option<VersionChecksum>, Commit, CurrentTransactionInfo> writeCommitFile(
      long version, Iterator<String> actions, CurrentTransactionInfo info) {
    isAsked = true;
    return super.writeCommitFile(version, actions, info);
  }

  @Override
  public boolean isCheckpointNeeded(long version, Snapshot snapshot) {
    return false;
  }
}
