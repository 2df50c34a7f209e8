package io.lakewright.parquet;

import java.io.IOException;
import java.util.ArrayList;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.FileMetaData;
import org.apache.spark.util.SerializableConfiguration;

/** Merges the rows of Parquet files of the same columns into one file with large row groups, column by column, as one task. */
public final class ColumnMerge extends ColumnTask {
  private static final long serialVersionUID = 1L;

  private final HiddenRows hidden; // Null: none.
  private transient ColumnFile merged;

  public ColumnMerge(
      ParquetStore store,
      SerializableConfiguration settings,
      ArrayList<String> files,
      ArrayList<Number> sizes,
      String prefix,
      String suffix,
      String codec,
      HiddenRows hidden) {
    super(store, settings, files, sizes, prefix, suffix, codec);
    this.hidden = hidden;
  }

  void append(Outputs outputs, ColumnFile.Settings settings) throws IOException {
    int sample = sample();
    try (ParquetFileReader first = open(sample)) {
      PageReadStore sampled = settings.sample(first, inputBytes());
      merged = new ColumnFile(settings, first.getFooter().getFileMetaData().getSchema(), outputs.create(0), inputBytes());
      for (int i = 0; i < inputs(); i++) {
        if (i == sample) {
          reads(i);
          append(first, i, sampled);
          continue;
        }
        try (ParquetFileReader reader = open(i)) {
          append(reader, i, null);
        }
      }
    }
  }

  void finish(Outputs outputs) throws IOException {
    outputs.wrote(0, merged.finish());
  }

  /** Appends a file; first: its first row group if it was read already, or null. */
  private void append(ParquetFileReader reader, int input, PageReadStore first) throws IOException {
    FileMetaData metadata = reader.getFooter().getFileMetaData();
    merged.require(metadata.getSchema());
    merged.addKeyValues(metadata.getKeyValueMetaData());
    long position = 0;
    for (int i = 0; i < reader.getRowGroups().size(); i++) {
      BlockMetaData block = reader.getRowGroups().get(i);
      if (block.getRowCount() > 0) { // Else the reader refuses to read it.
        PageReadStore pages = i == 0 && first != null ? first : reader.readRowGroup(i);
        int[] numbers = hidden == null ? null : hidden.numbers(input, position, Math.toIntExact(block.getRowCount()));
        merged.append(pages, block, numbers, metadata.getCreatedBy());
        pages.close();
        position += block.getRowCount();
      }
    }
    if (hidden != null) {
      hidden.require(input, position);
    }
  }
}
