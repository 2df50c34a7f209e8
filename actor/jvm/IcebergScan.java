package io.lakewright;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.util.StructLikeWrapper;

/**
 * What is read of an Iceberg table and what a scan of it found, in one call each: every field of every file would take a
 * round trip from Python.
 */
public final class IcebergScan {
  private IcebergScan() {}

  /**
   * Returns what distinguishes the metadata of a table, as they were last read, from any others of a table at its place;
   * empty if nothing does.
   */
  public static String identity(HasTableOperations table) {
    TableMetadata current = table.operations().current();
    String file = current.metadataFileLocation();
    return file == null ? "" : current.uuid() + " " + current.lastUpdatedMillis() + " " + file;
  }

  /**
   * Returns of each scan task the path of its file, its size in bytes, its rows, its spec, its sequence number (null: not
   * known), how many delete files apply to it, which task is the first whose file has this spec and partition, its format,
   * whether it is encrypted, and the id of the order of its rows (0: none).
   */
  public static List rows(List tasks) {
    Map wrappers = new HashMap(); // One for each spec, which compares its partitions.
    Map firsts = new HashMap();
    List rows = new ArrayList();
    for (int i = 0; i < tasks.size(); i++) {
      FileScanTask task = (FileScanTask) tasks.get(i);
      DataFile file = (DataFile) task.file();
      Integer spec = Integer.valueOf(file.specId());
      if (!wrappers.containsKey(spec)) {
        wrappers.put(spec, StructLikeWrapper.forType(task.spec().partitionType()));
        firsts.put(spec, new HashMap());
      }
      Map ofSpec = (Map) firsts.get(spec);
      StructLikeWrapper partition = ((StructLikeWrapper) wrappers.get(spec)).copyFor(file.partition());
      if (!ofSpec.containsKey(partition)) {
        ofSpec.put(partition, Integer.valueOf(i));
      }
      List row = new ArrayList();
      row.add(file.location());
      row.add(Long.valueOf(file.fileSizeInBytes()));
      row.add(Long.valueOf(file.recordCount()));
      row.add(spec);
      row.add(file.fileSequenceNumber());
      row.add(Integer.valueOf(task.deletes().size()));
      row.add(ofSpec.get(partition));
      row.add(file.format().name().toLowerCase(Locale.ROOT));
      row.add(Boolean.valueOf(file.keyMetadata() != null));
      row.add(file.sortOrderId() == null ? Integer.valueOf(0) : file.sortOrderId());
      rows.add(row);
    }
    return rows;
  }

  /** Returns the tasks with these numbers. */
  public static List tasks(List tasks, List numbers) {
    List found = new ArrayList();
    for (int i = 0; i < numbers.size(); i++) {
      found.add(tasks.get(((Number) numbers.get(i)).intValue()));
    }
    return found;
  }

  /** Returns the files of the tasks with these numbers. */
  public static List files(List tasks, List numbers) {
    List found = tasks(tasks, numbers);
    for (int i = 0; i < found.size(); i++) {
      found.set(i, ((FileScanTask) found.get(i)).file());
    }
    return found;
  }

  /** Has a rewrite remove the files of the tasks with these numbers; returns how many. */
  public static int remove(RewriteFiles rewrite, List tasks, List numbers) {
    List files = files(tasks, numbers);
    for (int i = 0; i < files.size(); i++) {
      rewrite.deleteFile((DataFile) files.get(i));
    }
    return files.size();
  }
}
