package io.lakewright.parquet;

import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.example.DummyRecordConverter;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

/** The rows of a row group by their key columns alone, as the file stores them: numbers, truth values or bytes. */
final class KeyRows {
  private final ColumnReader[] columns;
  private final PrimitiveTypeName[] types;
  private final int[] levels;
  private final Object[] row;
  private boolean isFirst = true;

  /** schema: of the key columns; paths: in their order. */
  KeyRows(PageReadStore pages, MessageType schema, String[][] paths, String createdBy) {
    ColumnReadStoreImpl store =
        new ColumnReadStoreImpl(pages, new DummyRecordConverter(schema).getRootConverter(), schema, createdBy);
    columns = new ColumnReader[paths.length];
    types = new PrimitiveTypeName[paths.length];
    levels = new int[paths.length];
    row = new Object[paths.length];
    for (int i = 0; i < paths.length; i++) {
      ColumnDescriptor descriptor = schema.getColumnDescription(paths[i]);
      columns[i] = store.getColumnReader(descriptor);
      types[i] = descriptor.getPrimitiveType().getPrimitiveTypeName();
      levels[i] = descriptor.getMaxDefinitionLevel();
    }
  }

  /** Returns the schema of these columns; throws NotCopyable for one that is not there, or of a type without values here. */
  static MessageType projected(MessageType schema, String[][] paths) throws NotCopyable {
    MessageType found = null;
    for (String[] path : paths) {
      if (!schema.containsPath(path)) {
        throw new NotCopyable("columns");
      }
      ColumnDescriptor descriptor = schema.getColumnDescription(path);
      PrimitiveTypeName type = descriptor.getPrimitiveType().getPrimitiveTypeName();
      if (type == PrimitiveTypeName.INT96 || descriptor.getMaxRepetitionLevel() > 0) {
        throw new NotCopyable("columns");
      }
      MessageType alone = ColumnFile.alone(schema, path);
      found = found == null ? alone : found.union(alone);
    }
    return found;
  }

  /** Moves to the next row, the first at first, and returns it: of each column its value, whole numbers as Long, or null. */
  Object[] next() {
    for (int i = 0; i < columns.length; i++) {
      ColumnReader in = columns[i];
      if (!isFirst) {
        in.consume();
      }
      row[i] = in.getCurrentDefinitionLevel() < levels[i] ? null : value(in, types[i]);
    }
    isFirst = false;
    return row;
  }

  private static Object value(ColumnReader in, PrimitiveTypeName type) {
    switch (type) {
      case INT32:
        return Long.valueOf(in.getInteger());
      case INT64:
        return Long.valueOf(in.getLong());
      case FLOAT:
        return Float.valueOf(in.getFloat());
      case DOUBLE:
        return Double.valueOf(in.getDouble());
      case BOOLEAN:
        return Boolean.valueOf(in.getBoolean());
      default:
        return in.getBinary().getBytes();
    }
  }
}
