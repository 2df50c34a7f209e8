package io.lakewright.parquet;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.FileMetaData;
import org.apache.parquet.schema.MessageType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * Divides the rows of Parquet files of the same columns among several files, column by column, as one task.
 *
 * <p>Each row goes where its key leads. Row groups that grow take together what one may take.
 */
public final class RowScatter extends KeyTask {
  private static final long serialVersionUID = 1L;

  private final KeyRoute route;
  private final int firstPart; // Of the outputs' names.
  private final int outputs;
  private transient ColumnFile[] files;

  public RowScatter(
      ParquetStore store,
      SerializableConfiguration settings,
      ArrayList<String> files,
      ArrayList<Number> sizes,
      String[][] keys,
      HiddenRows hidden,
      String prefix,
      String suffix,
      String codec,
      KeyRoute route,
      int firstPart,
      int outputs) {
    super(store, settings, files, sizes, keys, hidden, prefix, suffix, codec);
    this.route = route;
    this.firstPart = firstPart;
    this.outputs = outputs;
  }

  void append(Outputs created, ColumnFile.Settings settings) throws IOException {
    files = new ColumnFile[outputs];
    int sample = sample();
    append(created, settings, sample, true);
    for (int i = 0; i < inputs(); i++) {
      if (i != sample) {
        append(created, settings, i, false);
      }
    }
  }

  private void append(Outputs created, ColumnFile.Settings settings, int input, boolean isSample) throws IOException {
    try (ParquetFileReader reader = open(input)) {
      FileMetaData metadata = reader.getFooter().getFileMetaData();
      MessageType schema = metadata.getSchema();
      int[][] numbers = new int[reader.getRowGroups().size()][];
      read(reader, input, (group, row, key) -> {
        if (numbers[group] == null) {
          numbers[group] = numbers(reader.getRowGroups().get(group));
        }
        numbers[group][row] = route.outputOf(key);
      });
      reader.setRequestedSchema(schema);
      for (int i = 0; i < numbers.length; i++) {
        if (numbers[i] != null) {
          PageReadStore pages = isSample && i == 0 ? settings.sample(reader, inputBytes()) : reader.readRowGroup(i);
          append(created, settings, metadata, pages, reader.getRowGroups().get(i), numbers[i]);
          pages.close();
        }
      }
    }
  }

  private static int[] numbers(BlockMetaData block) {
    int[] numbers = new int[(int) block.getRowCount()];
    Arrays.fill(numbers, -1); // Rows that are hidden go nowhere.
    return numbers;
  }

  private void append(
      Outputs created,
      ColumnFile.Settings settings,
      FileMetaData metadata,
      PageReadStore pages,
      BlockMetaData block,
      int[] numbers)
      throws IOException {
    long[] rows = new long[outputs];
    for (int number : numbers) {
      if (number >= 0) {
        rows[number]++;
      }
    }
    makeRoom(block.getTotalByteSize(), settings.rowGroupBytes);
    ColumnFile[] to = new ColumnFile[outputs];
    for (int i = 0; i < outputs; i++) {
      if (rows[i] > 0) {
        if (files[i] == null) {
          files[i] = new ColumnFile(settings, metadata.getSchema(), created.create(firstPart + i), inputBytes() / outputs);
        }
        files[i].require(metadata.getSchema());
        files[i].addKeyValues(metadata.getKeyValueMetaData());
        to[i] = files[i];
      }
    }
    ColumnFile.append(to, numbers, pages, metadata.getCreatedBy());
    for (int i = 0; i < outputs; i++) {
      if (to[i] != null) {
        to[i].added(rows[i], block.getTotalByteSize() * rows[i] / block.getRowCount());
      }
    }
  }

  /** Ends row groups, the largest first, until as many bytes as are to come can grow beside them. */
  private void makeRoom(long bytes, long most) throws IOException {
    while (true) {
      ColumnFile largest = null;
      long all = 0;
      for (ColumnFile file : files) {
        if (file != null) {
          all += file.growing();
          largest = largest == null || file.growing() > largest.growing() ? file : largest;
        }
      }
      if (largest == null || largest.growing() == 0 || all + bytes <= most) {
        return;
      }
      largest.endRowGroup();
    }
  }

  void report(List<Map<String, Object>> made, Map<String, Object> result) {
    result.put("outputs", made);
  }

  void finish(Outputs created) throws IOException {
    for (int i = 0; i < outputs; i++) {
      if (files[i] != null) {
        created.wrote(firstPart + i, files[i].finish());
      }
    }
  }
}
