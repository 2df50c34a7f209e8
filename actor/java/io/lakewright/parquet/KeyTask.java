package io.lakewright.parquet;

import io.lakewright.spark.Json;
import java.io.IOException;
import java.io.Serializable;
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

  private static final Object[] NO_KEY = {};

  private final Keys keys;

  KeyTask(
      ParquetStore store,
      SerializableConfiguration settings,
      ArrayList<String> files,
      ArrayList<Number> sizes,
      Keys keys,
      String prefix,
      String suffix,
      String codec) {
    super(store, settings, files, sizes, prefix, suffix, codec);
    this.keys = keys;
  }

  /** Gives each row of a file that is not hidden to the visitor; the reader then reads the key columns alone. */
  void read(ParquetFileReader reader, int input, Visitor visitor) throws IOException {
    FileMetaData metadata = reader.getFooter().getFileMetaData();
    boolean hasKeys = keys.paths.length > 0; // Else all rows that are not hidden are alike.
    MessageType projected = hasKeys ? KeyRows.projected(metadata.getSchema(), keys.paths) : metadata.getSchema();
    reader.setRequestedSchema(projected);
    List<BlockMetaData> blocks = reader.getRowGroups();
    long[] hidden = keys.hidden[input];
    int nextHidden = 0;
    long position = 0;
    for (int group = 0; group < blocks.size(); group++) {
      long rows = blocks.get(group).getRowCount();
      if (rows == 0) {
        continue; // The reader refuses to read it.
      }
      if (rows > Integer.MAX_VALUE) {
        throw new NotCopyable("large_footer");
      }
      PageReadStore pages = hasKeys ? reader.readRowGroup(group) : null;
      KeyRows found = hasKeys ? new KeyRows(pages, projected, keys.paths, metadata.getCreatedBy()) : null;
      for (int row = 0; row < rows; row++, position++) {
        Object[] key = hasKeys ? found.next() : NO_KEY;
        if (nextHidden < hidden.length && hidden[nextHidden] == position) {
          nextHidden++;
        } else {
          visitor.visit(group, row, key);
        }
      }
      if (hasKeys) {
        pages.close();
      }
      ParquetInput.checkCancelled();
    }
    if (nextHidden < hidden.length) {
      throw new NotCopyable("damaged"); // A vector that hides what is not there.
    }
  }

  /** What is done with a row: its row group, its place there, and its key, which the next row replaces. */
  interface Visitor {
    void visit(int group, int row, Object[] key) throws IOException;
  }

  /** Paths of the key columns in the files, and the positions of hidden rows of each file, ascending. */
  public static final class Keys implements Serializable {
    private static final long serialVersionUID = 1L;

    private final String[][] paths;
    private final long[][] hidden;

    private Keys(String[][] paths, long[][] hidden) {
      this.paths = paths;
      this.hidden = hidden;
    }

    /** Reads both, which are JSON. */
    public static Keys of(String paths, String hidden) throws IOException {
      return new Keys(Json.read(paths, String[][].class), Json.read(hidden, long[][].class));
    }
  }
}
