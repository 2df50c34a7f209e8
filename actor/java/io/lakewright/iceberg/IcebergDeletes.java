package io.lakewright.iceberg;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataOperations;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotChanges;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Comparators;
import org.apache.iceberg.util.ContentFileUtil;
import org.apache.iceberg.util.Pair;
import org.apache.iceberg.util.PartitionMap;
import org.apache.iceberg.util.SnapshotUtil;

/** The delete files that apply to data files, each listed and described once: as many calls would each take a round trip. */
public final class IcebergDeletes {
  private final Map<Integer, PartitionSpec> specs;
  private final List<DeleteFile> files = new ArrayList<>();
  private final Map<String, Integer> numbers = new HashMap<>(); // By name.
  private final List<List<Integer>> applied = new ArrayList<>(); // By data file, those that apply to it.
  private final Set<String> removed = new HashSet<>(); // Paths of data files, and names of delete files.
  private final List<FileScanTask> tasks = new ArrayList<>();
  private final List<Integer> unapplied = new ArrayList<>();
  private final Set<String> twice = new TreeSet<>(); // Paths of data files, and names of delete files.

  private IcebergDeletes(Table table) {
    this.specs = table.specs();
  }

  /** Returns those that a scan found for the files of its tasks. */
  public static IcebergDeletes of(Table table, List<FileScanTask> tasks) {
    IcebergDeletes found = new IcebergDeletes(table);
    for (FileScanTask task : tasks) {
      List<Integer> ofTask = new ArrayList<>();
      task.deletes().forEach(delete -> ofTask.add(found.number(delete)));
      found.applied.add(ofTask);
    }
    return found;
  }

