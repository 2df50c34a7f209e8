package io.lakewright.parquet;

import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.ColumnWriteStore;
import org.apache.parquet.column.ColumnWriter;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.DictionaryPage;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.column.page.PageReader;
import org.apache.parquet.compression.CompressionCodecFactory.BytesInputCompressor;
import org.apache.parquet.column.values.factory.DefaultV1ValuesWriterFactory;
import org.apache.parquet.column.values.factory.DefaultV2ValuesWriterFactory;
import org.apache.parquet.example.DummyRecordConverter;
import org.apache.parquet.hadoop.CodecFactory;
import org.apache.parquet.hadoop.ColumnChunkPageWriteStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.util.HadoopStreams;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;
import org.apache.spark.util.SerializableConfiguration;

/**
 * Merges the row groups of Parquet files of the same columns into large ones, column by column, as one task.
 *
 * <p>Each value goes from parquet-java's reader to its writer as the file stores it, with its repetition and definition
 * level: no row is put together, and no type is converted. Row groups, pages and dictionaries are new, by the
 * settings that Spark writes with.
 */
public final class ColumnMerge extends ParquetTask {
  private static final long serialVersionUID = 1L;

  private static final int VALUES_BETWEEN_CHECKS = 1 << 14; // Of whether the task was cancelled.
  private static final int NO_PADDING = 0; // Between row groups, which would align them to the blocks of HDFS.

  /**
   * Of the values of a chunk: with so many distinct ones, no dictionary is tried. They are of some fifty times as many
   * values at least, so that a row group of at most so many such chunks would gain nothing by one either.
   */
  private static final double DISTINCT_SHARE = 0.99;
  private static final int CHUNKS_OF_SAMPLE = 32;
  private static final long MAX_SAMPLE_BYTES = 16 << 20; // Of a file whose first row group is read before its turn.

  private final SerializableConfiguration settings; // With Hadoop's store its own: it is large, and sent once.
  private final String codec; // As parquet-java names it.

  public ColumnMerge(
      ParquetStore store,
      SerializableConfiguration settings,
      ArrayList files,
      ArrayList sizes,
      String prefix,
      String suffix,
      String codec) {
    super(store, files, sizes, prefix, suffix);
    this.settings = settings;
    this.codec = codec;
  }

  private Configuration configuration() {
    return settings.value();
  }

  Written write(OutputStream created) throws IOException {
    CodecFactory codecs = new CodecFactory(configuration(), ParquetOutputFormat.getPageSize(configuration()));
    Merged merged = new Merged(
        configuration(), created, codecs.getCompressor(CompressionCodecName.valueOf(codec)), inputBytes());
    try {
      append(merged);
      return merged.finish();
    } finally {
      codecs.release();
    }
  }

  private void append(Merged merged) throws IOException {
    int sample = sample();
    String file = file(sample);
    try (ParquetFileReader first = open(merged, sample)) {
      PageReadStore sampled = merged.sample(first);
      for (int i = 0; i < inputs(); i++) {
        file = file(i);
        if (i == sample) {
          merged.append(first, sampled);
          continue;
        }
        try (ParquetFileReader reader = open(merged, i)) {
          merged.append(reader, null);
        }
      }
    } catch (EOFException cut) {
      throw new DamagedInput(file + " ends before its data do: restore it from a backup, or delete its rows");
    } catch (RuntimeException undecodable) {
      throw damaged(file, undecodable);
    } catch (IOException problem) {
      throw ParquetFooter.isMalformed(problem) ? new NotCopyable("damaged") : problem;
    }
  }

  private ParquetFileReader open(Merged merged, int input) throws IOException {
    return ParquetFileReader.open(new Input(this, file(input), size(input)), merged.options);
  }

  /** Returns the largest of the inputs that may be kept in memory, the first if there is none: small files say little. */
  private int sample() {
    int largest = 0;
    for (int i = 1; i < inputs(); i++) {
      largest = size(i) > size(largest) && size(i) <= MAX_SAMPLE_BYTES ? i : largest;
    }
    return largest;
  }

  /** A page that differs from its checksum could be decoded, to other values; what cannot be decoded, Spark reports. */
  private static IOException damaged(String file, RuntimeException problem) {
    if (String.valueOf(problem.getMessage()).contains("CRC checksum")) {
      return new DamagedInput(file + " has a page that differs from its checksum (" + problem.getMessage()
          + "): restore the file from a backup, or delete its rows");
    }
    return new NotCopyable("damaged");
  }

