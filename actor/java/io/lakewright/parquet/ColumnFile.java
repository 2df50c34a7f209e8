package io.lakewright.parquet;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.ColumnWriteStore;
import org.apache.parquet.column.ColumnWriter;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.DictionaryPage;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.column.page.PageReader;
import org.apache.parquet.column.values.factory.DefaultV1ValuesWriterFactory;
import org.apache.parquet.column.values.factory.DefaultV2ValuesWriterFactory;
import org.apache.parquet.compression.CompressionCodecFactory.BytesInputCompressor;
import org.apache.parquet.example.DummyRecordConverter;
import org.apache.parquet.hadoop.ColumnChunkPageWriteStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;

/**
 * A Parquet file while it grows, column by column, from pages of other files of the same columns.
 *
 * <p>Each value goes from parquet-java's reader to its writer as the file stores it, with its repetition and definition
 * level: no row is put together, and no type is converted. Row groups, pages and dictionaries are new, by the
 * settings that Spark writes with.
 */
final class ColumnFile {
  private static final int VALUES_BETWEEN_CHECKS = 1 << 14; // Of whether the task was cancelled.
  private static final int NO_PADDING = 0; // Between row groups, which would align them to the blocks of HDFS.

  private final Settings settings;
  private final MessageType schema;
  private final Counting out;
  private final ParquetFileWriter writer;
  private final Map<String, String> keyValues = new HashMap<>(); // Of all inputs; the first that has a key gives its value.
  private Column[] columns; // Of the row group that grows, null before its first rows.
  private long bytesInRowGroup; // Before compression, as Spark's writer counts them.
  private long rowsInRowGroup;
  private long rows;
  private int rowGroups;

  /** bytes: of the file, about. */
  ColumnFile(Settings settings, MessageType schema, OutputStream created, long bytes) throws IOException {
    this.settings = settings;
    this.schema = schema;
    out = new Counting(created, bytes);
    ParquetProperties properties = settings.properties;
    writer = new ParquetFileWriter(out, schema, ParquetFileWriter.Mode.CREATE, settings.rowGroupBytes, NO_PADDING,
        properties.getColumnIndexTruncateLength(), properties.getStatisticsTruncateLength(),
        properties.getPageWriteChecksumEnabled());
    writer.start();
  }

  /** Throws NotCopyable unless a file has the same columns; the name of the root means nothing. */
  void require(MessageType other) throws NotCopyable {
    if (!schema.getFields().equals(other.getFields())) {
      throw new NotCopyable("schema");
    }
  }

  void addKeyValues(Map<String, String> of) {
    for (Map.Entry<String, String> one : of.entrySet()) {
      keyValues.putIfAbsent(one.getKey(), one.getValue());
    }
  }

  /** Bytes of the row group that grows. */
  long growing() {
    return bytesInRowGroup;
  }

  /** Appends the rows of a row group whose number is not negative (null: all); a new one begins where it would be too large. */
  void append(PageReadStore pages, BlockMetaData block, int[] numbers, String createdBy) throws IOException {
    long kept = numbers == null ? block.getRowCount() : Arrays.stream(numbers).filter(number -> number >= 0).count();
    if (kept == 0) {
      return;
    }
    long bytes = block.getTotalByteSize() * kept / block.getRowCount();
    if (bytesInRowGroup + bytes > settings.rowGroupBytes) {
      endRowGroup();
    }
    append(new ColumnFile[] {this}, numbers, pages, createdBy);
    added(kept, bytes);
  }

  /**
   * Appends each row of a row group to the file of its number, to none where that is negative; without numbers, to the
   * first. A file without rows is null.
   */
  static void append(ColumnFile[] files, int[] numbers, PageReadStore pages, String createdBy) throws IOException {
    MessageType schema = null;
    for (ColumnFile file : files) {
      if (file != null) {
        file.begin();
        schema = file.schema;
      }
    }
    if (schema == null) {
      return;
    }
    ColumnReadStoreImpl store =
        new ColumnReadStoreImpl(pages, new DummyRecordConverter(schema).getRootConverter(), schema, createdBy);
    Column[] to = new Column[files.length];
    for (int i = 0; i < schema.getColumns().size(); i++) {
      for (int file = 0; file < files.length; file++) {
        to[file] = files[file] == null ? null : files[file].columns[i];
      }
      if (append(store.getColumnReader(schema.getColumns().get(i)), to, numbers) != pages.getRowCount()) {
        throw new NotCopyable("damaged");
      }
    }
  }

  /** Counts what was appended. */
  void added(long moreRows, long bytes) {
    rowsInRowGroup += moreRows;
    bytesInRowGroup += bytes;
  }

  private void begin() {
    if (columns == null) {
      columns = new Column[schema.getColumns().size()];
      for (int i = 0; i < columns.length; i++) {
        columns[i] = new Column(schema, schema.getColumns().get(i), settings, settings.properties(i));
      }
    }
  }

