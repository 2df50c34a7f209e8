package io.lakewright.iceberg;

import org.apache.iceberg.BaseTable;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/**
 * The operations of a table for one commit, which say whether the catalog was asked for it: a commit that fails before was
 * certainly not made.
 */
public final class WatchedCommit implements TableOperations {
  private final TableOperations table;
  private volatile boolean isAsked;
  private Long upon;

  public WatchedCommit(BaseTable table) {
    this.table = table.operations();
  }

  /** Begins a rewrite of the table, to be committed through this. */
  public RewriteFiles newRewrite(BaseTable of) {
    return new BaseTable(this, of.name(), of.reporter()).newRewrite();
  }

  /** Lets nothing be committed unless this snapshot is main's newest one then: what was found of it holds of no other. */
  public void requireSnapshot(long snapshot) {
    upon = Long.valueOf(snapshot);
  }

  public boolean isAsked() {
    return isAsked;
  }

  public void commit(TableMetadata base, TableMetadata metadata) {
    Snapshot newest = base.currentSnapshot();
    if (upon != null && (newest == null || newest.snapshotId() != upon.longValue())) {
      throw new ValidationException("snapshot %s is no longer the newest one", upon);
    }
    isAsked = true;
    table.commit(base, metadata);
  }

  public TableMetadata current() {
    return table.current();
  }

  public TableMetadata refresh() {
    return table.refresh();
  }

  public FileIO io() {
    return table.io();
  }

  public EncryptionManager encryption() {
    return table.encryption();
  }

  public String metadataFileLocation(String fileName) {
    return table.metadataFileLocation(fileName);
  }

  public LocationProvider locationProvider() {
    return table.locationProvider();
  }

  public TableOperations temp(TableMetadata uncommitted) {
    return table.temp(uncommitted);
  }

  public long newSnapshotId() {
    return table.newSnapshotId();
  }

  public boolean requireStrictCleanup() {
    return table.requireStrictCleanup();
  }
}
