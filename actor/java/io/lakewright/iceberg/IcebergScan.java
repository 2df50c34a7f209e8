package io.lakewright.iceberg;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.StructLikeWrapper;

/**
 * What is read of an Iceberg table and what a scan of it found, in one call each: every field of every file would take a
 * round trip from Python.
 */
public final class IcebergScan {
  private IcebergScan() {}

  /** Returns the tasks of the files of a snapshot that may pass a filter (null: all), with metrics of floats if asked. */
  public static List planned(Table table, long snapshot, Expression filter, boolean floats) throws IOException {
    TableScan scan = (TableScan) table.newScan().useSnapshot(snapshot).ignoreResiduals();
    List names = new ArrayList();
    if (floats) { // Those of the snapshot: a column that the table got since is none that its scan knows.
      addFloats(scan.schema().asStruct(), "", names);
    }
    scan = names.isEmpty() ? scan : (TableScan) scan.includeColumnStats(names);
    scan = filter == null ? scan : (TableScan) scan.filter(filter);
    List<FileScanTask> tasks = new ArrayList<>();
    try (CloseableIterable<FileScanTask> found = scan.planFiles()) {
      found.forEach(tasks::add);
    }
    return tasks;
  }

  /** Adds the names of columns of floats, which have metrics in manifests alone; those in lists and maps have none. */
  static void addFloats(Types.StructType struct, String above, List names) {
    for (Iterator one = struct.fields().iterator(); one.hasNext(); ) {
      Types.NestedField field = (Types.NestedField) one.next();
      Type.TypeID type = field.type().typeId();
      if (type == Type.TypeID.STRUCT) {
        addFloats(field.type().asStructType(), above + field.name() + ".", names);
      } else if (type == Type.TypeID.FLOAT || type == Type.TypeID.DOUBLE) {
        names.add(above + field.name());
      }
    }
  }

  /**
   * Returns, as JSON, of each scan task the path of its file, its size in bytes, its rows, its spec, its sequence number (null: not
   * known), how many delete files apply to it, which task is the first whose file has this spec and partition, the values
   * of that partition if it is the first and they have a form in JSON, its format, whether it is encrypted, and the id of
   * the order of its rows (0: none).
   */
  public static String rows(List tasks) throws IOException {
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
      List values = ofSpec.containsKey(partition) ? null : IcebergDeletes.values(file, task.spec().fields().size());
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
      row.add(values);
      row.add(file.format().name().toLowerCase(Locale.ROOT));
      row.add(Boolean.valueOf(file.keyMetadata() != null));
      row.add(file.sortOrderId() == null ? Integer.valueOf(0) : file.sortOrderId());
      rows.add(row);
    }
    return Json.text(rows);
  }

  /** Returns the tasks with these numbers, a JSON array. */
  public static List<FileScanTask> tasks(List<FileScanTask> tasks, String numbers) throws IOException {
    List<FileScanTask> found = new ArrayList<>();
    for (Number number : Json.numbers(numbers)) {
      found.add(tasks.get(number.intValue()));
    }
    return found;
  }

  /** Returns the files of the tasks with these numbers. */
  public static List<DataFile> files(List<FileScanTask> tasks, String numbers) throws IOException {
    List<DataFile> found = new ArrayList<>();
    tasks(tasks, numbers).forEach(task -> found.add(task.file()));
    return found;
  }

  /** Returns of the files of the tasks with these numbers the id of the first row, and the sequence number of the data. */
  public static List<List<Long>> lineage(List<FileScanTask> tasks, String numbers) throws IOException {
    List<List<Long>> found = new ArrayList<>();
    files(tasks, numbers).forEach(file -> found.add(Arrays.asList(file.firstRowId(), file.dataSequenceNumber())));
    return found;
  }

  /** Has a rewrite remove delete files of a snapshot, by path and (`#`) place of a vector in it; returns how many. */
  public static int removeDeletes(RewriteFiles rewrite, Table table, long snapshot, List ids) throws IOException {
    Set wanted = new HashSet(ids);
    int count = 0;
    List manifests = table.snapshot(snapshot).deleteManifests(table.io());
    for (int i = 0; i < manifests.size() && count < wanted.size(); i++) {
      ManifestReader live = ManifestFiles.readDeleteManifest((ManifestFile) manifests.get(i), table.io(), table.specs());
      try {
        for (Iterator one = live.iterator(); one.hasNext(); ) {
          DeleteFile file = (DeleteFile) one.next();
          String place = file.format() == FileFormat.PUFFIN ? "#" + file.contentOffset() : "";
          if (wanted.contains(file.location() + place)) {
            rewrite.deleteFile((DeleteFile) file.copy());
            count++;
          }
        }
      } finally {
        live.close();
      }
    }
    return count;
  }

  /** Has a rewrite remove the files of the tasks with these numbers. */
  public static void remove(RewriteFiles rewrite, List<FileScanTask> tasks, String numbers) throws IOException {
    files(tasks, numbers).forEach(rewrite::deleteFile);
  }

  /** Returns the size in bytes that the store says each of these files has now, null for one that is not there, as JSON. */
  public static String sizes(Table table, String paths) throws IOException {
    List<Long> sizes = new ArrayList<>();
    for (String path : Json.texts(paths)) {
      InputFile file = table.io().newInputFile(path); // Without a length, which it would return as it is.
      sizes.add(file.exists() ? Long.valueOf(file.getLength()) : null);
    }
    return Json.text(sizes);
  }
}
