package io.lakewright.iceberg;

import io.lakewright.parquet.HiddenRows;
import io.lakewright.spark.Json;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.ObjLongConsumer;
import java.util.function.Supplier;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileMetadata;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.BaseDeleteLoader;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.Deletes;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteIndex;
import org.apache.iceberg.deletes.SortingPositionOnlyDeleteWriter;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.types.Comparators;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.CharSequenceMap;

/**
 * Reads the rows that files of positions and vectors name, with Iceberg's own loader, and writes such files. What was read
 * of a file is kept: files never change, and each attempt of a commit asks for the same ones.
 */
public final class IcebergRows {
  private static final int PATH = MetadataColumns.DELETE_FILE_PATH.fieldId();

  private final Table table;
  private final long atMost;
  private final Loader loader;

  /** Rows of the files of a table; at most so many are kept of a file, or returned for one. */
  public IcebergRows(Table table, long atMost) {
    this.table = table;
    this.atMost = atMost;
    this.loader = new Loader(table, atMost);
  }

  /** Returns the positions in a data file that these delete files name, ascending, as a JSON array; null: too many. */
  public String named(String path, List<DeleteFile> deletes) throws IOException {
    PositionDeleteIndex rows = loader.loadPositionDeletes(naming(deletes, path), path);
    if (rows.cardinality() > atMost) {
      return null;
    }
    List<Long> positions = new ArrayList<>();
    rows.forEach(positions::add);
    return Json.text(positions);
  }

  /** Returns whether a file of positions names rows of this data file alone; false if it has more than that to be read. */
  public static boolean isOfOneFile(Table table, DeleteFile delete, String path, long atMost) {
    if (delete.recordCount() > atMost) {
      return false;
    }
    Loader loader = new Loader(table, atMost);
    loader.loadPositionDeletes(Collections.singletonList(delete), path);
    CharSequenceMap<PositionDeleteIndex> named = loader.kept(delete);
    return named.isEmpty() || named.size() == 1 && named.containsKey(path);
  }

  /**
   * Writes, of each of these data files, the rows that delete files name: a vector, or for format version 2 a file of
   * positions, each in a file of its own: DuckDB 1.5 mistakes one vector of a file for another. `numbers` is a JSON array
   * with the numbers of the deletes of each. Returns what was written in the order of the data files, null for one of which
   * no row is named.
   */
  public List<DeleteFile> merged(List<DataFile> files, IcebergDeletes deletes, String numbers, boolean vectors)
      throws IOException {
    int[][] ofFiles = Json.read(numbers, int[][].class);
    return written(files.size(), i -> {
      List<DeleteFile> named = new ArrayList<>();
      for (int number : ofFiles[i]) {
        named.add(deletes.get(number));
      }
      PositionDeleteIndex rows = loaded(named, files.get(i).location());
      return rows.isEmpty() ? null : hide(files.get(i), rows, vectors);
    });
  }

  /**
   * Writes, of the data file of each of these tasks, the rows that delete files by value hide, which `numbers` name, a JSON
   * array: in a file of positions, or in a vector with all that is hidden there by position, too. At most so many characters
   * of keys are held. Returns what was written in the order of the tasks, null for one of which no row is hidden by value.
   */
  public List<DeleteFile> converted(
      List<FileScanTask> tasks, IcebergDeletes deletes, String numbers, boolean vectors, long mostText) throws IOException {
    List<DeleteFile> values = new ArrayList<>();
    for (int number : Json.read(numbers, int[].class)) {
      values.add(deletes.get(number));
    }
    DeletedKeys keys = new DeletedKeys(table, values, mostText);
    return written(tasks.size(), i -> {
      FileScanTask task = tasks.get(i);
      PositionDeleteIndex rows = keys.rowsOf(task);
      if (rows.isEmpty()) {
        return null;
      }
      if (vectors) { // Readers ignore all files of positions beside it.
        String path = task.file().location();
        rows.merge(loaded(naming(task.deletes(), path), path));
      }
      return hide(task.file(), rows, vectors);
    });
  }