  /**
   * Returns the deletes by position that are live in a snapshot, with the tasks of the data files that they apply to, and
   * all that apply to no data file; null if there are more pairs of such a data file and what applies to it.
   */
  public static IcebergDeletes live(Table table, long snapshot, long mostPairs) throws IOException {
    IcebergDeletes found = new IcebergDeletes(table);
    PartitionMap<Long> oldest = PartitionMap.create(table.specs()); // Sequence number of a data file of each partition.
    long first = Long.MAX_VALUE;
    long pairs = 0;
    Set<String> paths = new HashSet<>();
    Set<String> needed = new HashSet<>();
    try (CloseableIterable<FileScanTask> planned = table.newScan().useSnapshot(snapshot).ignoreResiduals().planFiles()) {
      for (FileScanTask task : planned) {
        DataFile file = task.file();
        found.noteTwice(file.location(), paths);
        first = Math.min(first, file.dataSequenceNumber());
        oldest.merge(Pair.of(file.specId(), file.partition()), file.dataSequenceNumber(), Math::min);
        task.deletes().forEach(delete -> needed.add(name(delete)));
        List<Integer> ofTask = found.byPosition(task);
        pairs += ofTask.size();
        if (pairs > mostPairs) {
          return null;
        }
        if (!ofTask.isEmpty()) {
          found.tasks.add(task);
          found.applied.add(ofTask);
        }
      }
    }
    Set<String> names = new HashSet<>();
    for (ManifestFile manifest : table.snapshot(snapshot).deleteManifests(table.io())) {
      try (ManifestReader<DeleteFile> live = ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs())) {
        for (DeleteFile one : live) {
          found.noteTwice(name(one), names);
          boolean isOfAll = table.specs().get(one.specId()).isUnpartitioned();
          Long older = isOfAll ? Long.valueOf(first) : oldest.get(one.specId(), one.partition());
          // A scan leaves out what deletes no value of a file by the bounds of its columns; another's may not.
          boolean isNeeded = one.content() == FileContent.EQUALITY_DELETES && older != null && older < one.dataSequenceNumber();
          if (!needed.contains(name(one)) && !isNeeded) {
            found.unapplied.add(found.number(one.copy()));
          }
        }
      }
    }
    return found;
  }

  /**
   * Returns the deletes by value that are live in a snapshot, and the tasks of all data files that are old enough for one of
   * them, whatever bounds say, with what applies to these by position if it is asked for; null if these files and such pairs
   * are more than that.
   */
  public static IcebergDeletes byValue(Table table, long snapshot, boolean positions, long most) throws IOException {
    IcebergDeletes found = new IcebergDeletes(table);
    PartitionMap<Long> newest = PartitionMap.create(table.specs()); // Sequence number of a delete file of each partition.
    long newestOfAll = found.noteValues(table, snapshot, newest);
    if (found.files.isEmpty()) {
      return found;
    }
    Set<String> paths = new HashSet<>();
    long held = 0;
    try (CloseableIterable<FileScanTask> planned = table.newScan().useSnapshot(snapshot).ignoreResiduals().planFiles()) {
      for (FileScanTask task : planned) {
        DataFile file = task.file();
        found.noteTwice(file.location(), paths);
        Long ofPartition = newest.get(file.specId(), file.partition());
        boolean isOlder = Math.max(newestOfAll, ofPartition == null ? 0 : ofPartition) > file.dataSequenceNumber();
        if (!isOlder && task.deletes().stream().noneMatch(one -> one.content() == FileContent.EQUALITY_DELETES)) {
          continue;
        }
        List<Integer> ofTask = positions ? found.byPosition(task) : new ArrayList<>();
        held += 1 + ofTask.size();
        if (held > most) {
          return null;
        }
        found.tasks.add(task);
        found.applied.add(ofTask);
      }
    }
    return found;
  }

  /** Lists the deletes by value, notes the newest of each partition, and returns the newest number of those of all files. */
  private long noteValues(Table table, long snapshot, PartitionMap<Long> newest) throws IOException {
    Set<String> names = new HashSet<>();
    long newestOfAll = 0;
    for (ManifestFile manifest : table.snapshot(snapshot).deleteManifests(table.io())) {
      try (ManifestReader<DeleteFile> live = ManifestFiles.readDeleteManifest(manifest, table.io(), specs)) {
        for (DeleteFile one : live) {
          noteTwice(name(one), names);
          if (one.content() != FileContent.EQUALITY_DELETES) {
            continue;
          }
          number(one.copy());
          if (specs.get(one.specId()).isUnpartitioned()) {
            newestOfAll = Math.max(newestOfAll, one.dataSequenceNumber());
          } else {
            newest.merge(Pair.of(one.specId(), one.copy().partition()), one.dataSequenceNumber(), Math::max);
          }
        }
      }
    }
    return newestOfAll;
  }

  /**
   * Returns the path of a data file for which the scan found one of these deletes by value that is not among those `applied`
   * to it; null: there is none. `files`: JSON array of the numbers of tasks; `applied`: the numbers of the deletes of each.
   */
  public String uncovered(String files, String applied) throws IOException {
    int[] numbersOfTasks = Json.read(files, int[].class);
    int[][] ofTasks = Json.read(applied, int[][].class);
    BitSet asked = new BitSet();
    Map<Integer, BitSet> known = new HashMap<>();
    for (int i = 0; i < numbersOfTasks.length; i++) {
      BitSet ofTask = new BitSet();
      Arrays.stream(ofTasks[i]).forEach(ofTask::set);
      asked.or(ofTask);
      known.put(numbersOfTasks[i], ofTask);
    }
    BitSet none = new BitSet();
    for (int i = 0; i < tasks.size(); i++) {
      for (DeleteFile delete : tasks.get(i).deletes()) {
        Integer number = numbers.get(name(delete));
        if (number != null && asked.get(number) && !known.getOrDefault(i, none).get(number)) {
          return tasks.get(i).file().location();
        }
      }
    }
    return null;
  }

  private List<Integer> byPosition(FileScanTask task) {
    List<Integer> found = new ArrayList<>();
    for (DeleteFile delete : task.deletes()) {
      if (delete.content() == FileContent.POSITION_DELETES) {
        found.add(number(delete));
      }
    }
    return found;
  }

  private void noteTwice(String one, Set<String> seen) {
    if (!seen.add(one)) {
      twice.add(one);
    }
  }

  /** Returns the tasks of the data files that any of those that are live apply to. */
  public List<FileScanTask> tasks() {
    return tasks;
  }

  /**
   * Returns those by position that the snapshots after one, up to a later one, added for data files, and what they removed:
   * read from the manifests that each of them wrote. Null if there are more snapshots than that, or others between.
   */
  public static IcebergDeletes since(Table table, long before, long until, int atMost, List<FileScanTask> tasks) {
    List<Snapshot> later = new ArrayList<>();
    for (Snapshot one : SnapshotUtil.ancestorsOf(until, table::snapshot)) {
      if (one.snapshotId() == before) {
        IcebergDeletes found = new IcebergDeletes(table);
        tasks.forEach(task -> found.applied.add(new ArrayList<>()));
        for (int i = later.size() - 1; i >= 0; i--) {
          found.add(table, later.get(i), tasks);
        }
        return found;
      }
      later.add(one);
      if (later.size() > atMost) {
        return null;
      }
    }
    return null;
  }

  private void add(Table table, Snapshot snapshot, List<FileScanTask> tasks) {
    if (DataOperations.APPEND.equals(snapshot.operation())) {
      return; // It may neither remove files nor add deletes.
    }
    SnapshotChanges changes = SnapshotChanges.builderFor(table).snapshot(snapshot).build();
    changes.removedDataFiles().forEach(file -> removed.add(file.location()));
    changes.removedDeleteFiles().forEach(file -> removed.add(name(file)));
    for (DeleteFile delete : changes.addedDeleteFiles()) {
      removed.remove(name(delete));
      for (int i = 0; i < tasks.size(); i++) {
        if (delete.content() == FileContent.POSITION_DELETES && mayApply(delete, (DataFile) tasks.get(i).file())) {
          applied.get(i).add(number(delete));
        }
      }
    }
  }

  /** Returns whether Iceberg's readers take a delete file by position into account for a data file. */
  private boolean mayApply(DeleteFile delete, DataFile file) {
    if (delete.dataSequenceNumber().longValue() < file.dataSequenceNumber().longValue()) {
      return false;
    }
    CharSequence only = ContentFileUtil.referencedDataFile(delete);
    if (only != null) {
      return only.toString().equals(file.location());
    }
    Comparator<StructLike> order = Comparators.forType(specs.get(file.specId()).partitionType());
    return delete.specId() == file.specId() && order.compare(delete.partition(), file.partition()) == 0;
  }

  private Integer number(DeleteFile delete) {
    return numbers.computeIfAbsent(name(delete), one -> {
      files.add(delete);
      return files.size() - 1;
    });
  }

  /** Returns the path of a delete file and, of a vector, its place there: a file may hold several. */
  static String name(DeleteFile delete) {
    return delete.location() + (delete.format() == FileFormat.PUFFIN ? "#" + delete.contentOffset() : "");
  }

  public DeleteFile get(int number) {
    return files.get(number);
  }

  /**
   * Returns, as JSON, of all `files` the name, size in bytes, rows, spec, the values of the partition if they have a form in
   * JSON, the one data file that a delete by position is of, the sequence number, the ids of columns of a delete by value,
   * the format, and the place in its file of a vector; the numbers of those `applied` to each data file, as pairs of the
   * first and the number of successive ones that are by value, or not; of those that are live and `unapplied`; what was
   * `removed`; and what is live `twice`.
   */
  public String text() throws IOException {
    List<Object> rows = new ArrayList<>();
    for (DeleteFile file : files) {
      boolean isVector = file.format() == FileFormat.PUFFIN;
      rows.add(Arrays.asList(name(file), isVector ? file.contentSizeInBytes() : (Long) file.fileSizeInBytes(),
          file.recordCount(), file.specId(), values(file, specs.get(file.specId()).fields().size()),
          ContentFileUtil.referencedDataFileLocation(file), file.dataSequenceNumber(), file.equalityFieldIds(),
          file.format().name().toLowerCase(Locale.ROOT), file.contentOffset()));
    }
    Map<String, Object> found = new LinkedHashMap<>();
    found.put("files", rows);
    found.put("applied", applied.stream().map(this::runs).collect(Collectors.toList()));
    found.put("unapplied", unapplied);
    found.put("removed", removed);
    found.put("twice", twice);
    return Json.text(found);
  }

  /** Thousands may apply to each of thousands of data files, in the order of their numbers. */
  private List<int[]> runs(List<Integer> ofFile) {
    List<int[]> runs = new ArrayList<>();
    int[] run = null;
    for (int number : ofFile) {
      if (run != null && run[0] + run[1] == number && isByValue(run[0]) == isByValue(number)) {
        run[1]++;
      } else {
        run = new int[] {number, 1};
        runs.add(run);
      }
    }
    return runs;
  }

  private boolean isByValue(int number) {
    return files.get(number).content() == FileContent.EQUALITY_DELETES;
  }

  /** Returns the values of a file's partition, null if one of them has no form in JSON. */
  static List<Object> values(ContentFile<?> file, int fields) {
    List<Object> values = new ArrayList<>();
    for (int i = 0; i < fields; i++) {
      Object value = file.partition().get(i, Object.class);
      if (value != null && !(value instanceof Integer || value instanceof Long || value instanceof String)) {
        return null;
      }
      values.add(value);
    }
    return values;
  }
}
