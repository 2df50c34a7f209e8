package io.lakewright.parquet;

import io.lakewright.spark.Json;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveComparator;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.Type;

/**
 * The columns of files as their footers list them: the tree of each schema among the files, and of each of its leaves the
 * counts and bounds over all files that have it. A schema is reported once, however many files have it.
 */
public final class ParquetColumns extends ParquetFooter.Visitor {
  private static final long MAX_KEPT_BYTES = 1 << 20; // Of footers, which take some ten times as much when they are read.

  private final Map schemas = new HashMap();
  private final ParquetFooter[] kept; // By the number of a file; those that were taken, or are too large, are null.
  private List files;
  private long keptBytes;

  private ParquetColumns(int files) {
    kept = new ParquetFooter[files];
  }

  /** Reads the footers of files, and keeps them for a task that copies these files, in the same order. */
  public static ParquetColumns read(ParquetStore store, List files, List sizes, int threads, List ids)
      throws java.io.IOException {
    ParquetColumns columns = new ParquetColumns(files.size());
    columns.files = ParquetFooter.summaries(store, files, sizes, threads, ids, columns);
    return columns;
  }

  /** Reads the footers of files, and returns what `text` does for each of them alone, as a JSON array. */
  public static String each(ParquetStore store, List files, List sizes, int threads) throws java.io.IOException {
    final ParquetColumns[] found = new ParquetColumns[files.size()];
    for (int i = 0; i < found.length; i++) {
      found[i] = new ParquetColumns(1);
    }
    ParquetFooter.Visitor alone =
        new ParquetFooter.Visitor() {
          void visit(int number, ParquetFooter footer, long size, String digest) throws java.io.IOException {
            found[number].visit(0, footer, size, digest);
          }
        };
    List summaries = ParquetFooter.summaries(store, files, sizes, threads, List.of(), alone);
    List reported = new ArrayList();
    for (int i = 0; i < found.length; i++) {
      found[i].files = List.of(summaries.get(i));
      reported.add(found[i].reported());
    }
    return Json.text(reported);
  }

  /** Returns the tree and the leaves of one file, by a footer that only parquet-java can read. */
  public static Map described(ParquetMetadata read) {
    Schema schema = new Schema(read.getFileMetaData().getSchema());
    schema.add(read);
    return schema.reported();
  }

  /** Returns as JSON `files`: what `ParquetFooter.summaries` returns; and `schemas`: trees and leaves by their digest. */
  public String text() throws java.io.IOException {
    return Json.text(reported());
  }

  private Map reported() {
    Map found = new HashMap();
    found.put("files", files);
    Map reported = new HashMap();
    for (java.util.Iterator one = schemas.entrySet().iterator(); one.hasNext(); ) {
      Map.Entry entry = (Map.Entry) one.next();
      reported.put(entry.getKey(), ((Schema) entry.getValue()).reported());
    }
    found.put("schemas", reported);
    return found;
  }

  /** Hands over the footer of a file, once, as a copy changes it; null if it was not kept. */
  synchronized ParquetFooter take(int file) {
    ParquetFooter footer = kept[file];
    kept[file] = null;
    return footer;
  }

  private synchronized void keep(int file, ParquetFooter footer, long bytes) {
    keptBytes += bytes;
    kept[file] = keptBytes <= MAX_KEPT_BYTES ? footer : null;
  }

  void visit(int number, ParquetFooter footer, long size, String digest) throws java.io.IOException {
    keep(number, footer, footer.length(size));
    ParquetMetadata read = new ParquetMetadataConverter().fromParquetMetadata(footer.metadata);
    synchronized (schemas) {
      Schema schema = (Schema) schemas.get(digest);
      if (schema == null) {
        schema = new Schema(read.getFileMetaData().getSchema());
        schemas.put(digest, schema);
      }
      schema.add(read);
    }
  }

  /** One schema, and its leaves over the row groups that were added. */
  private static final class Schema {
    private final MessageType type;
    private final Leaf[] leaves;

    Schema(MessageType type) {
      this.type = type;
      leaves = new Leaf[type.getColumns().size()];
      for (int i = 0; i < leaves.length; i++) {
        leaves[i] = new Leaf();
      }
    }