  /**
   * Returns the rows of the data files of these tasks, of one partition, that any delete file hides; null where that is not
   * found exactly, they are more than may be kept, or files by value have more keys than that or characters of text.
   */
  public HiddenRows hidden(List<FileScanTask> tasks, long mostText) throws IOException {
    Map<String, DeleteFile> values = new LinkedHashMap<>();
    for (FileScanTask task : tasks) {
      for (DeleteFile delete : task.deletes()) {
        if (delete.content() == FileContent.EQUALITY_DELETES) {
          values.put(delete.location(), delete);
        }
      }
    }
    if (values.values().stream().mapToLong(DeleteFile::recordCount).sum() > atMost) {
      return null;
    }
    try {
      DeletedKeys keys = new DeletedKeys(table, new ArrayList<>(values.values()), mostText);
      long[][] positions = new long[tasks.size()][];
      long count = 0;
      for (int i = 0; i < positions.length; i++) {
        positions[i] = hidden(tasks.get(i), keys);
        count += positions[i].length;
        if (count > atMost) {
          return null;
        }
      }
      return new HiddenRows(positions);
    } catch (UnsupportedOperationException unclear) {
      return null;
    }
  }

  private long[] hidden(FileScanTask task, DeletedKeys keys) throws IOException {
    String path = task.file().location();
    List<DeleteFile> named = naming(task.deletes(), path);
    PositionDeleteIndex rows = keys.rowsOf(task);
    if (!named.isEmpty()) {
      rows.merge(loaded(named, path));
    }
    long[] positions = new long[(int) rows.cardinality()];
    int[] next = {0};
    rows.forEach(position -> positions[next[0]++] = position);
    return positions;
  }

  private PositionDeleteIndex loaded(List<DeleteFile> deletes, String path) throws IOException {
    return FileReading.of("the deletes of " + path, () -> loader.loadPositionDeletes(deletes, path));
  }

  private interface Writer {
    DeleteFile write(int number) throws IOException;
  }

  /** Writes so many delete files, some of which may be null; leaves none if one fails. */
  private List<DeleteFile> written(int count, Writer writer) throws IOException {
    List<DeleteFile> written = new ArrayList<>();
    try {
      for (int i = 0; i < count; i++) {
        written.add(writer.write(i));
      }
    } catch (IOException | RuntimeException | Error failure) { // Memory may be short.
      written.stream().filter(Objects::nonNull).forEach(one -> delete(one.location(), failure));
      throw failure;
    }
    return written;
  }

  /** Returns the delete files by position that may name rows of a data file. */
  private static List<DeleteFile> naming(List<DeleteFile> deletes, String path) {
    List<DeleteFile> named = new ArrayList<>(deletes);
    named.removeIf(one -> one.content() != FileContent.POSITION_DELETES || !mayName(one, path));
    return named;
  }

  /** Returns whether the bounds of the paths in a delete file, as far as they are known, can hold a path. */
  private static boolean mayName(DeleteFile delete, String path) {
    ByteBuffer low = bound(delete.lowerBounds());
    ByteBuffer high = bound(delete.upperBounds());
    return (low == null || compare(low, path) <= 0) && (high == null || compare(high, path) >= 0);
  }

  private static ByteBuffer bound(Map<Integer, ByteBuffer> bounds) {
    return bounds == null ? null : bounds.get(PATH);
  }

  private static int compare(ByteBuffer bound, String path) {
    CharSequence found = Conversions.fromByteBuffer(Types.StringType.get(), bound);
    return Comparators.charSequences().compare(found, path);
  }

  /** Writes a vector (or, for format version 2, a file of positions) that hides these rows of a file, a JSON array. */
  public DeleteFile hide(DataFile file, String positions, boolean vector) throws IOException {
    List<Number> rows = Json.numbers(positions);
    CloseableIterable<Long> places = CloseableIterable.transform(CloseableIterable.withNoopClose(rows), Number::longValue);
    return hide(file, Deletes.toPositionIndex(places), vector);
  }

  private DeleteFile hide(DataFile file, PositionDeleteIndex rows, boolean vector) throws IOException {
    return vector ? vector(file, rows)
        : positions(file, file.location(), hidden -> rows.forEach(row -> hidden.accept(file.location(), row)));
  }

