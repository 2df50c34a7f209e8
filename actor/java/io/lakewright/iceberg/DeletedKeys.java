package io.lakewright.iceberg;

import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.data.IdentityPartitionConverters;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.Deletes;
import org.apache.iceberg.deletes.PositionDeleteIndex;
import org.apache.iceberg.formats.FormatModelRegistry;
import org.apache.iceberg.formats.ReadBuilder;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.mapping.NameMapping;
import org.apache.iceberg.mapping.NameMappingParser;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.util.PartitionUtil;
import org.apache.iceberg.util.StructLikeMap;

/**
 * The keys that delete files by value name, each with the newest of the files that do: it deletes a row of that key in every
 * older data file. So each file is read once, however many of the ones apply to the others. Iceberg's own reader of records
 * reads them, and its own comparison finds a key: null equals null.
 */
final class DeletedKeys {
  private final Table table;
  private final NameMapping mapping; // Of files without field ids; null: none.
  private final List<DeleteFile> deletes;
  private final Map<Set<Integer>, StructLikeMap<Integer>> newest = new HashMap<>(); // By the ids of the columns of keys.

  private final long mostText;
  private long text; // Characters of the keys.

  /**
   * Reads the keys of delete files, which apply to the same partition, or all to every file; all of them are kept, at most so
   * many characters of text.
   */
  DeletedKeys(Table table, List<DeleteFile> deletes, long mostText) throws IOException {
    this.table = table;
    this.mostText = mostText;
    String names = table.properties().get(TableProperties.DEFAULT_NAME_MAPPING);
    this.mapping = names == null ? null : NameMappingParser.fromJson(names);
    this.deletes = deletes;
    for (int i = 0; i < deletes.size(); i++) {
      int number = i;
      FileReading.of(deletes.get(i).location(), () -> note(number));
    }
  }

  private Void note(int number) throws IOException {
    DeleteFile delete = deletes.get(number);
    Schema keys = keys(new HashSet<>(delete.equalityFieldIds()));
    StructLikeMap<Integer> numbers =
        newest.computeIfAbsent(new HashSet<>(delete.equalityFieldIds()), ids -> StructLikeMap.create(keys.asStruct()));
    InternalRecordWrapper values = new InternalRecordWrapper(keys.asStruct());
    InputFile file = table.io().newInputFile(delete);
    long rows = 0;
    try (CloseableIterable<Record> found = reader(file, keys).build()) {
      for (Record row : found) {
        requireRows(delete.location(), ++rows, delete.recordCount(), rows > delete.recordCount());
        requireText(delete.location(), row);
        numbers.merge(values.copyFor(row), number, this::newer);
      }
    }
    requireRows(delete.location(), rows, delete.recordCount(), rows != delete.recordCount());
    return null;
  }

  private void requireText(String path, Record row) {
    for (int i = 0; i < row.size(); i++) {
      text += row.get(i) instanceof CharSequence ? row.get(i, CharSequence.class).length() : 0;
    }
    if (text > mostText) {
      throw new UnsupportedOperationException("Cannot hold the keys of " + path + " in memory: with those before it, they are "
          + "text of more than " + mostText + " characters");
    }
  }

  private Integer newer(Integer one, Integer other) {
    return sequence(one) >= sequence(other) ? one : other;
  }

  private long sequence(int number) {
    return deletes.get(number).dataSequenceNumber();
  }

  /** Returns the positions of the rows of a task's data file that are deleted by their keys. */
  PositionDeleteIndex rowsOf(FileScanTask task) throws IOException {
    PositionDeleteIndex deleted = Deletes.toPositionIndex(CloseableIterable.empty());
    Set<String> planned = new HashSet<>();
    task.deletes().forEach(one -> planned.add(one.location()));
    for (Map.Entry<Set<Integer>, StructLikeMap<Integer>> one : newest.entrySet()) {
      FileReading.of(task.file().location(), () -> note(task, keys(one.getKey()), one.getValue(), planned, deleted));
    }
    return deleted;
  }

  private Void note(
      FileScanTask task, Schema keys, StructLikeMap<Integer> numbers, Set<String> planned, PositionDeleteIndex deleted)
      throws IOException {
    DataFile file = task.file();
    InternalRecordWrapper values = new InternalRecordWrapper(keys.asStruct());
    ReadBuilder<Record, Object> reader = reader(table.io().newInputFile(file), keys).reuseContainers()
        .idToConstant(PartitionUtil.constantsMap(task, IdentityPartitionConverters::convertConstant));
    long position = 0;
    try (CloseableIterable<Record> found = reader.build()) {
      for (Record row : found) {
        Integer number = numbers.get(values.wrap(row));
        if (number != null && sequence(number) > file.dataSequenceNumber()) {
          requirePlanned(file, deletes.get(number), planned);
          deleted.delete(position);
        }
        position++;
      }
    }
    requireRows(file.location(), position, file.recordCount(), position != file.recordCount());
    return null;
  }

  /** Readers that go by the bounds of columns must see what others see: a delete file that names a row is in the scan. */
  private static void requirePlanned(DataFile file, DeleteFile delete, Set<String> planned) {
    if (!planned.contains(delete.location())) {
      throw new UnsupportedOperationException("Readers see different rows: by their bounds no row of "
          + file.location() + " is deleted by " + delete.location() + ", and by its values one is");
    }
  }

  private static void requireRows(String path, long rows, long expected, boolean isOther) {
    if (isOther) {
      throw new UnsupportedOperationException(
          "Cannot read " + path + ": its manifest says " + expected + " rows, and it has " + rows + " or more");
    }
  }

  private Schema keys(Set<Integer> ids) {
    return TypeUtil.select(table.schema(), ids);
  }

  private ReadBuilder<Record, Object> reader(InputFile file, Schema keys) {
    ReadBuilder<Record, Object> reader = FormatModelRegistry.readBuilder(FileFormat.PARQUET, Record.class, file);
    return mapping == null ? reader.project(keys) : reader.project(keys).withNameMapping(mapping);
  }
}
