package io.lakewright.iceberg;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.MetricsConfig;
import org.apache.iceberg.MetricsModes;
import org.apache.iceberg.MetricsUtil;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.parquet.ParquetSchemaUtil;
import org.apache.iceberg.parquet.ParquetUtil;
import org.apache.iceberg.shaded.org.apache.parquet.ParquetReadOptions;
import org.apache.iceberg.shaded.org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.iceberg.shaded.org.apache.parquet.io.DelegatingSeekableInputStream;
import org.apache.iceberg.shaded.org.apache.parquet.io.InputFile;
import org.apache.iceberg.shaded.org.apache.parquet.io.SeekableInputStream;
import org.apache.iceberg.shaded.org.apache.parquet.schema.MessageType;
import org.apache.iceberg.types.Comparators;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;

/** What Iceberg itself says of Parquet files that are joined: whether their columns are the table's, and metrics. */
public final class IcebergFiles {
  private static final ParquetReadOptions OPTIONS = // Without Hadoop's, which are parsed from XML each time.
      ParquetReadOptions.builder(new PlainParquetConfiguration()).build();
  private static final int LEAST_RESERVED_ID = Integer.MAX_VALUE - 200; // Columns that no table's schema can have.

  private IcebergFiles() {}

  /**
   * Returns why the columns of a file are not those of the table, or files of its schema are not of one partition, as
   * one word; the empty string if they are.
   */
  public static String mismatch(Table table, List inputs, String file, long size) throws IOException {
    if (!areOfOnePartition(table, inputs)) {
      return "partition";
    }
    MessageType stored = footer(table, file, size).getFileMetaData().getSchema();
    Schema schema = ParquetSchemaUtil.convertAndPrune(stored);
    Map known = TypeUtil.indexById(table.schema().asStruct());
    Map found = TypeUtil.indexById(schema.asStruct());
    int leaves = 0;
    String reason = "";
    for (Iterator one = found.values().iterator(); one.hasNext(); ) {
      Types.NestedField field = (Types.NestedField) one.next();
      leaves += field.type().isPrimitiveType() ? 1 : 0;
      Types.NestedField column = (Types.NestedField) known.get(Integer.valueOf(field.fieldId()));
      if (column == null) {
        reason = field.fieldId() > LEAST_RESERVED_ID ? reason : "columns";
      } else if (field.type().isPrimitiveType() && !field.type().equals(column.type())) {
        reason = "type_widening";
      }
    }
    return leaves == stored.getColumns().size() ? reason : "no_field_ids";
  }