  /** Appends all values of a chunk, and returns how many rows they are. */
  @SuppressWarnings("deprecation") // Nothing else says how many values there are.
  private static long append(ColumnReader in, Column[] to, int[] numbers) throws IOException {
    long count = in.getTotalValueCount();
    int max = in.getDescriptor().getMaxDefinitionLevel();
    int rows = 0;
    Column out = null;
    for (long i = 0; i < count; i++) {
      if (i % VALUES_BETWEEN_CHECKS == 0) {
        ParquetInput.checkCancelled();
      }
      int repetition = in.getCurrentRepetitionLevel();
      int definition = in.getCurrentDefinitionLevel();
      if (repetition == 0) {
        if (out != null) {
          out.store.endRecord();
        }
        if (numbers != null && rows == numbers.length) {
          throw new NotCopyable("damaged");
        }
        int number = numbers == null ? 0 : numbers[rows];
        out = number < 0 ? null : to[number];
        rows++;
      }
      if (out == null) {
        if (definition == max) {
          in.skip();
        }
      } else if (definition == max) {
        out.copy(in, repetition, definition);
      } else {
        out.out.writeNull(repetition, definition);
      }
      in.consume();
    }
    if (out != null) {
      out.store.endRecord();
    }
    return rows;
  }

  /** Writes the row group that grows, if it has rows. */
  void endRowGroup() throws IOException {
    if (rowsInRowGroup > 0) {
      writer.startBlock(rowsInRowGroup);
      for (Column column : columns) {
        column.flush(writer);
      }
      writer.endBlock();
      columns = null;
      rows += rowsInRowGroup;
      rowGroups++;
      bytesInRowGroup = 0;
      rowsInRowGroup = 0;
    }
  }

  ParquetTask.Written finish() throws IOException {
    endRowGroup();
    writer.end(keyValues);
    return new ParquetTask.Written(out.position(), rows, rowGroups);
  }

  /** A column of several counts its rows by itself: the writer of all counts them for all at once. */
  static MessageType alone(MessageType schema, String[] path) {
    Type type = schema.getType(path);
    for (int depth = path.length - 1; depth > 0; depth--) {
      String[] above = new String[depth];
      System.arraycopy(path, 0, above, 0, depth);
      List only = new ArrayList();
      only.add(type);
      type = ((GroupType) schema.getType(above)).withNewFields(only);
    }
    List fields = new ArrayList();
    fields.add(type);
    return new MessageType(schema.getName(), fields);
  }

  /** How files of a task are written. */
  static final class Settings {
    /**
     * Of the values of a chunk: with so many distinct ones, no dictionary is tried. They are of some fifty times as many
     * values at least, so that a row group of at most so many such chunks would gain nothing by one either.
     */
    private static final double DISTINCT_SHARE = 0.99;
    private static final int CHUNKS_OF_SAMPLE = 32;

    final long rowGroupBytes;
    private final BytesInputCompressor compressor;
    private final ParquetProperties properties;
    private final ParquetProperties withoutDictionaries;
    private boolean[] isDistinct = {}; // By column, as the sample shows.

    Settings(Configuration configuration, BytesInputCompressor compressor) {
      this.compressor = compressor;
      properties = properties(configuration, ParquetOutputFormat.getEnableDictionary(configuration));
      withoutDictionaries = properties(configuration, false);
      rowGroupBytes = ParquetOutputFormat.getLongBlockSize(configuration);
    }

    private static ParquetProperties properties(Configuration configuration, boolean hasDictionaries) {
      ParquetProperties.Builder builder = ParquetProperties.builder();
      // By default all of a JVM share one factory, Spark's too: it makes writers by the properties that were built last.
      ParquetProperties.WriterVersion version = ParquetOutputFormat.getWriterVersion(configuration);
      boolean isFirst = version == ParquetProperties.WriterVersion.PARQUET_1_0;
      builder.withValuesWriterFactory(
          isFirst ? new DefaultV1ValuesWriterFactory() : new DefaultV2ValuesWriterFactory());
      builder.withWriterVersion(version);
      builder.withPageSize(ParquetOutputFormat.getPageSize(configuration));
      builder.withDictionaryPageSize(ParquetOutputFormat.getDictionaryPageSize(configuration));
      builder.withDictionaryEncoding(hasDictionaries);
      builder.withPageRowCountLimit(configuration.getInt(
          ParquetOutputFormat.PAGE_ROW_COUNT_LIMIT, ParquetProperties.DEFAULT_PAGE_ROW_COUNT_LIMIT));
      builder.withColumnIndexTruncateLength(configuration.getInt(
          ParquetOutputFormat.COLUMN_INDEX_TRUNCATE_LENGTH, ParquetProperties.DEFAULT_COLUMN_INDEX_TRUNCATE_LENGTH));
      builder.withStatisticsTruncateLength(configuration.getInt(
          ParquetOutputFormat.STATISTICS_TRUNCATE_LENGTH, ParquetProperties.DEFAULT_STATISTICS_TRUNCATE_LENGTH));
      builder.withPageWriteChecksumEnabled(ParquetOutputFormat.getPageWriteChecksumEnabled(configuration));
      return builder.build();
    }