  /**
   * Writes a file of positions with the rows that another one names in other files than these; returns null if there are
   * none, and throws for one of which more rows would have to be kept than may be.
   */
  public DeleteFile without(DeleteFile shared, List<String> paths) throws IOException {
    loader.loadPositionDeletes(Collections.singletonList(shared), paths.get(0));
    CharSequenceMap<PositionDeleteIndex> rest = CharSequenceMap.create();
    rest.putAll(loader.kept(shared));
    paths.forEach(rest::remove);
    if (rest.isEmpty()) {
      return null;
    }
    String only = rest.size() > 1 ? null : rest.keySet().iterator().next().toString();
    return positions(shared, only,
        hidden -> rest.forEach((path, rows) -> rows.forEach(row -> hidden.accept(path, row))));
  }

  private DeleteFile vector(DataFile of, PositionDeleteIndex rows) throws IOException {
    String operation = UUID.randomUUID().toString();
    try {
      BaseDVFileWriter writer = new BaseDVFileWriter(files(FileFormat.PUFFIN, operation), path -> null);
      writer.delete(of.location(), rows, spec(of), of.partition());
      writer.close();
      return writer.result().deleteFiles().get(0);
    } catch (IOException | RuntimeException | Error failure) {
      // The writer keeps the name to itself: the first one of this operation.
      delete(files(FileFormat.PUFFIN, operation).newOutputFile().encryptingOutputFile().location(), failure);
      throw failure;
    }
  }

  /** Writes a file of positions beside another file; only: the one data file whose rows it names, null for several. */
  private DeleteFile positions(ContentFile<?> beside, String only, Consumer<ObjLongConsumer<CharSequence>> rows)
      throws IOException {
    PartitionSpec spec = spec(beside);
    EncryptedOutputFile file = newFile(beside, FileFormat.PARQUET);
    try {
      GenericFileWriterFactory made =
          new GenericFileWriterFactory.Builder(table).deleteFileFormat(FileFormat.PARQUET).build();
      SortingPositionOnlyDeleteWriter<Record> writer = new SortingPositionOnlyDeleteWriter<>(
          made.newPositionDeleteWriter(file, spec, spec.isUnpartitioned() ? null : beside.partition()));
      PositionDelete<Record> named = PositionDelete.create();
      rows.accept((path, row) -> writer.write(named.set(path, row)));
      writer.close();
      DeleteFile written = writer.result().deleteFiles().get(0);
      return only == null ? written
          : FileMetadata.deleteFileBuilder(spec).copy(written).withReferencedDataFile(only).build();
    } catch (IOException | RuntimeException | Error failure) {
      delete(file.encryptingOutputFile().location(), failure);
      throw failure;
    }
  }

  private EncryptedOutputFile newFile(ContentFile<?> beside, FileFormat format) {
    OutputFileFactory files = files(format, UUID.randomUUID().toString());
    PartitionSpec spec = spec(beside);
    return spec.isUnpartitioned() ? files.newOutputFile() : files.newOutputFile(spec, beside.partition());
  }

  private OutputFileFactory files(FileFormat format, String operation) {
    return OutputFileFactory.builderFor(table, 0, 0L).format(format).operationId(operation).suffix("deletes").build();
  }

  private PartitionSpec spec(ContentFile<?> of) {
    return table.specs().get(of.specId());
  }

  /** Deletes what was written of a file that could not be completed; what cannot be deleted is an orphan. */
  private void delete(String file, Throwable failure) {
    try {
      table.io().deleteFile(file);
    } catch (RuntimeException another) {
      failure.addSuppressed(another);
    }
  }

  /** Iceberg's loader, which reads a file of positions once. */
  private static final class Loader extends BaseDeleteLoader {
    private final Map<String, Object> read = new ConcurrentHashMap<>();
    private final long atMost;

    Loader(Table table, long atMost) {
      super(delete -> table.io().newInputFile(delete));
      this.atMost = atMost;
    }

    protected boolean canCache(long rows) {
      return rows <= atMost;
    }

    @SuppressWarnings("unchecked")
    protected <V> V getOrLoad(String file, Supplier<V> load, long rows) {
      return (V) read.computeIfAbsent(file, one -> load.get());
    }

    @SuppressWarnings("unchecked")
    CharSequenceMap<PositionDeleteIndex> kept(DeleteFile delete) {
      Object found = read.get(delete.location());
      if (found == null) {
        throw new IllegalStateException("more rows than are kept of a file: " + delete.location());
      }
      return (CharSequenceMap<PositionDeleteIndex>) found;
    }
  }
}
