package io.lakewright.parquet;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.FileMetaData;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.util.SerializableConfiguration;

/** Decides by the key columns of rows that are not hidden. */
public abstract class KeyTask extends ColumnTask {
  private static final long serialVersionUID = 1L;

  private final String[][] keys; // Paths of the columns.
  private final HiddenRows hidden; // Null: none.

  KeyTask(
      ParquetStore store,
      SerializableConfiguration settings,
      ArrayList<String> files,
      ArrayList<Number> sizes,
      String[][] keys,
      HiddenRows hidden,
      String prefix,
      String suffix,
      String codec) {
    super(store, settings, files, sizes, prefix, suffix, codec);
    this.keys = keys;
    this.hidden = hidden;
  }

  /** Gives each row of a file that is not hidden to the visitor; the reader then reads the key columns alone. */
  void read(ParquetFileReader reader, int input, Visitor visitor) throws IOException {
    FileMetaData metadata = reader.getFooter().getFileMetaData();
    MessageType projected = KeyRows.projected(metadata.getSchema(), keys);
    reader.setRequestedSchema(projected);
    List<BlockMetaData> blocks = reader.getRowGroups();
    long position = 0;
    for (int group = 0; group < blocks.size(); group++) {
      long rows = blocks.get(group).getRowCount();
      if (rows == 0) {
        continue; // The reader refuses to read it.
      }
      if (rows > Integer.MAX_VALUE) {
        throw new NotCopyable("large_footer");
      }
      int[] numbers = hidden == null ? null : hidden.numbers(input, position, (int) rows);
      PageReadStore pages = reader.readRowGroup(group);
      KeyRows found = new KeyRows(pages, projected, keys, metadata.getCreatedBy());
      for (int row = 0; row < rows; row++) {
        Object[] key = found.next();
        if (numbers == null || numbers[row] >= 0) {
          visitor.visit(group, row, key);
        }
      }
      pages.close();
      position += rows;
      ParquetInput.checkCancelled();
    }
    if (hidden != null) {
      hidden.require(input, position);
    }
  }

  /** What is done with a row: its row group, its place there, and its key, which the next row replaces. */
  interface Visitor {
    void visit(int group, int row, Object[] key) throws IOException;
  }
}