    void add(ParquetMetadata read) {
      for (BlockMetaData block : read.getBlocks()) {
        for (int i = 0; i < leaves.length && i < block.getColumns().size(); i++) {
          leaves[i].add(block.getColumns().get(i));
        }
      }
    }

    Map reported() {
      List fields = new ArrayList();
      int[] next = {0};
      for (int i = 0; i < type.getFieldCount(); i++) {
        fields.add(reported(type.getType(i), next));
      }
      Map found = new HashMap();
      found.put("fields", fields);
      return found;
    }

    /** The keys are the fields of `ParquetField` (file_columns.py). */
    private Map reported(Type field, int[] next) {
      Map found = new HashMap();
      found.put("name", field.getName());
      found.put("id", field.getId() == null ? null : Integer.valueOf(field.getId().intValue()));
      found.put("repetition", field.getRepetition().name());
      LogicalTypeAnnotation logical = field.getLogicalTypeAnnotation();
      found.put("logical", logical == null ? "" : logical.toString());
      if (field.isPrimitive()) {
        PrimitiveType primitive = field.asPrimitiveType();
        found.put("physical", primitive.getPrimitiveTypeName().name());
        found.put("length", Integer.valueOf(primitive.getTypeLength()));
        found.put("leaf", leaves[next[0]++].reported());
        return found;
      }
      GroupType group = field.asGroupType();
      List children = new ArrayList();
      for (int i = 0; i < group.getFieldCount(); i++) {
        children.add(reported(group.getType(i), next));
      }
      found.put("children", children);
      return found;
    }
  }

  /** Counts and bounds of one leaf column; what a row group leaves out is not known of all of them. */
  private static final class Leaf {
    private long values;
    private long nulls;
    private boolean isCounted = true;
    private boolean isBounded = true;
    private Object least;
    private Object greatest;
    private boolean isUnsigned;

    void add(ColumnChunkMetaData chunk) {
      Statistics statistics = chunk.getStatistics();
      boolean isKnown = statistics != null && !statistics.isEmpty() && statistics.isNumNullsSet();
      values += chunk.getValueCount();
      nulls += isKnown ? statistics.getNumNulls() : 0;
      isCounted = isCounted && isKnown;
      if (isKnown && statistics.getNumNulls() == chunk.getValueCount()) {
        return;
      }
      isBounded = isBounded && statistics != null && statistics.hasNonNullValue();
      if (!isBounded) {
        return;
      }
      LogicalTypeAnnotation logical = chunk.getPrimitiveType().getLogicalTypeAnnotation();
      isUnsigned = logical instanceof LogicalTypeAnnotation.IntLogicalTypeAnnotation
          && !((LogicalTypeAnnotation.IntLogicalTypeAnnotation) logical).isSigned();
      PrimitiveComparator order = chunk.getPrimitiveType().comparator();
      Object low = statistics.genericGetMin();
      Object high = statistics.genericGetMax();
      least = least == null || order.compare(low, least) < 0 ? low : least;
      greatest = greatest == null || order.compare(high, greatest) > 0 ? high : greatest;
    }

    /** The keys are the fields of `LeafCounts` (file_columns.py). */
    Map reported() {
      Map found = new HashMap();
      found.put("values", Long.valueOf(values));
      found.put("nulls", isCounted ? Long.valueOf(nulls) : null);
      found.put("is_bounded", Boolean.valueOf(isBounded));
      found.put("least", isBounded && least != null ? text(least) : null);
      found.put("greatest", isBounded && greatest != null ? text(greatest) : null);
      return found;
    }

    private String text(Object value) {
      if (value instanceof Binary) {
        byte[] bytes = ((Binary) value).getBytes();
        StringBuffer hex = new StringBuffer();
        for (int i = 0; i < bytes.length; i++) {
          hex.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
        }
        return hex.toString();
      }
      if (isUnsigned) {
        return value instanceof Long
            ? Long.toUnsignedString(((Long) value).longValue())
            : Integer.toUnsignedString(((Integer) value).intValue());
      }
      return String.valueOf(value);
    }
  }
}