  /** The output while it grows. */
  private static final class Merged {
    private final ParquetReadOptions options;
    private final ParquetProperties properties;
    private final ParquetProperties withoutDictionaries;
    private final long inputBytes;
    private final Counting out;
    private final BytesInputCompressor compressor;
    private final long rowGroupBytes; // Before compression, as Spark's writer counts them.
    private ParquetFileWriter writer;
    private MessageType schema;
    private final Map keyValues = new HashMap(); // Of all inputs; the first that has a key gives its value.
    private boolean[] isDistinct = {}; // By column, as the sample shows.
    private List columns; // Of the row group that grows, null before its first rows.
    private long bytesInRowGroup;
    private long rowsInRowGroup;
    private long rows;
    private int rowGroups;

    Merged(
        Configuration configuration, OutputStream created, BytesInputCompressor compressor, long inputBytes) {
      this.options = HadoopReadOptions.builder(configuration).usePageChecksumVerification(true).build();
      this.properties = properties(configuration, ParquetOutputFormat.getEnableDictionary(configuration));
      this.withoutDictionaries = properties(configuration, false);
      this.inputBytes = inputBytes;
      this.out = new Counting(created, inputBytes);
      this.compressor = compressor;
      this.rowGroupBytes = ParquetOutputFormat.getLongBlockSize(configuration);
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

    /** Reads the first row group of a file, and finds the columns that need no dictionary by it; null if it has no rows. */
    PageReadStore sample(ParquetFileReader reader) throws IOException {
      List<BlockMetaData> blocks = reader.getRowGroups();
      if (blocks.isEmpty() || blocks.get(0).getRowCount() == 0) {
        return null; // The reader refuses to read it.
      }
      PageReadStore pages = reader.readRowGroup(0);
      boolean isSample = blocks.get(0).getCompressedSize() * CHUNKS_OF_SAMPLE >= inputBytes;
      List<ColumnDescriptor> found = reader.getFooter().getFileMetaData().getSchema().getColumns();
      isDistinct = new boolean[found.size()];
      for (int i = 0; i < isDistinct.length; i++) {
        isDistinct[i] = isSample && isDistinct(pages.getPageReader(found.get(i)));
      }
      return pages;
    }

    /** Appends a file; first: its first row group if it was read already, or null. */
    void append(ParquetFileReader reader, PageReadStore first) throws IOException {
      org.apache.parquet.hadoop.metadata.FileMetaData metadata = reader.getFooter().getFileMetaData();
      if (writer == null) {
        schema = metadata.getSchema();
        writer = new ParquetFileWriter(out, schema, ParquetFileWriter.Mode.CREATE, rowGroupBytes, NO_PADDING,
            properties.getColumnIndexTruncateLength(), properties.getStatisticsTruncateLength(),
            properties.getPageWriteChecksumEnabled());
        writer.start();
      } else if (!schema.getFields().equals(metadata.getSchema().getFields())) { // The name of the root means nothing.
        throw new NotCopyable("schema");
      }
      addKeyValues(metadata.getKeyValueMetaData());
      List blocks = reader.getRowGroups();
      for (int i = 0; i < blocks.size(); i++) {
        BlockMetaData block = (BlockMetaData) blocks.get(i);
        if (block.getRowCount() == 0) {
          continue; // Which the reader refuses to read.
        }
        if (rowsInRowGroup > 0 && bytesInRowGroup + block.getTotalByteSize() > rowGroupBytes) {
          endRowGroup();
        }
        PageReadStore pages = i == 0 && first != null ? first : reader.readRowGroup(i);
        append(pages, metadata.getCreatedBy());
        pages.close();
        bytesInRowGroup += block.getTotalByteSize();
      }
    }

    private void addKeyValues(Map of) {
      for (Iterator each = of.entrySet().iterator(); each.hasNext(); ) {
        Map.Entry one = (Map.Entry) each.next();
        if (!keyValues.containsKey(one.getKey())) {
          keyValues.put(one.getKey(), one.getValue());
        }
      }
    }

    private void append(PageReadStore pages, String createdBy) throws IOException {
      if (columns == null) {
        columns = new ArrayList();
        for (int i = 0; i < schema.getColumns().size(); i++) {
          ColumnDescriptor descriptor = (ColumnDescriptor) schema.getColumns().get(i);
          boolean hasDictionary = i >= isDistinct.length || !isDistinct[i];
          columns.add(new Column(descriptor, this, hasDictionary ? properties : withoutDictionaries));
        }
      }
      ColumnReadStoreImpl store = new ColumnReadStoreImpl(
          pages, new DummyRecordConverter(schema).getRootConverter(), schema, createdBy);
      for (int i = 0; i < columns.size(); i++) {
        Column column = (Column) columns.get(i);
        if (column.append(store.getColumnReader(column.descriptor)) != pages.getRowCount()) {
          throw new NotCopyable("damaged");
        }
      }
      rowsInRowGroup += pages.getRowCount();
    }

    private static boolean isDistinct(PageReader chunk) {
      DictionaryPage dictionary = chunk.readDictionaryPage();
      return dictionary != null && dictionary.getDictionarySize() >= DISTINCT_SHARE * chunk.getTotalValueCount();
    }

    private void endRowGroup() throws IOException {
      writer.startBlock(rowsInRowGroup);
      for (int i = 0; i < columns.size(); i++) {
        ((Column) columns.get(i)).flush(writer);
      }
      writer.endBlock();
      columns = null;
      rows += rowsInRowGroup;
      rowGroups++;
      bytesInRowGroup = 0;
      rowsInRowGroup = 0;
    }

    Written finish() throws IOException {
      if (rowsInRowGroup > 0) {
        endRowGroup();
      }
      writer.end(keyValues);
      return new Written(out.position(), rows, rowGroups);
    }
  }