    /**
     * Reads the first row group of a file, and finds the columns that need no dictionary by it; null if it has no rows.
     *
     * @param bytes of all inputs
     */
    PageReadStore sample(ParquetFileReader reader, long bytes) throws IOException {
      List<BlockMetaData> blocks = reader.getRowGroups();
      if (blocks.isEmpty() || blocks.get(0).getRowCount() == 0) {
        return null; // The reader refuses to read it.
      }
      PageReadStore pages = reader.readRowGroup(0);
      boolean isSample = blocks.get(0).getCompressedSize() * CHUNKS_OF_SAMPLE >= bytes;
      List<ColumnDescriptor> found = reader.getFooter().getFileMetaData().getSchema().getColumns();
      isDistinct = new boolean[found.size()];
      for (int i = 0; i < isDistinct.length; i++) {
        isDistinct[i] = isSample && isDistinct(pages.getPageReader(found.get(i)));
      }
      return pages;
    }

    private static boolean isDistinct(PageReader chunk) {
      DictionaryPage dictionary = chunk.readDictionaryPage();
      return dictionary != null && dictionary.getDictionarySize() >= DISTINCT_SHARE * chunk.getTotalValueCount();
    }

    private ParquetProperties properties(int column) {
      return column < isDistinct.length && isDistinct[column] ? withoutDictionaries : properties;
    }
  }

  /** One column of the row group that grows. */
  private static final class Column {
    private final ColumnChunkPageWriteStore pages;
    private final ColumnWriteStore store;
    private final ColumnWriter out;
    private final int kind;

    Column(MessageType schema, ColumnDescriptor descriptor, Settings settings, ParquetProperties properties) {
      MessageType alone = alone(schema, descriptor.getPath());
      pages = new ColumnChunkPageWriteStore(settings.compressor, alone, properties.getAllocator(),
          properties.getColumnIndexTruncateLength(), properties.getPageWriteChecksumEnabled());
      store = properties.newColumnWriteStore(alone, pages);
      out = store.getColumnWriter((ColumnDescriptor) alone.getColumns().get(0));
      kind = kind(descriptor.getPrimitiveType().getPrimitiveTypeName());
    }

    private static int kind(PrimitiveType.PrimitiveTypeName name) {
      String[] kinds = {"INT32", "INT64", "BOOLEAN", "FLOAT", "DOUBLE"};
      for (int i = 0; i < kinds.length; i++) {
        if (kinds[i].equals(name.name())) {
          return i;
        }
      }
      return kinds.length;
    }

    private void copy(ColumnReader in, int repetition, int definition) {
      switch (kind) {
        case 0:
          out.write(in.getInteger(), repetition, definition);
          break;
        case 1:
          out.write(in.getLong(), repetition, definition);
          break;
        case 2:
          out.write(in.getBoolean(), repetition, definition);
          break;
        case 3:
          out.write(in.getFloat(), repetition, definition);
          break;
        case 4:
          out.write(in.getDouble(), repetition, definition);
          break;
        default:
          out.write(in.getBinary(), repetition, definition);
      }
    }

    void flush(ParquetFileWriter writer) throws IOException {
      store.flush();
      pages.flushToFileWriter(writer);
      store.close();
      pages.close();
    }
  }

  /** The file that was created already, which knows how many bytes went into it. */
  private static final class Counting implements OutputFile {
    private final Position stream;

    Counting(OutputStream created, long bytes) {
      stream = new Position(new BufferedOutputStream(created, ParquetInput.bufferBytes(bytes)));
    }

    long position() {
      return stream.getPos();
    }

    public PositionOutputStream create(long blockSizeHint) {
      return stream;
    }

    public PositionOutputStream createOrOverwrite(long blockSizeHint) {
      return stream;
    }

    public boolean supportsBlockSize() {
      return false;
    }

    public long defaultBlockSize() {
      return 0;
    }
  }

  private static final class Position extends PositionOutputStream {
    private final OutputStream out;
    private long position;

    Position(OutputStream out) {
      this.out = out;
    }

    public long getPos() {
      return position;
    }

    public void write(int one) throws IOException {
      out.write(one);
      position++;
    }

    public void write(byte[] bytes, int offset, int length) throws IOException {
      out.write(bytes, offset, length);
      position += length;
    }

    public void flush() throws IOException {
      out.flush();
    }

    public void close() throws IOException {
      out.close();
    }
  }
}
