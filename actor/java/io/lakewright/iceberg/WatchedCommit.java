package io.lakewright.iceberg;

import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotChanges;
import org.apache.iceberg.SnapshotSummary;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.exceptions.CleanableFailure;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.util.ContentFileUtil;
import org.apache.iceberg.util.SnapshotUtil;

/**
 * The operations of a table for one commit, which say whether the catalog was asked for it: a commit that fails before was
 * certainly not made. The catalog is asked once: where others were faster, Iceberg itself would wait, as long as the table
 * says, and longer each time.
 */
public final class WatchedCommit implements TableOperations {
  private final BaseTable named;
  private final TableOperations table;
  private final int formatVersion; // Of the metadata that were read last.
  private volatile boolean isAsked;
  private boolean isMade;
  private Long upon;
  private String metadata; // The metadata file that the commit is made upon.
  private Long checked;
  private Long outputs; // Sequence number of new data files.
  private Set<String> inputs = Collections.emptySet(); // Paths of data files.

  public WatchedCommit(BaseTable table) {
    this.named = table;
    this.table = table.operations();
    this.formatVersion = this.table.current().formatVersion();
  }

  /** Begins a rewrite of the table, to be committed through this. */
  public RewriteFiles newRewrite(BaseTable of) {
    return new BaseTable(this, of.name(), of.reporter()).newRewrite();
  }

  /** Begins a change of data files, to be committed through this. */
  public OverwriteFiles newOverwrite(BaseTable of) {
    return new BaseTable(this, of.name(), of.reporter()).newOverwrite();
  }

  /** Begins a change of deleted rows, to be committed through this. */
  public RowDelta newRowDelta(BaseTable of) {
    return new BaseTable(this, of.name(), of.reporter()).newRowDelta();
  }

  /** Lets nothing be committed unless these are the newest metadata then: whatever others change makes them others. */
  public void requireMetadata(String path) {
    metadata = path;
  }

  /** Lets nothing be committed unless this snapshot is main's newest one then: what was found of it holds of no other. */
  public void requireSnapshot(long snapshot) {
    upon = Long.valueOf(snapshot);
  }

  /**
   * Lets nothing be committed if a snapshot after this one removed deletes of these data files: rows that were left out may
   * be visible again, which Iceberg itself does not ask for.
   */
  public void requireDeletes(long snapshot, List<String> paths) {
    checked = Long.valueOf(snapshot);
    inputs = new HashSet<>(paths);
  }

  /**
   * Lets nothing be committed that removes a later delete by value than this sequence number, that of the new data files:
   * Iceberg drops delete files older than all data files that were there, and does not count new ones (its #10962).
   */
  public void requireLaterDeletes(long sequenceNumber) {
    outputs = Long.valueOf(sequenceNumber);
  }

  private void checkLaterDeletes(TableMetadata base, TableMetadata made) {
    if (outputs == null || "0".equals(base.currentSnapshot().summary().get(SnapshotSummary.TOTAL_EQ_DELETES_PROP))) {
      return;
    }
    SnapshotChanges changes = SnapshotChanges.builderFor(named).snapshot(made.currentSnapshot()).build();
    for (DeleteFile delete : changes.removedDeleteFiles()) {
      Long number = delete.dataSequenceNumber();
      if (delete.content() == FileContent.EQUALITY_DELETES && (number == null || number > outputs)) {
        throw new DeletesDroppedException(delete.location());
      }
    }
  }

  private void checkDeletes(TableMetadata base) {
    if (checked == null) {
      return;
    }
    for (Snapshot one : SnapshotUtil.ancestorsOf(base.currentSnapshot().snapshotId(), base::snapshot)) {
      if (one.snapshotId() == checked.longValue()) {
        return;
      }
      SnapshotChanges changes = SnapshotChanges.builderFor(named).snapshot(one).build();
      for (DeleteFile delete : changes.removedDeleteFiles()) {
        String only = ContentFileUtil.referencedDataFileLocation(delete);
        ValidationException.check(only != null && !inputs.contains(only), "deletes were removed: %s", delete.location());
      }
    }
  }

  public boolean isAsked() {
    return isAsked;
  }

  public void commit(TableMetadata base, TableMetadata made) {
    Snapshot newest = base.currentSnapshot();
    if (upon != null && (newest == null || newest.snapshotId() != upon.longValue())) {
      throw new ValidationException("snapshot %s is no longer the newest one", upon);
    }
    ValidationException.check(metadata == null || metadata.equals(base.metadataFileLocation()), "the metadata changed");
    ValidationException.check(base.formatVersion() == formatVersion, "the format version is %s now", base.formatVersion());
    checkDeletes(base);
    checkLaterDeletes(base, made);
    isAsked = true;
    try {
      table.commit(base, made);
      isMade = true;
    } catch (CommitFailedException failure) {
      throw new OthersFirstException(failure);
    }
  }

  public TableMetadata current() {
    return table.current();
  }

  /** Returns the newest metadata, and after the commit those that it left: the catalog has answered with them. */
  public TableMetadata refresh() {
    return isMade ? table.current() : table.refresh();
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

  /** Iceberg would drop a delete file whose rows the new data files hold. */
  private static final class DeletesDroppedException extends RuntimeException implements CleanableFailure {
    private static final long serialVersionUID = 1L;

    DeletesDroppedException(String file) {
      super("later deletes would be dropped: " + file);
    }
  }

  /** Others were faster, and the commit was not made: Iceberg deletes its files, and the caller tries again. */
  private static final class OthersFirstException extends RuntimeException implements CleanableFailure {
    private static final long serialVersionUID = 1L;

    OthersFirstException(CommitFailedException failure) {
      super(failure);
    }
  }
}