  /** One column of the row group that grows. */
  private static final class Column {
    final ColumnDescriptor descriptor; // In the schema of the file.
    private final ColumnChunkPageWriteStore pages;
    private final ColumnWriteStore store;
    private final ColumnWriter out;
    private final int kind;
    private final int maxDefinitionLevel;

    Column(ColumnDescriptor descriptor, Merged merged, ParquetProperties properties) {
      this.descriptor = descriptor;
      MessageType alone = alone(merged.schema, descriptor.getPath());
      pages = new ColumnChunkPageWriteStore(merged.compressor, alone, properties.getAllocator(),
          properties.getColumnIndexTruncateLength(), properties.getPageWriteChecksumEnabled());
      store = properties.newColumnWriteStore(alone, pages);
      out = store.getColumnWriter((ColumnDescriptor) alone.getColumns().get(0));
      kind = kind(descriptor.getPrimitiveType().getPrimitiveTypeName());
      maxDefinitionLevel = descriptor.getMaxDefinitionLevel();
    }

    /** A column of several counts its rows by itself: the writer of all counts them for all at once. */
    private static MessageType alone(MessageType schema, String[] path) {
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

    private static int kind(PrimitiveType.PrimitiveTypeName name) {
      String[] kinds = {"INT32", "INT64", "BOOLEAN", "FLOAT", "DOUBLE"};
      for (int i = 0; i < kinds.length; i++) {
        if (kinds[i].equals(name.name())) {
          return i;
        }
      }
      return kinds.length;
    }

    /** Appends all values of a chunk, and returns how many rows they are. */
    @SuppressWarnings("deprecation") // Nothing else says how many values there are.
    long append(ColumnReader in) throws IOException {
      long count = in.getTotalValueCount();
      long rows = 0;
      for (long i = 0; i < count; i++) {
        if (i % VALUES_BETWEEN_CHECKS == 0) {
          ParquetInput.checkCancelled();
        }
        int repetition = in.getCurrentRepetitionLevel();
        int definition = in.getCurrentDefinitionLevel();
        if (repetition == 0) {
          if (rows > 0) {
            store.endRecord();
          }
          rows++;
        }
        if (definition == maxDefinitionLevel) {
          copy(in, repetition, definition);
        } else {
          out.writeNull(repetition, definition);
        }
        in.consume();
      }
      if (rows > 0) {
        store.endRecord();
      }
      return rows;
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

  /** A file whose size is known, which spares asking the store for it. */
  private static final class Input implements InputFile {
    private final ParquetTask task;
    private final String file;
    private final long size;

    Input(ParquetTask task, String file, long size) {
      this.task = task;
      this.file = file;
      this.size = size;
    }

    public long getLength() {
      return size;
    }

    public SeekableInputStream newStream() throws IOException {
      return HadoopStreams.wrap(task.open(file, size));
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