  private static boolean areOfOnePartition(Table table, List inputs) {
    DataFile first = (DataFile) inputs.get(0);
    PartitionSpec spec = (PartitionSpec) table.specs().get(Integer.valueOf(first.specId()));
    Comparator order = Comparators.forType(spec.partitionType());
    for (int i = 1; i < inputs.size(); i++) {
      DataFile one = (DataFile) inputs.get(i);
      if (one.specId() != first.specId() || order.compare(one.partition(), first.partition()) != 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * Describes an output of these inputs as Iceberg's own writer would; its rows are from its footer. isWhole: it has all
   * rows of the inputs; of a part, it is not known how many values are not a number, unless there are none. Without their
   * count there are no bounds: Iceberg takes it for none, and deletes by bounds. Nor are bounds wider than the rows: it
   * answers the greatest value by them.
   */
  public static DataFile describe(Table table, List inputs, String file, long size, boolean isWhole)
      throws IOException {
    ParquetMetadata footer = footer(table, file, size);
    MetricsConfig config = MetricsConfig.forTable(table);
    Schema schema = ParquetSchemaUtil.convertAndPrune(footer.getFileMetaData().getSchema());
    Metrics whole = metrics(footer, config);
    Map lower = copied(whole.lowerBounds());
    Map upper = copied(whole.upperBounds());
    Map nans = copied(whole.nanValueCounts());
    Map nulls = copied(whole.nullValueCounts());
    dropPartial(footer, config, lower, upper, nulls);
    for (Iterator one = TypeUtil.indexById(schema.asStruct()).values().iterator(); one.hasNext(); ) {
      Types.NestedField field = (Types.NestedField) one.next();
      Integer id = Integer.valueOf(field.fieldId());
      if (isFloat(field)) {
        Long count = whole.valueCounts().containsKey(id) ? nans(inputs, id) : null;
        boolean isKnown = count != null && (isWhole || count.longValue() == 0);
        if (isKnown) {
          nans.put(id, count);
        }
        ByteBuffer least = (ByteBuffer) lower.get(id);
        if (isWhole || !isKnown) { // Footers of some writers bound what is a number, and of others nothing.
          lower.remove(id);
          upper.remove(id);
        }
        if (isWhole && isKnown
            && MetricsUtil.metricsMode(schema, config, field.fieldId()) != MetricsModes.Counts.get()) {
          addBounds(inputs, field, lower, upper);
        } else if (isKnown && least != null) {
          lower.put(id, withoutSign(inputs, field, least));
        }
      }
    }
    DataFile first = (DataFile) inputs.get(0);
    PartitionSpec spec = (PartitionSpec) table.specs().get(Integer.valueOf(first.specId()));
    DataFiles.Builder builder = DataFiles.builder(spec)
        .withPath(file)
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(size)
        .withSplitOffsets(ParquetUtil.getSplitOffsets(footer))
        .withMetrics(new Metrics(whole.recordCount(), whole.columnSizes(), whole.valueCounts(), nulls, nans, lower,
            upper));
    return (spec.isUnpartitioned() ? builder : builder.withPartition(first.partition())).build();
  }

  /**
   * Leaves out the bounds of columns that a row group with values does not bound, and nulls that one does not count:
   * Iceberg takes those of the other row groups for the file's, which then would hide rows.
   */
  private static void dropPartial(ParquetMetadata footer, MetricsConfig config, Map lower, Map upper, Map nulls) {
    for (int i = 0; i < footer.getBlocks().size(); i++) {
      List block = Collections.singletonList(footer.getBlocks().get(i));
      Metrics part = metrics(new ParquetMetadata(footer.getFileMetaData(), block), config);
      dropUnbounded(part, part.lowerBounds(), lower);
      dropUnbounded(part, part.upperBounds(), upper);
      nulls.keySet().retainAll(part.nullValueCounts().keySet());
    }
  }

  private static void dropUnbounded(Metrics part, Map bounds, Map kept) {
    for (Iterator one = kept.keySet().iterator(); one.hasNext(); ) {
      Object id = one.next();
      Object values = part.valueCounts().get(id);
      boolean isNull = values != null && values.equals(part.nullValueCounts().get(id));
      if (!isNull && !bounds.containsKey(id)) {
        one.remove();
      }
    }
  }

  private static boolean isFloat(Types.NestedField field) {
    return field.type().typeId() == Type.TypeID.FLOAT || field.type().typeId() == Type.TypeID.DOUBLE;
  }

  /** Returns how many values of the inputs are not a number, which no footer says; null if one does not say it. */
  private static Long nans(List inputs, Integer id) {
    long count = 0;
    for (int i = 0; i < inputs.size(); i++) {
      DataFile file = (DataFile) inputs.get(i);
      Long own = file.recordCount() == 0 ? Long.valueOf(0) : number(file.nanValueCounts(), id);
      if (own == null) {
        return null;
      }
      count += own.longValue();
    }
    return Long.valueOf(count);
  }

  /**
   * Returns whether a file says what the least and the greatest value of a column are, or has no values there that have
   * an order.
   */
  public static boolean isBounded(DataFile file, Integer id) {
    return isEmpty(file, id) || bound(file.lowerBounds(), id) != null && bound(file.upperBounds(), id) != null;
  }

  /** Whether all values of a column are known to be null or not a number. */
  private static boolean isEmpty(DataFile file, Integer id) {
    Long values = number(file.valueCounts(), id);
    Long nulls = number(file.nullValueCounts(), id);
    Long nans = number(file.nanValueCounts(), id);
    return values != null && nulls != null && values == nulls + (nans == null ? 0 : nans);
  }

  /** Takes bounds that are not in footers, or not in those of every writer, from the inputs, if each with values has them. */
  private static void addBounds(List inputs, Types.NestedField field, Map lower, Map upper) {
    Integer id = Integer.valueOf(field.fieldId());
    Comparator order = Comparators.forType(field.type().asPrimitiveType());
    ByteBuffer least = null;
    ByteBuffer greatest = null;
    for (int i = 0; i < inputs.size(); i++) {
      DataFile file = (DataFile) inputs.get(i);
      if (file.recordCount() == 0 || isEmpty(file, id)) {
        continue;
      }
      ByteBuffer low = bound(file.lowerBounds(), id);
      ByteBuffer high = bound(file.upperBounds(), id);
      if (low == null || high == null) {
        return;
      }
      least = least == null || compare(order, field, low, least) < 0 ? low : least;
      greatest = greatest == null || compare(order, field, high, greatest) > 0 ? high : greatest;
    }
    if (least != null) {
      lower.put(id, least);
      upper.put(id, greatest);
    }
  }

  /** Returns the least value of some rows of the inputs: readers of footers give 0 a sign that may be none of its rows'. */
  private static ByteBuffer withoutSign(List inputs, Types.NestedField field, ByteBuffer least) {
    Map lower = new HashMap();
    addBounds(inputs, field, lower, new HashMap());
    ByteBuffer ofAll = (ByteBuffer) lower.get(Integer.valueOf(field.fieldId()));
    Comparator order = Comparators.forType(field.type().asPrimitiveType());
    return ofAll != null && compare(order, field, least, ofAll) < 0 ? ofAll : least;
  }

  private static int compare(Comparator order, Types.NestedField field, ByteBuffer one, ByteBuffer other) {
    return order.compare(Conversions.fromByteBuffer(field.type(), one), Conversions.fromByteBuffer(field.type(), other));
  }

  private static Long number(Map metrics, Integer id) {
    return metrics == null ? null : (Long) metrics.get(id);
  }

  private static ByteBuffer bound(Map metrics, Integer id) {
    return metrics == null ? null : (ByteBuffer) metrics.get(id);
  }

  private static Map copied(Map metrics) {
    return metrics == null ? new HashMap() : new HashMap(metrics);
  }

  private static Metrics metrics(ParquetMetadata footer, MetricsConfig config) {
    return ParquetUtil.footerMetrics(footer, new ArrayList().stream(), config);
  }

  private static ParquetMetadata footer(Table table, String file, long size) throws IOException {
    ParquetFileReader reader = ParquetFileReader.open(new Input(table.io().newInputFile(file, size), size), OPTIONS);
    try {
      return reader.getFooter();
    } finally {
      reader.close();
    }
  }

  /** A file of the table as parquet-java wants it. */
  private static final class Input implements InputFile {
    private final org.apache.iceberg.io.InputFile file;
    private final long size;

    Input(org.apache.iceberg.io.InputFile file, long size) {
      this.file = file;
      this.size = size;
    }

    public long getLength() {
      return size;
    }

    public SeekableInputStream newStream() {
      return new Stream(file.newStream());
    }
  }

  private static final class Stream extends DelegatingSeekableInputStream {
    private final org.apache.iceberg.io.SeekableInputStream in;

    Stream(org.apache.iceberg.io.SeekableInputStream in) {
      super(in);
      this.in = in;
    }

    public long getPos() throws IOException {
      return in.getPos();
    }

    public void seek(long to) throws IOException {
      in.seek(to);
    }
  }
}
